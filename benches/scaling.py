"""Time on more threads than the machine has, from a log of every parallel section; and on the threads that it has.

    cargo build --release --package stickbreak-python --features sections
    scripts/setup.sh extension release
    python benches/scaling.py [--jobs small kd_tree] [--threads 1 2] [--places 10]

The core notes on one thread when each section and each of its tasks began and ended. What lies outside sections is
serial. A time on p threads is then the serial time plus, for each section, the time until p workers that take the
tasks in order have done them all, plus the time of a join. Joins are assumed to take 4 us (1 + log2(p) / 2). Tasks
take longer where one core reads what another has written: by how much is measured, as the CPU seconds outside the
serial part on all cores over those on one. For more cores than the machine has this is assumed to stay as it is.
"""

import argparse
import heapq
import math
import os
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import stickbreak as sb
from common.clusters import data_folder
from common.head import print_head
from stickbreak import _core

THREADS = (2, 4, 8, 16, 32, 64)
TASK, TASK_DONE, END = -1, -2, -3
JOIN = 4e-6

Job = Callable[[int], Any]


@dataclass
class Task:
    """Seconds outside nested sections, and these sections."""

    own: float = 0.0
    sections: list["Section"] = field(default_factory=list)

    @property
    def work(self) -> float:
        return self.own + sum(section.work for section in self.sections)

    def seconds(self, p: int, longer: float) -> float:
        """Time on p threads, on which the task's own takes `longer` times as long."""
        return longer * self.own + sum(section.seconds(p, longer) for section in self.sections)

    def total(self, longer: float) -> float:
        """Time on one thread, if what is not a section takes `longer` times as long."""
        return longer * self.own + sum(section.total(longer) for section in self.sections)


@dataclass
class Section:
    caller: str
    tasks: list[Task] = field(default_factory=list)
    # From the beginning to the end on one thread.
    span: float = 0.0

    @property
    def work(self) -> float:
        return self.span

    @property
    def between(self) -> float:
        """Time of the section itself."""
        return self.span - sum(task.work for task in self.tasks)

    def total(self, longer: float) -> float:
        return self.between + sum(task.total(longer) for task in self.tasks)

    def seconds(self, p: int, longer: float) -> float:
        join = JOIN * (1 + math.log2(p) / 2) if len(self.tasks) > 1 else 0.0
        if any(task.sections for task in self.tasks):
            longest = max(task.seconds(p, longer) for task in self.tasks)
            return max(longest, self.total(longer) / p) + join
        free = [0.0] * min(p, len(self.tasks))
        for task in self.tasks:
            heapq.heapreplace(free, free[0] + longer * task.own)
        return max(free, default=0.0) + self.between / p + join


def sections(callers: list[str], nanoseconds: list[int], kinds: list[int]) -> list[Section]:
    """The outermost sections of a log."""
    top = Task()
    tasks, open_sections, begun = [top], [], []
    for now, kind in zip(nanoseconds, kinds, strict=True):
        if kind == TASK:
            tasks.append(Task(own=-now * 1e-9))
        elif kind == TASK_DONE:
            task = tasks.pop()
            task.own += now * 1e-9
            open_sections[-1].tasks.append(task)
        elif kind == END:
            section = open_sections.pop()
            section.span = (now - begun.pop()) * 1e-9
            tasks[-1].sections.append(section)
            tasks[-1].own -= section.span
        else:
            open_sections.append(Section(callers[kind]))
            begun.append(now)
    return top.sections


def clusters(n: int, d: int, k: int, spread: float, dtype: type = np.float64) -> Any:
    rng = np.random.default_rng(0)
    labels = rng.integers(k, size=n)
    rows: Any = rng.normal(scale=spread, size=(k, d))[labels] + rng.normal(size=(n, d))
    return rows.astype(dtype)


def fit(rows: Any, *algorithm: Any, model: Any = None, **options: Any) -> Job:
    model = sb.Mixture(sb.Gaussian()) if model is None else model
    return lambda threads: sb.fit(model, rows, *algorithm, threads=threads, progress=False, seed=0, **options)


