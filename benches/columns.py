"""Mixed tables under `Columns`: clusters found beside one-hot Gaussians and peers, and the cost of a pass.

    python benches/columns.py                  # with the peers that are installed
    pip install kmodes stepmix scikit-lego     # the peers, and two of the real tables

`generated`: 6 clusters in 3 numbers, correlated within clusters or not, 3 columns of 5 levels, 2 overdispersed counts
and 2 flags, with and without a fifth of the values missing. `penguins`, `hearts`, `arrests`: tables of scikit-lego;
their classes (species, disease, release) are left out and compared with the clusters. A fifth of the rows is held out:
their mean log density, in nats a row, where a method has one of the same columns (StepMix has a density of counts, not
a probability, and one without a bound of amounts that repeat: of hearts, 30 % of one column are zero). Others see
levels one-hot and holes filled with means, but StepMix leaves holes out. k-prototypes and StepMix find no number of
clusters and are given ours. One thread, CPU seconds of `fit`.

The second table has the seconds of the second pass of a fit from labels, and those of the same blocks fitted alone.
"""

import importlib
import itertools
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score

import stickbreak as sb
from common.head import print_head
from scikit_learn import Stickbreak

ROUNDS = 5
# StepMix gets numbers with at most this many distinct values as categories, because its normal densities of such
# columns have no bound.
FEW = 20
# Labels of the rows, and the mean log density of those held out.
Found = tuple[np.ndarray, float | None]
LEVELS = 5


def generated(n: int, correlation: float, missing: float) -> tuple[pd.DataFrame, np.ndarray]:
    """Rows of six clusters, and their labels."""
    rng = np.random.default_rng(0)
    labels = rng.integers(6, size=n)
    centres = rng.normal(0.0, 2.0, (6, 3))
    factors = np.linalg.cholesky(np.eye(3) + correlation * (np.ones((3, 3)) - np.eye(3)))
    numbers = centres[labels] + rng.normal(size=(n, 3)) @ factors.T
    levels = rng.dirichlet(np.full(LEVELS, 0.5), size=(6, 3)).cumsum(2)[:, :, :-1]
    codes = (rng.random((n, 3, 1)) > levels[labels]).sum(2)
    rates = rng.gamma(1.5, 4.0, (6, 2))
    counts = rng.poisson(rates[labels] * rng.gamma(2.0, 0.5, (n, 2)))
    flags = rng.random((n, 2)) < rng.beta(0.5, 0.5, (6, 2))[labels]
    table = pd.DataFrame(numbers * [1.0, 100.0, 0.01], columns=["height", "income", "share"])
    for place in range(3):
        table[f"kind{place}"] = np.array(["red", "green", "blue", "black", "white"], dtype=object)[codes[:, place]]
    for place in range(2):
        table[f"visits{place}"] = counts[:, place].astype(float)
        table[f"member{place}"] = flags[:, place].astype(float)
    return table.mask(rng.random(table.shape) < missing), labels


def of_lego(name: str, label: str) -> tuple[pd.DataFrame, np.ndarray] | None:
    """A table of scikit-lego without its classes; None where it is not installed."""
    try:
        datasets = importlib.import_module("sklego.datasets")
    except ImportError:
        return None
    table = getattr(datasets, f"load_{name}")(as_frame=True)
    return table.drop(columns=[label]), pd.factorize(table[label])[0]


def one_hot(table: pd.DataFrame) -> np.ndarray:
    """Numbers in units of their deviations, levels as flags, and means for holes."""
    texts = [name for name in table if not pd.api.types.is_numeric_dtype(table[name])]
    wide = pd.get_dummies(table, columns=texts, dtype=float).astype(float)
    wide = wide.fillna(wide.mean())
    return ((wide - wide.mean()) / wide.std().replace(0.0, 1.0)).to_numpy()


def columns(table: pd.DataFrame, held_out: pd.DataFrame) -> Found:
    missing = "marginalize" if table.isna().any(axis=None) else "error"
    model = sb.Mixture(likelihood=sb.columns_for(table, verbose=False))
    fit = sb.fit(model, table, missing=missing, threads=1, progress=False)
    return fit.predict(table), fit.log_predictive(held_out).mean()


