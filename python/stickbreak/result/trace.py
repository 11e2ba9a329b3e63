"""The result of `sample`: draws of partitions, and summaries of them."""

import math
import os
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stickbreak import _core, checks
from stickbreak.errors import NotSupported
from stickbreak.io import arrays, files, names
from stickbreak.model.mixture import Mixture
from stickbreak.result import parts, support

# Maximum number of rows of `Trace.similarity`: the matrix has 800 MB.
_MOST_SIMILAR = 10_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Draw:
    """One draw of a chain, as passed to callbacks of `sample`.

    Parameters
    ----------
    chain : int
        Index of the chain, from 0.
    index : int
        Index of the draw, from 0.
    seconds : float
        Time since the chains began.
    log_joint : float
        log p(X, partition | hyper-parameters), in nats.
    n_clusters : int
        Number of clusters.
    """

    chain: int
    index: int
    seconds: float
    log_joint: float
    n_clusters: int

    @classmethod
    def _from_core(cls, event: dict[str, Any]) -> "Draw":
        return cls(
            chain=event["run"],
            index=event["draw"],
            seconds=event["seconds"],
            log_joint=event["log_joint"],
            n_clusters=event["n_clusters"],
        )


class Proposals(NamedTuple):
    """Proposals of one kind: number made, accepted, and decided by a finite ratio, and the sum of log ratios."""

    proposed: int
    accepted: int
    judged: int = 0
    log_ratio: float = 0.0


@dataclass(frozen=True)
class Chains:
    """The arrays of all chains, from the core or from a file."""

    partitions: NDArray[np.int32]
    log_joint: NDArray[np.float64]
    n_clusters: NDArray[np.int64]
    hyperparameters: dict[str, NDArray[np.float64]]
    seconds: NDArray[np.float64]
    proposals: dict[str, Proposals]
    exact: bool = True


