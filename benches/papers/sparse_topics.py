"""The topic models of Hughes and Sudderth (2016), sections 5 and 6: what L topics a word cost and give.

Priors are 0.1 for each topic of a document and 0.1 for each word of a topic. Scores are those of document completion,
nats a held-out word, with proportions by the fixed point ("map") under 0.1 a topic: the mean of five splits of the
words of each test document. Seconds are CPU seconds of one thread without the start (k-means++), which all runs of a
corpus and a number of topics share. Every point is a separate run with its own number of passes; a stochastic one
ends with one more pass, which its seconds include.

Parts, each of which can be run alone; what was measured goes line by line into sparse_topics.jsonl beside the figures,
and is not measured again while it stands there:

settings  delay and decay of stochastic runs by the score of validation documents, a tenth of those to fit
curves    score against seconds by L, memoized and stochastic, and how soon each L is where the dense run ends
step      figure 3: seconds of the parts of a pass by K, of 99 turns by L, of the rest by L, and the distance of a
          document's topics from those of the dense step. Turns are cold, and end only after the hundredth; every fifth
          document is timed
starts    cold starts, cold ones with restarts, and warm ones

python benches/papers/sparse_topics.py [--parts curves step] [--data nips7605 kos] [--topics 50 100] [--passes 8]
"""

import argparse
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import stickbreak as sb
from figures import can_draw, folder, print_head, save

sys.path.insert(1, str(Path(__file__).resolve().parents[1] / "peers"))
from topics import PRIOR, corpus

PARTS = ("settings", "curves", "step", "starts")
WIDTHS = (1, 2, 4, 8, 16, None)
SCHEDULES = ("memoized", "stochastic")
N_BATCHES = 10
SPLITS = 5
LOOKS = (1, 2, 4, 8, 16, 32)
DELAYS, DECAYS = (1.0, 10.0, 100.0), (0.55, 0.75)
NEAR = 0.03
TIMED = 5
# Documents of which the distance between sparse and dense topics is taken.
COMPARED = 100
STARTS = {
    "cold": sb.Words(warm_start=False),
    "cold, 5 restarts": sb.Words(warm_start=False, restarts=5),
    "cold, 20 restarts": sb.Words(warm_start=False, restarts=20),
    "warm from pass 3": sb.Words(),
    "warm, 20 restarts": sb.Words(restarts=20),
}
Record = dict[str, Any]


class Records:
    """What was measured, by what it was measured of."""

    def __init__(self) -> None:
        self.path = folder() / "sparse_topics.jsonl"
        lines = self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else []
        self.all: list[Record] = [json.loads(line) for line in lines]

    def of(self, what: Record) -> list[Record]:
        return [record for record in self.all if what.items() <= record.items()]

    def get(self, of: Record, measure: Callable[[], Record]) -> Record:
        if not self.of(of):
            found = of | measure()
            self.all.append(found)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(found) + "\n")
        return self.of(of)[0]


def named(width: int | None) -> str:
    return "dense" if width is None else f"L = {width}"


def fit(counts: Any, algorithm: Any, init: Any, k: int) -> sb.TopicFit:
    model = sb.TopicModel(sb.LatentDirichlet(k, concentration=PRIOR * k), word_concentration=PRIOR)
    found = sb.fit(model, counts, algorithm, init=init, seed=0, threads=1, progress=False)
    assert isinstance(found, sb.TopicFit)
    return found


