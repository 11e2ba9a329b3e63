"""Arguments of every kind, to everything that takes arguments: the result is sound, or an error names the argument.

Most arguments of a call are good, so that the others are reached; one or two come from the pools of `wild` values.
"""

from __future__ import annotations

import datetime
import decimal
import fractions
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import stickbreak as sb
from fuzzing import Failure, generator

Generator = np.random.Generator
Call = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]

_KIND = 2
# Errors that a wrong argument may cause; InternalError, ModelFileError and others are not the caller's mistake.
ALLOWED = (sb.InvalidArgument, sb.InvalidType, sb.NotSupported, sb.NumericalError, sb.SourceError)


def run(seed: int, number: int) -> str:
    """Run one case; return how it ended."""
    rng = generator(seed, _KIND, number)
    make = _CALLS[rng.integers(len(_CALLS))]
    function, positional, named = make(rng)
    try:
        result = function(*positional, **named)
    except ALLOWED as error:
        _check_error(error)
        return type(error).__name__
    except Exception as error:
        call = f"{getattr(function, '__name__', function)}(*{positional!r}, **{named!r})"
        raise Failure(f"{type(error).__name__}: {error}\n    {call[:3000]}") from error
    problem = problem_of(result)
    if problem:
        call = f"{getattr(function, '__name__', function)}(*{positional!r}, **{named!r})"
        raise Failure(f"{problem}\n    {call[:3000]}")
    return "success"


def _check_error(error: Exception) -> None:
    if isinstance(error, sb.InvalidArgument | sb.InvalidType):
        parts = (error.argument, error.found, error.allowed)
        if not all(isinstance(part, str) and part and part in str(error) for part in parts) or len(str(error)) > 2000:
            raise Failure(f"an error without its parts: {error!r} {parts}")
    elif not str(error):
        raise Failure(f"an error without words: {error!r}")


def problem_of(result: Any, *, may_be_nan: bool = False) -> str:
    """Return the fault of a result; empty if it is sound. `may_be_nan`: some numbers may be unknown."""
    if isinstance(result, np.ndarray | float):
        kind = np.asarray(result).dtype.kind
        is_sound = kind not in "fc" or (~np.isinf(result)).all() if may_be_nan else np.isfinite(result).all()
        return "" if is_sound else f"a result that is not finite: {result}"
    if isinstance(result, sb.Fit):
        values = [result.weights, result.counts, *result.components.values(), np.array(result.leftover_weight)]
        if not all(np.isfinite(value).all() for value in values):
            return f"a fit that is not finite: {result!r}"
        if abs(result.weights.sum() + result.leftover_weight - 1.0) > 1e-9:
            return f"weights that do not have sum one: {result!r}"
        bounds = [record.elbo for record in result.history]
        # Without a pass the bound is unknown.
        ends = [result.elbo] if bounds else []
        if not np.isfinite(ends).all() or not (may_be_nan or np.isfinite(bounds).all()):
            return f"a bound that is not finite: {result!r}"
    return ""


# --- values ---


class _Rude:
    """An object whose every answer is an error."""

    def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray[Any, Any]:
        raise RuntimeError("no array")

    def __index__(self) -> int:
        raise RuntimeError("no index")

    def __float__(self) -> float:
        raise RuntimeError("no float")


class _Shapeless:
    """Claims to be an array and is none."""

    dtype = "float64"
    shape = (3, 2)

    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int) -> float:
        if index > 2:
            raise IndexError(index)
        return float(index)


