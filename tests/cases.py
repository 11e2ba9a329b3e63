"""Small problems for the tests, and the conversion of public objects to those of the oracle."""

import dataclasses
import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from hypothesis import strategies as st

import kinds
import stickbreak as sb
from kinds import oracle_of as oracle_of
from oracles import variational as oracle
from oracles.models import Array
from stickbreak.testing import visible_bits as visible_bits
from stickbreak.testing.generators import clustered_rows as clustered_rows
from stickbreak.testing.generators import positive_definite, random_responsibilities

LikelihoodName = Literal["gaussian", "zero_mean_gaussian"]
ProcessName = Literal["dirichlet_process", "finite_dirichlet"]

# One global step that drops no responsibilities.
START = sb.Full(sparsity=None, margin=None, max_passes=0)
LIKELIHOODS: tuple[LikelihoodName, ...] = ("gaussian", "zero_mean_gaussian")
PROCESSES: tuple[ProcessName, ...] = ("dirichlet_process", "finite_dirichlet")
# Their names among all kinds.
KINDS = {"dirichlet_process": "nested", "finite_dirichlet": "finite"}


@dataclass(frozen=True)
class Case:
    """Rows, responsibilities, and one mixture as a public object and as an oracle."""

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
        """Size of the terms of the bound, the unit of relative tolerances."""
        return float(1.0 + np.nansum(np.abs(self.rows)) + self.weights.sum())


def make_process(name: ProcessName, n_components: int, concentration: float) -> sb.DirichletProcess:
    """Return a process by name; only the finite one has a number of components."""
    if name == "finite_dirichlet":
        return sb.FiniteDirichlet(n_components=n_components, concentration=concentration)
    return sb.DirichletProcess(concentration=concentration)


def make_case(
    seed: int,
    *,
    n: int = 60,
    dimension: int = 3,
    n_components: int = 4,
    support: int | None = None,
    likelihood: str = "gaussian",
    process: str = "dirichlet_process",
    weighted: bool = False,
    with_mode: bool = False,
    with_missing: bool = False,
    concentration: float | None = None,
) -> Case:
    """Return a random problem that depends only on its arguments; names are those of this file or of `kinds`.

    `with_mode` requests priors with a mode, `with_missing` missing entries, but in no row all of them.
    """
    rng = np.random.default_rng(seed)
    rows = kinds.make_rows(likelihood, rng, n, dimension, n_components)
    if with_missing:
        rows = kinds.with_holes(rng, rows)
    responsibilities = random_responsibilities(rng, n, n_components, support or n_components)
    weights = rng.choice([0.5, 1.0, 2.0, 3.25], size=n) if weighted else np.ones(n)
    own_likelihood = kinds.make_likelihood(likelihood, rng, dimension, with_mode=with_mode)
    if concentration is None:
        concentration = float(rng.uniform(0.2, 5.0))
    own_process = kinds.make_process(KINDS.get(process, process), n_components, concentration)
    model = sb.Mixture(likelihood=own_likelihood, process=own_process)
    return Case(rows, responsibilities, weights, model, oracle_of(model, with_missing=with_missing))


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


def component(fit: sb.Fit, index: int) -> dict[str, Array]:
    """Return the arrays of one component, without their first axis."""
    return of_component(fit.components, index)


def flat(values: dict[str, Any]) -> dict[str, Any]:
    """Return arrays by name, those of blocks of columns by the names of both."""
    found: dict[str, Any] = {}
    for name, own in values.items():
        found |= {f"{name}.{key}": array for key, array in own.items()} if isinstance(own, dict) else {name: own}
    return found


def of_component(values: dict[str, Any], index: int) -> dict[str, Any]:
    """Return the arrays of one component, without their first axis; of every block, for blocks."""
    return {
        name: of_component(own, index) if isinstance(own, dict) else np.asarray(own[index])
        for name, own in values.items()
    }


def globals_of(fit: sb.Fit, mass: float | None = None, *, with_missing: bool = False) -> oracle.Globals:
    """Return the oracle's globals for the components, counts and model of a fit.

    `mass` is the weight of all rows, which tells the count of the tail where there is one; `with_missing`
    says that the rows had missing entries.
    """
    mixture = oracle_of(fit.model, with_missing=with_missing)
    naturals = [mixture.likelihood.natural(**component(fit, k)) for k in range(fit.n_components)]
    counts = fit.counts
    if mixture.process.has_tail:
        assert mass is not None
        counts = np.append(counts, max(mass - counts.sum(), 0.0))
    return oracle.Globals(naturals, mixture.process.update(counts))


def passes(number: int, sparsity: int | None = None) -> sb.Full:
    """Return `Full` with this many passes, which drops responsibilities only by sparsity."""
    return sb.Full(sparsity=sparsity, margin=None, max_passes=number, tol=0.0)


def replaced(case: Case, **changes: Any) -> Case:
    """Return a case with other rows, responsibilities, weights or model."""
    return dataclasses.replace(case, **changes)


def with_process(case: Case, process: Any) -> Case:
    """Return the case with another prior on the weights."""
    model = sb.Mixture(likelihood=case.model.likelihood, process=process)
    return replaced(case, model=model, mixture=oracle_of(model))


def fit_from(case: Case, algorithm: Any = None, **options: Any) -> sb.Fit:
    """Start a fit from the responsibilities of the case."""
    algorithm = sb.Full(sparsity=None, max_passes=0) if algorithm is None else algorithm
    options = {"init": case.responsibilities, "sample_weight": case.weights, "progress": False} | options
    return sb.fit(case.model, case.rows, algorithm, **options)


def separated_mixture(
    seed: int, *, n: int, dimension: int, n_clusters: int, distance: float = 12.0
) -> tuple[Array, np.ndarray]:
    """Return rows and labels of clusters about `distance` standard deviations apart or more, with sizes 1 : 2."""
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


def same_draws(likelihood: sb.Gaussian | sb.SphericalGaussian, one: Any, other: Any) -> None:
    """A sampler draws the same numbers of clusters for two tables."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sb.SupportWarning)
        draws = [
            sb.sample(sb.Mixture(likelihood=likelihood), rows, draws=30, warmup=30, chains=1, seed=2)
            for rows in (one, other)
        ]
    np.testing.assert_array_equal(draws[0].n_clusters, draws[1].n_clusters)