def algorithm_of(schedule: str, n: int, passes: int, steps: tuple[float, float], **options: Any) -> Any:
    if schedule == "memoized":
        return sb.Memoized(max_passes=passes, tol=0, **options)
    return sb.Stochastic(-(-n // N_BATCHES), *steps, max_passes=passes, **options)


def scored(found: sb.TopicFit, test: Any) -> float:
    return float(np.mean([found.document_completion(test, seed=split, threads=1) for split in range(SPLITS)]))


def point(counts: Any, test: Any, algorithm: Any, start: sb.TopicFit) -> Record:
    begun = time.process_time()
    found = fit(counts, algorithm, start, start.n_topics)
    seconds = time.process_time() - begun
    proposed, accepted = (sum(getattr(one, of) for one in found.history) for of in ("proposed", "accepted"))
    restarts = {"proposed": proposed, "accepted": accepted}
    return {"seconds": seconds, "score": scored(found, test), "bound": found.elbo / counts.sum()} | restarts


class Corpus:
    """Documents to fit and to score, and the start for each number of topics."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.counts, self.test = corpus(name, 0)
        self.starts: dict[int, sb.TopicFit] = {}

    def start(self, k: int) -> sb.TopicFit:
        if k not in self.starts:
            begun = time.process_time()
            self.starts[k] = fit(self.counts, sb.Full(max_passes=0), "kmeans++", k)
            print(f"  (start of K = {k}: {time.process_time() - begun:.1f} s)", flush=True)
        return self.starts[k]

    def point(self, algorithm: Any, k: int) -> Record:
        return point(self.counts, self.test, algorithm, self.start(k))


def settings(records: Records, own: Corpus, options: argparse.Namespace) -> None:
    order = np.random.default_rng(1).permutation(own.counts.shape[0])
    cut = own.counts.shape[0] // 10
    some, validation = own.counts[np.sort(order[cut:])], own.counts[np.sort(order[:cut])]
    print(
        f"\nStochastic steps, {own.name}, K = 100, L = 8, {options.passes} passes: score of {cut} documents", flush=True
    )
    start = fit(some, sb.Full(max_passes=0), "kmeans++", 100)
    for delay in DELAYS:
        for decay in DECAYS:
            of = {"part": "settings", "data": own.name, "delay": delay, "decay": decay, "passes": options.passes}
            algorithm = algorithm_of("stochastic", some.shape[0], options.passes, (delay, decay))
            found = records.get(of, partial(point, some, validation, algorithm, start))
            print(f"  (t + {delay:g})^-{decay:g}: {found['score']:.4f}, {found['seconds']:.1f} s", flush=True)


def steps_of(records: Records, own: Corpus, options: argparse.Namespace) -> tuple[float, float]:
    """Delay and decay with the best score of validation documents."""
    of = {"part": "settings", "data": own.name}
    if not records.of(of):
        settings(records, own, options)
    best = max(records.of(of), key=lambda one: one["score"])
    return best["delay"], best["decay"]


def widths(k: int, options: argparse.Namespace) -> list[int | None]:
    return [width for width in options.widths if width is None or width < k]


def width_of(text: str) -> int | None:
    return None if text == "dense" else int(text)


def curves(records: Records, own: Corpus, options: argparse.Namespace) -> None:
    looks = [*(look for look in LOOKS if look < options.passes), options.passes]
    for k in options.topics:
        print(f"\nK = {k}, {own.name}: passes: CPU seconds, score", flush=True)
        for schedule in options.schedules:
            steps = steps_of(records, own, options) if schedule == "stochastic" else (0.0, 1.0)
            for width in widths(k, options):
                found = []
                for passes in looks:
                    of = {"part": "curves", "data": own.name, "K": k, "L": width, "schedule": schedule}
                    algorithm = algorithm_of(schedule, own.counts.shape[0], passes, steps, sparsity=width)
                    found.append(records.get(of | {"passes": passes}, partial(own.point, algorithm, k)))
                shown = "   ".join(f"{one['passes']}: {one['seconds']:.1f} s {one['score']:.4f}" for one in found)
                print(f"  {schedule:<11}{named(width):<8}{shown}", flush=True)
            compare(records.of({"part": "curves", "data": own.name, "K": k, "schedule": schedule}))


def compare(found: list[Record]) -> None:
    """Against the dense run: its last score, and the time to come near it."""
    found = sorted(found, key=lambda one: one["passes"])
    dense = [one for one in found if one["L"] is None]
    if not dense:
        return
    print(f"  last score less dense's; seconds until within {NEAR} of that, and how many times sooner; a later pass")
    goal = dense[-1]["score"] - NEAR
    of_dense = next(one["seconds"] for one in dense if one["score"] >= goal)
    for width in WIDTHS:
        points = [one for one in found if one["L"] == width]
        if not points:
            continue
        until = next((one["seconds"] for one in points if one["score"] >= goal), None)
        sooner = "never" if until is None else f"{until:.1f} s, {of_dense / until:.2f}"
        a_pass = (points[-1]["seconds"] - points[0]["seconds"]) / max(1, points[-1]["passes"] - points[0]["passes"])
        last = points[-1]["score"] - dense[-1]["score"]
        print(f"  {named(width):<8}{last:+8.4f}{sooner:>18}{a_pass:8.2f} s", flush=True)


def second_pass(counts: Any, start: sb.TopicFit, width: int | None, turns: int) -> float:
    """CPU seconds of a second pass with new starts and `turns` iterations a document; the better of two runs."""
    best = np.inf
    for _ in range(2):
        times: list[float] = []
        cold = sb.Words(warm_start=False, max_steps=turns, step_tol=0.0)
        algorithm = sb.Full(max_passes=2, tol=0, sparsity=width, units=cold)
        note = [lambda _, times=times: times.append(time.process_time())]
        sb.fit(start.model, counts, algorithm, init=start, seed=0, threads=1, progress=False, callbacks=note)
        best = min(best, times[1] - times[0])
    return best


def parts_of(counts: Any, start: sb.TopicFit, width: int | None) -> Record:
    whole, few = (second_pass(some, start, width, 1) for some in (counts, counts[::10]))
    share = counts[::10].nnz / counts.nnz
    global_step = max(0.0, (few - share * whole) / (1 - share))
    return {"turns": second_pass(counts, start, width, 100) - whole, "rest": whole - global_step, "global": global_step}


def topics_of(counts: Any, start: sb.TopicFit, width: int | None) -> Any:
    """Return the counts of topics of each document, (n, K)."""
    algorithm = sb.Full(max_passes=1, tol=0, sparsity=width, units=sb.Words(warm_start=False))
    return np.array([fit(counts[[own]], algorithm, start, start.n_topics).counts for own in range(counts.shape[0])])


def step_of(own: Corpus, width: int | None, fitted: sb.TopicFit, compared: Any, dense: Any) -> Record:
    found = topics_of(compared, fitted, width)
    gaps = np.abs(found - dense).sum(axis=1) / 2 / dense.sum(axis=1)
    return parts_of(own.counts[::TIMED], fitted, width) | {"distances": np.sort(gaps).tolist()}


def step(records: Records, own: Corpus, options: argparse.Namespace) -> None:
    # Fits need at least as many words as topics.
    long = own.counts[np.flatnonzero(own.counts.sum(axis=1) >= max(options.topics))]
    compared = long[:: max(1, long.shape[0] // COMPARED)][:COMPARED]
    for k in options.topics:
        print(
            f"\nLocal step, {own.name}, K = {k}: CPU seconds of every fifth document; distance from dense", flush=True
        )
        fitted = fit(own.counts, sb.Memoized(max_passes=4, tol=0), own.start(k), k)
        dense = topics_of(compared, fitted, None)
        print(f"  {'':<8}{'99 turns':>10}{'first turn, sums':>18}{'global':>9}{'mean':>9}{'median':>9}{'90 %':>9}")
        for width in widths(k, options):
            of = {"part": "step", "data": own.name, "K": k, "L": width}
            found = records.get(of, partial(step_of, own, width, fitted, compared, dense))
            gaps = np.array(found["distances"])
            middle, high = np.quantile(gaps, [0.5, 0.9])
            print(
                f"  {named(width):<8}{found['turns']:10.2f}{found['rest']:18.2f}{found['global']:9.3f}"
                f"{gaps.mean():9.4f}{middle:9.4f}{high:9.4f}",
                flush=True,
            )


def starts(records: Records, own: Corpus, options: argparse.Namespace) -> None:
    for k in options.topics:
        print(f"\nStarts of documents, {own.name}, K = {k}, {options.passes} passes", flush=True)
        print(f"  {'':<8}{'':<20}{'seconds':>9}{'score':>10}{'bound a word':>14}{'restarts accepted':>20}")
        for width in (8, None):
            for how, words in STARTS.items():
                of = {"part": "starts", "data": own.name, "K": k, "L": width, "how": how, "passes": options.passes}
                algorithm = sb.Memoized(max_passes=options.passes, tol=0, sparsity=width, units=words)
                found = records.get(of, partial(own.point, algorithm, k))
                tried = found["proposed"]
                share = f"{found['accepted'] / tried:.0%} of {tried}" if tried else "-"
                times = f"{found['seconds']:9.1f}{found['score']:10.4f}{found['bound']:14.4f}{share:>20}"
                print(f"  {named(width):<8}{how:<20}{times}", flush=True)


def draw_curves(records: Records, name: str) -> None:
    import matplotlib.pyplot as plt

    all_own = records.of({"part": "curves", "data": name})
    numbers = sorted({one["K"] for one in all_own})
    if not numbers:
        return
    size = (10, 3.2 * len(numbers))
    figure, panels = plt.subplots(
        len(numbers), len(SCHEDULES), figsize=size, squeeze=False, sharey="row", layout="constrained"
    )
    for line, k in zip(panels, numbers, strict=True):
        for panel, schedule in zip(line, SCHEDULES, strict=True):
            for width in WIDTHS:
                of = {"K": k, "schedule": schedule, "L": width}
                own = [one for one in all_own if of.items() <= one.items()]
                if not own:
                    continue
                own.sort(key=lambda one: one["passes"])
                seconds, scores = ([one[what] for one in own] for what in ("seconds", "score"))
                panel.semilogx(seconds, scores, "k--" if width is None else "o-", label=named(width), markersize=4)
            panel.set(title=f"{name}, K = {k}, {schedule}", xlabel="CPU seconds, one thread")
        line[0].set(ylabel="nats a held-out word")
    panels[0, 0].legend(loc="lower right")
    save(figure, f"sparse_topics_{name}")


def draw_step(records: Records, name: str) -> None:
    import matplotlib.pyplot as plt

    all_own = records.of({"part": "step", "data": name})
    numbers = sorted({one["K"] for one in all_own})
    if not numbers:
        return
    figure, panels = plt.subplots(2, 2, figsize=(10, 7), layout="constrained")
    (of_parts, of_turns), (of_rest, of_gaps) = panels
    dense = {one["K"]: one for one in all_own if one["L"] is None}
    numbers = [k for k in numbers if k in dense]
    for what, label in (("turns", "99 turns"), ("rest", "first turn and sums"), ("global", "global step")):
        of_parts.semilogy(numbers, [dense[k][what] for k in numbers], "o-", label=label)
    of_parts.set(title="parts of a pass, dense", xlabel="K", ylabel="CPU seconds")
    of_parts.legend()
    for panel, what, title in ((of_turns, "turns", "99 turns"), (of_rest, "rest", "first turn and sums")):
        for width in WIDTHS:
            own = sorted((one["K"], one[what]) for one in all_own if one["L"] == width)
            if not own:
                continue
            panel.plot(*zip(*own, strict=True), "k--" if width is None else "o-", label=named(width))
        panel.set(title=title, xlabel="K", ylabel="CPU seconds", ylim=(0, None))
    of_turns.legend()
    last = max(one["K"] for one in all_own)
    for one in all_own:
        if one["K"] == last and one["L"] is not None:
            of_gaps.plot(one["distances"], np.linspace(0, 1, len(one["distances"])), label=named(one["L"]))
    of_gaps.set(title=f"distance from dense, K = {last}", xlabel="total variation", ylabel="share of documents")
    of_gaps.legend()
    save(figure, f"sparse_topics_step_{name}")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=PARTS)
    parser.add_argument("--data", nargs="+", default=["nips7605"], help="folders of the data: nips7605, kos, ap, ...")
    parser.add_argument("--topics", type=int, nargs="+", default=[100, 400])
    parser.add_argument("--passes", type=int, default=8)
    parser.add_argument("--widths", nargs="+", type=width_of, default=list(WIDTHS), help="L, or dense")
    parser.add_argument("--schedules", nargs="+", default=list(SCHEDULES), choices=SCHEDULES)
    options = parser.parse_args(arguments)
    # One topic a word is part of the comparison.
    warnings.simplefilter("ignore", sb.SparsityWarning)
    warnings.simplefilter("ignore", sb.ConvergenceWarning)
    print(f"stickbreak {sb.__version__}, one thread; load before {os.getloadavg()[0]:.1f}", flush=True)
    records = Records()
    tasks = {"settings": settings, "curves": curves, "step": step, "starts": starts}
    for name in options.data:
        try:
            own = Corpus(name)
        except (FileNotFoundError, StopIteration):
            print(f"left out: {name} is not among the data")
            continue
        for part in options.parts:
            tasks[part](records, own, options)
        if can_draw():
            draw_curves(records, name)
            draw_step(records, name)
    print(f"\nload after {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    print_head()
    main()
