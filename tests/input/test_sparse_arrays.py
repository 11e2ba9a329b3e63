"""Sparse arrays with modified parts: an error that names the part, or SciPy's result."""

import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import stickbreak as sb
from stickbreak.sklearn import BayesianMixture

RNG = np.random.default_rng(0)
COUNTS = RNG.poisson(0.7, size=(40, 6)).astype(float)
MODEL = sb.Mixture(likelihood=sb.Poisson(), process=sb.DirichletProcess())
Damage = Callable[[Any], None]


def run(table: Any) -> sb.Fit:
    return sb.fit(MODEL, table, sb.Full(max_passes=3), n_components=2)


def put(part: str, index: int, value: int) -> Damage:
    def damage(table: Any) -> None:
        getattr(table, part)[index] = value

    return damage


def cut(part: str) -> Damage:
    return lambda table: setattr(table, part, getattr(table, part)[:-1])


def empty_but_wild(table: Any) -> None:
    """Set the number of values to zero and an offset far outside, which SciPy does not check."""
    table.indptr = np.zeros_like(table.indptr)
    table.indptr[1] = 10**9


def values_of_a_row(value: object) -> Damage:
    """Give all entries of a row of lists this value."""

    def damage(table: Any) -> None:
        table.data[3] = [value] * len(table.rows[3])

    return damage


DAMAGES: list[tuple[str, Damage, str]] = [
    *((form, empty_but_wild, "indptr") for form in ("csr", "csc", "bsr")),
    *((form, put("indptr", 0, 3), "indptr") for form in ("csr", "csc", "bsr")),
    *((form, put("indptr", 2, 10**9), "indptr") for form in ("csr", "csc", "bsr")),
    *((form, put("indptr", 2, -5), "indptr") for form in ("csr", "csc", "bsr")),
    *((form, put("indptr", -1, 10**9), "indptr") for form in ("csr", "csc", "bsr")),
    *((form, cut("indptr"), "indptr") for form in ("csr", "csc", "bsr")),
    *((form, put("indices", 1, 10**9), "indices") for form in ("csr", "csc", "bsr")),
    *((form, put("indices", 1, -1), "indices") for form in ("csr", "csc", "bsr")),
    *((form, cut("data"), "indptr") for form in ("csr", "csc", "bsr")),
    ("coo", put("row", 1, 10**9), "row"),
    ("coo", put("col", 1, -2), "col"),
    ("coo", cut("data"), "row"),
    ("coo", lambda table: setattr(table, "coords", None), "coords"),
    ("coo", lambda table: setattr(table, "coords", table.coords[:1]), "coords"),
    ("coo", lambda table: setattr(table, "data", table.data[:, None]), "data"),
    *((form, lambda table: setattr(table, "data", np.array(1.0)), "data") for form in ("csr", "coo", "dia", "bsr")),
    ("dia", cut("offsets"), "offsets"),
    *(("lil", values_of_a_row(value), "data") for value in ("x", None, [1.0], 1j, 10**400)),
    ("lil", lambda table: table.rows[3].append(1), "rows"),
]


@pytest.mark.parametrize(("form", "damage", "part"), DAMAGES)
def test_damaged_parts_are_named(form: str, damage: Damage, part: str) -> None:
    table = sparse.csr_array(COUNTS).asformat(form)
    damage(table)
    with pytest.raises(sb.InvalidArgument) as caught:
        run(table)
    assert caught.value.argument == "data"
    assert f"`{part}`" in caught.value.found
    assert f"`{part}`" in caught.value.allowed


@pytest.mark.parametrize("form", ["coo", "csc", "dia", "dok", "lil"])
def test_rows_that_do_not_fit_in_memory_are_counted(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = sparse.csr_array(COUNTS).asformat(form)

    def full(*_: object, **__: object) -> None:
        raise MemoryError("Unable to allocate 14.9 GiB")

    monkeypatch.setattr(type(table), "tocsr", full)
    monkeypatch.setattr(sparse.coo_array, "tocsr", full)
    with pytest.raises(sb.InvalidArgument, match=r"of 40 rows, which take about 0\.0 GB in CSR format") as caught:
        run(table)
    assert caught.value.argument == "data"


def test_the_size_of_too_many_rows_is_stated() -> None:
    table = sparse.coo_array(([1.0, 1.0], ([0, 1], [0, 1])), shape=(2 * 10**14, 3))  # beyond any address space
    for call in (run, BayesianMixture(likelihood=sb.Poisson()).fit):
        with pytest.raises(sb.InvalidArgument, match=r"200000000000000 rows, which take about 1600000\.0 GB") as caught:
            call(table)
        assert caught.value.argument in ("data", "X")


def test_a_damaged_array_does_not_end_the_process() -> None:
    program = """
        import numpy as np, scipy.sparse as sparse, stickbreak as sb
        table = sparse.csr_array(np.ones((50, 4)))
        table.indptr = np.zeros_like(table.indptr)
        table.indptr[1] = 2**31 - 1
        try:
            sb.fit(sb.Mixture(likelihood=sb.Poisson(), process=sb.DirichletProcess()), table)
        except sb.InvalidArgument as error:
            print(error.found)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert "fit together: `indptr` falls from 2147483647 to 0" in done.stdout


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "dia", "lil", "dok"])
def test_whole_arrays_of_any_format_give_one_bound(form: str) -> None:
    assert run(sparse.csr_array(COUNTS).asformat(form)).elbo == run(sparse.csr_array(COUNTS)).elbo


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_values_at_one_column_add_up_whatever_flag_is_set(form: str) -> None:
    table = sparse.csr_array(COUNTS).asformat(form)
    table.data = table.data.repeat(2)
    for part in ("indices", "row", "col"):
        if hasattr(table, part):
            setattr(table, part, getattr(table, part).repeat(2))
    if form != "coo":
        table.indptr = 2 * table.indptr
    table.has_canonical_format = True
    before = table.data.copy()

    assert run(table).elbo == run(sparse.csr_array(2.0 * COUNTS)).elbo
    np.testing.assert_array_equal(table.data, before)


def test_the_estimator_of_scikit_learn_looks_first() -> None:
    table = sparse.csc_array(COUNTS)
    table.indptr[2] = 10**9
    with pytest.raises(sb.InvalidArgument) as caught:
        BayesianMixture(likelihood=sb.Poisson()).fit(table)
    assert caught.value.argument == "X"
    assert "`indptr`" in caught.value.found
