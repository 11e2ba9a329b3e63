"""Levels of columns: learned from tables of all kinds, kept in every result and file, and matched by value."""

import copy
import datetime
import json
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from safetensors.numpy import load_file, save_file

import stickbreak as sb
from stickbreak.io import files, levels

N = 60
RNG = np.random.default_rng(0)
KIND = np.arange(N) % 3
SIZE = RNG.normal(8.0 * KIND)
WORDS = np.array(["small", "large", "medium"], dtype=object)[KIND]
FRAME = pd.DataFrame(
    {
        "size": SIZE,
        "word": WORDS,
        "grade": pd.Categorical(np.array(["B", "A", "C"])[KIND], categories=["C", "B", "A", "never"]),
        "flag": np.where(KIND == 1, "yes", "no"),
        "number": 10 * KIND + 5,
        "code": KIND,
    }
)
BLOCKS = {"size": sb.Gaussian(), "word, grade, number, code": sb.Categorical(), "flag": sb.Bernoulli()}
MODEL = sb.Mixture(likelihood=sb.Columns(BLOCKS))
WITHOUT_NUMBERS = sb.Mixture(
    likelihood=sb.Columns({"size": sb.Gaussian(), "word, grade, code": sb.Categorical(), "flag": sb.Bernoulli()})
)
LEVELS = {
    "word": ("large", "medium", "small"),
    "grade": ("C", "B", "A", "never"),
    "flag": ("no", "yes"),
    "number": (5, 15, 25),
}
QUICK = sb.Full(max_passes=4, tol=0)
TABLES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "arrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    "batch": lambda frame: pa.RecordBatch.from_pandas(frame, preserve_index=False),
    "string": lambda frame: frame.astype({"word": "string", "flag": pd.ArrowDtype(pa.string())}),
    "category": lambda frame: frame.astype({"word": "category", "number": "category"}),
    "object": lambda frame: frame.astype({"word": object, "number": object, "code": object}),
}


def fitted(frame: Any = FRAME, model: sb.Mixture = MODEL, **options: Any) -> sb.Fit:
    return sb.fit(model, frame, QUICK, n_components=3, **options)


@pytest.fixture(scope="module")
def fit() -> sb.Fit:
    return fitted()


@pytest.fixture(scope="module")
def holed() -> sb.Fit:
    return fitted(missing="marginalize")


def of_one(values: Any, part: sb.Categorical | sb.Bernoulli | None = None, **options: Any) -> sb.Fit:
    """Return a fit of one column beside amounts."""
    blocks = {"size": sb.Gaussian(), "c": sb.Categorical() if part is None else part}
    return fitted(pd.DataFrame({"size": SIZE, "c": values}), sb.Mixture(likelihood=sb.Columns(blocks)), **options)


def test_levels_are_sorted_or_in_the_declared_order(fit: sb.Fit) -> None:
    assert fit.levels == LEVELS
    likelihood = fit.model.likelihood
    assert isinstance(likelihood, sb.Columns)
    np.testing.assert_array_equal(list(likelihood.blocks.values())[1].levels, [3, 4, 3, 3])


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_all_tables_are_read_alike(table: Callable[[pd.DataFrame], Any], fit: sb.Fit) -> None:
    np.testing.assert_array_equal(fit.predict_proba(table(FRAME)), fit.predict_proba(FRAME))
    again = fitted(table(FRAME))
    assert {name: set(found) - {"never"} for name, found in again.levels.items()} == {
        name: set(found) - {"never"} for name, found in LEVELS.items()
    }
    np.testing.assert_allclose(again.predict_proba(FRAME), fit.predict_proba(FRAME), atol=0.02)


