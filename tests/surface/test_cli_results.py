"""Results of the commands equal those of the Python package, number for number."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from click.testing import CliRunner, Result
from pyarrow import parquet

import stickbreak as sb
from cases import clustered_rows
from stickbreak.cli import program
from stickbreak.io import datafiles
from stickbreak.result.history import moves_of

WEIGHTS = np.linspace(0.5, 2.0, 300)


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    return clustered_rows(np.random.default_rng(0), 300, 3, 4)


@pytest.fixture
def folder(rows: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the rows in every format, and a fit of them."""
    monkeypatch.chdir(tmp_path)
    np.save("rows.npy", rows)
    np.savez("rows.npz", rows=rows)
    Path("rows.csv").write_text("a,b,c\n" + "".join(f"{a!r},{b!r},{c!r}\n" for a, b, c in rows.tolist()))
    np.save("weights.npy", WEIGHTS)
    np.save("weighted.npy", np.column_stack([rows[:, :2], WEIGHTS, rows[:, 2]]))
    python_fit(rows).save("model.safetensors")
    return tmp_path


def python_fit(rows: np.ndarray, **options: Any) -> sb.Fit:
    return sb.fit(sb.Mixture(sb.Gaussian()), rows, n_components=6, **options)


def run(*arguments: object) -> Result:
    result = CliRunner().invoke(program, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result


def answer(*arguments: object) -> dict[str, Any]:
    """The object on stdout, which must be the only line there."""
    result = run(*arguments, "--json")
    assert result.stderr == ""
    assert result.stdout.count("\n") == 1
    found = json.loads(result.stdout, parse_constant=lambda token: pytest.fail(f"{token} is no JSON"))
    assert isinstance(found, dict)
    return found


def same(fit: sb.Fit, other: sb.Fit) -> bool:
    """Whether two fits are equal, but for the time they took."""
    return (
        fit.elbo == other.elbo
        and fit.model == other.model
        and repr([record.elbo for record in fit.history])
        == repr([record.elbo for record in other.history])  # nan is nan here
        and all(np.array_equal(value, other.components[name]) for name, value in fit.components.items())
    )


@pytest.mark.parametrize("data", ["rows.npy", "rows.npz", "rows.csv"])
def test_fit_equals_python(folder: Path, rows: np.ndarray, data: str) -> None:
    run("fit", data, "--n-components", 6, "--out", "m.safetensors")
    assert same(sb.load("m.safetensors"), python_fit(rows))


# On the command line the default has moves, whatever the other options are.
USUAL = (sb.Birth(), sb.Merge(), sb.Delete())
FULL = sb.Full(sparsity=None, margin=None, max_passes=7, tol=0.0, moves=USUAL)
MEMOIZED = sb.Memoized(batches=3, shuffle=False, sparsity=2, margin=3.5, max_passes=4, tol=1e-3, moves=USUAL)
SCALE = [[2.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 3.0]]

FITS: dict[str, tuple[list[object], sb.Mixture, Any, dict[str, Any]]] = {
    "defaults": ([], sb.Mixture(sb.Gaussian()), None, {}),
    "full": (
        "--schedule full --sparsity dense --margin none --max-passes 7 --tol 0 --n-components 4".split(),
        sb.Mixture(sb.Gaussian()),
        FULL,
        {"n_components": 4},
    ),
    "memoized": (
        "--batches 3 --no-shuffle --sparsity 2 --margin 3.5 --max-passes 4 --tol 1e-3 --n-components 4".split(),
        sb.Mixture(sb.Gaussian()),
        MEMOIZED,
        {"n_components": 4},
    ),
    "stochastic": (
        "--schedule stochastic --batch-size 50 --delay 2 --decay 0.75 --max-passes 3 --n-components 4".split(),
        sb.Mixture(sb.Gaussian()),
        sb.Stochastic(50, 2.0, 0.75, max_passes=3),
        {"n_components": 4},
    ),
    "words": (
        ["--schedule", "MEMOIZED", "--batches", "auto", "--sparsity", "auto", "--shuffle", "--n-components", 4],
        sb.Mixture(sb.Gaussian()),
        sb.Memoized(moves=USUAL),
        {"n_components": 4},
    ),
    "no moves": (
        ["--moves", "none", "--n-components", 4],
        sb.Mixture(sb.Gaussian()),
        sb.Memoized(),
        {"n_components": 4},
    ),
    "no moves, no number": (["--moves", "none"], sb.Mixture(sb.Gaussian()), sb.Memoized(), {}),
    "moves by name": (
        ["--moves", "split, MERGE", "--schedule", "full"],
        sb.Mixture(sb.Gaussian()),
        sb.Full(moves=(sb.Split(), sb.Merge())),
        {},
    ),
    "model without moves": (
        ["--truncation", "stick", "--sparsity", 3],
        sb.Mixture(sb.Gaussian(), process=sb.DirichletProcess(truncation="stick")),
        sb.Memoized(sparsity=3),
        {},
    ),
    "parameters": (
        "--mean 1,2,-3 --mean-precision 0.5 --dof 6 --scale scale.csv --concentration 2.5 --truncation nested "
        "--n-components 4".split(),
        sb.Mixture(
            sb.Gaussian(mean=[1, 2, -3], mean_precision=0.5, dof=6, scale=SCALE), process=sb.DirichletProcess(2.5)
        ),
        None,
        {"n_components": 4},
    ),
    "others": (
        ["--likelihood", "zero_mean_gaussian", "--process", "fd", "--n-components", 3, "--dof", 7],
        sb.Mixture(sb.ZeroMeanGaussian(dof=7), process=sb.FiniteDirichlet(3)),
        None,
        {},
    ),
    "class names": (
        ["--likelihood", "ZeroMeanGaussian", "--process", "FiniteDirichlet", "--n-components", 3, "--concentration", 9],
        sb.Mixture(sb.ZeroMeanGaussian(), process=sb.FiniteDirichlet(3, concentration=9)),
        None,
        {},
    ),
    "trees": (
        ["--units", "kd-tree", "--kd-tree", "refine=false", "--kd-tree", "depth=5", "--schedule", "full"],
        sb.Mixture(sb.Gaussian()),
        sb.Full(moves=USUAL, units=sb.KdTree(refine=False, depth=5)),
        {},
    ),
    "start": (
        ["--init", "random", "--n-init", 3, "--seed", 11, "--threads", 1, "--n-components", 5],
        sb.Mixture(sb.Gaussian()),
        None,
        {"init": "random", "n_init": 3, "seed": 11, "n_components": 5},
    ),
    "weights": (
        ["--weights", "weights.npy", "--n-components", 4],
        sb.Mixture(sb.Gaussian()),
        None,
        {"n_components": 4, "sample_weight": WEIGHTS},
    ),
}


@pytest.mark.parametrize("name", FITS)
@pytest.mark.one_in(4)
def test_options_of_fit(folder: Path, rows: np.ndarray, name: str) -> None:
    options, model, algorithm, arguments = FITS[name]
    np.savetxt("scale.csv", SCALE, delimiter=";")
    run("fit", "rows.npy", *options, "--out", "m.safetensors")
    assert same(sb.load("m.safetensors"), sb.fit(model, rows, algorithm, **arguments))


def test_units_are_told_where_they_are_fewer_than_rows(folder: Path, rows: np.ndarray) -> None:
    """The text output states the units only then; JSON always has them."""
    tree = ["--units", "kd-tree", "--kd-tree", "refine=false", "--kd-tree", "depth=5", "--schedule", "full"]
    told = run("fit", "rows.npy", *tree, "--out", "m.safetensors").stdout
    n_units = answer("fit", "rows.npy", *tree, "--out", "m.safetensors")["n_units"]
    assert n_units == sb.load("m.safetensors").history[-1].n_units < 300
    assert f"{n_units} nodes and rows in the last pass" in told
    assert "nodes and rows" not in run("fit", "rows.npy", "--out", "m.safetensors").stdout
    assert answer("fit", "rows.npy", "--out", "m.safetensors")["n_units"] == 300


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["tolerence=1"], "did you mean 'tolerance'?"),
        (["tolerance=-1"], "--kd-tree tolerance must be"),
        (["depth=x"], "--kd-tree depth must be"),
        (["depth=3", "depth=5"], "'depth' is given twice"),
        (["depth"], "NAME=VALUE"),
    ],
)
def test_wrong_settings_of_trees(folder: Path, settings: list[str], said: str) -> None:
    given = [word for setting in settings for word in ("--kd-tree", setting)]
    arguments = ["fit", "rows.npy", "--units", "kd-tree", *given, "--out", "m.safetensors"]
    result = CliRunner().invoke(program, arguments)
    assert result.exit_code == 2
    assert said in result.output
    assert not Path("m.safetensors").exists()


