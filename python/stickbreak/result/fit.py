"""The result of a fit."""

from functools import partial
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stickbreak import checks
from stickbreak.io import arrays, frames, names
from stickbreak.result import by_chunk, combining, comparing, display, responsibilities, support
from stickbreak.result.densities import Densities
from stickbreak.result.drawing import Drawing
from stickbreak.result.imputing import Imputing
from stickbreak.result.tables import Tabular
from stickbreak.result.updating import Updating
from stickbreak.shards.pieces import is_collection


class Fit(Densities, Drawing, Imputing, Tabular, Updating):
    """A fitted mixture, as `fit` and `load` return it. It is immutable and does not hold the data.

    K is the number of components, D the number of columns, n the number of rows. Logarithms are natural, so bounds and
    log densities are in nats.

    Methods that read rows take an array, a memory map, a table or nested lists, and sparse arrays if `fit` takes them.
    Tables are matched by `column_names`. For data in blocks pass one block after another: ``[fit.predict(block) for
    block in blocks()]`` (bounds of `evaluate` do not add up). The methods raise InvalidType or InvalidArgument if `X`
    has values that are not real numbers, has other columns than the fit, or holds NaN or infinity. `threads` is the
    number of threads, by default one for every core. It never changes the result.

    `predict`, `predict_proba`, `log_predictive` and `outlier_scores` of an array or a data frame of dask return one of
    the same chunks, which dask computes when it is asked to.

    Examples
    --------
    >>> import copy
    >>> import numpy as np
    >>> import stickbreak as sb
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> model = sb.Mixture(likelihood=sb.Gaussian(), process=sb.FiniteDirichlet(n_components=3))
    >>> fit = sb.fit(model, X, sb.Full(max_passes=5))
    >>> fit.n_components, fit.bound, fit.leftover_weight
    (3, 'finite', 0.0)
    >>> copy.deepcopy(fit).elbo == fit.elbo
    True
    """

    @property
    def classes(self) -> NDArray[np.int64]:
        """The class in `labels` of each component, shape (K,); -1 for free ones, and for all without labels."""
        return self._state.classes

    def compare(self, other: "Fit") -> float:
        """Return the bound of this fit minus that of another fit of the same data.

        Only bounds of the same kind can be compared. The bound of a truncated process may exceed the evidence of the
        untruncated one, and the value of a point estimate is not a bound. With equal kinds, the fit with the higher
        bound is the better approximation, or the better model. Bounds with different `labels` do not compare. They are
        refused if their classes differ; a fit does not keep the labels of rows.

        Parameters
        ----------
        other : Fit
            A fit of the same data.

        Returns
        -------
        float
            The difference in nats; positive if this fit is the better one.

        Raises
        ------
        InvalidType
            `other` is not a fit.
        InvalidArgument
            A fit has no bound (its `elbo` is nan); `other` has another kind of bound, or was fitted to another number
            of rows or columns, another sum of weights or another `support`; or both are "map" and have different kinds
            of likelihoods or processes, whose densities are per unit of different parameters.

        Examples
        --------
        >>> import numpy as np
        >>> import stickbreak as sb
        >>> X = np.random.default_rng(0).normal([[-5.0], [5.0]], size=(2, 100)).reshape(-1, 1)
        >>> model = sb.Mixture(likelihood=sb.Gaussian(), process=sb.DirichletProcess())
        >>> one, two = (sb.fit(model, X, sb.Full(), n_components=k) for k in (1, 2))
        >>> two.compare(one) > 0
        True
        """
        comparing.check(self, checks.instance("other", other, Fit, "a Fit"))
        return self.elbo - other.elbo

    def evaluate(
        self,
        X: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        exposure: ArrayLike | None = None,
        threads: int | None = None,
    ) -> float:
        r"""Return the evidence lower bound of rows under this fit.

        It makes one local step with the sparsity of the fit, and evaluates the bound at the components and weights of
        the fit:

        .. math:: \sum_{n,k} \omega_n r_{nk} \{E \log w_k + E \log p(x_n \mid \phi_k) - \log r_{nk}\}
                  - \sum_k \mathrm{KL}(q(\phi_k) \Vert p) - \mathrm{KL}(q(w) \Vert p)

        On the training data with its weights it is not below `elbo`, up to the margin and the rounding of scores (1e-7
        of their size for float32 rows). The exception is `max_passes=0` from responsibilities with more components per
        row than the fit keeps.

        Parameters
        ----------
        X : array_like of shape (n, D)
            The rows, at least one. If values may be missing, rows without any value are left out. Rows off `support`
            are left out too, with a `SupportWarning`.
        sample_weight : array_like of shape (n,), optional
            Weights of the rows, at least 0, not all zero.
        exposure : array_like of shape (n,), optional
            The exposure of each row, if `fit` had it as an argument.
        threads : int, optional
            The number of threads.

        Returns
        -------
        float
            The bound in nats.

        Raises
        ------
        InvalidType, InvalidArgument
            `X`, `sample_weight` or `threads` is not as described, no row of positive weight has a value, or none lies
            on `support`.
        NumericalError
            A row is so far from every component that its log weights overflow float64.

        Examples
        --------
        >>> import numpy as np
        >>> import stickbreak as sb
        >>> X = np.random.default_rng(0).normal(size=(100, 2))
        >>> model = sb.Mixture(likelihood=sb.Gaussian(), process=sb.DirichletProcess())
        >>> fit = sb.fit(model, X, sb.Full(max_passes=5), n_components=3)
        >>> fit.evaluate(X) >= fit.elbo - 1e-9 * abs(fit.elbo)
        True
        """
        if is_collection(X):
            return by_chunk.bound(self._state, partial(self.evaluate, threads=threads), X, sample_weight, exposure)
        rows = self._rows(X, minimum=1, exposure=exposure)
        weights = arrays.sample_weights(sample_weight, rows.shape[0])
        if self._state.missing == "marginalize":
            weights = arrays.without_empty_rows(weights, arrays.rows_without_values(rows), "X", "bound")
        threads = checks.threads(threads)
        with names.naming(self.column_names):
            support.warn_of_rows(self._state, rows, "they have no part in the bound", threads, weights)
            return self._state.evaluate(rows, weights, threads)

    def predict(
        self, X: ArrayLike, *, exposure: ArrayLike | None = None, threads: int | None = None
    ) -> NDArray[np.int64]:
        """Return the most probable component of each row; ties go to the lowest index, and -1 is the background.

        Parameters
        ----------
        X : array_like of shape (n, D)
            The rows.
        exposure : array_like of shape (n,), optional
            The exposure of each row, if `fit` had it as an argument.
        threads : int, optional
            The number of threads.

        Returns
        -------
        ndarray of int64, shape (n,)
            Positions from 0 to K - 1; -1 for rows that are more probably in the background than in any component.

        Raises
        ------
        InvalidType, InvalidArgument
            `X` or `threads` is not as described.
        NumericalError
            A row is so far from every component that its log weights overflow float64.

        Examples
        --------
        >>> import numpy as np
        >>> import stickbreak as sb
        >>> X = np.random.default_rng(0).normal(size=(100, 2))
        >>> model = sb.Mixture(likelihood=sb.Gaussian(), process=sb.DirichletProcess())
        >>> fit = sb.fit(model, X, sb.Full(max_passes=5), n_components=3)
        >>> bool((fit.predict(X) == fit.predict_proba(X).argmax(axis=1)).all())
        True
        """
        if is_collection(X):
            labels: NDArray[np.int64] = by_chunk.mapped(self.predict, X, np.int64, exposure, threads=threads)
            return labels
        with names.naming(self.column_names):
            return self._state.predict(*self._projected(X, threads, exposure))

    @overload
    def predict_proba(
        self,
        X: ArrayLike,
        *,
        sparse: Literal[False] = False,
        tail: bool = False,
        exposure: ArrayLike | None = None,
        threads: int | None = None,
    ) -> NDArray[np.float64]: ...

    @overload
    def predict_proba(
        self,
        X: ArrayLike,
        *,
        sparse: bool,
        tail: bool = False,
        exposure: ArrayLike | None = None,
        threads: int | None = None,
    ) -> Any: ...

    def predict_proba(
        self,
        X: ArrayLike,
        *,
        sparse: bool = False,
        tail: bool = False,
        exposure: ArrayLike | None = None,
        threads: int | None = None,
    ) -> Any:
        r"""Return the responsibilities of the components for each row.

        They are

        .. math:: r_{nk} \propto \exp\{E \log w_k + E \log p(x_n \mid \phi_k)\}

        Parameters
        ----------
        X : array_like of shape (n, D)
            The rows.
        sparse : bool
            Whether to return at most L components per row, normalised, where L is the `sparsity` of the fit.
        tail : bool
            Whether to add a last column for the background, or for all components beyond K under
            ``truncation="tail"``. Otherwise the K responsibilities sum to one.
        exposure : array_like of shape (n,), optional
            The exposure of each row, if `fit` had it as an argument.
        threads : int, optional
            The number of threads.

        Returns
        -------
        ndarray of float64, shape (n, K) or (n, K + 1), or scipy.sparse.csr_array of the same shape
            Rows with sum one.

        Raises
        ------
        InvalidType, InvalidArgument
            `X`, `sparse`, `tail` or `threads` is not as described.
        NotSupported
            `sparse` is True and the package scipy is not installed, or `tail` is True and the fit has no tail.
        NumericalError
            A row is so far from every component that its log weights overflow float64.

        Examples
        --------
        >>> import numpy as np
        >>> import stickbreak as sb
        >>> X = np.random.default_rng(0).normal(size=(100, 2))
        >>> model = sb.Mixture(likelihood=sb.Gaussian(), process=sb.DirichletProcess())
        >>> fit = sb.fit(model, X, sb.Full(max_passes=5), n_components=3)
        >>> responsibilities = fit.predict_proba(X)
        >>> responsibilities.shape, bool(np.allclose(responsibilities.sum(axis=1), 1))
        ((100, 3), True)
        """
        if checks.flag("tail", tail) and self._state.bound != "tail" and not self._has_background:
            reason = 'only fits with a background or under truncation="tail" give rows to something beyond K'
            raise checks.not_supported("tail", "tail=True for this fit", reason, "tail=False")
        form = responsibilities.sparse if checks.flag("sparse", sparse) else responsibilities.dense
        if is_collection(X):
            if form is responsibilities.sparse:
                raise checks.not_supported(
                    "sparse", "sparse=True for a collection", "its chunks are dense", "sparse=False"
                )
            width = self.n_components + tail
            return by_chunk.mapped(self.predict_proba, X, np.float64, exposure, width=width, tail=tail, threads=threads)
        with names.naming(self.column_names):
            rows, threads = self._projected(X, threads, exposure)
            return form(self._state, rows, tail, threads)

    def log_predictive(
        self,
        X: ArrayLike,
        *,
        plug_in: bool = False,
        exposure: ArrayLike | None = None,
        threads: int | None = None,
    ) -> NDArray[np.float64]:
        r"""Return the log posterior predictive density of each row.

        .. math:: \log \Big\{ \sum_{k \le K} E_q[w_k] \, p(x \mid \lambda_k) + E_q[w_{>K}] \, p(x \mid \lambda_0) \Big\}

        The last term is the prior predictive with the weight `leftover_weight` ([1]_, Eq. 7, with the weight under q,
        so that the density integrates to one). A background adds its density with the weight `background_weight`.

        Parameters
        ----------
        X : array_like of shape (n, D)
            The rows.
        plug_in : bool
            Whether to use the densities of components at `point_estimates`, with normalised `weights`. Fits of the
            objective "map" or "ml" always do.
        exposure : array_like of shape (n,), optional
            The exposure of each row, if `fit` had it as an argument.
        threads : int, optional
            The number of threads.

        Returns
        -------
        ndarray of float64, shape (n,)
            Log densities in nats, in the units of the data, of the values that are not missing. Rows off `support` have
            minus infinity, with a `SupportWarning`.

        Raises
        ------
        InvalidType, InvalidArgument
            `X`, `plug_in` or `threads` is not as described.
        NumericalError
            A row is so far from every component that its log weights overflow float64.

        References
        ----------
        .. [1] Kurihara, K., Welling, M. and Vlassis, N. (2006). Accelerated variational Dirichlet process mixtures.
               Advances in Neural Information Processing Systems 19.

        Examples
        --------
        >>> import numpy as np
        >>> import stickbreak as sb
        >>> X = np.random.default_rng(0).normal(size=(100, 2))
        >>> model = sb.Mixture(likelihood=sb.Gaussian(), process=sb.DirichletProcess())
        >>> fit = sb.fit(model, X, sb.Full(max_passes=5), n_components=3)
        >>> near, far = fit.log_predictive([[0.0, 0.0], [50.0, 50.0]])
        >>> bool(near > far)
        True
        """
        is_plug_in = checks.flag("plug_in", plug_in) or self._state.objective != "variational"
        if is_collection(X):
            options = {"plug_in": plug_in, "threads": threads}
            found: NDArray[np.float64] = by_chunk.mapped(self.log_predictive, X, np.float64, exposure, **options)
            return found
        rows, threads = self._rows(X, exposure=exposure), checks.threads(threads)
        with names.naming(self.column_names):
            support.warn_of_rows(self._state, rows, "their log density is minus infinity", threads)
            return self._state.log_predictive(rows, is_plug_in, threads)

    def combine(
        self,
        X: ArrayLike,
        *,
        n_clusters: int | None = None,
        sample_weight: ArrayLike | None = None,
        threads: int | None = None,
    ) -> combining.Clusters:
        r"""Join components that overlap into clusters.

        A cluster that is not Gaussian is fitted by several components that share rows. Joining clusters a and b removes
        the entropy

        .. math:: G_{ab} = \sum_n \omega_n \{h(r_{na}) + h(r_{nb}) - h(r_{na} + r_{nb})\}, \quad h(r) = -r \log r

        ([1]_, section 3). The overlap of a pair is this entropy divided by its value if no row distinguished the two,
        :math:`N_a \log(1 + N_b / N_a) + N_b \log(1 + N_a / N_b)`. The pair with the largest overlap is joined first.

        Parameters
        ----------
        X : array_like of shape (n, D)
            The rows, those of the fit or a sample of them.
        n_clusters : int, optional
            Number of clusters, from 1 to the number of components with rows. By default the rows of Gaussian components
            decide. Components that look like pieces of one shape are joined, unless the density between them has a deep
            valley or a dip. Other components are joined only if there is hardly a valley. Clusters are never joined
            over a valley below a tenth of the lower of its two peaks. Counts, flags, codes and `ZeroMeanGaussian`
            have no such borders: joins end at the largest fall of the overlap, from at least 0.01 to a tenth or less,
            or else when the overlap is below 0.15. `Clusters.cut` gives another number.
        sample_weight : array_like of shape (n,), optional
            Weights of the rows, at least 0, not all zero.
        threads : int, optional
            The number of threads.

        Returns
        -------
        Clusters
            The cluster of each component, the entropy that each join removes, the dendrogram, and `predict`.

        Raises
        ------
        InvalidType, InvalidArgument
            An argument is not as described.

        References
        ----------
        .. [1] Baudry, J.-P., Raftery, A. E., Celeux, G., Lo, K. and Gottardo, R. (2010). Combining mixture components
               for clustering. Journal of Computational and Graphical Statistics 19.

        Examples
        --------
        >>> import numpy as np
        >>> import stickbreak as sb
        >>> rng = np.random.default_rng(0)
        >>> squares = rng.uniform(-1, 1, size=(2000, 2))
        >>> squares += np.repeat([[0.0, 0.0], [4.0, 0.0]], 1000, axis=0)
        >>> fit = sb.fit(sb.Mixture(likelihood=sb.Gaussian()), squares)
        >>> clusters = fit.combine(squares)
        >>> fit.n_occupied > 2, clusters.n_clusters
        (True, 2)
        >>> labels = clusters.predict(squares)
        """
        if n_clusters is not None:
            n_clusters = checks.integer("n_clusters", n_clusters, minimum=1)
        # Some tables can be read only once.
        X = frames.understood(X, "X")
        rows = self._rows(X, minimum=1)
        weights = arrays.sample_weights(sample_weight, rows.shape[0])
        if self._has_background:
            # Rows of the background say nothing about the borders of clusters.
            inside = 1.0 - self.predict_proba(X, tail=True, threads=threads)[:, -1]
            weights = inside if weights is None else weights * inside
        with names.naming(self.column_names):
            return combining.combined(self, rows, weights, n_clusters, checks.threads(threads))

    def _projected(
        self, X: object, threads: object, exposure: ArrayLike | None = None
    ) -> tuple[arrays.Rows, int | None]:
        """Return rows and threads, and warn of rows off the support, for which projections are used."""
        rows, checked = self._rows(X, exposure=exposure), checks.threads(threads)
        support.warn_of_rows(self._state, rows, "they are projected onto it", checked, stacklevel=4)
        return rows, checked

    def __repr__(self) -> str:
        return display.text(self)

    def _repr_html_(self) -> str:
        return display.html(self)
