"""Tables of the papers' experiments: which figures of which raw files they show."""

from __future__ import annotations

import re

from bench_raw import Raw, Results, Table


def blei_jordan(results: Results) -> Table:
    """How far held-out density is below that of the true partition, and the time, by dimension."""
    raw = results["papers/blei_jordan.txt"]
    dimensions = ("5", "20", "50")
    rows = []
    for label, start in (("sequential starts", "sequential"), ("k-means++", "kmeans++")):
        part = raw.after(f"the best of 20 {start} starts")
        cells = [part.row(d) for d in dimensions]
        rows.append([label, *(f"{cell[4]}; {float(cell[6]):.0f}" for cell in cells)])
    part = raw.after("Gibbs samplers on the same data")
    for sampler in ("truncated", "collapsed"):
        cells = [part.row(f"{d}  {sampler}") for d in dimensions]
        rows.append([f"{sampler} Gibbs", *(f"{cell[2]}; {float(cell[4].split('(')[0]):.0f}" for cell in cells)])
    return Table(["D", *dimensions], rows)


def blei_jordan_images(results: Results) -> Table:
    raw = results["papers/blei_jordan_images.txt"]
    rows = []
    for truncation in ("10", "150"):
        sequential, occupied, _, plus, plus_occupied, _ = raw.row(truncation)
        rows.append([truncation, sequential, occupied, plus, plus_occupied])
    return Table(["T", "sequential starts: bound", "occupied", "k-means++: bound", "occupied"], rows)


def toy(results: Results) -> Table:
    raw = results["papers/memoized_toy.txt"].after("            mean")
    names = {
        "Full": "full",
        "MO": "memoized",
        "SO a": "stochastic, delay 10, decay 0.5",
        "SO b": "stochastic, 100, 0.5",
        "SO c": "stochastic, 10, 0.9",
    }
    rows = []
    for name, label in names.items():
        mean, _, _, _, large, *_ = raw.row(name)
        (complete,) = raw.find(rf"^{name} .* (\d+ of \d+) ")
        rows.append([label, mean, large, complete])
    moves = results["papers/memoized_toy_moves.txt"]
    (truth,) = moves.find(r"less that from the true labels \((\S+)\)")
    gain, *_ = moves.find(r"^ *100 batches, seed 0: one-to-one: yes +\S+ (\S+) ")
    complete, components = moves.find(r"^ *100 batches: (\d+ of \d+) end with (\d+) components, one-to-one")
    rows.append(["from K = 1 with moves", f"{float(truth) + float(gain):.4f}", components, complete])
    return Table(["", "ELBO per row", "components", "all 8 found"], rows)


DIGIT_ROWS = {
    "MO-BM, 20 batches": "K = 1: births, merges, deletes",
    "VDP": "K = 1: one split per pass",
    "Full, kmeans++": "k-means++, full",
    "MO, 20 batches, kmeans++": "k-means++, memoized",
    "Full, random": "random rows, full",
    "MO, 20 batches, random": "random rows, memoized",
}


def digits(results: Results) -> Table:
    raw = results["papers/memoized_mnist.txt"]
    rows = []
    for name, label in DIGIT_ROWS.items():
        (line,) = raw.find(rf"^  {re.escape(name)}  +\d+ (.*)$")
        _, loss, _, *others = re.findall(r"(?:[\d.]+|never)(?: \([^)]*\))?", line)
        in_use, alignment, _, *seconds = (text.split(" (")[0] for text in others)
        rows.append([label, loss, in_use, alignment, *seconds[:2]])
    return Table(["", "loss at the end", "K in use", "alignment", "s to 0.454", "s to 0.441"], rows)


def patches(results: Results) -> Table:
    """Held-out density of mixtures fitted for as long as each other."""
    raw = results["papers/memoized_patches.txt"].after("models: ")
    rows = []
    for name, label in (("births from K = 1", "births, default prior"), ("births, scale 0.1 I", "births, scale 0.1 I")):
        k, passes = raw.find(rf"^  {re.escape(name)}: K = (\d+), (\d+) passes")
        (score,) = raw.find(rf"{re.escape(name)}, predictive ([\d.]+);")
        rows.append([label, passes, k, score, ""])
    for start, label in (("nearest row", "nearest of 200 rows"), ("random", "random"), ("kmeans++", "k-means++")):
        part = raw.after(f"EM, K = 200, {start}")
        passes, score = part.find(r": (\d+) passes, .*; held out ([\d.]+)$")
        advantage = part.find(r"births from K = 1, predictive, less this .*: \+([\d.]+) \(([\d.]+)\)")
        rows.append([f"EM, start: {label}", passes, "200", score, " ± ".join(advantage)])
    return Table(["", "passes", "K", "held out, nats per patch", "default births above it"], rows)


L_ROWS = ("L = 1", "L = 4", "L = 8", "L = 16")


def against_dense(part: Raw, name: str) -> str:
    """How many times sooner a run is where the dense one ends, and how far above it ends."""
    difference, sooner = part.find(
        rf"^  {re.escape(name)} +([+-][\d.]+)(?: \([\d.]+\))? +(?:never|[\d.]+ s, ([\d.]+)) "
    )
    return f"{sooner or 'never'}, {difference}"


