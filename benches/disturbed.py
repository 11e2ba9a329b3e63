"""Does the default call find the same clusters where a table is disturbed in ways that should change nothing.

A table has two to six clear clusters in two to eight columns and 200 to 5,000 rows. One to three disturbances are drawn
for it; a third of the tables are pandas frames, fitted with `columns_for`. The calls are
`sb.fit(sb.Mixture(sb.Gaussian()), X, sample_weight=weights)` and
`sb.fit(sb.Mixture(likelihood=sb.columns_for(frame)), frame, sample_weight=weights)`. The disturbances:

flag       a column of 0 and 1, independent of everything; in frames booleans or text
constant   a column of one value
affine     a column in other units
rounding   some or all columns rounded, so that clusters have standard deviations of 2 to 30 steps
copies     a bootstrap sample, every row several times, some rows once more, or copies of one cluster
weights    constant, random, or those of one cluster larger
near       an informative column becomes the difference of two columns 1e7 to 1e9 times as wide; only with --kinds

A table passes if the adjusted Rand index (ARI) of the labels of both fits, over the disturbed rows, is 0.95 or more.
Where it fails, the disturbed table is also fitted from the clean labels, without moves. "Nats above" is the objective
of the default fit minus that of this one. If it is positive, the model prefers the other clusters; if it is negative,
the search missed the clean ones. A `Gaussian` may prefer one component for each value of a flag of uneven shares. Fits
end with the first pass after a limit of CPU seconds and are judged as they are. One thread.

python benches/disturbed.py [--tables 1000] [--first SEED] [--kinds KIND ...] [--output FILE]
python benches/disturbed.py --show FILE.json [LATER.json]
"""

import argparse
import json
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score

import stickbreak as sb
from common.disturbances import ALL_KINDS, KINDS, Array, Labels, Table, clean_table, disturbed_table
from common.head import command, first_line, print_head

SAME = 0.95
# The fit of a clean table is right with at least this ARI to the true clusters.
RIGHT = 0.97
# CPU seconds after which a fit is stopped.
LIMIT = 30.0
# A flag is even if its share of ones is nearer to a half than this.
EVEN = 0.2
FRAMES = 1 / 3
Results = dict[str, Any]


def frame_of(rows: Array, kinds: Sequence[str], text: bool) -> pd.DataFrame:
    """The rows as a frame, in which flags are text or booleans."""
    columns: dict[str, Any] = {}
    for place, kind in enumerate(kinds):
        values: Any = rows[:, place]
        if kind == "flag":
            values = np.where(values > 0, "yes", "no").astype(object) if text else values > 0
        columns[f"c{place}"] = values
    return pd.DataFrame(columns)


def blocks(likelihood: sb.Columns) -> dict[str, int]:
    """The number of columns of each likelihood of a frame."""
    return {type(block).__name__: len(columns) for columns, block in likelihood.blocks.items()}


def objective(fit: sb.Fit) -> float:
    """The bound, plus the guard of estimated priors where there are any."""
    return float(getattr(fit.history[-1], "objective", fit.elbo))


def model_of(data: Array | pd.DataFrame) -> sb.Mixture:
    """The model of an array, or the one that is chosen for a frame."""
    is_frame = isinstance(data, pd.DataFrame)
    return sb.Mixture(sb.columns_for(data, verbose=False) if is_frame else sb.Gaussian())


def fitted(data: Array | pd.DataFrame, weights: Array | None, limit: float) -> tuple[Results, Labels | None]:
    """What a default fit found, and its labels, or why it was refused."""
    begun = time.process_time()
    late = [lambda _: time.process_time() - begun > limit]
    found: Results = {}
    try:
        model = model_of(data)
        if isinstance(model.likelihood, sb.Columns):
            found["blocks"] = blocks(model.likelihood)
        fit = sb.fit(model, data, sample_weight=weights, threads=1, progress=False, callbacks=late)
        seconds = time.process_time() - begun
        labels = fit.predict(data, threads=1)
    except sb.StickbreakError as error:
        return found | {"refused": str(error)}, None
    stopped = fit.stop_reason is sb.StopReason.CALLBACK
    found |= {"k": int(fit.n_occupied), "seconds": round(seconds, 3), "stopped": stopped}
    return found | {"objective": objective(fit)}, labels


