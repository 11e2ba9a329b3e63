"""Files that are written: through no link, with the permissions of the one before, and beside other writers."""

import multiprocessing
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stickbreak as sb
from stickbreak.cli.output import write_table
from stickbreak.io import files, locks, replacing

X = np.random.default_rng(0).normal([[-5.0, 0.0], [5.0, 2.0]], size=(30, 2, 2)).reshape(-1, 2)
MODEL = sb.Mixture(likelihood=sb.Gaussian(prior="rule"))
FULL = sb.Full(max_passes=3, tol=0.0)
FIT = sb.fit(MODEL, X, FULL, n_components=2)
TRACE = sb.sample(MODEL, X, draws=2, warmup=1, chains=1, progress=False)
HIERARCHY = sb.hierarchy(MODEL, X)
PASSES = count(3)


def checkpoint(path: Path, **options: Any) -> None:
    # A longer run goes on from the file, and writes it again.
    algorithm = sb.Full(max_passes=next(PASSES), tol=0.0)
    where = sb.Checkpoint(path, every_seconds=0)
    sb.fit(MODEL, X, algorithm, n_components=2, progress=False, checkpoint=where, **options)


def table(path: Path) -> None:
    write_table(str(path), ("a", "b"), X, "rows")


WRITERS: dict[str, Callable[[Path], None]] = {
    "model.safetensors": FIT.save,
    "trace.safetensors": TRACE.save,
    "tree.safetensors": HIERARCHY.save,
    "run.checkpoint": checkpoint,
    "rows.csv": table,
    "rows.json": table,
    "rows.npy": table,
    "rows.parquet": table,
}
needs_permissions = pytest.mark.skipif(sys.platform == "win32", reason="needs permissions and links")


