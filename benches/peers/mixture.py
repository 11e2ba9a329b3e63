"""stickbreak, scikit-learn and bnpy on the same data under the same model, scored by one file. See README.md.

python benches/peers/mixture.py --quick
python benches/peers/mixture.py --bnpy FOLDER/bin/python --json benches/results/peers-mixture.json
"""

import argparse
import json
import os
import platform
import tempfile
from pathlib import Path
from typing import Any

import contenders
import report
from contenders import command, first_line, print_head, processor
from problems import PROBLEMS, Missing, Problem

BATCHES = 20


def compare(problem: Problem, entrants: list[contenders.Contender], passes: int, folder: Path) -> dict[str, Any]:
    """Run and score all on one data set, print the table, and return everything that was measured."""
    n = len(problem.train)
    print(f"\n{problem.name}: {n} rows to fit, {len(problem.test)} held out, D = {problem.dimension}, ", end="")
    print(f"K = {problem.n_components}, {passes} passes", flush=True)
    problem.write(folder)
    runs, failed = [], {}
    for index, contender in enumerate(entrants):
        results = folder / str(index)
        before = os.getloadavg()[0]
        try:
            result = contender.run(folder, results, passes)
        except contenders.Failed as reason:
            if contender.dense_full:
                raise  # the common ELBO needs it
            failed[contender.name] = str(reason)
            print(f"  {contender.name} FAILED: {reason}", flush=True)
            continue
        runs.append(report.score(contender, result, problem, results, [before, os.getloadavg()[0]]))
        print(f"  {contender.name}: {result['wall_seconds'][-1]:.1f} s; load {before:.1f}", flush=True)
    target = report.common_elbo(runs)
    print(f"common ELBO {target / n:.5f} nats a row\n")
    print(report.table(runs, target, n), flush=True)
    return {
        "name": problem.name,
        "rows": n,
        "held_out_rows": len(problem.test),
        "dimension": problem.dimension,
        "prior": problem.numbers,
        "passes": passes,
        "common_elbo": target,
        "near_nats_a_row": report.NEAR,
        "runs": [run.as_json(target, n) for run in runs],
        "failed": failed,
    }


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", choices=sorted(PROBLEMS), default=["mnist", "generated"])
    parser.add_argument("--quick", action="store_true", help="a small data set and few passes: a minute")
    parser.add_argument("--passes", type=int, help="passes of every contender (default: 30, with --quick 10)")
    parser.add_argument("--bnpy", metavar="PYTHON", default=os.environ.get("BNPY_PYTHON"), help="interpreter with bnpy")
    parser.add_argument("--without", nargs="+", default=[], metavar="WORD", help="leave out whose name has this word")
    parser.add_argument("--json", type=Path, help="where to write everything that was measured")
    return parser.parse_args()


def main() -> None:
    options = parse()
    names = ["quick"] if options.quick else options.data
    passes = options.passes or (10 if options.quick else 30)
    peers, message = contenders.bnpy(options.bnpy, BATCHES)
    everyone = contenders.own_and_scikit_learn(BATCHES) + peers
    entrants = [one for one in everyone if not any(word in one.name for word in options.without)]
    print(f"{processor()}, {os.cpu_count()} processors; one thread each; load {os.getloadavg()[0]:.1f}\n{message}")
    measured = []
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            try:
                problem = PROBLEMS[name]()
            except Missing as reason:
                print(f"\n{name} left out: {reason}")
                continue
            measured.append(compare(problem, entrants, passes, Path(folder) / name))
    if options.json is not None:
        machine = {"processor": processor(), "processors": os.cpu_count(), "system": platform.system()}
        written = {"head": first_line(), "command": command(), "machine": machine, "data": measured}
        options.json.write_text(json.dumps(written, indent=1) + "\n")


if __name__ == "__main__":
    print_head()
    main()
