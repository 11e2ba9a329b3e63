"""`partition_distance` against scikit-learn and counts of pairs."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score, mutual_info_score

import stickbreak as sb


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 4)), min_size=1, max_size=40))
def test_values_are_those_of_the_definitions(pairs: list[tuple[int, int]]) -> None:
    a, b = np.array(pairs).T
    apart = sum((a[i] == a[j]) != (b[i] == b[j]) for i, j in combinations(range(len(a)), 2))
    assert sb.partition_distance(a, b, "binder") == apart
    assert sb.partition_distance(a, b, "ari") == pytest.approx(adjusted_rand_score(a, b), abs=1e-12)
    expected = mutual_info_score(a, a) + mutual_info_score(b, b) - 2 * mutual_info_score(a, b)
    assert sb.partition_distance(a, b) == pytest.approx(expected, abs=1e-12)
    named = np.array(["x", "y", "z", "u", "v"])[b]
    assert sb.partition_distance(named, a.tolist()) == pytest.approx(expected, abs=1e-12)


class Broken:
    """An array that cannot be read."""

    def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
        raise RuntimeError("no array")


@pytest.mark.parametrize(
    ("argument", "arguments"),
    [
        ("a", ([0.5, 1.0], [0, 1])),
        ("a", ([], [])),
        ("b", ([0, 1], [[0, 1]])),
        ("b", ([0, 1], [0, 1, 1])),
        ("b", ([0, 1], [None, "x"])),
        ("a", ([[0, 1], [2]], [0, 1])),
        ("b", ([0, 1], [np.zeros(2), np.zeros(3)])),
        ("a", (np.zeros(2, dtype=[("label", int)]), [0, 1])),
        ("a", (np.array([np.zeros(2), None], dtype=object), [0, 1])),
        ("b", ([0, 1], Broken())),
        ("metric", ([0, 1], [0, 1], "rand")),
    ],
)
def test_bad_arguments_are_named(argument: str, arguments: tuple[object, ...]) -> None:
    with pytest.raises((sb.InvalidArgument, sb.InvalidType)) as caught:
        sb.partition_distance(*arguments)  # type: ignore[arg-type]
    assert caught.value.argument == argument
