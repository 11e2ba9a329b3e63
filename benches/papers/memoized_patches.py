"""Image patches as in Hughes and Sudderth (2013), section 4.4: births and merges from K = 1 against K = 100 throughout.

Patches of 8 x 8 pixels of the 200 training photographs of BSDS500, each less its mean (see patch_rows.py): four pixels
apart, 1,880,200 as in the paper, in memory; and two apart, 7,441,800, made anew by a generator in every pass. Zero-mean
Gaussians, Dirichlet process of concentration 1, prior that follows the data, 20 batches, float32.

stream   two apart. Peak memory is that of the process so far, so this comes first.
bounds   four apart, random and k-means++ starts. Stochastic steps have the length (t + 10)^-0.5 (the paper's a); such
         runs do not know their bound: each point is a run of its own, with one more pass for the bound.
models   births, and K = 200 expectation maximisation for the same seconds: held-out log density of patches of the
         validation photographs (standard errors over photographs), and denoising of 30 of these, sigma = 25 / 255, by
         all, by the most probable component of a patch and by all components (see denoising.py). Births under the prior
         that follows the data, and under that of the digits, scale 0.1 I (a tenth of white squared), which leaves what
         is finer than a grey value or two to few components. EM starts from random rows, from k-means++, and from
         labels that say which of 200 random rows is nearest; the fit that does best on what is held out denoises.

python benches/papers/memoized_patches.py [--only stream bounds models] [--rows N] [--passes 20] [--seconds 120]
    [--threads 2] [--seed 0]
"""

import argparse
import os
import resource
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import stickbreak as sb
from denoising import Prior, denoise, noisy_versions, psnr
from figures import print_head
from images import Photographs, photographs
from patch_rows import N_COLUMNS, Rows, n_patches, rows_of, stream

Array = NDArray[np.float64]
Data = Rows | Callable[[], Iterator[Rows]]
SECTIONS = ("stream", "bounds", "models")
N_BATCHES = 20
FIXED = 100
N_EM = 200
DELAY, DECAY = 10.0, 0.5
LOOKS = (1, 3, 10, 30, 100)
SIGMA = 25 / 255
STARTS = ("random", "kmeans++")
NEAREST = "nearest row"
BIRTHS = "births from K = 1"
WIDE = "births, scale 0.1 I"
SCALE = 0.1
BLOCK = 50_000


