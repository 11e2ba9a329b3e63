"""The display of a fit: one line in a terminal, a table in a notebook."""

import sys
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import stickbreak as sb
from cases import clustered_rows


class Page(HTMLParser):
    """The texts of a page by their tag, the cells of its table row by row, and every tag there is."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.open: list[str] = []
        self.rows: list[list[str]] = []
        self.weights: list[float] = []
        self.paragraphs: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag == "meter":
            self.weights.append(float(dict(attributes)["value"] or "nan"))
        else:
            assert not attributes
        self.tags.add(tag)
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if data.strip():
            (self.paragraphs if self.open[-1] == "p" else self.rows[-1]).append(data)


def fitted(n_components: int, dimension: int = 3, **options: object) -> sb.Fit:
    rows = clustered_rows(np.random.default_rng(0), 200, dimension, 3)
    model = sb.Mixture(**{"likelihood": sb.Gaussian(), "process": sb.DirichletProcess()} | options)
    return sb.fit(model, rows, sb.Full(max_passes=4, tol=0.0), n_components=n_components, progress=False)


def test_repr_says_what_came_out() -> None:
    fit = fitted(4)
    text = repr(fit)
    for part in [
        "Mixture(Gaussian, DirichletProcess)",
        "200 rows x 3",
        f"4 components ({fit.n_occupied} occupied)",
        f"elbo {fit.elbo:.6f} nats (nested)",
        "max_passes after 4 passes",
    ]:
        assert part in text
    assert "\n" not in text


def grown(**options: object) -> sb.Fit:
    """A fit that makes moves: three clusters from one component."""
    rows = np.random.default_rng(0).normal(np.repeat([[0.0, 0.0], [20.0, 0.0], [0.0, 20.0]], 100, axis=0))
    return sb.fit(sb.Mixture(likelihood=sb.Gaussian()), rows, progress=False, **options)


def test_repr_says_how_many_moves_were_accepted() -> None:
    fit = grown()
    proposed, accepted = (sum(getattr(record, name) for record in fit.history) for name in ("proposed", "accepted"))
    assert 0 < accepted < proposed
    assert f", {accepted} of {proposed} moves accepted>" in repr(fit)
    assert "moves" not in repr(fitted(2))


def test_table_of_moves() -> None:
    """By kind, summed over passes, with the reasons; below it the number of components by pass."""
    fit = grown()
    page = Page(fit._repr_html_())
    heads = ["move", "proposed", "accepted", "gain in nats", "not accepted because"]
    assert heads in page.rows
    rows = {row[0]: row[1:] for row in page.rows if row[0] in ("birth", "merge", "delete")}
    assert list(rows) == ["birth", "merge", "delete"]
    for kind, row in rows.items():
        reports = [report for record in fit.history for report in record.moves if report.kind == kind]
        assert row[:2] == [str(sum(report.proposed for report in reports)), str(sum(r.accepted for r in reports))]
        reasons = {reason for report in reports for reason in report.refused}
        # An empty cell has no text.
        assert all(reason in row[3] for reason in reasons)
    assert page.paragraphs[-1] == "components after each pass: " + ", ".join(
        str(record.n_components) for record in fit.history
    )
    assert heads not in Page(fitted(2)._repr_html_()).rows


def test_many_passes_are_shortened() -> None:
    fit = grown(algorithm=sb.Memoized(moves=(sb.Birth(),), max_passes=30, tol=0.0))
    last = Page(fit._repr_html_()).paragraphs[-1]
    assert last.count(",") == 20
    assert last.endswith("…, 3")


def test_table_of_components() -> None:
    fit = fitted(4)
    page = Page(fit._repr_html_())
    assert page.open == []
    assert page.tags == {"div", "p", "table", "tr", "th", "td", "meter"}
    assert page.paragraphs == [repr(fit)]  # escaped on the way, as its angle brackets must be
    heads, *rows = page.rows
    assert heads == ["component", "weight", "count", "0", "1", "2"]
    order = [int(row[0]) for row in rows]
    assert sorted(order) == [0, 1, 2, 3]
    assert (np.diff(fit.counts[order]) <= 0).all()
    assert page.weights == pytest.approx(fit.weights[order], abs=1e-4)
    for k, row in zip(order, rows, strict=True):
        assert len(row) == len(heads)
        assert [float(cell) for cell in row[1:3]] == pytest.approx([fit.weights[k], fit.counts[k]], rel=1e-3)
        means, deviations = zip(*(map(float, cell.split(" ± ")) for cell in row[3:]), strict=True)
        assert means == pytest.approx(fit.point_estimates["mean"][k], rel=1e-3)
        assert deviations == pytest.approx(np.diag(fit.point_estimates["covariance"][k]) ** 0.5, rel=0.06)


def test_only_the_largest_components_are_shown() -> None:
    fit = fitted(25)
    page = Page(fit._repr_html_())
    shown = [int(row[0]) for row in page.rows[1:]]
    assert len(shown) == 10
    hidden = np.setdiff1d(np.arange(25), shown)
    assert fit.counts[hidden].max() <= fit.counts[shown].min()
    assert page.paragraphs[1] == "and 15 smaller components"


def test_one_component_more_than_is_shown() -> None:
    assert Page(fitted(11)._repr_html_()).paragraphs[1] == "and 1 smaller component"
    assert len(Page(fitted(10)._repr_html_()).paragraphs) == 1


def test_many_columns_are_cut() -> None:
    page = Page(fitted(2, dimension=10)._repr_html_())
    assert page.rows[0] == ["component", "weight", "count", *map(str, range(8)), "…"]
    # An empty cell has no text.
    assert [len(row) for row in page.rows[1:3]] == [11, 11]
    assert Page(fitted(2, dimension=8)._repr_html_()).rows[0][-1] == "7"


def test_columns_have_their_names_and_what_the_likelihood_has() -> None:
    rng = np.random.default_rng(0)
    counts = pd.DataFrame(rng.poisson(4.0, size=(60, 2)), columns=["a < b", "c"])
    fit = sb.fit(sb.Mixture(likelihood=sb.Poisson()), counts, sb.Full(max_passes=2, tol=0), n_components=2)
    page = Page(fit._repr_html_())
    assert page.rows[0][3:] == ["a < b", "c"]
    k = int(page.rows[1][0])
    assert page.rows[1][4] == f"rate {fit.point_estimates['rate'][k, 1]:.4g}"
    centred = fitted(2, likelihood=sb.ZeroMeanGaussian(), process=sb.FiniteDirichlet(2))
    assert all(cell.startswith("sd ") for cell in Page(centred._repr_html_()).rows[1][3:])
    assert "FiniteDirichlet" in Page(centred._repr_html_()).paragraphs[0]
    codes = sb.fit(sb.Mixture(likelihood=sb.Categorical()), rng.integers(3, size=(60, 1)).astype(float), n_components=2)
    k = int(Page(codes._repr_html_()).rows[1][0])
    shares = codes.point_estimates["probabilities"][k, 0]
    assert Page(codes._repr_html_()).rows[1][3] == f"{shares.argmax()} ({shares.max():.4g})"


def test_a_notebook_shows_progress(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Without ipywidgets the bar is one of text; elsewhere than in a terminal or a notebook there is none."""
    from stickbreak.run import progress

    monkeypatch.setattr(progress, "_SECONDS_BEFORE_IT_SHOWS", 0.0)
    monkeypatch.setattr(progress, "find_spec", lambda name: None)
    rows = clustered_rows(np.random.default_rng(0), 200, 2, 3)
    call = {"n_components": 3, "callbacks": [lambda record: False]}
    sb.fit(sb.Mixture(likelihood=sb.Gaussian()), rows, sb.Full(max_passes=3, tol=0), **call)
    assert capsys.readouterr().err == ""
    shell = type("ZMQInteractiveShell", (), {})()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    sb.fit(sb.Mixture(likelihood=sb.Gaussian()), rows, sb.Full(max_passes=3, tol=0), **call)
    assert "of at most 3" in capsys.readouterr().err