def topics() -> Job | None:
    path = data_folder() / "nips" / "docword.nips.txt.gz"
    if not Path(path).exists():
        print(f"left out: {path} is not there")
        return None
    counts = sb.read_docword(path)
    model = sb.TopicModel(sb.LatentDirichlet(100, concentration=10.0), word_concentration=0.1)
    return fit(counts, sb.Memoized(max_passes=100, tol=0), model=model)


JOBS: dict[str, Callable[[], Job | None]] = {
    "default, 200,000 x 8": lambda: fit(clusters(200_000, 8, 30, 2.5)),
    "default, 1,000,000 x 32, float32": lambda: fit(clusters(1_000_000, 32, 50, 1.5, np.float32)),
    "topics, NIPS, K = 100": topics,
    "default, 3,000 x 2": lambda: fit(clusters(3_000, 2, 20, 10.0)),
    "kd-tree, 1,000,000 x 2": lambda: fit(clusters(1_000_000, 2, 20, 6.0), sb.Memoized(units=sb.KdTree())),
}


def measured(job: Job, threads: int) -> tuple[float, float]:
    """Wall and CPU seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    job(threads)
    return time.perf_counter() - wall, time.process_time() - cpu


def show(name: str, job: Job, threads: list[int], places: int, repeats: int) -> None:
    runs = {p: min(measured(job, p) for _ in range(repeats)) for p in threads}
    print(f"\n{name}")
    for p, (wall, cpu) in runs.items():
        print(f"{p} thread(s): {wall:.3f} s, {cpu:.3f} CPU s", end="")
        print(f", {runs[1][0] / wall:.2f} times as fast" if 1 in runs and p > 1 else "")
    if hasattr(_core, "log_sections"):
        show_log(job, places, runs[min(threads)][1], runs[max(threads)][1])


def show_log(job: Job, places: int, alone: float, together: float) -> None:
    # The time without the making of lists from the log.
    seconds: list[float] = []
    log = _core.log_sections(lambda: seconds.append(measured(job, 1)[0]))
    total = seconds[0]
    outer = sections(*log)
    serial = total - sum(section.span for section in outer)
    number = sum(kind >= 0 for kind in log[2])
    print(f"{total:.3f} s on one thread with the log, {100 * serial / total:.1f} % serial, ", end="")
    print(f"{number} sections, {log[2].count(TASK) / number:.1f} tasks each")
    longer = (together - serial) / (alone - serial)
    print(f"tasks take {longer:.2f} times as long on as many threads as measured")
    times = [serial + sum(section.seconds(p, longer) for section in outer) for p in THREADS]
    print("threads     " + "".join(f"{p:8}" for p in THREADS))
    print("model, times" + "".join(f"{total / seconds:8.2f}" for seconds in times))
    show_places(outer, places, longer)


def show_places(outer: list[Section], places: int, longer: float) -> None:
    """What 16 threads lose, by the place of the section."""
    of_place: dict[str, list[float]] = defaultdict(lambda: [0, 0, 0.0, 0.0, 0.0])
    for section in outer:
        line = of_place[section.caller]
        seconds = section.seconds(16, longer)
        for index, value in enumerate((1, len(section.tasks), section.span, seconds, seconds - section.span / 16)):
            line[index] += value
    ranked = sorted(of_place.items(), key=lambda entry: -entry[1][4])[:places]
    if ranked:
        print("sections   tasks   ms on one   on 16   above 1/16   place")
    for place, (number, tasks, span, seconds, lost) in ranked:
        print(f"{number:8} {tasks:7} {span * 1e3:11.1f} {seconds * 1e3:7.1f} {lost * 1e3:12.1f}   {place}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", nargs="*", help="parts of their names; all if left out")
    parser.add_argument("--threads", nargs="*", type=int, default=[1, os.cpu_count() or 1])
    parser.add_argument("--places", type=int, default=0, help="how many places to list that lose most on 16 threads")
    parser.add_argument("--repeats", type=int, default=3, help="measurements, of which the fastest counts")
    options = parser.parse_args()
    print_head()
    if not hasattr(_core, "log_sections"):
        print("without the model: this core keeps no log; build it with the feature `sections`, as above")
    for name, make in JOBS.items():
        if options.jobs is None or any(part in name for part in options.jobs):
            job = make()
            if job is not None:
                show(name, job, options.threads, options.places, options.repeats)


if __name__ == "__main__":
    main()
