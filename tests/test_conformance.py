"""Every likelihood x process x objective x sparsity x {memory, blocks}, driven by the registry.

What a cell must obey, and which cells there are, is in `scripts/conformance.py`, which also makes the page that the
last test reads.
"""

from pathlib import Path

import numpy as np
import pytest

import conformance
import stickbreak as sb

LIKELIHOODS = conformance.likelihoods()
PROCESSES = conformance.processes()


def name(choice: conformance.Choice) -> str:
    return choice.name


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=name)
@pytest.mark.parametrize("process", PROCESSES, ids=name)
@pytest.mark.parametrize("objective", conformance.OBJECTIVES)
def test_cell(likelihood: conformance.Choice, process: conformance.Choice, objective: str) -> None:
    """It runs and obeys, or is refused with a reason in words."""
    refusal = conformance.outcome(likelihood, process, objective)
    assert refusal is None or len(refusal.reason) > 30


def test_every_class_of_the_registry_has_its_cells() -> None:
    classes = {choice.kind.__name__ for choice in (*LIKELIHOODS, *PROCESSES)}
    assert classes == {*sb._core.registry()["likelihoods"], *sb._core.registry()["processes"]}
    assert len({choice.name for choice in (*LIKELIHOODS, *PROCESSES)}) == len(LIKELIHOODS) + len(PROCESSES)


def test_variational_inference_is_refused_only_with_the_process_itself() -> None:
    """The objective that every model has: what is refused under it cannot be made at all."""
    for process in PROCESSES:
        try:
            conformance.make_process(process)
        except sb.NotSupported:
            continue
        assert all(conformance.outcome(likelihood, process, "variational") is None for likelihood in LIKELIHOODS)


@pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=name)
def test_likelihoods_are_what_their_cells_say(likelihood: conformance.Choice) -> None:
    rows = conformance.make_rows(likelihood)
    made = conformance.make_likelihood(likelihood, rows, 0)
    assert type(made) is likelihood.kind
    for option, value in likelihood.options.items():
        own = getattr(made, option)
        assert np.ndim(own) == 2 if callable(value) else own == value
    if not likelihood.options and type(made) is sb.KnownCovarianceGaussian:
        assert np.ndim(made.mean_precision) == 0


def test_checks_find_what_they_are_for() -> None:
    """A fit of other rows, and one that keeps too many components, are found out."""
    likelihood, process = LIKELIHOODS[0], PROCESSES[0]
    fit, rows = conformance.fit_cell(likelihood, process, "variational", 2)
    conformance.check_bound(fit, rows)
    conformance.check_answers(fit, rows, 2)
    with pytest.raises(AssertionError, match="keeps more"):
        conformance.check_answers(fit, rows, 1)
    with pytest.raises(AssertionError, match="does not lose"):
        conformance.check_bound(fit, rows + 5.0)


def test_page_is_what_runs() -> None:
    """`python scripts/conformance.py --write` rewrites it."""
    page = Path(conformance.PAGE).read_text(encoding="utf-8")
    assert conformance.table() == page