def test_codes_stand_for_levels(fit: sb.Fit) -> None:
    codes = FRAME.copy()
    for name, found in LEVELS.items():
        codes[name] = [found.index(value) for value in FRAME[name]]
    rows = codes.astype(float).to_numpy()
    np.testing.assert_array_equal(fit.predict_proba(fit.as_table(rows)), fit.predict_proba(FRAME))
    words = fitted(FRAME.drop(columns="number"), WITHOUT_NUMBERS)
    of_words = codes.drop(columns="number").astype(float).to_numpy()
    np.testing.assert_array_equal(words.predict_proba(of_words), words.predict_proba(FRAME.drop(columns="number")))
    blocks = BLOCKS | {"word, grade, number, code": sb.Categorical(levels=[3, 4, 3, 3])}
    by_hand = fitted(codes.astype(float), sb.Mixture(likelihood=sb.Columns(blocks)))
    assert by_hand.levels == {}
    assert by_hand.elbo == fit.elbo


def test_pictures_of_rows_take_tables_with_numbers_as_levels() -> None:
    pytest.importorskip("matplotlib").use("Agg")
    frame = FRAME.assign(weight=SIZE[::-1])
    blocks = BLOCKS | {"size": sb.DiagonalGaussian(), "weight": sb.DiagonalGaussian()}
    fit = fitted(frame, sb.Mixture(likelihood=sb.Columns(blocks)))
    assert fit.levels["number"] == (5, 15, 25)
    assert len(sb.plot.clusters(fit, frame, columns=["size", "weight"]).collections) > 0
    assert len(sb.plot.responsibilities(fit, frame).images) == 1
    assert sb.plot.density(fit, "size", X=frame).get_xlabel() == "size"


def test_tables_of_codes_have_the_names_of_the_fit(fit: sb.Fit) -> None:
    codes = np.array([[1.0, 2, 0, 0, 1, 2]])
    frame = pd.DataFrame(codes, columns=list(FRAME.columns))
    expected = fit.as_table(codes)
    assert expected["word"].tolist() == ["small"]
    pd.testing.assert_frame_equal(fit.as_table(frame[frame.columns[::-1]]), expected)
    with pytest.raises(sb.InvalidArgument, match="inf in row 0, column 'word'"):
        fit.as_table(frame.assign(word=np.inf))


def test_another_order_of_columns_and_categories(fit: sb.Fit) -> None:
    other = FRAME[FRAME.columns[::-1]].copy()
    other["grade"] = other["grade"].cat.set_categories(["never", "new", "A", "C", "B"])
    other["word"] = pd.Categorical(other["word"], categories=["small", "unused", "medium", "large"])
    np.testing.assert_array_equal(fit.predict_proba(other), fit.predict_proba(FRAME))
    assert fit.evaluate(other) == fit.evaluate(FRAME)
    assert fit.update(other).levels == LEVELS


METHODS: dict[str, tuple[str, Callable[[sb.Fit, Any], object]]] = {
    "predict": ("X", lambda fit, X: fit.predict(X)),
    "predict_proba": ("X", lambda fit, X: fit.predict_proba(X)),
    "log_predictive": ("X", lambda fit, X: fit.log_predictive(X)),
    "evaluate": ("X", lambda fit, X: fit.evaluate(X)),
    "update": ("X_new", lambda fit, X: fit.update(X)),
    "combine": ("X", lambda fit, X: fit.combine(X)),
    "outlier_scores": ("X", lambda fit, X: fit.outlier_scores(X)),
    "impute": ("X", lambda fit, X: fit.impute(X)),
    "sample_missing": ("X", lambda fit, X: fit.sample_missing(X)),
    "init": ("data", lambda fit, X: sb.fit(MODEL, X, QUICK, init=fit, missing="marginalize")),
    "density": ("X", lambda fit, X: fit.marginal("word").log_density(X[["word"]])),
}


@pytest.mark.parametrize(("argument", "method"), METHODS.values(), ids=METHODS)
def test_a_new_level_is_named(argument: str, method: Callable[[sb.Fit, Any], object], holed: sb.Fit) -> None:
    wrong = FRAME.copy()
    wrong.loc[7, "word"] = "smal"
    with pytest.raises(sb.InvalidArgument, match=r"'smal' in row 7, column 'word'; did you mean 'small'\?") as caught:
        method(holed, wrong)
    assert caught.value.argument == argument
    assert "'large', 'medium', 'small'" in str(caught.value)


