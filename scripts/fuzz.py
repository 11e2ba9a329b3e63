"""Throws damaged files, arguments and command lines of every kind at the package, each case in a child process.

    python scripts/fuzz.py --data 100000 --commands 100000 --callables 100000

The kinds are model files, arguments of the usual functions, checkpoints, data files of every format, command lines, all
public callables, and these in forked children and with an interrupt at a random moment. A case must end well or in an
error of stickbreak: no other exception, no crash, no hang, no word on stderr, no memory that the input does not
justify. What does not is printed with its number; `--only files:123` runs that one alone, in this process. Cases depend
on `--seed` and their number only.
"""

from __future__ import annotations

import argparse
import collections
import importlib
import os
import resource
import select
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

KINDS = {
    "files": "fuzzing.model_files",
    "inputs": "fuzzing.inputs",
    "checkpoints": "fuzzing.checkpoints",
    "data": "fuzzing.data_files",
    "commands": "fuzzing.command_lines",
    "callables": "fuzzing.callables",
    "children": "fuzzing.children",
    "interrupts": "fuzzing.interrupts",
}
# Cases in one child: enough that starting it costs little.
_CASES = 2000
# Address space of a child beyond what it has when the cases begin.
_ADDRESS_SPACE = 2 * 1024**3
# Memory that a case of any kind may take.
_MEMORY = 1024**3


@dataclass
class Report:
    """Outcomes of the cases, and the failures."""

    outcomes: collections.Counter[str] = field(default_factory=collections.Counter)
    failures: list[str] = field(default_factory=list)

    def add(self, other: Report) -> None:
        """Take in the cases of another report."""
        self.outcomes += other.outcomes
        self.failures += other.failures


def campaign(kind: str, seed: int, numbers: range, *, seconds: float, jobs: int = 1) -> Report:
    """Run the cases of one kind, or of a module with a function `run`, in children.

    A case that takes longer than `seconds` is a hang.
    """
    chunks = [numbers[i : i + _CASES] for i in range(0, len(numbers), _CASES)]
    report = Report()
    with ThreadPoolExecutor(jobs) as pool:
        for done, part in enumerate(pool.map(lambda chunk: _chunk(kind, seed, chunk, seconds), chunks), start=1):
            report.add(part)
            for failure in part.failures:
                print(failure, flush=True)
            if sys.stderr.isatty():
                print(f"\r{kind}: {done} of {len(chunks)} parts", end="", file=sys.stderr, flush=True)
    return report


def _chunk(kind: str, seed: int, numbers: range, seconds: float) -> Report:
    """Run cases in a child process, and continue after a case that ended it."""
    report = Report()
    while numbers:
        last, ending, words = _child(kind, seed, numbers, seconds, report)
        if last is None:
            report.failures.append(
                f"{kind}:{numbers.start}..{numbers[-1]} (seed {seed}): none begun, {ending}\n{words}"
            )
            return report
        if ending:
            report.failures.append(f"{kind}:{last} (seed {seed}): {ending}\n{words}")
        elif words.strip():
            report.failures.append(f"{kind}:{numbers[0]}..{numbers[-1]} (seed {seed}): words on stderr:\n{words}")
        numbers = range(last + 1, numbers.stop)
    return report


