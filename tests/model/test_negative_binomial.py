"""Overdispersed counts: limits, estimated dispersions, and the part of the bound that a histogram gives."""

from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

import stickbreak as sb
from oracles.models import Array

DENSE = sb.Full(moves=(), sparsity=None, margin=None, max_passes=30, tol=0)


def counts(n: int, dispersion: float, seed: int = 0, *, k: int = 3, d: int = 4, mean: float = 6.0) -> tuple[Array, Any]:
    """Return counts of k clusters, and their labels."""
    rng = np.random.default_rng(seed)
    rates = rng.gamma(1.0, mean, (k, d))
    labels = rng.integers(k, size=n)
    return rng.poisson(rates[labels] * rng.gamma(dispersion, 1 / dispersion, (n, d))).astype(float), labels


def fitted(rows: Any, likelihood: Any = None, algorithm: Any = DENSE, k: int = 3, **options: Any) -> sb.Fit:
    model = sb.Mixture(likelihood=likelihood or sb.NegativeBinomial(), process=sb.DirichletProcess())
    return sb.fit(model, rows, algorithm, n_components=k, progress=False, **options)


def test_large_dispersions_are_poisson() -> None:
    rows, labels = counts(200, 1e9)
    shape, rate = np.array([0.5, 1.0, 3.0, 2.0]), 0.7
    ours = fitted(rows, sb.NegativeBinomial(1e9, shape=shape, rate=rate), init=labels)
    theirs = fitted(rows, sb.Poisson(shape, rate=rate), init=labels)
    assert ours.elbo == pytest.approx(theirs.elbo, rel=1e-7)
    np.testing.assert_allclose(ours.log_predictive(rows), theirs.log_predictive(rows), rtol=1e-6)


@pytest.mark.parametrize("dispersion", [0.5, 3.0])
def test_the_dispersion_is_found(dispersion: float) -> None:
    rows, labels = counts(4000, dispersion, mean=20.0)
    found = fitted(rows, init=labels).model.likelihood.dispersion
    np.testing.assert_allclose(found, dispersion, rtol=0.15)


def test_poisson_counts_have_large_dispersions_and_the_same_clusters() -> None:
    rows, labels = counts(1000, 1e9, k=12, d=12)
    ours, theirs = (sb.fit(sb.Mixture(kind()), rows, progress=False) for kind in (sb.NegativeBinomial, sb.Poisson))
    assert ours.n_occupied == theirs.n_occupied == 12
    assert adjusted_rand_score(labels, ours.predict(rows)) > 0.99
    assert np.median(ours.model.likelihood.dispersion) > 50


def test_overdispersed_clusters_stay_whole() -> None:
    rows, labels = counts(1000, 3.0, k=12, d=24)
    fit = sb.fit(sb.Mixture(sb.NegativeBinomial()), rows, progress=False)
    assert fit.n_occupied == 12
    assert adjusted_rand_score(labels, fit.predict(rows)) > 0.98
    # Without it, clusters break.
    assert sb.fit(sb.Mixture(sb.Poisson()), rows, progress=False).n_occupied > 40


@given(
    seed=st.integers(0, 2**32 - 1),
    algorithm=st.sampled_from([sb.Full, sb.Memoized]),
    batches=st.integers(1, 5),
    form=st.sampled_from(["dense", "float32", "sparse", "missing", "weighted", "stream"]),
)
def test_the_bound_of_sums_is_that_of_rows(seed: int, algorithm: Any, batches: int, form: str) -> None:
    """`elbo` takes the base measure from the histogram, `evaluate` from the rows."""
    rows, _ = counts(60, 1.0, seed)
    more: dict[str, Any] = {}
    data: Any = rows
    if form == "missing":
        data = rows.copy()
        data[np.random.default_rng(seed).random(rows.shape) < 0.2] = np.nan
        data[:, 0] = rows[:, 0]
        more["missing"] = "marginalize"
    elif form == "float32":
        data = rows.astype(np.float32)
    elif form == "sparse":
        data = sparse.csr_array(rows)
    chosen: dict[str, Any] = {"moves": (), "sparsity": None, "margin": None, "max_passes": 4, "tol": 0}
    if algorithm is sb.Memoized:
        chosen |= {"batches": batches, "shuffle": form != "stream"}
    if form == "stream":
        data = (lambda: iter(np.array_split(rows, batches))) if algorithm is sb.Memoized else rows
        chosen.pop("batches", None)
    if form == "weighted":
        more["sample_weight"] = np.random.default_rng(seed).integers(0, 3, len(rows)).astype(float) + 0.25
    fit = fitted(data, algorithm=algorithm(**chosen), seed=1, **more)
    weights = {"sample_weight": more["sample_weight"]} if form == "weighted" else {}
    table = rows if form == "stream" else data
    # A local step more raises the bound; that of the same responsibilities is the bound itself.
    assert fit.evaluate(table, **weights) >= fit.elbo - 1e-5 * abs(fit.elbo)
    one = fitted(data, algorithm=algorithm(**chosen), k=1, seed=1, **more)
    assert one.evaluate(table, **weights) == pytest.approx(one.elbo, rel=2e-6 if form == "float32" else 1e-9)


