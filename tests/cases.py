"""Small problems for the tests, and the way from the public objects to those of the oracle."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from hypothesis import strategies as st

import stickbreak as sb
from oracles import variational as oracle
from oracles.models import Array

LikelihoodName = Literal["gaussian", "zero_mean_gaussian"]
ProcessName = Literal["dirichlet_process", "finite_dirichlet"]

LIKELIHOODS: tuple[LikelihoodName, ...] = ("gaussian", "zero_mean_gaussian")
PROCESSES: tuple[ProcessName, ...] = ("dirichlet_process", "finite_dirichlet")


@dataclass(frozen=True)
class Case:
    """Rows, responsibilities and one mixture in both dresses."""

    rows: Array
    responsibilities: Array
    weights: Array
    model: sb.Mixture
    mixture: oracle.Specification

    @property
    def n_components(self) -> int:
        return int(self.responsibilities.shape[1])

    @property
    def scale(self) -> float:
        """The size of the terms of the bound: what a relative tolerance refers to."""
        return float(1.0 + np.abs(self.rows).sum() + self.weights.sum())


def positive_definite(rng: np.random.Generator, dimension: int) -> Array:
    """A well-conditioned random covariance-like matrix."""
    factor = rng.standard_normal((dimension, dimension + 2))
    return factor @ factor.T / dimension + 0.3 * np.eye(dimension)


def random_responsibilities(rng: np.random.Generator, n: int, n_components: int, support: int) -> Array:
    """Rows on the simplex with at most `support` non-zeros, at places that differ from row to row."""
    responsibilities = np.zeros((n, n_components))
    for row in responsibilities:
        chosen = rng.choice(n_components, size=min(support, n_components), replace=False)
        row[chosen] = rng.dirichlet(np.full(len(chosen), 0.7))
    return np.asarray(responsibilities / responsibilities.sum(1, keepdims=True))


def random_likelihood(rng: np.random.Generator, name: LikelihoodName, dimension: int) -> sb.Gaussian:
    """A likelihood with every hyper-parameter given."""
    dof, scale = dimension + rng.uniform(0.5, 4.0), positive_definite(rng, dimension)
    if name == "zero_mean_gaussian":
        return sb.ZeroMeanGaussian(dof=dof, scale=scale)
    mean = rng.standard_normal(dimension)
    return sb.Gaussian(mean=mean, mean_precision=rng.uniform(0.05, 2.0), dof=dof, scale=scale)


def make_process(name: ProcessName, n_components: int, concentration: float) -> sb.DirichletProcess:
    """A process by name; only the finite one has a number of components."""
    if name == "finite_dirichlet":
        return sb.FiniteDirichlet(n_components=n_components, concentration=concentration)
    return sb.DirichletProcess(concentration=concentration)


def clustered_rows(rng: np.random.Generator, n: int, dimension: int, n_clusters: int) -> Array:
    """Overlapping clusters, so that responsibilities are neither hard nor flat."""
    centres = 2.0 * rng.standard_normal((n_clusters, dimension))
    return np.asarray(centres[rng.integers(n_clusters, size=n)] + rng.standard_normal((n, dimension)))


def make_case(
    seed: int,
    *,
    n: int = 60,
    dimension: int = 3,
    n_components: int = 4,
    support: int | None = None,
    likelihood: LikelihoodName = "gaussian",
    process: ProcessName = "dirichlet_process",
    weighted: bool = False,
) -> Case:
    """A random problem that depends on its arguments only."""
    rng = np.random.default_rng(seed)
    rows = clustered_rows(rng, n, dimension, n_components)
    responsibilities = random_responsibilities(rng, n, n_components, support or n_components)
    weights = rng.choice([0.5, 1.0, 2.0, 3.25], size=n) if weighted else np.ones(n)
    own_likelihood = random_likelihood(rng, likelihood, dimension)
    own_process = make_process(process, n_components, float(rng.uniform(0.2, 5.0)))
    model = sb.Mixture(likelihood=own_likelihood, process=own_process)
    return Case(rows, responsibilities, weights, model, oracle_of(model))


@st.composite
def cases(draw: st.DrawFn, *, min_rows: int = 2, **fixed: Any) -> Case:
    """Random problems: 1 to 4 columns, up to 40 rows, up to 5 components, any support, both models and processes."""
    sizes = {
        "n": st.integers(max(min_rows, fixed.get("n_components", 1)), 40),
        "dimension": st.integers(1, 4),
        "likelihood": st.sampled_from(LIKELIHOODS),
        "process": st.sampled_from(PROCESSES),
        "weighted": st.booleans(),
    }
    arguments = {name: draw(strategy) for name, strategy in sizes.items() if name not in fixed} | fixed
    if "n_components" not in arguments:
        arguments["n_components"] = draw(st.integers(1, min(5, arguments["n"])))
    if "support" not in arguments:
        arguments["support"] = draw(st.integers(1, arguments["n_components"]))
    return make_case(draw(st.integers(0, 2**32 - 1)), **arguments)


def oracle_of(model: sb.Mixture) -> oracle.Specification:
    """The oracle's mixture for a model whose hyper-parameters are all given."""
    likelihood: oracle.NormalWishart | oracle.ZeroMeanWishart
    own, process = model.likelihood, model.process
    if isinstance(own, sb.ZeroMeanGaussian):
        likelihood = oracle.ZeroMeanWishart(own.dof, np.asarray(own.scale))
    else:
        likelihood = oracle.NormalWishart(np.asarray(own.mean), own.mean_precision, own.dof, np.asarray(own.scale))
    if isinstance(process, sb.FiniteDirichlet):
        return oracle.Specification(likelihood, oracle.FiniteSymmetricDirichlet(process.concentration))
    return oracle.Specification(likelihood, oracle.StickBreaking(process.concentration))