@dataclass(frozen=True)
class Setting:
    """What all runs share."""

    rows: int | None
    passes: int
    seconds: float
    sparsity: int
    threads: int
    seed: int
    held_out: int
    photographs: int

    def every(self, n: int) -> int:
        """One in so many of `n` patches."""
        return 1 if self.rows is None else max(1, n // self.rows)


@dataclass
class Trace:
    """A run: bounds a row, seconds and components by pass."""

    passes: list[int] = field(default_factory=list)
    bounds: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    components: list[int] = field(default_factory=list)

    def add(self, passes: int, bound: float, seconds: float, components: int) -> None:
        self.passes.append(passes)
        self.bounds.append(bound)
        self.seconds.append(seconds)
        self.components.append(components)


Traces = dict[str, Trace]


def fit(
    data: Data, algorithm: sb.Memoized | sb.Stochastic, setting: Setting, *, seconds: float = np.inf, **options: object
) -> sb.Fit:
    """Of a Dirichlet process where `options` name no other model; the pass that reaches `seconds` is the last one."""
    model = options.pop("model", sb.Mixture(likelihood=sb.ZeroMeanGaussian(), process=sb.DirichletProcess(1.0)))
    return sb.fit(
        model,
        data,
        algorithm,
        seed=setting.seed,
        threads=setting.threads,
        progress=False,
        callbacks=[lambda record: record.seconds >= seconds],
        **options,
    )


def memoized(setting: Setting, data: Data, **options: object) -> sb.Memoized:
    return sb.Memoized(N_BATCHES, shuffle=not callable(data), sparsity=setting.sparsity, tol=0, **options)


def moves() -> tuple[sb.Birth, sb.Merge, sb.Delete]:
    return sb.Birth(), sb.Merge(), sb.Delete()


def births(data: Data, setting: Setting, passes: int, seconds: float = np.inf, **options: object) -> sb.Fit:
    return fit(data, memoized(setting, data, moves=moves(), max_passes=passes), setting, seconds=seconds, **options)


def memoized_trace(found: sb.Fit, n: int) -> Trace:
    trace = Trace()
    for record in found.history:
        trace.add(record.index + 1, record.elbo / n, record.seconds, record.n_components)
    return trace


def stochastic_trace(data: Data, n: int, setting: Setting, init: str) -> Trace:
    trace = Trace()
    for passes in [*(look for look in LOOKS if look < setting.passes), setting.passes]:
        with warnings.catch_warnings():
            # A decay of 0.5 is warned of, but is what the paper has.
            warnings.simplefilter("ignore", sb.StepSizeWarning)
            steps = sb.Stochastic(
                -(-n // N_BATCHES),
                DELAY,
                DECAY,
                shuffle=not callable(data),
                sparsity=setting.sparsity,
                max_passes=passes,
            )
        found = fit(data, steps, setting, n_components=FIXED, init=init)
        trace.add(passes, found.elbo / n, found.history[-1].seconds, found.n_occupied)
    return trace


def compare(data: Data, n: int, setting: Setting, starts: Sequence[str]) -> Traces:
    """Births, and fixed numbers of components from each start, each printed as soon as it is there."""
    found = births(data, setting, setting.passes)
    traces = {BIRTHS: memoized_trace(found, n)}
    show(BIRTHS, traces[BIRTHS])
    show_moves(found, n)
    print(f"    peak memory so far {peak():.0f} MiB", flush=True)
    for start in starts:
        options = {"n_components": FIXED, "init": start}
        own = fit(data, memoized(setting, data, max_passes=setting.passes), setting, **options)
        traces[f"MO, {start}"] = memoized_trace(own, n)
        show(f"MO, {start}", traces[f"MO, {start}"])
        traces[f"SO, {start}"] = stochastic_trace(data, n, setting, start)
        show(f"SO, {start}", traces[f"SO, {start}"])
    best = max((trace.bounds[-1], name) for name, trace in traces.items() if name != BIRTHS)
    print(f"  {BIRTHS}: {traces[BIRTHS].bounds[-1] - best[0]:+.4f} nats a patch against the best other, {best[1]}")
    for name, trace in traces.items():
        until = reached(traces[BIRTHS], trace.bounds[-1])
        if name != BIRTHS and until is not None:
            print(
                f"  as good as {name} ends: after pass {until[0]}, {until[1]:.1f} s (there {trace.seconds[-1]:.1f} s)"
            )
    print(f"  peak memory so far {peak():.0f} MiB", flush=True)
    return traces


def reached(trace: Trace, bound: float) -> tuple[int, float] | None:
    """The pass after which a bound is reached, and the seconds until then."""
    points = zip(trace.passes, trace.seconds, trace.bounds, strict=True)
    return next(((passes, seconds) for passes, seconds, own in points if own >= bound), None)


def show(name: str, trace: Trace) -> None:
    print(f"  {name}: pass: ELBO a patch, K, seconds")
    points = zip(trace.passes, trace.bounds, trace.components, trace.seconds, strict=True)
    line = [f"{passes}: {bound:.4f}, {k}, {seconds:.1f}" for passes, bound, k, seconds in points]
    for begin in range(0, len(line), 5):
        print("    " + "   ".join(line[begin : begin + 5]), flush=True)


def show_moves(found: sb.Fit, n: int) -> None:
    print("    moves by pass: accepted of proposed (nats a patch)")
    for record in found.history:
        own = (f"{move.kind} {move.accepted} of {move.proposed} ({move.gain / n:.4f})" for move in record.moves)
        print(f"    {record.index + 1:>3}  " + "   ".join(own), flush=True)


def peak() -> float:
    """The most memory that this process has had, MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def report_stream(train: Photographs, setting: Setting) -> Traces:
    own = train[:: setting.every(n_patches(train, 2))]
    n = n_patches(own, 2)
    size = n * N_COLUMNS * 4 / 2**20
    print(f"\nstream: {n} patches two apart, of {len(own)} photographs; as an array {size:.0f} MiB")
    data = stream(own, 2, N_BATCHES)
    begun = time.perf_counter()
    held = peak()
    for _ in data():
        pass
    print(
        f"  reading alone {time.perf_counter() - begun:.1f} s a pass; peak memory before it {held:.0f} MiB", flush=True
    )
    return compare(data, n, setting, STARTS[:1])


def report_bounds(train: Photographs, setting: Setting) -> Traces:
    rows, _ = rows_of(train, 4, setting.every(n_patches(train, 4)))
    print(f"\nbounds: {len(rows)} patches four apart", flush=True)
    return compare(rows, len(rows), setting, STARTS)


def nearest(rows: Rows, setting: Setting) -> NDArray[np.intp]:
    """The nearest of K random rows, for every row; rows that are in two lists belong to the first."""
    chosen = np.random.default_rng(setting.seed).choice(len(rows), N_EM, replace=False)
    seeds = rows[chosen]
    half = (seeds**2).sum(axis=1) / 2
    with threadpool_limits(setting.threads):
        parts = [(rows[i : i + BLOCK] @ seeds.T - half).argmax(axis=1) for i in range(0, len(rows), BLOCK)]
    labels = np.concatenate(parts)
    labels[chosen] = np.arange(N_EM)
    return labels


def expectation_maximisation(rows: Rows, setting: Setting, start: str, seconds: float) -> sb.Fit:
    """Of maximum likelihood, in so many seconds, those of the start included."""
    model = sb.Mixture(likelihood=sb.ZeroMeanGaussian(), process=sb.FiniteDirichlet(N_EM))
    begun = time.perf_counter()
    init = nearest(rows, setting) if start == NEAREST else start
    left = seconds - (time.perf_counter() - begun)
    algorithm = memoized(setting, rows, objective="ml", max_passes=100_000)
    return fit(rows, algorithm, setting, seconds=left, model=model, init=init)


def by_photograph(scores: Array, owners: NDArray[np.intp]) -> Array:
    """Means over the patches of each photograph: these are independent, patches of one photograph are not."""
    return np.bincount(owners, scores) / np.bincount(owners)


def report_models(train: Photographs, validation: Photographs, setting: Setting) -> None:
    rows, _ = rows_of(train, 4, setting.every(n_patches(train, 4)))
    held_out, owners = rows_of(validation, 4, max(1, n_patches(validation, 4) // setting.held_out))
    print(f"\nmodels: {len(rows)} patches four apart, {len(held_out)} of {len(validation)} photographs held out")
    wide = sb.ZeroMeanGaussian(scale=SCALE * np.eye(N_COLUMNS))
    models = {BIRTHS: sb.ZeroMeanGaussian(), WIDE: wide}
    own: dict[str, sb.Fit] = {}
    densities: dict[str, Array] = {}
    for name, likelihood in models.items():
        model = sb.Mixture(likelihood=likelihood, process=sb.DirichletProcess(1.0))
        found = own[name] = births(rows, setting, 100_000, setting.seconds, model=model)
        print(f"  {name}: K = {found.n_components}, {len(found.history)} passes, {found.history[-1].seconds:.1f} s")
        for kind, plain in (("predictive", False), ("plug-in", True)):
            scores = found.log_predictive(held_out, plug_in=plain, threads=setting.threads)
            densities[f"{name}, {kind}"] = by_photograph(scores, owners)
    print("  held out, nats a patch: " + _means(densities), flush=True)
    seconds = own[BIRTHS].history[-1].seconds
    best: tuple[float, sb.Fit] | None = None
    for start in (NEAREST, *STARTS):
        em = expectation_maximisation(rows, setting, start, seconds)
        scores = by_photograph(em.log_predictive(held_out, threads=setting.threads), owners)
        best = max(best or (-np.inf, em), (scores.mean(), em), key=lambda each: each[0])
        print(
            f"  EM, K = {N_EM}, {start}: {len(em.history)} passes, {em.history[-1].seconds:.1f} s; log likelihood "
            f"{em.elbo / len(rows):.4f} a training patch; held out {scores.mean():.4f}"
        )
        for name, ours in densities.items():
            print(f"    {name}, less this (standard error): {_difference(ours, scores)}", flush=True)
    assert best is not None
    chosen = validation[:: max(1, len(validation) // setting.photographs)][: setting.photographs]
    priors = {"births": Prior.of(own[BIRTHS]), "wide": Prior.of(own[WIDE]), "EM": Prior.of(best[1])}
    report_denoising(chosen, setting, priors | {"one": Prior.single(rows)})


def variants(priors: dict[str, Prior]) -> dict[str, tuple[Prior, bool]]:
    """The choice of one component for a patch, as published; then, for mixtures, the mean under all."""
    mixtures = {f"{name}, all": (own, True) for name, own in priors.items() if len(own.log_weights) > 1}
    return {name: (own, False) for name, own in priors.items()} | mixtures


def _means(densities: dict[str, Array]) -> str:
    return "; ".join(f"{name} {values.mean():.4f}" for name, values in densities.items())


def _difference(ours: Array, other: Array) -> str:
    gaps = ours - other
    error = f"{gaps.std(ddof=1) / np.sqrt(len(gaps)):.4f}" if len(gaps) > 1 else "none"
    return f"{gaps.mean():+.4f} ({error})"


def report_denoising(images: Photographs, setting: Setting, priors: dict[str, Prior]) -> None:
    """Peak signal-to-noise ratios by all mixtures, beside one Gaussian for all patches."""
    print(f"\ndenoising: {len(images)} photographs, sigma = {SIGMA * 255:.0f} / 255; decibels")
    ways = variants(priors)
    print(f"  {'':<6}" + "".join(f"{name:>12}" for name in ("noisy", *ways, "seconds")))
    table = []
    for index, (truth, noisy) in enumerate(noisy_versions(images, SIGMA)):
        begun = time.perf_counter()
        cleaned = (denoise(noisy, SIGMA, own, setting.threads, mixed=mixed) for own, mixed in ways.values())
        table.append([psnr(noisy, truth), *(psnr(image, truth) for image in cleaned)])
        _show_decibels(f"{index}", [*table[-1], time.perf_counter() - begun])
    decibels = np.array(table)
    _show_decibels("mean", decibels.mean(axis=0))
    columns = dict(zip(ways, decibels[:, 1:].T, strict=True))
    for name, values in columns.items():
        for other in ("EM", "EM, all"):
            if not name.startswith(("EM", "one")):
                gaps = values - columns[other]
                print(
                    f"  {name} less {other} (standard error): {_difference(values, columns[other])}; "
                    f"better on {(gaps > 0).sum()}"
                )


def _show_decibels(name: str, values: Sequence[float] | Array) -> None:
    print(f"  {name:<6}" + "".join(f"{value:12.3f}" for value in values), flush=True)


def draw(found: dict[str, Traces]) -> None:
    """Bounds and components by pass, bounds by seconds."""
    try:
        import matplotlib.pyplot as plt
        from matplotlib.ticker import LogLocator, NullFormatter

        from figures import save, spelled_out
        from stickbreak.plot.canvas import colour
    except ImportError:
        print("no figure: Matplotlib is missing")
        return
    height = 0.8 + 3.6 * len(found)
    figure, panels = plt.subplots(len(found), 3, figsize=(13, height), squeeze=False, layout="constrained")
    titles = {"stream": "all patches two apart, as a stream", "bounds": "patches four apart"}
    names = list(dict.fromkeys(name for traces in found.values() for name in traces))
    for line, (section, traces) in zip(panels, found.items(), strict=True):
        for name, trace in traces.items():
            style = {"color": colour(names.index(name)), "linestyle": "--" if name.startswith("SO") else "-"}
            marker = {"marker": "o" if name.startswith("SO") else "", "markersize": 4}
            line[0].plot(trace.passes, trace.bounds, **style, **marker, label=spelled_out(name))
            line[1].plot(trace.passes, trace.components, **style, **marker)
            line[2].semilogx(trace.seconds, trace.bounds, **style, **marker)
        # The first passes would hide all others.
        low = min(trace.bounds[min(2, len(trace.bounds) - 1)] for trace in traces.values())
        high = max(max(trace.bounds) for trace in traces.values())
        for panel in (line[0], line[2]):
            panel.set(ylabel="ELBO a patch, nats", ylim=(low, high + 0.05 * (high - low)))
        line[0].set(title=titles[section], xlabel="pass")
        line[1].set(xlabel="pass", ylabel="components in use", ylim=(0, None))
        line[2].set(xlabel="seconds")
        line[2].xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        line[2].xaxis.set_major_formatter("{x:g}")
        line[2].xaxis.set_minor_formatter(NullFormatter())
    handles = {
        label: handle for line in panels for handle, label in zip(*line[0].get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=3)
    save(figure, "memoized_patches")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=SECTIONS)
    parser.add_argument("--rows", type=int, help="about so many patches to fit, for a short run; default: all")
    parser.add_argument("--passes", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=120.0, help="for births, and so for EM")
    parser.add_argument("--sparsity", type=int, default=4)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--held-out", type=int, default=100_000, help="about so many patches")
    parser.add_argument("--photographs", type=int, default=30, help="to denoise")
    options = vars(parser.parse_args())
    only = options.pop("only")
    setting = Setting(**options)
    try:
        train, validation = photographs("train"), photographs("val")
    except FileNotFoundError as error:
        print(f"left out: {error}")
        return
    print(f"stickbreak {sb.__version__}; load before {os.getloadavg()[0]:.1f}; {N_BATCHES} batches; {setting}")
    traces = {}
    if "stream" in only:
        traces["stream"] = report_stream(train, setting)
    if "bounds" in only:
        traces["bounds"] = report_bounds(train, setting)
    if "models" in only:
        report_models(train, validation, setting)
    if traces:
        draw(traces)
    print(f"\nload after {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    print_head()
    main()
