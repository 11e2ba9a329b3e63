"""Every user error on the command line is one line on stderr, with its exit code, before any work."""

import json
import os
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
from click.testing import CliRunner, Result

import stickbreak as sb
from stickbreak.cli import program, specifications
from stickbreak.cli.program import ExitCode
from stickbreak.model.likelihoods import Likelihood
from stickbreak.model.processes import Process
from stickbreak.run.algorithms import Algorithm
from stickbreak.run.samplers import Sampler

FIT = "fit rows.npy --out m.safetensors --n-components 3".split()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = np.random.default_rng(0).standard_normal((40, 2))
    np.save("rows.npy", rows)
    np.save("wide.npy", np.ones((4, 3)))
    np.save("short.npy", np.ones(4))
    np.save("negative.npy", -np.ones(40))
    np.save("one.npy", np.ones((1, 2)))
    rows[3, 1] = np.nan
    np.save("nan.npy", rows)
    Path("bad.csv").write_text("a,b\n1,2\n3,x\n")
    Path("rows.xlsx").write_text("PK")
    sb.fit(sb.Mixture(sb.Gaussian()), np.load("rows.npy"), n_components=2).save("model.safetensors")
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(program, arguments)


def failed(arguments: list[str], code: int) -> str:
    """Return the error line, and check the JSON object for programs."""
    result = run(*arguments)
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    assert re.fullmatch(r"stickbreak: error: [^\n]+\n", result.stderr)
    again = run(*arguments, "--json")
    assert (again.exit_code, again.stderr) == (code, result.stderr)
    message = result.stderr.removeprefix("stickbreak: error: ").rstrip("\n")
    found = json.loads(again.stdout)
    assert list(found) == ["error"]
    assert found["error"]["message"] == message
    return message


FAILURES: dict[str, tuple[str, str]] = {
    "no data": ("fit nothing.csv --out m.safetensors", "nothing.csv: there is no such file"),
    "malformed data": ("fit bad.csv --out m.safetensors", "bad.csv: line 3, column 2 ('b'): 'x' is not a number"),
    "nan": (
        "fit nan.npy --out m.safetensors",
        "nan.npy: data must be finite, but it is NaN in row 3, column 1 (counted",
    ),
    "one row": ("fit one.npy --out m.safetensors", "one.npy: data must be an array of at least 2 rows"),
    "unknown format": ("fit rows.xlsx --out m.safetensors", "rows.xlsx"),
    "no model": ("predict nothing.safetensors rows.npy", "nothing.safetensors: there is no such file"),
    "foreign model": ("predict rows.npy rows.npy", "rows.npy: not a model file"),
    "other columns": ("predict model.safetensors wide.npy", "wide.npy: data must be of 2 columns"),
    "no start": ("fit rows.npy --out m.safetensors --init nothing.npy", "nothing.npy: there is no such file"),
    "no parameter": ("fit rows.npy --out m.safetensors --scale nothing.csv", "nothing.csv: there is no such file"),
    "short weights": ("fit rows.npy --out m.safetensors --weights short.npy", "short.npy: --weights must be"),
    "negative weights": ("score model.safetensors rows.npy --weights negative.npy", "negative.npy: --weights must"),
    "foreign info": ("info rows.npy", "rows.npy: not a model file"),
    "foreign generate": ("generate rows.npy -n 2", "rows.npy: not a model file"),
}