def test_a_category_that_no_row_has_is_no_new_level(fit: sb.Fit) -> None:
    wider = FRAME.assign(word=pd.Categorical(WORDS, categories=["huge", *LEVELS["word"]]))
    np.testing.assert_array_equal(fit.predict(wider), fit.predict(FRAME))
    wider.loc[0, "word"] = "huge"
    with pytest.raises(sb.InvalidArgument, match="'huge' in row 0, column 'word'"):
        fit.predict(wider)


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_a_missing_value_stays_missing(table: Callable[[pd.DataFrame], Any], holed: sb.Fit) -> None:
    incomplete = FRAME.astype({"number": float})
    incomplete.loc[4, "word"] = None
    incomplete.loc[5, ["grade", "number"]] = np.nan
    values = holed.impute(table(incomplete))
    np.testing.assert_allclose(values, holed.impute(FRAME))
    assert holed.levels["word"][int(values[4, 1])] == WORDS[4]
    with pytest.raises(sb.InvalidArgument, match="NaN in row 4, column 'word'"):
        fitted(table(incomplete))


def test_imputed_codes_are_in_the_order_of_the_columns_given(holed: sb.Fit) -> None:
    other = FRAME[FRAME.columns[::-1]]
    np.testing.assert_array_equal(holed.impute(other), holed.impute(FRAME)[:, ::-1])


VALUES: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "text": (WORDS, None, {"c": ("large", "medium", "small")}),
    "booleans": (KIND > 0, None, {"c": (False, True)}),
    "codes": (KIND, None, {}),
    "codes with NaN": (np.where(np.arange(N) == 8, np.nan, KIND), None, {}),
    "a gap": (2 * KIND, None, {"c": (0, 2, 4)}),
    "a gap within the levels": (2 * KIND, sb.Categorical(levels=5), {}),
    "negative": (KIND - 1, None, {"c": (-1, 0, 1)}),
    "fractions": (KIND / 2, None, {"c": (0, 0.5, 1)}),
    "categories of numbers": (pd.Categorical(10 * KIND, categories=[20, 0, 10]), None, {"c": (20, 0, 10)}),
    "intervals": (pd.cut(KIND, [-1, 0, 5]), None, {"c": ("(-1, 0]", "(0, 5]")}),
    "nullable integers": (pd.array([None, *KIND[1:]], dtype="Int64"), None, {}),
    "nullable booleans": (pd.array([None, *(KIND[1:] > 0)], dtype="boolean"), None, {"c": (False, True)}),
    "nothing": (np.full(N, None), None, {}),
    "empty text": (np.where(KIND > 0, "", "a"), None, {"c": ("", "a")}),
    "flags": (KIND > 0, sb.Bernoulli(), {}),
    "numbers for flags": (KIND % 2, sb.Bernoulli(), {}),
    "two words": (np.where(KIND > 0, "on", "off"), sb.Bernoulli(), {"c": ("off", "on")}),
    "two categories": (
        pd.Categorical(np.where(KIND > 0, "a", "b"), categories=["b", "a"]),
        sb.Bernoulli(),
        {"c": ("b", "a")},
    ),
}


@pytest.mark.parametrize(("values", "part", "expected"), VALUES.values(), ids=VALUES)
def test_what_has_levels(values: Any, part: Any, expected: dict[str, Any]) -> None:
    found = of_one(values, part, missing="marginalize")
    assert found.levels == expected
    assert [type(level) for level in found.levels.get("c", ())] == [type(level) for level in expected.get("c", ())]
    assert np.isfinite(found.elbo)


