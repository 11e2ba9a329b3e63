"""The first lines of a raw file: the commit that was measured, the date and the CPU, then the command with its options.

As a program it prints the first one, for the benches in Rust. `scripts/bench_raw.py` reads it.
"""

import os
import platform
import shlex
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# The code that a bench runs.
CODE = ("src", "crates", "python", "Cargo.lock")


def git(*arguments: str) -> str:
    """What git prints, or nothing outside a checkout."""
    try:
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


def cpuinfo(field: str) -> str:
    """A field of the first processor in Linux's list, or nothing."""
    try:
        rows = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ""
    return next((row.split(":")[1].strip() for row in rows if row.startswith(field)), "")


def processor() -> str:
    """The model of the processor, with AVX-512 where it has that: much depends on it."""
    model = cpuinfo("model name") or platform.processor() or platform.machine()
    return f"{model} (AVX-512)" if "avx512f" in cpuinfo("flags").split() else model


def first_line() -> str:
    commit = git("rev-parse", "--short=9", "HEAD") or "unknown"
    changes = " with uncommitted changes" if git("status", "--porcelain", "--", *CODE) else ""
    return f"commit {commit}{changes}, {time.strftime('%Y-%m-%d')}, {processor()}, {os.cpu_count()} processors"


def command() -> str:
    """The command of this bench, as from the root of the checkout."""
    bench = Path(sys.argv[0]).resolve()
    name = bench.relative_to(ROOT) if bench.is_relative_to(ROOT) else bench
    return shlex.join(["python", name.as_posix(), *sys.argv[1:]])


def print_head() -> None:
    print(first_line(), command(), sep="\n", flush=True)


if __name__ == "__main__":
    print(first_line())
