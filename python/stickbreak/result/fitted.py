"""The numbers of a fit, without the rows."""

import os
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stickbreak import checks
from stickbreak._core import FitState
from stickbreak.errors import Advice, SourceError, SparsityWarning
from stickbreak.io import arrays, exposures, files, names
from stickbreak.io.levels import Coded, Levels, by_column, coded, of_file, to_header
from stickbreak.model.gamma import Gamma
from stickbreak.model.mixture import Mixture
from stickbreak.model.model import kind_of
from stickbreak.result import advising, support
from stickbreak.result.history import Record, RunnerUp, StopReason


class Fitted:
    """The numbers of a fit. `Fit` adds methods that read rows."""

    # Whether a fit with `init=fit` goes on where this one ended.
    _goes_on: ClassVar[bool] = True

    def __init__(
        self,
        state: FitState,
        *,
        stop_reason: StopReason | None = None,
        column_names: names.Names | None = None,
        levels: Levels = (),
        remarks: tuple[Advice, ...] = (),
    ) -> None:
        checks.instance("state", state, FitState, "what the core made; use stickbreak.fit or stickbreak.load")
        self._state = state
        self._stop_reason = StopReason(state.stop_reason) if stop_reason is None else stop_reason
        self._column_names = column_names
        self._levels = levels
        # Advice on the data and on the run, which cannot be derived from the state.
        self._remarks = remarks
        self._error = None if state.error is None else SourceError(state.error)
        self._model: Any = kind_of(state.process[0])._from_core(state.likelihood, state.process, state.background)

    def _advice_on(self, sparsity: int | str | None) -> SparsityWarning | None:
        """Return advice where the sparsity of its algorithm is known to hurt such a fit."""
        return None

    @property
    def n_components(self) -> int:
        """K, the number of components."""
        return self._state.n_components

    @property
    def n_occupied(self) -> int:
        """Number of components whose count is at least 0.5."""
        return int(np.count_nonzero(self.counts >= 0.5))

    @property
    def column_names(self) -> tuple[str, ...] | None:
        """The names of the D columns if the data were a table, else None.

        Methods that read rows match the columns of a table by name, in any order. They refuse a table with missing or
        new columns. Columns of arrays are matched by position.
        """
        return self._column_names

    @property
    def levels(self) -> dict[str | int, tuple[str | int | float | bool, ...]]:
        """The levels of columns of `Categorical` and `Bernoulli` by name, in the order of their codes.

        Text and numbers are sorted. Categories of pandas, `Enum` of Polars and ordered dictionaries of Arrow keep their
        order. Columns that hold codes already are left out. Methods that read rows match the values of a table with the
        levels, and refuse others. In arrays, such as those of `impute` and `sample`, code k stands for level k. Columns
        without names are called by their positions.
        """
        return by_column(self._levels, self._column_names)

    @cached_property
    def weights(self) -> NDArray[np.float64]:
        """Expected weights E[w_k] of the components, shape (K,), read-only."""
        return _read_only(self._state.weights)

    @property
    def leftover_weight(self) -> float:
        """Expected weight of all components beyond K. With `weights` and `background_weight` it sums to one."""
        return self._state.leftover_weight

    @property
    def background_weight(self) -> float:
        """Expected weight of the background; 0 without one."""
        return self._state.background_weight

    @cached_property
    def counts(self) -> NDArray[np.float64]:
        """Expected counts of the components: sums of weighted responsibilities, shape (K,), read-only.

        With `tail_count` and `background_count` they sum to the total weight of the rows.
        """
        return _read_only(self._state.counts)

    @property
    def tail_count(self) -> float:
        """Expected count of all components beyond K; 0 unless ``truncation="tail"``."""
        return 0.0 if self._has_background else self._state.tail_count

    @property
    def background_count(self) -> float:
        """Expected count of the background; 0 without one."""
        return self._state.tail_count if self._has_background else 0.0

    @property
    def _has_background(self) -> bool:
        return self._state.background is not None

    @property
    def components(self) -> dict[str, Any]:
        """Posterior parameters of the components by the names of the likelihood's arguments, read-only.

        Each array has K as its first axis and is in the units of the data. For a `Gaussian`: mean (K, D),
        mean_precision (K,), dof (K,) and scale (K, D, D), where E[precision] = dof * inverse(scale). For `Categorical`:
        pseudo_counts (K, D, L), where L is the largest number of levels; it is zero beyond the levels of a column. For
        `Columns`: a dict of such arrays for each block, by the names or positions of its columns ("age, income"). In
        directions outside `support` scale and rate are zero, and dof is that of `Support.rank` columns.

        Under stick-breaking priors components are sorted by decreasing `counts`. (Exception: the last one under
        ``truncation="stick"`` with a concentration above 1.)
        """
        return dict(self._components)

    @cached_property
    def _components(self) -> dict[str, Any]:
        return self._shown(self._state.components)

    @property
    def model(self) -> Mixture:
        """The model with all parameters that were taken from the data or estimated.

        In directions outside `support` its scale or rate is 1e-9 of the value elsewhere, so another fit under this
        model leaves out the same directions. dof counts all columns.
        """
        model: Mixture = self._model._named(self._column_names)
        return model

    @property
    def concentration(self) -> float | Gamma | None:
        """The concentration of the process, or its `Gamma` posterior if it had a `Gamma` prior; None without one."""
        found = self._state.concentration
        return Gamma._of_posterior(*found) if isinstance(found, tuple) else found

    @cached_property
    def support(self) -> support.Support:
        """The directions in which the rows of the fit vary. Constant and dependent columns add none.

        With r such directions `elbo` and log densities belong to an r-dimensional volume, in the units of the data.
        Compare them only between fits of the same support.
        """
        return support.of(self._state)

    @property
    def elbo(self) -> float:
        """The evidence lower bound of the training data in nats, with all constants.

        It belongs to the same summary of the data as `components`. It is nan if some rows have no responsibilities yet:
        after an interrupt in the first pass or in any pass of `Stochastic`, or with `max_passes=0` from "random", a
        `Fit`, "kmeans++" on more than 10000 rows or on documents, or "sequential" with several batches.
        """
        return self._state.elbo

    @property
    def objective(self) -> float:
        """The value for comparing fits of the same data, in nats: `elbo` minus a penalty on the estimated prior.

        It equals `elbo` if no parameter of the prior is estimated. Where components were sought in `search_rows`, it is
        of these rows, because starts are compared by them.
        """
        return self._state.objective_value

    @property
    def search_rows(self) -> int | None:
        """The number of rows in which components were sought; None if these are all rows with their weights.

        Copies of rows and large weights look like dense clusters. So where rows repeat more often than chance explains,
        or weights exceed 1 and are no counts of equal rows, components are sought in each distinct row once, with a
        weight of at most 1. Then passes over all rows with their weights follow, with the components and the prior that
        were found. `elbo`, `counts` and `components` are of all rows; `objective` and the records of the search in
        `history` (see `Record.n_units`) are of the search rows. See mathematics 10.12.
        """
        searched = self._state.searched
        return None if searched is None else int(searched[0])

    @property
    def bound(self) -> str:
        """The kind of the bound `elbo`. Bounds of different kinds cannot be compared; `compare` refuses them.

        "nested", "tail" or "truncated_stick" under a stick-breaking prior, "finite" under a finite Dirichlet prior,
        "documents" for a `TopicModel` of the objective "variational", "map" or "ml" for point estimates, whose `elbo`
        is not a bound of the evidence.
        """
        return self._state.bound

    @cached_property
    def _point_estimates(self) -> dict[str, Any]:
        return self._shown(self._state.point_estimates)

    def _shown(self, values: dict[str, NDArray[np.float64]]) -> dict[str, Any]:
        """Return parameters of components in the form that the likelihood shows."""
        arrays = {name: _read_only(array) for name, array in values.items()}
        return self._model.likelihood._nested(arrays, self._column_names)  # type: ignore[no-any-return]

    @property
    def point_estimates(self) -> dict[str, Any]:
        """One value for each parameter of each component, in the units of the data, read-only. K is the first axis.

        The names are mean and covariance, mean and variance, probabilities, or rate; for `Columns`, by the columns of
        each block. Variational fits give posterior
        means (of the precision for a covariance: covariance = scale / dof). Fits of the objective "map" or "ml" give
        their estimates.
        """
        return dict(self._point_estimates)

    @property
    def history(self) -> list[Record]:
        """The records of the passes, in order. With `n_init` above 1, they are those of the best start."""
        return list(self._history)

    @cached_property
    def _history(self) -> tuple[Record, ...]:
        return tuple(map(Record._from_core, self._state.history))

    @property
    def runner_up(self) -> RunnerUp | None:
        """The second best of several starts, and how far its labels agree with those of the best.

        A start that was stopped counts too. None for a single start, after `update`, for topic models, for data in
        blocks, and in files of earlier versions.
        """
        found = self._state.runner_up
        return None if found is None else RunnerUp(objective=found[0], ari=found[1])

    @property
    def stop_reason(self) -> StopReason:
        """The reason why the fit ended."""
        return self._stop_reason

    def advice(self) -> tuple[Advice, ...]:
        """Return probable mistakes about this fit, and what to try.

        The printed fit, notebooks and the command line show them too. The kinds are:

        - "support": the model leaves out columns, or there are too few rows to span the others.
        - "passes": the fit had not converged after `max_passes`.
        - "starts": a later start found a higher bound than the first.
        - "disagreement": the labels of the best two starts agree to an adjusted Rand index below 0.8 only.
        - "few_rows": half of the components or more have fewer than D^2 / 2 rows under full covariances.
        - "one_component": one component has at least 98% of the rows.
        - "many_components": counts have more components than a fifth of the rows.
        - "overdispersed": counts within components of a `Poisson` vary at least 1.25 times as much as chance allows.
        - "exposure": row totals within components vary at least 1.25 times as much as those of independent columns,
          as if rows differed in how much was counted.
        - "whole_numbers": Gaussian columns of integers, and how the fit treated them.
        - "nearly_constant": columns that have one value in at least 99% of the rows.
        - "flags": columns of two values under a Gaussian, or one-hot columns under `Bernoulli`.
        - "copies": rows are copies of others, how many, and what follows.
        - "duplicates": at least 5% of the rows repeat another one, as often as chance explains; or all rows are equal.
        - "weights": weights exceed 1, and how the fit took them; or they add up to few rows.
        - "repeated_columns": columns of many values that repeat together, in the same rows.
        - "residual_columns": columns that nearly follow from others, of which the model sees what is left.
        - "skewed": positive Gaussian columns with a skewness above 1.5 that logarithms at least halve.
        - "outliers": Gaussian rows that are far from the others, and how far.
        - "copied_columns": columns that repeat another one, under a likelihood with independent columns; codes, flags
          and counts that follow from another one.
        - "row_numbers": columns that hold row numbers.

        "overdispersed", "exposure" and all that name columns, but "residual_columns" and "support", are based on a
        sample of up to 10,000 rows; for data read in blocks, on the first block. Sparse rows are not looked at. Where a
        `Poisson` has broken overdispersed clusters into small ones, counts within components may look like Poisson
        counts.

        Returns
        -------
        tuple of Advice
            `str` gives a sentence. The first two kinds are the warnings that the fit raised. Empty if there is no
            advice.

        Examples
        --------
        >>> import numpy as np
        >>> import stickbreak as sb
        >>> X = np.random.default_rng(0).normal(size=(100, 2))
        >>> for advice in sb.fit(sb.Mixture(likelihood=sb.Gaussian()), X).advice():
        ...     print(advice)
        one component has all rows; try n_init=2, which also starts from many components, or fewer columns
        """
        return self._advice

    @cached_property
    def _advice(self) -> tuple[Advice, ...]:
        of_support = support.advice(self._state, self._column_names)
        return (*([] if of_support is None else [of_support]), *self._remarks, *advising.of_state(self))

    @property
    def error(self) -> SourceError | None:
        """The error behind the stop reason SOURCE_ERROR; None otherwise."""
        return self._error

    def save(self, path: str | os.PathLike[str], *, memo: bool = False) -> None:
        """Write the fit to a model file, which `load` reads.

        The file has the safetensors format, with a JSON header in its metadata. An existing file is replaced only when
        the new one is complete.

        Parameters
        ----------
        path : str or path-like
            Where to write.
        memo : bool
            Whether to store the batch summaries; not supported in this version.

        Raises
        ------
        InvalidType, InvalidArgument
            `path` is not a path, or is empty, or `memo` is not a flag.
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
            reason = "a fit that goes on with new data is not in this version"
            raise checks.not_supported("memo", "memo=True", reason, "memo=False")
        files.write(path, *self._to_parts())

    def _to_parts(self) -> tuple[files.Header, files.Arrays]:
        header, state_arrays = self._state.to_parts()
        found: files.Header = {"state": header, "stop_reason": self._stop_reason.value}
        if self._column_names is not None:
            found["column_names"] = list(self._column_names)
        if self._levels:
            found["levels"] = to_header(self._levels)
        if self._remarks:
            found["advice"] = advising.to_header(self._remarks)
        return found, state_arrays

    @classmethod
    def _from_parts(cls, header: files.Header, state_arrays: files.Arrays) -> Self:
        files.check_kinds(header["state"], state_arrays)
        state = FitState.from_parts(header["state"], state_arrays)
        column_names = names.of_file(header.get("column_names"), state.dimension)
        return cls(
            state,
            stop_reason=StopReason(header["stop_reason"]),
            column_names=column_names,
            levels=of_file(header.get("levels"), state.dimension),
            remarks=advising.from_header(header.get("advice", [])),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self)._from_parts, self._to_parts()

    def _rows(
        self, X: object, argument: str = "X", *, minimum: int = 0, exposure: ArrayLike | None = None
    ) -> arrays.Rows:
        known = exposures.Known(self._model.likelihood, self._column_names, self._levels, self._state.dimension)
        return exposures.rows(X, argument, exposure, known, minimum=minimum)

    def _coded(self, X: object, argument: str) -> Coded:
        """Return data with their columns in the order of the fit, and codes in place of levels."""
        return coded(X, argument, self._model.likelihood, self._column_names, self._levels)

    def _checked(self, data: object, argument: str, minimum: int = 0) -> arrays.Rows:
        """Return rows with their columns in the order of the fit."""
        kind = type(self.model.likelihood)
        return arrays.rows(data, argument, likelihood=kind, n_columns=self._state.dimension, minimum=minimum)


def _read_only(array: NDArray[np.float64]) -> NDArray[np.float64]:
    array.flags.writeable = False
    return array