def gaussians(table: pd.DataFrame, _: pd.DataFrame) -> Found:
    rows = one_hot(table)
    return sb.fit(sb.Mixture(likelihood=sb.Gaussian()), rows, threads=1, progress=False).predict(rows), None


def k_prototypes(table: pd.DataFrame, _: pd.DataFrame, k: int) -> Found:
    kprototypes = importlib.import_module("kmodes.kprototypes")
    rows = table.copy()
    texts = [name for name in rows if not pd.api.types.is_numeric_dtype(rows[name])]
    for name in rows:
        if name in texts:
            rows[name] = rows[name].astype(object).fillna("none")
        else:
            filled = rows[name].fillna(rows[name].mean())
            rows[name] = (filled - filled.mean()) / (filled.std() or 1.0)
    places = [rows.columns.get_loc(name) for name in texts]
    values = rows.to_numpy(dtype=object)
    return kprototypes.KPrototypes(k, random_state=0, n_init=3).fit_predict(values, categorical=places), None


def step_mix(table: pd.DataFrame, held_out: pd.DataFrame, k: int) -> Found:
    stepmix = importlib.import_module("stepmix.stepmix")
    is_amount = {name: pd.api.types.is_numeric_dtype(table[name]) and table[name].nunique() > FEW for name in table}
    texts = [name for name in table if not is_amount[name]]
    numbers = [name for name in table if is_amount[name]]
    means, scales = table[numbers].mean(), table[numbers].std().replace(0.0, 1.0)
    levels = {name: {level: code for code, level in enumerate(table[name].dropna().unique())} for name in texts}

    def seen(rows: pd.DataFrame) -> pd.DataFrame:
        codes = {name: rows[name].map(levels[name]).astype(float) for name in texts}
        return pd.concat([(rows[numbers] - means) / scales, pd.DataFrame(codes)], axis=1)

    rows = seen(table)
    # Its models for missing values put all rows of these tables in one class, so they are used only where needed.
    suffix = "_nan" if table.isna().any(axis=None) else ""
    parts = {"numbers": {"model": f"gaussian_diag{suffix}", "n_columns": len(numbers)}}
    if texts:
        parts["texts"] = {"model": f"categorical{suffix}", "n_columns": len(texts)}
    model = stepmix.StepMix(k, measurement=parts, n_init=3, random_state=0, progress_bar=0, verbose=0)
    model.fit(rows)
    units = (np.log(scales) * held_out[numbers].notna()).sum(axis=1).mean()
    return np.asarray(model.predict(rows)), model.score(seen(held_out)) - units


def timed(run: Callable[[], Found], labels: np.ndarray) -> tuple[np.ndarray | None, str]:
    """The labels that a method finds, and what is shown of it."""
    start = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found, density = run()
    except ImportError as error:
        return None, f"not installed ({error.name})"
    seconds = time.process_time() - start
    shown = f"{density:>9.3f}" if density is not None else f"{'':>9}"
    return found, f"{len(np.unique(found)):>3} {adjusted_rand_score(labels, found):>6.2f} {shown} {seconds:>8.2f} s"


def split(table: pd.DataFrame) -> np.ndarray:
    """Whether each row is held out: a fifth, but not the first row of a level."""
    held_out = np.random.default_rng(0).random(len(table)) < 0.2
    for name in table:
        if not pd.api.types.is_numeric_dtype(table[name]) or table[name].nunique() <= FEW:
            held_out[table[name].drop_duplicates().index] = False
    return held_out


def compare(name: str, table: pd.DataFrame, labels: np.ndarray) -> None:
    known = labels >= 0
    table, labels = table[known].reset_index(drop=True), labels[known]
    holes = table.isna().to_numpy().mean()
    print(f"{name}: {len(table)} rows, {table.shape[1]} columns, {holes:.0%} missing, {len(np.unique(labels))} classes")
    out = split(table)
    table, held_out, labels = table[~out].reset_index(drop=True), table[out].reset_index(drop=True), labels[~out]
    found, line = timed(lambda: columns(table, held_out), labels)
    print(f"  {'Columns':<24}{line}")
    print(f"  {'Gaussian, one-hot':<24}{timed(lambda: gaussians(table, held_out), labels)[1]}")
    k = 1 if found is None else len(np.unique(found))
    for title, method in (("k-prototypes, our K", k_prototypes), ("StepMix, our K", step_mix)):
        print(f"  {title:<24}{timed(lambda method=method: method(table, held_out, k), labels)[1]}", flush=True)


