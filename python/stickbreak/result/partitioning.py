"""What draws of partitions say together: which rows belong together, and a partition to publish."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stickbreak import _core, checks
from stickbreak.errors import BiasWarning, InvalidArgument
from stickbreak.io import positions
from stickbreak.result.draws import Chains

# Maximum number of rows of `Trace.similarity`: the matrix has 800 MB.
_MOST_SIMILAR = 10_000
LOSSES = ("vi", "binder", "map")


class SimilarityBlock(NamedTuple):
    """A part of the matrix of similarities: `values[i, j]` is that of the rows `rows.start + i`, `columns.start + j`.

    Parameters
    ----------
    rows, columns : slice
        The rows and columns of the matrix.
    values : ndarray of float64, shape (m, l)
        Fractions from 0 to 1.
    """

    rows: slice
    columns: slice
    values: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PointEstimate:
    """A partition that represents the draws, from `Trace.point_estimate`.

    Parameters
    ----------
    labels : ndarray of int64, shape (n,)
        The cluster of each row, numbered from 0 by first appearance.
    loss : {"vi", "binder", "map"}
        The loss whose expectation it minimises.
    expected_loss : float
        The mean loss over all draws: nats for "vi", pairs of rows for "binder". For "map" the share of draws with
        another partition.
    """

    labels: NDArray[np.int64]
    loss: str
    expected_loss: float

    @property
    def n_clusters(self) -> int:
        """The number of clusters."""
        return int(self.labels.max()) + 1

    def __repr__(self) -> str:
        units = {"vi": " nats", "binder": " pairs", "map": " of the draws differ"}[self.loss]
        shown = f"{self.loss!r}, expected loss {self.expected_loss:.6g}{units}"
        return f"<PointEstimate of {self.n_clusters} clusters of {len(self.labels)} rows: {shown}>"


@dataclass(frozen=True, eq=False)
class CredibleBall:
    """The smallest ball around a partition that holds a share of the draws, from `Trace.credible_ball`.

    All labels have shape (n,) and are those of draws, numbered from 0. Of several such draws it is the first one.

    Parameters
    ----------
    centre : PointEstimate
        The partition in the middle.
    level : float
        The least share of the draws in the ball.
    radius : float
        The largest loss of the draws in the ball: nats for "vi", pairs of rows for "binder".
    upper : ndarray of int64, shape (n,)
        Of the draws in the ball with the fewest clusters, the one farthest from the centre.
    lower : ndarray of int64, shape (n,)
        Of those with the most clusters, the one farthest from the centre.
    horizontal : ndarray of int64, shape (n,)
        Of all draws in the ball, the one farthest from the centre.
    """

    centre: PointEstimate
    level: float
    radius: float
    upper: NDArray[np.int64]
    lower: NDArray[np.int64]
    horizontal: NDArray[np.int64]

    def __repr__(self) -> str:
        fewest, most = (int(labels.max()) + 1 for labels in (self.upper, self.lower))
        units = "nats" if self.centre.loss == "vi" else "pairs"
        clusters = f"{fewest} to {most} clusters around {self.centre.n_clusters}"
        return f"<CredibleBall of {self.level:g}: {clusters}, radius {self.radius:.6g} {units}>"


def estimate(
    labels: NDArray[np.int32],
    loss: str,
    *,
    runs: int | None = None,
    max_clusters: int | None = None,
    seed: int,
    threads: int | None,
) -> tuple[NDArray[np.int64], float]:
    """Return the partition with the lowest expected loss over labels, shape (T, m), and that loss."""
    found, value = _core.point_estimate(labels, loss, (runs, max_clusters, seed), threads)
    found.flags.writeable = False
    return found, value


def renumbered(labels: NDArray[Any]) -> NDArray[np.int64]:
    """Return labels numbered by first appearance, read-only; those of some rows of a draw may have gaps."""
    _, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    found: NDArray[np.int64] = first.argsort().argsort()[codes].astype(np.int64)
    found.flags.writeable = False
    return found


@contextmanager
def _refused_as(argument: str, allowed: str) -> Iterator[None]:
    """Name what a method takes in errors about memory, which name the arguments of others."""
    try:
        yield
    except InvalidArgument as error:
        raise checks.invalid_argument(argument, str(error.found), allowed) from None


class Partitioning:
    """Methods of `Trace` for partitions. They speak of the rows whose labels the trace keeps."""

    _chains: Chains

    def similarity(self, rows: ArrayLike | None = None, *, threads: int | None = None) -> NDArray[np.float64]:
        """Return how often two rows are in the same cluster, over all draws of all chains.

        Parameters
        ----------
        rows : array_like of int, shape (m,), optional
            Positions of rows in the data, 10,000 at most. Default: all rows whose labels are kept.
        threads : int, optional
            The number of threads. Default: one for every core.

        Returns
        -------
        ndarray of float64, shape (m, m)
            Fractions from 0 to 1, symmetric, 1 on the diagonal.

        Raises
        ------
        InvalidType, InvalidArgument
            `rows` or `threads` is not as described, or there are more rows: see `similarity_blocks`.

        Examples
        --------
        >>> import numpy as np
        >>> import stickbreak as sb
        >>> X = np.random.default_rng(0).normal([[-9.0], [9.0]], size=(2, 10)).reshape(-1, 1)
        >>> model = sb.Mixture(likelihood=sb.Gaussian())
        >>> trace = sb.sample(model, X, draws=20, warmup=10, chains=1)
        >>> near, far = trace.similarity([0, 1, 10])[0, 1:]
        >>> bool(near > far)
        True
        """
        labels = self._labels()
        chosen = labels.take(self._places(rows), axis=1)
        return _core.similarity(chosen, chosen, checks.threads(threads))

    def similarity_blocks(self, size: int = 2000, *, threads: int | None = None) -> Iterator[SimilarityBlock]:
        """Yield the matrix of `similarity` of all rows piece by piece, for more rows than fit in one matrix.

        The pieces are those on and above the diagonal; the matrix is symmetric.

        Parameters
        ----------
        size : int
            The largest number of rows and columns of a piece, 1 to 10,000.
        threads : int, optional
            The number of threads. Default: one for every core.

        Yields
        ------
        SimilarityBlock
            With `rows`, `columns` and `values`, by rows and then by columns.

        Raises
        ------
        InvalidType, InvalidArgument
            An argument is not as described.

        Examples
        --------
        >>> import numpy as np
        >>> import stickbreak as sb
        >>> X = np.random.default_rng(0).normal([[-9.0], [9.0]], size=(2, 10)).reshape(-1, 1)
        >>> trace = sb.sample(sb.Mixture(likelihood=sb.Gaussian()), X, draws=20, warmup=10, chains=1)
        >>> whole = trace.similarity()
        >>> all((whole[b.rows, b.columns] == b.values).all() for b in trace.similarity_blocks(size=8))
        True
        """
        step = checks.integer("size", size, minimum=1, maximum=_MOST_SIMILAR)
        return self._blocks(step, checks.threads(threads))

    def _blocks(self, step: int, threads: int | None) -> Iterator[SimilarityBlock]:
        labels = self._labels()
        slices = [slice(first, min(first + step, labels.shape[1])) for first in range(0, labels.shape[1], step)]
        for index, rows in enumerate(slices):
            of_rows = np.ascontiguousarray(labels[:, rows])
            for columns in slices[index:]:
                of_columns = np.ascontiguousarray(labels[:, columns])
                with _refused_as("size", "few enough rows that a piece fits in memory"):
                    values = _core.similarity(of_rows, of_columns, threads)
                yield SimilarityBlock(rows, columns, values)

    def point_estimate(
        self,
        loss: Literal["vi", "binder", "map"] = "vi",
        *,
        max_clusters: int | None = None,
        runs: int | None = None,
        seed: int = 0,
        threads: int | None = None,
    ) -> PointEstimate:
        r"""Return the partition that represents all draws best: that with the lowest expected loss that is found.

        .. math:: \operatorname*{arg\,min}_{\hat\Pi} \frac1T \sum_{t=1}^T L(\Pi_t, \hat\Pi)

        For "vi", the variation of information, and "binder", Binder's loss (`partition_distance`), rows are moved one
        by one, and clusters joined and taken apart, as long as that lowers the expected loss, from several starts, in
        the manner of [1]_. It needs no matrix of similarities. Rows that are together in all draws are moved together.
        A search may miss the best partition: more `runs` never end higher.
        "vi" gives fewer small clusters than "binder". "map" is the draw with the highest `log_joint`: in large tables
        no draw is made twice, and the best one may be far from most others.

        Parameters
        ----------
        loss : {"vi", "binder", "map"}
            What is minimised.
        max_clusters : int, optional
            The largest number of clusters, at least 1; not for "map". Default: that of the draw with the most, as in
            [1]_. With more, "binder" finds hundreds where clusters overlap.
        runs : int, optional
            The number of starts, 1 to 10,000. Default: 16, but four if three of them end with the lowest loss.
        seed : int
            Decides the order in which rows are visited; 0 to 2**64 - 1.
        threads : int, optional
            The number of threads. Default: one for every core.

        Returns
        -------
        PointEstimate
            The labels, and their expected loss.

        Raises
        ------
        InvalidType, InvalidArgument
            An argument is not as described, or the counts of rows do not fit in memory.

        Warns
        -----
        BiasWarning
            The draws are those of ``TreeGuided(exact=False)``.

        References
        ----------
        .. [1] Dahl, D. B., Johnson, D. J. and Müller, P. (2022). Search algorithms and loss functions for Bayesian
               clustering. Journal of Computational and Graphical Statistics 31(4).

        Examples
        --------
        >>> import numpy as np
        >>> import stickbreak as sb
        >>> X = np.random.default_rng(0).normal([[-9.0], [9.0]], size=(2, 10)).reshape(-1, 1)
        >>> trace = sb.sample(sb.Mixture(likelihood=sb.Gaussian()), X, draws=100, warmup=20, chains=2)
        >>> trace.point_estimate().labels.tolist()
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]
        """
        checks.word("loss", loss, LOSSES)
        most = (
            None if max_clusters is None else checks.integer("max_clusters", max_clusters, minimum=1, or_else=["None"])
        )
        n_runs = None if runs is None else checks.integer("runs", runs, minimum=1, maximum=10_000, or_else=["None"])
        if loss == "map" and most is not None:
            reason = 'the estimate of "map" is one of the draws'
            raise checks.not_supported("max_clusters", "max_clusters", reason, 'loss="vi" or "binder"')
        number, checked = checks.seed(seed), checks.threads(threads)
        self._warn_of_bias()
        return self._point_estimate(loss, max_clusters=most, runs=n_runs, seed=number, threads=checked)

    def credible_ball(
        self,
        level: float = 0.95,
        *,
        loss: Literal["vi", "binder"] = "vi",
        seed: int = 0,
        threads: int | None = None,
    ) -> CredibleBall:
        """Return the smallest ball around `point_estimate` that holds a share of the draws, and the draws at its edge.

        How far the partition is from certain, as Wade and Ghahramani [1]_ show it.

        Parameters
        ----------
        level : float
            The least share of the draws in the ball, above 0 and below 1.
        loss : {"vi", "binder"}
            The distance, and the loss of the centre.
        seed : int
            As in `point_estimate`.
        threads : int, optional
            The number of threads. Default: one for every core.

        Returns
        -------
        CredibleBall
            Its centre, its radius and three draws at its edge.

        Raises
        ------
        InvalidType, InvalidArgument
            An argument is not as described, or the counts of rows do not fit in memory.

        Warns
        -----
        BiasWarning
            The draws are those of ``TreeGuided(exact=False)``.

        References
        ----------
        .. [1] Wade, S. and Ghahramani, Z. (2018). Bayesian cluster analysis: point estimation and credible balls.
               Bayesian Analysis 13(2).

        Examples
        --------
        >>> import numpy as np
        >>> import stickbreak as sb
        >>> X = np.random.default_rng(0).normal([[-3.0], [3.0]], size=(2, 10)).reshape(-1, 1)
        >>> trace = sb.sample(sb.Mixture(likelihood=sb.Gaussian()), X, draws=100, warmup=20, chains=2)
        >>> ball = trace.credible_ball()
        >>> bool(ball.upper.max() <= ball.lower.max())
        True
        """
        share = checks.share("level", level)
        checks.word("loss", loss, LOSSES[:2])
        number, checked = checks.seed(seed), checks.threads(threads)
        self._warn_of_bias()
        centre = self._centre(loss, seed=number, threads=checked)
        labels = self._labels()
        apart = self._distances(centre, checked)
        # Of the rows whose labels are kept.
        numbers = np.array([len(np.unique(draw)) for draw in labels], dtype=np.int64)
        radius, edge = _core.credible_ball(apart, numbers, share)
        upper, lower, horizontal = (renumbered(labels[draw]) for draw in edge)
        return CredibleBall(centre, share, radius, upper, lower, horizontal)

    def _centre(self, loss: str, *, seed: int = 0, threads: int | None) -> PointEstimate:
        """Return `point_estimate` for methods that have not all of its arguments."""
        with _refused_as("trace", "one of fewer draws, rows or clusters, whose counts fit in memory"):
            return self._point_estimate(loss, seed=seed, threads=threads)

    def _point_estimate(
        self,
        loss: str,
        *,
        max_clusters: int | None = None,
        runs: int | None = None,
        seed: int = 0,
        threads: int | None,
    ) -> PointEstimate:
        labels = self._labels()
        if loss == "map":
            best = np.array(labels[self._chains.log_joint.argmax()], dtype=np.int64)
            apart = _core.distances(labels, best.astype(np.uint32), "binder", threads)
            return PointEstimate(renumbered(best), loss, float((apart > 0).mean()))
        found, value = estimate(labels, loss, runs=runs, max_clusters=max_clusters, seed=seed, threads=threads)
        return PointEstimate(found, loss, value)

    def _distances(self, centre: PointEstimate, threads: int | None) -> NDArray[np.float64]:
        """Return the loss of a partition where each draw is true, (T,)."""
        return _core.distances(self._labels(), centre.labels.astype(np.uint32), centre.loss, threads)

    def _places(self, rows: ArrayLike | None) -> NDArray[np.int64]:
        """Return the places of rows of the data among those whose labels are kept."""
        kept, n_kept = self._chains.kept_rows, self._chains.partitions.shape[-1]
        try:
            chosen = np.arange(n_kept) if rows is None and kept is None else kept if rows is None else rows
            found = positions.positions(chosen, "rows", self._chains.n_rows, most=_MOST_SIMILAR)
        except InvalidArgument as error:
            raise checks.invalid_argument(
                "rows", str(error.found), str(error.allowed), "see also similarity_blocks"
            ) from None
        if kept is None:
            return found
        place_of = {int(row): place for place, row in enumerate(kept)}
        missing = [row for row in found.tolist() if row not in place_of]
        if missing:
            raise checks.invalid_argument("rows", f"{missing[0]}", "positions in Trace.kept_rows")
        return np.array([place_of[row] for row in found.tolist()])

    def _warn_of_bias(self) -> None:
        if not self._chains.exact:
            text = "the draws are those of a search, so that their frequencies are not probabilities"
            warnings.warn(BiasWarning(text, suggestions=("TreeGuided(exact=True)",)), stacklevel=3)

    def _labels(self) -> NDArray[np.int32]:
        """Return the labels of all draws of all chains, (T, m)."""
        labels = self._chains.partitions
        return labels.reshape(-1, labels.shape[-1])
