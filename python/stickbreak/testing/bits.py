"""Definition of "the same bits": every visible number of a fit."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from stickbreak.result.fit import Fit


def visible_bits(fit: Fit, X: ArrayLike) -> dict[str, bytes]:
    """Return every visible number of a fit, for the fit itself and for some rows, as bytes by name.

    Two fits are the same if these are equal. Times are left out, because they always differ.

    Parameters
    ----------
    fit : Fit
        The fit.
    X : array_like of shape (n, D)
        Rows to evaluate and predict.

    Returns
    -------
    dict of str to bytes
        Names of attributes and methods of `Fit`, with their values.

    Raises
    ------
    InvalidType, InvalidArgument
        `X` does not consist of numbers, or has another number of columns than the fit.

    Examples
    --------
    >>> import numpy as np
    >>> import stickbreak as sb
    >>> from stickbreak.testing import visible_bits
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> model = sb.Mixture(likelihood=sb.Gaussian())
    >>> algorithm = sb.Full(max_passes=3)
    >>> one, other = (sb.fit(model, X, algorithm, n_components=3, seed=0) for _ in range(2))
    >>> visible_bits(one, X) == visible_bits(other, X)
    True
    """
    numbers = {
        "weights": fit.weights,
        "counts": fit.counts,
        "leftover_weight": fit.leftover_weight,
        "tail_count": fit.tail_count,
        "elbo": fit.elbo,
        "history": [record.elbo for record in fit.history],
        "evaluate": fit.evaluate(X),
        "predict": fit.predict(X),
        "predict_proba": fit.predict_proba(X),
        "log_predictive": fit.log_predictive(X),
        "sample": fit.sample(50, seed=3),
    }
    numbers |= {f"components.{name}": values for name, values in fit._state.components.items()}
    return {name: np.asarray(value).tobytes() for name, value in numbers.items()}


def require_same_bits(bits: Callable[[int | None], dict[str, bytes]], threads: Sequence[int | None]) -> None:
    """Raise AssertionError unless a run has the same bits with each of these numbers of threads."""
    first, *others = threads
    expected = bits(first)
    for number in others:
        found = bits(number)
        for name in expected:
            if found[name] != expected[name]:
                said = _say_bits(name, found[name], expected[name])
                raise AssertionError(f"{name} with threads={number} against threads={first}: {said}")


def _say_bits(what: str, found: bytes, expected: bytes) -> str:
    """Describe how two numbers differ that should be the same to the last bit."""
    left, right = (np.frombuffer(bits, np.float64 if what != "predict" else np.int64) for bits in (found, expected))
    if left.shape != right.shape:
        return f"{left.size} numbers instead of {right.size}"
    different = left.view(np.int64) != right.view(np.int64)
    place = int(np.argmax(different))
    return (
        f"{np.count_nonzero(different)} of {left.size} numbers differ, the first at {place}: {left[place]!r} instead "
        f"of {right[place]!r}, off by {abs(left[place] - right[place]):.3g}; nothing is allowed, because the same seed "
        "gives the same bits"
    )
