"""Every likelihood x process x objective x sparsity x {memory, blocks} x moves, driven by the registry: all pairs here,
the whole product among the slow tests.

What a cell must obey, and which cells there are, is in `scripts/conformance.py`, which also makes the page that the
last test reads.
"""

import dataclasses
from pathlib import Path

import numpy as np
import pytest

import conformance
import stickbreak as sb

LIKELIHOODS = conformance.likelihoods()
PROCESSES = conformance.processes()


@dataclasses.dataclass
class Told:
    """A record of the history, without its fit."""

    history: list[sb.Record]


def name(choice: conformance.Choice) -> str:
    return choice.name


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=name)
@pytest.mark.one_in(9)
def test_every_two_choices_obey_together(likelihood: conformance.Choice) -> None:
    """Runs enough cells that every pair of choices occurs in one; `test_cell` runs all cells."""
    cells = [cell for cell in conformance.pairwise_cells() if cell.likelihood is likelihood]
    assert len(cells) >= len({cell.process for cell in conformance.all_cells() if cell.likelihood is likelihood}) > 0
    for cell in cells:
        try:
            cell.check()
        except Exception as error:
            error.add_note(cell.name)
            raise


def test_few_cells_are_enough_for_all_pairs() -> None:
    few, every = conformance.pairwise_cells(), conformance.all_cells()
    assert set().union(*(cell.pairs for cell in few)) == set().union(*(cell.pairs for cell in every))
    assert len(few) < len(every) / 10


@pytest.mark.slow
@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=name)
@pytest.mark.parametrize("process", PROCESSES, ids=name)
@pytest.mark.parametrize("objective", conformance.OBJECTIVES)
@pytest.mark.parametrize("moves", [False, True], ids=["fixed", "moves"])
def test_cell(likelihood: conformance.Choice, process: conformance.Choice, objective: str, moves: bool) -> None:
    """Every cell runs and passes its checks at every sparsity and with all moves, or is refused for one reason."""
    refused = conformance.refusal(likelihood, process, objective, moves=moves)
    expected = None if refused is None else refused.reason
    assert conformance.outcomes(likelihood, process, objective, moves=moves) == {expected}


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=name)
@pytest.mark.parametrize("process", PROCESSES, ids=name)
@pytest.mark.parametrize("objective", conformance.OBJECTIVES)
def test_refusals(likelihood: conformance.Choice, process: conformance.Choice, objective: str) -> None:
    """A reason in words; moves run wherever the bounds of different numbers of components compare, and nowhere else."""
    without, refusal = (conformance.refusal(likelihood, process, objective, moves=moves) for moves in (False, True))
    if without is not None:
        assert len(without.reason) > 30
        assert refusal == without
        return
    rows = conformance.make_rows(likelihood)
    model = sb.Mixture(
        likelihood=conformance.make_likelihood(likelihood, rows, 0), process=conformance.make_process(process)
    )
    # `fit` chooses its default by the same rule by which the core refuses.
    assert (refusal is None) == (objective == "variational" and model._takes_moves)
    assert refusal is None or (refusal.reason.startswith("a move with ") and len(refusal.reason) > 60)


def test_every_kind_of_move_is_made() -> None:
    """Each kind of move is accepted in some cell, births and splits for most likelihoods."""
    made: dict[str, set[str]] = {"birth": set(), "split": set(), "merge": set(), "delete": set()}
    suitable = [
        likelihood
        for likelihood in LIKELIHOODS
        if conformance.make_likelihood(likelihood, conformance.make_rows(likelihood), 0)._supports("moves")
    ]
    for likelihood in suitable:
        for moves in conformance.MOVES:
            fit, _ = conformance.fit_cell(likelihood, PROCESSES[0], "variational", 2, moves=moves)
            for report in (report for record in fit.history for report in record.moves if report.accepted):
                made[report.kind].add(likelihood.name)
    assert made["merge"] == {likelihood.name for likelihood in suitable}
    assert made["delete"]
    assert len(made["birth"]) > len(suitable) / 2
    assert len(made["split"]) > len(suitable) / 2


def test_every_class_of_the_registry_has_its_cells() -> None:
    classes = {choice.kind.__name__ for choice in (*LIKELIHOODS, *PROCESSES)}
    processes = sb._core.registry()["processes"]
    of_fit = {name for name, entry in processes.items() if "weights" in entry["faces"]}
    assert classes == {*sb._core.registry()["likelihoods"], *of_fit}
    assert len({choice.name for choice in (*LIKELIHOODS, *PROCESSES)}) == len(LIKELIHOODS) + len(PROCESSES)


def test_variational_inference_is_refused_only_with_the_process_itself() -> None:
    """What is refused under the objective of all models cannot be made at all, or has a prior for samplers alone."""
    for process in PROCESSES:
        try:
            conformance.make_process(process)
        except sb.NotSupported:
            continue
        reasons = {conformance.refusal(likelihood, process, "variational") for likelihood in LIKELIHOODS}
        if process.kind is sb.PitmanYor and "concentration" in process.options:
            assert len(reasons) == 1
            assert "sb.sample, which draws it" in str(reasons.pop())
        else:
            assert reasons == {None}


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=name)
def test_likelihoods_are_what_their_cells_say(likelihood: conformance.Choice) -> None:
    rows = conformance.make_rows(likelihood)
    made = conformance.make_likelihood(likelihood, rows, 0)
    assert type(made) is likelihood.kind
    for option, value in likelihood.options.items():
        given = getattr(made, option)
        assert np.ndim(given) == 2 if callable(value) else given == value
    if not likelihood.options and type(made) is sb.KnownCovarianceGaussian:
        assert np.ndim(made.mean_precision) == 0


def test_checks_find_what_they_are_for() -> None:
    """The checks detect a fit of other rows, and one that keeps too many components."""
    likelihood, process = LIKELIHOODS[0], PROCESSES[0]
    fit, rows = conformance.fit_cell(likelihood, process, "variational", 2)
    conformance.check_bound(fit, rows)
    conformance.check_answers(fit, rows, 2)
    with pytest.raises(AssertionError, match="keeps more"):
        conformance.check_answers(fit, rows, 1)
    with pytest.raises(AssertionError, match="does not lose"):
        conformance.check_bound(fit, rows + 5.0)
    with_moves, _ = conformance.fit_cell(likelihood, process, "variational", 2, moves="births")
    conformance.check_moves(with_moves, rows)
    first, second, *others = with_moves.history
    boasting = tuple(dataclasses.replace(report, gain=1e3, accepted=1) for report in second.moves)
    with pytest.raises(AssertionError, match="gain what they say"):
        conformance.check_moves(Told([first, dataclasses.replace(second, moves=boasting), *others]), rows)
    forgetful = tuple(dataclasses.replace(report, proposed=report.proposed + 1) for report in second.moves)
    with pytest.raises(AssertionError, match="accepted or refused"):
        conformance.check_moves(Told([first, dataclasses.replace(second, moves=forgetful), *others]), rows)


def test_page_is_what_runs() -> None:
    """`python scripts/conformance.py --write` rewrites it."""
    page = Path(conformance.PAGE).read_text(encoding="utf-8")
    assert conformance.table() == page
