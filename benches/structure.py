"""Does the default call find the structure of data: number of clusters, labels, held-out density, CPU time.

The call is `sb.fit(sb.Mixture(sb.Gaussian()), X)`. Beside it stand scikit-learn's `BayesianGaussianMixture(30)`, its
`GaussianMixture` with the number of components chosen by BIC, and its `HDBSCAN`. The parts:

structure  K, the adjusted Rand index (ARI) of `predict` and of `Fit.combine`, objective and CPU seconds, by seed
held-out   the mean log predictive density of a fifth of the rows under a fit of the others, by split
starts     the objectives of ten starts and of a start from the reference labels, for the best one known
peers      the same of scikit-learn's estimators; BIC's K is chosen once, on all rows

The ARI leaves out rows that the reference calls noise; HDBSCAN's noise is one cluster. One thread each.

Held-out rows are moved at random within a cell around them, as wide as the smallest gap between distinct values of the
column. Otherwise densities of rounded values have no upper limit. Sets whose columns depend on each other are left as
they are and left out of comparisons of densities. Columns that are constant in the rows of a fit are left out, too.

python benches/structure.py [SET OR GROUP ...] [--parts structure held-out starts peers] [--output FILE]
python benches/structure.py --table BEFORE.json [AFTER.json]
"""

import argparse
import ast
import json
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

import stickbreak as sb
from common.clusters import Array, DataSet, Labels, all_sets
from common.estimators import (
    ROWS_OF_HDBSCAN,
    bayesian_mixture,
    gaussian_mixture,
    hdbscan_labels,
    log_predictive,
    number_by_bic,
    sample,
)
from common.head import command, first_line, print_head
from common.structure_table import print_summary, print_table

PARTS = ("structure", "held-out", "starts", "peers")
SEEDS, SPLITS, STARTS = 5, 5, 10
# Above this many rows a set has fewer seeds and splits unless their number is given.
LARGE, FEW = 20_000, 2
# CPU seconds after which a start is stopped.
LIMIT = 60.0
Results = dict[str, Any]


@dataclass(frozen=True)
class Plan:
    """What is run on a set: arguments of the likelihood, seeds, number of splits, whether held-out rows move."""

    likelihood: dict[str, Any]
    seeds: range
    splits: int
    move: bool


def ari(labels: Labels | None, found: Labels) -> float | None:
    """Of the rows that are no noise in the reference."""
    if labels is None:
        return None
    real = labels > 0
    return float(adjusted_rand_score(labels[real], found[real]))


def fit(rows: Array, likelihood: dict[str, Any], **options: Any) -> tuple[sb.Fit, float]:
    """A fit by the default algorithm, and its CPU seconds. It ends with the first pass after `LIMIT` of them."""
    model = sb.Mixture(sb.Gaussian(**likelihood))
    limit = LIMIT * options.get("n_init", 1)
    begun = time.process_time()
    late = [lambda _: time.process_time() - begun > limit]
    found = sb.fit(model, rows, threads=1, progress=False, callbacks=late, **options)
    return found, time.process_time() - begun


def objective(found: sb.Fit) -> float:
    """What starts are compared by: the bound, plus the guard of estimated priors where there are any."""
    return float(getattr(found.history[-1], "objective", found.elbo))


def described(found: sb.Fit, seconds: float, rows: Array, labels: Labels | None) -> Results:
    clusters = found.combine(rows, threads=1)
    return {
        "k": int(found.n_occupied),
        "ari": ari(labels, found.predict(rows, threads=1)),
        "clusters": int(clusters.n_clusters),
        "combined_ari": ari(labels, clusters.predict(rows, threads=1)),
        "objective": objective(found),
        "seconds": seconds,
        "passes": len(found.history),
        "stop": found.stop_reason.name,
    }


