"""The demo on small parts of its photographs."""

import json
import signal
import subprocess
import sys
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.image import imread

import stickbreak as sb
from stickbreak import cli
from stickbreak.demo import figure, mixture, patches

# `python -m stickbreak.demo`; what runs in the background may have come to ignore SIGINT, as do its children then.
HEEDING = """
import runpy, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
runpy.run_module("stickbreak.demo", run_name="__main__")
"""
SMALL = ["--height", "40", "--components", "6", "--passes", "4"]
# Fewer clusters, fewer pictures of them.
TINY = ["--height", "16", "--components", "2", "--sparsity", "1"]


@pytest.fixture(scope="module")
def photograph() -> patches.Photograph:
    return patches.load_photograph("china.jpg", 40)


@pytest.fixture(scope="module")
def fit(photograph: patches.Photograph) -> sb.Fit:
    """Return a fit with three more clusters than colours."""
    rows = patches.patches(photograph)
    model = sb.Mixture(likelihood=sb.ZeroMeanGaussian())
    with pytest.warns(sb.SupportWarning):
        return sb.fit(model, rows, sb.Memoized(max_passes=3), init=patches.contrast_strata(rows, 13), progress=False)


def test_writes_a_model_and_a_figure_and_tells_of_them(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "folder"
    assert cli.main(["demo", *SMALL, "--out", str(out), "--held-out"]) == 0
    fit = sb.load(out / "model.safetensors")
    assert fit.n_components == fit.history[-1].n_components
    assert len(fit.history) == 4
    assert imread(out / "stickbreak.png").std() > 0.1
    printed = capfd.readouterr().out
    n = 2 * (40 - 7) * (59 - 7)
    for words in (f"n = {n:,}, D = 64, float32", f"ELBO        {fit.elbo:.8g} nats", "4 passes", "patches a second"):
        assert words in printed
    assert str(out / "stickbreak.png") in printed
    assert printed.count("log predictive density") == 2
    assert f"pass   4  {fit.history[3].seconds:6.1f} s  {fit.n_components:4} components" in printed


def test_grows_from_one_component(photograph: patches.Photograph) -> None:
    fit = mixture.fit_patches(patches.patches(photograph), mixture.Settings(max_passes=4))
    numbers = [record.n_components for record in fit.history]
    assert numbers[-1] > 3
    assert sum(record.accepted for record in fit.history) > 0


def test_tells_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["demo", *TINY, "--passes", "1", "--out", str(tmp_path), "--json"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert found["elbo"] == sb.load(found["out"]).elbo
    assert Path(found["figure"]).is_file()
    assert "ELBO" in err


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT to a process")
@pytest.mark.slow
def test_an_interrupted_fit_is_shown_too(tmp_path: Path) -> None:
    arguments = ["--height", "60", "--passes", "100000", "--out", str(tmp_path)]
    demo = [sys.executable, "-c", HEEDING, *arguments]
    with subprocess.Popen(demo, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as run:
        assert run.stdout is not None
        for line in run.stdout:
            if line.startswith("pass   2"):
                run.send_signal(signal.SIGINT)
                break
        printed = run.stdout.read()
    assert run.returncode == 0, printed
    assert "(interrupted)" in printed
    fit = sb.load(tmp_path / "model.safetensors")
    assert fit.stop_reason is sb.StopReason.INTERRUPTED
    assert 2 <= len(fit.history) < 100_000
    assert (tmp_path / "stickbreak.png").is_file()


def test_nothing_to_show_of_an_interrupted_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("stickbreak.demo.program.run", interrupted)
    assert cli.main(["demo"]) == 130


def test_a_figure_without_a_pass(tmp_path: Path) -> None:
    assert cli.main(["demo", *TINY, "--passes", "0", "--out", str(tmp_path)]) == 0
    assert (tmp_path / "stickbreak.png").is_file()


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert cli.main(["demo"]) == 1
    message = 'stickbreak: error: the demo needs pillow: pip install "stickbreak[demo]"\n'
    assert capsys.readouterr().err == message


@pytest.mark.parametrize(
    ("arguments", "words"), [(["--components", "0"], "from 1 to 3432"), (["--sparsity", "0"], "at least 1")]
)
def test_a_bad_number_is_an_error_in_one_line(
    arguments: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["demo", "--height", "40", "--out", str(tmp_path), *arguments]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"stickbreak: error: {arguments[0]} ")
    assert words in error
    assert error.count("\n") == 1


def test_a_folder_that_cannot_be_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    for out in (tmp_path / "file", tmp_path / "file" / "below"):
        assert cli.main(["demo", *SMALL, "--out", str(out)]) == 2
        error = capsys.readouterr().err
        assert error.startswith("stickbreak: error: --out must be a folder that exists or can be made, and can be ")
        assert str(out) in error


@pytest.mark.parametrize("text", ["15", "tall"])
def test_a_photograph_has_room_for_patches(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["demo", "--height", text]) == 2
    assert "--height" in capsys.readouterr().err


def test_the_whole_photographs_make_more_than_half_a_million_patches() -> None:
    grids = [patches.grid(patches.load_photograph(name)) for name in patches.PHOTOGRAPHS]
    assert sum(height * width for height, width in grids) == 531_720


def test_patches_are_windows_less_their_mean(photograph: patches.Photograph) -> None:
    rows = patches.patches(photograph)
    height, width = patches.grid(photograph)
    assert rows.shape == (height * width, 64)
    assert rows.dtype == np.float32
    top, left = 7, 11
    window = photograph[top : top + 8, left : left + 8].astype(float) / 255
    grey = 0.2125 * window[..., 0] + 0.7154 * window[..., 1] + 0.0721 * window[..., 2]
    np.testing.assert_allclose(rows[top * width + left], (grey - grey.mean()).ravel(), atol=1e-6)


def test_the_middle_of_a_photograph_keeps_its_form() -> None:
    whole = patches.load_photograph("flower.jpg")
    middle = patches.load_photograph("flower.jpg", 101)
    assert middle.shape == (101, 640 * 101 // 427, 3)
    np.testing.assert_array_equal(middle, whole[163:264, 244:395])
    np.testing.assert_array_equal(patches.load_photograph("flower.jpg", 1000), whole)


def test_strata_are_equal_parts_in_order_of_contrast(photograph: patches.Photograph) -> None:
    rows = patches.patches(photograph)
    labels = patches.contrast_strata(rows, 10)
    counts = np.bincount(labels, minlength=10)
    assert counts.max() - counts.min() <= 1
    energies = [(rows[labels == stratum] ** 2).sum(axis=1) for stratum in range(10)]
    assert all(low.max() <= high.min() for low, high in pairwise(energies))


def test_largest_clusters_have_colours_of_their_own(fit: sb.Fit) -> None:
    clusters = figure.clusters_of(fit)
    n_shown = len(figure.COLOURS)
    np.testing.assert_array_equal(fit.weights[clusters.largest], np.sort(fit.weights)[::-1][:n_shown])
    colours = [clusters.colours[k] for k in clusters.largest]
    assert sorted(colours) == sorted(figure.COLOURS)
    small = set(range(fit.n_components)) - set(clusters.largest.tolist())
    assert {clusters.colours[k] for k in small} == set(figure.GREYS)
    contrast = np.trace(clusters.covariances, axis1=1, axis2=2)[clusters.largest]
    assert [colours[place] for place in np.argsort(contrast)] == figure.COLOURS


# What is left of linear red, green and blue in the eyes of people who lack one kind of cone (Machado, Oliveira and
# Fernandes 2009, severity 1.0).
VISION = {
    "full": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}


def lab(colour: str, vision: np.ndarray) -> np.ndarray:
    """CIE 1976 coordinates, for the white point of the screen."""
    screen = np.array(to_rgb(colour))
    linear = np.where(screen <= 0.04045, screen / 12.92, ((screen + 0.055) / 1.055) ** 2.4)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    x, y, z = np.cbrt(to_xyz @ np.clip(vision @ linear, 0, 1) / to_xyz.sum(axis=1))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("vision", VISION)
def test_colours_stay_apart_in_every_eye(vision: str) -> None:
    places = [lab(colour, np.array(VISION[vision])) for colour in (*figure.COLOURS, *figure.GREYS)]
    assert min(np.linalg.norm(a - b) for a, b in combinations(places, 2)) > 20


def test_eigenvectors_span_the_most_variance() -> None:
    rng = np.random.default_rng(0)
    basis, _ = np.linalg.qr(rng.standard_normal((64, 64)))
    covariance = basis * np.arange(1, 65) @ basis.T
    leading = figure.leading_eigenvectors(covariance, 3)
    for vector, expected in zip(leading, basis.T[::-1], strict=False):
        assert abs(vector.ravel() @ expected) == pytest.approx(1.0)
        assert vector.max() == np.abs(vector).max()


def test_the_map_lies_on_the_photograph() -> None:
    """The patches that hold a bright pixel have middles from 3 pixels above and left of it to 4 below and right."""
    photograph = np.zeros((24, 30, 3), dtype=np.uint8)
    photograph[10, 13] = 255
    labels = (patches.patches(photograph).max(axis=1) > 0).astype(np.int64)
    middles, painted = figure.side_by_side(photograph, labels, ["#000000", "#FF0000"])
    assert middles.shape == painted.shape == (17, 23, 3)
    ((row, column),) = np.argwhere(middles[..., 0] == 255)
    red = np.argwhere((painted == (1.0, 0.0, 0.0)).all(axis=-1))
    assert red.min(axis=0).tolist() == [row - 3, column - 3]
    assert red.max(axis=0).tolist() == [row + 4, column + 4]
    assert len(red) == 64
