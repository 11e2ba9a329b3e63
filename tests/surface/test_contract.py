"""The names and signatures that scripts outside the project rely on."""

import inspect
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import stickbreak as sb

ROWS = np.random.default_rng(0).standard_normal((40, 2))


def test_signature_of_fit() -> None:
    parameters = inspect.signature(sb.fit).parameters
    assert {name: each.default for name, each in parameters.items() if each.default is not each.empty} == {
        "algorithm": None,
        "n_components": None,
        "init": "kmeans++",
        "n_init": 1,
        "seed": 0,
        "threads": None,
        "sample_weight": None,
        "labels": None,
        "cluster": None,
        "exposure": None,
        "missing": "error",
        "progress": None,
        "callbacks": (),
        "checkpoint": None,
    }
    assert list(parameters)[:3] == ["model", "data", "algorithm"]
    keywords = [each for each in list(parameters.values())[3:] if each.kind is each.KEYWORD_ONLY]
    assert len(keywords) == 13


def test_specifications_take_their_parameters_as_shown() -> None:
    assert sb.FiniteDirichlet(4) == sb.FiniteDirichlet(n_components=4, concentration=1.0)
    assert sb.DirichletProcess(2.0) == sb.DirichletProcess(concentration=2.0, truncation="nested")
    assert sb.DirichletProcess() == sb.DirichletProcess(1.0)
    likelihood = sb.Gaussian(mean=[0.0, 1.0], mean_precision=0.5, dof=4.0, scale=np.eye(2))
    assert (likelihood.mean_precision, likelihood.dof) == (0.5, 4.0)
    assert sb.ZeroMeanGaussian(dof=3.0).scale is None
    assert sb.Mixture(likelihood=likelihood, process=sb.DirichletProcess()).likelihood == likelihood


def test_defaults_of_the_algorithms() -> None:
    for algorithm in (sb.Full(), sb.Memoized()):
        assert algorithm.objective is None
        assert algorithm.sparsity == "auto"
        assert algorithm.margin == 20.0
        assert algorithm.moves == ()
        assert algorithm.max_passes == 100
        assert algorithm.tol == 1e-6
        assert algorithm.bounds_memory == 128 * 1024 * 1024
    assert sb.Memoized().batches == "auto"
    assert sb.Memoized().shuffle is True
    assert sb.Memoized().shard_rows == 2**17
    assert sb.Full(objective="variational").objective == "variational"


def test_attributes_of_a_fit() -> None:
    model = sb.Mixture(likelihood=sb.Gaussian(), process=sb.DirichletProcess(concentration=1.5))
    fit = sb.fit(model, ROWS, sb.Full(max_passes=3), n_components=4)
    assert fit.n_components == 4
    assert isinstance(fit.n_occupied, int)
    assert {name: values.shape for name, values in fit.components.items()} == {
        "mean": (4, 2),
        "mean_precision": (4,),
        "dof": (4,),
        "scale": (4, 2, 2),
    }
    assert fit.weights.shape == fit.counts.shape == (4,)
    assert isinstance(fit.elbo, float)
    assert isinstance(fit.leftover_weight, float)
    assert fit.bound == "nested"
    assert fit.concentration == 1.5
    assert isinstance(fit.model, sb.Mixture)
    assert isinstance(fit.stop_reason, sb.StopReason)
    assert fit.error is None
    fields = ["index", "seconds", "elbo", "n_components", "proposed", "accepted", "evaluated_share"]
    assert [name for name in fields if hasattr(fit.history[0], name)] == fields


def test_stop_reasons() -> None:
    assert [each.name for each in sb.StopReason] == [
        "CONVERGED",
        "MAX_PASSES",
        "INTERRUPTED",
        "CALLBACK",
        "SOURCE_ERROR",
    ]


@pytest.mark.parametrize("name", ["fit", "load", "Fit", "Gaussian", "DirichletProcess", "Full", "Memoized", "Mixture"])
def test_public_objects_are_documented(name: str) -> None:
    public = getattr(sb, name)
    assert inspect.getdoc(public)
    if inspect.isclass(public):
        for member_name, member in inspect.getmembers(
            public, lambda value: inspect.isfunction(value) or isinstance(value, property)
        ):
            assert member_name.startswith("_") or inspect.getdoc(member), f"{name}.{member_name}"


def test_import_is_light() -> None:
    """SciPy, pandas and scikit-learn are no part of the package; importing it must not look for them."""
    script = "import sys, stickbreak; print(sorted({'scipy', 'pandas', 'sklearn', 'matplotlib'} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    assert run.stdout.strip() == "[]"
    assert run.stderr == ""


def test_use_from_any_directory(tmp_path: Path) -> None:
    script = "import stickbreak as sb; print(sb.fit.__name__, sb.__version__)"
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120, cwd=tmp_path
    )
    assert run.stdout.split() == ["fit", sb.__version__]
