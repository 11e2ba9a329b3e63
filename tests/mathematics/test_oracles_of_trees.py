"""The oracle of tree-guided moves: detailed balance, and the file of its transitions that the tests in Rust read."""

from pathlib import Path

import numpy as np
import pytest

from oracles import trees

FILE = Path(__file__).parents[1] / "data" / "tree_guided_transitions.txt"


@pytest.mark.parametrize("n", [4, 5])
@pytest.mark.one_in(2)
def test_the_moves_are_reversible_and_their_transitions_are_those_of_the_file(n):
    moves, kernels = trees.kernels(n)
    logs = np.array([moves.log_h[list(partition)].sum() for partition in moves.partitions])
    exact = np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum()
    numbers = {trees.labels(partition, n): k for k, partition in enumerate(moves.partitions)}
    stored = {name: np.zeros_like(matrix) for name, matrix in kernels.items()}
    for line in FILE.read_text(encoding="utf-8").splitlines():
        name, start, end, probability = line.split(" ")
        if len(start) == n:
            stored[name][numbers[start], numbers[end]] = float(probability)
    for name, matrix in kernels.items():
        flow = exact[:, None] * matrix
        assert np.abs(flow - flow.T).max() < 1e-13
        assert np.abs(matrix.sum(1) - 1).max() < 1e-13
        assert np.abs(matrix - stored[name]).max() < 1e-12, name
