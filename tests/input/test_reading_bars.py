"""Progress bars while a file is read: their positions, and when they appear."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import stickbreak as sb
from stickbreak.cli import main
from stickbreak.io import datafiles, docword
from stickbreak.io.datafiles import parquet
from stickbreak.run import progress

ROWS = np.random.default_rng(0).normal(size=(60_000, 3)) + np.repeat([[0.0], [9.0]], 30_000, axis=0)
TABLE = pd.DataFrame(ROWS, columns=["x", "y", "z"])


@pytest.fixture(params=["rows.csv", "rows.csv.gz", "rows.parquet", "short.csv"])
def path(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of several pieces; the short one is read without PyArrow."""
    monkeypatch.setattr(parquet, "_VALUES", 30_000)
    path = tmp_path / request.param
    if path.suffix == ".parquet":
        TABLE.to_parquet(path)
    else:
        TABLE[: 6000 if path.stem == "short" else None].to_csv(path, index=False)
    return path


def test_shares_of_a_file_grow_to_one(path: Path) -> None:
    shares: list[float] = []
    read = datafiles.read(path, watch=shares.append)
    assert (read.rows == datafiles.read(path).rows).all()
    assert shares[-1] == 1.0
    assert all(0.0 < share <= 1.0 for share in shares)
    assert any(share < 1.0 for share in shares)


def test_shares_of_a_corpus(tmp_path: Path) -> None:
    path = tmp_path / "docword.txt.gz"
    lines = [f"{document} {word} 1" for document in range(1, 5001) for word in range(1, 31)]
    path.write_bytes(gzip.compress("\n".join(["5000", "30", str(len(lines)), *lines]).encode(), compresslevel=0))
    shares: list[float] = []
    counts = docword.read(path, watch=shares.append)
    assert counts.sum() == len(lines)
    assert shares == sorted(shares)
    assert 0.0 < shares[0] < shares[-1] == 1.0


@pytest.mark.one_in(11)
def test_the_command_line_shows_a_bar(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_is_watched", lambda: True)
    monkeypatch.setattr(progress, "_SECONDS_BEFORE_IT_SHOWS", 0.0)
    out = tmp_path / "fit.safetensors"
    arguments = ["fit", str(path), "--out", str(out), "--n-components", "2"]
    assert main(arguments) == 0
    assert f"read {path.name}:" in capsys.readouterr().err
    assert main([*arguments, "--quiet"]) == 0
    assert "read" not in capsys.readouterr().err
    # By default it is shown only on a terminal.
    monkeypatch.setattr(progress, "_is_watched", lambda: False)
    assert main(arguments) == 0
    assert "read" not in capsys.readouterr().err


def test_a_fit_from_a_path_says_how_much_has_been_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "_VALUES", 30_000)
    path = tmp_path / "rows.parquet"
    TABLE.to_parquet(path)
    said: list[str] = []
    monkeypatch.setattr(progress.ProgressBar, "_say", lambda self, text: said.append(text))
    fit = sb.fit(
        sb.Mixture(likelihood=sb.DiagonalGaussian()),
        path,
        sb.Memoized(shuffle=False, max_passes=2),
        n_components=2,
        progress=True,
    )
    before, passes = said[: said.index("")], said[said.index("") + 1 :]
    assert before
    assert all(text.startswith("reading ") for text in before)
    assert "reading 17%" in before
    assert "reading 100%" in before
    # After reading, passes advance the bar.
    assert len(passes) == len(fit.history)
    assert not any("reading" in text for text in passes)


def test_a_bar_never_goes_back(capsys: pytest.CaptureFixture[str]) -> None:
    bar: Any = progress.reading_bar(True, "rows.csv")
    for share in (0.2, 0.7, 0.1):
        bar.read(share)
    assert bar._bar.n == pytest.approx(70.0)
    bar.close()
    bar.read(0.9)  # a late word changes nothing
    assert progress.reading_bar(False, "rows.csv") is None
