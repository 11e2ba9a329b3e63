"""The result of `hierarchy`: a binary tree over rows with potentials."""

import os
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stickbreak import _core, checks
from stickbreak.errors import InvalidArgument
from stickbreak.io import arrays, files, names
from stickbreak.io.levels import Levels, by_column, coded, of_file, to_header
from stickbreak.io.room import fitting
from stickbreak.model.mixture import Mixture
from stickbreak.result import parts


class Hierarchy:
    r"""A binary tree over rows, as `hierarchy` and `load` return it.

    Nodes 0 to n - 1 are the rows, and node n + k is made by join k, so children come before their parents and the root
    is the last node. Joins are not in the order in which clusters were merged; those of `linkage` are sorted by height.
    Each node has the weight h of its rows as one cluster and the potential

    .. math:: \phi = h + \phi_l \phi_r, \qquad \phi = h \text{ for a row,}

    the sum over all tree-consistent partitions of the rows below it. Logarithms are natural, and densities are in the
    units of the data. All values are conditional on the `hyperparameters` with which the tree was built.

    Examples
    --------
    >>> import numpy as np
    >>> import stickbreak as sb
    >>> X = np.random.default_rng(0).normal([[-8.0], [8.0]], size=(2, 10)).reshape(-1, 1)
    >>> tree = sb.hierarchy(sb.Mixture(likelihood=sb.Gaussian(prior="rule")), X)
    >>> len(set(tree.cut().tolist()))
    2
    >>> tree.linkage.shape
    (19, 4)
    """

    def __init__(
        self,
        state: _core.HierarchyState,
        model: Mixture,
        rows: arrays.Rows,
        column_names: names.Names | None = None,
        levels: Levels = (),
    ) -> None:
        self._state = state
        self._model = model
        self._rows = rows
        self._column_names = column_names
        self._levels = levels

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
    def hyperparameters(self) -> dict[str, float]:
        """The values of the process with which the tree was built, by name; its results are conditional on them.

        They are "concentration" (or "mass") and "discount", if the process has these parameters: fixed values, or draws
        if they have a prior. "log_u" is the auxiliary variable u, if the process has one: a draw given the clusters of
        the previous tree, or, for the first tree, given about log n clusters of equal size. `PitmanYor` also has
        "log_mass", the logarithm of the random mass of its measure.
        """
        strength, discount, *auxiliary = self._state.state
        process = self.model.process
        found = {"mass" if hasattr(process, "mass") else "concentration": strength}
        if hasattr(process, "discount"):
            found["discount"] = discount
        if auxiliary:
            found["log_u"] = auxiliary[0]
            if not hasattr(process, "mass"):
                found["log_mass"] = auxiliary[1]
        return found

    @property
    def joins(self) -> NDArray[np.int64]:
        """Children of the inner nodes, shape (n - 1, 2)."""
        return self._state.joins()

    @property
    def linkage(self) -> NDArray[np.float64]:
        """The joins in the format of `scipy.cluster.hierarchy`, shape (n - 1, 4).

        Each row has two nodes, a height and a number of rows. The height is the maximum of -log p(one cluster) over the
        node and those below it, in nats. Joins are sorted by height, so nodes have other numbers than in `joins`.
        """
        return self._state.linkage()

    @property
    def log_weights(self) -> NDArray[np.float64]:
        """Log weight h of each node's rows as one cluster, shape (2 n - 1,), nats."""
        return self._state.potentials()[0]

    @property
    def log_potentials(self) -> NDArray[np.float64]:
        r"""Log potential :math:`\phi` of each node, shape (2 n - 1,), nats."""
        return self._state.potentials()[1]

    @property
    def log_dissimilarities(self) -> NDArray[np.float64]:
        r"""Log of :math:`d = \phi_l \phi_r / h` of each node, shape (2 n - 1,), nats; minus infinity for rows.

        The probability that the rows of a node are one cluster is 1 / (1 + d), among its tree-consistent partitions.
        """
        return self._state.potentials()[2]

    @property
    def elbo(self) -> float:
        r"""Lower bound of log p(X), or of a joint density of X and auxiliary values of the process; nats.

        It sums over tree-consistent partitions instead of all partitions, given the `hyperparameters` concentration,
        mass and discount. The auxiliary values are those with which the tree was built:

        - `NormalizedGeneralizedGamma`: it bounds the density log p(X, u).
        - `PitmanYor`: it bounds the density log p(X, u, m). The random mass over the discount, :math:`m =
          \exp(\mathrm{log\_mass}) / d`, has the law Gamma(concentration / d, 1), and the log density of m is part of
          the bound. At a discount of 0 the mass is the concentration, and the bound is one of log p(X, u).

        A density may exceed p(X): do not compare this value with the evidence, or with values of other processes or
        seeds (mathematics 8.9, item 2).
        """
        return self._state.log_evidence_bound

    def cut(self, method: Literal["bhc", "map"] = "bhc") -> NDArray[np.int64]:
        """Return labels of the rows.

        Parameters
        ----------
        method : {"bhc", "map"}
            "bhc": clusters are the highest nodes whose rows are more probably one cluster than not. "map": the most
            probable tree-consistent partition. Both are conditional on the `hyperparameters`, including u: another u
            may have another most probable partition.

        Returns
        -------
        ndarray of int64, shape (n,)
            Labels from 0, numbered from left to right in the tree.

        Raises
        ------
        InvalidType, InvalidArgument
            `method` is not one of these words.
        """
        return self._state.cut(checks.word("method", method, ("bhc", "map")))

    def insert(self, X_new: ArrayLike, *, threads: int | None = None) -> "Hierarchy":
        """Return this hierarchy with more rows.

        The trees of the clusters of ``cut("bhc")`` are kept. New rows are inserted one by one by incremental
        clustering, which may take some trees apart. Then all trees are joined again.

        Parameters
        ----------
        X_new : array_like of shape (m, D)
            The new rows, which are numbered after the existing ones. They may be sparse if the existing rows are dense,
            and vice versa.
        threads : int, optional
            The number of threads. Default: one for every core.

        Returns
        -------
        Hierarchy
            The hierarchy of all rows, under the same model.

        Raises
        ------
        InvalidType, InvalidArgument
            `X_new` is not as described, has other columns, varies in directions in which the rows of the hierarchy do
            not, or is so far away that its density is not finite.
        NumericalError
            A computation left the range of floating-point numbers.
        """
        kind = type(self.model.likelihood)
        data = coded(X_new, "X_new", self._model.likelihood, self._column_names, self._levels).data
        new = arrays.rows(data, "X_new", likelihood=kind, n_columns=self._rows.shape[1])
        with fitting("X_new", new.shape):
            rows, new = _stacked(self._rows, new)
        state = self._state.insert(rows, new, checks.threads(threads))
        # Gives the same bits as `load`, which measures rows from the mean of all rows.
        try:
            restored = _restored(self._model, rows, state.joins(), state.state)
        except InvalidArgument as error:
            # The parameters of the model are too small relative to the scatter of all rows.
            found = f"so far from the other rows that {error.argument} of the model is lost beside them"
            raise checks.invalid_argument("X_new", found, "rows of about the size of the others") from error
        return Hierarchy(restored, self._model, rows, self._column_names, self._levels)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the hierarchy with its rows to a file, which `load` reads.

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
        """
        files.write(path, *self._to_parts(), kind=files.HIERARCHY)

    def _to_parts(self) -> tuple[files.Header, files.Arrays]:
        header, found = parts.to_parts(self._model, self._rows)
        if self._column_names is not None:
            header["column_names"] = list(self._column_names)
        if self._levels:
            header["levels"] = to_header(self._levels)
        return header, found | {"joins": self.joins, "state": np.array(self._state.state)}

    @classmethod
    def _from_parts(cls, header: files.Header, found: files.Arrays) -> "Hierarchy":
        model, rows = parts.from_parts(header, found)
        if rows is None:
            raise ValueError("a hierarchy without its rows")
        joins, state = found["joins"], found["state"]
        if joins.dtype != np.int64 or joins.ndim != 2 or joins.shape[1] != 2 or state.ndim != 1:
            raise ValueError("a tree of another shape")
        restored = _restored(model, rows, joins, [float(value) for value in state])
        filled = restored.likelihood[1]
        for name, value in model.likelihood._parameters().items():
            if value is None and filled.get(name) is not None:
                raise ValueError(f"the likelihood has no {name}")
        column_names = names.of_file(header.get("column_names"), rows.shape[1])
        return cls(restored, model, rows, column_names, of_file(header.get("levels"), rows.shape[1]))

    def __reduce__(self) -> tuple[Any, ...]:
        return Hierarchy._from_parts, self._to_parts()

    def __repr__(self) -> str:
        counts = (self._rows.shape[0], "row"), (len(set(self.cut().tolist())), "cluster")
        return "<Hierarchy of {}>".format(", ".join(f"{n} {what}{'s' * (n != 1)}" for n, what in counts))


def _restored(model: Mixture, rows: arrays.Rows, joins: NDArray[np.int64], state: list[float]) -> _core.HierarchyState:
    return _core.HierarchyState.from_parts(model.likelihood._to_core(), model.process._to_core(), rows, joins, state)


def _stacked(rows: arrays.Rows, new: arrays.Rows) -> tuple[arrays.Rows, arrays.Rows]:
    """Return both tables stacked, and the new rows in the form of the others."""
    if isinstance(rows, arrays.SparseRows):
        new = arrays.sparse_counts(new, "X_new")
        starts = np.concatenate([rows[0], new[0][1:] + rows[0][-1] - new[0][0]])
        columns, values = np.concatenate([rows[1], new[1]]), np.concatenate([rows[2], new[2]])
        return arrays.SparseRows(starts, columns, values, rows[3]), new
    dense = _dense(new) if isinstance(new, arrays.SparseRows) else new
    return np.concatenate([rows, dense.astype(rows.dtype)]), dense


def _dense(rows: arrays.SparseRows) -> arrays.DenseRows:
    dense = np.zeros(rows.shape, dtype=np.float64)
    for row, (start, end) in zip(dense, pairwise(rows.starts.tolist()), strict=True):
        row[rows.columns[start:end]] = rows.values[start:end]
    return dense
