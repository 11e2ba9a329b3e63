"""Agreement of fits from several seeds."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

import stickbreak as sb
from stickbreak.result.agreement import adjusted_rand
from stickbreak.run.stability import Stability

MODEL = sb.Mixture(likelihood=sb.Gaussian())


def clusters(distance: float) -> np.ndarray:
    labels = np.arange(90) % 3
    return np.random.default_rng(0).normal(size=(90, 2)) + distance * labels[:, None]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-2, 2)), min_size=2, max_size=30))
def test_the_adjusted_rand_index_is_that_of_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    one, other = np.array(pairs).T
    assert adjusted_rand(one, other) == pytest.approx(adjusted_rand_score(one, other), abs=1e-12)


def test_clear_clusters_are_found_from_every_seed() -> None:
    found = sb.stability(MODEL, clusters(20.0), n_seeds=3, seed=7, progress=False)
    assert found.seeds.tolist() == [7, 8, 9]
    assert found.ari.shape == (3, 3)
    assert (found.ari == 1.0).all()
    assert (found.together == 1.0).all()
    assert found.objectives.max() == found.best.objective
    assert repr(found).startswith("<Stability of 3 fits: ARI 1.00 to 1.00, objectives within ")


def test_fits_are_those_of_their_seeds() -> None:
    rows = clusters(1.5)
    algorithm = sb.Full(max_passes=3, moves=())
    options = {"n_components": 5, "sample_weight": np.linspace(0.5, 2.0, 90), "progress": False}
    found = sb.stability(MODEL, rows, algorithm, n_seeds=4, **options)
    fits = [sb.fit(MODEL, rows, algorithm, seed=seed, **options) for seed in range(4)]
    assert found.objectives.tolist() == [fit.objective for fit in fits]
    labels = [fit.predict(rows) for fit in fits]
    expected = [[adjusted_rand_score(one, other) for other in labels] for one in labels]
    np.testing.assert_allclose(found.ari, expected, atol=1e-12)
    assert found.ari.min() < 0.99
    # By brute force over all pairs of rows.
    best = int(np.argmax(found.objectives))
    for component in range(5):
        rows_of = np.flatnonzero(labels[best] == component)
        pairs = [(i, j) for i in rows_of for j in rows_of if i < j]
        kept = [np.mean([other[i] == other[j] for i, j in pairs]) for k, other in enumerate(labels) if k != best]
        assert found.together[component] == pytest.approx(np.mean(kept), nan_ok=True)


@pytest.mark.parametrize("ended", [1, 2])
def test_ctrl_c_keeps_the_fits_that_have_ended(ended: int) -> None:
    begun = 0

    def interrupt(record: sb.Record) -> None:
        nonlocal begun
        begun += record.index == 0
        if begun == ended + 1:
            raise KeyboardInterrupt

    def run() -> Stability:
        return sb.stability(MODEL, clusters(20.0), n_seeds=5, progress=False, callbacks=[interrupt])

    if ended == 1:
        with pytest.raises(KeyboardInterrupt):
            run()
    else:
        assert run().seeds.tolist() == [0, 1]


@pytest.mark.parametrize("ended", [1, 2])
def test_ctrl_c_while_rows_are_labelled(ended: int, monkeypatch: pytest.MonkeyPatch) -> None:
    predict, calls = sb.Fit.predict, 0

    def interrupted(*arguments: Any, **named: Any) -> np.ndarray:
        nonlocal calls
        calls += 1
        if calls > ended:
            raise KeyboardInterrupt
        return predict(*arguments, **named)

    monkeypatch.setattr(sb.Fit, "predict", interrupted)
    if ended == 1:
        with pytest.raises(KeyboardInterrupt):
            sb.stability(MODEL, clusters(20.0), progress=False)
    else:
        assert sb.stability(MODEL, clusters(20.0), progress=False).seeds.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("arguments", "error", "argument"),
    [
        ({"n_seeds": 1}, sb.InvalidArgument, "n_seeds"),
        ({"seed": -1}, sb.InvalidArgument, "seed"),
        ({"seed": 2**63 - 3}, sb.InvalidArgument, "seed"),
        ({"n_init": 3}, sb.NotSupported, "n_init"),
        ({"checkpoint": sb.Checkpoint("a")}, sb.NotSupported, "checkpoint"),
        ({"threads": 0}, sb.InvalidArgument, "threads"),
        ({"n_component": 3}, sb.InvalidType, "n_component"),
    ],
)
def test_bad_arguments(arguments: dict, error: type, argument: str) -> None:
    with pytest.raises(error) as caught:
        sb.stability(MODEL, clusters(9.0), **arguments)
    assert caught.value.argument == argument


def test_an_unknown_argument_is_one_of_stability() -> None:
    with pytest.raises(sb.InvalidType, match=r"^stability has no argument 'thread'; did you mean 'threads'"):
        sb.stability(MODEL, clusters(9.0), thread=2)  # type: ignore[call-arg]
    with pytest.raises(sb.InvalidType, match="further arguments are callbacks, exposure, init"):
        sb.stability(MODEL, clusters(9.0), zzz=2)  # type: ignore[call-arg]
