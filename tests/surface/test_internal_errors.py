"""A mistake in the package is an `InternalError`: no crash, no panic message, and the package remains usable.

The checks of Python keep every caller of the core to its contract. Without them, weights that are shorter than the
rows break an invariant of the core: in a worker thread, where a panic is hardest to catch.
"""

import os
import subprocess
import sys

SCRIPT = """
import numpy as np, stickbreak as sb
from stickbreak import _core

rows = np.random.default_rng(0).normal(size=(5000, 2))
short = np.ones(3)
model = sb.Mixture(likelihood=sb.Gaussian())
fit = sb.fit(model, rows, sb.Full(max_passes=2, tol=0.0), n_components=3, progress=False)
before = fit.elbo, fit.evaluate(rows)

class Observer:
    listens, in_turn, checkpoint_every, checkpoint = False, False, None, None
    def observe(self, event):
        return False

def broken_fit(threads):
    return _core.fit(
        rows, short,
        specification={"likelihood": ("Gaussian", {}), "process": ("DirichletProcess", {}),
                       "background": None, "objective": "variational", "missing": False},
        settings=sb.Full(sparsity=None, margin=None, bounds_memory=0, max_passes=1, tol=0.0)._to_core(3, [0], threads),
        init="random", observer=Observer(),
    )

calls = [
    lambda: broken_fit(1),
    lambda: broken_fit(2),
    lambda: fit._state.evaluate(rows, short, 2),
]
for call in calls:
    try:
        call()
    except sb.InternalError as error:
        print("InternalError:", error)

again = sb.fit(model, rows, sb.Full(max_passes=2, tol=0.0), n_components=3, progress=False)
print((again.elbo, again.evaluate(rows)) == before)
"""


def test_a_broken_invariant_is_an_internal_error() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "RUST_BACKTRACE"}
    for backtrace in [{}, {"RUST_BACKTRACE": "1"}]:
        found = subprocess.run(
            [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120, env=environment | backtrace
        )
        assert found.returncode == 0, found.stderr
        assert found.stderr == ""
        *errors, works_on = found.stdout.splitlines()
        assert len(errors) == 3
        for line in errors:
            # What happened, and where, so that a report can be acted on.
            assert line.startswith("InternalError: ")
            assert "report" in line
            assert "index out of bounds" in line
            assert ".rs:" in line
        assert works_on == "True"
