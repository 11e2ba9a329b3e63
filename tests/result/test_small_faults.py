"""Results that pickle, and typed errors of odd arguments."""

import contextlib
import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stickbreak as sb
from stickbreak.io import files

X = np.random.default_rng(0).normal([[-5.0, 0.0], [5.0, 2.0]], size=(30, 2, 2)).reshape(-1, 2)
MODEL = sb.Mixture(likelihood=sb.Gaussian())
FIT = sb.fit(MODEL, X, sb.Full(max_passes=5), n_components=2)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_densities_pickle_and_copy(copied: Any) -> None:
    for density in (FIT.marginal([1, 0]), FIT.conditional({0: 1.0}), FIT.marginal([0, 1], plug_in=True).marginal(1)):
        again = copied(density)
        assert again.columns == density.columns
        rows = X[:, list(density.columns)]
        assert np.array_equal(again.log_density(rows), density.log_density(rows))
        assert np.array_equal(again.means, density.means)


def test_odd_arguments_have_typed_errors() -> None:
    trace = sb.sample(MODEL, X, draws=2, warmup=1, chains=1, progress=False)
    topics = sb.fit(sb.TopicModel(sb.LatentDirichlet(2)), np.eye(3), sb.Full(max_passes=1), progress=False)
    # Of its type a sequence, but it has no items.
    view: Any = memoryview(np.zeros((2, 2)))
    calls: list[tuple[str, Any]] = [
        ("columns", lambda: FIT.marginal(np.array(1))),  # type: ignore[arg-type]
        ("rows", lambda: trace.similarity([[1, 2], [3]])),  # type: ignore[list-item]
        ("suggestions", lambda: sb.Advice("x", suggestions=3)),  # type: ignore[arg-type]
        ("kind", lambda: sb.Advice("x", kind=np.ones(2))),  # type: ignore[arg-type]
        ("text", lambda: sb.Advice(3)),  # type: ignore[arg-type]
        ("columns", lambda: FIT.marginal([0, 1]).marginal(view)),
        ("columns", lambda: sb.plot.clusters(FIT, X, columns=view)),
        ("vocabulary", lambda: topics.top_words(view)),
        ("vocabulary", lambda: topics.top_words(np.array(2.0))),  # type: ignore[arg-type]
        ("fits", lambda: sb.compare(np.array(1.0))),  # type: ignore[arg-type]
        ("callbacks", lambda: sb.fit(MODEL, X, callbacks=view)),
    ]
    for argument, call in calls:
        with pytest.raises(sb.InvalidType) as caught:
            call()
        assert caught.value.argument == argument


@pytest.mark.parametrize("value", [3, [1], {"a": 1}, None, True])
def test_damaged_headers_of_traces_and_hierarchies(value: Any, tmp_path: Path) -> None:
    trace = sb.sample(MODEL, X, draws=2, warmup=1, chains=1, progress=False)
    tree = sb.hierarchy(MODEL, X)
    for result, kind in ((trace, files.TRACE), (tree, files.HIERARCHY)):
        path = tmp_path / "result.safetensors"
        result.save(path)
        header, arrays = files.read(path, kind)
        for place in places(header):
            changed = copy.deepcopy(header)
            inner = changed
            for key in place[:-1]:
                inner = inner[key]
            inner[place[-1]] = value
            files.write(path, changed, arrays, kind)
            with contextlib.suppress(sb.ModelFileError):
                sb.load(path)


def places(value: Any, start: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths to all entries of a header."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = [(*start, key) for key, _ in inner]
    return found + [path for key, each in inner for path in places(each, (*start, key))]
