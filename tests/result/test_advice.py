"""Advice: each kind with data that cause it and with data that do not."""

import copy
import json
import pickle
import tracemalloc
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import stickbreak as sb
from stickbreak.cli import main
from stickbreak.result import advising, shapes

GAUSSIAN = sb.Mixture(likelihood=sb.Gaussian())


def two_clusters(n: int = 200, d: int = 2, seed: int = 0) -> np.ndarray:
    """Return data without advice: two clusters far apart."""
    return np.random.default_rng(seed).normal(size=(n, d)) + np.repeat([[0.0], [12.0]], n // 2, axis=0)


def advice(data: Any, model: sb.Mixture = GAUSSIAN, algorithm: Any = None, **options: Any) -> dict[str, sb.Advice]:
    """The advice of a fit by kind."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sb.Advice)
        fit = sb.fit(model, data, algorithm, **options)
    found = fit.advice()
    kinds = [each.kind for each in found]
    assert len(set(kinds)) == len(kinds)
    return {each.kind: each for each in found}


def test_good_data_deserve_none() -> None:
    fit = sb.fit(GAUSSIAN, two_clusters())
    assert fit.advice() == ()
    assert "\n" not in repr(fit)
    assert "advice" not in fit._repr_html_()


def test_few_rows_a_component_and_three_things_to_try() -> None:
    wide = two_clusters(60, 12)
    found = advice(wide, n_components=2, algorithm=sb.Full())["few_rows"]
    assert str(found) == (
        "2 of 2 components have fewer than D^2 / 2 = 72 rows for a full covariance of 12 columns, the smallest 30; "
        "try DiagonalGaussian(), fewer columns or more rows"
    )
    assert len(found.suggestions) == 3
    for suggested in (
        advice(wide, sb.Mixture(likelihood=sb.DiagonalGaussian()), sb.Full(), n_components=2),
        advice(wide[:, :7], n_components=2, algorithm=sb.Full()),
        advice(two_clusters(400, 12), n_components=2, algorithm=sb.Full()),
    ):
        assert "few_rows" not in suggested


def test_dependent_columns_count_once() -> None:
    """Six columns that are sums of others leave a rank of two, which 60 rows are enough for."""
    rows = two_clusters(60, 2)
    assert "few_rows" not in advice(
        rows @ np.random.default_rng(1).normal(size=(2, 12)), algorithm=sb.Full(), n_components=2
    )


def test_one_component_with_nearly_all_rows() -> None:
    blob = np.random.default_rng(0).normal(size=(400, 2))
    assert advice(blob)["one_component"].text == "one component has all rows"
    outliers = np.concatenate([blob, np.random.default_rng(1).normal(60, 1, size=(4, 2))])
    found = advice(outliers, algorithm=sb.Full(), n_components=2)["one_component"]
    assert found.text == "one component has 99.0% of the rows"
    assert "one_component" not in advice(two_clusters())
    # One component that was requested is no mistake.
    assert "one_component" not in advice(blob, algorithm=sb.Full(), n_components=1)


def test_passes_that_ran_out() -> None:
    rows = np.random.default_rng(0).normal(size=(300, 3))
    assert "max_passes=" in str(advice(rows, algorithm=sb.Full(max_passes=2), n_components=6)["passes"])
    assert "passes" not in advice(rows, algorithm=sb.Full(max_passes=2, tol=0), n_components=6)
    assert "passes" not in advice(two_clusters())


def test_a_start_that_beats_the_first() -> None:
    """Random starts of eight clusters end in different places; starts of two clear ones do not."""
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(400, 2)) + np.repeat(np.arange(8.0), 50)[:, None] * [20.0, 0.0]
    model = sb.Mixture(likelihood=sb.Gaussian(), process=sb.FiniteDirichlet(n_components=8))
    options: dict[str, Any] = {"algorithm": sb.Full(max_passes=500), "init": "random"}
    gains = []
    for seed in range(4):
        first, best = (sb.fit(model, rows, seed=seed, n_init=n, **options) for n in (1, 3))
        found = {each.kind: each for each in best.advice()}
        gains.append(best.objective - first.objective)
        assert ("starts" in found) == (gains[-1] > 1.0)
        if "starts" in found:
            text = f"another start found a bound {gains[-1]:.3g} nats above that of the first"
            assert found["starts"].text == text
        assert "starts" not in {each.kind for each in first.advice()}
    assert max(gains) > 1.0
    assert "starts" not in advice(two_clusters(), algorithm=sb.Full(), n_components=2, n_init=3)
    assert "starts" not in advice(two_clusters(), n_init=3)


def test_whole_numbers_and_what_was_done_about_them() -> None:
    rows = two_clusters(400)
    rows[:, 1] = np.round(rows[:, 1] * 2)
    found = advice(pd.DataFrame(rows, columns=["length", "rings"]))["whole_numbers"]
    assert found.text == "column 'rings' holds whole numbers, which Gaussian takes for values rounded to that step"
    rows[:, 1] /= 10
    assert "whole_numbers" not in advice(rows)
    assert "whole_numbers" not in advice(two_clusters())
    counts = np.random.default_rng(0).poisson(5, size=(200, 2))
    assert "whole_numbers" not in advice(counts, sb.Mixture(likelihood=sb.Poisson()))


def test_steps_of_huge_numbers_are_not_taken_for_whole_numbers() -> None:
    rows = np.round(two_clusters(), 1) * [1e-150, 1e150]
    assert "whole_numbers" not in advice(rows)


def test_nearly_constant_columns() -> None:
    rows = np.column_stack([two_clusters(400), np.zeros((400, 2))])
    rows[:4, 2], rows[:5, 3] = np.arange(1.0, 5.0) / 3.0, np.arange(1.0, 6.0) / 3.0
    found = advice(rows)["nearly_constant"]
    assert found.text == "column 2 has one value in 99% of the rows or more"
    assert "nearly_constant" not in advice(rows[:, :2])


def test_flags_under_a_gaussian_and_one_hot_columns_under_bernoulli() -> None:
    rng = np.random.default_rng(0)
    flags = np.column_stack([two_clusters(400), rng.integers(2, size=400)])
    assert advice(flags)["flags"].text == "column 2 has two values, which no Gaussian describes"
    assert "flags" not in advice(flags[:, :2])

    codes = rng.integers(3, size=400)
    one_hot = np.column_stack([rng.integers(2, size=(400, 2)), np.eye(3)[codes], rng.integers(2, size=400)])
    bernoulli = sb.Mixture(likelihood=sb.Bernoulli())
    names = ["a", "b", "red", "green", "blue", "c"]
    found = advice(pd.DataFrame(one_hot, columns=names), bernoulli)["flags"]
    assert "exactly one of the columns 'red', 'green', 'blue', but" in found.text
    assert found.suggestions == ("Categorical() with one column of codes in their place",)
    assert "flags" not in advice(np.delete(one_hot, 2, axis=1), bernoulli)
    twice = np.column_stack([one_hot, np.eye(4)[rng.integers(4, size=400)]])
    assert ", and of 1 more group, but" in advice(twice, bernoulli)["flags"].text
    # Constant columns, at any position, do not belong to a group.
    for constant in (0.0, 1.0):
        flat = np.insert(one_hot, [0, 2, 2, 6], constant, axis=1)
        text = {each.kind: each.text for each in advising.of_rows(advising.look(flat), sb.Bernoulli(), None)}["flags"]
        assert text.startswith("each row has exactly one of the columns 5, 6, 7, but")
        alone = np.insert(np.delete(one_hot, [2], axis=1), [0, 2], constant, axis=1)
        assert "flags" not in {each.kind for each in advising.of_rows(advising.look(alone), sb.Bernoulli(), None)}


def test_duplicate_rows() -> None:
    rows = two_clusters(400)
    rows[380:] = rows[360:380]
    assert advice(rows)["copies"].text.startswith("20 of 400 rows are copies of others, more than chance explains")
    assert "copies" not in advice(rows[:380])
    # Where all columns have few values, equal rows are no sign of copies.
    assert "duplicates" not in advice(np.random.default_rng(0).integers(5, size=(400, 2)).astype(float))
    few = np.repeat(np.random.default_rng(0).normal(size=(5, 3)), 20, axis=0)
    assert advice(few)["copies"].text.startswith("95 of 100 rows are copies")
    assert not {"copies", "duplicates"} & advice(few[:, :1]).keys()
    # Rounded amounts meet by chance.
    ages = np.random.default_rng(0).normal(50.0, 4.0, size=(400, 1)).round()
    assert advice(ages)["duplicates"].text.endswith(
        "% of the rows repeat another one, as often as chance explains, and all count"
    )
    assert advice(np.ones((50, 3)))["duplicates"].text == "all rows are equal"


def test_skewed_columns() -> None:
    """Logarithms of incomes are advised; a skewed column that logarithms do not mend is not, nor is one with zeros."""
    rows = two_clusters(400)
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rows[:, 0], "income": rng.lognormal(size=400)})
    found = advice(table)["skewed"]
    assert found.text == "column 'income' is positive and skewed"
    assert "logarithms of it" in found.suggestions[0]
    assert "skewed" not in advice(table.assign(income=np.log(table["income"])))
    assert "skewed" not in advice(table.assign(income=-table["income"]))
    assert "skewed" not in advice(table.assign(income=np.floor(table["income"])))
    assert "skewed" not in advice(table.assign(income=np.exp(table["income"] ** 2 / 4)))
    scaled = [table.assign(income=table["income"] * factor) for factor in (1e-200, 1e200)]
    assert all(list(advising._of_skewed(each.to_numpy(), None)) for each in scaled)


def test_codes_flags_and_counts_that_follow_from_another() -> None:
    rng = np.random.default_rng(0)
    codes, flags, counts = rng.integers(0, 5, 600), rng.random(600) < 0.5, rng.poisson(4.0, 600)
    table = pd.DataFrame({"x": rng.normal(size=600), "code": codes, "flag": flags, "count": counts})
    beside = {
        "name": np.array(list("abcde"))[codes],
        "region": np.array(list("uuvvw"))[codes],
        "again": flags,
        "more": 1 + counts,
    }
    for name, column in beside.items():
        wide = table.assign(**{name: column})
        few = sb.Memoized(max_passes=2, moves=())
        fit = sb.fit(sb.Mixture(sb.columns_for(wide, verbose=False)), wide, few)
        assert (
            f"'{name}' follows from another column" in {each.kind: each.text for each in fit.advice()}["copied_columns"]
        )
    both = pd.DataFrame({"counts": codes, "counts of towns": codes + 1, "counts again": codes + 2})
    fit = sb.fit(sb.Mixture(sb.Poisson()), both, sb.Memoized(max_passes=2, moves=()))
    found = {each.kind: each.text for each in fit.advice()}["copied_columns"]
    assert found == "columns 'counts of towns', 'counts again' follow from another column, and count once more"
    rows = np.column_stack([codes, rng.integers(0, 5, 600), np.arange(600) % 200])
    fit = sb.fit(sb.Mixture(sb.Categorical()), rows, sb.Memoized(max_passes=2, moves=()))
    assert "copied_columns" not in {each.kind for each in fit.advice()}


def test_copied_columns_under_independent_columns() -> None:
    rows = two_clusters(400)
    table = pd.DataFrame({"x": rows[:, 0], "y": rows[:, 1], "inches": rows[:, 0] / 2.54 + 1.0})
    diagonal = sb.Mixture(likelihood=sb.DiagonalGaussian())
    found = advice(table, diagonal)["copied_columns"]
    assert found.text == "column 'inches' repeats another column, which DiagonalGaussian counts once more"
    assert "copied_columns" not in advice(table[["x", "y"]], diagonal)
    assert "copied_columns" not in advice(table)
    assert "copied_columns" not in advice(table, sb.Mixture(sb.StudentT()))
    assert "copied_columns" in advice(table, sb.Mixture(sb.StudentT(covariance="diagonal")))
    noisy = table.assign(inches=table["inches"] + 0.1 * rows[:, 1])
    assert "copied_columns" not in advice(noisy, diagonal)


@pytest.mark.parametrize("at_a_time", [1, 40, 2_000_000])
@pytest.mark.parametrize(("n", "d"), [(20, 1), (20, 2), (50, 30), (1000, 60), (20, 500)])
def test_copies_are_those_of_all_correlations(n: int, d: int, at_a_time: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shapes, "_MOST_CORRELATIONS", at_a_time)
    rng = np.random.default_rng(d)
    rows = rng.normal(size=(n, d)) + 1e6
    copied = rng.integers(0, d, size=d // 3)
    rows[:, copied] = 5.0 - 3.0 * rows[:, rng.integers(0, d, size=d // 3)]
    rows[:, d // 2 :: 7] += 1e-3 * rng.normal(size=rows[:, d // 2 :: 7].shape)
    same = np.abs(np.atleast_2d(np.corrcoef(rows, rowvar=False))) > shapes._SAME
    expected = [column for column in range(d) if same[column, :column].any()]
    assert shapes.copies(rows) == expected
    assert d < 30 or expected


def test_copies_in_many_columns_take_little_memory() -> None:
    """All correlations of 30,000 columns would take 7 GB."""
    rows = np.random.default_rng(0).normal(size=(20, 30_000))
    rows[:, 29_999] = -rows[:, 3]
    tracemalloc.start()
    assert shapes.copies(rows) == [29_999]
    assert tracemalloc.get_traced_memory()[1] < 100_000_000
    tracemalloc.stop()


def test_columns_that_count_the_rows() -> None:
    rows = two_clusters(400)
    table = pd.DataFrame({"id": np.arange(1000, 1400.0), "x": rows[:, 0], "y": rows[:, 1]})
    assert advice(table)["row_numbers"].text == "column 'id' counts the rows"
    assert "row_numbers" in advice(table.sample(frac=1.0, random_state=0))
    assert "row_numbers" not in advice(table.sample(frac=0.9, random_state=0))
    table.loc[7, "id"] = 1008.0
    assert "row_numbers" not in advice(table)
    assert "row_numbers" not in advice(table[["x", "y"]])


def test_columns_that_the_model_does_not_see_have_names() -> None:
    table = pd.DataFrame(two_clusters(), columns=["x", "y"])
    table["one"] = 1.0
    table["sum"] = table["x"] + table["y"]
    text = "column 'one' is constant and column 'sum' follows from the others; "
    with pytest.warns(sb.SupportWarning, match=text):
        fit = sb.fit(GAUSSIAN, table)
    assert fit.advice()[0].text.startswith(text)


def test_warnings_are_the_same_objects_and_come_once() -> None:
    rows = np.column_stack([np.random.default_rng(0).normal(size=(300, 2)), np.ones(300)])
    with pytest.warns(sb.Advice) as caught:
        fit = sb.fit(GAUSSIAN, rows, sb.Full(max_passes=2), n_components=6)
    assert [warning.message for warning in caught] == list(fit.advice())
    assert [type(each) for each in fit.advice()] == [sb.SupportWarning, sb.ConvergenceWarning]
    assert all(warning.filename == __file__ for warning in caught)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", sb.Advice)
        sb.fit(GAUSSIAN, rows, sb.Full(max_passes=2), n_components=6)
        # Other advice does not warn.
        warnings.simplefilter("error", sb.Advice)
        assert sb.fit(GAUSSIAN, np.random.default_rng(0).normal(size=(400, 2))).advice()


def test_files_pickles_and_copies_keep_advice(tmp_path: Path) -> None:
    rows = np.column_stack([two_clusters(), np.ones(200), np.arange(200.0)])
    with pytest.warns(sb.Advice):
        fit = sb.fit(GAUSSIAN, rows, sb.Full(max_passes=2), n_components=6)
    fit.save(tmp_path / "model.safetensors")
    for again in (sb.load(tmp_path / "model.safetensors"), pickle.loads(pickle.dumps(fit)), copy.deepcopy(fit)):
        assert list(map(str, again.advice())) == list(map(str, fit.advice()))
        assert list(map(type, again.advice())) == list(map(type, fit.advice()))
    assert {"row_numbers", "passes"} <= {each.kind for each in fit.advice()}
    assert "row_numbers" in {each.kind for each in fit.update(rows).advice()}
    assert "passes" not in {each.kind for each in fit.update(rows).advice()}


@pytest.mark.parametrize("kept", ["advice", [1], [["kind", "text"]], [["kind", 2, []]], [["kind", "text", [None]]]])
def test_files_with_other_advice_are_refused(tmp_path: Path, kept: object) -> None:
    header, arrays = sb.fit(GAUSSIAN, two_clusters())._to_parts()
    sb.io.files.write(tmp_path / "model.safetensors", {**header, "advice": kept}, arrays)
    with pytest.raises(sb.ModelFileError, match="advice"):
        sb.load(tmp_path / "model.safetensors")


def test_advice_survives_pickling() -> None:
    found = sb.Advice("too few", kind="few_rows", suggestions=("more", "others", "fewer"))
    again = pickle.loads(pickle.dumps(found))
    assert (str(again), again.text, again.kind, again.suggestions) == (
        str(found),
        "too few",
        "few_rows",
        found.suggestions,
    )
    assert str(found) == "too few; try more, others or fewer"


def test_large_data_are_looked_at_in_pieces() -> None:
    n = 50_000
    rows = np.column_stack([np.random.default_rng(0).normal(size=n), np.arange(float(n))])
    seen = advising.look(rows)
    assert seen is not None
    assert seen.rows.shape == (10_000, 2)
    assert seen.rows[0, 1] == 0.0
    assert (seen.rows[:, 1] == seen.numbers).all()
    assert seen.numbers[-1] == n - 1
    kinds = {each.kind for each in advising.of_rows(seen, sb.Gaussian(), None)}
    assert kinds == {"row_numbers"}


def test_blocks_are_looked_at(tmp_path: Path) -> None:
    rows = np.column_stack([two_clusters(), np.arange(200.0)])
    assert "row_numbers" in advice(lambda: iter([rows[:100], rows[100:]]))


@pytest.mark.filterwarnings("default::stickbreak.Advice")
def test_the_same_lines_everywhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, model = tmp_path / "rows.csv", tmp_path / "model.safetensors"
    table = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 8)), columns=list("abcdefgh"))
    table["one"] = 1.0
    table.to_csv(data, index=False)
    call = ["fit", str(data), "--out", str(model), "--n-components", "2", "--moves", "none", "--max-passes", "1"]
    assert main(call) == 0
    told = capsys.readouterr()
    fit = sb.load(model)
    assert len(fit.advice()) >= 3
    for each in fit.advice():
        assert f"\nadvice: {each}" in repr(fit)
        assert told.out.count(each.text) == 1
    assert "advice" not in told.err
    assert "warning" not in told.err
    assert "try --likelihood diagonal-gaussian, fewer columns or more rows" in told.out
    assert "(--max-passes) or --init MODEL to go on" in told.out
    assert fit._repr_html_().count("<p>advice: ") == len(fit.advice())
    assert main(["info", str(model)]) == 0
    assert [line for line in capsys.readouterr().out.splitlines() if line.startswith("advice")] == [
        line for line in told.out.splitlines() if line.startswith("advice")
    ]
    assert main([*call, "--json"]) == 0
    told = capsys.readouterr()
    assert [each["kind"] for each in json.loads(told.out)["advice"]] == [each.kind for each in fit.advice()]
    assert told.err == ""
    assert main([*call, "--quiet"]) == 0
    assert capsys.readouterr().err.count("column 'one' is constant") == 1


@pytest.mark.parametrize("likelihood", [sb.Gaussian(), sb.DiagonalGaussian(), sb.SphericalGaussian()])
def test_rows_far_away_are_named_and_hide_nothing(likelihood: Any) -> None:
    """Their squares must not widen what a fit expects of all other components."""
    table = pd.DataFrame(two_clusters(400), columns=["x", "y"])
    table.loc[[3, 250], "y"] = [1e6, -1e6]
    model = sb.Mixture(likelihood=likelihood)
    found = advice(table, model)["outliers"]
    assert str(found).startswith("rows 3, 250 are far from the others: row ")
    assert "in column 'y', where most rows have " in str(found)
    labels = np.delete(sb.fit(model, table, progress=False).predict(table), [3, 250])
    assert len(set(labels[:199])) == len(set(labels[199:])) == 1
    assert labels[0] != labels[-1]
    table.loc[[3, 250], "y"] = 100.0
    assert "outliers" not in advice(table, model)


def test_rows_far_away_in_a_sample_have_their_row_numbers() -> None:
    rows = two_clusters(40_000)
    rows[39_997, 1] = -1e7
    found = str(advice(rows)["outliers"])
    assert found.startswith("row 39997 is far from the others: row 39997 has -1e+07 in column 1")


def test_blocks_of_columns_get_the_advice_of_their_likelihoods() -> None:
    """With the names of their columns, and none for a table as it should be."""
    rng = np.random.default_rng(23)
    cluster = rng.integers(3, size=600)
    table = pd.DataFrame(
        {
            "pay": rng.normal(5.0 * cluster, 1.0),
            "visits": rng.poisson(2.0 + 9.0 * cluster),
            "town": rng.integers(3, size=600),
            "flag": rng.random(600) < 0.5,
        }
    )
    blocks = {"pay": sb.Gaussian(), "visits": sb.Poisson(), "town": sb.Categorical(), "flag": sb.Bernoulli()}

    def of(table: pd.DataFrame, **changes: Any) -> dict[str, str]:
        model = sb.Mixture(likelihood=sb.Columns(blocks | changes))
        return {kind: str(each) for kind, each in advice(table, model, sb.Full(max_passes=0), init=cluster).items()}

    assert set(of(table)) <= {"convergence"}
    assert "'pay'" in of(table.assign(pay=np.exp(1.5 * table["pay"])))["skewed"]
    gamma = rng.gamma(0.5, 2.0, 600)
    assert "vary" in of(table.assign(visits=rng.poisson(table["visits"] * gamma)))["overdispersed"]
    assert "'flag'" in of(table, flag=sb.DiagonalGaussian())["flags"]
