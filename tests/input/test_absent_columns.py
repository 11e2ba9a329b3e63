"""Wide sparse rows of which most columns have no value: the fit leaves these out, and the result has them all."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

import stickbreak as sb
from stickbreak.model.likelihoods import Likelihood
from stickbreak.run.algorithms import Algorithm

D = 2500
GIVEN = [
    sb.Poisson(shape=1.5, rate=1.0),
    sb.Bernoulli(successes=2.0, failures=2.0),
    sb.Multinomial(pseudo_counts=1.5),
]
ESTIMATED = [sb.Poisson(), sb.Bernoulli(), sb.Multinomial(coefficient=False), sb.Poisson(rate=0.5)]


def table(likelihood: Likelihood, seed: int = 0) -> NDArray[np.float64]:
    """Return rows of three groups of different sizes with values in 50 columns, dense."""
    rng = np.random.default_rng(seed)
    columns = np.sort(rng.choice(D, 50, replace=False))
    counts = rng.poisson(rng.gamma(0.5, 3.0, size=(3, 50))[np.repeat(np.arange(3), (10, 20, 30))])
    rows = np.zeros((60, D))
    rows[:, columns] = np.minimum(counts, 1) if isinstance(likelihood, sb.Bernoulli) else counts
    return rows


def assert_same(found: sb.Fit, expected: sb.Fit, rows: NDArray[np.float64]) -> None:
    """Compare a fit with one of dense rows, also on a row with values where no other had one."""
    assert found.objective == pytest.approx(expected.objective, rel=1e-9)
    np.testing.assert_allclose(found.counts, expected.counts, atol=1e-6)
    for name, values in expected.components.items():
        np.testing.assert_allclose(found.components[name], values, rtol=1e-6, err_msg=name)
    new = rows[:4].copy()
    new[0, ::100] = 1.0
    np.testing.assert_allclose(found.log_predictive(sparse.csr_array(new)), expected.log_predictive(new), rtol=1e-7)
    assert found.evaluate(sparse.csr_array(rows)) == pytest.approx(expected.evaluate(rows), rel=1e-9)


@pytest.mark.parametrize("likelihood", GIVEN + ESTIMATED, ids=repr)
def test_a_fit_comes_to_what_dense_rows_come_to(likelihood: Likelihood) -> None:
    rows = table(likelihood)
    model = sb.Mixture(likelihood)
    found, expected = (sb.fit(model, each, seed=1) for each in (sparse.csr_array(rows), rows))
    assert_same(found, expected, rows)
    for name, values in vars(expected.model.likelihood).items():
        if isinstance(values, np.ndarray | float):
            np.testing.assert_allclose(vars(found.model.likelihood)[name], values, rtol=1e-6, err_msg=name)


@pytest.mark.parametrize("likelihood", GIVEN, ids=repr)
@pytest.mark.parametrize(
    "algorithm",
    # Probabilities of zero make later passes of "ml" depend on rounding.
    [sb.Full(objective="map"), sb.Full(objective="ml", max_passes=1), sb.Memoized(moves=())],
    ids=["map", "ml", "memoized"],
)
@pytest.mark.parametrize("init", ["kmeans++", "sequential", "labels"])
@pytest.mark.one_in(3)
def test_point_estimates_and_starts_do_too(likelihood: Likelihood, algorithm: Algorithm, init: str) -> None:
    rows = table(likelihood)
    options = {"init": np.arange(60) % 4} if init == "labels" else {"init": init, "n_components": 4}
    model = sb.Mixture(likelihood)
    found, expected = (sb.fit(model, each, algorithm, **options) for each in (sparse.csr_array(rows), rows))
    assert_same(found, expected, rows)


def test_starts_and_checkpoints(tmp_path: Path) -> None:
    rows = sparse.csr_array(table(sb.Poisson()))
    checkpoint = sb.Checkpoint(tmp_path / "run", every_seconds=0)

    def fit(max_passes: int, **options: Any) -> sb.Fit:
        algorithm = sb.Memoized(max_passes=max_passes, moves=(sb.Birth(), sb.Merge()))
        return sb.fit(sb.Mixture(sb.Poisson()), rows, algorithm, **options)

    assert fit(50, n_init=2).runner_up is not None
    whole, _ = fit(50), fit(3, checkpoint=checkpoint)
    found = fit(50, checkpoint=checkpoint)
    assert found.objective == whole.objective
    found.save(tmp_path / "fit")
    for each in (sb.load(tmp_path / "fit"), fit(50, n_init=2)):
        np.testing.assert_array_equal(each.predict(rows), np.repeat([2, 1, 0], (10, 20, 30)))
    # A fit of more columns starts with all of them, also those that have values now.
    rows = rows.tolil()
    rows[0, 7] = 3.0
    assert sb.fit(found.model, rows.tocsr(), init=found).components["shape"].shape[1] == D


def test_no_value_at_all() -> None:
    assert sb.fit(sb.Mixture(sb.Poisson()), sparse.csr_array((20, D))).n_components == 1


def test_an_error_names_the_column_of_the_data() -> None:
    rows = sparse.csr_array(table(sb.Poisson()))
    column = int(rows.indices[5])
    rows.data[5] = -1.0
    with pytest.raises(sb.InvalidArgument, match=rf"column {column}\b"):
        sb.fit(sb.Mixture(sb.Poisson()), rows)


def test_a_checkpoint_belongs_to_its_columns(tmp_path: Path) -> None:
    """The rows of a run are those of the data, whatever a fit leaves out."""
    rows = sparse.csr_array(table(sb.Poisson()))
    model, checkpoint = sb.Mixture(sb.Poisson()), sb.Checkpoint(tmp_path / "run")
    sb.fit(model, rows, checkpoint=checkpoint)
    moved = sparse.csr_array((rows.data, (rows.indices + 1) % D, rows.indptr), shape=rows.shape)
    moved.sort_indices()
    wider = rows.copy()
    wider.resize((60, D + 500))
    for other, shape in ((moved, "60 x 2500"), (wider, "60 x 3000"), (rows[1:], "59 x 2500")):
        with pytest.raises(sb.CheckpointError, match=rf"60 x 2500 float64.*{shape} float64"):
            sb.fit(model, other, checkpoint=checkpoint)