def of_clean_labels(data: Array | pd.DataFrame, weights: Array | None, labels: Labels) -> float:
    """Return the objective of a fit that starts from labels and makes no moves."""
    start = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    fit = sb.fit(model_of(data), data, sb.Full(), sample_weight=weights, init=start, threads=1, progress=False)
    return objective(fit)


def ari(labels: Labels, found: Labels | None) -> float | None:
    return None if found is None else round(float(adjusted_rand_score(labels, found)), 4)


def judged(seed: int, kinds: Sequence[str], limit: float) -> Results:
    """Both fits of a table."""
    clean = clean_table(seed)
    table: Table = disturbed_table(clean, seed, kinds)
    rng = np.random.default_rng([seed, 99])
    is_frame, text = rng.random() < FRAMES, rng.random() < 0.5
    data: list[Any] = [clean.rows, table.rows]
    if is_frame:
        amounts = ["amount"] * clean.rows.shape[1]
        data = [frame_of(clean.rows, amounts, text), frame_of(table.rows, table.kinds, text)]
    before, labels = fitted(data[0], None, limit)
    after, later = fitted(data[1], table.weights, limit)
    before["truth"], after["truth"] = ari(clean.labels, labels), ari(clean.labels[table.origin], later)
    same = None if labels is None else ari(labels[table.origin], later)
    if labels is not None and same is not None and same < SAME:
        after["above"] = after["objective"] - of_clean_labels(data[1], table.weights, labels[table.origin])
    return {
        "n": len(clean.rows),
        "d": clean.rows.shape[1],
        "k": len(clean.means),
        "frame": bool(is_frame),
        "rows": len(table.rows),
        "disturbances": table.parameters,
        "clean": before,
        "disturbed": after,
        "ari": same,
    }


def passes(one: Results) -> bool:
    return one["ari"] is not None and one["ari"] >= SAME


def written(value: Any) -> str:
    if isinstance(value, list):
        return "[" + " ".join(map(written, value)) + "]"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def told(disturbances: Results) -> str:
    """Disturbances with their parameters in one line."""
    texts = []
    for kind, parameters in disturbances.items():
        texts.append(f"{kind}({', '.join(f'{name}={written(value)}' for name, value in parameters.items())})")
    return ", ".join(texts)


def of_fit(one: Results) -> str:
    """K, the ARI with the true clusters and CPU seconds of a fit."""
    if "refused" in one:
        return f"refused: {one['refused']}"
    return f"K {one['k']}, truth {one['truth']:.3f}, {one['seconds']:.2f} s" + (" stopped" if one["stopped"] else "")


def line(seed: str, one: Results) -> str:
    head = f"{seed}: {one['n']} x {one['d']}, K {one['k']}, {'frame' if one['frame'] else 'array'}"
    same = "" if one["ari"] is None else f"; ARI {one['ari']:.3f}"
    if "above" in one["disturbed"]:
        same += f", {one['disturbed']['above']:.1f} nats above"
    blocks = one["disturbed"].get("blocks")
    more = f"; {' '.join(f'{name} {number}' for name, number in blocks.items())}" if blocks else ""
    fits = f"clean {of_fit(one['clean'])}; disturbed {of_fit(one['disturbed'])}"
    return f"{head}; {fits}{same}; {told(one['disturbances'])}{more}"


def forms(one: Results) -> list[str]:
    """The kinds of disturbances of a table, and the forms of flags, copies and weights."""
    texts = []
    for kind, parameters in one["disturbances"].items():
        texts.append(kind)
        if kind == "flag":
            share = "even" if abs(parameters["share"] - 0.5) < EVEN else "uneven"
            texts.append(f"flag: {share}, {'frame' if one['frame'] else 'array'}")
        if "form" in parameters:
            texts.append(f"{kind}: {parameters['form']}")
    return texts


