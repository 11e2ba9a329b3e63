"""`BayesianMixture`: scikit-learn's checks, equality with `fit`, and use within scikit-learn."""

import copy
import json
import os
import pickle
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError, UnsetMetadataPassedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

import stickbreak as sb
from cases import separated_mixture, visible_bits
from stickbreak.run import fitting
from stickbreak.sklearn import BayesianMixture

DRAWN_BY_N = "start and batches are drawn by the seed and by the number of rows, which a repeated row changes"
NOT_EQUIVALENT = {
    "check_sample_weight_equivalence_on_dense_data": DRAWN_BY_N,
    "check_sample_weight_equivalence_on_sparse_data": DRAWN_BY_N,
}
PASSES = sb.Full(max_passes=5, tol=0.0)


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    return separated_mixture(0, n=300, dimension=2, n_clusters=3)[0]


@pytest.fixture(scope="module")
def labels() -> np.ndarray:
    return separated_mixture(0, n=300, dimension=2, n_clusters=3)[1]


def quick(**options: Any) -> BayesianMixture:
    """Three components that converge on `rows` at once."""
    return BayesianMixture(**{"n_components": 3, "random_state": 0} | options)


def same(one: sb.Fit, other: sb.Fit, rows: np.ndarray) -> bool:
    return visible_bits(one, rows) == visible_bits(other, rows)


# Checks of scikit-learn


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::stickbreak.SupportWarning")
@parametrize_with_checks(
    [
        BayesianMixture(),
        BayesianMixture(n_components=2, algorithm=sb.Full(sparsity=None), n_init=2, threads=1),
        BayesianMixture(likelihood=sb.ZeroMeanGaussian(), n_components=5, init="random"),
    ],
    # Where the number of components is sought, it is sought in distinct rows.
    expected_failed_checks=lambda estimator: {} if estimator.n_components is None else NOT_EQUIVALENT,
)
def test_check_estimator(estimator: BayesianMixture, check: Any) -> None:
    check(estimator)


@pytest.mark.slow
def test_check_estimator_as_a_whole() -> None:
    """With arrays of other libraries allowed, which needs a variable that SciPy reads when it is imported."""
    script = """
import json, warnings
from sklearn.utils.estimator_checks import check_estimator
from stickbreak.sklearn import BayesianMixture
warnings.simplefilter("ignore")
results = check_estimator(BayesianMixture(), on_fail=None)
print(json.dumps([(result["check_name"], result["status"]) for result in results]))
"""
    environment = os.environ | {"SCIPY_ARRAY_API": "1"}
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=300, env=environment
    )
    results = json.loads(run.stdout)
    assert len(results) > 40
    assert {tuple(result) for result in results if result[1] != "passed"} == set()


def test_tags_follow_the_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    tags = get_tags(BayesianMixture())
    assert (tags.estimator_type, tags.input_tags.allow_nan, tags.input_tags.sparse) == (
        "density_estimator",
        False,
        False,
    )
    assert get_tags(BayesianMixture(missing="marginalize")).input_tags.allow_nan
    monkeypatch.setattr(sb.ZeroMeanGaussian, "_accepts_sparse", True)
    assert get_tags(BayesianMixture(likelihood=sb.ZeroMeanGaussian())).input_tags.sparse
    assert not get_tags(BayesianMixture(likelihood=sb.Gaussian())).input_tags.sparse
    for nonsense in [3, "word", np.ones(3), None]:
        tags = get_tags(BayesianMixture(likelihood=nonsense, missing=nonsense))
        assert not tags.input_tags.sparse
        assert not tags.input_tags.allow_nan


# Equality with `fit`