_SCALARS: list[Any] = [None, True, False, 0, 1, -1, 2, 3, 7, 2**31, 2**63, 2**64, -(2**70), 10**30, 10**400, 0.0, -0.0]
_SCALARS += [0.5, 1.0, 1.5, -1.5, 5e-324, 1e-310, 1e-300, 1e-20, 1e20, 1e300, 1.7e308, np.nan, np.inf, -np.inf, 1j]
_SCALARS += [np.float32(2), np.int8(3), np.uint64(2**63), np.float16(0.5), np.longdouble("1e4000"), np.complex64(1)]
_SCALARS += [np.bool_(True), np.datetime64("2020-01-01"), np.timedelta64(3, "s"), np.array(2), np.array(2.0)]
_SCALARS += [decimal.Decimal("1.5"), fractions.Fraction(1, 3), datetime.date(2020, 1, 1)]
_SCALARS += ["", "1", "nested", "neste", "auto", "kmeans++", "random", "error", "x" * 5000, "\0", "\ud800", b"1"]
_SCALARS += [[], (), {}, set(), [1], [[]], [None], ["a"], [1, "a"], [[1.0], [1.0, 2.0]], {"a": 1}, range(3), slice(3)]
_SCALARS += [int, sb.Gaussian, sb.Full, sb.fit, len, lambda: None, object(), _Rude(), _Shapeless(), Ellipsis]
_SCALARS += [sb.Gaussian(), sb.DirichletProcess(), sb.FiniteDirichlet(2), sb.Full(), iter([1.0]), memoryview(b"abcd")]
_SCALARS += [np.zeros(3, dtype=[("a", float)]), np.zeros((3, 2), dtype=[("a", float)]), [[0, 1], [2]]]
_SCALARS += [np.array([np.zeros(2), np.zeros(3)], dtype=object), np.array([[np.zeros(2), 1.0], ["a", 2.0]], object)]
_SCALARS += [np.ma.masked, np.ma.masked_array([1.0, 2.0], [True, False]), np.array(None), np.array(["a", "b"])]


def wild(rng: Generator) -> Any:
    """Return anything at all."""
    return _SCALARS[rng.integers(len(_SCALARS))] if rng.random() < 0.7 else array(rng)


def array(rng: Generator, shape: tuple[int, ...] | None = None) -> Any:
    """Return an array of any type, layout and size of numbers, or something made of one."""
    if shape is None:
        shape = tuple(int(size) for size in rng.integers(0, 8, size=rng.integers(0, 4)))
    values = rng.standard_normal(shape)
    with np.errstate(all="ignore"):
        if rng.random() < 0.3:
            values = values * 10.0 ** rng.uniform(-330, 308)
        if rng.random() < 0.2:
            values = values + rng.choice([-1.0, 1.0]) * 10.0 ** rng.uniform(-10, 20)
        if rng.random() < 0.15:
            values = np.full(shape, rng.choice([0.0, 1.0, 1e8, -7.0]))
        if values.size and rng.random() < 0.2:
            index = rng.integers(values.size)
            np.asarray(values).flat[index] = rng.choice([np.nan, np.inf, -np.inf, 5e-324, 1e308, 0.0, -1.0])
        return _dressed(rng, np.asarray(values))


def _dressed(rng: Generator, values: np.ndarray[Any, Any]) -> Any:
    choice = rng.integers(24)
    if choice < 6:
        types: list[Any] = [np.float32, np.float16, np.int64, np.int8, np.uint64, np.bool_, np.longdouble]
        types += [np.complex128, object, str, "S8", ">f8", ">f4", ">i4", "M8[s]", "V8"]
        kind = types[rng.integers(len(types))]
        try:
            return np.nan_to_num(values).astype(kind) if np.dtype(kind).kind in "Mm" else values.astype(kind)
        except (ValueError, TypeError):
            return values
    dresses: list[Callable[[], Any]] = [
        lambda: np.asfortranarray(values),
        lambda: values[::-1] if values.ndim else values,
        lambda: values.T,
        lambda: values.reshape(values.shape + (1,) * int(rng.integers(1, 65 - values.ndim))),
        lambda: values.tolist(),
        lambda: tuple(values.tolist()) if values.ndim else values,
        lambda: np.ma.masked_invalid(values),
        lambda: np.ascontiguousarray(values).data,
        lambda: list(values) if values.ndim else values,
    ]
    return dresses[choice - 6]() if choice - 6 < len(dresses) else values