def test_a_weight_of_two_is_two_rows() -> None:
    rows, labels = counts(80, 1.0)
    twice = fitted(np.vstack([rows, rows]), init=np.concatenate([labels, labels]))
    weighted = fitted(rows, init=labels, sample_weight=np.full(80, 2.0))
    assert weighted.elbo == pytest.approx(twice.elbo, rel=1e-10)
    np.testing.assert_allclose(weighted.model.likelihood.dispersion, twice.model.likelihood.dispersion, rtol=1e-6)


def test_an_update_counts_old_and_new_rows(tmp_path: Path) -> None:
    old, new = counts(150, 0.6)[0], counts(90, 5.0, seed=1)[0]
    fit = fitted(old, k=1)
    fit.save(tmp_path / "fit.sbk")
    updated, again = (each.update(new) for each in (fit, sb.load(tmp_path / "fit.sbk")))
    assert updated.elbo == again.elbo
    assert updated.evaluate(np.vstack([old, new])) == pytest.approx(updated.elbo, rel=1e-9)
    assert updated.model.likelihood != fit.model.likelihood


def test_large_counts_share_bins_that_lower_the_bound_a_little() -> None:
    rng = np.random.default_rng(0)
    rows = rng.poisson(rng.gamma(2.0, 2e5, (300, 2))).astype(float)
    fit = fitted(rows, k=1)
    gap = fit.evaluate(rows) - fit.elbo
    assert -1e-9 * abs(fit.elbo) <= gap <= rows.sum() / 1e8
    np.testing.assert_allclose(fit.model.likelihood.dispersion, 2.0, rtol=0.2)


def test_the_objective_rises_in_every_pass() -> None:
    rows, _ = counts(200, 1.0)
    for algorithm in (DENSE, sb.Memoized(moves=(), batches=7, sparsity=None, margin=None, max_passes=30, tol=0)):
        history = fitted(rows, algorithm=algorithm).history
        objectives = np.array([record.objective for record in history])
        rises = np.diff(objectives[~np.isnan(objectives)])
        assert (rises >= -1e-9 * abs(objectives[-1])).all()


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        ({"dispersion": 0.0}, "dispersion"),
        ({"dispersion": [1.0, -2.0]}, "dispersion"),
        ({"dispersion": 1e10}, "dispersion"),
        ({"shape": 0.0}, "shape"),
        ({"rate": np.inf}, "rate"),
    ],
)
def test_parameters_out_of_range_are_refused(arguments: dict[str, Any], argument: str) -> None:
    with pytest.raises(sb.InvalidArgument) as caught:
        sb.NegativeBinomial(**arguments)
    assert caught.value.argument == argument


def test_wrong_data_are_refused() -> None:
    for rows in ([[0.5, 1.0]], [[-1.0, 2.0]]):
        with pytest.raises(sb.InvalidArgument, match="whole numbers"):
            fitted(np.array(rows * 9), k=1)
    with pytest.raises(sb.InvalidArgument, match="dispersion"):
        fitted(counts(20, 1.0)[0], sb.NegativeBinomial([1.0, 2.0]))


@pytest.mark.parametrize("change", ["order", "column", "negative", "mass"])
def test_damaged_histograms_are_refused(change: str, tmp_path: Path) -> None:
    fit = fitted(counts(50, 1.0)[0], k=2)
    header, arrays = fit._state.to_parts()
    values = arrays["values"].copy()
    if change == "order":
        values[[0, 1], 1] = values[[1, 0], 1]
    elif change == "column":
        values[0, 0] = 99.0
    elif change == "negative":
        values[0, 2] = -1.0
    else:
        header["values_mass"] = float("nan")
    arrays["values"] = values
    with pytest.raises(sb.ModelFileError):
        type(fit._state).from_parts(header, arrays)


def test_point_estimates_keep_the_dispersion_of_the_rule() -> None:
    rows, labels = counts(100, 1.0)
    for objective in ("map", "ml"):
        likelihood = sb.NegativeBinomial(shape=2.0, rate=1.0)
        fit = fitted(rows, likelihood, sb.Full(moves=(), objective=objective, max_passes=3), init=labels)
        np.testing.assert_array_equal(fit.model.likelihood.dispersion, 2.0)


def test_the_table_has_means_and_deviations() -> None:
    rows, labels = counts(3000, 2.0)
    fit = fitted(rows, init=labels)
    table = fit.summary()
    own = rows[fit.predict(rows) == 0]
    assert table["mean 0"][0] == pytest.approx(own[:, 0].mean(), rel=0.15)
    assert table["sd 0"][0] == pytest.approx(own[:, 0].std(), rel=0.2)


def test_components_combine_by_overlap_alone() -> None:
    rows, _ = counts(300, 2.0, k=2, d=3)
    fit = fitted(rows, k=4)
    clusters = fit.combine(rows)
    assert 1 <= clusters.n_clusters <= fit.n_components
    assert len(fit.predict(rows)) == len(clusters.predict(rows))


def test_large_means_have_shapes_that_can_be_estimated() -> None:
    rng = np.random.default_rng(0)
    rows = np.round(rng.gamma(4.0, 2.5e9, (300, 1)))
    likelihood = fitted(rows, k=1).model.likelihood
    assert likelihood.shape[0] <= 1e9
    assert likelihood.dispersion[0] != 2.0
