"""The errors of stickbreak. The Rust core raises these very classes, so this module imports nothing of it."""


class StickbreakError(Exception):
    """Base of every error that stickbreak raises by itself."""


class _ArgumentError(StickbreakError):
    """An error that names the argument, the value found and the values allowed.

    Parameters
    ----------
    message : str
        The whole sentence.
    argument : str, optional
        Name of the argument.
    found : str, optional
        What was found, in words.
    allowed : str, optional
        What is allowed, in words.
    """

    # The keywords have defaults because unpickling calls the class with the message alone and then restores
    # the attributes.
    def __init__(
        self, message: str, *, argument: str | None = None, found: str | None = None, allowed: str | None = None
    ) -> None:
        super().__init__(message)
        self.argument = argument
        self.found = found
        self.allowed = allowed


class InvalidArgument(_ArgumentError, ValueError):
    """An argument has a value that is not allowed; see `argument`, `found` and `allowed`.

    Examples
    --------
    >>> import stickbreak as sb
    >>> try:
    ...     sb.Memoized(batches=0)
    ... except sb.InvalidArgument as error:
    ...     print(error.argument, "|", error.found, "|", error.allowed)
    batches | 0 | an integer of at least 1, or 'auto'
    """


class InvalidType(_ArgumentError, TypeError):
    """An argument has a type that is not allowed; see `argument`, `found` and `allowed`."""


class NotSupported(_ArgumentError, NotImplementedError):
    """A request that makes sense but that this version, model or algorithm does not serve.

    `argument` names what asks for it, `found` says what was asked for and what it does not go with, and `allowed` what
    to use instead. They are None where no argument is at fault, as where a package is missing.

    Examples
    --------
    >>> import stickbreak as sb
    >>> try:
    ...     sb.Stochastic(1000, moves=(sb.Birth(),))
    ... except sb.NotSupported as error:
    ...     print(error.argument, "|", error.found, "|", error.allowed)
    moves | a move with Stochastic | moves=(), Memoized or Full
    """


class ModelFileError(StickbreakError):
    """A model file is missing, foreign, damaged, newer than this version can read, or cannot be written."""


class CheckpointError(StickbreakError):
    """A checkpoint does not belong to this data, model or algorithm."""


class SourceError(StickbreakError):
    """The source of the data failed while it was being read."""


class NumericalError(StickbreakError):
    """A computation left the range of floating-point numbers.

    Parameters
    ----------
    message : str
        What happened.
    component : int, optional
        Position of the component concerned.
    """

    def __init__(self, message: str, *, component: int | None = None) -> None:
        super().__init__(message)
        self.component = component


class Advice(UserWarning):
    """What a fit is probably not meant to be, and what to try; `Fit.advice` has all of them.

    Those of the classes `ConvergenceWarning`, `SparsityWarning` and `SupportWarning` are warned of at the end of the
    fit too.

    Parameters
    ----------
    text : str
        What was found.
    kind : str
        Its name: "support", "passes", "starts", "few_rows", "one_component", "whole_numbers", "nearly_constant",
        "flags", "duplicates", "row_numbers" or "sparsity".
    suggestions : tuple of str
        What to try, the best first.

    Examples
    --------
    >>> import warnings
    >>> import stickbreak as sb
    >>> warnings.simplefilter("ignore", sb.Advice)
    """

    kind = ""

    # The keywords have defaults because unpickling calls the class with the message alone and then restores
    # the attributes.
    def __init__(self, text: str, *, kind: str = "", suggestions: tuple[str, ...] = ()) -> None:
        *others, last = ("", *suggestions)
        tried = f"{', '.join(others[1:])} or {last}" if others[1:] else last
        super().__init__(f"{text}; try {tried}" if suggestions else text)
        self.text = text
        self.kind = kind or self.kind
        self.suggestions = tuple(suggestions)


class ConvergenceWarning(Advice):
    """A fit has made all the passes that its algorithm allows, and has not converged.

    `Stochastic`, and algorithms with ``tol=0``, make a fixed number of passes and never warn.

    Examples
    --------
    >>> import warnings
    >>> import stickbreak as sb
    >>> warnings.simplefilter("ignore", sb.ConvergenceWarning)
    """

    kind = "passes"


class ConversionWarning(UserWarning):
    """Data are copied because the core reads only float32 and float64.

    Said once for each kind of conversion while the usual filters of `warnings` are in force, which is also where to
    silence it.

    Examples
    --------
    >>> import warnings
    >>> import stickbreak as sb
    >>> warnings.simplefilter("ignore", sb.ConversionWarning)
    """


class EmptyRowsWarning(UserWarning):
    """Rows without any value are left out of a fit with ``missing="marginalize"``: they say nothing of the components.

    Examples
    --------
    >>> import warnings
    >>> import stickbreak as sb
    >>> warnings.simplefilter("ignore", sb.EmptyRowsWarning)
    """


class StepSizeWarning(UserWarning):
    """The steps of `Stochastic` have lengths under which it need not settle.

    Examples
    --------
    >>> import warnings
    >>> import stickbreak as sb
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", sb.StepSizeWarning)
    ...     algorithm = sb.Stochastic(1000, decay=0.5)
    """


class SupportWarning(Advice):
    """Columns are constant or follow from others, or rows lie off the subspace of a fit; see `Support`.

    Examples
    --------
    >>> import warnings
    >>> import stickbreak as sb
    >>> warnings.simplefilter("ignore", sb.SupportWarning)
    """

    kind = "support"


class SparsityWarning(Advice):
    """Words of documents keep one topic each, which learns worse topics pass by pass.

    Examples
    --------
    >>> import warnings
    >>> import stickbreak as sb
    >>> warnings.simplefilter("ignore", sb.SparsityWarning)
    """

    kind = "sparsity"


class UnseenWordsWarning(UserWarning):
    """Documents have words that no document of the fit has, and that are left out.

    Examples
    --------
    >>> import warnings
    >>> import stickbreak as sb
    >>> warnings.simplefilter("ignore", sb.UnseenWordsWarning)
    """


class InternalError(StickbreakError):
    """An invariant of stickbreak itself does not hold: a bug of ours, please report it."""
