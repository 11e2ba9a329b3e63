"""Views with far more values than memory, and threads that cannot start: the errors say what is at fault."""

import os
import subprocess
import sys
import textwrap

import pytest

PROGRAM_OF_VIEWS = """
    import resource
    import numpy as np
    import pandas
    import stickbreak as sb
    import stickbreak.sklearn

    rows = np.random.default_rng(0).normal(size=(40, 2))
    model = sb.Mixture(likelihood=sb.Gaussian())
    fit = sb.fit(model, rows, sb.Full(max_passes=2), n_components=2)
    tree = sb.hierarchy(model, rows)
    estimator = sb.sklearn.BayesianMixture(n_components=2, algorithm=sb.Full(max_passes=2, tol=1e9)).fit(rows)
    fit.as_table(rows), sb.columns_for(rows, verbose=False), sb.cross_validate(model, rows, folds=2)

    def view(dtype, *shape):
        return np.broadcast_to(np.zeros((), dtype), shape)

    n = 2 * 10**7
    calls = [
        ("a", lambda: sb.partition_distance(view(int, n), [0, 1])),
        ("b", lambda: sb.partition_distance([0, 1], view("U1", n))),
        ("labels", lambda: sb.label_shares([0], view(int, n))),
        ("labels", lambda: sb.label_shares(view(float, n, 2), [0])),
        ("sample_weight", lambda: sb.label_shares([0], [0], sample_weight=view("f4", n))),
        ("data", lambda: sb.columns_for(view(float, n, 2))),
        ("data", lambda: sb.fit(model, view(int, n, 2))),
        ("labels", lambda: sb.fit(model, rows, labels=view("i1", n))),
        ("init", lambda: sb.fit(model, rows, init=view("i1", n))),
        ("X", lambda: sb.cross_validate(model, view(float, n, 2))),
        ("X", lambda: fit.as_table(view(float, n, 2))),
        ("X", lambda: fit.predict(view(int, n, 2))),
        ("X", lambda: estimator.predict(view(int, n, 2))),
        ("X_new", lambda: tree.insert(view(float, n, 2))),
        ("mean", lambda: sb.Gaussian(mean=view(float, n))),
        ("scale", lambda: sb.Gaussian(scale=view(float, n, n))),
        ("dof", lambda: sb.Gaussian(dof=view(float, n))),
        ("concentration", lambda: sb.DirichletProcess(concentration=view(float, n))),
        ("sticks", lambda: sb.DirichletProcess(sticks=view(float, n, 2))),
        ("pseudo_counts", lambda: sb.Multinomial(pseudo_counts=view(float, n))),
        ("centre", lambda: sb.Background(centre=view(float, n))),
    ]
    pages = int(open("/proc/self/statm").read().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + 10**8,) * 2)
    for argument, call in calls:
        try:
            call()
        except (sb.InvalidArgument, sb.InvalidType) as error:
            assert error.argument == argument, (argument, error)
        else:
            raise AssertionError(argument)
"""

PROGRAM_OF_THREADS = """
    import resource
    import numpy as np
    import stickbreak as sb

    rows = np.random.default_rng(0).normal(size=(40, 2))
    pages = int(open("/proc/self/statm").read().split()[0])
    # The stacks of threads have 1 GiB: there is room for one of two.
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (3 << 29),) * 2)
    for threads in (None, 1, 2):
        try:
            sb.fit(sb.Mixture(likelihood=sb.Gaussian()), rows, n_components=2, threads=threads)
        except sb.NumericalError as error:
            assert "no thread could be started" in str(error) and "memory" in str(error), error
        else:
            raise AssertionError(threads)
"""


limits_memory = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits the address space")


def check(program: str, **environment: str) -> None:
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program)]
    # Threads of a BLAS take address space whenever they happen to start.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", **environment}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, check=False)
    assert done.returncode == 0, done.stderr


@limits_memory
def test_the_view_that_does_not_fit_in_memory_is_named() -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("sklearn")
    check(PROGRAM_OF_VIEWS)


@limits_memory
def test_a_thread_that_cannot_start_does_not_blame_an_argument() -> None:
    check(PROGRAM_OF_THREADS, RUST_MIN_STACK=str(1 << 30))