def test_parameters_are_those_of_fit(rows: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each reaches `stickbreak.fit` under its name, and none is missing there but those for programs."""
    seen: dict[str, Any] = {}

    def spy(model: sb.Mixture, data: object, algorithm: object, **options: Any) -> sb.Fit:
        seen.update(options, model=model, data=data, algorithm=algorithm)
        return original(model, data, algorithm, **options)

    original = fitting.run_fit
    monkeypatch.setattr(fitting, "run_fit", spy)
    likelihood, process = sb.ZeroMeanGaussian(dof=5.0), sb.DirichletProcess(2.0)
    algorithm = sb.Full(max_passes=0)
    start, weights = np.arange(300) % 3, np.full(300, 2.0)
    BayesianMixture(
        likelihood=likelihood,
        process=process,
        algorithm=algorithm,
        n_components=4,
        init=start,
        n_init=2,
        random_state=7,
        threads=1,
        missing="error",
        verbose=False,
    ).fit(rows, sample_weight=weights)
    assert seen.pop("model") == sb.Mixture(likelihood=likelihood, process=process)
    np.testing.assert_array_equal(seen.pop("data"), rows)
    assert seen.pop("algorithm") is algorithm
    assert seen.pop("init") is start
    assert seen.pop("sample_weight") is weights
    assert seen.pop("labels") is None
    assert seen == {"n_components": 4, "n_init": 2, "seed": 7, "threads": 1, "missing": "error", "progress": False}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n_components", "algorithm"), [(None, None), (3, sb.Memoized())])
def test_same_as_fit(rows: np.ndarray, dtype: type, n_components: int | None, algorithm: sb.Memoized | None) -> None:
    """Results equal those of `fit` bit for bit, with defaults too; a given number of components is kept."""
    data = rows.astype(dtype)
    model = sb.Mixture(likelihood=sb.Gaussian(), process=sb.DirichletProcess())
    expected = sb.fit(model, data, algorithm, n_components=n_components, seed=5, progress=False)
    found = quick(random_state=5, n_components=n_components).fit(data)
    assert same(found.fit_, expected, data)
    np.testing.assert_array_equal(found.predict(data), expected.predict(data))
    np.testing.assert_array_equal(found.predict_proba(data), expected.predict_proba(data))
    np.testing.assert_array_equal(found.transform(data), expected.predict_proba(data))
    np.testing.assert_array_equal(found.score_samples(data), expected.log_predictive(data))
    np.testing.assert_array_equal(found.fit_predict(data), expected.predict(data))
    np.testing.assert_array_equal(found.fit_transform(data), expected.predict_proba(data))


def test_number_of_components(rows: np.ndarray) -> None:
    """None finds it, a number is kept, and an algorithm with moves starts from it."""
    assert quick(n_components=None).fit(rows).n_components_ == 3
    patient = sb.Memoized(max_passes=2000)
    assert quick(n_components=7, algorithm=patient).fit(rows).n_components_ == 7
    moving = quick(n_components=7, algorithm=sb.Memoized(moves=(sb.Merge(), sb.Delete()))).fit(rows)
    assert moving.n_components_ < 7
    finite = quick(n_components=None, process=sb.FiniteDirichlet(5), algorithm=patient).fit(rows)
    assert finite.n_components_ == 5


def test_data_are_not_copied(rows: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Float rows of any order reach the core where they lie: data may be as large as memory, or a memory map."""
    given: list[Any] = []
    original = fitting.run_fit

    def spy(model: object, data: object, *rest: Any, **options: Any) -> object:
        given.append(data)
        return original(model, data, *rest, **options)

    monkeypatch.setattr(fitting, "run_fit", spy)
    np.save(tmp_path / "rows.npy", rows)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    for data in [rows, np.asfortranarray(rows), rows.astype(np.float32), rows[::2], mapped]:
        quick().fit(data)
        assert np.shares_memory(given[-1], data)
        assert given[-1].dtype == data.dtype


def test_attributes(rows: np.ndarray) -> None:
    mixture = quick(algorithm=PASSES, n_components=4)
    with pytest.warns(ConvergenceWarning, match="5 passes"):
        mixture.fit(rows)
    fit = mixture.fit_
    assert isinstance(fit, sb.Fit)
    assert mixture.n_features_in_ == 2
    assert mixture.n_components_ == fit.n_components == 4
    np.testing.assert_allclose(mixture.weights_ * fit.weights.sum(), fit.weights, rtol=1e-14)
    assert mixture.leftover_weight_ == fit.leftover_weight > 0.0
    np.testing.assert_array_equal(mixture.means_, fit.components["mean"])
    assert mixture.lower_bound_ == fit.elbo
    assert mixture.n_iter_ == 5
    assert mixture.converged_ is False
    assert quick().fit(rows).converged_ is True
    assert not any(np.size(value) >= len(rows) for name, value in vars(mixture).items() if name != "labels_")


@pytest.mark.parametrize("algorithm", [sb.Full(max_passes=2), sb.Stochastic(100, max_passes=1)])
@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"background": sb.Background()},
        {"process": sb.DirichletProcess(concentration=5.0, truncation="tail")},
        {"process": sb.PitmanYor(discount=0.5)},
        {"process": sb.FiniteDirichlet(3), "n_components": None},
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_weights_are_probabilities(rows: np.ndarray, parts: dict[str, Any], algorithm: Any) -> None:
    """Of components, so that NumPy takes them: what the process and the background keep is apart."""
    mixture = quick(algorithm=algorithm, **parts).fit(rows)
    fit = mixture.fit_
    assert mixture.weights_.sum() == pytest.approx(1.0, rel=1e-12)
    assert np.random.default_rng(0).choice(mixture.n_components_, p=mixture.weights_) in range(3)
    beyond = mixture.leftover_weight_ + fit.background_weight
    np.testing.assert_allclose(mixture.weights_ * (1.0 - beyond), fit.weights, rtol=1e-9)
    assert (mixture.leftover_weight_ == 0.0) == isinstance(mixture.process, sb.FiniteDirichlet)


