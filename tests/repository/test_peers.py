"""The comparison with peers: its scorer, how each package's posterior is read, and a small run of all of it."""

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy.special import betaln
from scipy.stats import multivariate_t
from sklearn.exceptions import ConvergenceWarning

import contenders
import run_scikit_learn
import run_stickbreak
import stickbreak as sb
from problems import Problem, generated
from recorder import checkpoints
from report import score
from scoring import Posterior, Prior, elbo, log_predictive

PASSES = 6


@pytest.fixture(scope="module")
def problem() -> Problem:
    return generated("tiny", 600, 3, 3, 5)


def ours(problem: Problem, passes: int = PASSES, **settings: object) -> sb.Fit:
    algorithm = run_stickbreak.algorithm_of({"sparsity": None, "batches": 1} | settings, passes)
    model = run_stickbreak.model_of(problem.numbers, problem.dimension)
    return sb.fit(model, problem.train, algorithm, init=problem.labels, progress=False)


def own_posterior(fit: sb.Fit) -> Posterior:
    return Posterior(**run_stickbreak.posterior_of(fit))


def test_the_bound_of_one_component_is_the_evidence() -> None:
    """Rows one after the other, each under the Student t that those before it leave; and what the stick costs."""
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(12, 2)) * [1.0, 3.0] + 5.0
    prior = Prior(1.7, np.array([4.0, 6.0]), 0.3, 4.5, np.array([[2.0, 0.4], [0.4, 1.0]]))
    mean, kappa, dof, scale = prior.mean, prior.mean_precision, prior.dof, prior.scale
    evidence = 0.0
    for row in rows:
        free = dof - 1
        evidence += multivariate_t.logpdf(row, mean, (kappa + 1) / (kappa * free) * scale, free)
        scale = scale + kappa / (kappa + 1) * np.outer(row - mean, row - mean)
        mean, kappa, dof = (kappa * mean + row) / (kappa + 1), kappa + 1, dof + 1
    sticks = np.array([1.0 + len(rows)]), np.array([prior.concentration])
    posterior = Posterior(*sticks, mean[None], np.array([kappa]), np.array([dof]), scale[None])
    cost = betaln(1.0 + len(rows), prior.concentration) - betaln(1.0, prior.concentration)
    assert elbo(rows, posterior, prior) == pytest.approx(evidence + cost, rel=1e-12)


@pytest.mark.parametrize("settings", [{}, {"batches": 4}, {"sparsity": 2}], ids=["full", "memoized", "sparse"])
def test_scores_are_those_of_a_fit(problem: Problem, settings: dict[str, object]) -> None:
    fit = ours(problem, **settings)
    posterior = own_posterior(fit)
    scored = elbo(problem.train, posterior, problem.prior)
    if "sparsity" in settings:
        # The scorer's local step is dense, so it may only be higher.
        assert scored > fit.evaluate(problem.train)
    else:
        assert scored == pytest.approx(fit.evaluate(problem.train), rel=1e-11)
    np.testing.assert_allclose(
        log_predictive(problem.test, posterior, problem.prior), fit.log_predictive(problem.test), rtol=1e-11
    )


def test_scikit_learn_takes_the_same_steps(problem: Problem) -> None:
    """Its posterior is read rightly, and its bound is ours once the constants that it drops are back."""
    mixture = run_scikit_learn.mixture_of(problem.numbers, problem.dimension, PASSES)
    mixture.labels = problem.labels
    bounds, scores = [], []
    dropped = run_scikit_learn.dropped_constants(problem.numbers, *problem.train.shape)

    def after(bound: float) -> None:
        bounds.append(bound + dropped)
        posterior = Posterior(**run_scikit_learn.posterior_of(mixture))
        scores.append(elbo(problem.train, posterior, problem.prior))

    mixture.after = after
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        mixture.fit(problem.train)
    # Step by step, because a fit puts components into falling order after a pass and scikit-learn does not.
    fits = [ours(problem, 0)]
    for _ in range(PASSES):
        responsibilities = fits[-1].predict_proba(problem.train)
        fits.append(sb.fit(fits[-1].model, problem.train, sb.Full(max_passes=0), init=responsibilities, progress=False))
    fits = fits[1:]
    np.testing.assert_allclose(bounds, [fit.elbo for fit in fits], rtol=1e-9)
    np.testing.assert_allclose(scores, [fit.evaluate(problem.train) for fit in fits], rtol=1e-9)
    # They still move, or equal steps would mean little.
    assert scores[-1] - scores[0] > 1.0


def test_bnpy_scores_itself_alike(problem: Problem, tmp_path: Path) -> None:
    """Its loss is -ELBO/(n D): of the summary as ours, and of a new local step as the scorer's."""
    python = os.environ.get("BNPY_PYTHON")
    if python is None:
        pytest.skip("no environment with bnpy: set BNPY_PYTHON to its interpreter (benches/peers/setup_bnpy.sh)")
    entrants, message = contenders.bnpy(python, batches=4)
    assert entrants, message
    problem.write(tmp_path / "problem")
    for index, entrant in enumerate(entrants):
        folder = tmp_path / str(index)
        result = entrant.run(tmp_path / "problem", folder, PASSES)
        run = score(entrant, result, problem, folder, [])
        assert run.own_evaluation == pytest.approx(run.elbo[-1], rel=1e-10)
        if entrant.dense_full:
            fits = [ours(problem, passes) for passes in range(1, PASSES + 1)]
            np.testing.assert_allclose(run.own_elbo, [fit.elbo for fit in fits], rtol=1e-9)


def test_checkpoints_end_with_the_last_pass() -> None:
    assert checkpoints(1) == [1]
    assert checkpoints(30) == [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 18, 22, 27, 30]


def test_an_interpreter_without_bnpy_is_left_out() -> None:
    for python in (None, "no-such-interpreter", sys.executable):
        entrants, message = contenders.bnpy(python, batches=4)
        assert entrants == []
        assert message.startswith("bnpy left out: ")


def test_children_get_all_kernels_and_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Prescott")
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "7")
    environment = contenders.clean_environment()
    assert "OPENBLAS_CORETYPE" not in environment
    assert environment["OPENBLAS_NUM_THREADS"] == environment["OMP_NUM_THREADS"] == "1"


@pytest.mark.slow
def test_quick_run(checkout: Path, tmp_path: Path) -> None:
    """Everything but bnpy on the small data set; no times are judged."""
    path = tmp_path / "peers.json"
    environment = {name: value for name, value in os.environ.items() if name != "BNPY_PYTHON"}
    command = [sys.executable, checkout / "benches" / "peers" / "mixture.py", "--quick", "--json", path]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert "bnpy left out" in done.stdout
    (measured,) = json.loads(path.read_text())["data"]
    runs, n = measured["runs"], measured["rows"]
    assert {run["package"] for run in runs} == {"stickbreak", "scikit-learn"}
    same = [run["elbo"] for run in runs if run["dense_full"]]
    assert len(same) == 2
    # Not equal: ours ends a pass with the components in falling order. `test_scikit_learn_agreement` compares steps.
    np.testing.assert_allclose(*same, rtol=5e-3)
    for run in runs:
        assert len(run["wall_seconds"]) == measured["passes"]
        assert run["checkpoints"][-1] == measured["passes"]
        # One more local step does not lower the bound, up to what float32 rounds.
        assert run["elbo"][-1] > run["own_elbo"][-1] - 1e-5 * n
        assert run["passes_to_common_elbo"] is not None
