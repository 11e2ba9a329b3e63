"""Clusters of several components, joined where they overlap (after Baudry et al. 2010)."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stickbreak import checks
from stickbreak.io import arrays, frames
from stickbreak.result import by_chunk, stopping
from stickbreak.shards.pieces import is_collection

# Smallest overlap in `Clusters.levels`: smaller ones are rounding.
_LEAST_OVERLAP = 1e-12


class Predicts(Protocol):
    """The part of a fit that clusters need."""

    def predict_proba(self, X: ArrayLike, *, threads: int | None = None) -> Any:
        """Return responsibilities, shape (n, K)."""
        ...

    def predict(self, X: ArrayLike, *, threads: int | None = None) -> NDArray[np.int64]:
        """Return components, -1 for the background, shape (n,)."""
        ...

    @property
    def _has_background(self) -> bool: ...


class Join(NamedTuple):
    """Two clusters that are joined.

    Parameters
    ----------
    clusters : tuple of two ints
        The lowest component of each.
    gap : float
        The entropy that the join removes, nats.
    overlap : float
        `gap` divided by its value if no row distinguished the two: 0 if they share no row, 1 if they are the same.
    """

    clusters: tuple[int, int]
    gap: float
    overlap: float


@dataclass(frozen=True, repr=False, eq=False)
class Clusters:
    """Clusters of one or more components each, as `Fit.combine` makes them.

    Parameters
    ----------
    groups : ndarray of int64, shape (K,)
        The cluster of each component, from 0 for the largest to C - 1; -1 for a component without rows.
    entropy : float
        The entropy of the rows' components, nats.
    joins : tuple of J `Join`
        All joins down to a single cluster. The first ``J + 1 - C`` of them are made.
    """

    groups: NDArray[np.int64]
    entropy: float
    joins: tuple[Join, ...]
    _fit: Predicts
    # Number of rows of each component, (K,).
    _counts: NDArray[np.float64]

    @property
    def n_clusters(self) -> int:
        """C, the number of clusters."""
        return int(self.groups.max()) + 1

    @property
    def levels(self) -> NDArray[np.float64]:
        """The joins as a dendrogram, in the format of `scipy.cluster.hierarchy`; shape (J, 4).

        Row j joins two nodes. Nodes 0 to J are the components with rows, ``np.flatnonzero(groups >= 0)``; node
        J + 1 + j is row j. The columns are the two nodes, the height, and the number of components below. The height is
        minus the decimal logarithm of the smallest overlap up to this join, from 0 to 12, without unit. A join that is
        higher by one has a tenth of the overlap. `sb.plot.dendrogram` draws the joins.
        """
        names = np.flatnonzero(self.groups >= 0).tolist()
        nodes = {name: (node, 1) for node, name in enumerate(names)}
        table = np.empty((len(self.joins), 4))
        least = 1.0
        for j, join in enumerate(self.joins):
            (one, size), (other, more) = (nodes[name] for name in join.clusters)
            least = min(least, max(join.overlap, _LEAST_OVERLAP))
            table[j] = one, other, least, size + more
            nodes[join.clusters[0]] = len(names) + j, size + more
        # Adding zero makes the zero of a first join that is complete positive.
        table[:, 2] = -np.log10(table[:, 2]) + 0.0
        return table

    def cut(self, n_clusters: int) -> "Clusters":
        """Return the clusters after other joins of the same sequence.

        Parameters
        ----------
        n_clusters : int
            Number of clusters, from 1 to the number of components with rows, J + 1.

        Returns
        -------
        Clusters
            The clusters. They equal those of `Fit.combine` with this `n_clusters`.

        Raises
        ------
        InvalidType, InvalidArgument
            `n_clusters` is not as described.
        """
        n_clusters = checks.integer("n_clusters", n_clusters, minimum=1)
        most = len(self.joins) + 1
        if n_clusters > most:
            allowed = f"from 1 to {most}, the number of components with rows"
            raise checks.invalid_argument("n_clusters", str(n_clusters), allowed)
        return replace(self, groups=_groups(self.joins[: most - n_clusters], self.groups >= 0, self._counts))

    def predict(self, X: ArrayLike, *, threads: int | None = None) -> NDArray[np.int64]:
        """Return the most probable cluster of each row; ties go to the lower one.

        Parameters
        ----------
        X : array_like of shape (n, D)
            The rows. Collections of dask give collections, as in `Fit.predict`.
        threads : int, optional
            The number of threads.

        Returns
        -------
        ndarray of int64, shape (n,)
            Numbers from 0 to C - 1, and -1 for the background.

        Raises
        ------
        InvalidType, InvalidArgument
            As `Fit.predict_proba`.
        """
        if is_collection(X):
            of_chunks: NDArray[np.int64] = by_chunk.mapped(self.predict, X, np.int64, None, threads=threads)
            return of_chunks
        # Some tables can be read only once.
        X = frames.understood(X, "X")
        labels: NDArray[np.int64] = self.predict_proba(X, threads=threads).argmax(axis=1)
        if self._fit._has_background:
            labels = np.where(self._fit.predict(X, threads=threads) < 0, -1, labels)
        return labels

    def predict_proba(self, X: ArrayLike, *, threads: int | None = None) -> NDArray[np.float64]:
        """Return the responsibilities of the clusters for each row: the sums of those of their components.

        Parameters
        ----------
        X : array_like of shape (n, D)
            The rows. Collections of dask give collections, as in `Fit.predict`.
        threads : int, optional
            The number of threads.

        Returns
        -------
        ndarray of float64, shape (n, C)
            Rows that sum to one minus the responsibilities of components without rows.

        Raises
        ------
        InvalidType, InvalidArgument
            As `Fit.predict_proba`.
        """
        if is_collection(X):
            width = self.n_clusters
            found: NDArray[np.float64] = by_chunk.mapped(
                self.predict_proba, X, np.float64, None, width=width, threads=threads
            )
            return found
        of_components = self._fit.predict_proba(X, threads=threads)
        table = np.zeros((len(of_components), self.n_clusters))
        for component in np.flatnonzero(self.groups >= 0):
            table[:, self.groups[component]] += of_components[:, component]
        return table

    def __repr__(self) -> str:
        """Return the numbers of clusters and components, and a line for each join near the last one made."""
        n_components, n_made = len(self.joins) + 1, len(self.joins) + 1 - self.n_clusters
        lines = [f"<{self.n_clusters} clusters of {n_components} components", "clusters  entropy (nats)  next overlap"]
        for made in range(max(0, n_made - 3), min(len(self.joins), n_made + 3) + 1):
            # Rounding may give a small negative value.
            entropy = max(0.0, self.entropy - sum(join.gap for join in self.joins[:made]))
            overlap = f"{self.joins[made].overlap:.3f}" if made < len(self.joins) else ""
            here = " <-" if made == n_made else ""
            lines.append(f"{n_components - made:8d}  {entropy:14.4g}  {overlap:>12}{here}".rstrip())
        return "\n".join(lines) + ">"


def combined(
    fit: Any, rows: arrays.Rows, weights: NDArray[np.float64] | None, n_clusters: int | None, threads: int | None
) -> Clusters:
    """Return the clusters of `Fit.combine`."""
    state = fit._state
    entropy, found, groups = state.joins(rows, weights, n_clusters, threads)
    joins = tuple(Join((one, other), gap, overlap) for one, other, gap, overlap in found)
    components, values = state.responsibilities(rows, state.sparsity, False, threads)
    masses = np.ones(len(values)) if weights is None else weights
    dense = rows if isinstance(rows, np.ndarray) else np.empty((len(values), 0))
    shared = stopping.Shared(dense, masses, components, values)
    clusters = Clusters(groups, entropy, joins, fit, stopping.counts(shared, len(groups)))
    if n_clusters is None and joins and dense.shape[1]:
        moments = stopping.moments(fit.point_estimates, fit.model.likelihood)
        if moments is not None and stopping.n_complete(shared) > 1:
            evidence = stopping.evidence(shared, moments, [join[0] for join in joins], [join[2] for join in joins])
            return clusters.cut(len(joins) + 1 - stopping.n_joins(evidence))
    return clusters


def _groups(joins: tuple[Join, ...], occupied: NDArray[np.bool_], counts: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the cluster of each component after these joins, the largest first, -1 for components without rows."""
    names = np.arange(len(counts))
    for join in joins:
        names[names == join.clusters[1]] = join.clusters[0]
    sizes = np.bincount(names, np.where(occupied, counts, 0.0), minlength=len(counts))
    kept = np.unique(names[occupied])
    numbers = np.full(len(counts), -1)
    numbers[kept[np.argsort(-sizes[kept], kind="stable")]] = np.arange(len(kept))
    return np.where(occupied, numbers[names], -1)
