"""Models, objectives and missing values on the command line, against the same fits in Python."""

import json
import re
import warnings
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner

import stickbreak as sb
from stickbreak.cli import main, program

COUNTS = np.random.default_rng(0).poisson([2.0, 5.0, 9.0], size=(200, 3)).astype(float)
HOLED = COUNTS.copy()
HOLED[::7, 1] = np.nan


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("counts.npy", COUNTS)
    np.save("holed.npy", HOLED)
    np.save("precision.npy", np.diag([1.0, 2.0, 3.0]))
    np.save("covariance.npy", np.eye(3))


def fitted(*arguments: str) -> sb.Fit:
    result = CliRunner().invoke(
        program, ["fit", *arguments, "--n-components", "2", "--quiet", "--out", "m.safetensors"]
    )
    assert result.exit_code == 0, result.output
    return sb.load("m.safetensors")


def in_python(likelihood: Any, rows: np.ndarray = COUNTS, algorithm: Any = None, **options: Any) -> sb.Fit:
    return sb.fit(sb.Mixture(likelihood=likelihood), rows, algorithm, n_components=2, progress=False, **options)


def test_numbers_of_each_column() -> None:
    """--shape takes one number for a DiagonalGaussian, and may take several for a Poisson."""
    arguments = "--likelihood", "poisson", "--shape", "1,2,3", "--rate", "0.5"
    assert fitted("counts.npy", *arguments).elbo == in_python(sb.Poisson([1, 2, 3], rate=0.5)).elbo
    diagonal = fitted("counts.npy", "--likelihood", "diagonal-gaussian", "--shape", "2", "--rate", "1,2,3")
    assert diagonal.elbo == in_python(sb.DiagonalGaussian(shape=2, rate=[1, 2, 3])).elbo


def test_matrices_from_files() -> None:
    arguments = "--likelihood", "kcg", "--covariance", "covariance.npy", "--mean-precision", "precision.npy"
    expected = in_python(sb.KnownCovarianceGaussian(np.eye(3), mean_precision=np.diag([1.0, 2.0, 3.0])))
    assert fitted("counts.npy", *arguments).elbo == expected.elbo


@pytest.mark.parametrize("objective", ["variational", "map", "ml"])
def test_objectives(objective: Any) -> None:
    found = fitted("counts.npy", "--likelihood", "poisson", "--objective", objective)
    moves = (sb.Birth(), sb.Merge(), sb.Delete()) if objective == "variational" else ()
    expected = in_python(sb.Poisson(), algorithm=sb.Memoized(objective=objective, moves=moves))
    assert (found.bound, found.elbo) == (expected.bound, expected.elbo)


def test_missing_values() -> None:
    found = fitted("holed.npy", "--likelihood", "poisson", "--missing", "marginalize")
    expected = in_python(sb.Poisson(), HOLED, missing="marginalize")
    assert found.elbo == expected.elbo
    np.testing.assert_array_equal(found.impute(HOLED), expected.impute(HOLED))


def test_rows_without_values_have_no_part_in_a_score() -> None:
    fit = fitted("holed.npy", "--likelihood", "poisson", "--missing", "marginalize")
    np.save("emptied.npy", np.concatenate([HOLED, np.full((5, 3), np.nan)]))
    shown = []
    for name in ("holed.npy", "emptied.npy"):
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            result = CliRunner().invoke(program, ["score", "m.safetensors", name, "--elbo", "--json"])
        assert result.exit_code == 0, result.output
        shown.append(json.loads(result.stdout))
        assert result.stderr.count("no value at all") == (name == "emptied.npy")
    assert shown[1]["mean_log_predictive"] == pytest.approx(fit.log_predictive(HOLED).mean(), rel=1e-12)
    assert shown[1]["elbo"] == pytest.approx(shown[0]["elbo"], rel=1e-12)


def test_info_says_that_values_may_be_missing() -> None:
    for options, missing in (((), "error"), (("--missing", "marginalize"), "marginalize")):
        fitted("counts.npy", "--likelihood", "poisson", *options)
        result = CliRunner().invoke(program, ["info", "m.safetensors"])
        assert ("values may be" in result.stdout) == (missing == "marginalize")
        result = CliRunner().invoke(program, ["info", "m.safetensors", "--json"])
        assert json.loads(result.stdout)["missing"] == missing


def test_a_warning_is_said_once() -> None:
    arguments = "fit counts.npy --schedule stochastic --batch-size 50 --decay 0.5 --n-components 2 --out m.safetensors"
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        result = CliRunner().invoke(program, arguments.split())
    assert result.exit_code == 0, result.output
    assert result.stderr.count("should be above 0.5") == 1


def test_help_lists_every_option_once_in_groups(capsys: pytest.CaptureFixture[str]) -> None:
    for command in program.commands.values():
        assert main([command.name or "", "--help"]) == 0
        text = capsys.readouterr().out
        titles = [line for line in text.splitlines() if line.endswith(":") and not line.startswith(" ")]
        assert titles[-1] == "Help:"
        for each in command.params:
            if isinstance(each, click.Option):
                name = max(each.opts, key=len)
                lines = [line for line in text.splitlines() if re.match(rf"  (-\w, )?{name}( |$)", line)]
                assert len(lines) == 1, name
    assert main(["fit", "--help"]) == 0
    text = capsys.readouterr().out
    titles = ["Output:", "Data:", "Model:", "Start:", "Algorithm:", "Parameters of the model:", "Help:"]
    assert [line for line in text.splitlines() if line in titles] == titles
    assert text.index("Algorithm:") < text.index("--max-passes") < text.index("Parameters of the model:")
    assert text.index("Parameters of the model:") < text.index("--dof")


@pytest.mark.parametrize(
    ("command", "title", "options"),
    [
        (
            "mcmc",
            "Algorithm:",
            ["--sampler", "--global-moves", "--depth", "--exact", "--trees", "--evenness", "--local"],
        ),
        ("mcmc", "Parameters of the model:", ["--dof", "--mass"]),
        ("topics", "Output:", ["--words", "--proportions"]),
        ("topics", "Data:", ["--vocabulary", "--test"]),
        ("topics", "Parameters of the model:", ["--concentration", "--word-concentration"]),
    ],
)
def test_groups_of_options(command: str, title: str, options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, "--help"]) == 0
    text = capsys.readouterr().out
    groups = dict(re.findall(r"^(\S.*:)\n((?:  .*\n)+)", text, re.MULTILINE))
    assert "Options:" not in groups
    for option in options:
        assert re.search(rf"^  {option}\b", groups[title], re.MULTILINE), option