class Trace:
    """Draws of partitions from their posterior, as `sample` and `load` return them.

    n is the number of rows. All logarithms are natural, and log densities are in nats, in the units of the data. A
    trace holds the rows that it was sampled for, because predictions need them; `save` writes them too.

    Examples
    --------
    >>> import numpy as np
    >>> import stickbreak as sb
    >>> X = np.random.default_rng(0).normal([[-5.0], [5.0]], size=(2, 20)).reshape(-1, 1)
    >>> model = sb.Mixture(likelihood=sb.Gaussian())
    >>> trace = sb.sample(model, X, draws=50, warmup=10, chains=2)
    >>> trace.partitions.shape, trace.log_joint.shape
    ((2, 50, 40), (2, 50))
    >>> bool((trace.partitions[..., 0] != trace.partitions[..., -1]).all())
    True
    """

    def __init__(
        self,
        chains: Chains,
        state: _core.SampledModel,
        model: Mixture,
        rows: arrays.Rows,
        column_names: names.Names | None = None,
    ) -> None:
        self._chains = chains
        self._state = state
        self._model = model
        self._rows = rows
        self._column_names = column_names
        held: list[NDArray[Any]] = [chains.partitions, chains.log_joint, chains.n_clusters, chains.seconds]
        for array in [*held, *chains.hyperparameters.values()]:
            array.flags.writeable = False

    @property
    def model(self) -> Mixture:
        """The model, with all parameters of its likelihood filled in."""
        return self._model

    @property
    def column_names(self) -> tuple[str, ...] | None:
        """The names of the D columns if the data were a table; new rows are matched by name, as in `Fit`."""
        return self._column_names

    @property
    def partitions(self) -> NDArray[np.int32]:
        """The cluster of each row, shape (chains, draws, n): labels from 0, numbered by first appearance in each draw.

        If it is larger than a gigabyte, it is a memory map of a temporary file.
        """
        return self._chains.partitions

    @property
    def log_joint(self) -> NDArray[np.float64]:
        """Log p(X, partition | hyper-parameters) of each draw, shape (chains, draws), nats.

        It has all constants, is in the units of the data, and has auxiliary variables integrated out. It is a density
        with respect to volume on `support`.
        """
        return self._chains.log_joint

    @cached_property
    def support(self) -> support.Support:
        """The directions in which the rows vary. Constant and dependent columns add none.

        `log_joint` and `log_predictive` are densities with respect to volume on this subspace, as in `Fit.support`.
        """
        return support.of(self._state)

    @property
    def n_clusters(self) -> NDArray[np.int64]:
        """The number of clusters of each draw, shape (chains, draws)."""
        return self._chains.n_clusters

    @property
    def hyperparameters(self) -> dict[str, NDArray[np.float64]]:
        """Learned parameters of the process by name, each of shape (chains, draws); empty if none is learned."""
        return dict(self._chains.hyperparameters)

    @property
    def seconds(self) -> NDArray[np.float64]:
        """Seconds that each chain ran, warm-up included, shape (chains,)."""
        return self._chains.seconds

    @property
    def exact(self) -> bool:
        """Whether the sampler leaves the posterior invariant; False for ``TreeGuided(exact=False)``.

        Otherwise the draws are the results of a search, and their frequencies are not probabilities.
        """
        return self._chains.exact

    @property
    def acceptance(self) -> dict[str, float]:
        """Fraction of accepted proposals after the warm-up, over all chains, by kind; nan if there were none.

        "gibbs" is the fraction of row visits that moved the row to another cluster. `BlockedGibbs` and `Slice` also
        have "label_swaps" and "stick_swaps" under processes of sticks. `TreeGuided` has "subtree_split",
        "subtree_merge", "launched_split" and "launched_merge", or "published_split", "published_merge" and
        "published_local".
        """
        return {name: n.accepted / n.proposed if n.proposed else math.nan for name, n in self._chains.proposals.items()}

    @property
    def log_ratio(self) -> dict[str, float]:
        """Mean log ratio of acceptance by kind of proposal, after the warm-up, over all chains; nats.

        A proposal is accepted with probability min(1, ratio). Impossible proposals, whose ratio is zero, are left out.
        Kinds that are not decided by a ratio, such as "gibbs", have nan.
        """
        return {name: n.log_ratio / n.judged if n.judged else math.nan for name, n in self._chains.proposals.items()}

    def ess(self, name: str = "log_joint") -> float:
        """Return the effective sample size of a quantity over all chains.

        The bulk effective sample size [1]_ of rank-normalised draws, on split chains, by Geyer's initial monotone
        sequence. It is defined only for quantities that do not depend on the labels of clusters.

        Parameters
        ----------
        name : str
            "log_joint", "n_clusters", or a name in `hyperparameters`.

        Returns
        -------
        float
            The effective number of draws; nan if all draws are equal or there are fewer than four per chain.

        Raises
        ------
        InvalidType, InvalidArgument
            `name` is not one of these names.

        References
        ----------
        .. [1] Vehtari, A., Gelman, A., Simpson, D., Carpenter, B. and Bürkner, P.-C. (2021). Rank-normalization,
               folding, and localization: an improved R-hat. Bayesian Analysis 16(2).
        """
        return _core.ess(self._quantity(name))

    def rhat(self, name: str = "log_joint") -> float:
        """Return R-hat of a quantity: how much chains differ from each other, 1 if they agree.

        The larger of the R-hat of ranks and of folded ranks, on split chains (Vehtari et al. 2021, as in `ess`).

        Parameters
        ----------
        name : str
            As in `ess`.

        Returns
        -------
        float
            R-hat; nan as in `ess`.

        Raises
        ------
        InvalidType, InvalidArgument
            `name` is not one of these names.
        """
        return _core.rhat(self._quantity(name))

    def to_arviz(self) -> Any:
        """Return the draws for ArviZ: `n_clusters`, `log_joint` (nats) and the hyperparameters, by chain and draw.

        Returns
        -------
        arviz.InferenceData or xarray.DataTree
            With the group `posterior`, whichever type the installed ArviZ has. Its attribute `exact` is 1, or 0 for
            draws of ``TreeGuided(exact=False)``, which are biased.

        Raises
        ------
        NotSupported
            ArviZ is not installed.

        Examples
        --------
        >>> import numpy as np
        >>> import stickbreak as sb
        >>> X = np.random.default_rng(0).normal([[-9.0], [9.0]], size=(2, 10)).reshape(-1, 1)
        >>> model = sb.Mixture(likelihood=sb.Gaussian())
        >>> trace = sb.sample(model, X, draws=20, warmup=10, chains=2)
        >>> trace.to_arviz().posterior["n_clusters"].shape  # doctest: +SKIP
        (2, 20)
        """
        try:
            import arviz
        except ImportError as error:
            raise NotSupported("ArviZ is not installed: pip install arviz") from error
        posterior = {"n_clusters": self.n_clusters, "log_joint": self.log_joint, **self.hyperparameters}
        is_old = int(arviz.__version__.split(".")[0]) == 0
        found = arviz.from_dict(posterior=posterior) if is_old else arviz.from_dict({"posterior": posterior})
        found.posterior.attrs["exact"] = int(self.exact)
        return found

    def similarity(self, rows: ArrayLike | None = None, *, threads: int | None = None) -> NDArray[np.float64]:
        """Return how often two rows are in the same cluster, over all draws of all chains.

        Parameters
        ----------
        rows : array_like of int, shape (m,), optional
            Positions of rows, 10,000 at most. Default: all n rows.
        threads : int, optional
            The number of threads. Default: one for every core.

        Returns
        -------
        ndarray of float64, shape (m, m)
            Fractions from 0 to 1, symmetric, 1 on the diagonal.

        Raises
        ------
        InvalidType, InvalidArgument
            `rows` or `threads` is not as described.

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
        n = self.partitions.shape[-1]
        allowed = f"positions of rows from 0 to {n - 1}, {_MOST_SIMILAR} at most"
        chosen = arrays.as_array(range(n) if rows is None else rows, "rows", allowed)
        if chosen.ndim != 1 or (chosen.dtype.kind not in "iu" and chosen.size):
            raise checks.invalid_type("rows", checks.describe(chosen), allowed)
        if not 0 < len(chosen) <= _MOST_SIMILAR:
            raise checks.invalid_argument("rows", f"{len(chosen)} rows", allowed)
        outside = chosen[(chosen < 0) | (chosen >= n)]
        if outside.size:
            raise checks.invalid_argument("rows", f"{outside[0]}", allowed)
        labels = self.partitions.reshape(-1, n).take(chosen.tolist(), axis=1)
        return _core.similarity(labels, checks.threads(threads))

    def log_predictive(self, X: ArrayLike, *, threads: int | None = None) -> NDArray[np.float64]:
        r"""Return the log of the posterior predictive density of each row.

        The mean over all draws of

        .. math:: \sum_c p(c \mid \Pi) \, \frac{m(X_c \cup x)}{m(X_c)} + p(\text{new} \mid \Pi) \, m(x)

        with the exact prior weights for one more row.

        Parameters
        ----------
        X : array_like of shape (m, D)
            The rows.
        threads : int, optional
            The number of threads. Default: one for every core.

        Returns
        -------
        ndarray of float64, shape (m,)
            Log densities in nats, in the units of the data; minus infinity for rows off `support`, and for rows so far
            away that their squared distance overflows float64 (beyond about 1e154 standard deviations).

        Raises
        ------
        InvalidType, InvalidArgument
            `X` or `threads` is not as described.
        """
        rows, threads = self._new_rows(X), checks.threads(threads)
        draws, traced = self.partitions, self._traced()
        values, off = self._state.log_predictive(self._rows, draws, traced, rows, threads)
        values[off] = -np.inf
        return values

    def predict(self, X: ArrayLike, *, threads: int | None = None) -> NDArray[np.int64]:
        """Return the cluster that each row most probably joins, in the draw with the highest `log_joint`.

        Parameters
        ----------
        X : array_like of shape (m, D)
            The rows.
        threads : int, optional
            The number of threads. Default: one for every core.

        Returns
        -------
        ndarray of int64, shape (m,)
            Labels of that draw; the number of clusters stands for a new cluster.

        Raises
        ------
        InvalidType, InvalidArgument
            `X` or `threads` is not as described.
        """
        rows, threads = self._new_rows(X), checks.threads(threads)
        chain, draw = divmod(int(self.log_joint.argmax()), self.log_joint.shape[1])
        labels = np.ascontiguousarray(self.partitions[chain, draw])
        traced = self._traced().reshape(*self.log_joint.shape, -1)[chain, draw]
        return self._state.predict(self._rows, labels, np.ascontiguousarray(traced), rows, threads)[0]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the trace with its rows to a file, which `load` reads.

        Parameters
        ----------
        path : str or path-like
            Where to write; an existing file is replaced only when the new one is complete.

        Raises
        ------
        InvalidType, InvalidArgument
            `path` is not a path, or is empty.
        ModelFileError
            The file cannot be written.

        Examples
        --------
        >>> import os, tempfile
        >>> import numpy as np
        >>> import stickbreak as sb
        >>> X = np.random.default_rng(0).normal(size=(20, 1))
        >>> trace = sb.sample(sb.Mixture(likelihood=sb.Gaussian()), X, draws=10, warmup=0, chains=1)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "trace.safetensors")
        ...     trace.save(path)
        ...     again = sb.load(path)
        >>> bool((again.partitions == trace.partitions).all())
        True
        """
        files.write(path, *self._to_parts(), kind=files.TRACE)

    def _quantity(self, name: object) -> NDArray[np.float64]:
        known = {"log_joint": self.log_joint, "n_clusters": self.n_clusters, **self._chains.hyperparameters}
        values = known[checks.word("name", name, list(known))]
        return np.ascontiguousarray(values, dtype=np.float64)

    def _traced(self) -> NDArray[np.float64]:
        """Return the learned parameters of all draws, concatenated."""
        names = self._state.names
        if not names:
            return np.zeros(0)
        return np.ascontiguousarray(np.stack([self._chains.hyperparameters[name] for name in names], axis=-1)).ravel()

    def _new_rows(self, X: object) -> arrays.Rows:
        data = names.named(X, "X", self._column_names).data
        return arrays.rows(data, "X", likelihood=type(self.model.likelihood), n_columns=self._rows.shape[1])

    def _to_parts(self) -> tuple[files.Header, files.Arrays]:
        chains = self._chains
        header: files.Header = {
            "proposals": {name: list(found) for name, found in chains.proposals.items()},
            "exact": chains.exact,
        }
        if self._column_names is not None:
            header["column_names"] = list(self._column_names)
        found: files.Arrays = {
            "partitions": chains.partitions,
            "log_joint": chains.log_joint,
            "n_clusters": chains.n_clusters,
            "seconds": chains.seconds,
        }
        found |= {f"hyperparameters.{name}": array for name, array in chains.hyperparameters.items()}
        own_header, model_arrays = parts.to_parts(self.model, self._rows)
        header, found = header | own_header, found | model_arrays
        return header, found

    @classmethod
    def _from_parts(cls, header: files.Header, found: files.Arrays) -> "Trace":
        model, rows = parts.from_parts(header, found)
        state = _core.SampledModel.from_parts(model.likelihood._to_core(), model.process._to_core(), rows)
        proposals = checks.instance("proposals", header["proposals"], dict, "an object")
        chains = Chains(
            partitions=found["partitions"],
            log_joint=found["log_joint"],
            n_clusters=found["n_clusters"],
            hyperparameters={name: found[f"hyperparameters.{name}"] for name in state.names},
            seconds=found["seconds"],
            proposals={name: _proposals(name, counts) for name, counts in proposals.items()},
            exact=checks.flag("exact", header.get("exact", True)),
        )
        _check(chains, rows.shape[0])
        return cls(chains, state, model, rows, names.of_file(header.get("column_names"), rows.shape[1]))

    def __reduce__(self) -> tuple[Any, ...]:
        return Trace._from_parts, self._to_parts()

    def __repr__(self) -> str:
        chains, draws, n = self.partitions.shape
        kind = "" if self.exact else "search "
        columns = "" if self._column_names is None else f" with the columns {names.shown(self._column_names)}"
        return f"<Trace of {chains} {kind}chains, {draws} draws each, of partitions of {n} rows{columns}>"


