"""Every likelihood and process by name: parameters, suitable rows, and the oracle.

A kind is a public class with those of its options that choose another mathematics: the base measure of a spherical
Gaussian, the prior of a known covariance, the truncation of a Dirichlet process, a prior on its concentration.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import stickbreak as sb
from oracles import columns, discrete, exposures, gaussians, missing, models, sticks
from oracles import variational as oracle
from oracles.models import Array, Likelihood, Process
from stickbreak.testing.generators import CODES, clustered_rows, mixed_columns, mixed_rows, positive_definite

Generator = np.random.Generator
Arguments = dict[str, Any]


def uniform(rng: Generator, low: float, high: float, size: int | None = None) -> Any:
    """Return uniform random numbers; without a size a float."""
    drawn = rng.uniform(low, high, size)
    return float(drawn) if size is None else drawn


@dataclass(frozen=True)
class LikelihoodKind:
    """One observation model.

    `draw` gives arguments of the public class for D columns, with a mode of the prior (finite point estimates) where
    asked for; `to_oracle` reads the attributes of a filled specification.
    """

    public: str
    draw: Callable[[Generator, int, bool], Arguments]
    to_oracle: Callable[[Any], Likelihood]
    domain: str = "real"
    with_holes: Callable[[Any], missing.MissingLikelihood] | None = None


def draw_gaussian(rng: Generator, dimension: int, with_mode: bool) -> Arguments:
    return {
        "mean": rng.standard_normal(dimension),
        "mean_precision": uniform(rng, 0.05, 2.0),
        "dof": dimension + uniform(rng, 0.5, 4.0),
        "scale": positive_definite(rng, dimension),
    }


def draw_zero_mean(rng: Generator, dimension: int, with_mode: bool) -> Arguments:
    return {"dof": dimension + uniform(rng, 1.2, 4.0), "scale": positive_definite(rng, dimension)}


def draw_diagonal(rng: Generator, dimension: int, with_mode: bool) -> Arguments:
    return {
        "mean": rng.standard_normal(dimension),
        "mean_precision": uniform(rng, 0.05, 2.0),
        "shape": uniform(rng, 1.1 if with_mode else 0.3, 3.0),
        "rate": uniform(rng, 0.3, 2.0, dimension),
    }


def draw_spherical(rng: Generator, dimension: int, with_mode: bool) -> Arguments:
    return draw_diagonal(rng, dimension, with_mode) | {"rate": uniform(rng, 0.3, 2.0)}


def draw_product(rng: Generator, dimension: int, with_mode: bool) -> Arguments:
    return draw_spherical(rng, dimension, with_mode) | {"base": "product"}


def draw_known(rng: Generator, dimension: int, with_mode: bool) -> Arguments:
    return {
        "covariance": positive_definite(rng, dimension),
        "mean": rng.standard_normal(dimension),
        "mean_precision": uniform(rng, 0.05, 2.0),
    }


def draw_known_general(rng: Generator, dimension: int, with_mode: bool) -> Arguments:
    return draw_known(rng, dimension, with_mode) | {"mean_precision": positive_definite(rng, dimension)}


def draw_multinomial(rng: Generator, dimension: int, with_mode: bool) -> Arguments:
    return {"pseudo_counts": uniform(rng, 1.1 if with_mode else 0.2, 3.0, dimension)}


def draw_ordered_words(rng: Generator, dimension: int, with_mode: bool) -> Arguments:
    return draw_multinomial(rng, dimension, with_mode) | {"coefficient": False}


def draw_bernoulli(rng: Generator, dimension: int, with_mode: bool) -> Arguments:
    low = 1.1 if with_mode else 0.2
    return {"successes": uniform(rng, low, 3.0, dimension), "failures": uniform(rng, low, 3.0, dimension)}


def draw_categorical(rng: Generator, dimension: int, with_mode: bool) -> Arguments:
    """Return arguments with more levels than some columns have codes."""
    return {
        "pseudo_counts": uniform(rng, 1.1 if with_mode else 0.2, 3.0, dimension),
        "levels": CODES + np.arange(dimension) % 2,
    }


def draw_poisson(rng: Generator, dimension: int, with_mode: bool) -> Arguments:
    return {"shape": uniform(rng, 1.1 if with_mode else 0.2, 3.0, dimension), "rate": uniform(rng, 0.2, 2.0)}


def draw_negative_binomial(rng: Generator, dimension: int, with_mode: bool) -> Arguments:
    dispersion = uniform(rng, 1.0, 4.0, dimension)
    rate = uniform(rng, 1.1, 3.0) if with_mode else uniform(rng, 0.2, 2.0)
    return draw_poisson(rng, dimension, with_mode) | {"dispersion": dispersion, "rate": rate}


# What draws the arguments of each kind of column of mixed rows, by the kinds of the real columns.
MIXED = {"counts": "negative_binomial", "codes": "categorical"}


def draw_columns(real: str) -> Callable[[Generator, int, bool], Arguments]:
    """Return what draws blocks with this likelihood of the real columns."""

    def draw(rng: Generator, dimension: int, with_mode: bool) -> Arguments:
        blocks = {}
        for kind, places in mixed_columns(dimension).items():
            # In another order than in the data.
            block = tuple(reversed(places))
            blocks[block] = make_likelihood(MIXED.get(kind, real), rng, len(block), with_mode=with_mode)
        return {"blocks": blocks}

    return draw


def oracle_of_columns(filled: Any, *, with_missing: bool = False) -> Any:
    """Return the oracle of blocks, which are kinds by themselves."""
    blocks = []
    for block, own in filled._positions():
        kind = LIKELIHOODS[kind_of_likelihood(own)]
        made = kind.with_holes(own) if with_missing and kind.with_holes else kind.to_oracle(own)
        blocks.append((block, made))
    return columns.MissingColumns(blocks) if with_missing else columns.Columns(blocks)


def draw_poisson_of_totals(rng: Generator, dimension: int, with_mode: bool) -> Arguments:
    return draw_poisson(rng, dimension, with_mode) | {"exposure": "total"}


def draw_negative_binomial_of_totals(rng: Generator, dimension: int, with_mode: bool) -> Arguments:
    return draw_negative_binomial(rng, dimension, with_mode) | {"exposure": "total"}


LIKELIHOODS: dict[str, LikelihoodKind] = {
    "columns": LikelihoodKind("Columns", draw_columns("gaussian"), oracle_of_columns, domain="mixed"),
    "columns_with_holes": LikelihoodKind(
        "Columns",
        draw_columns("diagonal"),
        oracle_of_columns,
        domain="mixed",
        with_holes=lambda filled: oracle_of_columns(filled, with_missing=True),
    ),
    "gaussian": LikelihoodKind(
        "Gaussian",
        draw_gaussian,
        lambda filled: models.NormalWishart(filled.mean, filled.mean_precision, filled.dof, filled.scale),
    ),
    "zero_mean_gaussian": LikelihoodKind(
        "ZeroMeanGaussian", draw_zero_mean, lambda filled: models.ZeroMeanWishart(filled.dof, filled.scale)
    ),
    "diagonal": LikelihoodKind(
        "DiagonalGaussian",
        draw_diagonal,
        lambda filled: gaussians.DiagonalNormalGamma(filled.mean, filled.mean_precision, filled.shape, filled.rate),
        with_holes=lambda filled: missing.MissingDiagonal(
            filled.mean, filled.mean_precision, filled.shape, filled.rate
        ),
    ),
    "spherical": LikelihoodKind(
        "SphericalGaussian",
        draw_spherical,
        lambda filled: gaussians.SphericalNormalGamma(filled.mean, filled.mean_precision, filled.shape, filled.rate),
        with_holes=lambda filled: missing.MissingSpherical(
            filled.mean, filled.mean_precision, filled.shape, filled.rate
        ),
    ),
    "spherical_product": LikelihoodKind(
        "SphericalGaussian",
        draw_product,
        lambda filled: gaussians.SphericalIndependent(filled.mean, filled.mean_precision, filled.shape, filled.rate),
    ),
    "known_covariance": LikelihoodKind(
        "KnownCovarianceGaussian",
        draw_known,
        lambda filled: gaussians.KnownCovariance(filled.covariance, filled.mean, filled.mean_precision),
        with_holes=lambda filled: missing.MissingKnown(filled.covariance, filled.mean, filled.mean_precision),
    ),
    "known_covariance_general": LikelihoodKind(
        "KnownCovarianceGaussian",
        draw_known_general,
        lambda filled: gaussians.KnownCovarianceGeneral(filled.covariance, filled.mean, filled.mean_precision),
        with_holes=lambda filled: missing.MissingKnown(filled.covariance, filled.mean, filled.mean_precision),
    ),
    "multinomial": LikelihoodKind(
        "Multinomial",
        draw_multinomial,
        lambda filled: discrete.Multinomial(filled.pseudo_counts, filled.coefficient),
        domain="counts",
    ),
    "ordered_words": LikelihoodKind(
        "Multinomial",
        draw_ordered_words,
        lambda filled: discrete.Multinomial(filled.pseudo_counts, filled.coefficient),
        domain="counts",
    ),
    "bernoulli": LikelihoodKind(
        "Bernoulli",
        draw_bernoulli,
        lambda filled: discrete.Bernoulli(filled.successes, filled.failures),
        domain="binary",
        with_holes=lambda filled: missing.MissingBernoulli(filled.successes, filled.failures),
    ),
    "categorical": LikelihoodKind(
        "Categorical",
        draw_categorical,
        lambda filled: discrete.Categorical(filled.pseudo_counts, filled.levels),
        domain="codes",
        with_holes=lambda filled: missing.MissingCategorical(filled.pseudo_counts, filled.levels),
    ),
    "negative_binomial": LikelihoodKind(
        "NegativeBinomial",
        draw_negative_binomial,
        lambda filled: discrete.NegativeBinomial(filled.dispersion, filled.shape, filled.rate),
        domain="counts",
        with_holes=lambda filled: missing.MissingNegativeBinomial(filled.dispersion, filled.shape, filled.rate),
    ),
    "poisson": LikelihoodKind(
        "Poisson",
        draw_poisson,
        lambda filled: discrete.Poisson(filled.shape, filled.rate),
        domain="counts",
        with_holes=lambda filled: missing.MissingPoisson(filled.shape, filled.rate),
    ),
    "negative_binomial_of_totals": LikelihoodKind(
        "NegativeBinomial",
        draw_negative_binomial_of_totals,
        lambda filled: exposures.ExposedNegativeBinomial(filled.dispersion, filled.shape, filled.rate, filled.exposure),
        domain="counts",
    ),
    "poisson_of_totals": LikelihoodKind(
        "Poisson",
        draw_poisson_of_totals,
        lambda filled: exposures.ExposedPoisson(filled.shape, filled.rate, filled.exposure),
        domain="counts",
    ),
}


@dataclass(frozen=True)
class ProcessKind:
    """One prior on the weights: arguments of the public class from K and a concentration, and the bound's name."""

    public: str
    arguments: Callable[[int, float], Arguments]
    bound: str
    to_oracle: Callable[[Any], Process]
    # Whether an empty component at the end changes nothing (mathematics 7, number 11).
    nested: bool = False