WRONG: dict[str, tuple[Any, Any, type[sb.StickbreakError], str]] = {
    "text and numbers": ([1, "a"] * 30, None, sb.InvalidType, r"column 'c' has the dtype object.*int and str"),
    "dates": ([datetime.date(2020, 1, 1)] * N, None, sb.InvalidType, "column 'c' has the dtype"),
    "lists": ([[1]] * N, None, sb.InvalidType, "column 'c' has the dtype.*list"),
    "three words": (WORDS, sb.Bernoulli(), sb.InvalidArgument, "column 'c' with the values 'large', 'medium', 'small'"),
    "two numbers": (KIND % 2 + 1, sb.Bernoulli(), sb.InvalidArgument, "0 or 1 everywhere.* column 'c'"),
    "too few levels": (WORDS, sb.Categorical(levels=2), sb.InvalidArgument, "2 levels.* column 'c'"),
    "infinity": (np.where(KIND > 1, np.inf, 1), None, sb.InvalidArgument, "inf in row 2, column 'c'"),
    "huge integers": (2**60 + KIND, None, sb.InvalidArgument, "column 'c'"),
    "text in a Gaussian": (
        WORDS,
        sb.Gaussian(),
        sb.InvalidType,
        "column 'c' has the dtype.*put such columns in a block",
    ),
    "text as counts": (WORDS, sb.NegativeBinomial(), sb.InvalidType, "column 'c' has the dtype"),
}


