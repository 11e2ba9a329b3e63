"""Default fits of clusters with heavy tails and with outliers: K, agreement, held-out density, seconds; and a pass.

    python benches/tails.py

Ten clusters of 800 rows in all, with centres at least 9 apart in two columns and 6 in more, five data sets of each
kind: Student t with three degrees of freedom, normal, and normal with 1 or 5 % of the rows replaced by uniform ones;
with and without a background. A further 400 rows are held out; outliers are left out of the agreement. Then CPU seconds
of a pass over 200,000 rows of 50 overlapping clusters, normal or with tails, for `Gaussian`, for `StudentT` with that
tail (normal: 200), and for `Gaussian` with a background. One thread.
"""

import statistics
import time
import warnings
from collections.abc import Iterator

import numpy as np
from sklearn.metrics import adjusted_rand_score

import stickbreak as sb
from common.head import print_head

SETS = 5
CLUSTERS = 10
N, HELD_OUT = 800, 400
KINDS = (
    (2, 3.0, 0.0),
    (8, 3.0, 0.0),
    (4, np.inf, 0.0),
    (2, np.inf, 0.01),
    (4, np.inf, 0.01),
    (8, np.inf, 0.01),
    (4, np.inf, 0.05),
)
MODELS = [(kind, background) for background in (None, sb.Background()) for kind in (sb.Gaussian, sb.StudentT)]
TIMED = (2, 8, 16, 64)
K, TIMED_ROWS, PASSES = 50, 200_000, 8
Array = np.ndarray


def clusters(seed: int, d: int, tail: float, share: float, n: int = N + HELD_OUT) -> tuple[Array, Array]:
    """Rows and their clusters; -1 for outliers."""
    rng = np.random.default_rng(seed)
    centres: list[Array] = []
    while len(centres) < CLUSTERS:
        centre = rng.uniform(-90, 90, d) if d == 1 else rng.uniform(-30, 30, d) if d == 2 else rng.normal(0, 6, d)
        if all(np.linalg.norm(centre - other) > (9 if d < 3 else 6) for other in centres):
            centres.append(centre)
    labels = rng.integers(CLUSTERS, size=n)
    scales = np.ones(n) if np.isinf(tail) else rng.chisquare(tail, n) / tail
    rows = np.array(centres)[labels] + rng.normal(size=(n, d)) / np.sqrt(scales)[:, None]
    out = rng.random(n) < share
    rows[out] = rng.uniform(rows.min(0), rows.max(0), (out.sum(), d))
    return rows, np.where(out, -1, labels)


def fitted(model: sb.Mixture, rows: Array, labels: Array, seed: int) -> tuple[int, float, float, float, float, float]:
    """Components, agreement, held-out density, tail, share of outliers in the background and CPU seconds."""
    start = time.process_time()
    fit = sb.fit(model, rows[:N], seed=seed, threads=1, progress=False)
    seconds = time.process_time() - start
    inside = labels[:N] >= 0
    found = fit.predict(rows[:N])
    agreement = adjusted_rand_score(labels[:N][inside], found[inside])
    outside = np.mean(found[~inside] == -1) if (~inside).any() else np.nan
    tail = getattr(fit.model.likelihood, "tail_dof", np.nan)
    return fit.n_occupied, agreement, fit.log_predictive(rows[N:]).mean(), tail, outside, seconds


def tables() -> Iterator[str]:
    """Lines of the table of fits."""
    for d, tail, share in KINDS:
        of_outliers = f", {share:.0%} uniform" if share else ""
        name = f"{'normal' if np.isinf(tail) else f't({tail:g})'}, D = {d}{of_outliers}"
        for kind, background in MODELS:
            model = sb.Mixture(kind(), background=background)
            found = [fitted(model, *clusters(seed, d, tail, share), seed) for seed in range(SETS)]
            counts, *means = zip(*found, strict=True)
            agreement, density, tails, outside, seconds = (statistics.mean(each) for each in means)
            shown, own = " ".join(f"{count:2d}" for count in counts), "background" if background else ""
            numbers = f"{agreement:5.2f} {density:9.3f} {tails:7.1f} {outside:8.2f} {seconds:8.2f}"
            yield f"{name:25} {kind.__name__:8} {own:10} {shown:16} {numbers}"


def seconds_of_a_pass(model: sb.Mixture, rows: Array, labels: Array) -> float:
    """CPU seconds of a pass, from fits with more and fewer of them."""
    taken = []
    for passes in (1, 1 + PASSES):
        algorithm = sb.Full(moves=(), max_passes=passes, tol=0.0)
        start = time.process_time()
        sb.fit(model, rows, algorithm, n_components=K, init=labels, threads=1, progress=False)
        taken.append(time.process_time() - start)
    return (taken[1] - taken[0]) / PASSES


def passes() -> Iterator[str]:
    """Lines of the table of passes."""
    for d in TIMED:
        for tail in (np.inf, 3.0):
            rng = np.random.default_rng(0)
            labels = rng.integers(K, size=TIMED_ROWS)
            scales = np.ones(TIMED_ROWS) if np.isinf(tail) else rng.chisquare(tail, TIMED_ROWS) / tail
            noise = rng.normal(size=(TIMED_ROWS, d)) / np.sqrt(scales)[:, None]
            rows = rng.normal(0, 2, (K, d))[labels] + noise
            of_tail = 200.0 if np.isinf(tail) else tail
            gaussian = sb.Gaussian(prior="rule")
            models = (
                sb.Mixture(gaussian),
                sb.Mixture(sb.StudentT(of_tail, prior="rule")),
                sb.Mixture(gaussian, background=sb.Background()),
            )
            times = [statistics.median(seconds_of_a_pass(own, rows, labels) for _ in range(3)) for own in models]
            data = "normal" if np.isinf(tail) else f"t({tail:g})"
            seconds = "   ".join(f"{each:7.3f}" for each in times)
            yield f"{data:7} D = {d:2d}   {seconds}   {times[1] / times[0]:5.2f}   {times[2] / times[0]:5.2f}"


def main() -> None:
    print_head()
    warnings.simplefilter("ignore")
    heads = "K of five sets   agreement  held out  tail  outliers labelled -1  CPU s"
    print(f"{'data':25} {'model':19} {heads}")
    for line in tables():
        print(line, flush=True)
    own = "of Gaussian, of StudentT, of Gaussian with a background, and both ratios"
    print(f"\npass, 200,000 rows, K = 50: CPU seconds {own} (medians of three)")
    for line in passes():
        print(line, flush=True)


if __name__ == "__main__":
    main()