def test_means_where_there_are_none(rows: np.ndarray) -> None:
    mixture = BayesianMixture(n_components=2, random_state=0).fit(rows)
    assert hasattr(mixture, "means_")
    mixture.set_params(likelihood=sb.ZeroMeanGaussian()).fit(rows)
    assert not hasattr(mixture, "means_")
    with pytest.raises(AttributeError, match="ZeroMeanGaussian"):
        _ = mixture.means_


@pytest.mark.parametrize(
    "name",
    "n_components_ weights_ leftover_weight_ means_ lower_bound_ n_iter_ converged_ predict transform score".split(),
)
def test_nothing_before_fit(rows: np.ndarray, name: str) -> None:
    with pytest.raises(NotFittedError):
        getattr(BayesianMixture(), name)(rows)
    with pytest.raises(NotFittedError):
        BayesianMixture().sample()
    with pytest.raises(NotFittedError):
        BayesianMixture().get_feature_names_out()


def test_score(rows: np.ndarray) -> None:
    mixture = quick().fit(rows)
    densities = mixture.score_samples(rows)
    weights = np.random.default_rng(0).uniform(0.0, 3.0, len(rows))
    assert mixture.score(rows) == pytest.approx(densities.mean(), rel=1e-12)
    assert mixture.score(rows, sample_weight=weights) == pytest.approx(
        np.average(densities, weights=weights), rel=1e-12
    )
    assert mixture.score(rows, None, np.ones(len(rows))) == pytest.approx(mixture.score(rows), rel=1e-12)
    for wrong in [np.ones(3), -np.ones(len(rows)), np.full(len(rows), np.nan), np.zeros(len(rows))]:
        with pytest.raises(sb.InvalidArgument) as caught:
            mixture.score(rows, sample_weight=wrong)
        assert caught.value.argument == "sample_weight"


def test_sample(rows: np.ndarray) -> None:
    mixture = quick().fit(rows)
    drawn, labels = mixture.sample(200)
    assert drawn.shape == (200, 2)
    np.testing.assert_array_equal(drawn, mixture.fit_.sample(200, seed=0))
    np.testing.assert_array_equal(labels, mixture.predict(drawn))
    assert mixture.sample()[0].shape == (1, 2)
    for wrong, error in [
        (0, sb.InvalidArgument),
        (-1, sb.InvalidArgument),
        (2.5, sb.InvalidType),
        ("3", sb.InvalidType),
    ]:
        with pytest.raises(error) as caught:
            mixture.sample(wrong)
        assert caught.value.argument == "n_samples"


def test_random_state(rows: np.ndarray) -> None:
    def found(random_state: object) -> float:
        mixture = BayesianMixture(n_components=9, algorithm=sb.Full(max_passes=0), random_state=random_state)
        return float(mixture.fit(rows).means_[0, 0])

    assert found(3) == found(np.int32(3)) == found(3)
    assert found(3) != found(4)
    assert found(np.random.RandomState(3)) == found(np.random.RandomState(3))
    state = np.random.RandomState(3)
    assert found(state) != found(state)  # it goes on
    np.random.seed(0)  # noqa: NPY002 - the generator that scikit-learn means by None
    first = found(None)
    assert found(None) != first
    np.random.seed(0)  # noqa: NPY002
    assert found(None) == first
    assert found(2**64 - 1) != found(0)
    for wrong in [-1, 2**64, True, 1.5, "seed", np.random.default_rng(0)]:
        with pytest.raises(ValueError if isinstance(wrong, str | float | np.random.Generator) else sb.StickbreakError):
            found(wrong)


