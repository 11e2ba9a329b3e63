"""How a fit shows itself: one line, and in a notebook tables of its components and moves."""

import heapq
from html import escape

import numpy as np
from numpy.typing import NDArray

from stickbreak.io.names import shown
from stickbreak.result.fitted import Fitted
from stickbreak.result.history import MoveReport, moves_of

_MOST_ROWS = 10
_MOST_NUMBERS = 4
_MOST_PASSES = 20


def line(fit: Fitted) -> str:
    """Return one line for a fit: model, size of the data, components, bound, and why it ended."""
    likelihood, process = (type(part).__name__ for part in (fit.model.likelihood, fit.model.process))
    passes = len(fit.history)
    proposed, accepted = (sum(getattr(record, name) for record in fit.history) for name in ("proposed", "accepted"))
    columns = "" if fit.column_names is None else f" ({shown(fit.column_names)})"
    moves = f", {accepted} of {proposed} moves accepted" if proposed else ""
    return (
        f"<Fit of Mixture({likelihood}, {process}): {fit._state.n_rows} rows x {fit._state.dimension}{columns}, "
        f"{fit.n_components} components ({fit.n_occupied} occupied), elbo {fit.elbo:.6f} nats ({fit.bound}), "
        f"{fit.stop_reason.value} after {passes} {'pass' if passes == 1 else 'passes'}{moves}>"
    )


def text(fit: Fitted) -> str:
    """Return the line, and one more for each advice."""
    return "\n".join([line(fit), *(f"advice: {advice}" for advice in fit.advice())])


def html(fit: Fitted) -> str:
    """Return HTML for a fit: its `line`, its largest components with their parameters, advice, and its moves.

    Parameters
    ----------
    fit : Fit
        The fit.

    Returns
    -------
    str
        A `div` without script or style, all text escaped.
    """
    counts = fit.counts.tolist()
    largest = heapq.nlargest(_MOST_ROWS, range(len(counts)), key=counts.__getitem__)
    parameters = fit.components
    # In the order of the likelihood's arguments, which is no order of the core's.
    parameters = {
        name: parameters[name] for name in fit.model.likelihood._parameters() if name in parameters
    } | parameters
    heads = ["component", "weight", "count", *parameters]
    rows = [
        [str(k), _number(fit.weights[k]), _number(counts[k]), *(_shown(values[k]) for values in parameters.values())]
        for k in largest
    ]
    lines = [
        f"<p>{escape(line(fit))}</p>",
        "<table>",
        _row("th", heads),
        *(_row("td", row) for row in rows),
        "</table>",
    ]
    if rest := len(counts) - len(largest):
        lines.append(f"<p>and {rest:,} smaller {'component' if rest == 1 else 'components'}</p>")
    lines += [f"<p>advice: {escape(str(advice))}</p>" for advice in fit.advice()]
    lines += _moves(fit)
    return "\n".join(["<div>", *lines, "</div>"])


def _moves(fit: Fitted) -> list[str]:
    """Return a table of what became of the moves, and the number of components by pass, if there were any."""
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
    return f"<tr>{''.join(f'<{cell}>{escape(text)}</{cell}>' for text in texts)}</tr>"


def _number(value: float) -> str:
    return f"{value:.4g}"


def _is_symmetric(parameter: NDArray[np.float64]) -> bool:
    # Two sums of the same products may differ in their last bits.
    square = parameter.shape[0] == parameter.shape[1]
    return square and bool((abs(parameter - parameter.T) <= 1e-9 * abs(parameter).max()).all())


def _shown(parameter: NDArray[np.float64]) -> str:
    """Return a few words for a parameter of one component: its first numbers, of a covariance those on the diagonal."""
    if parameter.ndim == 0:
        return _number(parameter.item())
    if parameter.ndim == 2 and not _is_symmetric(parameter):
        return f"{parameter.shape[0]} x {parameter.shape[1]} numbers"
    numbers = parameter if parameter.ndim == 1 else parameter.diagonal()
    shown = [_number(number) for number in numbers[:_MOST_NUMBERS].tolist()]
    if len(numbers) > _MOST_NUMBERS:
        shown.append("…")
    return f"{'' if parameter.ndim == 1 else 'diagonal '}[{', '.join(shown)}]"
