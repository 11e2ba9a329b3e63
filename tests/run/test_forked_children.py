"""Results are used in a forked child, which has none of the threads of its parent."""

import os
import subprocess
import sys
import textwrap

import pytest

HANG = 240

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")

SCRIPT = """
import os, signal, sys, warnings
import numpy as np
import stickbreak as sb

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X, words = rng.normal(size=(200, 3)), rng.poisson(1, (40, 8)).astype(float)
fit = sb.fit(sb.Mixture(sb.Gaussian()), X, sb.Full(max_passes=2), n_components=60, progress=False)
topics = sb.fit(sb.TopicModel(sb.LatentDirichlet(3)), words, sb.Full(max_passes=2), progress=False)
trace = sb.sample(sb.Mixture(sb.Gaussian()), X, draws=5, warmup=5, chains=2, progress=False)
calls = {
    "summary": fit.summary,
    "components": lambda: fit.components,
    "point_estimates": lambda: fit.point_estimates,
    "weights": lambda: fit.weights,
    "model": lambda: fit.model,
    "card": fit._repr_html_,
    "advice": fit.advice,
    "combine": lambda: fit.combine(X),
    "predict": lambda: fit.predict(X),
    "predictive": lambda: fit.log_predictive(X),
    "marginal": lambda: fit.marginal([0]).log_density(X[:, :1]),
    "intervals": lambda: fit.intervals(),
    "draws": lambda: fit.sample(10, seed=0),
    "update": lambda: fit.update(X),
    "words": topics.top_words,
    "coherence": lambda: topics.coherence(words),
    "shares": lambda: topics.transform(words),
    "trace": lambda: (repr(trace), trace.log_likelihood(), trace.point_estimate(), trace.density(X)),
    "fit": lambda: sb.fit(sb.Mixture(sb.Gaussian()), X, sb.Full(max_passes=2), n_components=2, progress=False),
    "sample": lambda: sb.sample(sb.Mixture(sb.Gaussian()), X, draws=2, warmup=2, chains=1, progress=False),
}
for call in calls.values():
    call()
for name, call in calls.items():
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(60)
        call()
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if status:
        print(name, status, flush=True)
        sys.exit(1)
"""


def test_no_method_waits_for_threads_that_a_child_does_not_have() -> None:
    command = [sys.executable, "-c", textwrap.dedent(SCRIPT)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=HANG, check=False)
    assert found.returncode == 0, found.stdout + found.stderr