def gamma(concentration: float) -> Any:
    """Return a Gamma prior with this mean."""
    return sb.Gamma(shape=1.5, rate=1.5 / concentration)


def of_sticks(truncation: str, a: float, b: float) -> Process:
    """Return the oracle of sticks Beta(a, b) under a truncation."""
    if truncation == "nested":
        return models.StickBreaking(b, first=a)
    return sticks.TailedStick(b, a) if truncation == "tail" else sticks.TruncatedStick(b, a)


PROCESSES: dict[str, ProcessKind] = {
    "nested": ProcessKind(
        "DirichletProcess",
        lambda _, concentration: {"concentration": concentration},
        "nested",
        lambda filled: models.StickBreaking(filled.concentration),
        nested=True,
    ),
    "stick": ProcessKind(
        "DirichletProcess",
        lambda _, concentration: {"concentration": concentration, "truncation": "stick"},
        "truncated_stick",
        lambda filled: sticks.TruncatedStick(filled.concentration),
    ),
    "tail": ProcessKind(
        "DirichletProcess",
        lambda _, concentration: {"concentration": concentration, "truncation": "tail"},
        "tail",
        lambda filled: sticks.TailedStick(filled.concentration),
        nested=True,
    ),
    "sticks_tail": ProcessKind(
        "DirichletProcess",
        lambda _, concentration: {"sticks": (2.2, min(max(concentration, 1e-3), 1e6)), "truncation": "tail"},
        "tail",
        lambda filled: of_sticks(filled.truncation, *filled.sticks),
        nested=True,
    ),
    "pitman_yor": ProcessKind(
        "PitmanYor",
        lambda _, concentration: {"discount": 0.35, "concentration": concentration},
        "nested",
        lambda filled: models.StickBreaking(filled.concentration, filled.discount),
        nested=True,
    ),
    "finite": ProcessKind(
        "FiniteDirichlet",
        lambda n_components, concentration: {"n_components": n_components, "concentration": concentration},
        "finite",
        lambda filled: models.FiniteSymmetricDirichlet(filled.concentration),
    ),
    "gamma_nested": ProcessKind(
        "DirichletProcess",
        lambda _, concentration: {"concentration": gamma(concentration)},
        "nested",
        lambda filled: sticks.GammaConcentration(
            models.StickBreaking, filled.concentration.shape, filled.concentration.rate
        ),
    ),
    "gamma_stick": ProcessKind(
        "DirichletProcess",
        lambda _, concentration: {"concentration": gamma(concentration), "truncation": "stick"},
        "truncated_stick",
        lambda filled: sticks.GammaConcentration(
            sticks.TruncatedStick, filled.concentration.shape, filled.concentration.rate
        ),
    ),
}

