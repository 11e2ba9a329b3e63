"""Chains that end when they are enough, go on, or are joined."""

import warnings
from typing import Any

import numpy as np
import pytest

import stickbreak as sb

X = np.random.default_rng(0).normal(np.repeat([[-2.0], [2.0]], 20, axis=0))
MODEL = sb.Mixture(likelihood=sb.Gaussian(), process=sb.DirichletProcess(sb.Gamma(2.0, 1.0)))
QUANTITIES = ("log_joint", "n_clusters", "largest_cluster", "concentration")


def sampled(**options: Any) -> sb.Trace:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sb.ConvergenceWarning)
        return sb.sample(
            options.pop("model", MODEL), X, **{"draws": 40, "warmup": 10, "chains": 2, "threads": 1, **options}
        )


def equal(one: sb.Trace, other: sb.Trace) -> None:
    assert (one.partitions == other.partitions).all()
    assert (one.log_joint == other.log_joint).all()
    assert (one.n_clusters == other.n_clusters).all()
    assert one.acceptance == other.acceptance
    for name, values in one.hyperparameters.items():
        assert (values == other.hyperparameters[name]).all()
    for chain in range(one.log_joint.shape[0]):
        assert (one.cluster_sizes(chain, 30) == other.cluster_sizes(chain, 30)).all()


@pytest.mark.parametrize("threads", [1, 2])
def test_chains_end_at_the_first_number_of_draws_that_is_enough(threads: int) -> None:
    """Asked at 100 draws and after each growth by a fifth, of the draws so far alone."""
    until = sb.Until(ess=100.0, rhat=1.05)
    trace = sampled(draws=5000, until=until, threads=threads)
    n = trace.log_joint.shape[1]
    whole = sampled(draws=n)
    assert trace.stop_reason == "until"
    assert (trace.partitions == whole.partitions).all()

    def is_enough(asked: int) -> bool:
        found = sampled(draws=asked)
        return all(found.ess(name) >= until.ess and found.rhat(name) <= until.rhat for name in QUANTITIES)

    asked = [100]
    while asked[-1] < n:
        asked.append(int(np.ceil(1.2 * asked[-1])))
    assert asked[-1] == n
    assert [is_enough(number) for number in asked] == [False] * (len(asked) - 1) + [True]


def test_draws_stay_the_most() -> None:
    trace = sampled(draws=130, until=sb.Until(ess=600.0))
    assert (trace.log_joint.shape[1], trace.stop_reason) == (130, "draws")
    assert sampled(draws=600, until=sb.Until(ess=1.0, rhat=100.0)).log_joint.shape[1] == 100
    assert sampled(draws=100, until=sb.Until(ess=1.0, rhat=100.0)).stop_reason == "until"
    with pytest.raises(sb.InvalidArgument, match="draws must be at least 100"):
        sampled(draws=99, until=sb.Until())
    with pytest.raises(sb.InvalidArgument, match=r"until must be at most 600 .*1e[+]06 effective draws"):
        sampled(draws=100, until=sb.Until(ess=1e6), chains=2)


def test_a_run_until_enough_goes_on_from_its_checkpoint(tmp_path: Any) -> None:
    until = sb.Until(ess=100.0, rhat=1.05)
    whole = sampled(draws=5000, until=until)
    checkpoint = sb.Checkpoint(tmp_path / "chains", every_seconds=0)
    cut = sampled(draws=5000, until=until, checkpoint=checkpoint, callbacks=[lambda draw: draw.index == 113])
    assert (cut.log_joint.shape[1], cut.stop_reason) == (114, "callback")
    equal(sampled(draws=5000, until=until, checkpoint=checkpoint), whole)


@pytest.mark.parametrize(
    "sampler", [None, sb.CollapsedGibbs(), sb.BlockedGibbs(), sb.Slice(), sb.TreeGuided(global_moves=2)]
)
def test_an_extended_trace_is_one_longer_run(sampler: Any, tmp_path: Any) -> None:
    short, whole = sampled(sampler=sampler), sampled(sampler=sampler, draws=65)
    equal(short.extend(25, threads=1), whole)
    equal(short.extend(5).extend(20), whole)
    assert short.log_joint.shape[1] == 40
    short.save(tmp_path / "trace.safetensors")
    loaded = sb.load(tmp_path / "trace.safetensors")
    assert isinstance(loaded, sb.Trace)
    equal(loaded.extend(25), whole)


def test_kept_rows_thinning_and_chains_that_were_cut_short_go_on() -> None:
    options: dict[str, Any] = {"thin": 3, "keep_rows": [5, 1, 30]}
    equal(sampled(**options).extend(25), sampled(draws=65, **options))
    # Chains are then at different sweeps.
    cut = sampled(draws=200, callbacks=[lambda draw: draw.chain == 0 and draw.index == 40])
    assert cut.stop_reason == "callback"
    n = cut.log_joint.shape[1]
    more, whole = cut.extend(80 - n), sampled(draws=80)
    assert (more.partitions == whole.partitions).all()
    assert (more.log_joint == whole.log_joint).all()


def test_traces_that_cannot_go_on_are_refused(tmp_path: Any) -> None:
    trace = sampled()
    trace.save(tmp_path / "trace.safetensors", rows=False)
    bare = sb.load(tmp_path / "trace.safetensors")
    assert isinstance(bare, sb.Trace)
    for one in (bare, sb.concat([trace, sampled(seed=1)])):
        with pytest.raises(sb.NotSupported, match="extend"):
            one.extend(10)
    for draws in (0, -1, 1.5, "3"):
        with pytest.raises(sb.StickbreakError, match="draws"):
            trace.extend(draws)  # type: ignore[arg-type]