@pytest.mark.parametrize("command", ["fit rows.npy", "mcmc rows.npy --draws 2", "topics rows.npy -k 2"])
def test_models_replace_no_data(folder: Path, command: str) -> None:
    Path("precious.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    result = CliRunner().invoke(program, [*command.split(), "--out", "precious.csv"])
    assert result.exit_code != 0
    assert "the name of a data file" in str(result.exception) + result.output
    assert Path("precious.csv").read_text(encoding="utf-8") == "a,b\n1,2\n"


@pytest.mark.parametrize("command", ["fit rows.npy", "mcmc rows.npy --draws 2", "topics counts.npy -k 2"])
def test_models_replace_files_of_others_only_by_force(folder: Path, command: str) -> None:
    np.save("counts.npy", np.arange(12.0).reshape(6, 2))
    options = {"fit": ["--max-passes", "1"], "topics": ["--max-passes", "1"]}.get(command.split()[0], ["--warmup", "1"])
    arguments = [*command.split(), *options, "--quiet", "--out", "corpus.txt"]
    Path("corpus.txt").write_text("words of mine\n", encoding="utf-8")
    result = CliRunner().invoke(program, arguments)
    assert result.exit_code == 2
    assert "--out must be the name of a new file, or --force to replace it, but it is 'corpus.txt'" in result.output
    assert Path("corpus.txt").read_text(encoding="utf-8") == "words of mine\n"
    run(*arguments, "--force")
    # A file of its own is replaced again.
    run(*arguments)
    assert sb.load("corpus.txt") is not None


def test_columns_and_weight_column(folder: Path, rows: np.ndarray) -> None:
    run("fit", "weighted.npy", "--weight-column", 3, "--n-components", 6, "--out", "m.safetensors")
    assert same(sb.load("m.safetensors"), python_fit(rows, sample_weight=WEIGHTS))
    run("fit", "rows.csv", "--columns", '"c",a', "--n-components", 6, "--out", "m.safetensors")
    assert same(sb.load("m.safetensors"), python_fit(rows[:, [2, 0]]))
    run("fit", "rows.csv", "--columns", "2-3", "--delimiter", "comma", "--header", "--n-components", 6, "--out", "n")
    assert same(sb.load("n"), python_fit(rows[:, 1:]))


@pytest.mark.parametrize("kind", ["labels.npy", "labels.csv", "responsibilities.npy", "model.safetensors"])
def test_starts_in_files(folder: Path, rows: np.ndarray, kind: str) -> None:
    earlier = sb.load("model.safetensors")
    labels, shares = earlier.predict(rows), earlier.predict_proba(rows)
    np.save("labels.npy", labels)
    np.savetxt("labels.csv", labels, fmt="%d")
    np.save("responsibilities.npy", shares)
    run("fit", "rows.npy", "--init", kind, "--out", "m.safetensors")
    init = {"l": labels, "r": shares, "m": earlier}[kind[0]]
    assert same(sb.load("m.safetensors"), sb.fit(sb.Mixture(sb.Gaussian()), rows, init=init))


def table(path: Path | str) -> np.ndarray:
    """Return the content of an output file, read by its format alone."""
    path = Path(path)
    if path.suffix == ".npy":
        return np.load(path, allow_pickle=False)
    if path.suffix == ".json":
        (values,) = json.loads(path.read_text()).values()
        return np.array(values)
    with path.open(newline="") as file:
        _, *lines = csv.reader(file)
    return np.array([[float(field) for field in line] for line in lines])


@pytest.mark.parametrize("suffix", [".csv", ".npy", ".json"])
@pytest.mark.parametrize("data", ["rows.csv", "rows.npy"])
def test_files_hold_what_python_computes(folder: Path, rows: np.ndarray, data: str, suffix: str) -> None:
    fit = sb.load("model.safetensors")
    run("predict", "model.safetensors", data, "--out", f"labels{suffix}")
    run("predict", "model.safetensors", data, "--proba", "--out", f"shares{suffix}", "--threads", 1)
    run("score", "model.safetensors", data, "--rows", f"scores{suffix}")
    run("generate", "model.safetensors", "-n", 25, "--seed", 3, "--out", f"new{suffix}")
    expected = {
        "labels": fit.predict(rows),
        "shares": fit.predict_proba(rows),
        "scores": fit.log_predictive(rows),
        "new": fit.sample(25, seed=3),
    }
    for name, values in expected.items():
        found = table(f"{name}{suffix}")
        np.testing.assert_array_equal(found.reshape(values.shape), values)
        if suffix == ".npy":
            assert found.dtype == values.dtype
            assert found.shape == values.shape
    assert not list(folder.glob(".*"))


def test_names_in_files(folder: Path) -> None:
    run("predict", "model.safetensors", "rows.npy", "--out", "labels.csv")
    run("predict", "model.safetensors", "rows.npy", "--proba", "--out", "shares.csv")
    run("score", "model.safetensors", "rows.npy", "--rows", "scores.csv")
    run("generate", "model.safetensors", "-n", 2, "--out", "new.csv")
    first = {name: Path(f"{name}.csv").read_text().splitlines()[0] for name in ("labels", "shares", "scores", "new")}
    assert first == {
        "labels": "component",
        "shares": ",".join(f"component_{k}" for k in range(sb.load("model.safetensors").n_components)),
        "scores": "log_predictive",
        "new": "x1,x2,x3",
    }
    assert datafiles.read("new.csv").names == ("x1", "x2", "x3")


def test_stdout_holds_what_files_hold(folder: Path) -> None:
    for arguments in (["predict", "model.safetensors", "rows.npy"], ["generate", "model.safetensors", "-n", 9]):
        printed = run(*arguments).stdout
        assert run(*arguments, "--out", "out.csv").stdout == ""
        assert Path("out.csv").read_text() == printed


def test_no_rows_are_a_header_alone(folder: Path) -> None:
    assert run("generate", "model.safetensors", "-n", 0).stdout == "x1,x2,x3\n"
    run("generate", "model.safetensors", "-n", 0, "--out", "new.csv")
    assert Path("new.csv").read_text() == "x1,x2,x3\n"


def test_json_of_results(folder: Path, rows: np.ndarray) -> None:
    fit = sb.load("model.safetensors")
    assert answer("predict", "model.safetensors", "rows.npy") == {"components": fit.predict(rows).tolist()}
    shares = answer("predict", "model.safetensors", "rows.npy", "--proba")
    assert shares == {"responsibilities": fit.predict_proba(rows).tolist()}
    assert answer("generate", "model.safetensors", "-n", 2) == {"rows": fit.sample(2).tolist()}
    out = answer("predict", "model.safetensors", "rows.npy", "--out", "x.npy")
    assert out == {"out": "x.npy", "shape": [300]}


def test_a_background_has_the_last_column(folder: Path, rows: np.ndarray) -> None:
    run("fit", "rows.npy", "--background", "--out", "behind.safetensors")
    fit = sb.load("behind.safetensors")
    shares = fit.predict_proba(rows, tail=True)
    assert answer("predict", "behind.safetensors", "rows.npy", "--proba") == {"responsibilities": shares.tolist()}
    header = run("predict", "behind.safetensors", "rows.npy", "--proba").stdout.splitlines()[0]
    assert header.split(",") == [*(f"component_{k}" for k in range(fit.n_components)), "background"]


def test_score(folder: Path, rows: np.ndarray) -> None:
    fit = sb.load("model.safetensors")
    densities = fit.log_predictive(rows)
    found = answer("score", "model.safetensors", "rows.csv")
    assert found == {"mean_log_predictive": densities.mean(), "n_rows": 300, "rows": None}
    found = answer("score", "model.safetensors", "rows.csv", "--elbo", "--rows", "x.csv")
    assert found == {
        "mean_log_predictive": densities.mean(),
        "n_rows": 300,
        "elbo": fit.evaluate(rows),
        "rows": "x.csv",
    }
    for weights in (["rows.npy", "--weights", "weights.npy"], ["weighted.npy", "--weight-column", 3]):
        found = answer("score", "model.safetensors", *weights, "--elbo")
        assert found["mean_log_predictive"] == pytest.approx(np.average(densities, weights=WEIGHTS), rel=1e-14)
        assert found["elbo"] == fit.evaluate(rows, sample_weight=WEIGHTS)
    printed = run("score", "model.safetensors", "rows.npy", "--elbo").stdout
    assert f"{densities.mean():.8g} nats a row" in printed
    assert f"{fit.evaluate(rows):.8g} nats" in printed


def test_scores_replace_no_file_that_is_read(folder: Path) -> None:
    np.savetxt("weights.csv", WEIGHTS)
    for path in ("weights.csv", "rows.csv"):
        before = Path(path).read_bytes()
        options = ["rows.csv", "--weights", "weights.csv", "--rows", path]
        result = CliRunner().invoke(program, ["score", "model.safetensors", *options])
        assert result.exit_code == 2
        assert path in result.stderr
        assert Path(path).read_bytes() == before


def test_numbers_that_are_not_finite_are_null(folder: Path, rows: np.ndarray) -> None:
    """A fit without passes has no bound if its start used only some rows."""
    found = answer(
        "fit", "rows.npy", "--n-components", 4, "--init", "random", "--max-passes", 0, "--out", "m.safetensors"
    )
    assert np.isnan(sb.load("m.safetensors").elbo)
    assert found["elbo"] is None
    assert found["passes"] == 0


def test_summary_of_a_fit(folder: Path, rows: np.ndarray) -> None:
    printed = run("fit", "rows.npy", "--n-components", 6, "--out", "m.safetensors").stdout
    fit = sb.load("m.safetensors")
    for words in (
        "300 rows, 3 columns",
        "Gaussian, DirichletProcess(concentration=1.0",
        f"{fit.n_components}, of which {fit.n_occupied} in use",
        f"{fit.elbo:.8g} nats",
        f"{len(fit.history)} in ",
        f"({fit.stop_reason.value.replace('_', ' ')})",
        *(f"{move.accepted} of {move.proposed} {move.kind}" for move in moves_of(fit.history) if move.proposed),
        "m.safetensors",
    ):
        assert words in printed
    assert printed.startswith(run("info", "m.safetensors").stdout)
    assert run("fit", "rows.npy", "--n-components", 6, "--out", "m.safetensors", "--quiet").output == ""


@pytest.mark.parametrize(("options", "progress"), [([], None), (["--quiet"], False), (["--json"], None)])
def test_progress(folder: Path, options: list[str], progress: bool | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """None leaves it to `fit` to find out whether stderr is a terminal."""
    asked: list[object] = []
    fit = sb.fit

    def fit_and_note(*arguments: Any, **named: Any) -> sb.Fit:
        asked.append(named["progress"])
        return fit(*arguments, **named)

    monkeypatch.setattr("stickbreak.fit", fit_and_note)
    run("fit", "rows.npy", "--n-components", 3, "--out", "m.safetensors", *options)
    assert asked == [progress]


def test_json_of_a_fit(folder: Path, rows: np.ndarray) -> None:
    found = answer("fit", "rows.npy", "--n-components", 6, "--out", "m.safetensors")
    fit = sb.load("m.safetensors")
    assert found.pop("out") == "m.safetensors"
    assert found == answer("info", "m.safetensors")
    assert (found["elbo"], found["objective"]) == (fit.elbo, fit.objective)
    assert found["weights"] == fit.weights.tolist()
    assert found["counts"] == fit.counts.tolist()
    assert found["stop_reason"] == fit.stop_reason.value
    assert (found["n_rows"], found["n_columns"], found["n_components"]) == (300, 3, fit.n_components)
    assert [move["kind"] for move in found["moves"]] == ["birth", "merge", "delete"]
    for key in ("proposed", "accepted"):
        assert sum(move[key] for move in found["moves"]) == sum(getattr(record, key) for record in fit.history)
    assert (found["n_occupied"], found["passes"]) == (fit.n_occupied, len(fit.history))
    likelihood = fit.model.likelihood
    assert isinstance(likelihood, sb.Gaussian)
    assert found["likelihood"]["name"] == "Gaussian"
    assert found["likelihood"]["scale"] == np.asarray(likelihood.scale).tolist()
    process = {"name": "DirichletProcess", "concentration": 1.0, "truncation": "nested", "sticks": None}
    assert found["process"] == process


def test_the_second_best_of_several_starts_is_told(folder: Path, rows: np.ndarray) -> None:
    found = answer("fit", "rows.npy", "--n-components", 6, "--n-init", 2, "--out", "m.safetensors")
    second = sb.load("m.safetensors").runner_up
    assert second is not None
    assert found["runner_up"] == {"objective": second.objective, "ari": second.ari}
    told = f"nats lower, adjusted Rand index {second.ari:.2f}"
    assert told in run("info", "m.safetensors").output


def test_checkpoint(folder: Path, rows: np.ndarray) -> None:
    start = ["fit", "rows.npy", "--n-components", 6, "--tol", 0, "--checkpoint", "c", "--checkpoint-seconds", 0]
    run(*start, "--max-passes", 3, "--out", "first")
    assert Path("c").is_file()
    run(*start, "--max-passes", 8, "--out", "second")
    assert same(sb.load("second"), python_fit(rows, algorithm=sb.Memoized(max_passes=8, tol=0, moves=USUAL)))
    assert sb.load("second").history[:3] == sb.load("first").history


def test_parquet(folder: Path, rows: np.ndarray) -> None:
    parquet.write_table(pyarrow.table({name: rows[:, place] for place, name in enumerate("abc")}), "rows.parquet")
    run("fit", "rows.parquet", "--n-components", 6, "--out", "m.safetensors")
    assert same(sb.load("m.safetensors"), python_fit(rows))


@pytest.mark.filterwarnings("always::stickbreak.ConversionWarning")
def test_parquet_of_integers(folder: Path) -> None:
    """Converting the data warns, as for other files; converting labels and weights does not."""
    columns = {name: np.arange(300) % place for place, name in enumerate("abc", start=7)}
    parquet.write_table(pyarrow.table(columns), "rows.parquet")
    parquet.write_table(pyarrow.table({"label": np.arange(300) % 6}), "labels.parquet")
    parquet.write_table(pyarrow.table({"weight": np.arange(300)}), "weights.parquet")
    options = ["--init", "labels.parquet", "--weights", "weights.parquet", "--max-passes", 1, "--out", "m.safetensors"]
    said = run("fit", "rows.parquet", *options).stderr
    assert said.startswith("stickbreak: warning: integers are converted to float64")
    assert said.count("warning") == 1
    assert run("fit", "rows.npy", *options).stderr == ""
