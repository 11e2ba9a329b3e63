"""Where to stop joining components: the rule of `Fit.combine` on batteries of sets, and the same with one left out.

Every set is fitted once by the default call. The joins are those of `Fit.combine`; the rules differ in where they stop.
The ARI is that of the components' clusters with the first reference labels, without noise.

none      no joins
overlap   the largest fall of the overlap, else an overlap of 0.15: the rule of counts and flags, and of all fits before
rule      the default of `Fit.combine`
left out  the same with the constants of `GRID` that are best on the other batteries
best      the best number of joins, by the labels

The mean over batteries leaves out `shapes`, which are the project's own, but left-out constants are chosen with them.
Sets of more than 20,000 rows are left out. `unseen` was generated after the rule was fixed.

python benches/combine.py [--seeds 0 1 ...] [--sets batteries unseen]
"""

import argparse
import itertools
import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.metrics import adjusted_rand_score

import stickbreak as sb
from common.clusters import Array, DataSet, Labels
from common.head import print_head
from common.shapes import batteries, unseen
from stickbreak.result import stopping

MOST_ROWS = 20_000
NOT_WORSE = "r15 d31 a1 a2 a3 s1 s2 unbalance hepta tetra iris wine engytime".split()
OWN = "shapes"
GRID = [
    stopping.Constants(*values)
    for values in itertools.product(
        (-2.0, -1.28, -0.6),
        (0.2, 0.25, 0.3, 0.35, 0.4),
        (0.7, 0.8, 0.85, 0.9),
        (0.0, 1.0, 2.0, 3.0),
        (0.0, 0.5, 1.0, 2.0),
    )
]


@dataclass(frozen=True)
class Measured:
    """The ARI after 0, 1, ... joins of a set, the joins of the overlap's rule, and the evidence of the other rule."""

    name: str
    group: str
    ari: Array
    overlap: int
    evidence: stopping.Evidence | None

    def rule(self, constants: stopping.Constants = stopping.CHOSEN) -> int:
        return 0 if self.evidence is None else stopping.n_joins(self.evidence, constants)


def measure(one: DataSet, rows: Array, labels: Labels, seed: int) -> Measured:
    fit = sb.fit(sb.Mixture(sb.Gaussian()), rows, threads=1, seed=seed, progress=False)
    clusters = fit.combine(rows, threads=1)
    state = fit._state
    components, values = state.responsibilities(rows, state.sparsity, False, 1)
    shared = stopping.Shared(rows, np.ones(len(rows)), components, values)
    moments = stopping.moments(fit.point_estimates, fit.model.likelihood)
    joins = clusters.joins
    evidence = None
    if joins and moments is not None:
        evidence = stopping.evidence(shared, moments, [join[0] for join in joins], [join[2] for join in joins])
    by_overlap = int(state.joins(rows, None, None, 1)[2].max()) + 1
    predicted, real = fit.predict(rows, threads=1), labels > 0
    levels = [clusters.cut(len(joins) + 1 - made).groups[predicted[real]] for made in range(len(joins) + 1)]
    ari = np.array([adjusted_rand_score(labels[real], level) for level in levels])
    found = Measured(one.name, one.group, ari, len(joins) + 1 - by_overlap, evidence)
    assert len(joins) + 1 - found.rule() == clusters.n_clusters
    return found


def left_out(found: list[Measured]) -> dict[str, int]:
    """The joins of each set under the constants that are best on the sets of other batteries."""
    table = np.array([[one.ari[one.rule(constants)] for one in found] for constants in GRID])
    joins = {}
    for group in dict.fromkeys(one.group for one in found):
        others = np.array([one.group != group for one in found])
        chosen = GRID[int(table[:, others].mean(axis=1).argmax())]
        print(f"without {group}: {chosen}")
        joins |= {one.name: one.rule(chosen) for one in found if one.group == group}
    print(f"constants of the grid, mean ARI: from {table.mean(1).min():.3f} to {table.mean(1).max():.3f}, ", end="")
    print(f"median {np.median(table.mean(1)):.3f}\n")
    return joins


def print_tables(found: list[Measured], unfitted: dict[str, int] | None) -> None:
    rules = {
        "none": lambda one: 0,
        "overlap": lambda one: one.overlap,
        "rule": lambda one: one.rule(),
        "left out": lambda one: one.rule() if unfitted is None else unfitted[one.name],
        "best": lambda one: int(one.ari.argmax()),
    }
    if unfitted is None:
        del rules["left out"]
    table = {name: {one.name: one.ari[rule(one)] for one in found} for name, rule in rules.items()}
    print("| mean ARI | sets | " + " | ".join(rules) + " |\n|---|--:" + "|--:" * len(rules) + "|")
    groups = {
        group: [one.name for one in found if one.group == group] for group in dict.fromkeys(x.group for x in found)
    }
    if len(groups) > 1:
        groups["all but shapes"] = [one.name for one in found if one.group != OWN]
        groups["all"] = [one.name for one in found]
    for group, names in groups.items():
        means = [np.mean([column[name] for name in names]) for column in table.values()]
        print(f"| {group} | {len(names)} | " + " | ".join(f"{mean:.3f}" for mean in means) + " |")
    print(
        "\n| set | components | clusters | " + " | ".join(rules) + " | |\n|---|--:|--:" + "|--:" * len(rules) + "|---|"
    )
    for one in found:
        values = [column[one.name] for column in table.values()]
        worse = "worse than overlap" if table["rule"][one.name] < table["overlap"][one.name] - 1e-3 else ""
        kept = " (must not be worse)" if one.name in NOT_WORSE else ""
        number = f"{len(one.ari)} | {len(one.ari) - one.rule()}"
        print(f"| {one.name}{kept} | {number} | " + " | ".join(f"{value:.3f}" for value in values) + f" | {worse} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=(0,))
    parser.add_argument("--sets", nargs="+", choices=("batteries", "unseen"), default=("batteries", "unseen"))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for seed, kind in itertools.product(options.seeds, options.sets):
        print(f"\n{kind}, seed {seed}\n")
        sets = [(one, *one.make()) for one in (batteries() if kind == "batteries" else unseen())]
        found = [
            measure(one, rows, labels, seed)
            for one, rows, labels in sets
            if labels is not None and len(rows) <= MOST_ROWS
        ]
        print_tables(found, left_out(found) if kind == "batteries" else None)


if __name__ == "__main__":
    print_head()
    main()
