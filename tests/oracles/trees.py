"""Tree-guided moves in NumPy, on partitions of a few numbers with one guide tree: all transition probabilities.

A cluster is a bit mask of rows, a partition a sorted tuple of clusters, `log_h[mask]` the log weight of a cluster, and
a tree a nested pair of trees or a row. Restrictions of the guide are the trees of clusters.
"""

from functools import cache

import numpy as np
from scipy.special import gammaln, logsumexp

ROWS = np.array([-1.8, -1.0, 0.2, 0.9, 2.0])


def log_weights(n):
    """Log weights of all clusters of the first n rows.

    x | theta ~ N(theta, 1), theta ~ N(0, 4); generalized gamma process of mass and discount 1/2 at u = 2.
    """
    found = np.zeros(1 << n)
    for mask in range(1, 1 << n):
        x = ROWS[members(mask)]
        k = len(x)
        square = x @ x - x.sum() ** 2 * 4 / (1 + 4 * k)
        log_m = -0.5 * (k * np.log(2 * np.pi) + np.log1p(4 * k) + square)
        found[mask] = log_m + np.log(0.5) + gammaln(k - 0.5) - gammaln(0.5) - (k - 0.5) * np.log(3.0)
    return found


def members(mask):
    return [row for row in range(mask.bit_length()) if mask >> row & 1]


def low(mask):
    return mask & -mask


def labels(partition, n):
    """Return the labels of the rows as a word, by first appearance."""
    ordered = sorted(partition, key=low)
    return "".join(str(next(k for k, c in enumerate(ordered) if c >> row & 1)) for row in range(n))


def partitions(n):
    found = [()]
    for row in range(n):
        longer = []
        for p in found:
            longer += [(*p[:j], p[j] | 1 << row, *p[j + 1 :]) for j in range(len(p))]
            longer.append((*p, 1 << row))
        found = longer
    return [tuple(sorted(p)) for p in found]


def paths(program):
    """Yield probability and result of every path of `program(pick)`."""
    prefix = []
    while True:
        taken, sizes, probability = [], [], [1.0]

        def pick(weights, prefix=prefix, taken=taken, sizes=sizes, probability=probability):
            weights = np.asarray(weights, float) / np.sum(weights)
            options = np.flatnonzero(weights > 0)
            option = prefix[len(taken)] if len(taken) < len(prefix) else 0
            taken.append(option)
            sizes.append(len(options))
            probability[0] *= weights[options[option]]
            return int(options[option])

        result = program(pick)
        yield probability[0], result
        while taken and taken[-1] == sizes[len(taken) - 1] - 1:
            taken.pop()
        if not taken:
            return
        prefix = [*taken[:-1], taken[-1] + 1]