def test_fit_without_a_bound() -> None:
    """An unknown bound is displayed as unknown."""
    rows = clustered_rows(np.random.default_rng(0), 60, 2, 3)
    fit = sb.fit(sb.Mixture(likelihood=sb.Gaussian()), rows, sb.Full(max_passes=0), init="random", n_components=3)
    assert "elbo nan" in repr(fit)
    assert "elbo nan" in Page(fit._repr_html_()).paragraphs[0]


def test_one_component_is_singular() -> None:
    assert "1 component (1 occupied)" in repr(fitted(1))


@pytest.mark.parametrize(
    ("mean", "deviation", "text"),
    [
        (170.234, 6.123, "170.2 ± 6.1"),
        (16_513.2, 4012.0, "16513 ± 4012"),
        (16_513.2, 0.051, "16513.200 ± 0.051"),
        (12.3, 151.0, "12 ± 151"),
        (-1e-9, 1.03, "0.0 ± 1.0"),
        (2007.0, 0.0, "2007 ± 0"),
        (16_513.0, 0.0, "16513 ± 0"),
        (0.0, 0.0, "0 ± 0"),
        (3e9, 20.0, "3.000e+09 ± 2.0e+01"),
        (1.2e-7, 3e-8, "1.200e-07 ± 3.0e-08"),
        (1e-9, 0.0, "1.000e-09 ± 0.0e+00"),
    ],
)
def test_means_and_deviations_have_one_format(mean: float, deviation: float, text: str) -> None:
    from stickbreak.result import display

    assert display.mean_and_deviation(mean, deviation) == text


def test_large_counts_have_no_exponent() -> None:
    rows = np.random.default_rng(0).normal(scale=4000.0, size=(20_000, 1)) + 16_500.0
    fit = sb.fit(sb.Mixture(likelihood=sb.Gaussian()), rows, sb.Full(max_passes=1, tol=0), n_components=1)
    cells = Page(fit._repr_html_()).rows[1]
    assert cells[2] == "20000"
    assert not any("e" in cell for cell in cells)