def test_traces_of_other_seeds_are_joined() -> None:
    one, other = sampled(), sampled(seed=1, chains=1)
    both = sb.concat([one, other])
    assert both.log_joint.shape == (3, 40)
    assert (both.partitions[:2] == one.partitions).all()
    assert (both.partitions[2] == other.partitions[0]).all()
    assert (both.cluster_sizes(2, 7) == other.cluster_sizes(0, 7)).all()
    assert both.starts == ("fit", "singletons", "fit")
    np.testing.assert_allclose(
        both.log_predictive(X[:3]),
        np.log((2 * np.exp(one.log_predictive(X[:3])) + np.exp(other.log_predictive(X[:3]))) / 3),
    )


def test_other_traces_are_not_joined() -> None:
    one = sampled()
    refused = [
        (sampled(), "seed 0 a second time"),
        (sampled(seed=1, sampler=sb.CollapsedGibbs()), "sampler"),
        (sampled(seed=1, draws=41), "number of draws"),
        (sampled(seed=1, thin=2), "thin"),
        (sampled(seed=1, model=sb.Mixture(likelihood=sb.Gaussian())), "model"),
        (sb.sample(one.model, X + 0.5, draws=40, warmup=10, chains=2, seed=1), "data"),
        (sampled(seed=1, keep_rows=[0, 1]), "keep_rows"),
    ]
    for other, what in refused:
        with pytest.raises(sb.InvalidArgument, match=what):
            sb.concat([one, other])
    with pytest.raises(sb.InvalidArgument, match="at least one"):
        sb.concat([])
    for wrong in (one, [one, 3], 5):
        with pytest.raises(sb.InvalidType, match="traces"):
            sb.concat(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("ess", "rhat"), [(0.0, 1.01), (-1.0, 1.01), (np.nan, 1.01), (np.inf, 1.01), (400.0, 1.0), ("1", 2)]
)
def test_what_no_draws_can_meet_is_refused(ess: Any, rhat: Any) -> None:
    with pytest.raises(sb.StickbreakError, match=r"ess|rhat"):
        sb.Until(ess, rhat)
    with pytest.raises(sb.InvalidType, match="until"):
        sampled(until=400)


def test_models_under_which_slices_fail_are_refused() -> None:
    for process, what in [
        (sb.PitmanYor(sb.Beta(1.0, 9.0), concentration=sb.Gamma(1.0, 1.0)), "a learned discount"),
        (sb.NormalizedGeneralizedGamma(1.0, sb.Beta(1.0, 9.0)), "a learned discount"),
        (sb.NormalizedGeneralizedGamma(1.0, 0.5), "a discount of 0.5"),
    ]:
        with pytest.raises(sb.NotSupported, match=f"Slice with {what}.*SplitMerge"):
            sampled(sampler=sb.Slice(), model=sb.Mixture(likelihood=sb.Gaussian(), process=process))
    smaller = sb.Mixture(likelihood=sb.Gaussian(), process=sb.NormalizedGeneralizedGamma(1.0, 0.4))
    assert sampled(sampler=sb.Slice(), model=smaller).n_clusters.shape == (2, 40)


@pytest.mark.parametrize("seed", range(3))
def test_every_learned_parameter_is_asked(seed: int) -> None:
    """Both parameters of a Pitman-Yor process, of which the second one mixes more slowly on three rows."""
    process = sb.PitmanYor(sb.Beta(0.1, 0.1), concentration=sb.Gamma(2.0, 1.0))
    base = sb.Gaussian(mean=[0.0], mean_precision=0.01, dof=20.0, scale=[[20.0]])
    until = sb.Until(ess=300.0, rhat=1.05)
    options = {"draws": 20_000, "warmup": 50, "chains": 2, "seed": seed, "until": until, "init": "singletons"}
    trace = sb.sample(sb.Mixture(base, process=process), [[0.0], [1000.0]], sb.CollapsedGibbs(), **options)
    assert trace.stop_reason == "until"
    assert list(trace.hyperparameters) == ["concentration", "discount"]
    for name in ("log_joint", "n_clusters", "concentration", "discount"):
        assert np.isnan(trace.ess(name)) or trace.ess(name) >= 300.0
        assert trace.rhat(name) <= 1.05


def test_seeds_of_all_traces_differ() -> None:
    one, other = (sampled(draws=5, seed=seed) for seed in (0, 1))
    with pytest.raises(sb.InvalidArgument, match=r"traces\[2\] must be another seed"):
        sb.concat([one, other, other])


def test_a_longer_trace_counts_all_sweeps_that_reached_the_truncation() -> None:
    rows = np.concatenate([X, X + 20.0])
    options = {"warmup": 0, "chains": 1, "init": np.arange(80) % 10, "threads": 1}
    model, sampler = sb.Mixture(likelihood=sb.Gaussian()), sb.BlockedGibbs(truncation=10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sb.TruncationWarning)
        short, whole = (sb.sample(model, rows, sampler, draws=draws, **options) for draws in (5, 40))
        longer = short.extend(35)
    reached = [trace._chains.ran.last_tenth for trace in (longer, whole)]
    assert reached[0] == reached[1]
    assert reached[0][0] == 40
    assert reached[0][1] > 0
    assert [str(one) for one in longer.advice()] == [str(one) for one in whole.advice()]


def test_a_longer_trace_that_is_cut_short_says_so() -> None:
    with pytest.warns(sb.ConvergenceWarning, match=r"chains ended after .* of 100,040 draws, by max_seconds"):
        longer = sampled().extend(10**5, max_seconds=1.0)
    assert longer.stop_reason == "max_seconds"