def sparse_topics(results: Results) -> Table:
    raw = results["papers/sparse_topics.txt"]
    rows = []
    for name in L_ROWS:
        cells = []
        for corpus in ("K = 100, nips7605: passes", "K = 400, nips7605: passes"):
            memoized = raw.after(corpus)
            cells += [against_dense(memoized, name), against_dense(memoized.after("stochastic L = 1"), name)]
        rows.append([name, *cells])
    return Table(["", "K = 100: memoized", "stochastic", "K = 400: memoized", "stochastic"], rows)


def sparse_mixtures(results: Results) -> Table:
    raw = results["papers/sparse_mixtures.txt"]
    rows = []
    for name in (*L_ROWS, "L = 8, margin"):
        cells = []
        for k in ("K = 200: ", "K = 800: "):
            memoized = raw.after(k).after("memoized: ").after("against dense")
            cells += [
                against_dense(memoized, name),
                against_dense(memoized.after("stochastic: ").after("against dense"), name),
            ]
        rows.append([name, *cells])
    return Table(["", "K = 200: memoized", "stochastic", "K = 800: memoized", "stochastic"], rows)


def whole(number: str) -> str:
    return f"{float(number):,.0f}"


def tree_guided(results: Results) -> Table:
    """K and its effective draws a second on the toy data; the last log joint, mean (deviation), of larger data."""
    raw = results["papers/tree_guided.txt"]
    toys = [raw.after("toy, 1300 rows, DirichletProcess(1)"), raw.after("toy, 1300 rows, NGGP")]
    larger = [raw.after("10k, "), raw.after("nips, ")]
    rows = []
    for name in ("gibbs", "split-merge", "tree-guided, published", "tree-guided, exact"):
        cells = [name]
        for part in toys:
            k, draws = part.find(rf"^{re.escape(name)}  .*\) +([\d.]+) +([\d.]+) ")
            cells += [k, whole(draws)]
        for part in larger:
            score, deviation = part.find(rf"^{re.escape(name)}  .* (-[\d.]+) \( *([\d.]+)\) +[\d.]+ ")
            cells.append(f"{whole(score)} ({whole(deviation)})")
        rows.append(cells)
    return Table(["", "toy, DP: K", "ESS", "toy, NGGP: K", "ESS", "10,000 rows", "NIPS"], rows)


def first_scores(results: Results) -> Table:
    """Seconds to the score that a sampler and a fit reach first."""
    raw = results["papers/tree_guided.txt"]
    rows = []
    for name, label in (
        ("toy", "1,300 rows, 2 columns, 13 clusters"),
        ("10k", "10,000 rows, 6 columns, 120 clusters"),
    ):
        score, seconds, seeds = raw.find(rf"^{name}: (\S+) with .* median of (\S+) s of CPU \((.*)\)$")
        fit, fit_seconds = raw.find(rf"^{name}: fit (\S+) after (\S+) s of CPU")
        sampled = f"{score} after {seconds} s, median of {len(seeds.split())} seeds"
        rows.append([label, f"{fit} after {fit_seconds} s", sampled])
    return Table(["data", "`fit`", "`TreeGuided` from the one-on-top start"], rows)


def accelerated(raw: Raw, case: str) -> dict[str, str]:
    """The fields of a case by name."""
    (line,) = raw.find(rf"^  case {re.escape(case)}; (.*)$")
    return dict(field.rsplit(" ", 1) if "(" not in field else field.split(" ", 1) for field in line.split("; "))


def figure_1(results: Results) -> Table:
    raw = results["papers/accelerated_vdp.txt"].after("figure1")
    rows = []
    for n in (1000, 2000, 5000):
        cells = []
        for name in ("BJ", "VDP", "Fast-VDP"):
            case = accelerated(raw, f"{name}; n {n}")
            bound = float(case["nested bound"]) / n
            cells.append(f"{bound:.3f} ({case['K']}; {float(case['CPU s']):.2g})")
        rows.append([f"{n:,}", *cells])
    return Table(["n", "Blei and Jordan, 20 starts", "VDP", "Fast-VDP"], rows)


def figure_2(results: Results) -> Table:
    raw = results["papers/accelerated_vdp.txt"]
    generated = raw.after("figure2")
    cases = [
        (f"n = {n:,}, {label}", generated, f"n={n}, D=16, c=2, {rule}")
        for n in (100_000, 1_000_000)
        for rule, label in (("gain, the rule", '"gain"'), ("responsibility, the rule", "the paper's rule"))
    ]
    cases += [
        ("D=128, rule", generated, "n=10000, D=128, c=2, gain, the rule"),
        ("D=128, estimated", generated, "n=10000, D=128, c=2, gain, estimated"),
        ("digits, 60,000 x 50", raw, "digits"),
        ("20 newsgroups", raw, "news"),
    ]
    rows = []
    for label, part, name in cases:
        case = accelerated(part, name)
        found, over_rows = case["K"].strip("()").split(", ")
        gap, speed = f"{float(case['gap, nats a row']):.2g}", f"{float(case['speed-up']):.2g}"
        rows.append([label, f"{int(case['units']):,}", gap, speed, f"{found} ({over_rows})"])
    return Table(["", "units", "gap, nats a row", "speed-up", "components (over rows)"], rows)


TABLES = {
    "blei-jordan": blei_jordan,
    "blei-jordan-images": blei_jordan_images,
    "digits": digits,
    "figure-1": figure_1,
    "figure-2": figure_2,
    "first-scores": first_scores,
    "patches": patches,
    "sparse-mixtures": sparse_mixtures,
    "sparse-topics": sparse_topics,
    "toy": toy,
    "tree-guided": tree_guided,
}
