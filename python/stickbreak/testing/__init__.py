"""Tests of mixtures by general laws instead of examples: hypothesis strategies and checks.

The strategies draw models, data, weights and algorithms. The checks state laws that hold for any fit. They need the
package hypothesis: ``pip install 'stickbreak[testing]'``.

>>> from hypothesis import given, settings
>>> from stickbreak.testing import Problem, check_laws, problems
>>> @settings(max_examples=5)
... @given(problems())
... def test_laws(problem: Problem) -> None:
...     check_laws(problem.model, problem.X, problem.algorithm, **problem.options)
>>> test_laws()

Strategies follow the registry of likelihoods and processes, so new ones are drawn and checked automatically;
`stickbreak.testing.generators` has the table of parameters and data.
"""

try:
    import hypothesis as _hypothesis  # noqa: F401
except ModuleNotFoundError as error:
    raise ImportError("stickbreak.testing needs the package hypothesis: pip install 'stickbreak[testing]'") from error

from stickbreak.testing.bits import visible_bits
from stickbreak.testing.laws import (
    FitOptions,
    check_additive_summaries,
    check_determinism,
    check_laws,
    check_monotone_bound,
    check_permutation,
    check_recomputed_elbo,
)
from stickbreak.testing.problem import Problem, problems
from stickbreak.testing.strategies import algorithms, likelihoods, models, processes, rows, sample_weights

__all__ = [
    "FitOptions",
    "Problem",
    "algorithms",
    "check_additive_summaries",
    "check_determinism",
    "check_laws",
    "check_monotone_bound",
    "check_permutation",
    "check_recomputed_elbo",
    "likelihoods",
    "models",
    "problems",
    "processes",
    "rows",
    "sample_weights",
    "visible_bits",
]