@needs_permissions
@pytest.mark.parametrize("name", WRITERS)
def test_a_private_file_stays_private(name: str, tmp_path: Path) -> None:
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    path = tmp_path / name
    WRITERS[name](path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~_umask()
    for mode in (0o600, 0o640, 0o664, 0o400):
        path.chmod(mode)
        WRITERS[name](path)
        assert stat.S_IMODE(path.stat().st_mode) == mode
    assert [file.name for file in tmp_path.iterdir()] == [name]


def _umask() -> int:
    old = os.umask(0)
    os.umask(old)
    return old


@needs_permissions
def test_a_file_is_never_more_open_than_the_one_that_it_replaces(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    FIT.save(path)
    path.chmod(0o600)
    with replacing.replacing(path) as file:
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == 0o600


@needs_permissions
def test_what_a_group_may_is_no_right_of_another_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the group of the file before cannot be kept, others in the new group are like all other users."""
    path = tmp_path / "model.safetensors"
    status = os.fstat

    def of_another_group(file: int) -> Any:
        found = status(file)
        return os.stat_result((*found[:5], found.st_gid + 1, *found[6:]))

    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "fchown", refuse)
    monkeypatch.setattr(locks, "is_at", lambda file, path: True)
    for mode, kept in ((0o640, 0o600), (0o644, 0o644), (0o660, 0o600), (0o664, 0o644)):
        FIT.save(path)
        path.chmod(mode)
        with monkeypatch.context() as patch:
            patch.setattr(os, "fstat", of_another_group)
            with replacing.replacing(path) as file:
                file.write(b"new")
        assert stat.S_IMODE(path.stat().st_mode) == kept


@pytest.fixture
def links(tmp_path: Path) -> Iterator[Path]:
    """A file behind links with the names of a checkpoint's neighbours, and a link to a file that does not exist."""
    precious = tmp_path / "precious"
    precious.write_bytes(b"precious")
    (tmp_path / ".run.checkpoint.lock").symlink_to(tmp_path / "made")
    yield precious
    assert precious.read_bytes() == b"precious"
    assert not (tmp_path / "made").exists()


@needs_permissions
def test_links_beside_a_checkpoint_are_not_followed(links: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.checkpoint"

    def plant(_: sb.Record) -> None:
        left = tmp_path / ".run.checkpoint.part"
        if not left.is_symlink():
            left.symlink_to(links)

    checkpoint(path, callbacks=[plant])
    assert sb.io.files.is_own(path)


@needs_permissions
@pytest.mark.parametrize("name", WRITERS)
def test_a_link_of_the_name_of_the_new_file_is_not_followed(
    name: str, links: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if the random part of the name is known."""
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    path = tmp_path / name
    WRITERS[name](path)
    monkeypatch.setattr(os, "urandom", bytes)
    replacing.beside(path, f".{replacing._machine()}.{bytes(16).hex()}.part").symlink_to(links)
    with pytest.raises(sb.StickbreakError, match="cannot be written"):
        WRITERS[name](path)


def leave_a_part(target: Path) -> None:
    with replacing.replacing(target) as file:
        file.write(b"half")
        file.flush()
        os._exit(9)


@pytest.mark.skipif(sys.platform == "win32", reason="left files stay there")
def test_parts_of_killed_writers_are_removed(tmp_path: Path) -> None:
    target = tmp_path / "fit.safetensors"
    writer = multiprocessing.get_context("spawn").Process(target=leave_a_part, args=(target,))
    writer.start()
    writer.join()
    (left,) = tmp_path.iterdir()
    (tmp_path / left.name.replace("fit.safetensors", "other.safetensors")).write_bytes(b"of another file")
    foreign = tmp_path / f".fit.safetensors.00000000.{'ab' * 16}.part"
    foreign.write_bytes(b"of another machine")
    (tmp_path / f"{left.name[:-6]}.part").symlink_to(foreign)
    FIT.save(target)
    assert not left.exists()
    assert foreign.read_bytes() == b"of another machine"
    assert len(list(tmp_path.iterdir())) == 4


def test_a_file_that_is_being_written_is_no_left_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its writer may be in another container of the same host name, where processes have other numbers."""

    def unknown(*_: object) -> None:
        raise ProcessLookupError

    monkeypatch.setattr(os, "kill", unknown)
    target = tmp_path / "fit.safetensors"
    with replacing.replacing(target) as file:
        (alive,) = tmp_path.iterdir()
        file.write(b"at work")
        FIT.save(target)
        assert alive.exists()
    assert target.read_bytes() == b"at work"
    assert list(tmp_path.iterdir()) == [target]


@needs_permissions
def test_a_new_file_that_another_writer_removes_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between its creation and its lock it looks like one that was left."""
    hold, removed = locks.hold, []

    def remove(file: int) -> bool | None:
        if not removed:
            removed.extend(tmp_path.iterdir())
            removed[0].unlink()
        return hold(file)

    monkeypatch.setattr(locks, "hold", remove)
    FIT.save(tmp_path / "fit.safetensors")
    assert len(removed) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["fit.safetensors"]


def test_without_locks_no_file_is_taken_for_a_left_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "hold", lambda file: None)
    target = tmp_path / "fit.safetensors"
    with replacing.replacing(target):
        FIT.save(target)
        assert len(list(tmp_path.iterdir())) == 2


PROGRAM_OF_A_READER = """
import pathlib, sys
import stickbreak as sb
import stickbreak.io.corpora
from stickbreak.cli.output import check_model_place
from stickbreak.io.files import is_own

pipe, folder = sys.argv[1:]
model = sb.Mixture(sb.Gaussian())
checkpoint = sb.Checkpoint(pipe)
calls = {
    "load": lambda: sb.load(pipe),
    "docword": lambda: sb.read_docword(pipe),
    "checkpoint": lambda: sb.fit(model, [[1.0], [2.0]], n_components=1, checkpoint=checkpoint),
    "out": lambda: check_model_place(pipe),
    "corpus": lambda: stickbreak.io.corpora.read_corpus(folder + "/rows.npz"),
    "data": lambda: stickbreak.io.datafiles.read(folder + "/rows.npz"),
    "folder": lambda: sb.fit(model, folder),
    "file": lambda: sb.fit(model, folder + "/rows.parquet"),
    "here": lambda: sb.fit(model, folder, cluster="here"),
}
assert not is_own(pipe)
for name, call in calls.items():
    try:
        call()
    except (sb.ModelFileError, sb.CheckpointError, sb.SourceError, sb.InvalidArgument) as error:
        assert "file" in str(error), (name, error)
    else:
        raise AssertionError(name)
"""


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_no_reader_waits_for_a_named_pipe(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    pipe, folder = tmp_path / "pipe", tmp_path / "folder"
    folder.mkdir()
    for path in (pipe, folder / "rows.parquet", folder / "rows.npz"):
        os.mkfifo(path)
    command = [sys.executable, "-c", PROGRAM_OF_A_READER, str(pipe), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


def test_a_lock_is_not_taken_through_a_link(tmp_path: Path) -> None:
    (tmp_path / ".run.lock").symlink_to(tmp_path / "made")
    lock = files.lock(tmp_path / "run", files.CHECKPOINT)
    assert not lock.is_held
    lock.release()
    assert not (tmp_path / "made").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="left files stay there")
def test_a_run_that_has_ended_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    path = tmp_path / "run.checkpoint"
    where = sb.Checkpoint(path, every_seconds=0)
    sb.fit(MODEL, X, FULL, n_components=2, progress=False, checkpoint=where)
    left = replacing.beside(path, f".{replacing._machine()}.{'ab' * 16}.part")
    left.write_bytes(b"half")
    sb.fit(MODEL, X, FULL, n_components=2, progress=False, checkpoint=where)
    assert os.listdir(tmp_path) == [path.name]
