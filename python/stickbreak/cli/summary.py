"""What there is to tell of a fit, for people and for programs."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

import click

from stickbreak.cli.wording import in_options
from stickbreak.errors import Advice
from stickbreak.io.names import shown
from stickbreak.model.columns import Columns
from stickbreak.model.specification import Specification
from stickbreak.result.fit import Fit
from stickbreak.result.history import MoveReport, RunnerUp, moves_of
from stickbreak.result.topic_fit import TopicFit

# Words of each topic, unless the user says how many.
WORDS_SHOWN = 8


def facts(fit: Fit, options: Mapping[str, click.Option]) -> list[tuple[str, str]]:
    """Return what people want to know of a fit first, and the advice in `options` of `fit` by their titles."""
    state, model = fit._state, fit.model
    passes = len(fit.history)
    seconds = f" in {fit.history[-1].seconds:.1f} s" if fit.history else ""
    reason = fit.stop_reason.value.replace("_", " ")
    return [
        ("data", f"{state.n_rows:,} rows, {_plural(state.dimension, 'column')}"),
        *([("columns", shown(fit.column_names))] if fit.column_names is not None else []),
        ("model", f"{type(model.likelihood).__name__}, {model.process}"),
        *([("missing", "values may be: marginalize")] if state.missing == "marginalize" else []),
        ("components", f"{fit.n_components}, of which {fit.n_occupied} in use"),
        *([("background", f"{fit.background_count:.1f} rows")] if model.background is not None else []),
        ("ELBO", f"{fit.elbo:.8g} nats, {fit.elbo / state.n_rows:.6g} a row ({fit.bound})"),
        ("passes", f"{passes}{seconds} ({reason})"),
        *([("second best start", _compared(fit, second))] if (second := fit.runner_up) else []),
        *([("units", f"{units:,} nodes and rows in the last pass")] if (units := _nodes(fit)) else []),
        *([("moves", _accepted(reports))] if (reports := moves_of(fit.history)) else []),
        *(("advice", _advised(advice, options)) for advice in fit.advice()),
    ]


def _compared(fit: Fit, second: RunnerUp) -> str:
    return f"{fit.objective - second.objective:.3g} nats lower, adjusted Rand index {second.ari:.2f}"


def described(fit: Fit) -> dict[str, Any]:
    """Return the same and more as an object for JSON."""
    likelihood, process = map(_specified, (fit.model.likelihood, fit.model.process))
    return {
        "n_rows": fit._state.n_rows,
        "n_columns": fit._state.dimension,
        "column_names": fit.column_names,
        "levels": fit.levels,
        "missing": fit._state.missing,
        "likelihood": likelihood,
        "process": process,
        "background": None if (behind := fit.model.background) is None else behind._parameters(),
        "n_components": fit.n_components,
        "n_occupied": fit.n_occupied,
        "elbo": fit.elbo,
        "objective": fit.objective,
        "bound": fit.bound,
        "passes": len(fit.history),
        "n_units": fit.history[-1].n_units if fit.history else fit._state.n_rows,
        "moves": [asdict(report) for report in moves_of(fit.history)],
        "seconds": fit.history[-1].seconds if fit.history else 0.0,
        "stop_reason": fit.stop_reason.value,
        "runner_up": asdict(fit.runner_up) if fit.runner_up else None,
        "advice": [
            {"kind": advice.kind, "text": advice.text, "suggestions": advice.suggestions} for advice in fit.advice()
        ],
        "weights": fit.weights,
        "leftover_weight": fit.leftover_weight,
        "background_weight": fit.background_weight,
        "background_count": fit.background_count,
        "counts": fit.counts,
    }


def _specified(part: Specification) -> dict[str, Any]:
    """Return the name and the parameters of a part of a model; blocks of columns by the names of their columns."""
    name = type(part).__name__
    if isinstance(part, Columns):
        return {"name": name, "blocks": {str(key): _specified(each) for key, each in part._titled().items()}}
    return {"name": name, **part._parameters()}


def _advised(advice: Advice, options: Mapping[str, click.Option]) -> str:
    return str(Advice(advice.text, suggestions=tuple(in_options(each, options) for each in advice.suggestions)))


def described_topics(fit: TopicFit, words: int = WORDS_SHOWN) -> dict[str, Any]:
    """Return what there is to tell of a topic model, with its most probable words, as an object for JSON."""
    return {
        "n_documents": fit._state.n_rows,
        "n_words": fit._state.dimension,
        "n_tokens": float(fit.counts.sum()),
        "n_topics": fit.n_topics,
        "concentration": fit.concentration,
        "word_concentration": fit.model.word_concentration,
        "estimated": _estimated(fit),
        "objective": fit.objective,
        "elbo": fit.elbo,
        "bound": fit.bound,
        "passes": len(fit.history),
        "seconds": fit.history[-1].seconds if fit.history else 0.0,
        "stop_reason": fit.stop_reason.value,
        "top_words": fit.top_words(n=words),
    }


def lines_of_topics(fit: TopicFit, words: int = WORDS_SHOWN) -> list[str]:
    """Return a line for each topic with its most probable words, or their numbers."""
    return [f"topic {number}: {' '.join(map(str, top))}" for number, top in enumerate(fit.top_words(n=words))]


def _estimated(fit: TopicFit) -> list[str]:
    """Return which concentrations were estimated."""
    of_words = fit._state.to_parts()[0].get("estimated", [])
    # That of a single topic stays where it starts.
    of_topics = fit.model.process._parameters()["concentration"] is None and fit.n_topics > 1
    return [*(["concentration"] if of_topics else []), *(["word_concentration"] if of_words else [])]


def facts_of_topics(fit: TopicFit, score: float | None = None) -> list[tuple[str, str]]:
    """Return what people want to know of a topic model first; `score` is that of words held out, in nats."""
    found = described_topics(fit)
    tokens = found["n_tokens"]
    prior = [f"{type(fit.model.process).__name__} of {_plural(fit.n_topics, 'topic')}"]
    for name in ("concentration", "word_concentration"):
        estimate = " (estimated)" if name in found["estimated"] else ""
        prior.append(f"{name.replace('_', ' ')} {found[name]:.4g}{estimate}")
    return [
        ("corpus", f"{found['n_documents']:,} documents, {tokens:,.0f} words, of {found['n_words']:,} distinct ones"),
        ("model", ", ".join(prior)),
        ("ELBO", f"{fit.elbo:.8g} nats, {fit.elbo / max(tokens, 1.0):.6g} a word ({fit.bound})"),
        ("passes", f"{found['passes']} in {found['seconds']:.1f} s ({fit.stop_reason.value.replace('_', ' ')})"),
        *([("test", f"{score:.6g} nats a word held out")] if score is not None else []),
    ]


def _nodes(fit: Fit) -> int:
    """Return how many units the last pass had, where a tree made them fewer than rows; else 0."""
    last = fit.history[-1].n_units if fit.history else 0
    return last if last < fit._state.n_rows else 0


def _accepted(reports: Iterable[MoveReport]) -> str:
    tried = [f"{report.accepted} of {_plural(report.proposed, report.kind)}" for report in reports if report.proposed]
    return f"{', '.join(tried)} accepted" if tried else "none proposed"


def _plural(number: int, word: str) -> str:
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"