REFUSALS: dict[str, tuple[str, str]] = {
    "n_components": ("fit rows.npy --out m --n-components 0", "--n-components must be an integer from 1 to 40, but"),
    "more components": ("fit rows.npy --out m --n-components 41", "--n-components must be an integer from 1 to 40"),
    "sparsity": ("fit rows.npy --out m --sparsity 0", "--sparsity must be an integer of at least 1"),
    "sparsity above K": (
        "fit rows.npy --out m --sparsity 5 --n-components 4 --moves none",
        "--sparsity must be at most 4",
    ),
    "sparsity word": ("fit rows.npy --out m --sparsity thin", "'thin' is neither an integer nor 'auto' nor 'dense'"),
    "margin": ("fit rows.npy --out m --margin -1", "--margin must be a finite number of at least 0"),
    "margin word": ("fit rows.npy --out m --margin wide", "'wide' is neither a number nor 'none'"),
    "batches": ("fit rows.npy --out m --batches 41", "--batches must be at most 40"),
    "tol": ("fit rows.npy --out m --tol -1", "--tol must be a finite number of at least 0"),
    "max_passes": ("fit rows.npy --out m --max-passes -1", "--max-passes must be"),
    "seed": ("fit rows.npy --out m --seed -1", "--seed must be"),
    "threads": ("predict model.safetensors rows.npy --threads 0", "--threads must be"),
    "n_init": ("fit rows.npy --out m --n-init 0", "--n-init must be"),
    "init": ("fit rows.npy --out m --init kmean", "--init must be 'kmeans++' or 'random'"),
    "init is a model": ("fit rows.npy --out m --init kmean", "of shape (n, K) or a model file, but it is 'kmean'"),
    "init without suffix": (
        "fit rows.npy --out m --init rows.xlsx",
        "'rows.xlsx' is a file whose name does not say what it is: model files end in .safetensors",
    ),
    "start of others": ("fit rows.npy --out m --init short.npy", "--init must be"),
    "concentration": ("fit rows.npy --out m --concentration 0", "--concentration must be"),
    "dof": ("fit rows.npy --out m --dof 1", "--dof must be greater than D - 1"),
    "scale": ("fit rows.npy --out m --scale wide.npy", "--scale must be"),
    "neither": ("fit rows.npy --out m --scale wide", "'wide' is neither numbers with commas between them nor"),
    "truncation": ("fit rows.npy --out m --truncation nest", "--truncation must be"),
    "likelihood": ("fit rows.npy --out m --likelihood gausian", "did you mean 'gaussian'?"),
    "process": ("fit rows.npy --out m --process finite", "did you mean 'finite-dirichlet'?"),
    "schedule": ("fit rows.npy --out m --schedule none", "'full' or 'memoized' or 'stochastic'"),
    "moves": ("fit rows.npy --out m --moves births,merge", "did you mean 'birth'?"),
    "no move": ("fit rows.npy --out m --moves birth,", "but it is '' in 'birth,'"),
    "moves or none": ("fit rows.npy --out m --moves birth,foo", "with commas between them, or 'none', but it is 'foo'"),
    "moves and none": ("fit rows.npy --out m --moves birth,none", "but it is 'none' in 'birth,none'"),
    "move twice": ("fit rows.npy --out m --moves merge,merge", "--moves must be a sequence with each kind once"),
    "tail": (
        "fit rows.npy --out m --process py --discount 0.5 --truncation tail",
        "--truncation tail of --process pitman-yor is not supported",
    ),
    "moves of a finite process": (
        "fit rows.npy --out m --process fd --n-components 3 --moves birth",
        "use --moves none, or --process dirichlet-process with --truncation nested or tail",
    ),
    "moves of truncated sticks": (
        "fit rows.npy --out m --truncation stick --moves merge",
        "use --moves none, or --process dirichlet-process with --truncation nested or tail",
    ),
    "moves of a product": (
        "fit rows.npy --out m --likelihood sg --base product --moves split",
        "a move with --likelihood spherical-gaussian --base product is not supported",
    ),
    "moves of a point estimate": (
        "fit rows.npy --out m --objective ml --n-components 3 --moves merge",
        "a move with --objective ml is not supported",
    ),
    "moves of stochastic": (
        "fit rows.npy --out m --schedule stochastic --batch-size 10 --n-components 3 --moves merge",
        "use --moves none, --schedule memoized or full",
    ),
    "missing": (
        "fit rows.npy --out m --likelihood zero-mean-gaussian --missing marginalize",
        "use --likelihood bernoulli, categorical, diagonal-gaussian, gaussian, known-covariance-gaussian, "
        "negative-binomial, poisson, spherical-gaussian or student-t, or data without missing values",
    ),
    "word": (
        "fit rows.npy --out m --likelihood student-t --covariance diag",
        "'diag' is neither 'full', 'diagonal', numbers with commas between them nor the name of a data file",
    ),
    "of others": ("fit rows.npy --out m --likelihood zmg --mean 0,0", "--mean does not go with zero-mean-gaussian"),
    "size of a batch": ("fit rows.npy --out m --schedule stochastic", "needs --batch-size"),
    "of another schedule": ("fit rows.npy --out m --schedule full --batches 2", "--batches does not go with full"),
    "fixed number": ("fit rows.npy --out m --process fd", "finite-dirichlet needs --n-components"),
    "both weights": ("fit rows.npy --out m --weights short.npy --weight-column 1", "exclude each other"),
    "wide weights": ("fit rows.npy --out m --weights wide.npy", "--weights must be a data file of one column"),
    "weight column": ("fit rows.npy --out m --weight-column 3", "--weight-column must be a position from 1 to 2"),
    "columns": ("fit rows.npy --out m --columns 1,3", "--columns must be a position from 1 to 2, but it is '3'"),
    "no columns": ("fit rows.npy --out m --columns=", "--columns must be"),
    "delimiter": ("fit bad.csv --out m --delimiter ::", "--delimiter must be one character"),
    "n": ("generate model.safetensors -n -1", "-n must be an integer of at least 0"),
    "no n": ("generate model.safetensors", "Missing option '-n'"),
    "no out": ("fit rows.npy", "Missing option"),
    "no rows": ("predict model.safetensors", "Missing argument 'DATA'"),
    "no such option": ("fit rows.npy --outt m", "--out"),
    "no such command": ("fti rows.npy", "Did you mean 'fit'"),
    "not a number": ("fit rows.npy --out m --tol small", "'small' is not a valid float"),
    "seconds alone": ("fit rows.npy --out m --checkpoint-seconds 5", "--checkpoint-seconds needs --checkpoint"),
    "out is a folder": ("fit rows.npy --out .", "--out must be the name of a file, but it is '.', which is a folder"),
    "out has no folder": ("fit rows.npy --out no/m", "--out must be a file in a folder that exists"),
    "out below a file": ("fit rows.npy --out rows.npy/m", "--out must be a file in a folder that exists"),
    "out is a device": (f"fit rows.npy --out {os.devnull}", "no regular file"),
    "out is read": ("fit rows.npy --out ./rows.npy", "which is read"),
    "out is the checkpoint": ("fit rows.npy --out o --checkpoint ./o", "'./o', which is written too"),
    "delimiter of no text": ("fit rows.npy --out m --delimiter ;", "--delimiter does not go with .npy files"),
    "header of no text": ("predict model.safetensors rows.npy --no-header", "--header does not go with .npy files"),
    "key of no archive": ("score model.safetensors bad.csv --key a", "--key does not go with .csv files"),
    "out is the start": ("fit rows.npy --out model.safetensors --init model.safetensors", "which is read"),
    "labels are read": ("predict model.safetensors rows.npy --out rows.npy", "which is read"),
    "labels in no format": (
        "predict model.safetensors rows.npy --out l.txt",
        "--out must be the name of a file, ending",
    ),
    "labels in no folder": ("predict model.safetensors rows.npy --out no/l.csv", "--out must be a file in a folder"),
    "rows in no format": ("score model.safetensors rows.npy --rows s", "--rows must be the name of a file, ending in"),
    "new in no folder": ("generate model.safetensors -n 2 --out no/x.csv", "--out must be a file in a folder"),
    "height": ("demo --height 3", "--height"),
    "model on stdout": ("fit rows.npy --out -", "--out must be the name of a file, but it is '-', which is no file"),
    "trace on stdout": ("mcmc rows.npy --out -", "--out must be the name of a file, but it is '-', which is no file"),
    "checkpoint on stdout": ("fit rows.npy --out m --checkpoint -", "--checkpoint must be the name of a file"),
    "densities on stdout": (
        "score model.safetensors rows.npy --rows -",
        "--rows must be the name of a file, ending in",
    ),
    "labels on stdout": ("mcmc rows.npy --out m --labels -", "--labels must be the name of a file, ending in"),
    "proportions on stdout": (
        "topics rows.npy -k 2 --out m --proportions -",
        "--proportions must be the name of a file, ending in",
    ),
    "checkpoint is the start": (
        "fit rows.npy --out m --init model.safetensors --checkpoint model.safetensors",
        "--checkpoint must be the name of another file, but it is 'model.safetensors', which is read",
    ),
    "checkpoint of topics is the model": ("topics rows.npy -k 2 --out o --checkpoint o", "'o', which is written too"),
    "checkpoint is the proportions": (
        "topics rows.npy -k 2 --out o --proportions p.csv --checkpoint ./p.csv",
        "--checkpoint must be the name of another file, but it is './p.csv', which is written too",
    ),
    "checkpoint is the vocabulary": (
        "topics rows.npy -k 2 --out o --vocabulary bad.csv --checkpoint bad.csv",
        "--checkpoint must be the name of another file, but it is 'bad.csv', which is read",
    ),
    "checkpoint is the labels": (
        "mcmc rows.npy --out o --labels l.csv --checkpoint l.csv",
        "--checkpoint must be the name of another file, but it is 'l.csv', which is written too",
    ),
}