def splits(rows: Array, plan: Plan) -> Iterator[tuple[Array, Array]]:
    """Four fifths of the rows as they are, and the others moved within the cells of their columns."""
    gaps = [np.diff(np.unique(column)) for column in rows.T]
    cells = np.array([gap.min() if len(gap) and plan.move else 0.0 for gap in gaps])
    for split in range(plan.splits):
        rng = np.random.default_rng(split)
        order = rng.permutation(len(rows))
        train, test = np.split(order, [len(rows) * 4 // 5])
        varying = np.ptp(rows[train], axis=0) > 0
        moved = rows[test] + cells * rng.uniform(-0.5, 0.5, size=(len(test), rows.shape[1]))
        yield np.ascontiguousarray(rows[train][:, varying]), np.ascontiguousarray(moved[:, varying])


def held_out(rows: Array, plan: Plan, score: Callable[[Array, Array], Array]) -> list[float]:
    """Mean log density of the held-out rows by split."""
    return [float(np.mean(score(train, test))) for train, test in splits(rows, plan)]


def run_structure(rows: Array, labels: Labels | None, plan: Plan) -> list[Results]:
    return [{"seed": seed, **described(*fit(rows, plan.likelihood, seed=seed), rows, labels)} for seed in plan.seeds]


def run_held_out(rows: Array, _labels: Labels | None, plan: Plan) -> list[float]:
    def score(train: Array, test: Array) -> Array:
        return fit(train, plan.likelihood, seed=0)[0].log_predictive(test, threads=1)

    return held_out(rows, plan, score)


def run_starts(rows: Array, labels: Labels | None, plan: Plan) -> Results:
    found = {"ten": described(*fit(rows, plan.likelihood, seed=0, n_init=STARTS), rows, labels)}
    if labels is not None:
        start = np.unique(labels, return_inverse=True)[1].astype(np.int64)
        found["labels"] = described(*fit(rows, plan.likelihood, seed=0, init=start), rows, labels)
    return found


def run_bic(rows: Array, labels: Labels | None, plan: Plan) -> Results:
    """The seconds are those of the whole search for K."""

    def score(train: Array, test: Array) -> Array:
        fitted = gaussian_mixture(train, k)
        return np.full(len(test), np.nan) if fitted is None else fitted.score_samples(test)

    begun = time.process_time()
    k = number_by_bic(rows)
    mixture = gaussian_mixture(rows, k)
    found: Results = {"seconds": time.process_time() - begun, "k": k}
    if mixture is None:
        return found
    return found | {"ari": ari(labels, mixture.predict(rows)), "held_out": held_out(rows, plan, score)}


def run_bayesian(rows: Array, labels: Labels | None, plan: Plan) -> Results:
    def score(train: Array, test: Array) -> Array:
        fitted = bayesian_mixture(train)
        return np.full(len(test), np.nan) if fitted is None else log_predictive(fitted, test)

    begun = time.process_time()
    mixture = bayesian_mixture(rows)
    found: Results = {"seconds": time.process_time() - begun}
    if mixture is None:
        return found
    predicted = mixture.predict(rows)
    found |= {"k": len(np.unique(predicted)), "ari": ari(labels, predicted)}
    return found | {"held_out": held_out(rows, plan, score)}


def run_hdbscan(rows: Array, labels: Labels | None) -> Results:
    chosen = sample(rows, ROWS_OF_HDBSCAN)
    begun = time.process_time()
    predicted = hdbscan_labels(rows[chosen])
    seconds = time.process_time() - begun
    score = ari(None if labels is None else labels[chosen], predicted)
    return {"seconds": seconds, "k": int(predicted.max() + 1), "ari": score}


def run_peers(rows: Array, labels: Labels | None, plan: Plan) -> Results:
    """Values are missing, or NaN in a split, where scikit-learn finds a covariance singular."""
    return {
        "bic": run_bic(rows, labels, plan),
        "bayesian": run_bayesian(rows, labels, plan),
        "hdbscan": run_hdbscan(rows, labels),
    }


RUNS: dict[str, Callable[[Array, Labels | None, Plan], Any]] = {
    "structure": run_structure,
    "held-out": run_held_out,
    "starts": run_starts,
    "peers": run_peers,
}


def keywords(text: str) -> dict[str, Any]:
    """`'prior="rule", dof=5'` -> the arguments, whose values are literals."""
    call = ast.parse(f"f({text})", mode="eval").body
    if not isinstance(call, ast.Call) or call.args or any(keyword.arg is None for keyword in call.keywords):
        raise argparse.ArgumentTypeError(f"{text!r} is no list of keyword arguments")
    return {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}


def options_of_user() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", help="names or groups of data sets; default: all of them")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=["structure", "held-out"])
    parser.add_argument("--seeds", type=int, help=f"default: {SEEDS}, {FEW} above {LARGE:,} rows")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="the first seed")
    parser.add_argument("--splits", type=int, help=f"default: {SPLITS}, {FEW} above {LARGE:,} rows")
    parser.add_argument("--max-rows", type=int, help="leave out sets with more rows")
    parser.add_argument("--likelihood", type=keywords, default={}, help="""its arguments, such as 'prior="rule"'""")
    parser.add_argument("--output", type=Path, help="JSON of the results; parts that it has are not run again")
    parser.add_argument("--peers-from", type=Path, help="JSON whose results of scikit-learn are taken over")
    parser.add_argument("--again", action="store_true", help="run the parts that the JSON has, too")
    parser.add_argument("--list", action="store_true", help="print the sets and stop")
    parser.add_argument("--table", nargs="+", type=Path, help="print the table of one JSON, or of two: before, after")
    return parser.parse_args()


def chosen_sets(names: list[str], max_rows: int | None) -> list[tuple[DataSet, Array, Labels | None]]:
    """The sets by size, smallest first."""
    sets = all_sets()
    unknown = {*names} - {name for one in sets for name in (one.name, one.group)}
    if unknown:
        raise SystemExit(f"no such data set or group: {', '.join(sorted(unknown))}; --list shows them")
    made = [(one, *one.make()) for one in sets if not names or one.name in names or one.group in names]
    return sorted((one for one in made if max_rows is None or len(one[1]) <= max_rows), key=lambda one: one[1].size)


def read(path: Path | None, likelihood: dict[str, Any]) -> Results:
    """Results so far, which must be those of the same likelihood."""
    if path is None or not path.exists():
        head = {"head": first_line(), "command": command()}
        return {**head, "version": sb.__version__, "likelihood": likelihood, "sets": {}}
    results: Results = json.loads(path.read_text(encoding="utf-8"))
    if results["likelihood"] != likelihood:
        raise SystemExit(f"--output: {path} has results of {results['likelihood']}, not of {likelihood}")
    return results


def write(path: Path | None, results: Results) -> None:
    if path is not None:
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps(results, indent=1), encoding="utf-8")
        partial.replace(path)


