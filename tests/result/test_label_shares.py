"""`label_shares` against sums by hand, on every form of responsibilities and of labels."""

import datetime
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import stickbreak as sb
from cases import clustered_rows, random_responsibilities

LABELS = ["dog", "cat", "cow", "cat", "dog", "dog"]
SHARES = [[1.0, 0.0], [0.5, 0.5], [0.25, 0.75], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]


def by_hand(responsibilities: Any, labels: Any, weights: Any = None) -> list[dict[Any, float]]:
    """Sums of weighted responsibilities, one cluster and one row at a time."""
    weights = np.ones(len(labels)) if weights is None else weights
    sums: list[dict[Any, float]] = [defaultdict(float) for _ in range(np.shape(responsibilities)[1])]
    for row, label, weight in zip(responsibilities, labels, weights, strict=True):
        for cluster, share in zip(sums, row, strict=True):
            if share * weight > 0:
                cluster[label] += share * weight
    return sums


def check(found: list[list[sb.LabelShare]], expected: list[dict[Any, float]]) -> None:
    assert len(found) == len(expected)
    for cluster, sums in zip(found, expected, strict=True):
        assert {each.label: each.rows for each in cluster} == pytest.approx(sums, rel=1e-12)
        total = sum(sums.values())
        assert {each.label: each.share for each in cluster} == pytest.approx(
            {label: rows / total for label, rows in sums.items()}, rel=1e-12
        )
        shares = [each.share for each in cluster]
        assert shares == sorted(shares, reverse=True)


@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.integers(1, 5), st.integers(1, 6), st.booleans())
def test_against_sums_by_hand(seed: int, n: int, n_components: int, n_labels: int, weighted: bool) -> None:
    rng = np.random.default_rng(seed)
    responsibilities = random_responsibilities(rng, n, n_components, int(rng.integers(1, n_components + 1)))
    labels = rng.integers(n_labels, size=n)
    weights = rng.choice([0.5, 1.0, 3.0], size=n) if weighted else None
    expected = by_hand(responsibilities, labels.tolist(), weights)
    for given_as in [np.asarray, np.asfortranarray, np.ndarray.tolist, sparse.csr_array, sparse.coo_array]:
        check(sb.label_shares(given_as(responsibilities), labels, sample_weight=weights), expected)
    clusters = rng.integers(n_components, size=n)
    hard = by_hand(np.eye(n_components)[clusters], labels.tolist(), weights)[: clusters.max() + 1]
    check(sb.label_shares(clusters, labels, sample_weight=weights), hard)


def test_of_a_fit() -> None:
    rng = np.random.default_rng(0)
    rows = clustered_rows(rng, 300, 2, 4)
    labels = rng.choice(["a", "b", "c"], size=300)
    fit = sb.fit(
        sb.Mixture(likelihood=sb.Gaussian()), rows, sb.Full(sparsity=2, max_passes=5), n_components=4, progress=False
    )
    dense, kept = fit.predict_proba(rows), fit.predict_proba(rows, sparse=True)
    check(sb.label_shares(dense, labels), by_hand(dense, labels))
    check(sb.label_shares(kept, labels), by_hand(kept.toarray(), labels))
    assert sum(each.rows for cluster in sb.label_shares(fit.predict(rows), labels) for each in cluster) == 300


def test_order_and_ties() -> None:
    """Equal shares keep the order in which the labels come."""
    first, second = sb.label_shares(SHARES, LABELS)
    assert first == [("cat", 1.5 / 2.75, 1.5), ("dog", 1.0 / 2.75, 1.0), ("cow", 0.25 / 2.75, 0.25)]
    assert [each.label for each in second] == ["dog", "cow", "cat"]
    assert [each.label for each in sb.label_shares([0, 0, 0, 0], ["z", "a", "z", "a"])[0]] == ["z", "a"]
    often, seldom = list(range(0, 100, 2)), list(range(1, 100, 2))
    labels = [*range(100), *often]
    assert [each.label for each in sb.label_shares([0] * 150, labels)[0]] == often + seldom


def test_only_the_first_few() -> None:
    everything = sb.label_shares(SHARES, LABELS)
    for n in [1, 2, 3, 9]:
        assert sb.label_shares(SHARES, LABELS, n=n) == [cluster[:n] for cluster in everything]