def _proposals(name: str, found: object) -> Proposals:
    """Read the counts of one kind of proposal from a file; older files have only the first two."""
    counts = checks.instance(f"proposals[{name!r}]", found, list, "a list")
    fits = (isinstance(count, float) or (isinstance(count, int) and abs(count) < 2**63) for count in counts)
    if len(counts) not in (2, 4) or not all(fits):
        raise checks.invalid_argument(f"proposals[{name!r}]", repr(counts), "two or four numbers")
    return Proposals(*counts)


def _check(chains: Chains, n_rows: int) -> None:
    """Refuse inconsistent arrays from a file."""
    shape = chains.log_joint.shape
    fits = len(shape) == 2 and 0 not in shape and chains.partitions.shape == (*shape, n_rows)
    fits &= all(array.shape == shape for array in (chains.n_clusters, *chains.hyperparameters.values()))
    fits &= chains.partitions.dtype == np.int32 and chains.n_clusters.dtype == np.int64
    fits &= chains.seconds.shape == shape[:1]
    numbers = (chains.log_joint, chains.seconds, *chains.hyperparameters.values())
    fits &= all(array.dtype == np.float64 for array in numbers)
    if not fits:
        raise ValueError("arrays of draws with inconsistent shapes or types")
    labels = chains.partitions
    if n_rows == 0 or (labels.min(-1) != 0).any() or (labels.max(-1) + 1 != chains.n_clusters).any():
        raise ValueError("labels that do not match the numbers of clusters")
