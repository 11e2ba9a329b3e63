"""`TreeGuided` from Python: reports, starts, the published algorithm, and refusals."""

import pickle

import numpy as np
import pytest

import stickbreak as sb
from oracles.partitions import GaussianMarginal, Posterior, generalized_gamma

RNG = np.random.default_rng(3)
X = np.concatenate([RNG.normal(-4, 1, size=(20, 2)), RNG.normal(4, 1, size=(25, 2))])
MODEL = sb.Mixture(likelihood=sb.Gaussian(mean=[0.0, 0.0], mean_precision=0.1, dof=4.0, scale=np.eye(2)))
EXACT = {"subtree_split", "subtree_merge", "launched_split", "launched_merge"}
PUBLISHED = {"published_split", "published_merge", "published_local"}


def short(sampler, model=MODEL, data=X, **options):
    return sb.sample(model, data, sampler, **{"draws": 12, "warmup": 2, "chains": 2, **options})


def test_draws_say_whether_they_are_exact(tmp_path):
    for exact in (True, False):
        trace = short(sb.TreeGuided(exact=exact))
        trace.save(tmp_path / "trace.safetensors")
        for copy in (trace, sb.load(tmp_path / "trace.safetensors"), pickle.loads(pickle.dumps(trace))):
            assert copy.exact is exact
            assert ("search" in repr(copy)) is not exact
        kinds = EXACT | {"gibbs"} if exact else PUBLISHED
        assert set(trace.acceptance) <= kinds
        assert len(set(trace.acceptance)) >= 3
    assert short(sb.CollapsedGibbs()).exact


@pytest.mark.parametrize("options", [{"exact": False}, {"trees": "fresh"}, {"local": "guided", "subset": 5}])
def test_threads_do_not_matter(options):
    one, two = (short(sb.TreeGuided(**options), chains=3, init="single", threads=threads) for threads in (1, 2))
    assert (one.partitions == two.partitions).all()
    assert (one.log_joint == two.log_joint).all()


@pytest.mark.parametrize("init", ["ibhc", "one-on-top"])
@pytest.mark.parametrize("sampler", [sb.CollapsedGibbs(subset=1), sb.SplitMerge(subset=1), sb.TreeGuided(subset=1)])
def test_every_sampler_starts_from_trees(init, sampler):
    trace = short(sampler, init=init, draws=1, warmup=0)
    assert 2 <= trace.n_clusters.min() <= trace.n_clusters.max() <= 6
    few = sb.Mixture(likelihood=MODEL.likelihood, process=sb.FiniteDirichlet(2))
    assert (short(sampler, few, init=init, draws=1, warmup=0).n_clusters == 2).all()


@pytest.mark.parametrize("sampler", [sb.TreeGuided(), sb.TreeGuided(exact=False), sb.TreeGuided(trees="fresh")])
def test_chains_go_on_from_a_checkpoint(tmp_path, sampler):
    whole = short(sampler, draws=20)
    path = tmp_path / "chains"
    short(sampler, draws=7, checkpoint=sb.Checkpoint(path))
    resumed = short(sampler, draws=20, checkpoint=sb.Checkpoint(path))
    assert (resumed.partitions == whole.partitions).all()
    with pytest.raises(sb.CheckpointError, match="sampler"):
        short(sb.TreeGuided(global_moves=3), draws=20, checkpoint=sb.Checkpoint(path))


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"global_moves": 0}, "global_moves"),
        ({"depth": 0}, "depth"),
        ({"exact": 1}, "exact"),
        ({"trees": "kd"}, "trees"),
        ({"evenness": "min"}, "evenness"),
        ({"local": "global"}, "local"),
        ({"scans": -1}, "scans"),
    ],
)
def test_bad_settings_are_named(options, name):
    with pytest.raises((sb.InvalidArgument, sb.InvalidType)) as caught:
        sb.TreeGuided(**options)
    assert caught.value.argument == name


def test_a_subset_of_more_rows_than_there_are_is_refused():
    with pytest.raises(sb.InvalidArgument) as caught:
        short(sb.TreeGuided(subset=46))
    assert caught.value.argument == "subset"


@pytest.mark.parametrize("rows", [X[:1], np.repeat(X[:1], 9, axis=0)])
def test_one_row_and_equal_rows_are_sampled(rows):
    assert (short(sb.TreeGuided(), data=rows).partitions >= 0).all()
    assert (short(sb.TreeGuided(exact=False), data=rows).partitions >= 0).all()


@pytest.mark.slow
def test_the_published_algorithm_is_biased():
    """Six overlapping rows: the law of its number of clusters is far from the posterior, and too low.

    With u integrated out; independent draws would be off by 0.01.
    """
    rows = np.array([[-1.8], [-1.0], [-0.3], [0.2], [0.9], [2.0]])
    psi = np.array([[1.0]])
    likelihood = sb.Gaussian(mean=[0.0], mean_precision=0.25, dof=3.0, scale=psi)
    model = sb.Mixture(likelihood=likelihood, process=sb.NormalizedGeneralizedGamma(0.5, 0.5))
    exact = Posterior(GaussianMarginal(np.zeros(1), 0.25, 3.0, psi), generalized_gamma(0.5, 0.5), rows)
    logs = np.array([exact.log_joint(labels) for labels in exact.partitions])
    weights = np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum()
    expected = sum(weight * (max(labels) + 1) for weight, labels in zip(weights, exact.partitions, strict=True))
    options = {"draws": 20_000, "warmup": 50, "chains": 1, "threads": 1}
    searched = short(sb.TreeGuided(exact=False), model, rows, **options).n_clusters.mean()
    sampled = short(sb.TreeGuided(), model, rows, **options)
    error = sampled.n_clusters.std() / np.sqrt(sampled.ess("n_clusters"))
    assert abs(sampled.n_clusters.mean() - expected) < 5 * error
    assert searched < expected - 0.2
