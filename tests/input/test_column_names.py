"""Names of columns: kept in every result and file, matched wherever rows are read."""

import copy
import json
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import stickbreak as sb
from stickbreak.cli import main
from stickbreak.sklearn import BayesianMixture, TopicModel

NAMES = ("height", "width", "depth")
MODEL = sb.Mixture(likelihood=sb.Gaussian())
QUICK = sb.Full(max_passes=4, tol=0)


def rows(n: int = 60, seed: int = 0) -> np.ndarray:
    """Return two clusters in three columns of different locations and scales, so that every column order differs."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)) * [1.0, 5.0, 0.2] + [0.0, 100.0, -7.0] + np.repeat([[0], [9]], n // 2, axis=0)


X = rows()
TABLES: dict[str, Callable[[np.ndarray, list[str]], Any]] = {
    "pandas": lambda values, names: pd.DataFrame(values, columns=names),
    "polars": lambda values, names: pl.DataFrame(values, schema=names, orient="row"),
    "arrow": lambda values, names: pa.table(dict(zip(names, values.T, strict=True))),
}


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return pd.DataFrame(X, columns=NAMES)


@pytest.fixture(scope="module")
def fit(frame: pd.DataFrame) -> sb.Fit:
    return sb.fit(MODEL, frame, QUICK, n_components=2)


@pytest.fixture(scope="module")
def trace(frame: pd.DataFrame) -> sb.Trace:
    return sb.sample(MODEL, frame[:20], draws=4, warmup=1, chains=1)


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_names_are_kept_and_numbers_are_those_of_the_array(table: Callable[..., Any], fit: sb.Fit) -> None:
    named = sb.fit(MODEL, table(X, list(NAMES)), QUICK, n_components=2)
    assert named.column_names == NAMES
    assert named.elbo == sb.fit(MODEL, X, QUICK, n_components=2).elbo == fit.elbo


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
@given(order=st.permutations(range(3)))
def test_another_order_is_put_right(table: Callable[..., Any], fit: sb.Fit, order: list[int]) -> None:
    shuffled = table(X[:, order], [NAMES[place] for place in order])
    assert (fit.predict(shuffled) == fit.predict(X)).all()
    assert (fit.predict_proba(shuffled) == fit.predict_proba(X)).all()
    assert (fit.log_predictive(shuffled) == fit.log_predictive(X)).all()
    assert fit.evaluate(shuffled) == fit.evaluate(X)
    assert (fit.combine(X).predict(shuffled) == fit.combine(X).predict(X)).all()
    later = fit.update(shuffled)
    assert (later.elbo, later.column_names) == (fit.update(X).elbo, NAMES)


def test_an_array_in_another_order_would_not_fit(fit: sb.Fit) -> None:
    assert (fit.log_predictive(X[:, [1, 0, 2]]) < fit.log_predictive(X)).all()


METHODS: list[Callable[[sb.Fit, Any], object]] = [
    lambda fit, X: fit.predict(X),
    lambda fit, X: fit.predict_proba(X),
    lambda fit, X: fit.log_predictive(X),
    lambda fit, X: fit.evaluate(X),
    lambda fit, X: fit.update(X),
    lambda fit, X: fit.combine(X),
    lambda fit, X: sb.fit(MODEL, X, QUICK, init=fit),
    lambda fit, X: sb.sample(MODEL, X, draws=2, warmup=0, chains=1, init=fit),
]
WRONG = {
    "missing": (["height", "width"], "without 'depth'"),
    "new": ([*NAMES, "id"], "with 'id'; choose its columns"),
    "another": (["height", "width", "dept"], "without 'depth' and with 'dept'; 'depth': did you mean 'dept'?"),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("wrong", WRONG)
def test_missing_and_new_names_are_refused(fit: sb.Fit, method: Callable[..., object], wrong: str) -> None:
    names, message = WRONG[wrong]
    table = pd.DataFrame(np.hstack([X, X])[:, : len(names)], columns=names)
    with pytest.raises(sb.InvalidArgument) as caught:
        method(fit, table)
    assert caught.value.argument in ("X", "X_new", "data")
    assert message in str(caught.value)
    assert "'height', 'width', 'depth'" in str(caught.value)


def test_doubled_names_are_refused(fit: sb.Fit) -> None:
    doubled = pd.DataFrame(X, columns=["height", "width", "width"])
    for read in (lambda: fit.predict(doubled), lambda: sb.fit(MODEL, doubled), lambda: sb.sample(MODEL, doubled)):
        with pytest.raises(sb.InvalidArgument, match="several columns called 'width'"):
            read()


def test_names_with_lone_surrogates_are_refused(fit: sb.Fit) -> None:
    """The core and other programs read names as UTF-8."""
    wrong = pd.DataFrame(X)
    wrong.columns = pd.Index(["width", "dep\ud800", "height"], dtype=object)
    for call in (lambda: fit.predict(wrong), lambda: sb.fit(MODEL, wrong)):
        with pytest.raises(sb.InvalidArgument, match=r"column 'dep\\ud800', which has a lone surrogate"):
            call()


def test_names_that_are_not_strings() -> None:
    mixed = pd.DataFrame(X, columns=["height", 1, "depth"])
    with pytest.raises(
        sb.InvalidType, match=r"the column 1, whose name is a int.*data\.columns\.astype\(str\)"
    ) as caught:
        sb.fit(MODEL, mixed)
    assert caught.value.argument == "data"
    # Numeric labels are positions.
    fit = sb.fit(MODEL, pd.DataFrame(X), QUICK, n_components=2)
    assert fit.column_names is None
    assert (fit.predict(pd.DataFrame(X, columns=NAMES)) == fit.predict(X)).all()
    assert (fit.predict(pd.DataFrame(X, columns=[4, 5, 9])) == fit.predict(X)).all()


@pytest.mark.parametrize("labels", [[2, 1, 0], [5, 9, 4]])
def test_numbers_in_another_order_are_refused(labels: list[int], fit: sb.Fit) -> None:
    """The numbers may be names or positions, so matching them would be a guess."""
    table = pd.DataFrame(X, columns=labels)
    for read in (lambda: fit.predict(table), lambda: sb.fit(MODEL, table), lambda: sb.sample(MODEL, table)):
        with pytest.raises(sb.InvalidArgument, match=rf"have the numbers {', '.join(map(str, labels))} in place of"):
            read()


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_column_that_is_not_numeric_is_named(table: Callable[..., Any]) -> None:
    words = table(X, list(NAMES))
    if isinstance(words, pd.DataFrame):
        words["width"] = "wide"
    elif isinstance(words, pl.DataFrame):
        words = words.with_columns(pl.lit("wide").alias("width"))
    else:
        words = words.set_column(1, "width", pa.array(["wide"] * len(X)))
    with pytest.raises(sb.InvalidType, match="'width'"):
        sb.fit(MODEL, words)


def test_files_pickles_and_copies_keep_names(fit: sb.Fit, trace: sb.Trace, tmp_path: Path) -> None:
    for result in (fit, trace):
        path = tmp_path / "result.safetensors"
        result.save(path)
        for again in (sb.load(path), pickle.loads(pickle.dumps(result)), copy.deepcopy(result)):
            assert again.column_names == NAMES
            assert (again.predict(pd.DataFrame(X, columns=NAMES)[list(NAMES[::-1])]) == result.predict(X)).all()


@pytest.mark.parametrize("names", [["height", "width"], ["a", "a", "b"], ["a", "b", 3], "abc", {"a": 1}])
def test_files_with_other_names_are_refused(fit: sb.Fit, tmp_path: Path, names: object) -> None:
    header, arrays = fit._to_parts()
    path = tmp_path / "model.safetensors"
    sb.io.files.write(path, {**header, "column_names": names}, arrays)
    with pytest.raises(sb.ModelFileError, match="names of the columns"):
        sb.load(path)


def test_files_without_names_stay_readable(fit: sb.Fit, tmp_path: Path) -> None:
    header, arrays = fit._to_parts()
    del header["column_names"]
    path = tmp_path / "model.safetensors"
    sb.io.files.write(path, header, arrays)
    assert sb.load(path).column_names is None


def test_results_show_names(fit: sb.Fit, trace: sb.Trace) -> None:
    assert "60 rows x 3 ('height', 'width', 'depth')" in repr(fit)
    assert "'height', 'width', 'depth'" in repr(trace)
    wide = sb.fit(MODEL, pd.DataFrame(np.hstack([X, rows(seed=1), rows(seed=2)]), columns=list("abcdefghi")), QUICK)
    assert "('a', 'b', 'c', 'd', 'e' and 4 more)" in repr(wide)


def test_a_trace_matches_new_rows(trace: sb.Trace) -> None:
    turned = pd.DataFrame(X, columns=NAMES)[["depth", "height", "width"]]
    assert trace.column_names == NAMES
    assert (trace.predict(turned) == trace.predict(X)).all()
    assert (trace.log_predictive(turned) == trace.log_predictive(X)).all()
    with pytest.raises(sb.InvalidArgument, match="without 'width'"):
        trace.predict(turned.drop(columns="width"))


def test_imputed_columns_stand_where_the_caller_has_them() -> None:
    holes = X.copy()
    holes[::7, 1] = np.nan
    frame = pd.DataFrame(holes, columns=NAMES)
    fit = sb.fit(sb.Mixture(likelihood=sb.DiagonalGaussian()), frame, QUICK, n_components=2, missing="marginalize")
    order = ["width", "depth", "height"]
    for fill in (fit.impute, fit.sample_missing):
        filled = pd.DataFrame(fill(frame[order]), columns=order)
        assert (filled[list(NAMES)].to_numpy() == fill(frame)).all()
    values, variances = fit.impute(frame[order], return_variance=True)
    assert (variances[:, 0] > 0).tolist() == np.isnan(holes[:, 1]).tolist()
    assert (values[:, 2] == X[:, 0]).all()


def in_blocks(*tables: Any) -> Callable[[], Iterator[Any]]:
    return lambda: iter(tables)


def test_blocks_are_matched_with_the_first_one(frame: pd.DataFrame, fit: sb.Fit) -> None:
    mixed = in_blocks(frame[:20], frame[20:40][["depth", "width", "height"]], frame[40:].to_numpy())
    found = sb.fit(MODEL, mixed, QUICK, n_components=2)
    assert (found.column_names, found.elbo) == (NAMES, sb.fit(MODEL, in_blocks(X), QUICK, n_components=2).elbo)
    with pytest.raises(sb.SourceError, match=r"at row 20: .*without 'depth'"):
        sb.fit(MODEL, in_blocks(frame[:20], frame[20:].drop(columns="depth")), QUICK, n_components=2)


def test_parquet_files_have_names(frame: pd.DataFrame, tmp_path: Path) -> None:
    path, turned = tmp_path / "rows.parquet", tmp_path / "turned.parquet"
    pq.write_table(pa.Table.from_pandas(frame), path)
    pq.write_table(pa.Table.from_pandas(frame[["depth", "width", "height"]]), turned)
    first = sb.fit(MODEL, path, QUICK, n_components=2)
    assert first.column_names == NAMES
    again = sb.fit(MODEL, turned, QUICK, init=first)
    assert (again.column_names, again.elbo) == (NAMES, sb.fit(MODEL, path, QUICK, init=first).elbo)


def test_a_fit_to_start_from_decides_the_order(frame: pd.DataFrame, fit: sb.Fit) -> None:
    turned = frame[["depth", "width", "height"]]
    again = sb.fit(MODEL, turned, QUICK, init=fit)
    assert (again.column_names, again.elbo) == (NAMES, sb.fit(MODEL, X, QUICK, init=fit).elbo)
    given = sb.Mixture(likelihood=sb.Gaussian(mean=[0.0, 100.0, -7.0]))
    with pytest.raises(sb.InvalidArgument, match="another order, to which `mean` of the likelihood belongs"):
        sb.fit(given, turned, QUICK, init=fit)
    assert sb.fit(given, frame, QUICK, init=fit).column_names == NAMES


def test_a_checkpoint_decides_the_order(frame: pd.DataFrame, tmp_path: Path) -> None:
    checkpoint = sb.Checkpoint(tmp_path / "fit.checkpoint", every_seconds=0)
    turned = frame[["depth", "width", "height"]]
    straight = sb.fit(MODEL, X, sb.Full(max_passes=5, tol=0), n_components=2)
    sb.fit(MODEL, frame, sb.Full(max_passes=2, tol=0), n_components=2, checkpoint=checkpoint)
    before = checkpoint.path.read_bytes()
    renamed = frame.rename(columns={"depth": "deep"})
    for data in (renamed, in_blocks(renamed)):
        with pytest.raises((sb.CheckpointError, sb.SourceError), match="without 'depth' and with 'deep'"):
            sb.fit(MODEL, data, sb.Full(max_passes=5, tol=0), n_components=2, checkpoint=checkpoint)
    assert checkpoint.path.read_bytes() == before
    resumed = sb.fit(MODEL, turned, sb.Full(max_passes=5, tol=0), n_components=2, checkpoint=checkpoint)
    assert (resumed.column_names, resumed.elbo, len(resumed.history)) == (NAMES, straight.elbo, 5)


def test_a_checkpoint_of_chains_decides_the_order(frame: pd.DataFrame, tmp_path: Path) -> None:
    checkpoint = sb.Checkpoint(tmp_path / "chains.checkpoint", every_seconds=0)
    call = {"draws": 4, "warmup": 1, "chains": 1, "checkpoint": checkpoint}
    first = sb.sample(MODEL, frame[:20], **call)
    again = sb.sample(MODEL, frame[:20][["depth", "width", "height"]], **call)
    assert again.column_names == NAMES
    assert (again.log_joint == first.log_joint).all()


def test_scikit_learn_names_reach_the_fit(frame: pd.DataFrame) -> None:
    estimator = BayesianMixture(n_components=2, random_state=0).fit(frame)
    assert estimator.fit_.column_names == tuple(estimator.feature_names_in_) == NAMES
    assert estimator.partial_fit(frame).fit_.column_names == NAMES
    assert BayesianMixture(n_components=2).fit(X).fit_.column_names is None


def ran(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


@pytest.fixture
def model_file(frame: pd.DataFrame, tmp_path: Path) -> Path:
    data, model = tmp_path / "rows.csv", tmp_path / "model.safetensors"
    frame.to_csv(data, index=False)
    frame[["depth", "width", "height"]].to_csv(tmp_path / "turned.csv", index=False)
    frame.drop(columns="depth").to_csv(tmp_path / "missing.csv", index=False)
    frame.to_csv(tmp_path / "new.csv", index_label="id")
    assert ran("fit", data, "--out", model, "--n-components", 2, "--quiet") == 0
    return model


def test_the_command_line_matches_names(model_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = model_file.parent
    outputs = []
    for name in ("rows", "turned"):
        for command in (["score", model_file], ["predict", model_file]):
            assert ran(*command, folder / f"{name}.csv", *(["--json"] if command[0] == "score" else [])) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]
    for name, message in (("missing", "without 'depth'"), ("new", "with 'id'; choose its columns")):
        for command in ("score", "predict"):
            assert ran(command, model_file, folder / f"{name}.csv") == 1
            assert message in capsys.readouterr().err
    assert ran("score", model_file, folder / "new.csv", "--columns", "width,depth,height") == 0


def test_info_and_generate_tell_names(model_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ran("info", model_file) == 0
    assert "'height', 'width', 'depth'" in capsys.readouterr().out
    assert ran("info", model_file, "--json") == 0
    assert json.loads(capsys.readouterr().out)["column_names"] == list(NAMES)
    assert ran("generate", model_file, "-n", 2) == 0
    assert capsys.readouterr().out.splitlines()[0] == "height,width,depth"


def test_doubled_names_of_a_file_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rows.csv"
    pd.DataFrame(X, columns=["a", "a", "b"]).to_csv(path, index=False)
    assert ran("fit", path, "--out", tmp_path / "model.safetensors") == 1
    assert "several columns called 'a'" in capsys.readouterr().err
    assert ran("fit", path, "--out", tmp_path / "model.safetensors", "--columns", "1,3", "--quiet") == 0
    assert sb.load(tmp_path / "model.safetensors").column_names == ("a", "b")


def test_mcmc_keeps_names(model_file: Path) -> None:
    data, out = model_file.parent / "turned.csv", model_file.parent / "trace.safetensors"
    assert ran("mcmc", data, "--out", out, "--draws", 2, "--warmup", 0, "--chains", 1, "--init", model_file, "-q") == 0
    assert sb.load(out).column_names == NAMES
    assert ran("mcmc", data, "--out", out, "--draws", 2, "--warmup", 0, "--chains", 1, "-q") == 0
    assert sb.load(out).column_names == ("depth", "width", "height")


def test_columns_of_refused_values_are_named() -> None:
    frame = pd.DataFrame(X, columns=NAMES)
    fit = sb.fit(MODEL, frame, QUICK)
    other = sb.fit(sb.Mixture(likelihood=sb.DiagonalGaussian()), frame, QUICK, missing="marginalize")
    for value in (np.inf, np.nan):
        # With another column order, the position would be misleading.
        bad = frame[["width", "depth", "height"]].copy()
        bad.loc[7, "width"] = value
        calls: list[Callable[[], object]] = [
            lambda bad=bad: sb.fit(MODEL, bad),
            lambda bad=bad: sb.fit(MODEL, bad, init=fit),
            lambda bad=bad: sb.sample(MODEL, bad, draws=1, warmup=0),
            lambda bad=bad: sb.sample(sb.Mixture(likelihood=sb.Gaussian(prior="rule")), bad, draws=1, warmup=0),
            lambda bad=bad: sb.hierarchy(sb.Mixture(likelihood=sb.Gaussian(prior="rule")), bad),
            lambda bad=bad: fit.predict(bad),
            lambda bad=bad: fit.predict_proba(bad),
            lambda bad=bad: fit.log_predictive(bad),
            lambda bad=bad: fit.evaluate(bad),
            lambda bad=bad: fit.update(bad),
            lambda bad=bad: fit.combine(bad),
            lambda bad=bad: fit.outlier_scores(bad),
            lambda bad=bad: fit.marginal(["width", "depth"]).log_density(bad[["depth", "width"]]),
        ]
        if value == np.inf:
            calls += [lambda bad=bad: other.impute(bad), lambda bad=bad: other.sample_missing(bad)]
        for call in calls:
            with pytest.raises(sb.InvalidArgument) as caught:
                call()
            assert "in row 7, column 'width'" in caught.value.found
            assert caught.value.found in str(caught.value)
    with pytest.raises(sb.InvalidArgument, match=r"in row 7, column 1$"):
        sb.fit(MODEL, X, QUICK).predict(bad[list(NAMES)].to_numpy())
    with pytest.raises(sb.InvalidArgument, match=r"'width'.*leave such rows out"):
        sb.fit(MODEL, bad)


def test_columns_of_refused_values_are_named_by_estimators() -> None:
    frame = pd.DataFrame(X, columns=NAMES)
    bad = frame.copy()
    bad.loc[7, "width"] = np.inf
    mixture = BayesianMixture(random_state=0).fit(frame)
    for call in (lambda: BayesianMixture().fit(bad), lambda: mixture.predict(bad), lambda: mixture.score(bad)):
        with pytest.raises(ValueError, match="row 7, column 'width'"):
            call()
    with pytest.raises(ValueError, match="row 7, column 1"):
        BayesianMixture().fit(bad.to_numpy())
    holes = BayesianMixture(likelihood=sb.DiagonalGaussian(), missing="marginalize", random_state=0)
    with pytest.raises(ValueError, match="row 7, column 'width'"):
        holes.fit(bad.replace({0.0: np.nan}))
    counts = pd.DataFrame([[1.0, 2.0], [np.nan, 1.0]], columns=["sea", "tree"])
    with pytest.raises(ValueError, match="row 1, column 'sea'"):
        TopicModel(n_topics=2).fit(counts)
