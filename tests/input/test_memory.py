"""Data that do not fit in memory are refused before work begins; a failed allocation would end the process."""

import os
import subprocess
import sys
import textwrap

import pytest

PROGRAM = """
    import resource
    import numpy as np
    import stickbreak as sb

    resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))

    def leave(size):
        # Limits what the process may allocate from now on, in bytes.
        pages = int(open("/proc/self/statm").read().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + size, 3 << 30))

    rows = np.random.default_rng(0).normal(size=(400, {columns}))
    model = sb.Mixture(likelihood=sb.{likelihood}())
    try:
        {call}
    except (sb.InvalidArgument, MemoryError) as error:
        print(getattr(error, "argument", "memory"), error)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits the address space")
@pytest.mark.parametrize(
    ("likelihood", "columns", "call", "argument", "words"),
    [
        (
            "Gaussian",
            300,
            "sb.fit(model, rows, sb.Memoized(batches=100, max_passes=1), n_components=200)",
            "n_components",
            "200, whose statistics in 100 batches take about 7.7 GB",
        ),
        (
            "DiagonalGaussian",
            2,
            "f = sb.fit(model, rows, sb.Full(max_passes=1), n_components=300, missing='marginalize');"
            "f.impute(np.broadcast_to(rows[:1], (10**6, 2)))",
            "X",
            "1000000 rows, for which 301 components take about 4.8 GB",
        ),
        (
            "DiagonalGaussian",
            2,
            "f = sb.fit(model, rows, sb.Full(max_passes=1), n_components=400);"
            "f.predict_proba(np.broadcast_to(rows[:1], (10**6, 2)))",
            "X",
            "1000000 rows, for which 400 components take about 3.2 GB; sparse=True",
        ),
        (
            "Gaussian",
            800,
            "d = np.ones(800); g = sb.Gaussian(mean=0 * d, mean_precision=1.0, dof=810.0, scale=np.diag(d));"
            "sb.sample(sb.Mixture(g), rows, draws=1, warmup=0, chains=4, init='singletons')",
            "init",
            "a start of 400 clusters, whose statistics in 4 chains take about",
        ),
        (
            "Gaussian",
            800,
            "d = np.ones(800); g = sb.Gaussian(mean=0 * d, mean_precision=1.0, dof=810.0, scale=np.diag(d));"
            "sb.sample(sb.Mixture(g), rows.repeat(4, axis=0), draws=1, warmup=0, chains=1, init='ibhc')",
            "init",
            "trees over 1600 rows, whose statistics take about",
        ),
        (
            "Gaussian",
            800,
            "d = np.ones(800); g = sb.Gaussian(mean=0 * d, mean_precision=1.0, dof=810.0, scale=np.diag(d));"
            "sb.sample(sb.Mixture(g), rows.repeat(4, axis=0), sb.TreeGuided(), draws=1, warmup=0, init='single')",
            "sampler",
            "trees over 1600 rows, whose statistics take about",
        ),
        (
            "Gaussian",
            800,
            "d = np.ones(800); g = sb.Gaussian(mean=0 * d, mean_precision=1.0, dof=810.0, scale=np.diag(d));"
            "sb.hierarchy(sb.Mixture(g), rows.repeat(4, axis=0), 'incremental')",
            "data",
            "trees over 1600 rows, whose statistics take about",
        ),
        (
            "Gaussian",
            800,
            "d = np.ones(800); g = sb.Gaussian(mean=0 * d, mean_precision=1.0, dof=810.0, scale=np.diag(d));"
            "sb.hierarchy(sb.Mixture(g), rows[:8], 'incremental').insert(rows.repeat(4, axis=0))",
            "X_new",
            "trees over 1608 rows, whose statistics take about",
        ),
        (
            "Gaussian",
            1,
            "leave(1 << 30); rows = rows.repeat(41, axis=0)[:16384];"
            "sb.hierarchy(sb.Mixture(sb.Gaussian(prior='rule')), rows, 'bhc')",
            "method",
            '"bhc" for 16384 rows, whose pairs take about 1.3 GB',
        ),
        (
            "DiagonalGaussian",
            2,
            "t = sb.sample(model, rows.repeat(25, axis=0), draws=1, warmup=0, chains=1, init='single', threads=1);"
            "leave(7 * 10**8); t.similarity(threads=1)",
            "rows",
            "10000 rows, whose similarities take about 800.0 MB",
        ),
        (
            "DiagonalGaussian",
            2,
            "t = sb.sample(model, rows.repeat(25, axis=0), draws=1, warmup=0, chains=1, init='single', threads=1);"
            "leave(7 * 10**8); next(t.similarity_blocks(size=10_000, threads=1))",
            "size size must be few enough rows that a piece fits in memory",
            "10000 rows, whose similarities take about 800.0 MB",
        ),
        (
            "DiagonalGaussian",
            2,
            "X = np.ones((10**7, 2), dtype=np.float32); leave(15 * 10**7);"
            "sb.sample(model, X, draws=1, warmup=0, chains=1, init='single', threads=1)",
            "data",
            "10000000 rows, which take about 160.0 MB as float64",
        ),
        (
            "DiagonalGaussian",
            2,
            "t = sb.sample(model, rows, draws=64, warmup=0, chains=1, init='singletons', threads=1);"
            "X = np.ones((10**6, 2)); leave(10**8); t.log_predictive(X, threads=1)",
            "X",
            "1000000 rows, for which",
        ),
    ],
)
@pytest.mark.one_in(4)
def test_too_much_is_refused(likelihood: str, columns: int, call: str, argument: str, words: str) -> None:
    program = textwrap.dedent(PROGRAM).format(likelihood=likelihood, columns=columns, call=call)
    # Threads of a BLAS take address space whenever they happen to start.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(argument), done.stdout
    assert words in done.stdout
