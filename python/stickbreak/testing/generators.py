"""Generators behind the strategies, based on a NumPy generator: parameters by name, rows by domain and kind.

The tables `PARAMETERS`, `VARIANTS` and `DOMAINS` are all that is specific to a likelihood or a process. A new one needs
no change if its parameters have defaults or names in `PARAMETERS`, and its rows are of a known domain. If a name has
several meanings, `PARAMETERS` has it with the name of the class as a prefix.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from stickbreak.model.counts import Categorical, NegativeBinomial, Poisson
from stickbreak.model.gamma import Gamma
from stickbreak.model.likelihoods import DiagonalGaussian, Gaussian, Likelihood
from stickbreak.model.specification import Specification

Array = NDArray[np.float64]
Generator = np.random.Generator
SpecificationT = TypeVar("SpecificationT", bound=Specification)


@dataclass(frozen=True)
class Setting:
    """Quantities on which parameters may depend: location and spread of the rows, and the number of columns.

    Parameters
    ----------
    dimension : int
        D, the number of columns.
    location : float or ndarray of shape (D,)
        Approximate location of the column means, in the units of the data.
    spread : float
        Size of the deviations from the means, in the units of the data.
    """

    dimension: int
    location: float | Array = 0.0
    spread: float = 1.0


def positive_definite(rng: Generator, dimension: int) -> Array:
    """Return a well-conditioned random covariance-like matrix, shape (D, D)."""
    factor = rng.standard_normal((dimension, dimension + 2))
    return np.asarray(factor @ factor.T / dimension + 0.3 * np.eye(dimension))


Draw = Callable[[Generator, Setting], Any]

# Codes of the domain "codes" are below this.
CODES = 4

# Strategies of parameters, by name or by class and name. For Gaussians, in the units of the data.
PARAMETERS: Mapping[str, Draw] = {
    "mean": lambda rng, setting: setting.location + setting.spread * rng.standard_normal(setting.dimension),
    "mean_precision": lambda rng, setting: rng.uniform(0.05, 2.0),
    "dof": lambda rng, setting: setting.dimension + rng.uniform(0.5, 4.0),
    "scale": lambda rng, setting: setting.spread**2 * positive_definite(rng, setting.dimension),
    "KnownCovarianceGaussian.covariance": lambda rng, setting: (
        setting.spread**2 * positive_definite(rng, setting.dimension)
    ),
    "DiagonalGaussian.shape": lambda rng, setting: rng.uniform(0.5, 4.0),
    "DiagonalGaussian.rate": lambda rng, setting: setting.spread**2 * rng.uniform(0.3, 2.0, setting.dimension),
    "SphericalGaussian.shape": lambda rng, setting: rng.uniform(0.5, 4.0),
    "SphericalGaussian.rate": lambda rng, setting: setting.spread**2 * rng.uniform(0.3, 2.0),
    # Exceeds all codes of the domain "codes".
    "levels": lambda rng, setting: rng.integers(CODES, CODES + 3, setting.dimension),
    "pseudo_counts": lambda rng, setting: rng.uniform(0.1, 3.0, setting.dimension),
    "successes": lambda rng, setting: rng.uniform(0.1, 3.0, setting.dimension),
    "failures": lambda rng, setting: rng.uniform(0.1, 3.0, setting.dimension),
    "NegativeBinomial.dispersion": lambda rng, setting: rng.uniform(0.3, 6.0, setting.dimension),
    "NegativeBinomial.shape": lambda rng, setting: rng.uniform(0.1, 3.0, setting.dimension),
    "NegativeBinomial.rate": lambda rng, setting: rng.uniform(0.1, 2.0),
    "Poisson.shape": lambda rng, setting: rng.uniform(0.1, 3.0, setting.dimension),
    "Poisson.rate": lambda rng, setting: rng.uniform(0.1, 2.0),
    "tail_dof": lambda rng, setting: rng.uniform(1.5, 30.0),
    "concentration": lambda rng, setting: rng.uniform(0.2, 5.0),
    "discount": lambda rng, setting: rng.uniform(0.0, 0.9),
    "mass": lambda rng, setting: rng.uniform(0.2, 5.0),
    "MixtureOfFiniteMixtures.rate": lambda rng, setting: rng.uniform(0.2, 5.0),
    "blocks": lambda rng, setting: random_blocks(rng, setting),
}
# Parameters that belong together, by class. One of these sets replaces the entries of `PARAMETERS`.
VARIANTS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "DirichletProcess": (
        {},
        {"truncation": "stick"},
        {"truncation": "tail"},
        {"concentration": Gamma(2.0, 1.0)},
        {"truncation": "stick", "concentration": Gamma(1.0, 0.5)},
        {"sticks": (2.0, 3.0), "concentration": 1.0},
    ),
    "SphericalGaussian": (
        {},
        {"base": "product", "mean_precision": lambda rng, setting: rng.uniform(0.05, 2.0) / setting.spread**2},
    ),
    "StudentT": (
        {},
        {
            "covariance": "diagonal",
            "scale": lambda rng, setting: setting.spread**2 * rng.uniform(0.6, 4.0, setting.dimension),
        },
    ),
    "KnownCovarianceGaussian": (
        {},
        {"mean_precision": lambda rng, setting: positive_definite(rng, setting.dimension) / setting.spread**2},
    ),
    "Multinomial": ({}, {"coefficient": False}),
    "NegativeBinomial": ({}, {"exposure": "total"}),
    "Poisson": ({}, {"exposure": "total"}),
}


def random_specification(
    rng: Generator, kind: type[SpecificationT], setting: Setting, *, filled: bool = True, **given: Any
) -> SpecificationT:
    """Return a likelihood or a process with random parameters.

    Parameters
    ----------
    rng : numpy.random.Generator
        Decides the values.
    kind : type
        A class of likelihoods or processes.
    setting : Setting
        The quantities on which the values depend.
    filled : bool
        Whether parameters with data-dependent defaults are given too.
    **given
        Fixed parameters by name; names that `kind` does not have are ignored.

    Raises
    ------
    LookupError
        `kind` has a parameter without a default that is neither given nor in `PARAMETERS`.
    """
    variants = VARIANTS.get(kind.__name__, ({},))
    chosen = variants[int(rng.integers(len(variants)))] if len(variants) > 1 else {}
    values = {}
    for field in fields(kind):
        draw = chosen.get(field.name, PARAMETERS.get(f"{kind.__name__}.{field.name}", PARAMETERS.get(field.name)))
        if field.name in given:
            values[field.name] = given[field.name]
        elif field.name in chosen and not callable(draw):
            values[field.name] = draw
        elif draw is not None and (filled or not _may_be_left_out(field)):
            values[field.name] = draw(rng, setting)
        elif field.default is MISSING:
            raise LookupError(
                f"{kind.__name__}: no way to draw the parameter {field.name!r}, which has no default; "
                "add it to PARAMETERS in stickbreak.testing.generators"
            )
    return kind(**values)


def _may_be_left_out(field: "Field[Any]") -> bool:
    return field.default is None


def clustered_rows(rng: Generator, n: int, dimension: int, n_clusters: int) -> Array:
    """Return overlapping clusters of unit variance, so that responsibilities are neither hard nor flat; (n, D)."""
    centres = 2.0 * rng.standard_normal((n_clusters, dimension))
    return np.asarray(centres[rng.integers(n_clusters, size=n)] + rng.standard_normal((n, dimension)))


def random_responsibilities(rng: Generator, n: int, n_components: int, support: int) -> Array:
    """Return rows on the simplex with at most `support` nonzeros, at random positions in each row; (n, K)."""
    responsibilities = np.zeros((n, n_components))
    for row in responsibilities:
        chosen = rng.choice(n_components, size=min(support, n_components), replace=False)
        row[chosen] = rng.dirichlet(np.full(len(chosen), 0.7))
    return np.asarray(responsibilities / responsibilities.sum(1, keepdims=True))


def _with_duplicates(rng: Generator, rows: Array) -> Array:
    """Return a few distinct rows, each repeated several times."""
    return rows[rng.integers(max(1, len(rows) // 5), size=len(rows))]


def _with_constant_columns(rng: Generator, rows: Array) -> Array:
    """Return rows in which at least one column, and possibly every column, is constant."""
    chance: Array = np.asarray(rng.random(rows.shape[1]))
    constant = (chance < 0.5) | (chance == chance.min())
    return np.asarray(np.where(constant, rows[:1], rows))


def _collinear(rng: Generator, rows: Array) -> Array:
    """Return rows that lie on one line."""
    return np.asarray(np.outer(rows[:, 0], rng.standard_normal(rows.shape[1])))


def _with_an_outlier(rng: Generator, rows: Array) -> Array:
    """Return rows with one outlier, a thousand times as far out as the others."""
    moved = rows.copy()
    moved[rng.integers(len(rows))] *= 1e3
    return moved


def _offset(rng: Generator, rows: Array) -> Array:
    """Return rows far from zero, compared with their spread."""
    return np.asarray(rows + rng.choice([1e3, 1e6, 1e8], size=rows.shape[1]))


def _scaled(rng: Generator, rows: Array) -> Array:
    """Return rows in other units, the same for all columns."""
    return np.asarray(rows * 10.0 ** rng.integers(-12, 13))


Change = Callable[[Generator, Array], Array]

_REAL: Mapping[str, Change] = {
    "clusters": lambda rng, rows: rows,
    "duplicates": _with_duplicates,
    "constant_columns": _with_constant_columns,
    "collinear": _collinear,
    "outlier": _with_an_outlier,
    "scaled": _scaled,
    "offset": _offset,
}


def _centred(change: Change) -> Change:
    def changed(rng: Generator, rows: Array) -> Array:
        moved = change(rng, rows)
        moved = moved - moved[0]  # first, so that constant values become exactly zero
        return np.asarray(moved - moved.mean(axis=0))

    return changed


def _counted(change: Change) -> Change:
    """Return a change that makes counts from 0 to about 20 that depend on the cluster, and then applies `change`."""

    def changed(rng: Generator, rows: Array) -> Array:
        return change(rng, np.asarray(rng.poisson(np.exp(np.clip(rows / 2, -3.0, 3.0))), dtype=np.float64))

    return changed


def _binary(change: Change) -> Change:
    """Return a change that draws flags with probabilities that depend on the cluster, and then applies `change`."""

    def changed(rng: Generator, rows: Array) -> Array:
        return change(rng, np.asarray(rng.random(rows.shape) < 1.0 / (1.0 + np.exp(-rows)), dtype=np.float64))

    return changed


def _coded(change: Change) -> Change:
    """Return a change that makes codes that increase with the value, and then applies `change`."""

    def changed(rng: Generator, rows: Array) -> Array:
        return change(rng, np.asarray(np.clip(np.floor(rows / 2.0 + CODES / 2), 0.0, CODES - 1.0)))

    return changed


def mixed_columns(dimension: int) -> dict[str, list[int]]:
    """Return the columns of mixed rows by the domains of their values: the last has codes, the one before counts."""
    places = list(range(dimension))
    if dimension < 3:
        return {"real": places[:-1], "counts": places[-1:]} if dimension > 1 else {"counts": places}
    return {"real": places[:-2], "counts": places[-2:-1], "codes": places[-1:]}


def mixed_rows(rng: Generator, rows: Array) -> Array:
    """Return rows of numbers with counts and codes in some columns."""
    found = rows.copy()
    for domain, columns in mixed_columns(rows.shape[1]).items():
        found[:, columns] = DOMAINS[domain]["clusters"](rng, rows[:, columns])
    return found


def _mixed(change: Change) -> Change:
    """Return a change that makes mixed rows, and then applies `change`."""

    def changed(rng: Generator, rows: Array) -> Array:
        return change(rng, mixed_rows(rng, rows))

    return changed


# The likelihoods of mixed rows by the domains of their values.
_OF_DOMAINS = {"real": (Gaussian, DiagonalGaussian), "counts": (Poisson, NegativeBinomial), "codes": (Categorical,)}


def random_blocks(rng: Generator, setting: Setting) -> dict[tuple[int, ...], Likelihood]:
    """Return random likelihoods for the columns of mixed rows."""
    blocks: dict[tuple[int, ...], Likelihood] = {}
    filled = bool(rng.integers(2))
    for domain, columns in mixed_columns(setting.dimension).items():
        kinds = _OF_DOMAINS[domain]
        location = setting.location if np.ndim(setting.location) == 0 else np.asarray(setting.location)[columns]
        own = Setting(len(columns), location, setting.spread)
        kind: type[Likelihood] = kinds[int(rng.integers(len(kinds)))]
        blocks[tuple(columns)] = random_specification(rng, kind, own, filled=filled)
    return blocks


def _with_rows_of_zeros(rng: Generator, rows: Array) -> Array:
    """Return rows of which some, or all, contain only zeros."""
    return np.asarray(np.where(rng.random(len(rows))[:, None] < rng.choice([0.3, 1.0]), 0.0, rows))


def _with_columns_of_zeros(rng: Generator, rows: Array) -> Array:
    """Return rows in which some columns, or all, contain only zeros."""
    chance: Array = np.asarray(rng.random(rows.shape[1]))
    return np.asarray(np.where((chance < 0.5) | (chance == chance.min()), 0.0, rows))


def _large(rng: Generator, rows: Array) -> Array:
    """Return counts a thousand times as large, which float32 still represents exactly."""
    return np.asarray(rows * 1000.0 + rng.integers(1000, size=rows.shape))


_DISCRETE: Mapping[str, Change] = {
    "clusters": _REAL["clusters"],
    "duplicates": _with_duplicates,
    "constant_columns": _with_constant_columns,
    "zero_rows": _with_rows_of_zeros,
    "zero_columns": _with_columns_of_zeros,
}

# Strategies of rows, by the domain of a likelihood (`Likelihood._domain`) and by kind.
DOMAINS: Mapping[str, Mapping[str, Change]] = {
    "real": _REAL,
    "centred": {kind: _centred(change) for kind, change in _REAL.items() if kind != "offset"},
    "counts": {
        kind: _counted(change) for kind, change in {**_DISCRETE, "outlier": _with_an_outlier, "large": _large}.items()
    },
    "binary": {kind: _binary(change) for kind, change in _DISCRETE.items()},
    "codes": {kind: _coded(change) for kind, change in _DISCRETE.items()},
    "mixed": {kind: _mixed(change) for kind, change in _DISCRETE.items()},
}


def random_rows(rng: Generator, n: int, dimension: int, *, domain: str = "real", kind: str = "clusters") -> Array:
    """Return rows of one domain and kind, of shape (n, D), in float64."""
    rows = clustered_rows(rng, n, dimension, int(rng.integers(1, 6)))
    return DOMAINS[domain][kind](rng, rows)


def setting_of(rows: Array) -> Setting:
    """Return location and spread of rows, to choose suitable parameters; a spread of zero is replaced by one."""
    mean = rows.mean(axis=0)
    spread = float(np.abs(rows - mean).max())
    return Setting(rows.shape[1], mean, spread if spread > 0.0 else 1.0)
