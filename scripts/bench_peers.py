"""Tables of targets and of peers: which figures of which raw files they show."""

from __future__ import annotations

import re
from dataclasses import dataclass

from bench_raw import Raw, Results, Table, short


def goal(label: str, found: list[list[str]], at_most: bool = False) -> list[str]:
    """A row of targets: (value, target) of each measurement; values that miss theirs are bold, "-" is never."""
    cells = []
    for value, target in found:
        if value == "-":
            cells.append("**never**")
            continue
        reached = float(value) <= float(target) if at_most else float(value) >= float(target)
        cells.append(value if reached else f"**{value}**")
    return [label, "; ".join(dict.fromkeys(target for _, target in found)), "; ".join(cells).replace("e-0", "e-")]


def targets(results: Results) -> Table:
    """What the package aims at."""
    rows = [*speed_targets(results), *peer_targets(results)]
    threads = results["threads.txt"].find(r"two threads are ([\d.]+) times .*target ([\d.]+)\)")
    rows.append(goal("two threads, times one", [threads]))
    memory = results["memory.txt"].find(r"above the interpreter: ([\d.]+) MB \(target: less than (\d+)\)")
    rows.append(goal("memory, 4 million x 16 float32, K = 100, MB", [memory], at_most=True))
    held_out = results["held_out.txt"]
    (theirs,) = held_out.find(r"^scikit-learn, start: the demo's +20 .* ([\d.]+ ± [\d.]+)$")
    (ours,) = held_out.find(r"^stickbreak, start: the demo's .* ([\d.]+ ± [\d.]+)$")
    rows.append(["held-out patches, nats each, as scikit-learn", theirs, ours])
    return Table(["", "target", "result"], rows)


def speed_targets(results: Results) -> list[list[str]]:
    """Times as fast as an iteration of scikit-learn."""
    rows = []
    passes = results["scikit_learn.txt"]
    for sizes in re.findall(r"^\(n, D, K\) = (\([^)]*\)),", passes.text, re.MULTILINE):
        part = passes.after(f"(n, D, K) = {sizes}")
        ratio = r"{}: ([\d.]+) times as fast by CPU time \(.*target ([\d.]+)\)"
        found = [part.find(ratio.format(name)) for name in ("float32", "float64")]
        rows.append(goal(f"a pass, every score, {sizes}", found))
    digits, patches = (results["whole_run.txt"].after(f"{name}: (n, D, K)") for name in ("digits", "patches"))
    for name, part in (("digits", digits), ("patches", patches)):
        found = [
            part.find(rf"{span}: .* ([\d.]+) times as fast \(target (\d+)\)") for span in ("all passes", "last ten")
        ]
        rows.append(goal(f"30 passes with margin and bounds, {name}: all; last ten", found))
    losses = [[*part.find(r"log predictive density -?([\d.e-]+)"), "1e-6"] for part in (digits, patches)]
    rows.append(goal("their change of density, nats per row: digits; patches", losses, at_most=True))
    return rows


def peer_targets(results: Results) -> list[list[str]]:
    """Times as fast as bnpy, and seconds to a score of topics."""
    rows = []
    speed = results["peers-speed-passes.txt"]
    for label, setting in (
        ("bnpy's dense pass, float64, every score: digits; patches", "float64, every score"),
        ("bnpy's dense pass, float32, margin and bounds: digits; patches", "float32, margin 20"),
    ):
        ratio = rf"a pass of stickbreak {setting}: .* ([\d.]+) times .*target (\d+)\)"
        found = [speed.after(f"{name}: (n, D, K)").find(ratio) for name in ("digits", "patches")]
        rows.append(goal(label, found))
    bound = results["peers-speed.txt"].after("converged: its bound")
    found = [
        bound.after(f"stickbreak {name}").find(r"that bound: .*; ([\d.]+) times sooner \(target (\d+)\)")
        for name in ("float64, every score", "float32, margin 20")
    ]
    rows.append(goal("bnpy's final bound of the digits: float64; float32", found))
    topics = results["peers-topics.txt"]
    for label, split in (
        ("topics, NIPS, seconds to -7.21, first split: K = 100; 400", r"split 0: +\S+ +\S+ +(\S+);"),
        ("the same, mean of five splits", r"-7.21\): +\S+ +\S+ +(\S+), split 0:"),
    ):
        found = [
            [*topics.find(rf"^K =  {k} stickbreak  .*{split}"), target] for k, target in ((100, "30"), (400, "35"))
        ]
        rows.append(goal(label, found, at_most=True))
    return rows


MIXTURE_ROWS = (
    "stickbreak float64 full dense",
    "stickbreak float64 full L=4",
    "stickbreak float32 full L=4",
    "stickbreak float64 memoized 20 dense",
    "stickbreak float64 memoized 20 L=4",
    "stickbreak float32 memoized 20 L=4",
    "scikit-learn float64 full dense",
    "bnpy float64 full dense",
    "bnpy float64 full L=4",
    "bnpy float64 memoized 20 dense",
    "bnpy float64 memoized 20 L=4",
)


@dataclass(frozen=True)
class Mixture:
    """A row of the comparison with peers."""

    seconds: str
    ratio: str
    megabytes: str
    elbo: str
    held_out: str