def print_shares(title: str, tables: Results, names_of: Callable[[Results], list[str]]) -> None:
    """The share that passes by name; a table may have several names."""
    all_of = Counter(name for one in tables.values() for name in names_of(one))
    passed = Counter(name for one in tables.values() if passes(one) for name in names_of(one))
    stopped = Counter(name for one in tables.values() if one["disturbed"].get("stopped") for name in names_of(one))
    print(f"\n| {title} | tables | pass | share | stopped |\n|---|--:|--:|--:|--:|")
    for name in sorted(all_of):
        share = f"{passed[name] / all_of[name]:.0%}"
        print(f"| {name} | {all_of[name]} | {passed[name]} | {share} | {stopped[name]} |")


def print_failure(seed: str, one: Results) -> None:
    if not passes(one):
        print(line(seed, one), flush=True)


def print_summary(tables: Results) -> None:
    """Shares of the tables that pass."""
    wrong = [seed for seed, one in tables.items() if (one["clean"]["truth"] or 0.0) < RIGHT]
    print(f"\nclean fits with the true clusters: {len(tables) - len(wrong)} of {len(tables)}; others: {wrong}")
    print_shares("all tables", tables, lambda one: ["all", "frames" if one["frame"] else "arrays"])
    print_shares("with this disturbance", tables, forms)
    print_shares("combination", tables, lambda one: [" + ".join(sorted(one["disturbances"]))])
    for name in ("clean", "disturbed"):
        seconds = [one[name]["seconds"] for one in tables.values() if "seconds" in one[name]]
        if seconds:
            print(f"\n{name}: {np.median(seconds):.2f} CPU s in the median, {sum(seconds):.0f} in all", end="")
    print()


def print_changes(before: Results, after: Results) -> None:
    """The tables of both files that pass in one of them."""
    common = [seed for seed in before if seed in after]
    for title, old, new in (("fixed", False, True), ("broken", True, False)):
        changed = [seed for seed in common if passes(before[seed]) is old and passes(after[seed]) is new]
        print(f"\n{title}: {len(changed)} of {len(common)} tables: {' '.join(changed)}")
        if title == "broken":
            for seed in changed:
                print(line(seed, after[seed]))


def write(path: Path | None, results: Results) -> None:
    if path is not None:
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps(results, indent=1), encoding="utf-8")
        partial.replace(path)


def options_of_user() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=1000, help="number of tables (%(default)s)")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="seed of the first table (%(default)s)")
    parser.add_argument("--kinds", nargs="+", choices=ALL_KINDS, default=list(KINDS), help="kinds of disturbances")
    parser.add_argument("--limit", type=float, default=LIMIT, help="CPU seconds of a fit (%(default)s)")
    parser.add_argument("--output", type=Path, help="JSON of the results")
    parser.add_argument("--show", nargs="+", type=Path, help="print the results of a JSON, or changes to a later one")
    return parser.parse_args()


def run(options: argparse.Namespace) -> Results:
    results: Results = {"head": first_line(), "command": command(), "version": sb.__version__, "tables": {}}
    for seed in range(options.first, options.first + options.tables):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results["tables"][str(seed)] = judged(seed, options.kinds, options.limit)
        print_failure(str(seed), results["tables"][str(seed)])
        if seed % 10 == 9:
            write(options.output, results)
    write(options.output, results)
    tables: Results = results["tables"]
    return tables


def show(paths: list[Path]) -> None:
    """Print the last file as `run` prints its results, and the changes from the first one."""
    files = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    print(files[-1]["head"])
    print("tables that fail:")
    for seed, one in files[-1]["tables"].items():
        print_failure(seed, one)
    print_summary(files[-1]["tables"])
    if len(files) > 1:
        print_changes(files[0]["tables"], files[-1]["tables"])


def main() -> None:
    options = options_of_user()
    if options.show:
        show(options.show)
        return
    print_head()
    print("tables that fail:", flush=True)
    print_summary(run(options))


if __name__ == "__main__":
    main()
