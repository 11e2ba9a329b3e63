"""Thirty passes from k-means++ with all that spares work, against scikit-learn's iteration, one thread each.

The digits (60,000 x 50, K = 100) and the image patches (1,880,200 x 64, K = 200) in float32. A run in which every score
is computed says what that costs in the bound. scikit-learn's iteration is timed in float64 from labels, on at most
200,000 rows, and scaled by the number of rows. The data are looked for in `STICKBREAK_DATA`, else `../shared/data`.

python benches/whole_run.py [digits] [patches]
"""

import gzip
import os
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import threadpoolctl
from numpy.typing import NDArray

import stickbreak as sb
from common.head import print_head
from scikit_learn import ScikitLearn, free_the_blas

PASSES = 30
ROWS_TIMED = 200_000
MEMORY = 2**30


def data_folder() -> Path:
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    return Path(os.environ.get("STICKBREAK_DATA", beside))


def digits() -> NDArray[np.float32]:
    from sklearn.decomposition import PCA

    with gzip.open(data_folder() / "mnist" / "train-images-idx3-ubyte.gz") as file:
        images = np.frombuffer(file.read(), np.uint8, offset=16).reshape(60_000, 784)
    return PCA(50, random_state=0).fit_transform(images.astype(np.float32) / 255)


def patches() -> NDArray[np.float32]:
    """All 8 x 8 patches four pixels apart, each less its mean."""
    found = []
    with np.load(data_folder() / "bsds500" / "train_gray.npz", allow_pickle=False) as file:
        for name in ("landscape", "portrait"):
            for image in file[name]:
                windows = np.lib.stride_tricks.sliding_window_view(image, (8, 8))[::4, ::4]
                found.append(windows.reshape(-1, 64).astype(np.float32) / 255)
    rows = np.concatenate(found)
    rows -= rows.mean(axis=1, keepdims=True)
    return rows


PROBLEMS = {
    "digits": (
        digits,
        100,
        sb.Gaussian(mean=np.zeros(50), mean_precision=1e-4, dof=52, scale=0.1 * np.eye(50)),
        {"all passes": 55.0, "last ten": 80.0},
    ),
    "patches": (patches, 200, sb.ZeroMeanGaussian(), {"all passes": 90.0, "last ten": 140.0}),
}


def run(
    rows: NDArray[np.float32], likelihood: sb.Gaussian | sb.ZeroMeanGaussian, k: int, memory: int
) -> tuple[sb.Fit, NDArray[np.float64]]:
    """A fit, and the CPU seconds of each pass: of the first one from when the start is there."""
    times: list[float] = []
    model = sb.Mixture(likelihood=likelihood, process=sb.DirichletProcess(concentration=1.0))
    options = {"n_components": k, "seed": 0, "threads": 1, "progress": False}
    margin = 20.0 if memory else None
    start = sb.fit(model, rows, sb.Full(max_passes=0, sparsity=4), **options)
    algorithm = sb.Full(max_passes=PASSES, tol=0, sparsity=4, margin=margin, bounds_memory=memory)
    begun = time.process_time()
    fit = sb.fit(model, rows, algorithm, init=start, callbacks=[lambda _: times.append(time.process_time())], **options)
    return fit, np.diff([begun, *times])


def mean_log_likelihood(fit: sb.Fit, rows: NDArray[np.float32]) -> float:
    return float(fit.log_predictive(rows, threads=1).mean())


def main() -> None:
    free_the_blas()
    for name in sys.argv[1:] or list(PROBLEMS):
        make, k, likelihood, targets = PROBLEMS[name]
        try:
            rows = make()
        except FileNotFoundError as error:
            print(f"{name} left out: {error}")
            continue
        n, d = rows.shape
        print(
            f"\n{name}: (n, D, K) = ({n}, {d}, {k}), L = 4, float32; load before {os.getloadavg()[0]:.1f}", flush=True
        )
        fit, seconds = run(rows, likelihood, k, MEMORY)
        print("  CPU seconds of each pass " + " ".join(f"{value:.3g}" for value in seconds))
        print("  share of scores computed " + " ".join(f"{record.evaluated_share:.3f}" for record in fit.history))
        plain, plain_seconds = run(rows, likelihood, k, 0)
        print(f"  every score computed: {plain_seconds.mean():.3g} s a pass", flush=True)
        lost = (plain.elbo - fit.elbo) / n
        likelihoods = mean_log_likelihood(plain, rows) - mean_log_likelihood(fit, rows)
        print(f"  nats a row less than with every score: bound {lost:.2e}, log predictive density {likelihoods:.2e}")
        timed = min(n, ROWS_TIMED)
        peer = ScikitLearn(rows[:timed].astype(np.float64), fit.predict(rows[:timed]), k)
        with threadpoolctl.threadpool_limits(1):
            iteration = statistics.median(peer()[1] for _ in range(3)) * n / timed
        print(f"  scikit-learn: {iteration:.3g} s an iteration" + ("" if timed == n else f", timed on {timed} rows"))
        for part, mean in (("all passes", seconds.mean()), ("last ten", seconds[-10:].mean())):
            target = targets[part]
            print(
                f"  {part}: {mean:.3g} s a pass, {iteration / mean:.1f} times as fast (target {target:g})", flush=True
            )
    print(f"\nload after {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    print_head()
    main()
