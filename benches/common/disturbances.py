"""Random tables with known clusters, and disturbances that should not change the clusters.

One integer makes a table and its disturbances. Each kind of disturbance draws from a stream of its own, so its
parameters do not depend on the other kinds.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Labels = NDArray[np.int64]
Parameters = dict[str, Any]

# `near` is not in the default: its difference is near the limit of second moments in float64.
KINDS = ("flag", "constant", "affine", "rounding", "copies", "weights")
ALL_KINDS = (*KINDS, "near")
MOST = 3
# Distances of centres, in standard deviations within clusters: the least at first, and the least after rounding.
NEAREST, FARTHEST, LEAST = 6.0, 9.0, 5.5
# Standard deviations within clusters, in steps of rounding.
COARSE, FINE = 2.0, 30.0


@dataclass(frozen=True)
class Clean:
    """Rows, labels from 0, and means and covariances of the clusters."""

    rows: Array
    labels: Labels
    means: Array
    covariances: Array


@dataclass
class Table:
    """A disturbed table: `origin` has the clean row of each row, `kinds` what each column is."""

    rows: Array
    origin: Labels
    kinds: list[str]
    weights: Array | None
    parameters: dict[str, Parameters]

    def add(self, column: Array, kind: str) -> None:
        self.rows = np.column_stack([self.rows, column])
        self.kinds.append(kind)

    def of_kind(self, kind: str) -> list[int]:
        return [place for place, each in enumerate(self.kinds) if each == kind]


def log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def separation(means: Array, covariances: Array) -> float:
    """The least Mahalanobis distance of two means, under the mean of their covariances."""
    distances = [
        (means[i] - means[j]) @ np.linalg.solve((covariances[i] + covariances[j]) / 2, means[i] - means[j])
        for i in range(len(means))
        for j in range(i)
    ]
    return float(np.sqrt(min(distances)))


def covariance(rng: np.random.Generator, d: int) -> Array:
    """Axes in random directions, whose standard deviations differ by up to ten times."""
    axes = np.linalg.qr(rng.normal(size=(d, d)))[0] * np.exp(rng.uniform(np.log(0.3), np.log(3.0), size=d))
    product: Array = axes @ axes.T
    return product


def clean_table(seed: int) -> Clean:
    """Clear clusters of unequal sizes, in columns of all units."""
    rng = np.random.default_rng([seed, 0])
    d, n = int(rng.integers(2, 9)), round(log_uniform(rng, 200, 5000))
    least = max(30, 5 * d)
    k = int(rng.integers(2, min(6, int(n / (1.2 * least))) + 1))
    sizes = least + rng.multinomial(n - k * least, rng.dirichlet(np.full(k, 2.0)))
    labels = rng.permutation(np.repeat(np.arange(k), sizes))
    covariances = np.stack([covariance(rng, d) for _ in range(k)])
    means = rng.normal(size=(k, d))
    means *= rng.uniform(NEAREST, FARTHEST) / separation(means, covariances)
    rows = means[labels] + np.einsum("nij,nj->ni", np.linalg.cholesky(covariances)[labels], rng.normal(size=(n, d)))
    units = 10.0 ** rng.uniform(-6, 6, size=d)
    # Half of the columns are far from zero.
    offsets = units * rng.normal(size=d) * np.where(rng.random(d) < 0.5, 10.0 ** rng.uniform(0, 5, size=d), 0.0)
    return Clean(rows * units + offsets, labels, means * units + offsets, covariances * np.outer(units, units))


def add_near(table: Table, clean: Clean, rng: np.random.Generator) -> Parameters:
    """The column without which clusters are nearest becomes the difference of two columns of a far larger spread."""
    kept = [np.delete(np.arange(len(table.kinds)), place) for place in table.of_kind("amount")]
    without = [separation(clean.means[:, own], clean.covariances[:, own][:, :, own]) for own in kept]
    place = int(np.argmin(without))
    column, factor = table.rows[:, place].copy(), log_uniform(rng, 1e7, 1e9)
    large = factor * column.std() * rng.normal(size=len(column))
    table.rows[:, place] = large
    table.kinds[place] = "near"
    table.add(large + column, "near")
    return {"factor": factor, "without": without[place]}


def add_flag(table: Table, _clean: Clean, rng: np.random.Generator) -> Parameters:
    share = float(rng.uniform(0.05, 0.95))
    table.add((rng.random(len(table.rows)) < share).astype(float), "flag")
    return {"share": share}


def add_constant(table: Table, _clean: Clean, rng: np.random.Generator) -> Parameters:
    value = float(rng.choice([0.0, 1.0, -999.0, rng.choice([-1, 1]) * log_uniform(rng, 1e-6, 1e6)]))
    table.add(np.full(len(table.rows), value), "constant")
    return {"value": value}


def add_affine(table: Table, _clean: Clean, rng: np.random.Generator) -> Parameters:
    """A column in other units."""
    column = table.rows[:, int(rng.choice(table.of_kind("amount")))]
    a, b = float(rng.choice([-1, 1]) * log_uniform(rng, 1e-3, 1e3)), float(rng.normal())
    b *= abs(a) * float(column.std()) * log_uniform(rng, 1, 1e4)
    a, b = [(a, b), (a, 0.0), (1.8, 32.0), (1.0, 0.0)][rng.choice(4, p=[0.4, 0.2, 0.3, 0.1])]
    table.add(a * column + b, "amount")
    return {"a": a, "b": b}


def to_steps(column: Array, exponent: int | None, step: float) -> Array:
    """Multiples of the step, which is a power of ten if there is an exponent."""
    rounded: Array = np.round(column / step) * step if exponent is None else np.round(column, -exponent)
    return rounded


def drawn_step(rng: np.random.Generator, deviation: float) -> tuple[int | None, float]:
    """The exponent of a power of ten, if the step is one, and the step."""
    step = deviation / log_uniform(rng, COARSE, FINE)
    exponent = int(np.floor(np.log10(deviation / COARSE)))
    return (exponent, 10.0**exponent) if rng.random() < 0.7 else (None, step)


def add_rounding(table: Table, clean: Clean, rng: np.random.Generator) -> Parameters:
    """Draws again if the rounding would bring clusters too near to each other."""
    amounts, d = table.of_kind("amount"), len(clean.means[0])
    labels = clean.labels[table.origin]
    deviations = np.min([table.rows[labels == k].std(axis=0) for k in range(len(clean.means))], axis=0)
    for _ in range(1000):
        some = 1 if rng.random() < 0.4 else rng.integers(1, len(amounts) + 1)
        chosen = amounts if rng.random() < 0.4 else sorted(rng.choice(amounts, some, replace=False).tolist())
        steps = {place: drawn_step(rng, deviations[place]) for place in chosen}
        noise = np.diag([steps[place][1] ** 2 / 12 if place in steps else 0.0 for place in range(d)])
        if separation(clean.means, clean.covariances + noise) >= LEAST:
            break
    else:
        return {"columns": 0}
    finer = np.zeros(len(table.rows), dtype=bool)
    if rng.random() < 0.25:
        finer = rng.random(len(table.rows)) < rng.uniform(0.05, 0.3)
    for place, (exponent, step) in steps.items():
        column = table.rows[:, place]
        tenths = to_steps(column, None if exponent is None else exponent - 1, step / 10)
        table.rows[:, place] = np.where(finer, tenths, to_steps(column, exponent, step))
    return {
        "columns": f"{len(chosen)} of {len(amounts)}",
        "steps": [round(float(deviations[place] / step), 1) for place, (_, step) in steps.items()],
        "of ten": [exponent for exponent, _ in steps.values()],
        "finer": round(float(finer.mean()), 2),
    }


def add_copies(table: Table, clean: Clean, rng: np.random.Generator) -> Parameters:
    n = len(table.rows)
    every = np.arange(n)
    form = str(rng.choice(["bootstrap", "times", "share", "cluster"]))
    found: Parameters = {"form": form}
    if form == "bootstrap":
        chosen = rng.integers(n, size=n)
    elif form == "times":
        found["times"] = int(rng.integers(2, 11))
        chosen = np.repeat(every, found["times"])
    elif form == "share":
        found["share"] = float(rng.uniform(0.1, 0.9))
        chosen = np.concatenate([every, every[rng.random(n) < found["share"]]])
    else:
        found |= {"cluster": int(rng.integers(len(clean.means))), "times": int(rng.integers(2, 17))}
        own = every[clean.labels[table.origin] == found["cluster"]]
        chosen = np.concatenate([every, rng.choice(own, (found["times"] - 1) * len(own))])
    chosen = rng.permutation(chosen)
    table.rows, table.origin = table.rows[chosen], table.origin[chosen]
    return found


def add_weights(table: Table, clean: Clean, rng: np.random.Generator) -> Parameters:
    n, form = len(table.rows), str(rng.choice(["ten", "constant", "uniform", "integers", "cluster"]))
    found: Parameters = {"form": form}
    if form == "ten":
        table.weights = np.full(n, 10.0)
    elif form == "constant":
        found["value"] = log_uniform(rng, 2, 1000)
        table.weights = np.full(n, found["value"])
    elif form == "uniform":
        table.weights = rng.uniform(1, 1800, size=n)
    elif form == "integers":
        table.weights = rng.integers(1, 21, size=n).astype(float)
    else:
        found["cluster"] = int(rng.integers(len(clean.means)))
        table.weights = np.where(clean.labels[table.origin] == found["cluster"], 50.0, 1.0)
    return found


Disturbance = Callable[[Table, Clean, np.random.Generator], Parameters]
DISTURBANCES: dict[str, Disturbance] = {
    "near": add_near,
    "flag": add_flag,
    "constant": add_constant,
    "affine": add_affine,
    "rounding": add_rounding,
    "copies": add_copies,
    "weights": add_weights,
}


def disturbed_table(clean: Clean, seed: int, kinds: Sequence[str] = KINDS) -> Table:
    """The table with one to three disturbances of the given kinds, its columns in random order."""
    rng = np.random.default_rng([seed, 1])
    number = int(rng.integers(1, min(MOST, len(kinds)) + 1))
    chosen = set(rng.choice(sorted(kinds), number, replace=False).tolist())
    # An affine copy is one of the measured values or of the rounded ones.
    order = list(DISTURBANCES)
    if rng.random() < 0.5:
        order.insert(order.index("affine"), order.pop(order.index("rounding")))
    d = len(clean.means[0])
    table = Table(clean.rows.copy(), np.arange(len(clean.rows)), ["amount"] * d, None, {})
    for kind in order:
        if kind in chosen:
            stream = np.random.default_rng([seed, 2 + list(DISTURBANCES).index(kind)])
            table.parameters[kind] = DISTURBANCES[kind](table, clean, stream)
    places = rng.permutation(len(table.kinds))
    table.rows, table.kinds = np.ascontiguousarray(table.rows[:, places]), [table.kinds[place] for place in places]
    return table