def _data(rng: Generator) -> Any:
    """Return rows, mostly valid ones."""
    n, d = int(rng.integers(2, 13)), int(rng.integers(1, 4))
    choice = rng.random()
    if choice < 0.5:
        return array(rng, (n, d))
    if choice < 0.65:
        return wild(rng)
    rows = rng.standard_normal((n, d)) * 10.0 ** rng.integers(-3, 4)
    return np.repeat(rows, 2, axis=0) if choice < 0.75 else rows


def _one_of(rng: Generator, *choices: Any) -> Any:
    return choices[rng.integers(len(choices))]


def _spoil(rng: Generator, named: dict[str, Any], share: float = 0.7) -> dict[str, Any]:
    """Replace one or two arguments by wild values."""
    names = sorted(named)
    for _ in range(int(rng.integers(1, 3)) if rng.random() < share else 0):
        named[names[rng.integers(len(names))]] = wild(rng)
    return named


def _positive(rng: Generator) -> float:
    return float(10.0 ** (rng.uniform(-3, 3) if rng.random() < 0.7 else rng.uniform(-323, 308)))


def _square(rng: Generator, d: int) -> Any:
    factor = rng.standard_normal((d, d))
    size = _positive(rng)
    return _one_of(rng, None, size * np.eye(d), size * (factor @ factor.T + np.eye(d)), size * factor)


# --- calls ---


def _likelihood(rng: Generator) -> Call:
    d = int(rng.integers(1, 4))
    named = {"dof": _one_of(rng, None, d + _positive(rng)), "scale": _square(rng, d)}
    if rng.random() < 0.4:
        return sb.ZeroMeanGaussian, (), _spoil(rng, named)
    named |= {"mean": _one_of(rng, None, rng.standard_normal(d) * _positive(rng)), "mean_precision": _positive(rng)}
    return sb.Gaussian, (), _spoil(rng, named)


def _process(rng: Generator) -> Call:
    if rng.random() < 0.5:
        words = _one_of(rng, "nested", "stick", "tail", "Nested")
        return sb.DirichletProcess, (), _spoil(rng, {"concentration": _positive(rng), "truncation": words})
    named = {"n_components": int(rng.integers(1, 5)), "concentration": _positive(rng)}
    return sb.FiniteDirichlet, (), _spoil(rng, named)


def _algorithm(rng: Generator) -> Call:
    named: dict[str, Any] = {
        "objective": _one_of(rng, None, "variational", "map"),
        "sparsity": _one_of(rng, None, "auto", 1, 2, 3),
        "margin": None,
        "bounds_memory": _one_of(rng, 1, 2**20),
        "moves": (),
        "max_passes": int(rng.integers(0, 5)),
        "tol": _one_of(rng, 0.0, 1e-6, 1),
    }
    if rng.random() < 0.5:
        return sb.Full, (), _spoil(rng, named)
    named |= {"batches": _one_of(rng, "auto", 1, 2, 3), "shuffle": _one_of(rng, True, False)}
    return sb.Memoized, (), _spoil(rng, named)


def _mixture(rng: Generator) -> Call:
    return sb.Mixture, (), _spoil(rng, {"likelihood": sb.Gaussian(), "process": sb.DirichletProcess()}, 0.9)


def _made(rng: Generator, make: Callable[[Generator], Call], fallback: Any) -> Any:
    function, positional, named = make(rng)
    try:
        return function(*positional, **named)
    except ALLOWED:
        return fallback


