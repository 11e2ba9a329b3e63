"""Incremental Bayesian hierarchical clustering on a few rows (mathematics 8.9, items 3 to 6).

A tree is a row or a pair of trees, the one with the lowest row first. `log_h` gives the log weight of a set of rows.
"""

from collections import Counter, deque
from functools import cache

import numpy as np


class Forests:
    """Trees over rows whose clusters have the log weights `log_h(frozenset of rows)`."""

    def __init__(self, log_h):
        self.log_h = cache(log_h)
        self.log_phi = cache(self._log_phi)

    def rows(self, tree):
        return frozenset([tree]) if isinstance(tree, int) else self.rows(tree[0]) | self.rows(tree[1])

    def join(self, one, other):
        return (one, other) if min(self.rows(one)) < min(self.rows(other)) else (other, one)

    def _log_phi(self, tree):
        log_h = self.log_h(self.rows(tree))
        return log_h if isinstance(tree, int) else np.logaddexp(log_h, self.log_phi(tree[0]) + self.log_phi(tree[1]))

    def log_d(self, one, other):
        return self.log_phi(one) + self.log_phi(other) - self.log_h(self.rows(one) | self.rows(other))

    def insert(self, tree, subtree, whole):
        """Return what stays of a tree with a subtree, and the pieces that were taken off, the lowest first."""
        if isinstance(tree, int) and not isinstance(subtree, int):
            tree, subtree = subtree, tree
        if isinstance(tree, int):
            return self._beside(tree, subtree, whole)
        left, right = tree
        place = np.argmin([self.log_d(left, right), self.log_d(left, subtree), self.log_d(right, subtree)])
        if place == 0:
            return self._beside(tree, subtree, whole)
        into, other = (left, right) if place == 1 else (right, left)
        insert = self._beside if isinstance(into, int) else self.insert
        stays, pieces = insert(into, subtree, whole)
        if pieces:
            return stays, [*pieces, other]
        return self._beside(other, stays, whole)

    def _beside(self, other, tree, whole):
        """Join a tree that has the subtree with one that has not, or take the latter off."""
        if not whole and self.log_d(tree, other) > 0:
            return tree, [other]
        return self.join(tree, other), []

    def incremental(self, forest, subtrees, most_returns=10):
        """Return the forest after a queue of subtrees has come to its end."""
        forest, queue, returned = list(forest), deque(subtrees), Counter()
        while queue:
            subtree = queue.popleft()
            distances = [self.log_d(tree, subtree) for tree in forest]
            place = int(np.argmin(distances)) if forest else None
            if place is None or distances[place] > 0:
                forest.append(subtree)
                continue
            whole = returned[min(self.rows(subtree))] >= most_returns
            forest[place], pieces = self.insert(forest[place], subtree, whole)
            for piece in pieces:
                returned[min(self.rows(piece))] += 1
                queue.append(piece)
        return forest

    def greedy(self, forest):
        """Return one tree, made by joining the two trees of the smallest dissimilarity again and again."""
        forest = list(forest)
        while len(forest) > 1:
            pairs = [(self.log_d(forest[i], forest[j]), i, j) for j in range(len(forest)) for i in range(j)]
            _, i, j = min(pairs)
            forest[i] = self.join(forest[i], forest[j])
            del forest[j]
        return forest[0]

    def clusters(self, tree):
        """Return the set of rows below every inner node."""
        if isinstance(tree, int):
            return set()
        return {self.rows(tree)} | self.clusters(tree[0]) | self.clusters(tree[1])
