"""What the process of each package does beside its fit: time, memory, and the posterior after some of its passes.

bnpy's process runs it too, so it keeps to what Python 3.8 and NumPy 1.18 know, and imports nothing that is not there.
"""

import contextlib
import json
import os
import sys
import time
from pathlib import Path

import numpy as np
import threadpoolctl


def checkpoints(passes):
    """The passes after which posteriors are scored: all of the first eight, then steps of about a quarter."""
    chosen = [index for index in range(1, passes + 1) if index <= 8]
    while chosen[-1] < passes:
        chosen.append(min(passes, max(chosen[-1] + 1, int(chosen[-1] * 1.25))))
    return chosen


def read_arguments():
    """The folder of the problem, the folder for results, and the settings of this run."""
    problem, results, settings = sys.argv[1:]
    return Path(problem), Path(results), json.loads(settings)


def read_problem(folder):
    """Training rows, labels of the start, and the numbers of the prior."""
    numbers = json.loads((folder / "problem.json").read_text())
    return np.load(str(folder / "train.npy")), np.load(str(folder / "labels.npy")), numbers


def resident_mb(field):
    """Resident memory of this process, now (VmRSS) or at its peak (VmHWM), in units of 10^6 bytes; Linux only."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return float("nan")
    kilobytes = next(row.split()[1] for row in status.splitlines() if row.startswith(field + ":"))
    return int(kilobytes) * 1024 / 1e6


def forget_peak():
    """Let the peak start from what is resident now."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


class Recorder:
    """Clock and memory of a fit. The clock stands while a posterior is written."""

    def __init__(self, folder, passes, scored=None):
        self.folder = folder
        self.checkpoints = checkpoints(passes) if scored is None else scored
        self.wall, self.cpu, self.own_elbo = [], [], []
        self.peak = float("nan")

    def start(self):
        forget_peak()
        self.base = resident_mb("VmRSS")
        self.origin = time.perf_counter(), time.process_time()

    def lap(self, own_elbo, posterior=None):
        """Note the end of a pass; `posterior` gives the parameters, if this is one to be scored."""
        now = time.perf_counter(), time.process_time()
        self.wall.append(now[0] - self.origin[0])
        self.cpu.append(now[1] - self.origin[1])
        self.own_elbo.append(float(own_elbo))
        if posterior is not None and len(self.wall) in self.checkpoints:
            self.save(len(self.wall), posterior())
        after = time.perf_counter(), time.process_time()
        self.origin = tuple(origin + b - a for origin, a, b in zip(self.origin, now, after))  # noqa: B905

    def stop(self):
        self.peak = resident_mb("VmHWM")

    def save_last(self, posterior):
        """The posterior of a run that may have ended early."""
        self.checkpoints = [*(index for index in self.checkpoints if index < len(self.wall)), len(self.wall)]
        self.save(len(self.wall), posterior)

    def save(self, index, posterior):
        np.savez(str(self.folder / ("pass_%04d.npz" % index)), **posterior)  # noqa: UP031

    def write(self, versions, own_evaluation=None):
        """`own_evaluation`: the package's own value of what the scorer computes of the last posterior."""
        blas = [
            " ".join(str(library.get(key)) for key in ("internal_api", "version", "architecture"))
            for library in threadpoolctl.threadpool_info()
            if library["user_api"] == "blas"
        ]
        result = {
            "versions": dict(versions, numpy=np.__version__, python=sys.version.split()[0]),
            "blas": blas,
            "wall_seconds": self.wall,
            "cpu_seconds": self.cpu,
            "own_elbo": self.own_elbo,
            "own_evaluation": own_evaluation,
            "base_mb": self.base,
            "peak_mb": self.peak,
            "checkpoints": self.checkpoints,
            "threads": os.environ.get("OMP_NUM_THREADS"),
        }
        (self.folder / "result.json").write_text(json.dumps(result))
