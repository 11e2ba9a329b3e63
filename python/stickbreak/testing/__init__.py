"""Tests of mixtures by general laws instead of examples: hypothesis strategies and checks.

The strategies draw models, data, weights, algorithms, moves, trees and samplers. The checks state laws that hold for
any fit, any draws and any topics. They need the package hypothesis: ``pip install 'stickbreak[testing]'``.

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
    check_gains,
    check_laws,
    check_monotone_bound,
    check_opened_tree,
    check_permutation,
    check_recomputed_elbo,
)
from stickbreak.testing.laws_of_draws import check_draws, check_topics
from stickbreak.testing.problem import Problem, problems
from stickbreak.testing.runs import documents, moves, samplers, topic_models, trees
from stickbreak.testing.strategies import algorithms, likelihoods, models, processes, rows, sample_weights

__all__ = [
    "FitOptions",
    "Problem",
    "algorithms",
    "check_additive_summaries",
    "check_determinism",
    "check_draws",
    "check_gains",
    "check_laws",
    "check_monotone_bound",
    "check_opened_tree",
    "check_permutation",
    "check_recomputed_elbo",
    "check_topics",
    "documents",
    "likelihoods",
    "models",
    "moves",
    "problems",
    "processes",
    "rows",
    "sample_weights",
    "samplers",
    "topic_models",
    "trees",
    "visible_bits",
]