def _child(kind: str, seed: int, numbers: range, seconds: float, report: Report) -> tuple[int | None, str, str]:
    """Return the last case begun, if any, how the child ended if not well, and what it wrote to stderr."""
    command = [sys.executable, os.path.abspath(__file__), "--child", kind, "--seed", str(seed)]
    command += ["--from", str(numbers.start), "--to", str(numbers.stop)]
    last: int | None = None
    environment = {name: value for name, value in os.environ.items() if name != "RUST_BACKTRACE"}
    with tempfile.TemporaryFile("w+b") as stderr, tempfile.TemporaryDirectory(prefix="stickbreak-fuzz-") as folder:
        # The child's files are in a folder of this process, so they are removed even if the child is killed. Words that
        # happen to be paths lead there too.
        environment |= {"TMPDIR": folder, "MPLBACKEND": "Agg", "MALLOC_ARENA_MAX": "2"}
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, env=environment, cwd=folder)
        ending = ""
        for line in _lines(child, seconds):
            if line is None:
                ending = f"no end after {seconds} seconds"
                child.kill()
                break
            word, _, rest = line.partition(" ")
            if word == "begin":
                last = int(rest)
            elif word == "outcome":
                report.outcomes[rest] += 1
            elif word == "failure":
                report.outcomes["failure"] += 1
                report.failures.append(f"{kind}:{last} (seed {seed}): {rest.encode().decode('unicode_escape')}")
        code = child.wait()
        if not ending and code != 0:
            ending = f"the process ended with {code}"
        stderr.seek(0)
        return last, ending, stderr.read().decode(errors="replace")[-3000:]


def _lines(child: subprocess.Popen[bytes], seconds: float) -> Iterator[str | None]:
    """Yield the lines of a child as they come; None where the next one is late."""
    assert child.stdout is not None
    descriptor, rest = child.stdout.fileno(), b""
    with child.stdout:
        # The time for imports does not count.
        allowed = seconds + 60.0
        while select.select([descriptor], [], [], allowed)[0]:
            block = os.read(descriptor, 1 << 16)
            if not block:
                return
            *lines, rest = (rest + block).split(b"\n")
            for line in lines:
                yield line.decode()
            allowed = seconds
        yield None


def _run_child(kind: str, seed: int, numbers: range) -> None:
    """Run cases one after another, and print each number before its case."""
    case = importlib.import_module(KINDS.get(kind, kind))
    memory = importlib.import_module("fuzzing.memory")
    warnings.simplefilter("ignore")
    _limit_memory()
    for number in numbers:
        print(f"begin {number}", flush=True)
        try:
            with memory.limited(_MEMORY, "the case"):
                outcome = f"outcome {case.run(seed, number)}"
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            outcome = "failure " + text.encode("unicode_escape").decode()
        print(outcome)


def _limit_memory() -> None:
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except OSError:  # not Linux
        return
    limit = pages * resource.getpagesize() + _ADDRESS_SPACE
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def main() -> int:
    """Run the campaign; the exit status is the number of failures, at most 100."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for kind in KINDS:
        parser.add_argument(f"--{kind}", type=int, default=1000, help="number of cases (default: 1000)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=20.0, help="that a case may take (default: 20)")
    parser.add_argument("--jobs", type=int, default=1, help="children at the same time (default: 1)")
    parser.add_argument("--only", metavar="KIND:NUMBER", help="run this case alone, in this process")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--from", type=int, dest="first", help=argparse.SUPPRESS)
    parser.add_argument("--to", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        _run_child(arguments.child, arguments.seed, range(arguments.first, arguments.to))
        return 0
    if arguments.only:
        kind, number = arguments.only.split(":")
        os.chdir(tempfile.mkdtemp(prefix="stickbreak-fuzz-"))
        print(importlib.import_module(KINDS[kind]).run(arguments.seed, int(number)))
        return 0
    n_failures = 0
    for kind in KINDS:
        n_cases: int = getattr(arguments, kind)
        started = time.monotonic()
        report = campaign(kind, arguments.seed, range(n_cases), seconds=arguments.seconds, jobs=arguments.jobs)
        counts = ", ".join(f"{count} {outcome}" for outcome, count in sorted(report.outcomes.items()))
        seconds = time.monotonic() - started
        print(f"{kind}: {n_cases} cases in {seconds:.0f} s: {counts}; {len(report.failures)} failures", flush=True)
        n_failures += len(report.failures)
    return min(n_failures, 100)


if __name__ == "__main__":
    sys.exit(main())
