"""Fits in tables: the summary by name, scores of outliers, comparisons, cross-validation."""

import os
import signal
import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import scipy.stats

import stickbreak as sb
from stickbreak.run import validating

GAUSSIAN = sb.Mixture(likelihood=sb.Gaussian())


def rows(n: int = 200, d: int = 2, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) + np.repeat([[0.0], [12.0]], n // 2, axis=0)


def test_summary_has_what_the_fit_has() -> None:
    fit = sb.fit(GAUSSIAN, pd.DataFrame(rows(), columns=["x", "y"]))
    table = fit.summary()
    assert table.columns.tolist() == ["weight", "count", "mean x", "sd x", "mean y", "sd y"]
    assert len(table) == fit.n_components
    np.testing.assert_array_equal(table["weight"], fit.weights)
    for d, name in enumerate("xy"):
        np.testing.assert_array_equal(table[f"mean {name}"], fit.point_estimates["mean"][:, d])
        np.testing.assert_array_equal(table[f"sd {name}"], fit.point_estimates["covariance"][:, d, d] ** 0.5)


def test_summary_of_every_likelihood() -> None:
    rng = np.random.default_rng(0)
    counts, flags = rng.poisson(4.0, size=(60, 2)), rng.integers(2, size=(60, 2))
    codes = np.column_stack([rng.integers(2, size=60), rng.integers(4, size=60)])
    cases: list[tuple[Any, np.ndarray, list[str]]] = [
        (sb.ZeroMeanGaussian(), rows(), ["sd 0", "sd 1"]),
        (sb.DiagonalGaussian(), rows(), ["mean 0", "sd 0", "mean 1", "sd 1"]),
        (sb.SphericalGaussian(), rows(), ["mean 0", "sd 0", "mean 1", "sd 1"]),
        (sb.KnownCovarianceGaussian(np.diag([1.0, 4.0])), rows(), ["mean 0", "sd 0", "mean 1", "sd 1"]),
        (sb.Poisson(), counts, ["rate 0", "rate 1"]),
        (sb.Multinomial(), counts, ["probability 0", "probability 1"]),
        (sb.Bernoulli(), flags, ["probability 0", "probability 1"]),
        (sb.Categorical(), codes, ["code 0", "probability 0", "code 1", "probability 1"]),
    ]
    for likelihood, data, expected in cases:
        fit = sb.fit(sb.Mixture(likelihood=likelihood), data.astype(float), sb.Full(max_passes=3), n_components=2)
        table = fit.summary()
        assert table.columns.tolist() == ["weight", "count", *expected]
        assert np.isfinite(table.to_numpy(float)).all()
        if isinstance(likelihood, sb.KnownCovarianceGaussian):
            assert table["sd 1"].tolist() == [2.0, 2.0]
        if isinstance(likelihood, sb.Categorical):
            estimates = fit.point_estimates["probabilities"]
            assert table["code 1"].tolist() == estimates[:, 1].argmax(axis=1).tolist()


def test_scores_of_the_fits_own_rows_are_uniform() -> None:
    fit = sb.fit(GAUSSIAN, rows())
    scores = fit.outlier_scores(fit.sample(4000, seed=5), seed=1)
    assert scipy.stats.kstest(scores, "uniform").pvalue > 1e-4
    assert ((scores >= 0) & (scores <= 1)).all()


def test_strange_rows_score_high_and_in_the_order_of_their_density() -> None:
    fit = sb.fit(GAUSSIAN, rows())
    line = np.column_stack([np.linspace(12, 40, 30)] * 2)
    scores = fit.outlier_scores(line)
    assert scores[-1] == 1.0
    assert scores[0] < 0.5
    order = np.argsort(-fit.log_predictive(line), kind="stable")
    assert (np.diff(scores[order]) >= 0).all()
    scaled = sb.fit(GAUSSIAN, rows() * 1024.0)
    np.testing.assert_allclose(scaled.outlier_scores(line * 1024.0), scores, atol=0.03)


def test_rows_with_holes_are_compared_with_draws_that_have_the_same() -> None:
    X = rows(400)
    X[::5, 0] = np.nan
    fit = sb.fit(sb.Mixture(likelihood=sb.DiagonalGaussian()), X, missing="marginalize")
    drawn = fit.sample(4000, seed=5)
    drawn[::2, 1] = np.nan
    scores = fit.outlier_scores(drawn, seed=1)
    for part in (scores[::2], scores[1::2]):
        assert scipy.stats.kstest(part, "uniform").pvalue > 1e-4


def test_scores_of_sparse_counts() -> None:
    counts = np.random.default_rng(0).poisson(0.5, size=(80, 5)).astype(float)
    fit = sb.fit(sb.Mixture(likelihood=sb.Poisson()), counts, n_components=2)
    sparse = fit.outlier_scores(scipy.sparse.csr_array(counts))
    np.testing.assert_allclose(sparse, fit.outlier_scores(counts), atol=1e-3)


def test_comparison_is_sorted_and_says_what_was_estimated() -> None:
    X = rows()
    fits = {
        "one": sb.fit(GAUSSIAN, X, sb.Full(), n_components=1),
        "two": sb.fit(GAUSSIAN, X, sb.Full(), n_components=2),
        "rule": sb.fit(sb.Mixture(likelihood=sb.Gaussian(prior="rule")), X, sb.Full(), n_components=2),
        "finite": sb.fit(sb.Mixture(likelihood=sb.Gaussian(), process=sb.FiniteDirichlet(2)), X, sb.Full()),
    }
    table = sb.compare(fits)
    assert (np.diff([fits[name].objective for name in table.index]) <= 0).all()
    best = fits[table.index[0]]
    for name, line in table.iterrows():
        fit = fits[name]
        assert (line["elbo"], line["n_components"], line["bound"]) == (fit.elbo, fit.n_components, fit.bound)
        if fit.bound == best.bound:
            assert line["gain"] == fit.objective - best.objective
        else:
            assert np.isnan(line["gain"])
    assert table.loc["two", "estimated"] == "mean_precision, dof, scale"
    assert table.loc["rule", "estimated"] == ""
    assert sb.compare(list(fits.values())).index.tolist() == [list(fits).index(name) for name in table.index]


def test_comparisons_list_what_was_estimated_by_block() -> None:
    data = pd.DataFrame(rows(60, 2), columns=["x", "y"]).assign(n=np.arange(60) % 7, kind=np.arange(60) % 3)
    blocks = {"n": sb.Poisson(), "x, y": sb.Gaussian(), "kind": sb.Categorical(pseudo_counts=0.5)}
    model = sb.Mixture(likelihood=sb.Columns(blocks))
    table = sb.compare([sb.fit(model, data, sb.Full(max_passes=3), n_components=k) for k in (1, 2)])
    assert set(table["estimated"]) == {"shape, rate of n; mean_precision, dof, scale of x, y"}
    model = sb.Mixture(likelihood=sb.Columns({(2,): sb.Poisson(), (1, 0): sb.SphericalGaussian()}))
    fits = [sb.fit(model, data.to_numpy()[:, :3], sb.Full(max_passes=3), n_components=k) for k in (1, 2)]
    assert sb.compare(fits)["estimated"].iloc[0].startswith("shape, rate of 2; ")
    assert sb.compare(fits)["estimated"].iloc[0].endswith(" of 1, 0")


def test_comparison_by_rows_held_out() -> None:
    X, new = rows(), rows(seed=1)
    fits = {k: sb.fit(GAUSSIAN, X, sb.Full(), n_components=k) for k in (1, 2, 3)}
    table = sb.compare(fits, held_out=new)
    for k, fit in fits.items():
        assert table.loc[k, "held_out"] == pytest.approx(fit.log_predictive(new).mean())
        apart = fit.log_predictive(new) - fits[table.index[0]].log_predictive(new)
        assert table.loc[k, "difference"] == pytest.approx(apart.mean(), abs=1e-12)
        assert table.loc[k, "standard_error"] == pytest.approx(scipy.stats.sem(apart), abs=1e-12)
    assert (np.diff(table["held_out"]) <= 0).all()
    assert table.index[-1] == 1


def test_fits_of_other_data_are_refused() -> None:
    named = sb.fit(GAUSSIAN, pd.DataFrame(rows(), columns=["a", "b"]), n_components=2)
    others = [
        sb.fit(GAUSSIAN, rows(100), n_components=2),
        sb.fit(GAUSSIAN, rows(200, 3), n_components=2),
        sb.fit(GAUSSIAN, pd.DataFrame(rows(), columns=["a", "c"]), n_components=2),
        sb.fit(GAUSSIAN, rows(), n_components=2, sample_weight=np.full(200, 2.0)),
    ]
    for other in others:
        for held_out in (None, rows()):
            with pytest.raises(sb.InvalidArgument, match="same rows and columns") as caught:
                sb.compare({"left": named, "right": other}, held_out=held_out)
            assert caught.value.argument == "fits"
            assert "'right'" in str(caught.value)
    with pytest.raises(sb.InvalidArgument, match="columns"):
        named.compare(others[2])


@pytest.mark.parametrize("fits", [[], 3, "fits", [3, 4], None])
def test_refused_fits(fits: Any) -> None:
    with pytest.raises((sb.InvalidArgument, sb.InvalidType)) as caught:
        sb.compare(fits)
    assert caught.value.argument == "fits"


def test_a_single_fit_and_too_few_rows_are_refused() -> None:
    fit = sb.fit(GAUSSIAN, rows(), n_components=2)
    for fits in (fit, [fit]):
        with pytest.raises((sb.InvalidArgument, sb.InvalidType)):
            sb.compare(fits)
    bad = rows()
    bad[3, 1] = np.inf
    for held_out in (rows()[:1], bad, rows()[:, :1], rows()[:, 0]):
        with pytest.raises(sb.InvalidArgument, match=r"^held_out must be") as caught:
            sb.compare([fit, fit], held_out=held_out)
        assert caught.value.argument == "held_out"
        assert "X" not in str(caught.value)


def test_cross_validation_refuses_what_belongs_to_all_rows() -> None:
    for option in ("labels", "sample_weight"):
        with pytest.raises(
            sb.NotSupported, match=f"^{option} in cross_validate is not supported: it belongs to all rows"
        ):
            sb.cross_validate(GAUSSIAN, rows(), **{option: np.zeros(len(rows()), dtype=int)})


def test_cross_validation_refuses_other_options() -> None:
    for option, hint in (("foo", "further arguments are "), ("n_component", "did you mean 'n_components'")):
        with pytest.raises(sb.InvalidType, match=f"^cross_validate has no argument '{option}'; {hint}") as caught:
            sb.cross_validate(GAUSSIAN, rows(), **{option: 1})
        assert caught.value.argument == option


def test_cross_validation_is_what_fits_by_hand_say() -> None:
    table = pd.DataFrame(rows(60), columns=["x", "y"])
    models = {"full": GAUSSIAN, "diagonal": sb.Mixture(likelihood=sb.DiagonalGaussian())}
    found = sb.cross_validate(models, table, sb.Full(), folds=7, seed=3, n_components=2)
    assert found["model"].tolist() == ["full"] * 7 + ["diagonal"] * 7
    assert sorted(found["n_test"][:7]) == [8, 8, 8, 9, 9, 9, 9]
    assert ((found["n_train"] + found["n_test"]) == 60).all()
    order = np.random.default_rng(3).permutation(60)
    for index, line in found.iterrows():
        test = np.sort(order[line["fold"] :: 7])
        train = table.drop(index=test)
        fit = sb.fit(models[line["model"]], train, sb.Full(), n_components=2, seed=3)
        assert line["elbo"] == fit.elbo, index
        assert line["log_predictive"] == fit.log_predictive(table.iloc[test]).mean()


def test_cross_validation_of_sparse_counts_and_of_categories() -> None:
    counts = np.random.default_rng(0).poisson(1.0, size=(30, 4)).astype(float)
    model = sb.Mixture(likelihood=sb.Multinomial())
    dense, sparse = (
        sb.cross_validate(model, data, folds=3, n_components=2) for data in (counts, scipy.sparse.csr_array(counts))
    )
    np.testing.assert_allclose(sparse["log_predictive"], dense["log_predictive"])
    colours = pd.DataFrame({"colour": pd.Categorical(["red", "blue", "red"] * 10), "size": [0, 1, 2] * 10})
    found = sb.cross_validate(sb.Mixture(likelihood=sb.Categorical(levels=3)), colours, folds=3, n_components=2)
    assert np.isfinite(found["log_predictive"]).all()


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT to this process")
def test_ctrl_c_ends_cross_validation() -> None:
    passes: list[sb.Record] = []

    def interrupt(record: sb.Record) -> None:
        passes.append(record)
        if len(passes) == 5:
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        algorithm = sb.Full(max_passes=4, tol=0.0)
        found = sb.cross_validate(GAUSSIAN, rows(), algorithm, n_components=2, callbacks=[interrupt])
    finally:
        signal.signal(signal.SIGINT, before)
    assert found["fold"].tolist() == [0, 1]
    assert found["stop_reason"].tolist() == ["max_passes", "interrupted"]


@pytest.mark.parametrize("place", ["fit", "log_predictive"])
def test_ctrl_c_outside_of_a_fit_ends_cross_validation_too(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = validating if place == "fit" else sb.Fit
    whole, calls = getattr(owner, place), []

    def third(*arguments: Any, **options: Any) -> Any:
        calls.append(arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return whole(*arguments, **options)

    monkeypatch.setattr(owner, place, third)
    found = sb.cross_validate(GAUSSIAN, rows(), sb.Full(max_passes=4, tol=0.0), n_components=2)
    assert found["fold"].tolist() == [0, 1, 2]
    assert found["stop_reason"].tolist() == ["max_passes", "max_passes", "interrupted"]
    assert found["log_predictive"].isna().tolist() == [False, False, True]
    assert found["n_components"].tolist() == [2, 2, 0 if place == "fit" else 2]


@pytest.mark.parametrize(
    ("arguments", "options", "argument"),
    [
        ((GAUSSIAN, rows()), {"folds": 1}, "folds"),
        ((GAUSSIAN, rows(10)), {"folds": 11}, "folds"),
        ((GAUSSIAN, rows(2)), {}, "X"),
        (({}, rows()), {}, "model"),
        (({"a": 3}, rows()), {}, "model"),
        ((3, rows()), {}, "model"),
        ((GAUSSIAN, rows()), {"sample_weight": np.ones(200)}, "sample_weight"),
        ((GAUSSIAN, rows()), {"seed": -1}, "seed"),
    ],
)
def test_refused_cross_validation(arguments: Any, options: dict[str, Any], argument: str) -> None:
    with pytest.raises((sb.InvalidArgument, sb.InvalidType, sb.NotSupported)) as caught:
        sb.cross_validate(*arguments, **options)
    assert caught.value.argument == argument


def test_without_pandas_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    fit = sb.fit(GAUSSIAN, rows(), n_components=2)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(sb.NotSupported, match="pip install pandas"):
        fit.summary()
