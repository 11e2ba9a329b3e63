"""The errors of stickbreak. The Rust core raises these same classes, so this module does not import the core."""

from typing import Any

from stickbreak.terminal import plain


class _Message:
    """A part of all errors and warnings: what they say is safe to show, whatever words of files it quotes."""

    def __str__(self) -> str:
        return plain(super().__str__(), breaks=True)


class StickbreakError(_Message, Exception):
    """Base of all errors that stickbreak raises itself."""


class _ArgumentError(StickbreakError):
    """An error that names the argument, the value found and the values allowed.

    Parameters
    ----------
    message : str
        The complete message.
    argument : str, optional
        Name of the argument.
    found : str, optional
        Description of the value found.
    allowed : str, optional
        Description of the allowed values.
    """

    # The keywords have defaults because unpickling calls the class with the message alone and then restores
    # the attributes.
    def __init__(
        self, message: str, *, argument: str | None = None, found: str | None = None, allowed: str | None = None
    ) -> None:
        super().__init__(message)
        self.argument = _plain(argument)
        self.found = _plain(found)
        self.allowed = _plain(allowed)


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


def _plain(text: str | None) -> str | None:
    return plain(text, breaks=True) if isinstance(text, str) else text


def _no_words(argument: str, value: object, allowed: str) -> InvalidType:
    found = repr(value)
    return InvalidType(f"{argument} must be {allowed}, found {found}", argument=argument, found=found, allowed=allowed)


class NotSupported(_ArgumentError, NotImplementedError):
    """A valid request that this version, model or algorithm does not support.

    `argument` names the argument, `found` states the request and what it cannot be combined with, and `allowed` states
    what to use instead. They are None if no argument is at fault, for example if a package is missing.

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
    """A computation left the range of floating-point numbers, or the system could not start a thread for it.

    Parameters
    ----------
    message : str
        What happened.
    component : int, optional
        Position of the component concerned.

    Attributes
    ----------
    component : int or None
        The same.
    trace : Trace or None
        The draws so far, if `sample` was interrupted by the error after each chain had one.
    """

    def __init__(self, message: str, *, component: int | None = None) -> None:
        super().__init__(message)
        self.component = component
        # A `Trace`, whose module is above this one.
        self.trace: Any = None


class Advice(_Message, UserWarning):
    """A probable mistake about a fit or a trace, and what to try. Their methods `advice` return all of it.

    Advice of the classes `ConvergenceWarning`, `SparsityWarning` and `SupportWarning` is also given as a warning at the
    end of the fit.

    Parameters
    ----------
    text : str
        What was found.
    kind : str
        Its name: "support", "passes", "starts", "disagreement", "few_rows", "one_component", "whole_numbers",
        "nearly_constant", "flags", "copies", "duplicates", "weights", "residual_columns", "skewed", "outliers",
        "copied_columns", "row_numbers", "sparsity"; of a trace "truncation", "stuck", "rhat", "ess", "still",
        "one_start", "repeats" or "stopped".
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
        given: object = suggestions
        if not isinstance(given, tuple | list) or not all(isinstance(each, str) for each in given):
            raise _no_words("suggestions", suggestions, "a tuple of strings")
        for argument, value in (("text", text), ("kind", kind)):
            if not isinstance(value, str):
                raise _no_words(argument, value, "a string")
        text, suggestions = plain(text, breaks=True), tuple(plain(each, breaks=True) for each in suggestions)
        *others, last = ("", *suggestions)
        tried = f"{', '.join(others[1:])} or {last}" if others[1:] else last
        super().__init__(f"{text}; try {tried}" if suggestions else text)
        self.text = text
        self.kind = plain(kind or self.kind)
        self.suggestions = suggestions


class ConvergenceWarning(Advice):
    """A fit has not converged after all its passes, or the chains of `sample` disagree, never moved, or are too short.

    `Stochastic`, and algorithms with ``tol=0``, make a fixed number of passes and never warn.

    Examples
    --------
    >>> import warnings
    >>> import stickbreak as sb
    >>> warnings.simplefilter("ignore", sb.ConvergenceWarning)
    """

    kind = "passes"


class TruncationWarning(Advice):
    """Draws of `BlockedGibbs` often had rows in the last tenth of its components, so that the truncation matters.

    Examples
    --------
    >>> import warnings
    >>> import stickbreak as sb
    >>> warnings.simplefilter("ignore", sb.TruncationWarning)
    """

    kind = "truncation"


class BiasWarning(Advice):
    """Draws of ``TreeGuided(exact=False)`` are results of a search: their frequencies are not probabilities.

    Examples
    --------
    >>> import warnings
    >>> import stickbreak as sb
    >>> warnings.simplefilter("ignore", sb.BiasWarning)
    """

    kind = "bias"


class ConversionWarning(_Message, UserWarning):
    """Data are copied because the core reads only float32 and float64.

    Given once for each kind of conversion, unless you change the filters of `warnings`. Silence it there.

    Examples
    --------
    >>> import warnings
    >>> import stickbreak as sb
    >>> warnings.simplefilter("ignore", sb.ConversionWarning)
    """


class EmptyRowsWarning(_Message, UserWarning):
    """A fit with ``missing="marginalize"`` leaves out rows without any value, which say nothing of the components.

    Examples
    --------
    >>> import warnings
    >>> import stickbreak as sb
    >>> warnings.simplefilter("ignore", sb.EmptyRowsWarning)
    """


class StepSizeWarning(_Message, UserWarning):
    """The step sizes of `Stochastic` do not guarantee convergence.

    Examples
    --------
    >>> import warnings
    >>> import stickbreak as sb
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", sb.StepSizeWarning)
    ...     algorithm = sb.Stochastic(1000, decay=0.5)
    """


class SupportWarning(Advice):
    """Columns are constant or depend on others, or rows lie off the subspace of a fit; see `Support`.

    Examples
    --------
    >>> import warnings
    >>> import stickbreak as sb
    >>> warnings.simplefilter("ignore", sb.SupportWarning)
    """

    kind = "support"


class SparsityWarning(Advice):
    """Each word of a document keeps only one topic, which makes topics worse from pass to pass.

    Examples
    --------
    >>> import warnings
    >>> import stickbreak as sb
    >>> warnings.simplefilter("ignore", sb.SparsityWarning)
    """

    kind = "sparsity"


class UnseenWordsWarning(_Message, UserWarning):
    """Documents contain words that occur in no document of the fit; they are left out.

    Examples
    --------
    >>> import warnings
    >>> import stickbreak as sb
    >>> warnings.simplefilter("ignore", sb.UnseenWordsWarning)
    """


class InternalError(StickbreakError):
    """An invariant of stickbreak itself does not hold: a bug of ours, please report it."""
