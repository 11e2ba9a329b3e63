"""Clusters of several components, joined where they overlap (after Baudry et al. 2010)."""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Predicts(Protocol):
    """The part of a fit that clusters need."""

    def predict_proba(self, X: ArrayLike, *, threads: int | None = None) -> Any:
        """Return responsibilities, shape (n, K)."""
        ...


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

    @property
    def n_clusters(self) -> int:
        """C, the number of clusters."""
        return int(self.groups.max()) + 1

    def predict(self, X: ArrayLike, *, threads: int | None = None) -> NDArray[np.int64]:
        """Return the most probable cluster of each row; ties go to the lower one.

        Parameters
        ----------
        X : array_like of shape (n, D)
            The rows.
        threads : int, optional
            The number of threads.

        Returns
        -------
        ndarray of int64, shape (n,)
            Numbers from 0 to C - 1.

        Raises
        ------
        InvalidType, InvalidArgument
            As `Fit.predict_proba`.
        """
        labels: NDArray[np.int64] = self.predict_proba(X, threads=threads).argmax(axis=1)
        return labels

    def predict_proba(self, X: ArrayLike, *, threads: int | None = None) -> NDArray[np.float64]:
        """Return the responsibilities of the clusters for each row: the sums of those of their components.

        Parameters
        ----------
        X : array_like of shape (n, D)
            The rows.
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
