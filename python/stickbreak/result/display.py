"""The display of a fit: one line, and in a notebook tables of its components and moves."""

import heapq
from html import escape
from typing import Any

from numpy.typing import NDArray

from stickbreak.io.names import shown
from stickbreak.result.fitted import Fitted
from stickbreak.result.history import MoveReport, moves_of
from stickbreak.result.tables import Tabular
from stickbreak.terminal import plain

_MOST_ROWS = 10
_MOST_COLUMNS = 8
_MOST_PASSES = 20
# Numbers from here on have an exponent.
_MOST_WHOLE = 1e7
# Maximum number of decimals beside a standard deviation.
_MOST_DECIMALS = 5


def line(fit: Fitted) -> str:
    """Return one line for a fit: model, size of the data, components, bound, and stop reason."""
    parts = (fit.model.likelihood, fit.model.process, fit.model.background)
    names = ", ".join(type(part).__name__ for part in parts if part is not None)
    passes = len(fit.history)
    proposed, accepted = (sum(getattr(record, name) for record in fit.history) for name in ("proposed", "accepted"))
    columns = "" if fit.column_names is None else f" ({shown(fit.column_names)})"
    moves = f", {accepted} of {proposed} moves accepted" if proposed else ""
    components = f"{fit.n_components} component{'' if fit.n_components == 1 else 's'}"
    behind = f", {fit.background_count:.1f} rows in the background" if fit.model.background is not None else ""
    return (
        f"<Fit of Mixture({names}): {fit._state.n_rows} rows x {fit._state.dimension}{columns}, "
        f"{components} ({fit.n_occupied} occupied){behind}, elbo {fit.elbo:.6f} nats ({fit.bound}), "
        f"{fit.stop_reason.value} after {passes} {'pass' if passes == 1 else 'passes'}{moves}>"
    )


def text(fit: Fitted) -> str:
    """Return the line of the fit, followed by one line per advice."""
    return "\n".join([line(fit), *(f"advice: {advice}" for advice in fit.advice())])


def html(fit: Tabular) -> str:
    """Return HTML for a fit: its `line`, its largest components by column, advice, and its moves.

    Parameters
    ----------
    fit : Fit
        The fit.

    Returns
    -------
    str
        A `div` without script or style, with all text escaped. Columns have the mean and the standard deviation under
        each component, or the entries of `Fit.summary`.
    """
    counts = fit.counts.tolist()
    largest = heapq.nlargest(_MOST_ROWS, range(len(counts)), key=counts.__getitem__)
    names = [str(d) for d in range(fit._state.dimension)] if fit.column_names is None else list(fit.column_names)
    columns = [fit._described(column) for column in range(min(len(names), _MOST_COLUMNS))]
    heads = ["component", "weight", "count", *names[:_MOST_COLUMNS], *(["…"] if len(names) > _MOST_COLUMNS else [])]
    rows = [[str(k), _number(counts[k]), *(_shown(column, k) for column in columns)] for k in largest]
    if len(names) > _MOST_COLUMNS:
        rows = [[*row, ""] for row in rows]
    lines = [
        f"<p>{_escaped(line(fit))}</p>",
        "<table>",
        _row("th", heads),
        *(_component(row, float(fit.weights[k])) for k, row in zip(largest, rows, strict=True)),
        "</table>",
    ]
    if rest := len(counts) - len(largest):
        lines.append(f"<p>and {rest:,} smaller {'component' if rest == 1 else 'components'}</p>")
    lines += [f"<p>advice: {_escaped(str(advice))}</p>" for advice in fit.advice()]
    lines += _moves(fit)
    return "\n".join(["<div>", *lines, "</div>"])


def _escaped(text: str) -> str:
    return escape(plain(text))


def _moves(fit: Fitted) -> list[str]:
    """Return a table of the results of moves, and the number of components by pass; empty if there were no moves."""
    reports = moves_of(fit.history)
    if not reports:
        return []
    rows = [
        [report.kind, str(report.proposed), str(report.accepted), _number(report.gain), _reasons(report)]
        for report in reports
    ]
    numbers = [str(record.n_components) for record in fit.history]
    if len(numbers) > _MOST_PASSES:
        numbers = [*numbers[: _MOST_PASSES - 1], "…", numbers[-1]]
    return [
        "<table>",
        _row("th", ["move", "proposed", "accepted", "gain in nats", "not accepted because"]),
        *(_row("td", row) for row in rows),
        "</table>",
        f"<p>components after each pass: {', '.join(numbers)}</p>",
    ]


def _reasons(report: MoveReport) -> str:
    return ", ".join(f"{reason} ({number})" for reason, number in report.refused.items())


def _row(cell: str, texts: list[str]) -> str:
    return f"<tr>{''.join(f'<{cell}>{_escaped(text)}</{cell}>' for text in texts)}</tr>"


def mean_and_deviation(mean: float, deviation: float) -> str:
    """Return a text for a mean and a standard deviation: both with an exponent, or both without."""
    text = f"{mean:.4g} ± {deviation:.2g}"
    if "e" not in text:
        return text
    # The decimals of two significant digits of the deviation.
    decimals = max(0, 1 - int(f"{deviation:.1e}".partition("e")[2])) if deviation > 0.0 else 0
    if max(abs(mean), deviation) >= _MOST_WHOLE or decimals > _MOST_DECIMALS or (deviation == 0.0 and abs(mean) < 1.0):
        return f"{mean:.3e} ± {deviation:.1e}"
    # Adding zero removes the sign of a zero.
    return f"{round(mean, decimals) + 0.0:.{decimals}f} ± {deviation:.{decimals}f}"


def _number(value: float) -> str:
    return f"{value:.0f}" if 1e4 <= abs(value) < _MOST_WHOLE else f"{value:.4g}"


def _component(row: list[str], weight: float) -> str:
    """Return the line of a component, with a bar for its weight."""
    number, *others = (f"<td>{_escaped(text)}</td>" for text in row)
    bar = f'<td><meter value="{weight:.4f}"></meter> {_number(weight)}</td>'
    return f"<tr>{number}{bar}{''.join(others)}</tr>"


def _shown(column: dict[str, NDArray[Any]], k: int) -> str:
    """Return a short text for a column under a component: mean and standard deviation, or other parameters."""
    found = {title: values[k : k + 1].tolist()[0] for title, values in column.items()}
    if "mean" in found:
        return mean_and_deviation(found["mean"], found["sd"])
    for title in ("code", "level"):
        if title in found:
            return f"{found[title]} ({_number(found['probability'])})"
    return ", ".join(f"{title} {_number(value)}" for title, value in found.items())