def run_part(part: str, rows: Array, labels: Labels | None, plan: Plan) -> Any:
    """The results, None where the fit is refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return RUNS[part](rows, labels, plan)
        except sb.StickbreakError as error:
            print(f"  refused: {error}", flush=True)
            return None


def run(options: argparse.Namespace) -> Results:
    results = read(options.output, options.likelihood)
    peers = json.loads(options.peers_from.read_text(encoding="utf-8"))["sets"] if options.peers_from else {}
    for one, rows, labels in chosen_sets(options.sets, options.max_rows):
        few = len(rows) > LARGE
        seeds = range(options.first, options.first + (options.seeds or (FEW if few else SEEDS)))
        plan = Plan(options.likelihood, seeds, options.splits or (FEW if few else SPLITS), one.full_rank)
        known = results["sets"].setdefault(one.name, {})
        known |= {"n": len(rows), "columns": rows.shape[1], "full_rank": one.full_rank}
        known["classes"] = None if labels is None else len(np.unique(labels[labels > 0]))
        if "peers" in peers.get(one.name, {}):
            known["peers"] = peers[one.name]["peers"]
        for part in options.parts:
            if known.get(part) is None or options.again:
                begun = time.process_time()
                known[part] = run_part(part, rows, labels, plan)
                seconds = time.process_time() - begun
                print(f"{one.name} ({len(rows)} x {rows.shape[1]}): {part}, {seconds:.1f} CPU s", flush=True)
                write(options.output, results)
    return results


def main() -> None:
    options = options_of_user()
    if options.list:
        for one in all_sets():
            print(f"{one.group:<13} {one.name}")
        return
    if options.table:
        files = [json.loads(path.read_text(encoding="utf-8"))["sets"] for path in options.table]
    else:
        files = [run(options)["sets"]]
    print_table(files)
    print_summary(files)


if __name__ == "__main__":
    print_head()
    main()
