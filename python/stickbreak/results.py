"""The result of a fit."""

import os
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stickbreak import _core, arrays, checks, files
from stickbreak.errors import InternalError, ModelFileError, NotSupported, SourceError, StickbreakError
from stickbreak.history import Record, StopReason
from stickbreak.likelihoods import Likelihood
from stickbreak.model import Mixture
from stickbreak.processes import Process

if TYPE_CHECKING:
    from stickbreak._core import State

# Those of a model file, beside the parameters.
_ARRAYS = ("counts", "statistics", "entropies", "origin")
# Rows whose dense responsibilities pass through index and value arrays at a time.
_ROWS_AT_A_TIME = 65_536


class Fit:
    """A fitted mixture, as `fit` and `load` return it. It does not change, and it does not hold the data.

    K is the number of components, D the number of columns, n the number of rows. All logarithms are natural, so
    bounds and log densities are in nats. Methods that read rows take what `fit` takes as data, and raise InvalidType
    or InvalidArgument where `X` is not made of real numbers, has another number of columns than the fit, or holds NaN
    or infinity. Their argument `threads` is the number of threads, by default one for every core; it never changes
    the result.

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

    def __init__(self, state: "State", *, stop_reason: StopReason | None = None) -> None:
        checks.instance("state", state, _core.State, "what the core made; use stickbreak.fit or stickbreak.load")
        self._state = state
        self._stop_reason = StopReason(state.stop_reason) if stop_reason is None else stop_reason
        self._model = Mixture(
            likelihood=Likelihood._from_core(*state.likelihood), process=Process._from_core(*state.process)
        )

    @property
    def n_components(self) -> int:
        """K: the number of components, the length of every array that has one entry for each."""
        return self._state.n_components

    @property
    def n_occupied(self) -> int:
        """The number of components whose count is at least 0.5."""
        return int(np.count_nonzero(self.counts >= 0.5))

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        """Expected weights E[w_k] of the components, shape (K,), read-only."""
        return _read_only(self._state.weights)

    @property
    def leftover_weight(self) -> float:
        """Expected weight of all components beyond K; `weights` and this have sum one."""
        return self._state.leftover_weight

    @cached_property
    def counts(self) -> NDArray[np.float64]:
        """Expected counts of the components: sums of weighted responsibilities, shape (K,), read-only."""
        return _read_only(self._state.counts)

    @property
    def components(self) -> dict[str, NDArray[np.float64]]:
        """Posterior parameters of the components by the names of the likelihood's arguments, read-only.

        Each array has K as its first axis and is in the units of the data: for a `Gaussian` mean (K, D),
        mean_precision (K,), dof (K,) and scale (K, D, D), where E[precision] = dof * inverse(scale).
        """
        return dict(self._components)

    @cached_property
    def _components(self) -> dict[str, NDArray[np.float64]]:
        return {name: _read_only(array) for name, array in self._state.components.items()}

    @property
    def model(self) -> Mixture:
        """The model with every parameter that followed the data filled in."""
        return self._model

    @property
    def concentration(self) -> float:
        """The concentration of the process."""
        return self._state.concentration

    @property
    def elbo(self) -> float:
        """The evidence lower bound of the training data in nats, with all constants.

        It belongs to the same summary of the data as `components`. nan where the responsibilities of some rows are
        not known yet: interrupted in the first pass, or `max_passes=0` with a start that gives only a part of the
        rows a component ("random", a `Fit`, and "kmeans++" on more than 10000 rows).
        """
        return self._state.elbo

    @property
    def bound(self) -> str:
        """What `elbo` is a bound of: "nested" or "finite". Values of different kinds must not be compared."""
        return self._state.bound

    @property
    def history(self) -> list[Record]:
        """The records of the passes, in order; with `n_init` above 1 those of the run that was kept."""
        return list(self._history)

    @cached_property
    def _history(self) -> tuple[Record, ...]:
        return tuple(map(Record._from_core, self._state.history))

    @property
    def stop_reason(self) -> StopReason:
        """Why the fit ended."""
        return self._stop_reason

    @property
    def error(self) -> SourceError | None:
        """The error behind the stop reason SOURCE_ERROR; None otherwise."""
        return None if self._state.error is None else SourceError(self._state.error)

    def evaluate(self, X: ArrayLike, *, sample_weight: ArrayLike | None = None, threads: int | None = None) -> float:
        r"""Return the evidence lower bound of rows under this fit.

        One local step with the sparsity of the fit, components and weights unchanged, and then the bound for
        factors that need not be optimal:

        .. math:: \sum_{n,k} \omega_n r_{nk} \{E \log w_k + E \log p(x_n \mid \phi_k) - \log r_{nk}\}
                  - \sum_k \mathrm{KL}(q(\phi_k) \Vert p) - \mathrm{KL}(q(w) \Vert p)

        On the training data with its weights it is not below `elbo`, but after `max_passes=0` from responsibilities
        with more components a row than the fit keeps.

        Parameters
        ----------
        X : array_like of shape (n, D)
            The rows.
        sample_weight : array_like of shape (n,), optional
            Weights of the rows, at least 0, not all zero.
        threads : int, optional
            The number of threads.

        Returns
        -------
        float
            The bound in nats.

        Raises
        ------
        InvalidType, InvalidArgument
            `X`, `sample_weight` or `threads` is not as described.

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
        rows = self._rows(X)
        return self._state.evaluate(rows, arrays.sample_weights(sample_weight, rows.shape[0]), checks.threads(threads))

    def predict(self, X: ArrayLike, *, threads: int | None = None) -> NDArray[np.int64]:
        """Return the most probable component of each row; the lowest index where several are equal.

        Parameters
        ----------
        X : array_like of shape (n, D)
            The rows.
        threads : int, optional
            The number of threads.

        Returns
        -------
        ndarray of int64, shape (n,)
            Positions from 0 to K - 1.

        Raises
        ------
        InvalidType, InvalidArgument
            `X` or `threads` is not as described.

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
        return self._state.predict(self._rows(X), checks.threads(threads))

    @overload
    def predict_proba(
        self, X: ArrayLike, *, sparse: Literal[False] = False, threads: int | None = None
    ) -> NDArray[np.float64]: ...

    @overload
    def predict_proba(self, X: ArrayLike, *, sparse: bool, threads: int | None = None) -> Any: ...

    def predict_proba(self, X: ArrayLike, *, sparse: bool = False, threads: int | None = None) -> Any:
        r"""Return the responsibilities of the components for each row.

        The local step at the components and weights of the fit:

        .. math:: r_{nk} \propto \exp\{E \log w_k + E \log p(x_n \mid \phi_k)\}

        Parameters
        ----------
        X : array_like of shape (n, D)
            The rows.
        sparse : bool
            Whether to keep only as many components a row as the fit did, normalised among themselves.
        threads : int, optional
            The number of threads.

        Returns
        -------
        ndarray of float64, shape (n, K), or scipy.sparse.csr_array of the same shape
            Rows with sum one.

        Raises
        ------
        InvalidType, InvalidArgument
            `X`, `sparse` or `threads` is not as described.
        NotSupported
            `sparse` is True and the package scipy is not installed.

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
        if checks.flag("sparse", sparse):
            scipy_sparse = _scipy_sparse()
            indices, values = self._state.responsibilities(self._rows(X), self._state.sparsity, checks.threads(threads))
            n_rows, n_kept = values.shape
            starts = np.arange(0, n_rows * n_kept + 1, n_kept)
            shape = (n_rows, self.n_components)
            matrix = scipy_sparse.csr_array((values.ravel(), indices.ravel(), starts), shape=shape)
            matrix.sort_indices()
            return matrix
        return self._dense_responsibilities(X, checks.threads(threads))

    def _dense_responsibilities(self, X: ArrayLike, threads: int | None) -> NDArray[np.float64]:
        rows = self._rows(X)
        dense = np.zeros((rows.shape[0], self.n_components))
        for begin in range(0, rows.shape[0], _ROWS_AT_A_TIME):
            part = slice(begin, begin + _ROWS_AT_A_TIME)
            indices, values = self._state.responsibilities(rows[part], None, threads)
            np.put_along_axis(dense[part], indices, values, axis=1)
        return dense

    def log_predictive(self, X: ArrayLike, *, threads: int | None = None) -> NDArray[np.float64]:
        r"""Return the log posterior predictive density of each row.

        .. math:: \log \Big\{ \sum_{k \le K} E_q[w_k] \, p(x \mid \lambda_k) + E_q[w_{>K}] \, p(x \mid \lambda_0) \Big\}

        The last term, present under a `DirichletProcess`, is the prior predictive with the left-over weight
        ([1]_, Eq. 7, its left-over weight taken under q so that the density integrates to one).

        Parameters
        ----------
        X : array_like of shape (n, D)
            The rows.
        threads : int, optional
            The number of threads.

        Returns
        -------
        ndarray of float64, shape (n,)
            Log densities in nats, in the units of the data.

        Raises
        ------
        InvalidType, InvalidArgument
            `X` or `threads` is not as described.

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
        return self._state.log_predictive(self._rows(X), checks.threads(threads))

    def sample(self, n: int, *, seed: int = 0) -> NDArray[np.float64]:
        """Draw rows from the posterior predictive distribution, the density of `log_predictive`.

        Parameters
        ----------
        n : int
            The number of rows.
        seed : int
            Decides the draw; 0 to 2**64 - 1.

        Returns
        -------
        ndarray of float64, shape (n, D)
            Independent rows.

        Raises
        ------
        InvalidType, InvalidArgument
            `n` or `seed` is not as described.

        Examples
        --------
        >>> import numpy as np
        >>> import stickbreak as sb
        >>> X = np.random.default_rng(0).normal(size=(100, 2))
        >>> model = sb.Mixture(likelihood=sb.Gaussian(), process=sb.DirichletProcess())
        >>> fit = sb.fit(model, X, sb.Full(max_passes=5), n_components=3)
        >>> fit.sample(4, seed=1).shape
        (4, 2)
        """
        return self._state.sample(checks.integer("n", n, minimum=0), checks.seed(seed))

    def save(self, path: str | os.PathLike[str], *, memo: bool = False) -> None:
        """Write the fit to a model file, which `load` reads.

        The file is in the safetensors format, with a JSON header in its metadata. An existing file is replaced only
        once the new one is complete.

        Parameters
        ----------
        path : str or path-like
            Where to write.
        memo : bool
            Whether to keep what each batch remembers; not in this version.

        Raises
        ------
        InvalidType
            `path` is not a path, or `memo` is not a flag.
        NotSupported
            `memo` is True.
        ModelFileError
            The file cannot be written.

        Examples
        --------
        >>> import os, tempfile
        >>> import numpy as np
        >>> import stickbreak as sb
        >>> X = np.random.default_rng(0).normal(size=(100, 2))
        >>> model = sb.Mixture(likelihood=sb.Gaussian(), process=sb.DirichletProcess())
        >>> fit = sb.fit(model, X, sb.Full(max_passes=5), n_components=3)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "model.safetensors")
        ...     fit.save(path)
        ...     again = sb.load(path)
        >>> again.elbo == fit.elbo
        True
        """
        if checks.flag("memo", memo):
            raise NotSupported("memo=True: a fit that goes on with new data is not in this version; use memo=False")
        files.write(path, *self._to_parts())

    def _to_parts(self) -> tuple[files.Header, files.Arrays]:
        header, state_arrays = self._state.to_parts()
        return {"state": header, "stop_reason": self._stop_reason.value}, state_arrays

    @classmethod
    def _from_parts(cls, header: files.Header, state_arrays: files.Arrays) -> "Fit":
        _check_kinds(header["state"], state_arrays)
        state = _core.State.from_parts(header["state"], state_arrays)
        return cls(state, stop_reason=StopReason(header["stop_reason"]))

    def __reduce__(self) -> tuple[Any, ...]:
        return Fit._from_parts, self._to_parts()

    def _rows(self, X: object) -> "_core.Rows":
        return arrays.rows(X, n_columns=self._state.dimension, minimum=0)

    def __repr__(self) -> str:
        likelihood, process = (type(part).__name__ for part in (self.model.likelihood, self.model.process))
        passes = len(self._history)
        return (
            f"<Fit of Mixture({likelihood}, {process}): {self._state.n_rows} rows x {self._state.dimension}, "
            f"{self.n_components} components ({self.n_occupied} occupied), elbo {self.elbo:.6f} nats ({self.bound}), "
            f"{self._stop_reason.value} after {passes} {'pass' if passes == 1 else 'passes'}>"
        )


def load(path: str | os.PathLike[str]) -> Fit:
    """Read a fit from a model file that `Fit.save` wrote.

    Parameters
    ----------
    path : str or path-like
        Where the file is.

    Returns
    -------
    Fit
        The fit; everything that it computes equals what the saved one computes.

    Raises
    ------
    InvalidType
        `path` is not a path.
    ModelFileError
        The file is missing, is no model file, is damaged, or needs a newer stickbreak.

    Examples
    --------
    >>> import stickbreak as sb
    >>> try:
    ...     sb.load("no-such-file.safetensors")
    ... except sb.ModelFileError as error:
    ...     print(error)
    no-such-file.safetensors: there is no such file
    """
    parts = files.read(path)
    try:
        return Fit._from_parts(*parts)
    except InternalError:
        raise
    except (StickbreakError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise ModelFileError(f"{os.fspath(path)}: the model in the file is damaged: {files.said(error)}") from error


def _check_kinds(state: object, state_arrays: files.Arrays) -> None:
    """Refuse parameters and arrays of kinds that the core does not read; what it does not know it leaves alone."""
    header = checks.instance("state", state, dict, "an object")
    for role in ("likelihood_parameters", "process_parameters"):
        for name, value in checks.instance(role, header[role], dict, "an object").items():
            if isinstance(value, bool) or not isinstance(value, int | float | str | None):
                raise checks.invalid_type(f"{role}.{name}", checks.describe(value), "a number or a word")
    for name, array in state_arrays.items():
        if (name in _ARRAYS or name.startswith("likelihood.")) and array.dtype != np.float64:
            raise checks.invalid_type(name, checks.describe(array), "an array of float64")


def _read_only(array: NDArray[np.float64]) -> NDArray[np.float64]:
    array.flags.writeable = False
    return array


def _scipy_sparse() -> ModuleType:
    try:
        return import_module("scipy.sparse")
    except ImportError as error:
        raise NotSupported("predict_proba(sparse=True) needs the package scipy: pip install scipy") from error
