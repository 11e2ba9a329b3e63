"""Every page of the gallery runs; pages whose data are not there are skipped by name."""

import os
import runpy
import shutil
import sys
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "_ext"))

import gallery_data  # noqa: E402

PAGES = sorted((ROOT / "docs" / "gallery").glob("plot_*.py"))


def test_the_gallery_has_twelve_pages_and_each_says_what_it_shows() -> None:
    assert len(PAGES) >= 12
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert text.startswith('"""\n'), page.name
        assert "\n# %%\n" in text, page.name


def test_a_page_without_its_data_is_not_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STICKBREAK_DATA", str(tmp_path))
    needing = [page for page in PAGES if gallery_data.missing(page)]
    assert needing
    assert not any(page.name in gallery_data.runnable(PAGES[0].parent).replace("\\", "") for page in needing)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page(page: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    gallery_data.find()
    if missing := gallery_data.missing(page):
        pytest.skip(f"no {', '.join(missing)} in STICKBREAK_DATA")
    if "STICKBREAK_DATA" in os.environ:
        monkeypatch.setenv("STICKBREAK_DATA", str(Path(os.environ["STICKBREAK_DATA"]).resolve()))
    # The site runs pages in their folder, beside their data.
    shutil.copytree(page.parent / "data", tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    matplotlib.use("Agg")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a page shows no warning, not even a ConvergenceWarning
        warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")
        runpy.run_path(str(page), run_name="__main__")
    try:
        assert pyplot.get_fignums(), "a page has a picture"
    finally:
        pyplot.close("all")
