"""Every likelihood under every process: which objectives run, and why the others do not.

Each cell of the table is a set of fits: at sparsity 1, 2 and dense, of rows in memory and of the same rows in blocks,
with a fixed number of components and with moves that change it. All of them go through the same checks: the slow tests
run them all, the others enough that every two choices meet. What is refused is shown with the reason that `stickbreak`
itself gives. The cells follow the registry of likelihoods and processes: a new class, truncation or base measure has
its own unasked.

`--write` puts the table into docs/conformance.md, which a test compares.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import itertools
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import stickbreak as sb
from stickbreak.model.likelihoods import Likelihood
from stickbreak.model.processes import Process
from stickbreak.model.specification import Specification
from stickbreak.run.moves import Move
from stickbreak.testing import visible_bits
from stickbreak.testing.generators import VARIANTS, random_rows, random_specification, setting_of

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "conformance.md"
OBJECTIVES = ("variational", "map", "ml")
SPARSITIES = (1, 2, None)
N_ROWS, N_COLUMNS, N_COMPONENTS, N_BATCHES, N_PASSES = 600, 3, 3, 3, 6
# Start of fits with moves: births start from one component, splits from more than there should be.
MOVES: dict[str, tuple[int, tuple[Move, ...]]] = {
    "births": (1, (sb.Birth(), sb.Merge(), sb.Delete())),
    "births by adoption": (1, (sb.Birth(adoption="pass"), sb.Merge(), sb.Delete())),
    "splits from one": (1, (sb.Split(), sb.Merge(), sb.Delete())),
    "all from many": (8, (sb.Birth(), sb.Split(), sb.Merge(), sb.Delete())),
}
# Of at most one: in rows in memory, components would be sought with less than a larger weight.
WEIGHT = 0.5
# At this concentration weights have a mode under every process: see `FiniteDirichlet`.
CONCENTRATION = 1.5 * N_COMPONENTS
# Priors are redrawn until they have a mode, if the objective needs one.
MOST_DRAWS = 1000

Rows = NDArray[np.float64]
Options = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Choice:
    """A class of the registry with those of its options that choose another mathematics."""

    kind: type[Specification]
    options: Options

    @property
    def name(self) -> str:
        """The class and its chosen options, in words."""
        return ", ".join([self.kind.__name__, *(_shown(name, value) for name, value in self.options.items())])


def _shown(name: str, value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, bool):
        return name if value else f"no {name}"
    return f"{name} a matrix" if callable(value) else f"{type(value).__name__} prior"


@functools.cache
def likelihoods() -> tuple[Choice, ...]:
    """All likelihoods, with what `VARIANTS` knows of them."""
    choices = []
    for kind in Likelihood.__subclasses__():
        for options in VARIANTS.get(kind.__name__, ({},)):
            # Where a word chooses, the parameters that go with it need no mention.
            words = {name: value for name, value in options.items() if not callable(value)}
            choices.append(Choice(kind, words or options))
    return tuple(choices)


@functools.cache
def processes() -> tuple[Choice, ...]:
    """All processes of `fit`: every truncation, with a number for the concentration and with a prior."""
    choices = []
    for kind in (kind for kind in Process.__subclasses__() if "weights" in kind._entry["faces"]):
        rules = kind._entry["parameters"]
        words = rules["truncation"]["words"] if "truncation" in rules else [None]
        priors = [sb.Gamma] if rules["concentration"]["kind"] == "number or gamma" else []
        for prior in (None, *priors):
            for word in words:
                options: dict[str, Any] = {} if word is None else {"truncation": word}
                if prior is not None:
                    options["concentration"] = prior(CONCENTRATION, 1.0)
                choices.append(Choice(kind, options))
    return tuple(choices)


@dataclass(frozen=True)
class Refusal:
    """A cell that does not run, and the reason given by `stickbreak`."""

    reason: str


def make_process(choice: Choice) -> Process:
    """Return a process of this choice, for `N_COMPONENTS`."""
    given = {"n_components": N_COMPONENTS, "concentration": CONCENTRATION, "discount": 0.25} | dict(choice.options)
    names = {field.name for field in dataclasses.fields(choice.kind)}
    made: Any = choice.kind(**{name: value for name, value in given.items() if name in names})
    return made  # type: ignore[no-any-return]


def make_rows(choice: Choice) -> Rows:
    """Return rows in the domain of a likelihood."""
    domain: str = choice.kind._domain  # type: ignore[attr-defined]
    return random_rows(np.random.default_rng(5), N_ROWS, N_COLUMNS, domain=domain)


def make_likelihood(choice: Choice, rows: Rows, seed: int) -> Likelihood:
    """Return a likelihood of this choice for the rows, with all parameters given."""
    variants = VARIANTS.get(choice.kind.__name__, ({},))
    rng, setting = np.random.default_rng(seed), setting_of(rows)
    for _ in range(100):
        made: Any = random_specification(rng, choice.kind, setting)
        if len(variants) == 1 or _is_variant(made, choice):
            return made  # type: ignore[no-any-return]
    raise LookupError(f"{choice.name} is never drawn")


def _is_variant(made: Specification, choice: Choice) -> bool:
    """Return whether a likelihood is of a choice: equal words, and matrices exactly where the choice has them."""
    for options in VARIANTS[choice.kind.__name__]:
        for name, value in options.items():
            given = getattr(made, name)
            expected = choice.options.get(name)
            if callable(value) and not any(not callable(other) for other in options.values()):
                if (np.ndim(given) == 2) != callable(expected):
                    return False
            elif not callable(value) and (given == value) != (expected == value):
                return False
    return True


def algorithm(
    objective: str, sparsity: int | None, moves: tuple[Move, ...] = (), max_passes: int = N_PASSES
) -> sb.Memoized:
    """Return an algorithm with consecutive batches, which are the same for rows in memory and in blocks."""
    objectives: Any = objective
    return sb.Memoized(
        batches=N_BATCHES,
        shuffle=False,
        objective=objectives,
        sparsity=sparsity,
        margin=None,
        moves=moves,
        max_passes=max_passes,
        tol=0.0,
    )


def weights(rows: Rows) -> Rows:
    """Return the weights of the rows."""
    return np.full(len(rows), WEIGHT)


def blocks_of(rows: Rows) -> Callable[[], Iterator[Rows]]:
    """Return the rows in blocks, none of which has the size of a batch."""
    cuts = [7, 31, 32, N_ROWS]
    return lambda: (rows[begin:end] for begin, end in zip([0, *cuts], cuts, strict=False))


def fit_cell(
    likelihood: Choice,
    process: Choice,
    objective: str,
    sparsity: int | None,
    *,
    moves: str | None = None,
    streamed: bool = False,
    max_passes: int = N_PASSES,
) -> tuple[sb.Fit, Rows]:
    """Return one fit of a cell and its rows, each of weight `WEIGHT`; `moves` is a name of `MOVES`.

    Raises
    ------
    NotSupported
        The cell is refused.
    """
    rows = make_rows(likelihood)
    data: Any = blocks_of(rows) if streamed else rows
    start, kinds = (N_COMPONENTS, ()) if moves is None else MOVES[moves]
    prior, chosen = make_process(process), algorithm(objective, sparsity, kinds, max_passes)
    # A process with a fixed number of components should not be refused because of it.
    start = getattr(prior, "n_components", start)
    for seed in range(MOST_DRAWS):
        model = sb.Mixture(likelihood=make_likelihood(likelihood, rows, seed), process=prior)
        try:
            fit = sb.fit(model, data, chosen, n_components=start, seed=1, sample_weight=weights(rows), progress=False)
        except sb.InvalidArgument as error:
            if objective != "map" or error.argument in ("data", None):
                raise
            continue  # this prior has no mode
        return fit, rows
    raise LookupError(f"{likelihood.name}: no prior has a mode")


def check_cell(
    likelihood: Choice, process: Choice, objective: str, sparsity: int | None, moves: str | None = None
) -> None:
    """Run all checks of a cell.

    Raises
    ------
    AssertionError
        A check fails.
    NotSupported
        The cell is refused.
    """
    fit, rows = fit_cell(likelihood, process, objective, sparsity, moves=moves)
    check_bound(fit, rows)
    check_moves(fit, rows)
    check_answers(fit, rows, sparsity)
    bits = visible_bits(fit, rows)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        fit.save(path)
        require(visible_bits(sb.load(path), rows) == bits, "a saved fit is the same fit")
    streamed, _ = fit_cell(likelihood, process, objective, sparsity, moves=moves, streamed=True)
    require(visible_bits(streamed, rows) == bits, "rows in blocks give the same bits")


def bounds_of(fit: sb.Fit, rows: Rows) -> tuple[Rows, float]:
    """Return the bound after each pass, and its rounding error."""
    values = np.array([record.elbo for record in fit.history])
    return values, 1e-9 * (np.abs(values).max() + WEIGHT * (np.abs(rows).sum() + len(rows)))


def check_bound(fit: sb.Fit, rows: Rows) -> None:
    """Check that the objective never falls, also by one more local step."""
    values, slack = bounds_of(fit, rows)
    require(bool(np.isfinite(values).all()), "the objective is finite")
    require(bool((np.diff(values) >= -slack).all()), "the objective never falls")
    require(fit.elbo == values[-1], "the fit has the last value")
    require(fit.evaluate(rows, sample_weight=weights(rows)) >= fit.elbo - slack, "a local step does not lose")


def check_moves(fit: sb.Fit, rows: Rows) -> None:
    """Each pass raises the bound by no less than its moves say, and the number of components is what they make it."""
    values, slack = bounds_of(fit, rows)
    for before, after, rise in zip(fit.history, fit.history[1:], np.diff(values), strict=False):
        accepted = {report.kind: report.accepted for report in after.moves}
        more = accepted.get("birth", 0) + accepted.get("split", 0)
        less = accepted.get("merge", 0) + accepted.get("delete", 0)
        require(rise >= sum(report.gain for report in after.moves) - slack, "moves gain what they say")
        require(after.n_components >= before.n_components + more - less, "moves change the number of components")
        require(bool(more) or after.n_components == before.n_components - less, "only births and splits add components")
    for record in fit.history:
        for report in record.moves:
            # Births by adoption are kept if the bound did not fall, or was unknown. Deleting a component without
            # responsibilities gains nothing.
            gains = report.gain > 0.0 or (report.kind in ("birth", "delete") and report.gain == 0.0)
            require(report.accepted == 0 or gains, "what is accepted gains")
            # Reasons are counted, so that every proposed move is accounted for.
            counted = report.accepted + sum(report.refused.values())
            require(report.proposed == counted, "what is proposed is accepted or refused")


def check_answers(fit: sb.Fit, rows: Rows, sparsity: int | None) -> None:
    """Check shapes, sums and ranges of predictions."""
    shape = (len(rows), fit.n_components)
    responsibilities = fit.predict_proba(rows)
    require(responsibilities.shape == shape, "responsibilities are (n, K)")
    require(bool(np.allclose(responsibilities.sum(axis=1), 1.0, rtol=1e-12)), "responsibilities sum to one")
    predicted = fit.predict(rows)
    require(bool((predicted == responsibilities.argmax(axis=1)).all()), "predict is the largest responsibility")
    kept = fit.predict_proba(rows, sparse=True)
    require(kept.shape == shape, "sparse responsibilities are (n, K)")
    # Where rows may be in the tail, it is one of their choices.
    require(bool((np.diff(kept.indptr) <= (sparsity or fit.n_components)).all()), "no row keeps more than it may")
    scores = fit.log_predictive(rows)
    require(scores.shape == (len(rows),) and bool(np.isfinite(scores).all()), "densities are finite")
    drawn = fit.sample(20, seed=2)
    require(drawn.shape == (20, N_COLUMNS) and bool(np.isfinite(fit.predict_proba(drawn)).all()), "draws are rows")
    total = float(fit.weights.sum()) + fit.leftover_weight
    require(bool(np.isclose(total, 1.0, rtol=1e-12)), "weights sum to one")


def require(holds: bool, law: str) -> None:
    """Raise AssertionError unless the law holds."""
    if not holds:
        raise AssertionError(f"broken: {law}")


@dataclass(frozen=True)
class Cell:
    """One choice of each kind."""

    likelihood: Choice
    process: Choice
    objective: str
    sparsity: int | None
    moves: str | None

    def check(self) -> None:
        """Run all checks."""
        check_cell(self.likelihood, self.process, self.objective, self.sparsity, self.moves)

    @property
    def name(self) -> str:
        """All choices, in words."""
        return "-".join(
            [self.likelihood.name, self.process.name, self.objective, f"L={self.sparsity}", self.moves or "no moves"]
        )

    @functools.cached_property
    def pairs(self) -> set[tuple[tuple[int, Any], tuple[int, Any]]]:
        """Every pair of choices, each with the index of its kind."""
        choices = (self.likelihood, self.process, self.objective, self.sparsity, self.moves)
        return set(itertools.combinations(enumerate(choices), 2))


@functools.cache
def refusal(likelihood: Choice, process: Choice, objective: str, *, moves: bool = False) -> Refusal | None:
    """Return None if such fits run, otherwise their refusal, which occurs before the second pass."""
    try:
        fit_cell(likelihood, process, objective, 1, moves="births" if moves else None, max_passes=1)
    except sb.NotSupported as error:
        return Refusal(str(error))
    return None


@functools.cache
def all_cells() -> tuple[Cell, ...]:
    """Return every cell that runs."""
    cells = itertools.starmap(
        Cell, itertools.product(likelihoods(), processes(), OBJECTIVES, SPARSITIES, [None, *MOVES])
    )
    return tuple(
        cell
        for cell in cells
        if refusal(cell.likelihood, cell.process, cell.objective, moves=cell.moves is not None) is None
    )


@functools.cache
def pairwise_cells() -> tuple[Cell, ...]:
    """A few of the cells in which every two choices meet that meet in any: greedily the one with most pairs to come."""
    to_come = set().union(*(cell.pairs for cell in all_cells()))
    chosen = []
    while to_come:
        best = max(all_cells(), key=lambda cell: len(cell.pairs & to_come))
        chosen.append(best)
        to_come -= best.pairs
    return tuple(chosen)


def outcomes(likelihood: Choice, process: Choice, objective: str, *, moves: bool = False) -> set[str | None]:
    """Try all fits of a table cell: None where they obey, and how they are refused; more than one is a fault.

    Raises
    ------
    AssertionError
        A check fails.
    """
    found: set[str | None] = set()
    for sparsity, chosen in itertools.product(SPARSITIES, MOVES if moves else (None,)):
        try:
            check_cell(likelihood, process, objective, sparsity, chosen)
            found.add(None)
        except sb.NotSupported as error:
            found.add(str(error))
    return found


def table() -> str:
    """The page."""
    rows, columns = likelihoods(), processes()
    reasons: list[str] = []
    lines = [
        "| | " + " | ".join(column.name for column in columns) + " |",
        "|---|" + "---|" * len(columns),
    ]
    for row in rows:
        cells = [_cell(row, column, reasons) for column in columns]
        lines.append(f"| {row.name} | " + " | ".join(cells) + " |")
    notes = [f"{number}. {reason}" for number, reason in enumerate(reasons, start=1)]
    n = len(rows) * len(columns) * len(OBJECTIVES)
    return TEXT.format(table="\n".join(lines), notes="\n".join(notes), n=n, stochastic=stochastic_refusal())


def _cell(likelihood: Choice, process: Choice, reasons: list[str]) -> str:
    """Return one cell; a refusal that all objectives share appears once."""
    shown = []
    for objective in OBJECTIVES:
        refused = refusal(likelihood, process, objective)
        if refused is not None:
            shown.append(f"no {objective} ({_note(refused, reasons)})")
        elif (refused := refusal(likelihood, process, objective, moves=True)) is not None:
            shown.append(f"{objective} without moves ({_note(refused, reasons)})")
        else:
            shown.append(objective)
    said = {text.removeprefix(f"no {objective} ") for objective, text in zip(OBJECTIVES, shown, strict=True)}
    return f"no {said.pop()}" if len(said) == 1 else ", ".join(shown)


def _note(refusal: Refusal, reasons: list[str]) -> int:
    if refusal.reason not in reasons:
        reasons.append(refusal.reason)
    return reasons.index(refusal.reason) + 1


def stochastic_refusal() -> str:
    """Return the reason why `Stochastic` refuses moves."""
    try:
        sb.Stochastic(10, moves=(sb.Merge(),))
    except sb.NotSupported as error:
        return str(error)
    raise AssertionError("Stochastic takes moves")


TEXT = """# What runs with what

