"""The instruction set of the kernels."""

from stickbreak import _core, checks


def force_instructions(instructions: str | None) -> None:
    """Make the kernels of this process use one instruction set.

    Fits may differ in their last digits between instruction sets, and are equal to the last bit under the same one. By
    default kernels use the widest set of the machine. Machines of a cluster with different sets have one in common:
    ``client.run(sb.force_instructions, "avx2")``.

    Parameters
    ----------
    instructions : {"portable", "neon", "avx2", "avx512"} or None
        An instruction set of this machine; None for the widest.

    Raises
    ------
    InvalidType
        `instructions` is not a word.
    InvalidArgument
        This machine does not have it; the error names those that it has.

    Examples
    --------
    >>> import stickbreak as sb
    >>> sb.force_instructions("portable")
    >>> sb.force_instructions(None)
    """
    if instructions is not None and not isinstance(instructions, str):
        allowed = "the name of an instruction set, or None"
        raise checks.invalid_type("instructions", checks.describe(instructions), allowed)
    _core.force_instructions(instructions)
