"""Updates of fits by collections: the bits of rows in memory, wherever the shards are."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import stickbreak as sb
from cases import visible_bits
from clients import Client
from stickbreak.result import updating
from stickbreak.shards import tasks

D = 3
MODEL = sb.Mixture(likelihood=sb.Gaussian())


def rows(n: int, seed: int = 3) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.normal(np.random.default_rng(0).normal(scale=8.0, size=(4, D))[np.arange(n) % 4])


X, NEW = rows(800), rows(500, 4)


def first(model: sb.Mixture = MODEL, data: Any = X, **options: Any) -> sb.Fit:
    return sb.fit(model, data, sb.Full(max_passes=5), n_components=4, progress=False, **options)


def same(one: sb.Fit, other: sb.Fit) -> bool:
    return visible_bits(one, X) == visible_bits(other, X)


@pytest.mark.parametrize("chunk", [500, 200, 33])
@pytest.mark.parametrize("where", ["here", None, Client()])
def test_an_update_is_that_of_the_rows(chunk: int, where: Any) -> None:
    fit, data = first(), da.from_array(NEW, chunks=(chunk, -1))
    found = fit.update(data, max_passes=3, tol=0.0, cluster=where)
    expected = fit.update(NEW, max_passes=3, tol=0.0)
    # Of one shard there is nothing to add up.
    assert same(found, expected) == (chunk == 500)
    assert found.elbo == pytest.approx(expected.elbo, rel=1e-12)
    assert len(found.history) == len(expected.history)
    assert same(found, fit.update(data, max_passes=3, tol=0.0, cluster=Client()))


def test_float32_rows_keep_the_digits_of_the_origin() -> None:
    fit = first(data=X + 1e6 + 0.1)
    data = (NEW + 1e6 + 0.1).astype(np.float32)
    assert same(fit.update(da.from_array(data, chunks=(500, -1))), fit.update(data))


def test_weights_and_rows_without_values(tmp_path: Any) -> None:
    model = sb.Mixture(likelihood=sb.DiagonalGaussian())
    fit = first(model, missing="marginalize")
    holes = NEW.copy()
    holes[7], holes[9, 1] = np.nan, np.nan
    weights = np.random.default_rng(1).uniform(size=500)
    data = da.from_array(holes, chunks=(100, -1))
    with pytest.warns(sb.EmptyRowsWarning):
        here, there = (fit.update(data, sample_weight=weights, cluster=where) for where in ("here", Client()))
    assert same(here, there)
    assert there.counts.sum() - fit.counts.sum() == pytest.approx(weights.sum() - weights[7])


def test_tables_need_the_columns_of_the_fit(tmp_path: Any) -> None:
    fit = first(data=pd.DataFrame(X, columns=["a", "b", "c"]))
    table = pd.DataFrame(NEW, columns=["a", "b", "c"])
    expected = fit.update(table)
    assert same(fit.update(dd.from_pandas(table, npartitions=1)), expected)
    pq.write_table(pa.Table.from_pandas(table, preserve_index=False), tmp_path / "rows.parquet")
    assert same(fit.update(tmp_path / "rows.parquet", cluster="here"), expected)
    turned = table[["c", "b", "a"]]
    pq.write_table(pa.Table.from_pandas(turned, preserve_index=False), tmp_path / "turned.parquet")
    for where in ("here", Client()):
        assert same(fit.update(dd.from_pandas(turned, npartitions=1), cluster=where), expected)
        assert same(fit.update(tmp_path / "turned.parquet", cluster=where), expected)
        with pytest.raises(sb.InvalidArgument, match=r"X_new.*without 'b'"):
            fit.update(dd.from_pandas(table[["c", "a"]], npartitions=2), cluster=where)
    # Columns of numbers in place of names are matched by position.
    assert same(fit.update(dd.from_pandas(pd.DataFrame(NEW), npartitions=1)), expected)


def test_empty_files_of_a_folder_are_left_out(tmp_path: Any) -> None:
    table = pa.Table.from_pandas(pd.DataFrame(NEW, columns=["a", "b", "c"]), preserve_index=False)
    for name, rows_of in (("0.parquet", table[:0]), ("1.parquet", table), (".hidden.parquet", table)):
        pq.write_table(rows_of, tmp_path / name)
    assert same(first().update(tmp_path, cluster="here"), first().update(NEW))
    (tmp_path / "1.parquet").unlink()
    with pytest.raises(sb.SourceError, match="its files have no rows"):
        first().update(tmp_path, cluster="here")


def test_chunks_that_are_no_rows_are_refused() -> None:
    nothing = da.from_array(NEW, chunks=(100, -1)).map_blocks(lambda x: None, meta=np.empty((0, 3)))
    for where in ("here", Client()):
        with pytest.raises(sb.SourceError, match="chunk 0 is None"):
            first().update(nothing, cluster=where)


def test_decimals_are_numbers(tmp_path: Any) -> None:
    cents = pd.DataFrame(np.round(NEW, 2), columns=["a", "b", "c"])
    decimal = pa.decimal128(10, 2)
    table = pa.table({name: pa.array([Decimal(f"{value:.2f}") for value in cents[name]], decimal) for name in cents})
    pq.write_table(table, tmp_path / "rows.parquet")
    with pytest.warns(sb.ConversionWarning):
        found = first().update(tmp_path / "rows.parquet", cluster=Client())
    assert same(found, first().update(cents.to_numpy()))


def test_values_that_change_are_seen() -> None:
    """Already between the first reading and the first visit."""
    generator = np.random.default_rng(0)
    changing = da.from_array(NEW, chunks=(100, -1)).map_blocks(lambda x: x + generator.normal(size=x.shape))
    for where in ("here", Client()):
        with pytest.raises(sb.SourceError, match=r"shard 0 has other values than when it was read first"):
            first().update(changing, cluster=where)
        with pytest.raises(sb.SourceError, match=r"shard \d has other values than when it was read first"):
            first(data=changing, cluster=where)


def test_weights_that_travelled_may_begin_anywhere() -> None:
    class Travelling(Client):
        def submit(self, function: Any, *arguments: Any, **options: Any) -> Any:
            found = super().submit(function, *arguments, **options)
            if function is tasks.itself and isinstance(found.value, np.ndarray):
                # As a message of several parts is read: at a byte that is no multiple of eight.
                room = bytearray(found.value.nbytes + 1)
                found.value = np.frombuffer(room, dtype=float, offset=1)
                room[1:] = arguments[0].tobytes()
            return found

    weights = np.random.default_rng(1).uniform(size=500)
    data, fit = da.from_array(NEW, chunks=(100, -1)), first()
    there, here = (fit.update(data, sample_weight=weights, cluster=where) for where in (Travelling(), "here"))
    assert same(there, here)
    assert same(first(data=data, sample_weight=weights, cluster=Travelling()), first(data=data, sample_weight=weights))


def test_long_chunks_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(updating, "SHARD_ROWS", 100)
    fit = first()
    cut, chunks = (fit.update(da.from_array(NEW, chunks=(chunk, -1))) for chunk in (500, 100))
    assert same(cut, chunks)


@pytest.mark.parametrize("where", ["here", Client()])
def test_bad_collections_are_refused(where: Any) -> None:
    fit = first()
    spoilt = NEW.copy()
    spoilt[321, 1] = np.nan
    with pytest.raises(sb.InvalidArgument, match=r"row 21 of chunk 3, column 1") as raised:
        fit.update(da.from_array(spoilt, chunks=(100, -1)), cluster=where)
    assert raised.value.argument == "X_new"
    with pytest.raises(sb.InvalidArgument, match=r"X_new.*of 3 columns, as the fit had.*one of 2"):
        fit.update(da.from_array(NEW[:, :2], chunks=(100, -1)), cluster=where)
    with pytest.raises(sb.InvalidArgument, match=r"X_new.*unknown sizes.*X_new.compute_chunk_sizes"):
        fit.update(da.from_array(NEW, chunks=(100, -1))[da.from_array(NEW, chunks=(100, -1))[:, 0] > 0], cluster=where)
    with pytest.raises(sb.NotSupported, match="exposure"):
        fit.update(da.from_array(NEW, chunks=(100, -1)), exposure=np.ones(500), cluster=where)
    with pytest.raises(sb.InvalidType, match=r"X_new.*with a cluster"):
        fit.update(NEW, cluster=where)
    with pytest.raises(sb.InvalidArgument, match="sample_weight"):
        fit.update(da.from_array(NEW, chunks=(100, -1)), sample_weight=np.ones(7), cluster=where)


def test_a_fit_with_levels_takes_rows_in_memory() -> None:
    table = pd.DataFrame({"kind": ["x", "y"] * 50}, dtype="category")
    fit = first(sb.Mixture(likelihood=sb.Categorical()), table)
    with pytest.raises(sb.NotSupported, match="levels"):
        fit.update(da.from_array(np.zeros((10, 1)), chunks=(5, -1)))


def test_rows_off_the_support_are_refused() -> None:
    flat = X.copy()
    flat[:, 2] = 1.0
    with pytest.warns(sb.SupportWarning):
        fit = first(data=flat)
    with pytest.raises(sb.InvalidArgument, match="off the subspace in column 2"):
        fit.update(da.from_array(NEW, chunks=(100, -1)), cluster=Client())


def test_paths_need_a_cluster(tmp_path: Path) -> None:
    with pytest.raises(sb.InvalidType, match='cluster="here" reads Parquet files'):
        first().update(tmp_path / "rows.parquet")
