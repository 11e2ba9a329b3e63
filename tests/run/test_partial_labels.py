"""Partial labels (mathematics 3.2): passes and the evidence against the oracle, laws, and starts."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kinds
import stickbreak as sb
from cases import LIKELIHOODS, PROCESSES, Case, cases, clustered_rows, fit_from, make_case, separated_mixture
from growing import bits, every_set
from oracles import partial
from oracles.partial import Classes
from stickbreak.io import files
from stickbreak.sklearn import BayesianMixture

MODEL = sb.Mixture(likelihood=sb.Gaussian())


def partly_labelled(case: Case, classes: list[int], known: float, seed: int = 0) -> tuple[Classes, Classes]:
    """Components of rows, and the labels of those rows of a component with a class that are known."""
    components = case.responsibilities.argmax(1)
    is_known = np.random.default_rng(seed).random(len(components)) < known
    return components, np.where(is_known, np.array(classes)[components], -1)


def counts_of_classes(fit: sb.Fit) -> dict[int, float]:
    return {int(value): float(fit.counts[fit.classes == value].sum()) for value in np.unique(fit.classes)}


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("process", [*PROCESSES, "tail"])
@pytest.mark.parametrize("sparsity", [None, 2])
@pytest.mark.parametrize("n_batches", [1, 3])
def test_pass_by_pass(likelihood: str, process: str, sparsity: int | None, n_batches: int) -> None:
    """Every pass has the bound, the counts and the classes of the oracle."""
    case = make_case(8, n=120, n_components=5, likelihood=likelihood, process=process, weighted=True)
    components, labels = partly_labelled(case, [7, 3, -1, 7, -1], 0.5)
    assert set(labels) == {-1, 3, 7}
    algorithm = sb.Memoized(batches=n_batches, shuffle=False, sparsity=sparsity, margin=None, max_passes=8, tol=0.0)
    fit = fit_from(case, algorithm, init=components, labels=labels)
    batches = np.split(np.arange(120), n_batches)
    of_components = partial.classes_of_components(labels, components, 5)
    memo = partial.LabelledMemo(
        case.rows, np.eye(5)[components], case.mixture, batches, sparsity, case.weights,
        of_rows=labels, of_components=of_components,
    )  # fmt: skip
    memo.order()
    for record in fit.history:
        memo.run(range(n_batches))
        assert record.elbo == pytest.approx(memo.elbo(), rel=1e-9)
    np.testing.assert_allclose(fit.counts, memo.counts[:5], rtol=1e-7, atol=1e-7)
    np.testing.assert_array_equal(fit.classes, memo.of_components[:5])
    assert not np.isclose(fit.elbo, fit_from(case, algorithm, init=components).elbo, rtol=1e-6), "labels do nothing"


@given(cases(min_rows=3), st.data())
def test_laws(case: Case, data: st.DataObject) -> None:
    """The bound never falls, L = K is dense, one batch is `Full`, and threads change no bit."""
    k = case.n_components
    components = np.array(data.draw(st.lists(st.integers(0, k - 1), min_size=len(case.rows), max_size=len(case.rows))))
    classes = data.draw(st.lists(st.integers(-1, 2), min_size=k, max_size=k))
    is_known = data.draw(st.lists(st.booleans(), min_size=len(case.rows), max_size=len(case.rows)))
    labels = np.where(is_known, np.array(classes)[components], -1)
    options = {"init": components, "labels": labels, "n_components": k}
    full = fit_from(case, sb.Full(sparsity=None, margin=None, max_passes=6, tol=0.0), **options)
    bounds = np.array([record.elbo for record in full.history])
    assert (np.diff(bounds) >= -1e-9 * case.scale).all()
    for algorithm, threads in (
        (sb.Full(sparsity=k, margin=None, max_passes=6, tol=0.0), 1),
        (sb.Memoized(batches=1, sparsity=None, margin=None, max_passes=6, tol=0.0), 3),
    ):
        other = fit_from(case, algorithm, threads=threads, **options)
        assert bits(other, case.rows) == bits(full, case.rows)
        np.testing.assert_array_equal(other.classes, full.classes)
    # A class without rows is as absent, and each other one has a component.
    assert set(full.classes) - {-1} == set(labels) - {-1}
    for value, count in counts_of_classes(full).items():
        assert value == -1 or count >= case.weights[labels == value].sum() - 1e-9 * case.scale


@pytest.mark.parametrize("seed", range(4))
def test_the_bound_is_below_the_evidence_of_the_labels(seed: int) -> None:
    """L <= log p(X, labels) <= log p(X), both by enumeration."""
    case = make_case(seed, n=6, dimension=1, n_components=2, process="finite_dirichlet")
    components, labels = np.arange(6) % 2, np.array([0, 1, -1, -1, -1, 1])
    fit = fit_from(case, sb.Full(sparsity=None, max_passes=200), init=components, labels=labels, sample_weight=None)
    concentration = case.model.process.concentration * 2
    is_allowed = partial.allowed(labels, np.array([0, 1]))
    of_labels = partial.log_evidence(case.rows, case.mixture.likelihood, concentration, is_allowed)
    of_rows = partial.log_evidence(case.rows, case.mixture.likelihood, concentration, np.ones((6, 2), dtype=bool))
    assert fit.elbo < of_labels < of_rows


@pytest.mark.parametrize("likelihood", kinds.LIKELIHOODS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("sparsity", [None, 2])
@pytest.mark.one_in(3)
def test_rows_of_every_likelihood_stay_in_their_class(likelihood: str, dtype: type, sparsity: int | None) -> None:
    """With all labels known, the counts of the components of a class add up to its rows, in every kernel."""
    case = make_case(5, n=90, n_components=6, likelihood=likelihood, weighted=True)
    labels = np.arange(90) % 3
    # The classes cut across the clusters, so that without labels rows would move.
    components = 2 * labels + (np.arange(90) // 3) % 2
    fit = sb.fit(
        case.model, case.rows.astype(dtype), sb.Memoized(batches=2, sparsity=sparsity, max_passes=4, tol=0.0),
        init=components, labels=labels, sample_weight=case.weights, progress=False,
    )  # fmt: skip
    for value, count in counts_of_classes(fit).items():
        assert count == pytest.approx(case.weights[labels == value].sum(), rel=1e-9)


def test_known_classes_and_a_new_one_are_found() -> None:
    """A tenth of the labels of two of four clusters: the other two become free components."""
    rows, clusters = separated_mixture(1, n=600, dimension=2, n_clusters=4)
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(600) < 0.1, np.array([10, 20, -1, -1])[clusters], -1)
    fit = sb.fit(MODEL, rows, labels=labels, progress=False)
    assert sorted(fit.classes) == [-1, -1, 10, 20]
    found = fit.classes[fit.predict(rows)]
    np.testing.assert_array_equal(found, np.array([10, 20, -1, -1])[clusters])


@pytest.mark.parametrize("algorithm", [sb.Full(), sb.Memoized(batches=4), sb.Stochastic(batch_size=50)])
@pytest.mark.parametrize("n_components", [3, 9])
def test_a_fixed_number_of_components(algorithm: Any, n_components: int) -> None:
    """Every class has a component, and one is free if there are more than classes."""
    rows = clustered_rows(np.random.default_rng(2), 300, 2, 5)
    labels = np.where(np.arange(300) < 60, np.arange(300) % 3, -1)
    with warnings.catch_warnings(action="ignore"):
        fit = sb.fit(MODEL, rows, algorithm, n_components=n_components, labels=labels, progress=False)
    assert fit.n_components == n_components
    assert set(fit.classes) == ({0, 1, 2} if n_components == 3 else {-1, 0, 1, 2})


def test_several_starts() -> None:
    """Wide starts have components for all classes, also where the first start uses fewer."""
    rows = clustered_rows(np.random.default_rng(2), 60, 2, 4)
    labels, weights = np.arange(60) % 15, np.full(60, 1e-3)
    fit = sb.fit(MODEL, rows, labels=labels, sample_weight=weights, n_init=3, progress=False)
    assert set(fit.classes) == set(range(15))


def test_labels_without_a_class_change_nothing() -> None:
    rows = clustered_rows(np.random.default_rng(2), 200, 2, 4)
    weights = np.where(np.arange(200) < 5, 0.0, 1.0)
    labels = np.where(np.arange(200) < 5, 3, -1)
    plain = sb.fit(MODEL, rows, sample_weight=weights, progress=False)
    fit = sb.fit(MODEL, rows, sample_weight=weights, labels=labels, progress=False)
    assert bits(fit, rows) == bits(plain, rows)
    assert set(fit.classes) == set(plain.classes) == {-1}


def test_only_the_order_of_classes_matters() -> None:
    rows, clusters = separated_mixture(5, n=300, dimension=2, n_clusters=3)
    labels = np.where(np.arange(300) < 100, clusters, -1)
    small = sb.fit(MODEL, rows, labels=labels, progress=False)
    values = np.array([5, 700, 2**62, -1])
    large = sb.fit(MODEL, rows, labels=values[labels], progress=False)
    assert bits(large, rows) == bits(small, rows)
    np.testing.assert_array_equal(large.classes, values[small.classes])


def test_a_row_of_weight_two_is_two_rows_of_its_class() -> None:
    case = make_case(3, n=40, n_components=3)
    components, labels = partly_labelled(case, [0, 1, -1], 0.6)
    algorithm = sb.Full(sparsity=None, max_passes=5, tol=0.0)
    whole = sb.fit(case.model, case.rows, algorithm, init=components, labels=labels, sample_weight=np.full(40, 2.0))
    twice = sb.fit(
        case.model, np.repeat(case.rows, 2, 0), algorithm, init=np.repeat(components, 2), labels=np.repeat(labels, 2)
    )
    assert twice.elbo == pytest.approx(whole.elbo, rel=1e-10)
    np.testing.assert_allclose(twice.counts, whole.counts, rtol=1e-8)
    np.testing.assert_array_equal(twice.classes, whole.classes)


ROWS, CLUSTERS = separated_mixture(7, n=240, dimension=2, n_clusters=4)
LABELS = np.where(np.arange(240) % 3 == 0, np.array([2, 2, 5, -1])[CLUSTERS], -1)


class Crash(BaseException):
    """Ends a fit from a callback, so that only its checkpoint remains."""


@every_set
@pytest.mark.parametrize("n_passes", [1, 4])
def test_a_crashed_fit_goes_on(moves: Any, n_passes: int, tmp_path: Path) -> None:
    """A checkpoint keeps the classes: the resumed fit has the bits of one that was never stopped."""

    def crash(record: sb.Record) -> None:
        if record.index + 1 == n_passes:
            raise Crash

    algorithm = sb.Memoized(batches=3, moves=moves, max_passes=12)
    options: dict[str, Any] = {"labels": LABELS, "progress": False}
    with warnings.catch_warnings(action="ignore"):
        whole = sb.fit(MODEL, ROWS, algorithm, **options)
        options["checkpoint"] = sb.Checkpoint(tmp_path / "fit.checkpoint", every_seconds=0)
        with pytest.raises(Crash):
            sb.fit(MODEL, ROWS, algorithm, callbacks=[crash], **options)
        resumed = sb.fit(MODEL, ROWS, algorithm, **options)
    assert bits(resumed, ROWS) == bits(whole, ROWS)
    np.testing.assert_array_equal(resumed.classes, whole.classes)


@pytest.mark.parametrize("others", [None, np.where(np.arange(240) == 3, -1, LABELS)])
def test_a_checkpoint_belongs_to_its_labels(others: Any, tmp_path: Path) -> None:
    checkpoint = sb.Checkpoint(tmp_path / "fit.checkpoint")
    sb.fit(MODEL, ROWS, labels=LABELS, checkpoint=checkpoint, progress=False)
    with pytest.raises(sb.CheckpointError, match="it was written for labels = "):
        sb.fit(MODEL, ROWS, labels=others, checkpoint=checkpoint, progress=False)


def test_files_keep_the_classes(tmp_path: Path) -> None:
    fit = sb.fit(MODEL, ROWS, labels=LABELS, progress=False)
    assert set(fit.classes) == {-1, 2, 5}
    fit.save(tmp_path / "fit.safetensors")
    np.testing.assert_array_equal(sb.load(tmp_path / "fit.safetensors").classes, fit.classes)
    header, arrays = files.read(tmp_path / "fit.safetensors")
    for classes in (np.array([2]), np.full(fit.n_components, -2), fit.classes.astype(float), fit.classes[None]):
        files.write(tmp_path / "bad.safetensors", header, arrays | {"classes": classes})
        with pytest.raises(sb.ModelFileError, match="classes"):
            sb.load(tmp_path / "bad.safetensors")
    # A file from before there were labels.
    del arrays["classes"]
    files.write(tmp_path / "old.safetensors", header, arrays)
    assert set(sb.load(tmp_path / "old.safetensors").classes) == {-1}


def test_an_update_keeps_the_classes() -> None:
    """New rows change the order of components, and the classes move with them."""
    fit = sb.fit(MODEL, ROWS, labels=LABELS, progress=False)
    smallest = int(fit.counts.argmin())
    more = np.repeat(ROWS[fit.predict(ROWS) == smallest], 5, axis=0)
    updated = fit.update(more)
    assert updated.counts.argmax() == 0
    assert fit.classes.tolist() != updated.classes.tolist()
    np.testing.assert_array_equal(updated.classes[updated.predict(ROWS)], fit.classes[fit.predict(ROWS)])


def test_predictions_ignore_labels() -> None:
    """Responsibilities of the rows of the fit are those of unlabelled rows."""
    components = CLUSTERS % 2
    fit = sb.fit(MODEL, ROWS, sb.Full(max_passes=0), init=components, labels=components, progress=False)
    plain = sb.fit(MODEL, ROWS, sb.Full(max_passes=0), init=components, progress=False)
    np.testing.assert_array_equal(fit.predict_proba(ROWS), plain.predict_proba(ROWS))
    assert fit.evaluate(ROWS) == plain.evaluate(ROWS)


@pytest.mark.parametrize(
    ("labels", "found"),
    [
        (LABELS[:-1], r"of shape \(239,\)"),
        (LABELS[:, None], r"of shape \(240, 1\)"),
        (np.where(LABELS < 0, -2, LABELS), "-2 at row 1"),
        (LABELS.astype(np.uint64), "18446744073709551615 at row 1"),
        (3, r"of shape \(\)"),
    ],
)
def test_labels_that_are_not_allowed(labels: Any, found: str) -> None:
    with pytest.raises(sb.InvalidArgument, match=rf"labels must be integers from -1, .*240.* it is {found}") as caught:
        sb.fit(MODEL, ROWS, labels=labels, progress=False)
    assert caught.value.argument == "labels"


@pytest.mark.parametrize(
    "labels", [LABELS.astype(float), np.where(LABELS < 0, np.nan, LABELS), LABELS < 0, ["a"] * 240, "ab", object()]
)
def test_labels_of_another_type(labels: Any) -> None:
    with pytest.raises(sb.InvalidType, match=r"labels must be integers from -1, ") as caught:
        sb.fit(MODEL, ROWS, labels=labels, progress=False)
    assert caught.value.argument == "labels"


@pytest.mark.parametrize(
    ("options", "argument", "allowed"),
    [
        ({"algorithm": sb.Full(units=sb.KdTree())}, "labels", "units=None"),
        ({"init": "random"}, "init", "kmeans"),
        ({"init": "sequential"}, "init", "kmeans"),
        ({"init": np.full((240, 2), 0.5)}, "init", "kmeans"),
        ({"data": lambda: iter([ROWS])}, "labels", "an array"),
        ({"model": sb.TopicModel(sb.LatentDirichlet(2)), "data": np.ones((240, 3), dtype=int)}, "labels", "a Mixture"),
    ],
)
def test_what_labels_cannot_be_combined_with(options: dict[str, Any], argument: str, allowed: str) -> None:
    arguments: dict[str, Any] = {"model": MODEL, "data": ROWS, "labels": LABELS, "progress": False} | options
    with pytest.raises(sb.NotSupported, match=f"use .*{allowed}") as caught:
        sb.fit(**arguments)
    assert caught.value.argument == argument


def test_a_fit_with_labels_goes_on() -> None:
    """An earlier fit brings the classes of its components; without passes it is the same fit."""
    with warnings.catch_warnings(action="ignore"):
        short = sb.fit(MODEL, ROWS, sb.Full(max_passes=3, tol=0.0), n_components=8, labels=LABELS, progress=False)
    same = sb.fit(MODEL, ROWS, sb.Full(max_passes=0), init=short, labels=LABELS, progress=False)
    np.testing.assert_array_equal(same.classes, short.classes)
    np.testing.assert_allclose(same.counts, short.counts)
    options: dict[str, Any] = {"labels": LABELS, "progress": False}
    longer = sb.fit(MODEL, ROWS, sb.Full(), init=short, **options)
    assert longer.elbo > short.elbo
    assert set(longer.classes) == {-1, 2, 5}
    # A class that has no row any more becomes free.
    fewer = sb.fit(MODEL, ROWS, sb.Full(max_passes=0), init=short, labels=np.where(LABELS == 2, -1, LABELS))
    np.testing.assert_array_equal(fewer.classes, np.where(short.classes == 2, -1, short.classes))


@pytest.mark.parametrize("others", [None, np.where(LABELS == 5, -1, LABELS)])
def test_a_fit_without_a_class_is_no_start(others: Any) -> None:
    fit = sb.fit(MODEL, ROWS, labels=others, progress=False)
    with pytest.raises(sb.InvalidArgument, match="init must be a fit that has a component of every class in `labels`"):
        sb.fit(MODEL, ROWS, init=fit, labels=LABELS, progress=False)


@pytest.mark.parametrize("process", [sb.DirichletProcess(), sb.FiniteDirichlet(1)])
def test_every_class_needs_a_component(process: Any) -> None:
    model = sb.Mixture(likelihood=sb.Gaussian(), process=process)
    n_components = 1 if isinstance(process, sb.DirichletProcess) else None
    with pytest.raises(sb.InvalidArgument, match="n_components must be at least 2, the number of classes in labels"):
        sb.fit(model, ROWS, labels=LABELS, n_components=n_components, progress=False)
    with pytest.raises(sb.InvalidArgument, match="init must be components whose rows have one class"):
        sb.fit(MODEL, ROWS, labels=LABELS, init=np.zeros(240, dtype=int), progress=False)


def test_a_tree_on_trial_is_left_out() -> None:
    fit = sb.fit(MODEL, ROWS, sb.Memoized(units="auto"), n_components=3, labels=LABELS, progress=False)
    plain = sb.fit(MODEL, ROWS, sb.Memoized(), n_components=3, labels=LABELS, progress=False)
    assert bits(fit, ROWS) == bits(plain, ROWS)


def test_the_estimator_ignores_y_and_takes_partial_labels() -> None:
    plain = BayesianMixture(random_state=0).fit(ROWS, LABELS)
    assert set(plain.fit_.classes) == {-1}
    found = BayesianMixture(random_state=0).fit(ROWS, partial_labels=LABELS)
    expected = sb.fit(MODEL, ROWS, labels=LABELS, progress=False)
    assert bits(found.fit_, ROWS) == bits(expected, ROWS)
    np.testing.assert_array_equal(found.fit_.classes, expected.classes)
    with pytest.raises(sb.InvalidArgument, match="partial_labels must be integers from -1"):
        found.fit(ROWS, partial_labels=LABELS[:3])


def test_stability_and_tables_of_labels() -> None:
    """Other forms of labels, and functions that pass them on."""
    pandas = pytest.importorskip("pandas")
    fit = sb.fit(MODEL, ROWS, labels=pandas.Series(LABELS), progress=False)
    assert bits(fit, ROWS) == bits(sb.fit(MODEL, ROWS, labels=LABELS.tolist(), progress=False), ROWS)
    found = sb.stability(MODEL, ROWS, n_seeds=2, labels=LABELS, progress=False)
    assert set(found.best.classes) == {-1, 2, 5}


def test_fits_of_different_classes_do_not_compare() -> None:
    rows = np.random.default_rng(0).normal(size=(60, 2))
    labels = np.where(np.arange(60) < 10, np.arange(60) % 2, -1)
    plain, some, others = (
        sb.fit(MODEL, rows, labels=each) for each in (None, labels, np.where(labels == 1, 5, labels))
    )
    for one, other in ((plain, some), (some, plain), (some, others)):
        with pytest.raises(sb.InvalidArgument, match="the classes of labels"):
            one.compare(other)
    again = sb.fit(MODEL, rows, sb.Full(), labels=labels)
    assert again.compare(some) == again.elbo - some.elbo


def test_an_estimator_fits_and_predicts_with_partial_labels() -> None:
    rows = np.random.default_rng(0).normal(size=(60, 2))
    labels = np.where(np.arange(60) < 10, np.arange(60) % 2, -1)
    found = BayesianMixture(random_state=0)
    np.testing.assert_array_equal(found.fit_predict(rows, partial_labels=labels), found.labels_)
    assert set(found.fit_.classes.tolist()) >= {0, 1}
