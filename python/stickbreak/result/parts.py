"""Stores a model with its rows in a file, for traces and hierarchies."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from stickbreak import checks
from stickbreak.errors import NotSupported
from stickbreak.io import arrays, files
from stickbreak.model.likelihoods import Likelihood
from stickbreak.model.mixture import Mixture

_ROLES = ("likelihood", "process")
_ROWS = "rows"


def to_parts(model: Mixture, rows: arrays.Rows | None) -> tuple[files.Header, files.Arrays]:
    """Return the header and the arrays for a model and its rows, if it keeps them."""
    header: files.Header = {}
    found: files.Arrays = {}
    for role, part in zip(_ROLES, (model.likelihood, model.process), strict=True):
        name, parameters = part._to_core()
        kept = {key: value for key, value in parameters.items() if isinstance(value, np.ndarray)}
        header[role] = name
        header[f"{role}_parameters"] = {key: value for key, value in parameters.items() if key not in kept}
        found |= {f"{role}.{key}": value for key, value in kept.items()}
    if rows is None:
        header["rows"] = False
    elif isinstance(rows, arrays.SparseRows):
        starts, columns, values, header["n_columns"] = rows
        found |= {f"{_ROWS}.starts": starts, f"{_ROWS}.columns": columns, f"{_ROWS}.values": values}
    else:
        found[_ROWS] = rows
    return header, found


def from_parts(header: files.Header, found: files.Arrays) -> tuple[Mixture, arrays.Rows | None]:
    """Return the model and the rows, if there are any, from header and arrays."""
    likelihood, process = (_pair(role, header, found) for role in _ROLES)
    model = Mixture._from_core(likelihood, process)
    has_rows = checks.flag("rows", header.get("rows", True))
    return model, _rows(header, found, model.likelihood) if has_rows else None


def _pair(role: str, header: files.Header, found: files.Arrays) -> tuple[str, dict[str, Any]]:
    plain: Mapping[str, Any] = checks.instance(role, header[f"{role}_parameters"], dict, "an object")
    arrays_of_role = {
        name.removeprefix(f"{role}."): value for name, value in found.items() if name.startswith(f"{role}.")
    }
    return header[role], {**plain, **arrays_of_role}


def _rows(header: files.Header, found: files.Arrays, likelihood: Likelihood) -> arrays.Rows:
    if _ROWS in found:
        return arrays.rows(found[_ROWS], _ROWS, likelihood=type(likelihood))
    if not likelihood._accepts_sparse:
        raise NotSupported("sparse rows for a likelihood that does not support them")
    starts, columns, values = (found[f"{_ROWS}.{key}"] for key in ("starts", "columns", "values"))
    n_columns = checks.integer("n_columns", header["n_columns"], minimum=1)
    return arrays.SparseRows(starts, columns, values, n_columns)