class Moves:
    """The moves under one guide tree, that of the rows inserted in order."""

    def __init__(self, n):
        self.n = n
        self.log_h = log_weights(n)
        self.guide = 0
        for row in range(1, n):
            self.guide = self.insert(self.guide, row)
        self.partitions = partitions(n)

    # Trees.

    def mask(self, tree):
        return 1 << tree if isinstance(tree, int) else self.mask(tree[0]) | self.mask(tree[1])

    def join(self, one, other):
        return (one, other) if low(self.mask(one)) < low(self.mask(other)) else (other, one)

    @cache  # noqa: B019
    def log_phi(self, tree):
        log_h_of_tree = self.log_h[self.mask(tree)]
        return (
            log_h_of_tree
            if isinstance(tree, int)
            else np.logaddexp(log_h_of_tree, self.log_phi(tree[0]) + self.log_phi(tree[1]))
        )

    def log_d(self, one, other):
        return self.log_phi(one) + self.log_phi(other) - self.log_h[self.mask(one) | self.mask(other)]

    def insert(self, tree, subtree):
        if isinstance(tree, int) and not isinstance(subtree, int):
            tree, subtree = subtree, tree
        if isinstance(tree, int):
            return self.join(tree, subtree)
        left, right = tree
        apart, to_left, to_right = self.log_d(left, right), self.log_d(left, subtree), self.log_d(right, subtree)
        if apart <= to_left and apart <= to_right:
            return self.join(tree, subtree)
        into, other = (left, right) if to_left <= to_right else (right, left)
        below = self.join(into, subtree) if isinstance(into, int) else self.insert(into, subtree)
        return self.join(below, other)

    @cache  # noqa: B019
    def tree(self, mask):
        """Return the guide restricted to a cluster."""

        def restricted(tree):
            if isinstance(tree, int):
                return tree if mask >> tree & 1 else None
            left, right = map(restricted, tree)
            return right if left is None else left if right is None else self.join(left, right)

        return restricted(self.guide)

    def nodes(self, tree, leaves):
        if isinstance(tree, int):
            return [tree] if leaves else []
        return [tree, *self.nodes(tree[0], leaves), *self.nodes(tree[1], leaves)]

    def sampled(self, tree, leaves):
        """Nodes with their probabilities, in proportion to d plus the largest d."""
        nodes = self.nodes(tree, leaves)
        if len(nodes) == 1:
            return nodes, np.ones(1)
        log_d = np.array([-np.inf if isinstance(node, int) else self.log_d(*node) for node in nodes])
        weights = np.exp(log_d - log_d.max()) + 1.0
        return nodes, weights / weights.sum()

    def siblings(self, tree, node):
        found = []
        while tree != node:
            left, right = tree
            inside = self.mask(node) & ~self.mask(left) == 0
            found.append(right if inside else left)
            tree = left if inside else right
        return found[::-1]

    # Subtree moves.

    def log_insertions(self, subtree, parts):
        logs = np.array([*(-self.log_d(subtree, part) for part in parts), 0.0])
        return logs - logsumexp(logs)

    def log_stays(self, tree, rest):
        return sum(d - np.logaddexp(0, d) for d in (self.log_d(tree, other) for other in rest))

    def log_merge(self, merged, rest):
        ways = [
            self.log_stays(first, rest)
            - sum(np.logaddexp(0, self.log_d(first, other)) for other in merged if other != first)
            for first in merged
        ]
        return logsumexp(ways) - np.log(len(merged) + len(rest))

    def splits(self, tree, pick):
        nodes, probabilities = self.sampled(tree, leaves=False)
        k = pick(probabilities)
        parts, log_probability = list(nodes[k]), np.log(probabilities[k])
        for subtree in self.siblings(tree, nodes[k]):
            logs = self.log_insertions(subtree, parts)
            number = pick(np.exp(logs))
            log_probability += logs[number]
            if number == len(parts):
                parts.append(subtree)
            else:
                parts[number] = self.insert(parts[number], subtree)
        return [self.mask(part) for part in parts], log_probability

    def log_split(self, tree, parts):
        """Return the log probability of a split by enumeration of all paths."""
        found = [p for p, (masks, _) in paths(lambda pick: self.splits(tree, pick)) if sorted(masks) == sorted(parts)]
        return np.log(sum(found)) if found else -np.inf

    def subtree(self, partition, pick):
        ordered = sorted(partition, key=low)
        k = pick(np.ones(len(ordered)))
        log_forth, merged, rest = -np.log(len(ordered)), [ordered[k]], []
        for mask in ordered[:k] + ordered[k + 1 :]:
            log_p = -np.logaddexp(0, self.log_d(self.tree(ordered[k]), self.tree(mask)))
            joins = pick([np.exp(log_p), -np.expm1(log_p)]) == 0
            (merged if joins else rest).append(mask)
            log_forth += log_p if joins else np.log(-np.expm1(log_p))
        kept = [self.tree(mask) for mask in rest]
        if len(merged) > 1:
            union = sum(merged)
            old = [self.tree(mask) for mask in merged]
            log_forth = self.log_merge(old, kept)
            log_back = -np.log(len(rest) + 1) + self.log_stays(self.tree(union), kept)
            log_back += self.log_split(self.tree(union), merged)
            return [*rest, union], log_back - log_forth
        if ordered[k].bit_count() == 1:
            return partition, 0.0
        parts, log_cut = self.splits(self.tree(ordered[k]), pick)
        log_back = self.log_merge([self.tree(mask) for mask in parts], kept)
        return [*rest, *parts], log_back - log_forth - log_cut

    # Tree-launched moves.

    def log_partners(self, tree, others):
        logs = np.array([*(-self.log_d(tree, other) for other in others), 0.0])
        return logs - logsumexp(logs)

    def log_pair(self, one, other, rest):
        ways = self.log_partners(one, [other, *rest])[0], self.log_partners(other, [one, *rest])[0]
        return np.logaddexp(*ways) - np.log(len(rest) + 2)

    def anchors(self, tree, first):
        """All nodes with a row below each child, on different sides, and their weights."""
        found, weights = [], []
        for node, probability in zip(*self.sampled(tree, leaves=False), strict=True):
            left, right = (members(self.mask(child)) for child in node)
            for i in left:
                for j in right:
                    if (first >> i & 1) != (first >> j & 1):
                        found.append((node, i, j))
                        weights.append(probability / len(left) / len(right))
        return found, np.array(weights)

    def launched_sides(self, tree, node):
        one, other = node
        for subtree in self.siblings(tree, node):
            if self.log_d(subtree, one) <= self.log_d(subtree, other):
                one = self.insert(one, subtree)
            else:
                other = self.insert(other, subtree)
        return self.mask(one), self.mask(other)

    def scan(self, rows, a, b, pick, forced=None):
        log_probability = 0.0
        for row in rows:
            bit = 1 << row
            a, b = a & ~bit, b & ~bit
            log_a, log_b = self.log_h[a | bit] - self.log_h[a], self.log_h[b | bit] - self.log_h[b]
            total = np.logaddexp(log_a, log_b)
            to_a = pick([np.exp(log_a - total), np.exp(log_b - total)]) == 0 if forced is None else forced >> row & 1
            log_probability += (log_a if to_a else log_b) - total
            a, b = (a | bit, b) if to_a else (a, b | bit)
        return a, b, log_probability

    def launched(self, partition, scans, pick):
        ordered = sorted(partition, key=low)
        k = pick(np.ones(len(ordered)))
        mask, rest = ordered[k], ordered[:k] + ordered[k + 1 :]
        partners = self.log_partners(self.tree(mask), [self.tree(other) for other in rest])
        choice = pick(np.exp(partners))
        if choice == len(rest):
            if mask.bit_count() == 1:
                return partition, 0.0
            nodes, probabilities = self.sampled(self.tree(mask), leaves=False)
            node = nodes[pick(probabilities)]
            i, j = (rows[pick(np.ones(len(rows)))] for rows in (members(self.mask(child)) for child in node))
            a, b, log_scan = self.scanned(self.tree(mask), node, (i, j), scans, pick)
            log_z = np.log(self.anchors(self.tree(mask), a)[1].sum())
            log_forth = -np.log(len(ordered)) + partners[-1] + log_z + log_scan
            log_back = self.log_pair(self.tree(a), self.tree(b), [self.tree(other) for other in rest])
            return [*rest, a, b], log_back - log_forth
        other = rest.pop(choice)
        kept, union = [self.tree(other_cluster) for other_cluster in rest], mask | other
        found, weights = self.anchors(self.tree(union), mask)
        node, i, j = found[pick(weights)]
        forced = mask if mask >> i & 1 else other
        _, _, log_scan = self.scanned(self.tree(union), node, (i, j), scans, pick, forced)
        log_back = -np.log(len(ordered) - 1) + self.log_partners(self.tree(union), kept)[-1]
        log_back += np.log(weights.sum()) + log_scan
        return [*rest, union], log_back - self.log_pair(self.tree(mask), self.tree(other), kept)

    def scanned(self, tree, node, anchors, scans, pick, forced=None):
        rows = [row for row in members(self.mask(tree)) if row not in anchors]
        a, b = self.launched_sides(tree, node)
        for _ in range(scans):
            a, b, _ = self.scan(rows, a, b, pick)
        return self.scan(rows, a, b, pick, forced)

    # Guided moves of a row.

    def selection(self, partition, depth):
        """Return the probability of each row to be found."""
        found = np.zeros(self.n)
        for mask in partition:
            level = {self.tree(mask): 1.0 / len(partition)}
            for _ in range(depth):
                deeper = {}
                for node, weight in level.items():
                    for below, probability in zip(*self.sampled(node, leaves=True), strict=True):
                        deeper[below] = deeper.get(below, 0.0) + weight * probability
                level = deeper
            for node, weight in level.items():
                rows = members(self.mask(node))
                found[rows] += weight / len(rows)
        return found

    def guided(self, partition, depth, pick):
        selection = self.selection(partition, depth)
        row = pick(selection)
        bit = 1 << row
        left = [mask & ~bit for mask in partition if mask & ~bit]
        options = [sorted([*(other for other in left if other != mask), mask | bit]) for mask in left]
        options.append(sorted([*left, bit]))
        logs = np.array([*(self.log_h[mask | bit] - self.log_h[mask] for mask in left), self.log_h[bit]])
        chosen = options[pick(np.exp(logs - logsumexp(logs)))]
        return chosen, np.log(self.selection(chosen, depth)[row] / selection[row])

    def transitions(self, move, with_weights):
        """Return the transition matrix of a move that returns a partition and a log ratio of proposals."""
        numbers = {partition: k for k, partition in enumerate(self.partitions)}
        matrix = np.zeros((len(numbers),) * 2)
        for start, k in numbers.items():
            for probability, (end, log_ratio) in paths(lambda pick, start=start: move(start, pick)):
                gain = sum(self.log_h[list(end)]) - sum(self.log_h[list(start)]) if with_weights else 0.0
                accepted = np.exp(min(0.0, log_ratio + gain))
                matrix[k, numbers[tuple(sorted(end))]] += probability * accepted
                matrix[k, k] += probability * (1 - accepted)
        return matrix


def kernels(n):
    """Return the moves of n rows with their names and transition matrices."""
    moves = Moves(n)
    found = {
        "subtree": moves.transitions(moves.subtree, True),
        "launched0": moves.transitions(lambda start, pick: moves.launched(start, 0, pick), True),
        "guided2": moves.transitions(lambda start, pick: moves.guided(start, 2, pick), False),
    }
    if n == 4:
        found["launched1"] = moves.transitions(lambda start, pick: moves.launched(start, 1, pick), True)
    return moves, found