def _fit(rng: Generator) -> Call:
    data = _data(rng)
    shape = np.shape(data) if isinstance(data, np.ndarray) else (5, 2)
    n, _ = shape if len(shape) == 2 else (5, 2)
    likelihood = _made(rng, _likelihood, sb.Gaussian()) if rng.random() < 0.4 else sb.Gaussian()
    process = _made(rng, _process, sb.DirichletProcess()) if rng.random() < 0.4 else sb.DirichletProcess()
    passes, sparsity = int(rng.integers(0, 3)), _one_of(rng, None, "auto", 1, 2)
    algorithm: Any = sb.Full(max_passes=passes, sparsity=sparsity)
    if rng.random() < 0.5:
        batches, shuffle = int(rng.integers(1, 5)), bool(rng.integers(2))
        algorithm = sb.Memoized(batches=batches, shuffle=shuffle, max_passes=passes, sparsity=sparsity)
    named: dict[str, Any] = {
        "n_components": _one_of(rng, None, 1, 2, 3, n),
        "init": _start(rng, n),
        "n_init": _one_of(rng, 1, 1, 2),
        "seed": int(rng.integers(0, 2**63)),
        "threads": 1,
        "sample_weight": _weights(rng, n),
        "missing": "error",
        "progress": False,
        "callbacks": _one_of(rng, (), [lambda _: False], [lambda _: True]),
        "checkpoint": None,
    }
    named = _spoil(rng, named, 0.5)
    if isinstance(named["progress"], bool | np.bool_):
        named["progress"] = False  # a bar on stderr is a word there
    model = sb.Mixture(likelihood=likelihood, process=process) if rng.random() < 0.95 else wild(rng)
    return sb.fit, (model, data, algorithm if rng.random() < 0.95 else wild(rng)), named


def _start(rng: Generator, n: int) -> Any:
    k = int(rng.integers(1, 4))
    shares = rng.dirichlet(np.ones(k), size=n) if n else np.ones((0, k))
    labels = rng.integers(0, k, size=n)
    return _one_of(
        rng, "kmeans++", "kmeans++", "random", labels, shares, _fitted(), array(rng, (n, k)), array(rng, (n,))
    )


def _weights(rng: Generator, n: int) -> Any:
    plain = rng.uniform(0, 3, size=n)
    sized = plain * 10.0 ** rng.uniform(-323, 307)
    return _one_of(rng, None, None, plain, plain > 1.5, sized, array(rng, (n,)))


@cache
def _fitted() -> sb.Fit:
    rows = np.random.default_rng(1).normal(size=(30, 2))
    model = sb.Mixture(likelihood=sb.Gaussian())
    return sb.fit(model, rows, sb.Full(max_passes=2), n_components=3, threads=1, progress=False)


def _question(rng: Generator) -> Call:
    fit = _fitted()
    rows = array(rng, (int(rng.integers(0, 6)), 2)) if rng.random() < 0.7 else _data(rng)
    n = rows.shape[0] if isinstance(rows, np.ndarray) and rows.ndim else 3
    methods: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = [
        (fit.predict, (rows,), {"threads": 1}),
        (fit.predict_proba, (rows,), {"threads": 1, "sparse": False}),
        (fit.log_predictive, (rows,), {"threads": 1}),
        (
            fit.evaluate,
            (rows,),
            {"threads": 1, "sample_weight": _weights(rng, n)},
        ),
        (fit.sample, (_one_of(rng, 0, 1, 5, 2**62, 10**18, wild(rng)),), {"seed": int(rng.integers(2**63))}),
        (sb.Fit, (wild(rng),), {"stop_reason": None}),
        (sb.load, (_path(rng),), {}),
    ]
    function, positional, named = methods[rng.integers(len(methods))]
    if function is sb.load:
        return _load, positional, named
    if (
        function == fit.sample
        and positional[0] is not True
        and isinstance(positional[0], int)
        and positional[0] == 2**31
    ):
        positional = (5,)  # a valid wish that takes long
    return function, positional, _spoil(rng, named, 0.3) if named else named


def _path(rng: Generator) -> Any:
    return _one_of(rng, wild(rng), "", ".", "/", "no-such-file", "a\0b", "a" * 5000, "\ud800", b"bytes", 3)


def _load(path: Any) -> Any:
    try:
        return sb.load(path)
    except sb.ModelFileError:
        return None  # no file is what it says


_CALLS: list[Callable[[Generator], Call]] = [_likelihood, _process, _algorithm, _mixture, _question, _question]
_CALLS += [_fit, _fit, _fit, _fit]