@pytest.mark.parametrize(("values", "part", "error", "message"), WRONG.values(), ids=WRONG)
def test_what_is_no_level(values: Any, part: Any, error: type[sb.StickbreakError], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        of_one(values, part)
    assert caught.value.argument == "data"


def test_levels_of_numbers_and_flags_are_matched_by_value() -> None:
    found = of_one(KIND > 0)
    size = pd.DataFrame({"size": SIZE})
    expected = found.predict_proba(size.assign(c=KIND > 0))
    for same in ((KIND > 0).astype(int), (KIND > 0).astype(float), np.where(KIND > 0, True, False).astype(object)):
        np.testing.assert_array_equal(found.predict_proba(size.assign(c=same)), expected)
    with pytest.raises(sb.InvalidArgument, match="2 in row 2, column 'c'"):
        found.predict(size.assign(c=KIND))
    numbers = of_one(10 * KIND + 5)
    with pytest.raises(sb.InvalidArgument, match=r"'5' in row 0, column 'c'"):
        numbers.predict(size.assign(c=(10 * KIND + 5).astype(str)))


def test_a_plain_categorical_matches_categories_by_value() -> None:
    model = sb.Mixture(likelihood=sb.Categorical())
    frame = pd.DataFrame({"grade": FRAME["grade"], "code": KIND})
    fit = fitted(frame, model)
    assert fit.levels == {"grade": ("C", "B", "A", "never")}
    other = frame.assign(grade=FRAME["grade"].cat.reorder_categories(["A", "never", "B", "C"]))
    np.testing.assert_array_equal(fit.predict_proba(other), fit.predict_proba(frame))
    np.testing.assert_array_equal(fit.predict_proba(pl.from_pandas(frame)), fit.predict_proba(frame))
    # A fit of codes has no levels: categories are read by their codes, as before.
    codes = fitted(np.stack([FRAME["grade"].cat.codes, KIND], axis=1).astype(float), model)
    assert codes.levels == {}
    np.testing.assert_array_equal(codes.predict(frame), fit.predict(frame))


def test_positions_name_columns_without_names() -> None:
    frame = FRAME[["size", "word"]].set_axis([0, 1], axis=1)
    model = sb.Mixture(likelihood=sb.Columns({0: sb.Gaussian(), 1: sb.Categorical()}))
    fit = fitted(frame, model)
    assert fit.levels == {1: LEVELS["word"]}
    with pytest.raises(sb.InvalidArgument, match="'new' in row 0, column 1"):
        fit.predict(frame.replace({1: {"small": "new"}}))


@pytest.mark.parametrize("n_columns", [1, 3])
def test_another_number_of_columns_is_refused(n_columns: int) -> None:
    frame = FRAME[["size", "word", "size"]].set_axis([0, 1, 2], axis=1)
    model = sb.Mixture(likelihood=sb.Columns({0: sb.Gaussian(), 1: sb.Categorical()}))
    fit = fitted(frame[[0, 1]], model)
    wrong = frame[list(range(n_columns))]
    with pytest.raises(sb.InvalidArgument, match="of 2 columns, as in the fit") as caught:
        fit.predict(wrong)
    assert caught.value.argument == "X"
    wider = sb.Mixture(likelihood=sb.Columns({tuple(range(n_columns)): sb.Gaussian()}))
    with pytest.raises(sb.InvalidArgument, match=f"a fit with D = {n_columns}, as in the data"):
        sb.fit(wider, RNG.normal(size=(N, n_columns)), QUICK, init=fit)


def test_results_show_levels(fit: sb.Fit) -> None:
    table = fit.summary()
    assert {"level word", "level grade", "level number", "code code", "probability flag = yes"} <= set(table.columns)
    assert set(table["level word"]) == set(LEVELS["word"])
    assert set(table["level number"]) == {5, 15, 25}
    # Levels go with the codes that stand beside them, 0, 1 and 2.
    in_order = table.sort_values("code code")
    assert list(in_order["level word"]) == ["small", "large", "medium"]
    assert list(in_order["level grade"]) == ["B", "A", "C"]
    assert list(in_order["level number"]) == [5, 15, 25]
    top = int(np.argmax(fit.counts))
    assert table["level word"][top] in fit._repr_html_()


def test_conditions_are_levels(fit: sb.Fit) -> None:
    density = fit.conditional({"word": "large"}).marginal("size")
    assert density.mean[0] == pytest.approx(8.0, abs=1.0)
    assert pickle.loads(pickle.dumps(density)).mean == density.mean
    assert fit.conditional({"number": 5}).marginal("size").mean[0] == pytest.approx(0.0, abs=1.0)
    for wrong in ("larg", 1, None, ["large"], float("nan")):
        with pytest.raises(sb.InvalidArgument, match="'large', 'medium', 'small' for the column 'word'") as caught:
            fit.conditional({"word": wrong})
        assert caught.value.argument == "given"


@pytest.mark.parametrize("again", [copy.deepcopy, lambda fit: pickle.loads(pickle.dumps(fit))], ids=["copy", "pickle"])
def test_copies_keep_levels(again: Callable[[sb.Fit], sb.Fit], fit: sb.Fit) -> None:
    found = again(fit)
    assert found.levels == LEVELS
    np.testing.assert_array_equal(found.predict(FRAME), fit.predict(FRAME))


def test_files_keep_levels(fit: sb.Fit, tmp_path: Path) -> None:
    trace = sb.sample(MODEL, FRAME[:20], draws=3, warmup=1, chains=1)
    tree = sb.hierarchy(MODEL, FRAME[:20])
    wrong = FRAME.assign(word="other")
    for result in (fit, trace, tree):
        result.save(tmp_path / "file.safetensors")
        found = sb.load(tmp_path / "file.safetensors")
        assert found.levels == result.levels
        assert set(found.levels) == set(LEVELS)
        with pytest.raises(sb.InvalidArgument, match="'other' in row 0, column 'word'"):
            found.insert(wrong) if isinstance(found, sb.Hierarchy) else found.predict(wrong)
    np.testing.assert_array_equal(sb.load(tmp_path / "file.safetensors").insert(FRAME[20:25]).cut().shape, [25])
    trace.save(tmp_path / "bare.safetensors", rows=False)
    assert sb.load(tmp_path / "bare.safetensors").levels == trace.levels


def test_files_from_before_have_no_levels(fit: sb.Fit, tmp_path: Path) -> None:
    fit.save(tmp_path / "file.safetensors")
    header, arrays = files.read(tmp_path / "file.safetensors")
    assert header["levels"] == [None, *map(list, [LEVELS["word"], LEVELS["grade"]]), ["no", "yes"], [5, 15, 25], None]
    del header["levels"]
    files.write(tmp_path / "old.safetensors", header, arrays)
    assert sb.load(tmp_path / "old.safetensors").levels == {}


DAMAGED = [
    3,
    "abc",
    {},
    [],
    [None] * 5,
    [None] * 5 + [3],
    [None] * 5 + [["a", "a"]],
    [None] * 5 + [["a", None]],
    [None] * 5 + [[["a"]]],
    [None] * 5 + [[1, True]],
]


@pytest.mark.parametrize("damaged", DAMAGED, ids=str)
def test_damaged_levels_are_refused(damaged: Any, fit: sb.Fit, tmp_path: Path) -> None:
    fit.save(tmp_path / "file.safetensors")
    header, arrays = files.read(tmp_path / "file.safetensors")
    files.write(tmp_path / "damaged.safetensors", header | {"levels": damaged}, arrays)
    with pytest.raises(sb.ModelFileError, match="the model in the file is damaged: the levels"):
        sb.load(tmp_path / "damaged.safetensors")


def test_infinite_levels_are_refused(fit: sb.Fit, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="finite"):
        levels.of_file([[float("inf")]], 1)
    fit.save(tmp_path / "file.safetensors")
    arrays = load_file(tmp_path / "file.safetensors")
    header, _ = files.read(tmp_path / "file.safetensors")
    # Bytes of another program, without a checksum.
    metadata = {"format": "stickbreak-model", "version": "2", "header": json.dumps(header | {"levels": [["a"]]})}
    save_file(arrays, tmp_path / "other.safetensors", metadata)
    with pytest.raises(sb.ModelFileError):
        sb.load(tmp_path / "other.safetensors")


def test_a_checkpoint_keeps_levels(tmp_path: Path) -> None:
    long = sb.Full(max_passes=6, tol=0)
    whole = sb.fit(MODEL, FRAME, long, n_components=3)
    checkpoint = sb.Checkpoint(tmp_path / "run.checkpoint", every_seconds=0)
    fitted(checkpoint=checkpoint)
    # Categories in another order are the same data.
    other = FRAME.assign(grade=FRAME["grade"].cat.reorder_categories(["A", "never", "B", "C"]))
    resumed = sb.fit(MODEL, other, long, n_components=3, checkpoint=checkpoint)
    assert (resumed.levels, resumed.elbo, len(resumed.history)) == (LEVELS, whole.elbo, 6)
    with pytest.raises(sb.CheckpointError, match="'new' in row 0, column 'word'"):
        sb.fit(MODEL, FRAME.replace({"word": {"small": "new"}}), long, n_components=3, checkpoint=checkpoint)


def blocks_of(frame: Any, size: int = 25) -> Callable[[], Iterator[Any]]:
    return lambda: (frame[begin : begin + size] for begin in range(0, N, size))


@pytest.mark.parametrize("table", [TABLES["pandas"], TABLES["polars"]], ids=["pandas", "polars"])
def test_blocks_have_the_levels_of_all_rows(table: Callable[[pd.DataFrame], Any]) -> None:
    # The first block lacks the level "small" of the last ones.
    late = table(FRAME.iloc[[1, 2, 4, 5, *range(0, N, 3), *range(7, N, 3), *range(8, N, 3)]].reset_index(drop=True))
    stream = sb.Memoized(batches=1, shuffle=False, max_passes=4, tol=0)
    found = sb.fit(MODEL, blocks_of(late, 4), stream, n_components=3)
    whole = sb.fit(MODEL, late, stream, n_components=3)
    assert found.levels["word"] == LEVELS["word"]
    assert (found.levels, found.elbo) == (whole.levels, whole.elbo)
    wrong = FRAME.astype({"word": object})
    wrong.loc[30, "word"] = "new"
    with pytest.raises(sb.SourceError, match=r"at row 25: .*'new' in row 5, column 'word'"):
        sb.fit(MODEL, blocks_of(wrong), stream, init=whole)
    wrong.loc[30, "word"] = 3
    with pytest.raises(sb.SourceError, match=r"at row 25: .*column 'word'"):
        sb.fit(MODEL, blocks_of(wrong), stream, n_components=3)


def test_blocks_of_several_categories_share_sorted_levels() -> None:
    def blocks() -> Iterator[Any]:
        for block in blocks_of(FRAME)():
            yield block.assign(
                word=block["word"].astype("category"), grade=block["grade"].cat.remove_unused_categories()
            )
        last = pd.Categorical(["zero"] * 3, categories=["zero", "small"])
        yield FRAME[:3].assign(word=last, grade=FRAME["grade"][:3].cat.reorder_categories(["A", "B", "C", "never"]))

    stream = sb.Memoized(batches=1, shuffle=False, max_passes=2, tol=0)
    found = sb.fit(MODEL, blocks, stream, n_components=3)
    assert found.levels["word"] == ("large", "medium", "small", "zero")
    assert found.levels["grade"] == ("A", "B", "C", "never")
    assert found.predict(FRAME.assign(word="zero")).shape == (N,)


@pytest.mark.parametrize("n_files", [1, 2])
def test_parquet_files_hold_text(n_files: int, fit: sb.Fit, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for part in range(n_files):
        FRAME[part::n_files].to_parquet(folder / f"{part}.parquet")
    path = folder if n_files > 1 else folder / "0.parquet"
    found = sb.fit(MODEL, path, sb.Memoized(batches=1, shuffle=False, max_passes=4, tol=0), n_components=3)
    assert found.levels == LEVELS
    assert found.predict(FRAME).shape == (N,)
    with pytest.raises(sb.SourceError, match=r"column 2 \('word'\) holds values of type"):
        sb.fit(sb.Mixture(likelihood=sb.Gaussian()), path)
    amounts = sb.Mixture(likelihood=sb.Columns(BLOCKS | {"flag": sb.Gaussian()}))
    with pytest.raises(sb.SourceError, match="column 'flag' holds text; put such columns in a block of Categorical"):
        sb.fit(amounts, path)


def test_folds_share_levels() -> None:
    rare = FRAME.copy()
    rare.loc[0, "word"] = "unique"
    table = sb.cross_validate(MODEL, rare, QUICK, folds=3, n_components=3)
    assert np.isfinite(table["log_predictive"]).all()


def test_wide_numbers_are_read_as_before() -> None:
    """Tables of numbers alone are not copied column by column, and keep float32."""
    frame = pd.DataFrame({"size": SIZE.astype(np.float32), "code": KIND.astype(np.float32)})
    model = sb.Mixture(likelihood=sb.Columns({"size": sb.Gaussian(), "code": sb.Categorical()}))
    found = levels.coded(frame, "X", model.likelihood, learn=True)
    assert found.data is frame
    assert fitted(frame, model).levels == {}


def test_arrays_of_numbers_that_are_no_codes_are_refused_and_rows_of_codes_become_tables() -> None:
    """A frame with the classes 1, 2, 3 is one of codes 0, 1, 2 as an array, which looks the same."""
    rng = np.random.default_rng(0)
    kind = np.arange(120) % 3
    table = pd.DataFrame({"a": rng.normal(4.0 * kind, 1.0), "class": kind + 1, "town": np.array(["x", "y", "z"])[kind]})
    blocks = {"a": sb.Gaussian(), "class": sb.Categorical(), "town": sb.Categorical()}
    fit = sb.fit(sb.Mixture(likelihood=sb.Columns(blocks)), table, progress=False)
    assert fit.levels["class"] == (1, 2, 3)
    codes = table.assign(town=kind).to_numpy()
    with pytest.raises(sb.InvalidArgument, match="'class' would be codes and not the levels") as caught:
        fit.predict(codes)
    assert caught.value.argument == "X"
    drawn = fit.sample(200, seed=0)
    shown = fit.as_table(drawn)
    assert list(shown.columns) == ["a", "class", "town"]
    assert set(shown["class"]) <= {1, 2, 3}
    assert np.isfinite(fit.log_predictive(shown)).all()
    np.testing.assert_array_equal(shown["a"], drawn[:, 0])
    assert fit.as_table([[0.5, np.nan, 2.0]]).iloc[0, 1:].tolist() == [None, "z"]
    assert fit.as_table([[0.5, np.nan, np.nan], [0.5, 1.0, 2.0]])["town"].isna().tolist() == [True, False]
    with pytest.raises(sb.InvalidArgument, match="3 in row 0, column 'class'"):
        fit.as_table([[0.5, 3.0, 0.0]])