def mixture(raw: Raw, name: str) -> Mixture:
    """CPU seconds of a pass and their ratio to scikit-learn's come first; where a run ended comes last."""
    fields = raw.row(name)
    elbo, held_out = (f"{float(value):.3f}" for value in fields[-2:])
    return Mixture(short(fields[1]), fields[2], fields[-4], elbo, held_out)


def mixtures(results: Results) -> Table:
    raw = results["peers-mixture-5-passes.txt"]
    digits, generated = raw.after("mnist: "), raw.after("generated: ")
    rows = []
    for name in MIXTURE_ROWS:
        one, other = mixture(digits, name), mixture(generated, name)
        label = name.replace("memoized 20", "memoized").replace("float64 ", "").replace("L=4", "L = 4")
        rows.append([label, one.seconds, one.ratio, one.megabytes, one.elbo, one.held_out, other.ratio])
    columns = ["", "s", "ratio", "MB", "ELBO", "held out", "ratio, generated"]
    return Table(columns, rows)


def peers(results: Results) -> Table:
    """The front page's choice of `mixtures`."""
    digits = results["peers-mixture-5-passes.txt"].after("mnist: ")
    names = {
        "stickbreak, full, L = 4, float64": MIXTURE_ROWS[1],
        "stickbreak, memoized, L = 4, float32": MIXTURE_ROWS[5],
        "scikit-learn 1.9.1": MIXTURE_ROWS[6],
        "bnpy 0.1.7, full, L = 4": MIXTURE_ROWS[8],
        "bnpy 0.1.7, memoized, L = 4": MIXTURE_ROWS[10],
    }
    found = {label: mixture(digits, name) for label, name in names.items()}
    rows = [[label, one.seconds, one.megabytes, one.elbo, one.held_out] for label, one in found.items()]
    return Table(["", "seconds a pass", "MB above the data", "ELBO, nats a row", "held out"], rows)


TOPICS_ROW = re.compile(
    r"^K = +(?P<k>\d+) (?P<name>[a-z -]+?) +seconds to \(-7.3, .*?\): +(?P<first>\S+) (?P<second>\S+) \S+, split 0:"
    r".*; best (?P<best>\S+), split 0: ",
    re.MULTILINE,
)
TOPICS_NAMES = {"stickbreak restarts": "stickbreak, `restarts=20`", "stickbreak dense": "stickbreak, `sparsity=None`"}


def topics(results: Results) -> Table:
    raw = results["peers-topics.txt"]
    rows = []
    for found in TOPICS_ROW.finditer(raw.text):
        below = ""
        if not found["name"].startswith("stickbreak"):
            part = raw.after(f"K =  {found['k']}")
            below = " ± ".join(part.find(rf"stickbreak less {found['name']}, .*: \+([\d.]+) \(([\d.]+)\)"))
        name = TOPICS_NAMES.get(found["name"], found["name"])
        seconds = [value.replace("-", "never") for value in (found["first"], found["second"])]
        rows.append([f"{found['k']}, {name}", *seconds, found["best"], below])
    return Table(["K, contender", "s to -7.30", "to -7.25", "best", "below the default, paired"], rows)


def samplers(results: Results) -> Table:
    rows = []
    pattern = r"^(\w+), \d+ x \d+, (.*)\n +(\d+) sweeps a second, .*E\[K\] = (\S+) \+- (\S+), E"
    for data, label, sweeps, k, error in re.findall(pattern, results["samplers.txt"].text, re.MULTILINE):
        rows.append([f"{data}, {label.split(', from')[0]}", sweeps, f"{k} ± {error}"])
    return Table(["", "sweeps per second", "E[K]"], rows)


def merges(results: Results) -> Table:
    """Seconds of a pass without and with merges."""
    raw = results["merges.txt"]
    rows = []
    line = r"^ +(\d+) +(\w+) +{} +([\d.]+) +([\d.]+) +(\d+) "
    plain = re.findall(line.format("without"), raw.text, re.MULTILINE)
    merging = re.findall(line.format("with"), raw.text, re.MULTILINE)
    for (k, start, first, later, _), (*_, first_with, later_with, accepted) in zip(plain, merging, strict=True):
        rows.append([f"{k}, {start}", first, first_with, later, later_with, accepted])
    return Table(["K, start", "first pass", "with merges", "later pass", "with merges", "merges"], rows)


def linalg(results: Results) -> Table:
    """Moments in Gflop/s and times of factors, for linalg.md."""
    raw = results["rust/linalg.txt"]
    rows = []
    for d in (2, 4, 8, 16, 25, 32, 50, 64, 100, 128, 256):
        rates = [
            short(raw.find(rf"^moments/D={d}/{name}\s+time: .*\n +thrpt: +\[\S+ \S+ (\S+) Gelem/s")[0])
            for name in ("own", "faer", "faer_lower")
        ]
        times = [
            " ".join(raw.find(rf"^factor/D={d}/{name}\s+time: +\[\S+ \S+ (\S+) (\S+) "))
            for name in ("cholesky", "inverse")
        ]
        rows.append([str(d), *rates, *times])
    return Table(["D", "ours", "faer, whole", "faer, lower", "Cholesky", "triangular inverse"], rows)


TABLES = {
    "linalg": linalg,
    "merges": merges,
    "mixtures": mixtures,
    "peers": peers,
    "samplers": samplers,
    "targets": targets,
    "topics": topics,
}
