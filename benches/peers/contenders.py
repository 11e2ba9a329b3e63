"""Who takes part, and how one of them is run in a process of its own."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(1, str(Path(__file__).resolve().parents[1]))
from common.head import command as command
from common.head import first_line as first_line
from common.head import print_head as print_head
from common.head import processor as processor

HERE = Path(__file__).resolve().parent
THREADS = ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMEXPR", "VECLIB")
# Kernels that an OpenBLAS falls back to on a processor that is newer than itself.
FALLBACK_KERNELS = {"Barcelona", "Prescott", "Core2", "Nehalem", "Generic"}


class Failed(Exception):
    """How the process of a contender ended."""


@dataclass(frozen=True)
class Contender:
    """A package with its settings; `dense_full` marks those whose steps should be the same."""

    name: str
    package: str
    python: str = sys.executable
    dtype: str = "float64"
    batches: int = 1
    sparsity: int | None = None
    environment: dict[str, str] = field(default_factory=dict)
    # What the script of the package knows beside the above.
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def dense_full(self) -> bool:
        return self.batches == 1 and self.sparsity is None

    def run(self, problem: Path, results: Path, passes: int) -> dict[str, Any]:
        """Run it and return what its recorder wrote."""
        results.mkdir()
        settings = {
            "dtype": self.dtype,
            "batches": self.batches,
            "sparsity": self.sparsity,
            "passes": passes,
            **self.more,
        }
        script = HERE / f"run_{self.package.replace('-', '_')}.py"
        arguments = [self.python, "-W", "ignore::DeprecationWarning", script, problem, results, json.dumps(settings)]
        environment = clean_environment() | self.environment
        if self.python != sys.executable:
            environment.pop("PYTHONPATH", None)
        done = subprocess.run(arguments, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            raise Failed(last_line(done.stderr) or f"ended with status {done.returncode}")
        return json.loads((results / "result.json").read_text())


def last_line(text: str) -> str:
    return (text.strip().splitlines() or [""])[-1]


def clean_environment() -> dict[str, str]:
    """One thread for every BLAS, and nothing that keeps OpenBLAS from its best kernels."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OPENBLAS_")}
    return kept | {f"{library}_NUM_THREADS": "1" for library in THREADS}


def own_and_scikit_learn(batches: int) -> list[Contender]:
    def ours(dtype: str, batches: int, sparsity: int | None) -> Contender:
        schedule = "full" if batches == 1 else f"memoized {batches}"
        width = "dense" if sparsity is None else f"L={sparsity}"
        name = f"stickbreak {dtype} {schedule} {width}"
        return Contender(name, "stickbreak", dtype=dtype, batches=batches, sparsity=sparsity)

    return [
        ours(dtype, number, sparsity)
        for number in (1, batches)
        for dtype, sparsity in (("float64", None), ("float64", 4), ("float32", 4))
    ] + [Contender("scikit-learn float64 full dense", "scikit-learn")]


def bnpy(python: str | None, batches: int) -> tuple[list[Contender], str]:
    """Its schedules, or none, and a message for the reader."""
    if python is None:
        return [], "bnpy left out: say where it is with --bnpy PYTHON or BNPY_PYTHON (see setup_bnpy.sh)"
    report = probe(python)
    if "error" in report:
        return [], f"bnpy left out: {report['error']}"
    environment, message = {}, "bnpy 0.1.7"
    if report["kernels"] in FALLBACK_KERNELS and report["avx2"]:
        environment = {"OPENBLAS_CORETYPE": "Haswell"}
        message += f": its OpenBLAS takes this processor for {report['kernels']}; given the kernels of Haswell"
    widths = [None, 4] if report["sparse"] else [None]
    if not report["sparse"]:
        message += "; built without its C++ library, so no L=4"
    common = {"package": "bnpy", "python": python, "environment": environment}
    return [
        Contender(
            f"bnpy float64 {'full' if number == 1 else f'memoized {number}'} {'dense' if width is None else 'L=4'}",
            batches=number,
            sparsity=width,
            **common,
        )
        for number in (1, batches)
        for width in widths
    ], message


def probe(python: str) -> dict[str, Any]:
    """What the other environment has."""
    program = """
import json, threadpoolctl, numpy, bnpy
from bnpy.util.lib.sparseResp import LibSparseResp
kernels = [library.get("architecture") for library in threadpoolctl.threadpool_info() if library["user_api"] == "blas"]
try:
    avx2 = " avx2 " in open("/proc/cpuinfo").read()
except OSError:
    avx2 = False
kernels = kernels[0] if kernels else None
print(json.dumps({"sparse": LibSparseResp.hasEigenLibReady, "kernels": kernels, "avx2": avx2}))
"""
    environment = clean_environment()
    environment.pop("PYTHONPATH", None)
    try:
        done = subprocess.run([python, "-c", program], env=environment, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        return {
            "error": f"its interpreter cannot import it ({last_line(getattr(error, 'stderr', None) or str(error))})"
        }
    return json.loads(done.stdout.splitlines()[-1])
