"""The program of the demo, which needs the packages of the demo."""

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import stickbreak as sb
from stickbreak.demo.figure import draw
from stickbreak.demo.mixture import Settings, fit_patches, score
from stickbreak.demo.patches import PHOTOGRAPHS, Patches, load_photograph, patches
from stickbreak.terminal import plain

MODEL_FILE, FIGURE_FILE = "model.safetensors", "stickbreak.png"


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of the user; see the help of the command."""

    out: Path  # a folder that exists
    n_components: int
    sparsity: int
    max_passes: int
    seed: int
    threads: int | None
    height: int | None
    held_out: bool


def run(options: Options) -> sb.Fit:
    """Fit, print a summary, and write the model file and the figure."""
    began = time.perf_counter()
    settings = Settings(
        n_components=options.n_components,
        sparsity=options.sparsity,
        max_passes=options.max_passes,
        seed=options.seed,
        threads=options.threads,
    )
    photographs = [load_photograph(name, options.height) for name in PHOTOGRAPHS]
    parts = [patches(photograph) for photograph in photographs]
    rows = np.concatenate(parts)
    print(f"Fitting {len(rows):,} patches of {' and '.join(PHOTOGRAPHS)}; Ctrl-C ends it early", flush=True)
    fit = fit_patches(rows, settings)
    for name, value in _summary(fit, rows, settings):
        print(f"  {name:<11} {value}", flush=True)
    fit.save(options.out / MODEL_FILE)
    print(f"  {'model':<11} {plain(str(options.out / MODEL_FILE))}", flush=True)
    draw(options.out / FIGURE_FILE, fit, len(rows), photographs[0], fit.predict(parts[0], threads=settings.threads))
    print(f"  {'figure':<11} {plain(str(options.out / FIGURE_FILE))}")
    print(f"  {'time in all':<11} {time.perf_counter() - began:.1f} s", flush=True)
    if options.held_out:
        _print_held_out(parts, settings)
    return fit


def _summary(fit: sb.Fit, rows: Patches, settings: Settings) -> list[tuple[str, str]]:
    n, dimension = rows.shape
    lines = [
        ("data", f"n = {n:,}, D = {dimension}, {rows.dtype}"),
        ("components", f"{fit.n_components}, of which {fit.n_occupied} in use, from {settings.n_components}"),
        ("ELBO", f"{fit.elbo:.8g} nats, {fit.elbo / n:.3f} a patch"),
    ]
    passes = f"{len(fit.history)} {'pass' if len(fit.history) == 1 else 'passes'}"
    reason = fit.stop_reason.name.lower().replace("_", " ")
    if not fit.history:
        return [*lines, ("fit", f"{passes} ({reason})")]
    seconds = fit.history[-1].seconds
    speed = n * len(fit.history) / seconds
    return [*lines, ("fit", f"{passes} in {seconds:.1f} s ({reason})"), ("speed", f"{speed:,.0f} patches a second")]


def _print_held_out(parts: list[Patches], settings: Settings) -> None:
    for train, test in ((0, 1), (1, 0)):
        print(f"\nFitting {PHOTOGRAPHS[train]} alone", flush=True)
        fit = fit_patches(parts[train], settings)
        mean, error = score(fit.log_predictive(parts[test], threads=settings.threads))
        print(f"  log predictive density of {PHOTOGRAPHS[test]}: {mean:.3f} ± {error:.3f} nats a patch", flush=True)