def test_empty_clusters_have_no_labels() -> None:
    assert [len(cluster) for cluster in sb.label_shares([3, 1, 3], ["a", "b", "b"])] == [0, 1, 0, 2]
    assert sb.label_shares([[1.0, 0.0]], ["a"])[1] == []
    assert sb.label_shares(np.zeros(0, int), []) == []
    assert sb.label_shares(np.zeros((0, 2)), []) == [[], []]
    weightless = sb.label_shares([0, 0, 1], ["a", "b", "b"], sample_weight=[1.0, 0.0, 0.0])
    assert weightless == [[("a", 1.0, 1.0)], []]


DAYS = np.array(["2024-05-01", "2024-05-02"], dtype="datetime64[ns]")
FIRST, SECOND = datetime.date(2024, 5, 1), datetime.date(2024, 5, 2)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (np.array([7, 3, 7], np.uint8), [7, 3]),
        (np.array(["b", "a", "b"]), ["b", "a"]),
        (np.array([True, False, True]), [True, False]),
        (["b", "a", "b"], ["b", "a"]),
        ([1, "1", 1], [1, "1"]),  # NumPy alone would make one label of them
        ((("a", 1), ("a", 2), ("a", 1)), [("a", 1), ("a", 2)]),
        (DAYS[[1, 0, 1]], [DAYS[1], DAYS[0]]),
        ([FIRST, SECOND, FIRST], [FIRST, SECOND]),
    ],
)
def test_kinds_of_labels(labels: Any, expected: list[Any]) -> None:
    (cluster,) = sb.label_shares([0, 0, 0], labels)
    assert [each.label for each in cluster] == expected
    assert [each.rows for each in cluster] == [2.0, 1.0]


def test_labels_of_numpy_become_those_of_python() -> None:
    """So that they print as what they are."""
    ((share, *_),) = sb.label_shares([0, 0], np.array([4, 4]))
    assert repr(share) == "LabelShare(label=4, share=1.0, rows=2.0)"


@pytest.mark.parametrize("labels", [["a", None, None], ["a", np.nan, None], [1.0, float("nan"), np.float64("nan")]])
def test_missing_labels_are_one(labels: list[Any]) -> None:
    for form in [labels, np.array(labels, dtype=object)]:
        assert sb.label_shares([0, 0, 0], form) == [[(None, 2 / 3, 2.0), (labels[0], 1 / 3, 1.0)]]


def test_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    names = ["b", None, "b"]
    days = pandas.Series([pandas.NaT, pandas.Timestamp(2024, 5, 1), pandas.NaT])
    for column, expected in [
        (pandas.Series(names), ["b", None]),
        (pandas.Series(names, dtype="string"), ["b", None]),
        (pandas.Series(names, dtype="category"), ["b", None]),
        (pandas.Series([5, None, 5], dtype="Int64"), [5, None]),
        (pandas.Series([5, 4, 5], index=[9, 8, 7]), [5, 4]),
    ]:
        found = sb.label_shares(pandas.Series([0, 0, 0]), column)
        assert [each.label for each in found[0]] == expected
    assert [each.rows for each in sb.label_shares([0, 0, 0], days)[0]] == [2.0, 1.0]
    assert sb.label_shares([0, 0, 0], days)[0][0].label is None
    frame = pandas.DataFrame(SHARES)
    assert sb.label_shares(frame, pandas.Series(LABELS)) == sb.label_shares(SHARES, LABELS)


def test_polars() -> None:
    polars = pytest.importorskip("polars")
    for column, expected in [
        (polars.Series(["b", None, "b"]), ["b", None]),
        (polars.Series(["b", "a", "b"], dtype=polars.Categorical), ["b", "a"]),
        (polars.Series([5, 4, 5]), [5, 4]),
    ]:
        found = sb.label_shares(polars.Series([0, 0, 0]), column)
        assert [each.label for each in found[0]] == expected


