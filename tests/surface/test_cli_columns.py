"""Tables with columns of several kinds on the command line: text, `--likelihood auto` and `--columns-spec`."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result

import stickbreak as sb
from stickbreak.cli import program

N = 90
RNG = np.random.default_rng(0)
KIND = np.arange(N) % 3
FRAME = pd.DataFrame(
    {
        "age": RNG.normal(9.0 * KIND),
        "town": np.array(["Ulm", "Bonn", "Jena"])[KIND],
        "visits": RNG.poisson(2.0 + 9.0 * KIND),
        "member": KIND > 0,
        "children": np.array(["0", "1", "2+"])[KIND],
    }
)
SPEC: dict[str, Any] = {
    "age": {"likelihood": "gaussian", "dof": 4},
    "town, children": "Categorical",
    "visits": {"likelihood": "negative-binomial", "rate": 0.5},
    "member": "bernoulli",
}
MODEL = sb.Columns(
    {
        "age": sb.Gaussian(dof=4),
        "town, children": sb.Categorical(),
        "visits": sb.NegativeBinomial(rate=0.5),
        "member": sb.Bernoulli(),
    }
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    FRAME.to_csv("table.csv", index=False)
    FRAME.drop(columns="children").to_csv("plain.csv", index=False)
    Path("spec.json").write_text(json.dumps(SPEC))


def run(*arguments: str, **options: Any) -> Result:
    return CliRunner().invoke(program, arguments, **options)


def good(*arguments: str, **options: Any) -> Result:
    result = run(*arguments, **options)
    assert result.exit_code == 0, result.output
    return result


def failed(*arguments: str, code: int = 1, **options: Any) -> str:
    result = run(*arguments, **options)
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("stickbreak: error: ")
    return result.stderr


def fitted(*arguments: str) -> sb.Fit:
    good("fit", *arguments, "--n-components", "3", "--out", "m.safetensors")
    return sb.load("m.safetensors")


@pytest.mark.parametrize("option", [[], ["--likelihood", "auto"]], ids=["default", "auto"])
def test_text_becomes_levels(option: list[str]) -> None:
    result = good("fit", "plain.csv", *option, "--out", "m.safetensors")
    said = "plain.csv has columns that are no numbers, so the likelihood is auto"
    assert (said in result.stderr) == (not option)
    assert "town" in result.stderr
    assert "3 levels: 'Bonn', 'Jena', 'Ulm'" in result.stderr
    fit = sb.load("m.safetensors")
    assert fit.levels == {"town": ("Bonn", "Jena", "Ulm")}
    blocks = {"age": sb.Gaussian(), "visits": sb.NegativeBinomial(), "member": sb.Bernoulli(), "town": sb.Categorical()}
    assert [type(part) for part in fit.model.likelihood.blocks.values()] == [type(part) for part in blocks.values()]
    frame = FRAME.drop(columns="children")
    assert fit.elbo == sb.fit(sb.Mixture(likelihood=sb.Columns(blocks)), frame.astype({"member": float})).elbo


def test_quiet_says_nothing() -> None:
    result = good("fit", "plain.csv", "--quiet", "--out", "m.safetensors")
    assert (result.stdout, result.stderr) == ("", "")


def test_numbers_alone_have_a_gaussian() -> None:
    FRAME[["age", "visits"]].to_csv("numbers.csv", index=False)
    result = good("fit", "numbers.csv", "--out", "m.safetensors")
    assert result.stderr == ""
    assert isinstance(sb.load("m.safetensors").model.likelihood, sb.Gaussian)
    good("fit", "numbers.csv", "--likelihood", "auto", "--quiet", "--out", "m.safetensors")
    assert isinstance(sb.load("m.safetensors").model.likelihood, sb.Columns)


def test_later_rows_of_many_amounts_may_have_holes() -> None:
    amounts = np.random.default_rng(0).normal(size=(300, 21))
    pd.DataFrame(amounts, columns=[f"amount {place}" for place in range(21)]).to_csv("amounts.csv", index=False)
    options = ("fit", "amounts.csv", "--likelihood", "auto", "--quiet", "--out", "m.safetensors")
    for missing, kind in (("error", sb.Gaussian), ("marginalize", sb.DiagonalGaussian)):
        good(*options, "--missing", missing)
        (part,) = sb.load("m.safetensors").model.likelihood.blocks.values()
        assert type(part) is kind


def test_parameters_of_a_gaussian_refuse_text() -> None:
    message = failed("fit", "plain.csv", "--dof", "9", "--out", "m.safetensors")
    assert "plain.csv: line 2, column 2 ('town'): 'Ulm' is not a number" in message
    assert "'Ulm' is not a number" in failed("fit", "plain.csv", "--likelihood", "dg", "--out", "m.safetensors")


def test_a_file_states_the_blocks() -> None:
    fit = fitted("table.csv", "--columns-spec", "spec.json")
    assert fit.levels == {"town": ("Bonn", "Jena", "Ulm"), "children": ("0", "1", "2+")}
    expected = sb.fit(sb.Mixture(likelihood=MODEL), FRAME.astype({"member": float}), n_components=3)
    assert fit.elbo == expected.elbo


def test_other_commands_read_such_tables() -> None:
    fit = fitted("table.csv", "--columns-spec", "spec.json")
    labels = good("predict", "m.safetensors", "table.csv").stdout.split()[1:]
    assert list(map(int, labels)) == fit.predict(FRAME).tolist()
    # Values that look like numbers are levels still, in another order of columns.
    some = FRAME[FRAME["children"] != "2+"][FRAME.columns[::-1]]
    some.to_csv("some.csv", index=False)
    labels = good("predict", "m.safetensors", "some.csv").stdout.split()[1:]
    assert list(map(int, labels)) == fit.predict(some).tolist()
    score = json.loads(good("score", "m.safetensors", "table.csv", "--elbo", "--json").stdout)
    assert score["mean_log_predictive"] == pytest.approx(fit.log_predictive(FRAME).mean())
    assert score["elbo"] == fit.evaluate(FRAME)
    found = json.loads(good("info", "m.safetensors", "--json").stdout)
    assert found["levels"] == {"town": ["Bonn", "Jena", "Ulm"], "children": ["0", "1", "2+"]}
    assert found["likelihood"]["blocks"]["age"]["name"] == "Gaussian"
    assert "Columns" in good("info", "m.safetensors").stdout


def test_generated_rows_have_words() -> None:
    fit = fitted("table.csv", "--columns-spec", "spec.json")
    good("generate", "m.safetensors", "-n", "50", "--out", "new.csv")
    new = pd.read_csv("new.csv")
    assert set(new["town"]) == {"Ulm", "Bonn", "Jena"}
    good("predict", "m.safetensors", "new.csv")
    rows = json.loads(good("generate", "m.safetensors", "-n", "2", "--json").stdout)["rows"]
    assert rows[0][1] in fit.levels["town"]
    good("generate", "m.safetensors", "-n", "50", "--out", "new.npy")
    codes = np.load("new.npy")
    np.testing.assert_array_equal(codes, fit.sample(50))
    assert new["town"].tolist() == [fit.levels["town"][int(code)] for code in codes[:, 1]]
    good("generate", "m.safetensors", "-n", "50", "--out", "new.parquet")
    assert pd.read_parquet("new.parquet")["town"].tolist() == new["town"].tolist()


def test_a_new_level_is_an_error() -> None:
    fitted("table.csv", "--columns-spec", "spec.json")
    FRAME.replace({"town": {"Bonn": "Bon"}}).to_csv("new.csv", index=False)
    for command in (("predict",), ("score",)):
        message = failed(*command, "m.safetensors", "new.csv")
        assert "new.csv: data must be a table with the levels of the fit ('Bonn', 'Jena', 'Ulm')" in message
        assert "'Bon' in row 1, column 'town'" in message


@pytest.mark.parametrize("missing", ["error", "marginalize"])
def test_missing_words(missing: str) -> None:
    incomplete = FRAME.drop(columns="children").astype({"town": object})
    incomplete.loc[5, "town"] = None
    incomplete.loc[6, "visits"] = None
    incomplete.to_csv("holes.csv", index=False)
    arguments = ["fit", "holes.csv", "--out", "m.safetensors", "--missing", missing]
    if missing == "error":
        assert "line 7, column 2 ('town'): an empty field" in failed(*arguments)
        return
    good(*arguments)
    good("predict", "m.safetensors", "holes.csv")
    found = json.loads(good("score", "m.safetensors", "holes.csv", "--json").stdout)
    expected = sb.load("m.safetensors").log_predictive(incomplete.astype({"member": float})).mean()
    assert found["mean_log_predictive"] == pytest.approx(expected)


def test_parquet_and_stdin() -> None:
    FRAME.drop(columns="children").to_parquet("plain.parquet")
    fit = fitted("plain.parquet", "--likelihood", "auto", "--quiet")
    assert fit.levels["town"] == ("Bonn", "Jena", "Ulm")
    text = Path("plain.csv").read_text()
    labels = good("predict", "m.safetensors", "-", input=text).stdout
    assert labels == good("predict", "m.safetensors", "plain.parquet").stdout
    assert len(labels.split()) == N + 1


@pytest.mark.parametrize("options", ["plain.csv", "plain.csv --likelihood auto", "table.csv --columns-spec spec.json"])
def test_chains_take_such_tables(options: str) -> None:
    quick = ["--draws", "3", "--warmup", "1", "--chains", "1", "--out", "trace.safetensors"]
    good("mcmc", *options.split(), *quick)
    trace = sb.load("trace.safetensors")
    assert trace.levels["town"] == ("Bonn", "Jena", "Ulm")
    assert trace.predict(FRAME if "table.csv" in options else FRAME.drop(columns="children")).shape == (N,)


def test_ids_are_refused_with_the_option() -> None:
    FRAME.assign(name=[f"n{row}" for row in range(N)]).to_csv("names.csv", index=False)
    message = failed("fit", "names.csv", "--columns", "1,2,6", "--out", "m.safetensors")
    assert "names.csv: data must be a table of amounts, counts, categories and flags" in message
    assert "'name' (an id: 90 different values in 90 rows); leave them out: choose the others by --columns" in message


def test_a_column_with_some_words_is_an_error() -> None:
    message = failed("fit", "table.csv", "--out", "m.safetensors")
    assert (
        "line 4, column 5 ('children'): '2+' is not a number; if it holds categories, say so by --columns-spec"
        in message
    )


def test_columns_without_names_have_positions() -> None:
    FRAME[["age", "town"]].to_csv("bare.csv", index=False, header=False)
    Path("bare.json").write_text('{"1": "gaussian", "2": "categorical"}')
    message = failed("fit", "bare.csv", "--columns-spec", "bare.json", "--out", "m.safetensors")
    assert "say whether it is a line of names" in message
    fit = fitted("bare.csv", "--no-header", "--columns-spec", "bare.json")
    assert fit.column_names is None
    assert fit.levels == {1: ("Bonn", "Jena", "Ulm")}
    good("predict", "m.safetensors", "bare.csv", "--no-header")


SPECS: dict[str, tuple[str, str]] = {
    "no JSON": ("{", "with no JSON (Expecting property name"),
    "an array": ("[1]", "with JSON of the type list"),
    "nothing": ("{}", "with an empty object"),
    "a likelihood": ('{"age": "gausian"}', "'gausian' for 'age'; did you mean 'gaussian'?"),
    "no likelihood": ('{"age": {"dof": 3}}', "with no likelihood for 'age'"),
    "a number": ('{"age": 3}', "with the likelihood 3 for 'age'"),
    "blocks in blocks": ('{"age": "columns"}', "with the likelihood 'columns' for 'age'"),
    "a parameter": (
        '{"age": {"likelihood": "nb", "rat": 1}}',
        "'rat' of negative-binomial for 'age'; did you mean 'rate'?",
    ),
    "a value": ('{"age": {"likelihood": "nb", "rate": -1}}', "rate must be"),
    "a type": ('{"age": {"likelihood": "nb", "rate": "x"}}', "rate must be"),
    "one key twice": ('{"age": "nb", "age": "nb"}', "with the key 'age' twice"),
    "a column twice": ('{"age": "nb", "age, town": "nb"}', "the column 'age' twice"),
    "an empty name": ('{"age,": "nb"}', "the key 'age,'"),
    "unknown columns": (
        '{"age": "nb", "visit": "nb"}',
        "an object with the columns 'age', 'town', 'visits', 'member', 'children', but it is 'wrong.json' with "
        "the column 'visit', which the data do not have; did you mean 'visits'?",
    ),
    "columns left": ('{"age": "gaussian"}', "no block with the columns 'town', 'visits', 'member', 'children'"),
    "deep": ("[" * 100_000, "with no JSON"),
}


@pytest.mark.parametrize(("text", "message"), SPECS.values(), ids=SPECS)
def test_wrong_specifications(text: str, message: str) -> None:
    Path("wrong.json").write_text(text)
    found = failed("fit", "table.csv", "--columns-spec", "wrong.json", "--out", "m.safetensors", code=2)
    assert "columns_spec must be" in found or "--columns-spec must be" in found
    assert "'wrong.json'" in found
    assert message in found.replace('"', "'")


def test_a_specification_that_cannot_be_read() -> None:
    Path("bytes.json").write_bytes(b"\xff\xfe\x00")
    for name in ("none.json", ".", "bytes.json"):
        found = failed("fit", "table.csv", "--columns-spec", name, "--out", "m.safetensors", code=2)
        assert f"'{name}' with" in found


def test_options_that_do_not_go_together() -> None:
    both = ["--columns-spec", "spec.json", "--likelihood", "auto"]
    assert "exclude each other" in failed("fit", "table.csv", *both, "--out", "m.safetensors", code=2)
    for option in (["--columns-spec", "spec.json"], ["--likelihood", "auto"]):
        found = failed("fit", "table.csv", *option, "--dof", "4", "--out", "m.safetensors", code=2)
        assert "--dof does not go with columns" in found
    assert "or 'auto'" in failed("fit", "table.csv", "--likelihood", "columns", "--out", "m.safetensors", code=2)
