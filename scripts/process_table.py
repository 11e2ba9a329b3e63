"""Write the table of docs/samplers.md: which process runs under `fit`, which under `sample`, with what exactness.

    python scripts/process_table.py [--write]

Every cell is tried on a few rows. Without --write the script fails where the page differs from what runs.
"""

from __future__ import annotations

import re
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import stickbreak as sb

PAGE = Path(__file__).resolve().parents[1] / "docs" / "samplers.md"
BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"
ROWS = np.random.default_rng(0).normal([[-3.0], [3.0]], size=(2, 4)).reshape(-1, 1)
LIKELIHOOD = sb.Gaussian(mean=[0.0], mean_precision=0.1, dof=3.0, scale=[[1.0]])

PROCESSES: dict[str, Any] = {
    "`DirichletProcess(concentration)`": sb.DirichletProcess(1.0),
    "`DirichletProcess(Gamma(...))`": sb.DirichletProcess(sb.Gamma(1.0, 1.0)),
    "`DirichletProcess(sticks=(a, b))`, a not 1": sb.DirichletProcess(sticks=(2.0, 3.0)),
    "`PitmanYor(discount, concentration=...)`": sb.PitmanYor(0.3),
    "`PitmanYor`, concentration at most 0": sb.PitmanYor(0.5, concentration=-0.2),
    "`PitmanYor(Beta(...), concentration=Gamma(...))`": sb.PitmanYor(
        sb.Beta(1.5, 1.5), concentration=sb.Gamma(1.0, 1.0)
    ),
    "`FiniteDirichlet(n_components)`": sb.FiniteDirichlet(3),
    "`MixtureOfFiniteMixtures(concentration, rate=...)`": sb.MixtureOfFiniteMixtures(),
    "`NormalizedGeneralizedGamma(mass, discount)`": sb.NormalizedGeneralizedGamma(1.0, 0.3),
    "`NormalizedGeneralizedGamma(Gamma(...), Beta(...))`": sb.NormalizedGeneralizedGamma(
        sb.Gamma(1.0, 1.0), sb.Beta(1.5, 1.5)
    ),
}
SAMPLERS = {
    "`CollapsedGibbs`": sb.CollapsedGibbs(),
    '`SplitMerge(proposal="restricted")`': sb.SplitMerge(proposal="restricted"),
    '`SplitMerge(proposal="sequential")`': sb.SplitMerge(proposal="sequential"),
    "`TreeGuided`": sb.TreeGuided(),
    "`BlockedGibbs`": sb.BlockedGibbs(truncation=20),
    "`Slice`": sb.Slice(),
}


def runs(call: Any) -> bool:
    """Return whether a call is served."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call()
    except sb.NotSupported:
        return False
    return True


def table() -> str:
    """Return the table as it is now."""
    lines = [f"| process | `fit` | {' | '.join(SAMPLERS)} |", f"|---|---|{'---|' * len(SAMPLERS)}"]
    for name, process in PROCESSES.items():
        model = sb.Mixture(likelihood=LIKELIHOOD, process=process)
        cells = ["yes" if runs(lambda model=model: sb.fit(model, ROWS, sb.Full(max_passes=2))) else "no"]
        for sampler in SAMPLERS.values():
            if isinstance(sampler, sb.BlockedGibbs) and isinstance(process, sb.FiniteDirichlet):
                sampler = sb.BlockedGibbs()
            served = runs(lambda model=model, one=sampler: sb.sample(model, ROWS, one, draws=2, warmup=0, chains=1))
            cells.append("exact" if served else "no")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> int:
    """Write or compare the page; return the exit code."""
    text = PAGE.read_text(encoding="utf-8")
    new = re.sub(f"(?<={BEGIN}\n).*?(?=\n{END})", lambda _: table(), text, flags=re.DOTALL)
    if "--write" in sys.argv[1:]:
        PAGE.write_text(new, encoding="utf-8")
        print(f"wrote {PAGE.name}")
        return 0
    if new != text:
        print("docs/samplers.md is out of date; run scripts/process_table.py --write")
    return int(new != text)


if __name__ == "__main__":
    sys.exit(main())
