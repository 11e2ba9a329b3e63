"""Words and declared categories under `Categorical` and `Bernoulli` alone are levels, as in `Columns`."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from click.testing import CliRunner

import stickbreak as sb
from stickbreak.cli import program
from stickbreak.sklearn import BayesianMixture

N = 120
KIND = np.arange(N) % 3
ANSWERS = pd.DataFrame(
    {
        "answer": np.array(["No", "Weak", "Strong"])[KIND],
        "side": np.array(["left", "right"])[(KIND > 0).astype(int)],
        "code": KIND,
    }
)
FLAGS = pd.DataFrame({"a": np.array(["yes", "no"])[(KIND > 0).astype(int)], "b": KIND > 1})
LEVELS = {"answer": ("No", "Strong", "Weak"), "side": ("left", "right")}
QUICK: Any = sb.Full(max_passes=6, tol=0)
CATEGORICAL, BERNOULLI = sb.Mixture(sb.Categorical()), sb.Mixture(sb.Bernoulli())


def fitted(data: Any, model: sb.Mixture = CATEGORICAL, **options: Any) -> sb.Fit:
    return sb.fit(model, data, QUICK, n_components=3, threads=1, **options)


@pytest.fixture(scope="module")
def fit() -> sb.Fit:
    return fitted(ANSWERS)


FORMS = {
    "pandas": lambda frame: frame,
    "objects": lambda frame: frame.astype(object),
    "polars": pl.from_pandas,
    "arrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    "blocks": lambda frame: lambda: (frame[begin : begin + 50] for begin in range(0, N, 50)),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_words_are_levels(form: Any, fit: sb.Fit) -> None:
    found = fitted(form(ANSWERS))
    assert found.levels == LEVELS
    assert found.elbo == fit.elbo
    labels = found.predict(ANSWERS)
    np.testing.assert_array_equal(labels, fit.predict(ANSWERS))
    if not callable(form(ANSWERS)):
        np.testing.assert_array_equal(labels, found.predict(form(ANSWERS)))


def test_the_fit_is_that_of_columns_and_of_codes(fit: sb.Fit) -> None:
    codes = ANSWERS.assign(**{name: [known.index(word) for word in ANSWERS[name]] for name, known in LEVELS.items()})
    assert fitted(codes).elbo == fit.elbo
    columns = fitted(ANSWERS, sb.Mixture(sb.Columns({tuple(ANSWERS.columns): sb.Categorical()})))
    assert columns.levels == fit.levels
    assert columns.elbo == pytest.approx(fit.elbo, rel=1e-12)


def test_later_tables_are_matched_by_value(fit: sb.Fit) -> None:
    one = ANSWERS[ANSWERS["answer"] == "Weak"]
    np.testing.assert_array_equal(fit.predict(one), fit.predict(ANSWERS)[1::3])
    with pytest.raises(sb.InvalidArgument, match=r"'Weka' in row 0, column 'answer'.*did you mean 'Weak'"):
        fit.predict(one.replace("Weak", "Weka"))
    again = pickle.loads(pickle.dumps(fit))
    assert again.levels == LEVELS
    assert set(fit.as_table(fit.sample(30, seed=0))["answer"]) <= set(LEVELS["answer"])
    assert "level answer" in fit.summary().columns
    assert fit.update(ANSWERS[:10]).levels == LEVELS


def test_two_words_are_flags() -> None:
    fit = fitted(FLAGS, BERNOULLI)
    assert fit.levels == {"a": ("no", "yes")}
    by_hand = pd.DataFrame({"a": FLAGS["a"] == "yes", "b": FLAGS["b"]})
    assert fit.elbo == fitted(by_hand, BERNOULLI).elbo
    assert "probability a = yes" in fit.summary().columns
    with pytest.raises(sb.InvalidArgument, match=r"column 'answer' with the values.*use Categorical"):
        fitted(ANSWERS[["answer"]], BERNOULLI)


def test_missing_words_are_missing_values() -> None:
    holed = ANSWERS.astype(object)
    holed.loc[4, "answer"] = None
    assert fitted(holed, missing="marginalize").levels == LEVELS
    with pytest.raises(sb.InvalidArgument, match="NaN in row 4, column 'answer'"):
        fitted(holed)


WRONG: dict[str, Any] = {
    "words and numbers": (pd.DataFrame({"a": [1, "x"] * 30}), sb.InvalidType, "column 'a' has the dtype"),
    "dates": (pd.DataFrame({"a": ["x"] * 3, "b": pd.to_datetime(["2020-01-01"] * 3)}), sb.InvalidType, "column 'b'"),
    "an array of words": (np.array([["x"], ["y"]]), sb.InvalidType, "text must be in a table"),
    "lists of words": ([["x"], ["y"]], sb.InvalidType, "text must be in a table"),
}


@pytest.mark.parametrize(("data", "error", "message"), WRONG.values(), ids=WRONG)
def test_what_has_no_levels(data: Any, error: type[sb.StickbreakError], message: str) -> None:
    with pytest.raises(error, match=message):
        fitted(data)


def test_other_ways_to_a_result() -> None:
    trace = sb.sample(CATEGORICAL, ANSWERS[:20], draws=3, warmup=1, chains=1)
    assert trace.levels == LEVELS
    trace.predict(ANSWERS[:3])
    assert sb.hierarchy(CATEGORICAL, ANSWERS[:20]).levels == LEVELS
    mixture = BayesianMixture(likelihood=sb.Categorical(), n_components=3, random_state=0).fit(ANSWERS)
    assert mixture.fit_.levels == LEVELS
    np.testing.assert_array_equal(mixture.predict(ANSWERS), mixture.labels_)
    flags = BayesianMixture(likelihood=sb.Bernoulli(), n_components=2, random_state=0).fit(FLAGS)
    assert flags.fit_.levels == {"a": ("no", "yes")}


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_files_of_words(suffix: str, tmp_path: Path, fit: sb.Fit) -> None:
    data, flags, model, new = (tmp_path / f"{name}.{suffix}" for name in ("rows", "flags", "model", "new"))
    model = tmp_path / "m.safetensors"
    for frame, path in ((ANSWERS, data), (FLAGS, flags), (ANSWERS[:9].replace("Weak", "new"), new)):
        frame.to_csv(path, index=False) if suffix == "csv" else frame.to_parquet(path)
    of_fit = ["--likelihood", "categorical", "--n-components", "3", "--out", str(model), "--threads", "1"]

    def run(*arguments: str, code: int = 0) -> str:
        result = CliRunner().invoke(program, arguments)
        assert result.exit_code == code, result.output
        return result.output

    shown = run("fit", str(data), *of_fit, "--schedule", "full")
    assert "Categorical" in shown
    assert "auto" not in shown
    assert sb.load(model).levels == LEVELS
    assert len(run("predict", str(model), str(data)).splitlines()) == N + 1
    run("score", str(model), str(data))
    assert "'new'" in run("predict", str(model), str(new), code=1)
    run("mcmc", str(data), "--likelihood", "categorical", "--out", str(tmp_path / "t"), "--draws", "3", "--warmup", "1")
    run("fit", str(flags), "--likelihood", "bernoulli", "--out", str(model))
    assert sb.load(model).levels["a"] == ("no", "yes")
    if suffix == "parquet":
        assert fitted(data).levels == LEVELS
        assert fitted(data).elbo == fit.elbo