MARGINALISING = [name for name, kind in LIKELIHOODS.items() if kind.with_holes]
# Likelihoods with independent columns given the component.
OF_COLUMNS = [name for name in MARGINALISING if not name.startswith("known_covariance")]
# Of these, likelihoods whose columns share no parameter.
OF_SEPARATE_COLUMNS = [name for name in OF_COLUMNS if name != "spherical"]

# Likelihoods of all columns at once, as trees and the names of single columns need them.
OF_ALL_COLUMNS = [name for name, kind in LIKELIHOODS.items() if kind.domain != "mixed"]

every_likelihood = pytest.mark.parametrize("likelihood", LIKELIHOODS)
every_one_of_all_columns = pytest.mark.parametrize("likelihood", OF_ALL_COLUMNS)
every_marginalising_one = pytest.mark.parametrize(
    "likelihood", [name for name in MARGINALISING if name in OF_ALL_COLUMNS]
)
every_process = pytest.mark.parametrize("process", PROCESSES)
every_marginalising = pytest.mark.parametrize("likelihood", MARGINALISING)


def public(name: str) -> Any:
    """A public class."""
    return getattr(sb, name)


def make_likelihood(name: str, rng: Generator, dimension: int, *, with_mode: bool = False) -> Any:
    """A public likelihood of this kind with random parameters, all of them given."""
    kind = LIKELIHOODS[name]
    return public(kind.public)(**kind.draw(rng, dimension, with_mode))


