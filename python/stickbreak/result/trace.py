"""The result of `sample`: draws of partitions, and summaries of them."""

import math
import os
from functools import cached_property
from html import escape
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stickbreak import _core, checks
from stickbreak.errors import Advice, NotSupported
from stickbreak.io import arrays, files, names
from stickbreak.io.levels import Levels, by_column, of_file, to_header
from stickbreak.model.mixture import Mixture
from stickbreak.result import advising_chains, parts, support
from stickbreak.result.diagnosing import Diagnosing
from stickbreak.result.draws import Chains, ChainsStopped
from stickbreak.result.extending import Extending
from stickbreak.result.mixing import Mixing
from stickbreak.result.partitioning import LOSSES, Partitioning
from stickbreak.terminal import plain


class Trace(Diagnosing, Partitioning, Mixing, Extending):
    """Draws of partitions from their posterior, as `sample` and `load` return them.

    n is the number of rows. All logarithms are natural, and log densities are in nats, in the units of the data. A
    trace holds the rows that it was sampled for, because predictions need them; `save` writes them too, unless it is
    told not to.

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
        model: Mixture,
        sampled: tuple[_core.SampledModel, arrays.Rows] | None,
        column_names: names.Names | None = None,
        levels: Levels = (),
    ) -> None:
        self._chains = chains
        self._model = model
        self._sampled = sampled
        self._column_names = column_names
        self._levels = levels
        self._estimates: dict[str, tuple[NDArray[np.int64], int]] = {}

    @property
    def model(self) -> Mixture:
        """The model, with all parameters of its likelihood filled in."""
        return self._model._named(self._column_names)

    @property
    def column_names(self) -> tuple[str, ...] | None:
        """The names of the D columns if the data were a table; new rows are matched by name, as in `Fit`."""
        return self._column_names

    @property
    def levels(self) -> dict[str | int, tuple[str | int | float | bool, ...]]:
        """The levels of columns of `Categorical` and `Bernoulli` by name, in the order of their codes, as in `Fit`."""
        return by_column(self._levels, self._column_names)

    @property
    def partitions(self) -> NDArray[np.int32]:
        """The cluster of each row, shape (chains, draws, n): labels from 0, numbered by first appearance in each draw.

        With `keep_rows` of `sample`, only of the rows `kept_rows`, in their order and with the same labels. If it is
        larger than a gigabyte, it is a memory map of a temporary file.
        """
        return self._chains.partitions

    @property
    def kept_rows(self) -> NDArray[np.int64] | None:
        """The positions of the rows whose labels are kept; None for all rows."""
        return self._chains.kept_rows

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
        return support.of(self._with_rows("support")[0])

    @property
    def n_clusters(self) -> NDArray[np.int64]:
        """The number of clusters of each draw, shape (chains, draws)."""
        return self._chains.n_clusters

    @property
    def largest_cluster(self) -> NDArray[np.int64]:
        """The number of rows of the largest cluster of each draw, shape (chains, draws)."""
        return self._chains.largest

    def cluster_sizes(self, chain: int, draw: int) -> NDArray[np.int64]:
        """Return the number of rows of each cluster of a draw, by label: of all rows, whatever labels are kept.

        Parameters
        ----------
        chain, draw : int
            The draw, from 0.

        Returns
        -------
        ndarray of int64, shape (K,)
            They add up to n.

        Raises
        ------
        InvalidType, InvalidArgument
            There is no such chain or draw.
        """
        chains, draws = self.n_clusters.shape
        of_chain = checks.integer("chain", chain, minimum=0, maximum=chains - 1)
        index = of_chain * draws + checks.integer("draw", draw, minimum=0, maximum=draws - 1)
        first, last = self._chains.starts[index : index + 2]
        return self._chains.sizes[first:last]

    @property
    def hyperparameters(self) -> dict[str, NDArray[np.float64]]:
        """Learned parameters by name, each of shape (chains, draws); empty if none is learned."""
        return dict(self._chains.hyperparameters)

    @property
    def seconds(self) -> NDArray[np.float64]:
        """Seconds that each chain ran, warm-up included, shape (chains,)."""
        return self._chains.seconds

    @property
    def starts(self) -> tuple[str, ...] | None:
        """What each chain started from: a word of `init` of `sample`, "labels" or "random"; None in older files."""
        return None if self._chains.ran is None else self._chains.ran.starts

    @property
    def fit_seconds(self) -> float | None:
        """Seconds of the fit that chains started from, or that estimated parameters; None in older files."""
        return None if self._chains.ran is None else self._chains.ran.fit_seconds

    @property
    def stop_reason(self) -> ChainsStopped | None:
        """Why chains ended: "draws", "until", "max_seconds", "interrupted", "callback", "error"; None in old files."""
        return None if self._chains.ran is None else self._chains.ran.stop_reason

    def advice(self) -> tuple[Advice, ...]:
        """Return what speaks against trusting these draws, and what to try; empty if nothing is known.

        - "stuck": each chain stays at one value of a quantity, and these differ.
        - "rhat": R-hat of a quantity is above 1.01.
        - "ess": a quantity has fewer than 400 effective draws.
        - "still": all draws of all chains are one partition.
        - "one_start": all chains started from the same place.
        - "stopped": chains were cut short.
        - "truncation": `BlockedGibbs` often had rows in the last tenth of its components.
        - "repeats": rows are copies or values are rounded, and draws have more than three times the clusters of a fit.

        Quantities are those of `ess`. `sample` gives advice of the classes `ConvergenceWarning` and
        `TruncationWarning`, and "repeats", as warnings, too. There is no advice on draws of
        ``TreeGuided(exact=False)``, which are results of a search.

        Returns
        -------
        tuple of Advice
            Each has its `kind`, `text` and `suggestions`.

        Examples
        --------
        >>> import numpy as np
        >>> import stickbreak as sb
        >>> X = np.random.default_rng(0).normal(np.repeat([[-90.0] * 5, [90.0] * 5], 20, axis=0))
        >>> trace = sb.sample(sb.Mixture(sb.Gaussian()), X, sb.CollapsedGibbs(), init=["single", "fit"])
        >>> [advice.kind for advice in trace.advice()]
        ['stuck']
        """
        if not self.exact:
            return ()
        return tuple(advising_chains.of_chains(self._chains, self._quantities(), closed=self._is_closed))

    @property
    def _is_closed(self) -> bool:
        """Whether samplers that integrate clusters out support the model."""
        try:
            _core.check_model(self._model.likelihood._to_core(), self._model.process._to_core(), ("SplitMerge", {}))
        except NotSupported:
            return False
        return True

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

    def to_arviz(self, *, log_likelihood: bool = False) -> Any:
        """Return the draws for ArviZ by chain and draw: all quantities that `ess` knows; `log_joint` is in nats.

        Parameters
        ----------
        log_likelihood : bool
            Whether to add the group `log_likelihood`, whose "rows" is `log_likelihood` of every row, for
            `arviz.loo`. It has chains x draws x n numbers.

        Returns
        -------
        arviz.InferenceData or xarray.DataTree
            Whichever type the installed ArviZ has. The group `posterior` has the attribute `exact`: 1, or 0 for draws
            of ``TreeGuided(exact=False)``, which are biased. The group `sample_stats` has "lp", which is `log_joint`,
            and the attribute `advice`, the texts of `advice`.

        Raises
        ------
        InvalidType, InvalidArgument
            `log_likelihood` is not True or False, or its numbers do not fit in memory.
        NotSupported
            ArviZ is not installed, or as in `log_likelihood`.

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
        with_rows = checks.flag("log_likelihood", log_likelihood)
        try:
            import arviz
        except ImportError as error:
            raise NotSupported("ArviZ is not installed: pip install arviz") from error
        groups: dict[str, dict[str, NDArray[Any]]] = {
            "posterior": self._quantities(),
            "sample_stats": {"lp": self.log_joint},
        }
        if with_rows:
            groups["log_likelihood"] = {"rows": self.log_likelihood()}
        is_old = int(arviz.__version__.split(".")[0]) == 0
        found = arviz.from_dict(**groups) if is_old else arviz.from_dict(groups)
        found.posterior.attrs["exact"] = int(self._chains.exact)
        found.sample_stats.attrs["advice"] = [str(advice) for advice in self.advice()]
        return found

    def log_predictive(
        self, X: ArrayLike, *, exposure: ArrayLike | None = None, threads: int | None = None
    ) -> NDArray[np.float64]:
        r"""Return the log of the posterior predictive density of each row.

        The mean over all draws of

        .. math:: \sum_c p(c \mid \Pi) \, \frac{m(X_c \cup x)}{m(X_c)} + p(\text{new} \mid \Pi) \, m(x)

        with the exact prior weights for one more row.

        Parameters
        ----------
        X : array_like of shape (m, D)
            The rows.
        exposure : array_like of shape (m,), optional
            The exposure of each row, if `sample` had it as an argument.
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
        NotSupported
            The trace has no rows, or not the labels of all rows.
        """
        state, own = self._whole("log_predictive")
        rows, threads = self._new_rows(X, own, exposure), checks.threads(threads)
        with self._of_partitions("log_predictive"):
            values, off = state.log_predictive(own, self.partitions, self._traced(state), rows, threads)
        values[off] = -np.inf
        return values

    def predict(
        self,
        X: ArrayLike,
        *,
        loss: Literal["vi", "binder", "map"] = "vi",
        exposure: ArrayLike | None = None,
        threads: int | None = None,
    ) -> NDArray[np.int64]:
        """Return the cluster of `point_estimate` that each row most probably joins.

        Learned parameters are those of the draw that is nearest to the estimate.

        Parameters
        ----------
        X : array_like of shape (m, D)
            The rows.
        loss : {"vi", "binder", "map"}
            The loss of the estimate. Each estimate is made once.
        exposure : array_like of shape (m,), optional
            The exposure of each row, if `sample` had it as an argument.
        threads : int, optional
            The number of threads. Default: one for every core.

        Returns
        -------
        ndarray of int64, shape (m,)
            Labels of the estimate; its number of clusters stands for a new cluster.

        Raises
        ------
        InvalidType, InvalidArgument
            An argument is not as described.
        NotSupported
            The trace has no rows, or not the labels of all rows.
        NumericalError
            A row is so far from every cluster that its squared distance overflows float64.

        Warns
        -----
        BiasWarning
            The draws are those of ``TreeGuided(exact=False)``.
        """
        state, own = self._whole("predict")
        rows, threads = self._new_rows(X, own, exposure), checks.threads(threads)
        checks.word("loss", loss, LOSSES)
        self._warn_of_bias()
        labels, nearest = self._estimate(loss, threads)
        traced = self._traced(state).reshape(self.log_joint.size, -1)[nearest]
        with self._of_partitions("predict"):
            return state.predict(own, labels.astype(np.int32), np.ascontiguousarray(traced), rows, threads)[0]

    def save(self, path: str | os.PathLike[str], *, rows: bool = True) -> None:
        """Write the trace to a file, which `load` reads.

        Parameters
        ----------
        path : str or path-like
            Where to write; an existing file is replaced only when the new one is complete.
        rows : bool
            Whether the file has the rows. Without them it is smaller and does not give the data away, and what needs
            rows is not supported by what `load` returns: predictions, densities, parameters and `support`.

        Raises
        ------
        InvalidType, InvalidArgument
            `path` is not a path, or is empty; `rows` is not True or False.
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
        files.write(path, *self._to_parts(rows=checks.flag("rows", rows)), kind=files.TRACE)

    def _estimate(self, loss: str, threads: int | None) -> tuple[NDArray[np.int64], int]:
        """Return the labels of a point estimate, and the index of the draw that is nearest to it."""
        known = self._estimates.get(loss)
        if known is None:
            found = self._centre(loss, threads=threads)
            nearest = self.log_joint.argmax() if loss == "map" else self._distances(found, threads).argmin()
            known = self._estimates[loss] = found.labels, int(nearest)
        return known

    def _to_parts(self, *, rows: bool = True) -> tuple[files.Header, files.Arrays]:
        header, found = self._chains.to_parts()
        if self._column_names is not None:
            header["column_names"] = list(self._column_names)
        if self._levels:
            header["levels"] = to_header(self._levels)
        own = None if self._sampled is None or not rows else self._sampled[1]
        own_header, model_arrays = parts.to_parts(self._model, own)
        return header | own_header, found | model_arrays

    @classmethod
    def _from_parts(cls, header: files.Header, found: files.Arrays) -> "Trace":
        model, rows = parts.from_parts(header, found)
        column_names, levels = header.get("column_names"), header.get("levels")
        if rows is None:
            chains = Chains.from_parts(header, found, None)
            return cls(chains, model, None, names.of_file(column_names, None), of_file(levels, None))
        state = _core.SampledModel.from_parts(model.likelihood._to_core(), model.process._to_core(), rows)
        chains = Chains.from_parts(header, found, rows.shape[0])
        if set(state.names) != set(chains.hyperparameters):
            raise ValueError("learned parameters that are not those of the model")
        n_columns = rows.shape[1]
        return cls(chains, model, (state, rows), names.of_file(column_names, n_columns), of_file(levels, n_columns))

    def __reduce__(self) -> tuple[Any, ...]:
        return Trace._from_parts, self._to_parts()

    def __repr__(self) -> str:
        chains, draws, kept = self.partitions.shape
        kind = "" if self.exact else "search "
        of = f"{self._chains.n_rows} rows" + ("" if self.kept_rows is None else f", with the labels of {kept}")
        columns = "" if self._column_names is None else f" with the columns {names.shown(self._column_names)}"
        line = f"<Trace of {chains} {kind}chains, {draws} draws each, of partitions of {of}{columns}>"
        return "\n".join([line, *(f"advice: {advice}" for advice in self.advice())])

    def _repr_html_(self) -> str:
        line, *advice = repr(self).split("\n")
        return "<div>" + "".join(f"<p>{escape(plain(text))}</p>" for text in (line, *advice)) + "</div>"

    def _with_chains(self, chains: Chains) -> "Trace":
        return Trace(chains, self._model, self._sampled, self._column_names, self._levels)