def component(fit: sb.Fit, index: int) -> dict[str, Array]:
    """The arrays of one component, without their first axis."""
    return {name: np.asarray(values[index]) for name, values in fit.components.items()}


def globals_of(fit: sb.Fit) -> oracle.Globals:
    """The oracle's globals from what a fit shows: its components, its counts and its filled model."""
    mixture = oracle_of(fit.model)
    naturals = [mixture.likelihood.natural(**component(fit, k)) for k in range(fit.n_components)]
    return oracle.Globals(naturals, mixture.process.update(fit.counts))


def state_of(fit: sb.Fit) -> Any:
    """The private state behind a fit; the summaries of a local step can be seen there only."""
    return fit._state


def local_summary(fit: sb.Fit, rows: Array, weights: Array | None, sparsity: int | None) -> dict[str, Array]:
    """The additive parts of the summary of one local step at the globals of the fit."""
    summary = state_of(fit).summary(rows, weights, sparsity, pair_gaps=True, threads=1)
    gaps = np.zeros((fit.n_components, fit.n_components))
    for (a, b), gap in summary.pop("pair_gaps").items():
        gaps[a, b] = gaps[b, a] = gap
    return {name: np.asarray(values) for name, values in summary.items()} | {"pair_gaps": gaps}


def fit_from(case: Case, algorithm: Any = None, **options: Any) -> sb.Fit:
    """Start a fit from the responsibilities of the case."""
    algorithm = sb.Full(sparsity=None, max_passes=0) if algorithm is None else algorithm
    options = {"init": case.responsibilities, "sample_weight": case.weights, "progress": False} | options
    return sb.fit(case.model, case.rows, algorithm, **options)


def visible_bits(fit: sb.Fit, rows: Array) -> dict[str, bytes]:
    """Every number a fit shows, as bytes: what "the same bits" means."""
    numbers = {
        "weights": fit.weights,
        "counts": fit.counts,
        "leftover_weight": fit.leftover_weight,
        "elbo": fit.elbo,
        "history": [record.elbo for record in fit.history],
        "evaluate": fit.evaluate(rows),
        "predict": fit.predict(rows),
        "predict_proba": fit.predict_proba(rows),
        "log_predictive": fit.log_predictive(rows),
        "sample": fit.sample(50, seed=3),
    }
    numbers |= {f"components.{name}": values for name, values in fit.components.items()}
    return {name: np.ascontiguousarray(value).tobytes() for name, value in numbers.items()}


def separated_mixture(
    seed: int, *, n: int, dimension: int, n_clusters: int, distance: float = 12.0
) -> tuple[Array, np.ndarray]:
    """Rows and true labels of clusters at least about `distance` standard deviations apart, sizes from 1 : 2."""
    rng = np.random.default_rng(seed)
    corners = rng.permutation(np.stack(np.meshgrid(*[range(4)] * min(dimension, 3)), -1).reshape(-1, min(dimension, 3)))
    centres = np.zeros((n_clusters, dimension))
    centres[:, : corners.shape[1]] = distance * corners[:n_clusters]
    proportions = np.linspace(1.0, 2.0, n_clusters)
    labels = rng.choice(n_clusters, size=n, p=proportions / proportions.sum())
    factors = [np.linalg.cholesky(positive_definite(rng, dimension) / (dimension + 2)) for _ in range(n_clusters)]
    noise = rng.standard_normal((n, dimension))
    rows = centres[labels] + np.einsum("nij,nj->ni", np.array(factors)[labels], noise)
    return rows, labels
