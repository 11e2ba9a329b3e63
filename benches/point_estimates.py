"""Seconds to the partition that represents 1,000 draws of 10,000 rows, and its expected loss.

The draws are those of `BlockedGibbs` for overlapping clusters. The best draw, by its expected loss over 40 of them, is
what a search has to beat.

    python benches/point_estimates.py
"""

import time

import numpy as np

import stickbreak as sb
from common.head import print_head
from conditional import rows_of

DRAWS, COMPARED = 1000, 40


def main() -> None:
    """Run the bench."""
    print_head()
    for n, d, k, spread in ((10_000, 2, 6, 2.0), (10_000, 8, 20, 1.5)):
        rows, labels = rows_of(n, d, k, spread)
        likelihood = sb.Gaussian(mean=np.zeros(d), mean_precision=0.1, dof=d + 2, scale=np.eye(d))
        model = sb.Mixture(likelihood=likelihood, process=sb.DirichletProcess(1.0))
        sampler = sb.BlockedGibbs(truncation=3 * k)
        trace = sb.sample(model, rows, sampler, draws=DRAWS, warmup=200, chains=1, init=labels, progress=False)
        draws = trace.partitions[0]
        numbers = trace.n_clusters
        print(f"\n{n} x {d}, spread {spread:g}: {DRAWS} draws of {numbers.min()} to {numbers.max()} clusters")
        some = draws[:: DRAWS // COMPARED]
        for loss in ("vi", "binder"):
            for runs, threads in ((None, 1), (16, 1), (16, 2)):
                started = time.perf_counter()
                found = trace.point_estimate(loss, runs=runs, threads=threads)  # type: ignore[arg-type]
                seconds = time.perf_counter() - started
                print(
                    f"{loss:7} runs={runs or 'usual':5} threads={threads}: {seconds:7.2f} s, "
                    f"{found.n_clusters} clusters, expected loss {found.expected_loss:.6g}",
                    flush=True,
                )
            losses = [np.mean([sb.partition_distance(one, other, loss) for other in some]) for one in some]
            print(f"{loss:7} best of {COMPARED} draws: expected loss {min(losses):.6g}")


if __name__ == "__main__":
    main()