def make_process(name: str, n_components: int, concentration: float) -> Any:
    """A public process of this kind."""
    kind = PROCESSES[name]
    return public(kind.public)(**kind.arguments(n_components, concentration))


def make_rows(name: str, rng: Generator, n: int, dimension: int, n_clusters: int) -> Array:
    """Return overlapping clusters in the domain of a likelihood, so that responsibilities are neither hard nor flat."""
    real = clustered_rows(rng, n, dimension, n_clusters)
    domain = LIKELIHOODS[name].domain
    if domain == "mixed":
        return mixed_rows(rng, real)
    if domain == "counts":
        return rng.poisson(np.exp(np.clip(real / 2, -2.0, 2.0))).astype(float)
    if domain == "codes":
        return np.clip(np.floor(real / 2 + CODES / 2), 0.0, CODES - 1.0)
    if domain == "binary":
        return (rng.random((n, dimension)) < 1 / (1 + np.exp(-real))).astype(float)
    return real


def with_holes(rng: Generator, rows: Array, share: float = 0.3) -> Array:
    """Return rows with about this share of missing entries, but no row entirely missing."""
    absent = rng.random(rows.shape) < share
    absent[np.arange(len(rows)), rng.integers(rows.shape[1], size=len(rows))] = False
    return np.where(absent, np.nan, rows)


def kind_of_likelihood(likelihood: Any) -> str:
    """The name of the kind of a public likelihood."""
    public_name = type(likelihood).__name__
    if public_name == "SphericalGaussian" and likelihood.base == "product":
        return "spherical_product"
    if public_name == "KnownCovarianceGaussian" and np.ndim(likelihood.mean_precision) == 2:
        return "known_covariance_general"
    if public_name == "Columns":
        full = any(isinstance(own, sb.Gaussian) for own in likelihood.blocks.values())
        return "columns" if full else "columns_with_holes"
    if getattr(likelihood, "exposure", None) is not None:
        return "poisson_of_totals" if public_name == "Poisson" else "negative_binomial_of_totals"
    return next(name for name, kind in LIKELIHOODS.items() if kind.public == public_name)


def kind_of_process(process: Any) -> str:
    """The name of the kind of a public process."""
    public_name = type(process).__name__
    if public_name == "DirichletProcess":
        if process.sticks is not None:
            return "sticks_tail"
        prior = "" if isinstance(process.concentration, float) else "gamma_"
        return prior + process.truncation
    return next(name for name, kind in PROCESSES.items() if kind.public == public_name)


def oracle_of(model: sb.Mixture, *, with_missing: bool = False) -> oracle.Specification:
    """Return the oracle's mixture for a model with all parameters given, for rows with or without missing values."""
    specification, process = model.likelihood, model.process
    kind = LIKELIHOODS[kind_of_likelihood(specification)]
    likelihood = kind.to_oracle(specification)
    if with_missing:
        assert kind.with_holes is not None
        likelihood = kind.with_holes(specification)
    return oracle.Specification(likelihood, PROCESSES[kind_of_process(process)].to_oracle(process))