Rows are likelihoods, columns are processes. A cell lists the objectives that run with `Full`, `Memoized` and
`Stochastic`, and marks those that do not support moves (`Birth`, `Split`, `Merge` and `Delete`). Numbers refer to the
error messages below. `Stochastic` does not support moves: "{stochastic}".

The {n} cells are tested at sparsity 1, 2 and dense, on rows in memory and in blocks, with a fixed number of components,
and with moves that start from one component and from too many. All combinations that run obey these laws:

- the objective never falls, and rises by at least the predicted gain of the moves;
- every proposed move is accepted, or rejected with a reason;
- one more local step does not lower the objective;
- responsibilities and weights sum to one, densities are finite, and draws are rows of the same kind;
- a saved fit and a fit to rows in blocks equal the original fit to the bit.

The priors are chosen so that they have a mode. For a prior without a mode, "map" raises an error that names the
parameter ([Choosing a model](choosing.md)).

{table}

{notes}

`python scripts/conformance.py --write` writes this page. `tests/model/test_conformance.py` checks it.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="rewrite the page")
    page = table()
    if parser.parse_args().write:
        PAGE.write_text(page, encoding="utf-8")
        print(f"wrote {PAGE.relative_to(ROOT)}")
    else:
        print(page, end="")


if __name__ == "__main__":
    main()