class Unreadable:
    """Raises where NumPy asks for its values."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("not here")


class Incomparable:
    """Raises where it is compared."""

    __hash__ = None

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("not comparable")


@pytest.mark.parametrize(
    ("part", "place", "value"),
    [("indptr", 3, 10**6), ("indptr", 3, -7), ("indptr", -1, 10**7), ("indices", 2, 10**6), ("indices", 2, -1)],
)
@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_array, sparse.csr_matrix])
def test_sparse_arrays_whose_parts_do_not_fit(part: str, place: int, value: int, form: Any) -> None:
    damaged = form(np.eye(6))
    getattr(damaged, part)[place] = value
    with pytest.raises(sb.InvalidArgument, match="whose parts do not fit together") as caught:
        sb.label_shares(damaged, LABELS)
    assert caught.value.argument == "responsibilities"


@pytest.mark.parametrize(
    ("responsibilities", "labels", "options", "error", "argument"),
    [
        ([0, 1], ["a"], {}, sb.InvalidArgument, "labels"),
        ([[1.0]], ["a", "b"], {}, sb.InvalidArgument, "labels"),
        (np.zeros((2, 1, 1)), ["a", "b"], {}, sb.InvalidArgument, "responsibilities"),
        (3, ["a", "b"], {}, sb.InvalidArgument, "responsibilities"),
        ([0, -1], ["a", "b"], {}, sb.InvalidArgument, "responsibilities"),
        ([0, 2**40], ["a", "b"], {}, sb.InvalidArgument, "responsibilities"),
        (np.array([0, 2**64 - 1], np.uint64), ["a", "b"], {}, sb.InvalidArgument, "responsibilities"),
        ([0.0, 1.0], ["a", "b"], {}, sb.InvalidType, "responsibilities"),
        ([True, False], ["a", "b"], {}, sb.InvalidType, "responsibilities"),
        (["x", "y"], ["a", "b"], {}, sb.InvalidType, "responsibilities"),
        ([[0.5, 0.4], [1.0, 0.0]], ["a", "b"], {}, sb.InvalidArgument, "responsibilities"),
        ([[1.5, -0.5], [1.0, 0.0]], ["a", "b"], {}, sb.InvalidArgument, "responsibilities"),
        ([[np.nan, 1.0], [1.0, 0.0]], ["a", "b"], {}, sb.InvalidArgument, "responsibilities"),
        (sparse.csr_array([[0.5, 0.4], [1.0, 0.0]]), ["a", "b"], {}, sb.InvalidArgument, "responsibilities"),
        (sparse.csr_array([[1.5, -0.5], [1.0, 0.0]]), ["a", "b"], {}, sb.InvalidArgument, "responsibilities"),
        (sparse.csr_array([[np.nan, 0.0], [1.0, 0.0]]), ["a", "b"], {}, sb.InvalidArgument, "responsibilities"),
        (sparse.csr_array([[1.0, 0.0]]), ["a", "b"], {}, sb.InvalidArgument, "labels"),
        (sparse.coo_array([1.0, 0.0]), ["a", "b"], {}, sb.InvalidArgument, "responsibilities"),
        (sparse.csr_array([[1.0], [1j]]), ["a", "b"], {}, sb.InvalidType, "responsibilities"),
        ([0, 1], Unreadable(), {}, sb.InvalidType, "labels"),
        ([0, 1], "ab", {}, sb.InvalidArgument, "labels"),
        ([0, 1], None, {}, sb.InvalidArgument, "labels"),
        ([0, 1], np.zeros((2, 1)), {}, sb.InvalidArgument, "labels"),
        ([0, 1], [["a"], ["b"]], {}, sb.InvalidType, "labels"),
        ([0, 1], [np.zeros(2), np.zeros(2)], {}, sb.InvalidType, "labels"),
        ([0, 1], [Incomparable(), Incomparable()], {}, sb.InvalidType, "labels"),
        ([0, 1], ["a", "b"], {"n": 0}, sb.InvalidArgument, "n"),
        ([0, 1], ["a", "b"], {"n": 1.5}, sb.InvalidType, "n"),
        ([0, 1], ["a", "b"], {"sample_weight": [1.0]}, sb.InvalidArgument, "sample_weight"),
        ([0, 1], ["a", "b"], {"sample_weight": [1.0, -1.0]}, sb.InvalidArgument, "sample_weight"),
    ],
)
def test_bad_input(responsibilities: Any, labels: Any, options: Any, error: Any, argument: str) -> None:
    with pytest.raises(error) as caught:
        sb.label_shares(responsibilities, labels, **options)
    assert caught.value.argument == argument
    assert caught.value.allowed
    assert caught.value.found