@pytest.mark.parametrize("name", FAILURES)
def test_failure(folder: Path, name: str) -> None:
    command, words = FAILURES[name]
    before = sorted(folder.iterdir())
    assert words in failed(command.split(), 1)
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize("name", REFUSALS)
def test_refusal(folder: Path, name: str) -> None:
    command, words = REFUSALS[name]
    before = sorted(folder.iterdir())
    assert words in failed(command.split(), 2)
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize("command", ["fit rows.npy --out no/m", "fit rows.npy --out . --checkpoint no/c"])
def test_places_are_tried_before_the_data_are_read(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(*_: object, **__: object) -> None:
        pytest.fail("the data were read")

    monkeypatch.setattr("stickbreak.io.datafiles.read", read)
    assert run(*command.split()).exit_code == 2


def test_error_object_says_what_python_says() -> None:
    found = json.loads(run(*FIT, "--seed", "-3", "--json").stdout)["error"]
    with pytest.raises(sb.InvalidArgument) as caught:
        sb.fit(sb.Mixture(sb.Gaussian()), np.ones((4, 1)), seed=-3)
    error = caught.value
    assert (found["type"], found["argument"]) == ("InvalidArgument", "seed")
    assert (found["found"], found["allowed"]) == (error.found, error.allowed)


@pytest.mark.parametrize(
    ("options", "type_", "argument", "found", "allowed"),
    [
        (
            "--process fd --n-components 3 --moves birth",
            "NotSupported",
            "moves",
            'a move with a process whose bound is "finite"',
            "--moves none, or --process dirichlet-process with --truncation nested or tail",
        ),
        (
            "--objective map --moves birth",
            "NotSupported",
            "moves",
            "a move with --objective map",
            "--moves none or --objective variational",
        ),
        (
            "--likelihood sg --base product --moves birth",
            "NotSupported",
            "moves",
            "a move with --likelihood spherical-gaussian --base product",
            "--moves none or --base conjugate",
        ),
        (
            "--schedule stochastic --batch-size 10 --moves birth",
            "NotSupported",
            "moves",
            "a move with --schedule stochastic",
            "--moves none, --schedule memoized or full",
        ),
        (
            "--objective map --concentration 0.5",
            "NotSupported",
            "objective",
            "--objective map with a concentration below 1",
            "a concentration of at least 1",
        ),
        (
            "--moves birth,foo",
            "InvalidArgument",
            "moves",
            "'foo' in 'birth,foo'",
            "some of 'birth', 'split', 'merge', 'delete' with commas between them, or 'none'",
        ),
        ("--schedule none", "InvalidArgument", "schedule", "'none'", "'full' or 'memoized' or 'stochastic'"),
    ],
)
def test_error_object_speaks_of_options(options: str, type_: str, argument: str, found: str, allowed: str) -> None:
    """Refusals of what does not go together, too."""
    error = json.loads(run("fit", "rows.npy", "--out", "m", *options.split(), "--json").stdout)["error"]
    assert error.pop("message")
    assert error == {"type": type_, "argument": argument, "found": found, "allowed": allowed}


@pytest.mark.parametrize(
    ("command", "argument"),
    [
        ("fit rows.npy --out m --n-components x", "n_components"),
        ("fit rows.npy --out m --n-components 0", "n_components"),
        ("fit rows.npy --out m --likelihood gausian", "likelihood"),
        ("fit rows.npy", "out"),
        ("predict model.safetensors", "data"),
        ("predict model.safetensors wide.npy", "data"),
        ("generate model.safetensors -n -1", "n"),
        ("fit rows.npy --out m --schedule full --batches 3", "batches"),
        ("fit rows.npy --out m --process fd", "n_components"),
        ("fit rows.npy --out m --checkpoint-seconds 5", "checkpoint_seconds"),
        ("fit rows.npy --out m --checkpoint c --checkpoint-seconds -5", "checkpoint_seconds"),
        ("fit rows.npy --out m --weights short.npy --weight-column 1", "weights"),
        ("fit rows.npy --out m --weights negative.npy", "weights"),
        ("score model.safetensors wide.npy --columns 1-2 --weight-column 4", "weight_column"),
        ("fit rows.npy --out m --weight-column 1", "weight_column"),
        ("fit rows.npy --outt m", "outt"),
        ("fit nothing.npy --out m", None),
    ],
)
def test_error_object_names_the_option(command: str, argument: str | None) -> None:
    assert json.loads(run(*command.split(), "--json").stdout)["error"]["argument"] == argument


@pytest.mark.parametrize("text", ["a\0b", "\ud800", "rows.csv\0"])
@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("fit rows.npy --out m --weights TEXT", "--weights"),
        ("fit rows.npy --out m --init TEXT", "--init"),
        ("fit rows.npy --out TEXT", "--out"),
        ("fit TEXT --out m", "DATA"),
        ("fit rows.npy --out m --checkpoint TEXT", "--checkpoint"),
        ("mcmc rows.npy --out m --init TEXT", "--init"),
        ("topics rows.npy -k 2 --out m --vocabulary TEXT", "--vocabulary"),
        ("topics rows.npy -k 2 --out m --test TEXT", "--test"),
        ("topics TEXT -k 2 --out m", "CORPUS"),
        ("score model.safetensors rows.npy --weights TEXT", "--weights"),
        ("predict TEXT rows.npy", "MODEL"),
        ("predict model.safetensors rows.npy --keep 1 --keep TEXT", "--keep"),
        ("info TEXT", "MODEL"),
    ],
)
def test_text_that_no_file_name_can_have(folder: Path, command: str, named: str, text: str) -> None:
    before = sorted(folder.iterdir())
    arguments = [text if word == "TEXT" else word for word in command.split()]
    assert re.match(f"Invalid value for '[^:]*{named}': .*which no file name can have", failed(arguments, 2))
    said = json.loads(run(*arguments, "--json").stdout)["error"]
    assert said["argument"] == named.lstrip("-").lower()
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (MemoryError(), 1),
        (OSError(28, "No space left on device"), 1),
        (sb.NumericalError("out of range"), 1),
        (sb.InternalError("a bug"), 1),
        (sb.CheckpointError("of other data"), 1),
        (KeyboardInterrupt(), 130),
    ],
)
def test_what_a_fit_may_raise(error: BaseException, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def fit(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("stickbreak.fit", fit)
    failed(FIT, code)
    assert not Path("m.safetensors").exists()


def test_what_cannot_be_written_after_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that fills up leaves the older file, and nothing else."""
    Path("labels.npy").write_bytes(b"older")

    def save(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("numpy.save", save)
    message = failed("predict model.safetensors rows.npy --out labels.npy".split(), 1)
    assert message == "labels.npy: cannot be written: No space left on device"
    assert Path("labels.npy").read_bytes() == b"older"
    assert not list(Path().glob(".*"))


def test_warnings_are_lines_too(monkeypatch: pytest.MonkeyPatch) -> None:
    import warnings

    fit = sb.fit

    def warn(*arguments: Any, **options: Any) -> sb.Fit:
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            warnings.warn("the checkpoint\ncannot be written", stacklevel=1)
        return fit(*arguments, **options)

    monkeypatch.setattr("stickbreak.fit", warn)
    assert run(*FIT).stderr == "stickbreak: warning: the checkpoint cannot be written\n"


@pytest.mark.filterwarnings("always")
def test_warnings_speak_of_options() -> None:
    found = run(*"mcmc rows.npy --out m --draws 3 --warmup 0 --chains 1 --sampler tg --search --labels l.csv".split())
    assert found.exit_code == 0
    assert found.stderr.startswith("stickbreak: warning: the draws are those of a search")
    assert "try --sampler tree-guided --exact\n" in found.stderr


def commands() -> list[str]:
    assert isinstance(program, click.Group)
    return list(program.commands)


@pytest.mark.parametrize("command", commands())
@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help(command: str, option: str) -> None:
    result = run(command, option)
    assert result.exit_code == 0
    assert result.stderr == ""
    assert f"  Example:\n      stickbreak {command} " in result.stdout
    assert "--json" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 100


def test_help_of_all() -> None:
    result = run("--help")
    assert result.exit_code == 0
    for command in commands():
        assert f"\n  {command} " in result.stdout
    for code in ExitCode:
        assert re.search(rf"\b{code.value} ", result.stdout)
    alone = run()
    assert alone.exit_code == 2
    assert alone.stdout == ""
    assert alone.stderr == result.stdout


def test_version() -> None:
    assert run("--version").stdout == f"stickbreak {sb.__version__}\n"


def test_every_option_has_help() -> None:
    for command in program.commands.values():
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert parameter.help, (command.name, parameter.name)
                assert "\\" not in parameter.help
                assert "`" not in parameter.help


@pytest.mark.parametrize("base", [Likelihood, Process])
def test_every_class_and_parameter_is_there(base: type[Any]) -> None:
    """Names, short names and parameters come from the classes, so a new class is there too, and no two collide."""
    kind = specifications.Kind(base)
    options = {option for parameter in program.commands["fit"].params for option in parameter.opts}
    names = kind.names()
    for found in base.__subclasses__():
        if found is sb.LatentDirichlet:
            # Of documents, which have a command of their own.
            assert kind.find("latent-dirichlet") is None
            continue
        if found is sb.Columns:
            # Its blocks stand in a file, or follow the data.
            assert kind.find("columns") is None
            continue
        assert kind.convert(found.__name__, None, None) is found
        assert kind.convert(specifications.kebab(found.__name__), None, None) is found
        for field in fields(found):
            assert specifications.option(field.name) in options
    every = re.split(r", | \(|\)", names)
    assert len({name for name in every if name}) == len([name for name in every if name])
    fit = [option for parameter in program.commands["fit"].params for option in parameter.opts]
    assert len(fit) == len(set(fit))


@pytest.mark.parametrize(
    ("command", "kinds"),
    [("fit", Algorithm.__subclasses__()), ("mcmc", Sampler.__subclasses__()), ("topics", [sb.Words])],
)
def test_every_field_is_an_option(command: str, kinds: list[type[Any]]) -> None:
    """Names, kinds of values and defaults come from the dataclasses."""
    options = {each.name: each for each in program.commands[command].params if isinstance(each, click.Option)}
    for name, owned in specifications.owners_of(kinds).items():
        field, found = owned[0][1], options[name]
        # The truncation of a sampler is not that of a process.
        expected = "--sampler-truncation" if name == "truncation" else specifications.option(name)
        assert expected in found.opts
        assert bool(found.secondary_opts) == (field.type is bool)
        if type(field.default) in (int, str):
            assert f"[default: {field.default}" in (found.help or "")