def numbers_of(n: int, d: int, labels: np.ndarray) -> np.ndarray:
    rng = np.random.default_rng(1)
    return rng.normal(0.0, 3.0, (50, d))[labels] + rng.normal(size=(n, d))


def counts_of(n: int, d: int, labels: np.ndarray) -> np.ndarray:
    rng = np.random.default_rng(2)
    return rng.poisson(rng.gamma(0.5, 4.0, (50, d))[labels]).astype(float)


def codes_of(n: int, d: int, labels: np.ndarray) -> np.ndarray:
    rng = np.random.default_rng(3)
    ends = rng.dirichlet(np.full(5, 0.5), size=(50, d)).cumsum(2)[:, :, :-1]
    return (rng.random((n, d, 1)) > ends[labels]).sum(2).astype(float)


KINDS: dict[str, tuple[sb.model.likelihoods.Likelihood, Callable[[int, int, np.ndarray], np.ndarray]]] = {
    "Gaussian": (sb.Gaussian(), numbers_of),
    "DiagonalGaussian": (sb.DiagonalGaussian(), numbers_of),
    "NegativeBinomial": (sb.NegativeBinomial(), counts_of),
    "Categorical": (sb.Categorical(), codes_of),
}


def passes(shapes: dict[str, int], n: int) -> None:
    """Print the seconds of a pass over blocks together and alone."""
    rng = np.random.default_rng(0)
    labels = rng.integers(50, size=n)
    blocks, parts, first = {}, {}, 0
    for kind, d in shapes.items():
        likelihood, make = KINDS[kind]
        blocks[tuple(range(first, first + d))] = likelihood
        parts[kind] = make(n, d, labels)
        first += d
    together = Stickbreak(np.hstack(list(parts.values())), labels, 50, sb.Columns(blocks))
    alone = [Stickbreak(rows, labels, 50, KINDS[kind][0]) for kind, rows in parts.items()]
    ratios, seconds = [], []
    for _ in range(ROUNDS):
        own = together()[1]
        seconds.append(own)
        ratios.append(own / sum(task()[1] for task in alone))
    shown = " + ".join(f"{kind} {d}" for kind, d in shapes.items())
    low, middle, high = min(ratios), statistics.median(ratios), max(ratios)
    print(f"  {shown:<62}{statistics.median(seconds):>8.3f} s {middle:>6.2f} ({low:.2f} to {high:.2f})", flush=True)


def main() -> None:
    print_head()
    tables: list[tuple[str, Any]] = [
        (f"generated, correlation {correlation}", generated(n, correlation, missing))
        for n, correlation, missing in itertools.product((2_000, 20_000), (0.0, 0.6), (0.0, 0.2))
    ]
    tables += [
        (name, of_lego(name, label))
        for name, label in (("penguins", "species"), ("hearts", "target"), ("arrests", "released"))
    ]
    print(f"  {'':<24}{'K':>3} {'ARI':>6} {'held out':>9} {'CPU':>8}")
    for name, found in tables:
        if found is None:
            print(f"{name}: left out, because scikit-lego is not installed")
        else:
            compare(name, *found)
    print("\nA pass over 100,000 rows, K = 50, one thread: seconds, and their ratio to the blocks alone")
    for shapes in (
        {"DiagonalGaussian": 16, "NegativeBinomial": 16},
        {"DiagonalGaussian": 8, "NegativeBinomial": 4, "Categorical": 4},
        {"NegativeBinomial": 8, "Categorical": 8},
        {"Gaussian": 8, "Categorical": 8},
        {"Gaussian": 32, "NegativeBinomial": 8, "Categorical": 8},
    ):
        passes(shapes, 100_000)


if __name__ == "__main__":
    main()
