"""Kurihara, Welling & Vlassis 2006, figures 1 and 2 and the digits: nodes of kd-trees beside rows.

`plane` and `million` are fits at known truths: units, gaps and CPU seconds of ten Gaussians in 2 columns (10 million
rows) and in 16 (a million). `figure2` varies the number of rows, the columns and the separation about (10,000, 16, 2),
`figure1` compares Blei & Jordan's truncation with 20 of their sequential starts, VDP and Fast-VDP at T = 20, all
rescored under the nested bound. `digits` and `news` are real data: MNIST in 50 components (figure 3), and 20 newsgroups
in 200 topics of words that are neither rare nor in every tenth document, in place of citeseer (tables 1 and 2). One
thread, CPU seconds; the model is the package's Gaussian with its rule, in `figure2` also with an estimated base
measure.

    python benches/papers/accelerated_vdp.py [--parts plane million figure1 ...] [--scale 1.0] [--output FILE]
"""

import argparse
import dataclasses
import functools
import gzip
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import stickbreak as sb
from figures import can_draw, print_head, save

DATA = Path(os.environ.get("STICKBREAK_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
K = 10
USUAL = (sb.Birth(), sb.Merge(), sb.Delete())
# What the paper says: speed-up and free-energy ratio.
PUBLISHED = {"million": (154, 1.01), "digits": (21, 1.044), "news": (6.7, 1.040)}
Row = dict[str, Any]


def gaussians(n: int, dimension: int, separation: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows of ten c-separated Gaussians whose covariances have largest eigenvalue 1, and their labels."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((K, dimension))
    distances = np.linalg.norm(centres[:, None] - centres, axis=-1)[~np.eye(K, dtype=bool)]
    centres *= separation * np.sqrt(dimension) / distances.min()
    labels = rng.integers(K, size=n)
    rows = rng.standard_normal((n, dimension))
    for k in range(K):
        turn = np.linalg.qr(rng.standard_normal((dimension, dimension)))[0]
        root = turn * np.sqrt(rng.uniform(0.2, 1.0, dimension) / 1.0)
        own = labels == k
        rows[own] = rows[own] @ root.T + centres[k]
    return rows, labels


def timed(make: Callable[[], sb.Fit]) -> tuple[sb.Fit, float]:
    """A fit and its CPU seconds."""
    begun = time.process_time()
    found = make()
    return found, time.process_time() - begun


def fit(rows: Any, algorithm: sb.Full, *, process: Any = None, prior: Any = "rule", **options: Any) -> sb.Fit:
    model = sb.Mixture(likelihood=sb.Gaussian(prior=prior), process=process or sb.DirichletProcess())
    return sb.fit(model, rows, algorithm, **{"threads": 1, "progress": False, "seed": 0} | options)


def ratio(fast: float, flat: float) -> float:
    """The free-energy ratio of the paper, of bounds."""
    return 1 + (flat - fast) / abs(flat)


def compared(name: str, rows: np.ndarray, flat: tuple[sb.Fit, float], fast: tuple[sb.Fit, float]) -> Row:
    n = len(rows)
    return {
        "case": name,
        "n": n,
        "D": rows.shape[1],
        "K": (fast[0].n_occupied, flat[0].n_occupied),
        "units": fast[0].history[-1].n_units,
        "rows a unit": n / fast[0].history[-1].n_units,
        "ratio": ratio(fast[0].elbo, flat[0].elbo),
        "gap, nats a row": (flat[0].elbo - fast[0].elbo) / n,
        "CPU s, tree": fast[1],
        "CPU s, rows": flat[1],
        "speed-up": flat[1] / fast[1],
        "passes": (len(fast[0].history), len(flat[0].history)),
    }


def at_truth(name: str, rows: np.ndarray, labels: np.ndarray, units: sb.KdTree, passes: int) -> Row:
    """From the true labels: the whole fit on nodes, its build and one of its passes, beside passes over rows."""
    plain = sb.Full(sparsity=None, margin=None, bounds_memory=0, max_passes=passes, tol=0.0)
    usual = sb.Full(max_passes=passes, tol=0.0)
    _, seconds_of_start = timed(lambda: fit(rows, dataclasses.replace(usual, max_passes=0), init=labels))
    row: Row = {"case": name, "n": len(rows), "D": rows.shape[1], "CPU s, start": seconds_of_start}
    first = dataclasses.replace(usual, units=dataclasses.replace(units, tolerance=1e300), max_passes=1)
    row["CPU s, build"] = timed(lambda: fit(rows, first, init=labels))[1] - seconds_of_start
    whole = dataclasses.replace(usual, units=units, max_passes=100, tol=1e-6)
    found, seconds = timed(lambda: fit(rows, whole, init=labels))
    row["CPU s, whole fit on nodes"] = seconds - seconds_of_start
    last = found.history[-1]
    row |= {"units": last.n_units, "rows a unit": len(rows) / last.n_units, "passes on nodes": len(found.history)}
    for kind, algorithm in (("default", usual), ("plain", plain)):
        flat, seconds = timed(lambda algorithm=algorithm: fit(rows, algorithm, init=labels))  # type: ignore[misc]
        row[f"CPU s a pass, rows, {kind}"] = (seconds - seconds_of_start) / passes
    row["ratio"] = ratio(found.elbo, flat.elbo)
    row["gap, nats a row"] = (flat.elbo - found.elbo) / len(rows)
    # Passes over the last frontier alone, none of which opens a node: between records of a run that has converged.
    seconds_of = [record.seconds for record in found.history]
    sizes = [record.n_units for record in found.history]
    between = [
        after - before
        for before, after, a, b in zip(seconds_of, seconds_of[1:], sizes, sizes[1:], strict=False)
        if a == b
    ]
    row["s a pass, nodes (median)"] = float(np.median(between)) if between else float("nan")
    row["pass speed-up"] = row["CPU s a pass, rows, default"] / row["s a pass, nodes (median)"]
    return row


def plane(scale: float) -> list[Row]:
    rows, labels = gaussians(int(10_000_000 * scale), 2, 2.0)
    return [at_truth("plane", rows, labels, sb.KdTree(tolerance=0.01, refine=False), 3)]


def million(scale: float) -> list[Row]:
    rows, labels = gaussians(int(1_000_000 * scale), 16, 2.0)
    kinds = (("principal", None), ("principal", 1000), ("axis", None), ("axis", 1000))
    return [
        at_truth(
            f"million, {split}, budget {budget}",
            rows,
            labels,
            sb.KdTree(tolerance=0.3, refine=False, split=split, budget=budget),  # type: ignore[arg-type]
            3,
        )
        for split, budget in kinds
    ]


def figure2(scale: float) -> list[Row]:
    """Fast-VDP beside VDP as published (splits, the tail), by n, D and c."""
    tail = sb.DirichletProcess(truncation="tail")
    vdp = sb.Full(sparsity=None, margin=None, moves=(sb.Split(),))
    flat = dataclasses.replace(vdp, bounds_memory=0)
    cases = [(n, 16, 2.0) for n in (1000, 10_000, 100_000, 1_000_000)]
    cases += [(10_000, d, 2.0) for d in (32, 64, 128)] + [(10_000, 16, c) for c in (1.0, 3.0)]
    found = []
    for n, d, c in cases:
        if n > 1_000_000 * scale:
            continue
        rows, _ = gaussians(n, d, c)
        for prior in ("rule", None):
            options = {"rows": rows, "process": tail, "prior": prior}
            of_rows = timed(functools.partial(fit, algorithm=flat, **options))
            for rule, tolerance, split in (("gain", 0.3, "principal"), ("responsibility", 0.1, "axis")):
                units = sb.KdTree(rule=rule, tolerance=tolerance, split=split, refine=False)  # type: ignore[arg-type]
                of_nodes = timed(functools.partial(fit, algorithm=dataclasses.replace(vdp, units=units), **options))
                case = f"n={n}, D={d}, c={c:g}, {rule}, {'the rule' if prior else 'estimated'}"
                found.append(compared(case, rows, of_rows, of_nodes))
    return found


def figure1(scale: float) -> list[Row]:
    """Until T = 20: BJ with 20 starts, VDP and Fast-VDP, rescored by one bound."""
    found = []
    for n in (1000, 2000, 5000):
        rows, _ = gaussians(n, 16, 2.0)
        vdp = sb.Full(sparsity=None, margin=None, moves=(sb.Split(),), max_passes=int(200 * scale) or 1)
        units = sb.KdTree(rule="responsibility", tolerance=0.1, split="axis", refine=False)
        contenders: dict[str, Callable[[], sb.Fit]] = {
            "BJ": lambda rows=rows: fit(  # type: ignore[misc]
                rows,
                sb.Full(sparsity=None, margin=None, max_passes=200),
                process=sb.DirichletProcess(truncation="stick"),
                n_components=20,
                n_init=20,
                init="sequential",
            ),
            "VDP": lambda rows=rows, vdp=vdp: fit(  # type: ignore[misc]
                rows, vdp, process=sb.DirichletProcess(truncation="tail")
            ),
            "Fast-VDP": lambda rows=rows, vdp=vdp, units=units: fit(  # type: ignore[misc]
                rows, dataclasses.replace(vdp, units=units), process=sb.DirichletProcess(truncation="tail")
            ),
        }
        for name, make in contenders.items():
            own, seconds = timed(make)
            again = fit(rows, sb.Full(sparsity=None, margin=None, max_passes=0), init=own.predict_proba(rows))
            found.append({"case": name, "n": n, "K": own.n_occupied, "CPU s": seconds, "nested bound": again.elbo})
    return found


def digits(scale: float) -> list[Row]:
    if not (DATA / "mnist").exists():
        return []
    import digits as mnist

    images = mnist.load()
    rows = images.rows[: int(60_000 * scale)]
    algorithm = sb.Full(moves=USUAL, max_passes=30)
    flat = timed(lambda: fit(rows, algorithm))
    units = sb.KdTree(tolerance=0.1, split="principal", refine=False)
    fast = timed(lambda: fit(rows, dataclasses.replace(algorithm, units=units)))
    if can_draw():
        draw_means(
            {name: images.images(found.components["mean"]) for name, (found, _) in (("nodes", fast), ("rows", flat))}
        )
    return [compared("digits", rows, flat, fast)]


def draw_means(images: dict[str, np.ndarray]) -> None:
    """Mean images by falling count, on the left of the fit on nodes (figure 3)."""
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, len(images), figsize=(12, 6), layout="constrained")
    for panel, (name, means) in zip(panels, images.items(), strict=True):
        side = int(np.ceil(len(means) ** 0.5))
        blank = np.zeros((side * side - len(means), *means.shape[1:]))
        tiles = np.concatenate([means, blank]).reshape(side, side, *means.shape[1:])
        panel.imshow(np.block([list(line) for line in tiles]), cmap="gray", vmin=0, vmax=1)
        panel.set_title(f"fit on {name}: {len(means)} components")
        panel.set_axis_off()
    save(figure, "accelerated_vdp_digits")


def print_clusters(name: str, found: sb.Fit, topics: sb.TopicFit, words: np.ndarray) -> None:
    """The three most frequent topics of each cluster, and words of the first (tables 1 and 2)."""
    print(f"\nclusters of {name}: rows, three most frequent topics, words of the first")
    for count, mean in zip(found.counts, found.components["mean"], strict=True):
        first, *others = np.argsort(-mean)[:3]
        shown = " ".join(words[word] for word in np.argsort(-topics.topics[first])[:9])
        print(f"  {count:6.0f}  {first:3d} {others[0]:3d} {others[1]:3d}  {shown}", flush=True)


def news(scale: float) -> list[Row]:
    """Log counts of topics, as the paper has them of citeseer."""
    path = DATA / "newsgroups20" / "docword.20news.train.txt.gz"
    if not path.exists():
        return []
    with gzip.open(path, "rt") as file:
        n, columns, _ = (int(next(file)) for _ in range(3))
        entries = np.loadtxt(file, dtype=np.int64)
    counts = sparse.csr_array((entries[:, 2].astype(float), (entries[:, 0] - 1, entries[:, 1] - 1)), shape=(n, columns))
    counts = counts[: int(n * scale)]
    in_documents = np.diff(counts.tocsc().indptr)
    is_telling = (in_documents >= 5) & (in_documents < 0.1 * n)
    counts = counts[:, is_telling]
    counts = counts[counts.sum(axis=1) > 0]
    topics = sb.fit(
        sb.TopicModel(process=sb.LatentDirichlet(n_topics=200)), counts, sb.Memoized(max_passes=30), progress=False
    )
    rows = np.log1p(topics.transform(counts) * counts.sum(axis=1)[:, None])
    algorithm = sb.Full(moves=USUAL, max_passes=60)
    flat = timed(lambda: fit(rows, algorithm))
    fast = timed(lambda: fit(rows, dataclasses.replace(algorithm, units=sb.KdTree(tolerance=0.1, refine=False))))
    with gzip.open(path.parent / "vocab.20news.txt.gz", "rt") as file:
        words = np.array(file.read().split())[is_telling]
    for name, (found, _) in (("nodes", fast), ("rows", flat)):
        print_clusters(name, found, topics, words)
    return [compared("news", rows, flat, fast)]


PARTS: dict[str, Callable[[float], list[Row]]] = {
    "plane": plane,
    "million": million,
    "figure2": figure2,
    "figure1": figure1,
    "digits": digits,
    "news": news,
}


def shown(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--scale", type=float, default=1.0, help="share of the rows")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    results: dict[str, list[Row]] = {}
    for part in arguments.parts:
        results[part] = PARTS[part](arguments.scale)
        print(f"\n{part}" + (f"; published {PUBLISHED[part]}" if part in PUBLISHED else ""))
        for row in results[part]:
            print("  " + "; ".join(f"{name} {shown(value)}" for name, value in row.items()), flush=True)
    if arguments.output:
        arguments.output.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    print_head()
    main()
