"""The result of `hierarchy`: a binary tree over rows with potentials."""

import os
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stickbreak import _core, checks
from stickbreak.io import arrays, files, names
from stickbreak.model.mixture import Mixture
from stickbreak.result import parts


class Hierarchy:
    r"""A binary tree over rows, as `hierarchy` and `load` return it.

    Nodes 0 to n - 1 are the rows, and node n + k is made by join k, so children come before their parents and the root
    is the last node. Each node has the weight h of its rows as one cluster and the potential

    .. math:: \phi = h + \phi_l \phi_r, \qquad \phi = h \text{ for a row,}

    the sum over all tree-consistent partitions of the rows below it. Values are natural logarithms.

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
    ) -> None:
        self._state = state
        self._model = model
        self._rows = rows
        self._column_names = column_names

    @property
    def model(self) -> Mixture:
        """The model, with all parameters of its likelihood filled in."""
        return self._model

    @property
    def column_names(self) -> tuple[str, ...] | None:
        """The names of the D columns, where the data were a table; new rows are matched by them, as in `Fit`."""
        return self._column_names

    @property
    def joins(self) -> NDArray[np.int64]:
        """Children of the inner nodes, shape (n - 1, 2)."""
        return self._state.joins()

    @property
    def linkage(self) -> NDArray[np.float64]:
        """The joins as `scipy.cluster.hierarchy` has them, shape (n - 1, 4): two nodes, a height, a number of rows.

        The height is the largest of -log p(one cluster) of the node and those below it, in nats. Joins come by height,
        so nodes have other numbers than in `joins`.
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

        The probability that the rows of a node are one cluster, among its tree-consistent partitions, is 1 / (1 + d).
        """
        return self._state.potentials()[2]

    @property
    def elbo(self) -> float:
        """Lower bound of log p(X), nats: the sum over tree-consistent partitions instead of all.

        For processes with an auxiliary variable u (`NormalizedGeneralizedGamma`, `PitmanYor`) it is the bound of
        log p(X, u) at the u that the tree was built with.
        """
        return self._state.log_evidence_bound

    def cut(self, method: Literal["bhc", "map"] = "bhc") -> NDArray[np.int64]:
        """Return labels of the rows.

        Parameters
        ----------
        method : {"bhc", "map"}
            "bhc": clusters are the highest nodes whose rows are more probably one cluster than not. "map": the most
            probable of all tree-consistent partitions.

        Returns
        -------
        ndarray of int64, shape (n,)
            Labels from 0, from left to right in the tree.

        Raises
        ------
        InvalidType, InvalidArgument
            `method` is not such a word.
        """
        return self._state.cut(checks.word("method", method, ("bhc", "map")))

    def insert(self, X_new: ArrayLike, *, threads: int | None = None) -> "Hierarchy":
        """Return this hierarchy with more rows.

        Trees of the clusters of ``cut("bhc")`` are kept. New rows go in one after another by incremental clustering,
        which may take some trees apart, and then all trees are joined again.

        Parameters
        ----------
        X_new : array_like of shape (m, D)
            The new rows, which come behind those that the hierarchy has.
        threads : int, optional
            The number of threads. Default: one for every core.

        Returns
        -------
        Hierarchy
            The hierarchy of all rows, under the same model.

        Raises
        ------
        InvalidType, InvalidArgument
            `X_new` is not as described, has other columns, or varies where the rows of the hierarchy do not.
        """
        kind = type(self.model.likelihood)
        data = names.named(X_new, "X_new", self._column_names).data
        new = arrays.rows(data, "X_new", likelihood=kind, n_columns=self._rows.shape[1])
        rows = _stacked(self._rows, new)
        state = self._state.insert(rows, new, checks.threads(threads))
        return Hierarchy(state, self.model, rows, self._column_names)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the hierarchy with its rows to a file, which `load` reads.

        Parameters
        ----------
        path : str or path-like
            Where to write; an existing file is replaced only once the new one is complete.

        Raises
        ------
        InvalidType
            `path` is not a path.
        ModelFileError
            The file cannot be written.
        """
        files.write(path, *self._to_parts(), kind=files.HIERARCHY)

    def _to_parts(self) -> tuple[files.Header, files.Arrays]:
        header, found = parts.to_parts(self.model, self._rows)
        if self._column_names is not None:
            header["column_names"] = list(self._column_names)
        return header, found | {"joins": self.joins, "state": np.array(self._state.state)}

    @classmethod
    def _from_parts(cls, header: files.Header, found: files.Arrays) -> "Hierarchy":
        model, rows = parts.from_parts(header, found)
        joins, state = found["joins"], found["state"]
        if joins.dtype != np.int64 or joins.ndim != 2 or joins.shape[1] != 2 or state.ndim != 1:
            raise ValueError("a tree of another shape")
        own = _core.HierarchyState.from_parts(
            model.likelihood._to_core(), model.process._to_core(), rows, joins, [float(value) for value in state]
        )
        return cls(own, model, rows, names.of_file(header.get("column_names"), rows.shape[1]))

    def __reduce__(self) -> tuple[Any, ...]:
        return Hierarchy._from_parts, self._to_parts()

    def __repr__(self) -> str:
        return f"<Hierarchy of {self._rows.shape[0]} rows, {len(set(self.cut().tolist()))} clusters>"


def _stacked(rows: arrays.Rows, new: arrays.Rows) -> arrays.Rows:
    """Return both tables as one."""
    if isinstance(rows, arrays.SparseRows) and isinstance(new, arrays.SparseRows):
        starts = np.concatenate([rows[0], new[0][1:] + rows[0][-1] - new[0][0]])
        return arrays.SparseRows(starts, np.concatenate([rows[1], new[1]]), np.concatenate([rows[2], new[2]]), rows[3])
    if isinstance(rows, arrays.SparseRows) or isinstance(new, arrays.SparseRows):
        raise checks.invalid_type(
            "X_new", "rows of another kind", "sparse rows for a sparse hierarchy, else dense ones"
        )
    return np.concatenate([rows, new.astype(rows.dtype)])