def test_interrupted_fit_keeps_its_state(rows: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search over parameters must end at Ctrl-C, and what was reached must not be lost."""
    original = fitting.run_fit

    def interrupted(*arguments: Any, **options: Any) -> sb.Fit:
        found = original(*arguments, **options)
        return sb.Fit(found._state, stop_reason=sb.StopReason.INTERRUPTED)

    monkeypatch.setattr(fitting, "run_fit", interrupted)
    mixture = quick()
    with pytest.raises(KeyboardInterrupt):
        mixture.fit(rows)
    assert mixture.fit_.stop_reason is sb.StopReason.INTERRUPTED
    assert mixture.converged_ is False
    assert mixture.predict(rows).shape == (300,)


def test_warns_where_the_bound_still_rises(rows: np.ndarray) -> None:
    with pytest.warns(ConvergenceWarning, match="max_passes"):
        quick(algorithm=PASSES).fit(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quick().fit(rows)
        quick(algorithm=sb.Full(max_passes=0)).fit(rows)  # no passes were asked for


def test_progress(rows: np.ndarray, capsys: pytest.CaptureFixture[str]) -> None:
    quick(verbose=True).fit(rows)
    assert capsys.readouterr().err
    quick().fit(rows)
    assert not capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"likelihood": "gaussians"}, "likelihood"),
        ({"likelihood": sb.Gaussian}, "likelihood"),
        ({"process": 1.0}, "process"),
        ({"algorithm": "full"}, "algorithm"),
        ({"n_components": 0}, "n_components"),
        ({"n_components": 301}, "n_components"),
        ({"n_components": 2, "process": sb.FiniteDirichlet(3)}, "n_components"),
        ({"init": "k-means"}, "init"),
        ({"init": np.zeros(7, int)}, "init"),
        ({"n_init": 0}, "n_init"),
        ({"random_state": -1}, "random_state"),
        ({"threads": 0}, "threads"),
        ({"missing": "drop"}, "missing"),
        ({"missing": np.ones(2)}, "missing"),
        ({"verbose": 1}, "verbose"),
    ],
)
def test_bad_parameters(rows: np.ndarray, options: dict[str, Any], argument: str) -> None:
    """Bad parameters are stored unchanged, and refused by name on use."""
    mixture = BayesianMixture(**options)
    with pytest.raises((sb.InvalidArgument, sb.InvalidType)) as caught:
        mixture.fit(rows)
    assert caught.value.argument == argument
    assert not hasattr(mixture, "fit_")


@pytest.mark.parametrize(
    ("data", "error", "words"),
    [
        ([[1.0, np.nan], [1.0, 2.0]], ValueError, "NaN"),
        ([[1.0, np.inf], [1.0, 2.0]], sb.InvalidArgument, "inf in row"),
        ([[1.0, 2.0]], ValueError, "1 sample"),
        ([1.0, 2.0], ValueError, "2D array"),
        ([["a", "b"], ["c", "d"]], ValueError, "numeric|convert"),
        (sparse.csr_array(np.eye(3)), TypeError, "[Ss]parse"),
        (np.zeros((3, 0)), ValueError, "0 feature"),
        (None, ValueError, "2D array"),
    ],
)
def test_bad_data(rows: np.ndarray, data: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        quick(n_components=2).fit(data)
    with pytest.raises(ValueError, match="features"):
        quick().fit(rows).predict(rows[:, :1])


def test_rows_without_values_have_no_part_in_the_score(rows: np.ndarray) -> None:
    estimator = quick(likelihood=sb.DiagonalGaussian(), missing="marginalize").fit(rows)
    with pytest.warns(sb.EmptyRowsWarning, match="2 rows have no value at all and no part in the score"):
        found = estimator.score(np.concatenate([rows, np.full((2, rows.shape[1]), np.nan)]))
    assert found == pytest.approx(estimator.score(rows), rel=1e-12)


def test_missing_values_are_left_to_fit(rows: np.ndarray) -> None:
    """Missing values reach `fit` if allowed; a likelihood without support for them refuses them."""
    holes = rows.copy()
    holes[3, 1] = np.nan
    with pytest.raises(sb.StickbreakError, match="missing"):
        quick(likelihood=sb.ZeroMeanGaussian(), missing="marginalize").fit(holes)
    assert len(quick(missing="marginalize").fit(holes).predict(holes)) == len(holes)
    with pytest.raises(ValueError, match=r"inf in row 3, column 1$"):
        quick(missing="marginalize").fit(np.where(np.isnan(holes), np.inf, holes))


def test_sparse_rows_are_left_to_fit(rows: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> None:
    """A likelihood that accepts them gets them as CSR, never dense."""
    given: list[Any] = []

    def spy(model: object, data: object, *rest: object, **options: object) -> sb.Fit:
        given.append(data)
        raise sb.NotSupported("this is far enough")

    monkeypatch.setattr(sb.Gaussian, "_accepts_sparse", True)
    monkeypatch.setattr(fitting, "run_fit", spy)
    for form in [sparse.csr_array, sparse.csc_array, sparse.coo_matrix]:
        with pytest.raises(sb.NotSupported):
            quick(likelihood=sb.Gaussian()).fit(form(rows))
        assert sparse.issparse(given[-1])
        assert given[-1].format == "csr"
        np.testing.assert_array_equal(given[-1].toarray(), rows)


# With the rest of scikit-learn


def test_clones_and_copies(rows: np.ndarray) -> None:
    start = sb.fit(sb.Mixture(likelihood=sb.Gaussian()), rows, sb.Full(), n_components=3)
    mixture = quick(likelihood=sb.Gaussian(dof=5.0), process=sb.DirichletProcess(2.0), algorithm=sb.Full(), init=start)
    mixture.fit(rows)
    twin = clone(mixture)
    assert not hasattr(twin, "fit_")
    assert twin.likelihood == mixture.likelihood
    assert same(twin.fit(rows).fit_, mixture.fit_, rows)
    for copied in [pickle.loads(pickle.dumps(mixture)), copy.deepcopy(mixture)]:
        assert same(copied.fit_, mixture.fit_, rows)
        np.testing.assert_array_equal(copied.predict(rows), mixture.predict(rows))
    assert "likelihood=Gaussian(dof=5.0)" in repr(mixture)


def test_pipeline(rows: np.ndarray, labels: np.ndarray) -> None:
    found = make_pipeline(StandardScaler(), quick()).fit_predict(rows)
    assert len(set(zip(found.tolist(), labels.tolist(), strict=True))) == 3


def test_responsibilities_as_features(rows: np.ndarray, labels: np.ndarray) -> None:
    from sklearn.linear_model import LogisticRegression

    model = make_pipeline(quick(), LogisticRegression())
    assert cross_val_score(model, rows, labels, cv=3).min() > 0.99


def test_search_over_the_number_of_components(rows: np.ndarray) -> None:
    """The held-out density finds the three clusters, and the score of the search is the one of `score_samples`."""
    search = GridSearchCV(quick(threads=1, n_init=3), {"n_components": [1, 2, 3]}, cv=3).fit(rows)
    assert search.best_params_ == {"n_components": 3}
    assert search.score(rows) == pytest.approx(search.best_estimator_.score_samples(rows).mean(), rel=1e-12)


def test_search_over_specifications(rows: np.ndarray) -> None:
    grid = {"likelihood": [sb.Gaussian(), sb.ZeroMeanGaussian()], "process": [sb.FiniteDirichlet(3)]}
    search = GridSearchCV(quick(n_components=None, n_init=3), grid, cv=3).fit(rows)
    assert search.best_params_["likelihood"] == sb.Gaussian()


def test_metadata_routing(rows: np.ndarray) -> None:
    weights = np.random.default_rng(0).integers(1, 4, len(rows)).astype(float)
    scaled = StandardScaler().fit_transform(rows)
    expected = quick().fit(scaled, sample_weight=weights)
    with config_context(enable_metadata_routing=True):
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, quick().set_fit_request(sample_weight=True))
        pipeline.fit(rows, sample_weight=weights)
        assert same(pipeline[-1].fit_, expected.fit_, scaled)
        scaler.set_fit_request(sample_weight=True)
        without = make_pipeline(scaler, quick().set_fit_request(sample_weight=False)).fit(rows, sample_weight=weights)
        assert without[-1].fit_.counts.sum() == pytest.approx(len(rows))
        with pytest.raises(UnsetMetadataPassedError):
            make_pipeline(scaler, quick()).fit(rows, sample_weight=weights)
        asked = quick(threads=1).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        search = GridSearchCV(asked, {"n_components": [1, 3]}, cv=3).fit(rows, sample_weight=weights)
        assert search.best_estimator_.fit_.counts.sum() == pytest.approx(weights.sum())
        plain = GridSearchCV(asked.set_score_request(sample_weight=False), {"n_components": [1, 3]}, cv=3)
        plain.fit(rows, sample_weight=weights)
        assert (search.cv_results_["mean_test_score"] != plain.cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_tables(rows: np.ndarray, library: str) -> None:
    tables = pytest.importorskip(library)
    table = tables.DataFrame({"bill": rows[:, 0], "flipper": rows[:, 1]})
    expected = quick().fit(rows)
    mixture = quick().set_output(transform=library).fit(table)
    assert same(mixture.fit_, expected.fit_, rows)
    assert mixture.feature_names_in_.tolist() == ["bill", "flipper"]
    names = [f"bayesianmixture{k}" for k in range(3)]
    assert mixture.get_feature_names_out().tolist() == names
    found = mixture.transform(table)
    assert isinstance(found, tables.DataFrame)
    assert list(found.columns) == names
    np.testing.assert_array_equal(found.to_numpy(), expected.predict_proba(rows))
    np.testing.assert_array_equal(mixture.predict(table), expected.predict(rows))
    assert isinstance(mixture.predict_proba(table), np.ndarray)
    with pytest.raises(ValueError, match="feature names"):
        mixture.predict(table[["flipper", "bill"]])
    with pytest.warns(UserWarning, match="feature names"):
        mixture.predict(rows)


def test_integers_and_half_precision(rows: np.ndarray) -> None:
    """Integers and float16 become float64 without a warning, as everywhere in scikit-learn."""
    whole = rows.round()
    for given in [whole.astype(np.int32), whole.astype(np.float16), whole.tolist()]:
        assert same(quick().fit(given).fit_, quick().fit(whole).fit_, rows)


# Data that arrive in pieces


def test_partial_fit_begins_as_fit(rows: np.ndarray) -> None:
    weights = np.full(len(rows), 2.0)
    begun = quick().partial_fit(rows, sample_weight=weights)
    assert same(begun.fit_, quick().fit(rows, sample_weight=weights).fit_, rows)


def test_partial_fit_is_update(rows: np.ndarray) -> None:
    first, second = rows[:200], rows[200:]
    weights = np.linspace(1.0, 2.0, 100)
    begun = quick().fit(first)
    expected = begun.fit_.update(second, sample_weight=weights)
    before = begun.fit_
    found = begun.partial_fit(second, sample_weight=weights)
    assert found is begun
    assert same(found.fit_, expected, rows)
    assert not same(found.fit_, before, rows)
    assert found.fit_.counts.sum() == pytest.approx(200 + weights.sum(), rel=1e-12)
    with pytest.raises(ValueError, match="features"):
        found.partial_fit(rows[:, :1])
    assert same(found.fit(rows).fit_, quick().fit(rows).fit_, rows)  # which forgets the pieces


def test_pieces_find_the_clusters(labels: np.ndarray, rows: np.ndarray) -> None:
    mixture = quick()
    for piece in np.array_split(rows, 5):
        mixture.partial_fit(piece)
    assert mixture.fit_.counts.sum() == pytest.approx(len(rows), rel=1e-12)
    pairs = set(zip(mixture.predict(rows).tolist(), labels.tolist(), strict=True))
    assert len(pairs) == 3


# Without scikit-learn


def test_scikit_learn_is_named_where_it_is_missing() -> None:
    script = """
import sys
sys.modules["sklearn"] = None
import stickbreak
try:
    import stickbreak.sklearn
except ImportError as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    assert "pip install 'stickbreak[sklearn]'" in run.stdout


def test_covariances_and_precisions_are_those_of_scikit_learn(rows: np.ndarray) -> None:
    """Shapes as `covariance_type` full, diag and spherical; values by scikit-learn's own functions."""
    from sklearn.mixture._gaussian_mixture import _compute_precision_cholesky

    for word, kind, shape in [
        ("gaussian", "full", (2, 2, 2)),
        ("diagonal_gaussian", "diag", (2, 2)),
        ("spherical_gaussian", "spherical", (2,)),
    ]:
        mixture = quick(likelihood=word, n_components=2).fit(rows)
        assert mixture.covariances_.shape == mixture.precisions_.shape == mixture.precisions_cholesky_.shape == shape
        expected = _compute_precision_cholesky(np.array(mixture.covariances_), kind)
        np.testing.assert_allclose(mixture.precisions_cholesky_, expected, atol=1e-12)
        if kind == "full":
            np.testing.assert_allclose(mixture.precisions_ @ mixture.covariances_, [np.eye(2)] * 2, atol=1e-9)
        else:
            np.testing.assert_allclose(mixture.precisions_ * mixture.covariances_, 1.0)


def test_covariances_that_are_not_there(rows: np.ndarray) -> None:
    counts = quick(likelihood="poisson").fit(np.round(abs(rows)))
    with pytest.raises(AttributeError, match="Poisson have no covariances"):
        counts.covariances_  # noqa: B018
    with pytest.warns(sb.SupportWarning):
        flat = quick().fit(np.column_stack([rows, np.ones(len(rows))]))
    assert flat.covariances_.shape[1:] == (3, 3)
    with pytest.raises(AttributeError, match="singular"):
        flat.precisions_  # noqa: B018


def test_labels_and_bounds_of_the_passes(rows: np.ndarray) -> None:
    mixture = quick().fit(rows)
    assert (mixture.labels_ == mixture.predict(rows)).all()
    assert mixture.lower_bounds_.tolist() == [record.elbo for record in mixture.fit_.history]
    assert mixture.lower_bounds_.shape == (mixture.n_iter_,)
    mixture.partial_fit(rows[:50])
    assert mixture.labels_.shape == (50,)


def test_nested_parameters() -> None:
    mixture = BayesianMixture(process=sb.DirichletProcess(2.0), algorithm=sb.Full(max_passes=7))
    assert mixture.get_params()["process__concentration"] == 2.0
    assert mixture.get_params()["algorithm__max_passes"] == 7
    assert "process__concentration" not in mixture.get_params(deep=False)
    before = mixture.process
    mixture.set_params(process__concentration=5.0, likelihood__dof=9.0, algorithm__tol=0.0, n_components=3)
    assert before == sb.DirichletProcess(2.0)
    assert mixture.process == sb.DirichletProcess(5.0)
    assert mixture.likelihood == sb.Gaussian(dof=9.0)
    assert (mixture.algorithm, mixture.n_components) == (sb.Full(max_passes=7, tol=0.0), 3)
    # A new part and its parameters, in one call.
    mixture.set_params(process=sb.PitmanYor(0.1), process__discount=0.4)
    assert mixture.process == sb.PitmanYor(0.4)
    mixture.set_params(likelihood="poisson", likelihood__shape=3.0)
    assert mixture.likelihood == sb.Poisson(shape=3.0)
    assert clone(mixture).get_params() == mixture.get_params()


def test_a_search_over_a_nested_parameter(rows: np.ndarray) -> None:
    grid = {"process__concentration": [0.1, 10.0], "likelihood": ["gaussian", "diagonal_gaussian"]}
    search = GridSearchCV(quick(n_components=3), grid, cv=2).fit(rows)
    assert set(search.best_params_) == set(grid)
    assert search.best_estimator_.process.concentration == search.best_params_["process__concentration"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("process__concentratoin", "did you mean 'concentration'"),
        ("algorithm__tol", "invalid parameter 'tol'"),
        ("nothing__tol", "invalid parameter 'tol'"),
    ],
)
def test_refused_nested_parameters(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        BayesianMixture().set_params(**{name: 1.0})


@pytest.mark.parametrize("value", ["gausian", "known_covariance_gaussian", 3, sb.Gaussian])
def test_refused_likelihoods(rows: np.ndarray, value: Any) -> None:
    with pytest.raises((sb.InvalidArgument, sb.InvalidType)) as caught:
        BayesianMixture(likelihood=value).fit(rows)
    assert caught.value.argument == "likelihood"
