"""Where chains start, and what is said of chains that did not come together."""

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import stickbreak as sb

MODEL = sb.Mixture(likelihood=sb.Gaussian())


def apart(n: int = 200, d: int = 10, k: int = 4, distance: float = 50.0, seed: int = 0) -> NDArray[np.float64]:
    """Clusters so far apart that no row ever changes its cluster alone."""
    rng = np.random.default_rng(seed)
    return rng.normal(distance * rng.normal(size=(k, d))[np.arange(n) % k])


def sampled(rows: Any = None, sampler: Any = None, model: Any = MODEL, **options: Any) -> sb.Trace:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sb.ConvergenceWarning)
        rows = apart() if rows is None else rows
        return sb.sample(model, rows, sampler, **{"draws": 50, "warmup": 50, "threads": 1, **options})


def kinds(trace: sb.Trace) -> list[str]:
    return [advice.kind for advice in trace.advice()]


def test_chains_start_apart_and_come_together() -> None:
    rows = apart()
    trace = sampled(rows, warmup=200)
    assert trace.starts == ("fit", "singletons", "single", "random")
    assert (trace.n_clusters == 4).all()
    assert trace.rhat("n_clusters") == 1.0
    assert trace.fit_seconds is not None
    assert trace.fit_seconds > 0.0
    assert kinds(trace) == ["still"]
    first = sampled(rows, sb.CollapsedGibbs(subset=1), draws=1, warmup=0, chains=6)
    assert first.starts == ("fit", "singletons", "single", "random", "fit", "singletons")
    numbers = first.n_clusters[:, 0]
    assert abs(numbers[0] - 4) <= 1
    assert abs(numbers[1] - 200) <= 1
    assert numbers[2] <= 2
    assert 5 <= numbers[3] <= 9


def test_many_rows_start_at_random_and_not_alone() -> None:
    trace = sampled(np.random.default_rng(0).normal(size=(1001, 1)), sb.CollapsedGibbs(subset=1), draws=1, warmup=0)
    assert trace.starts == ("fit", "random", "single", "random")
    # Other labels in other chains.
    assert (trace.partitions[1] != trace.partitions[3]).any()


@pytest.mark.parametrize(
    ("process", "sampler"), [(sb.FiniteDirichlet(3), None), (sb.DirichletProcess(), sb.BlockedGibbs(truncation=3))]
)
def test_starts_have_no_more_clusters_than_are_allowed(process: Any, sampler: Any) -> None:
    model = sb.Mixture(likelihood=sb.Gaussian(), process=process)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sb.TruncationWarning)
        trace = sampled(apart(), sampler, model, draws=5, warmup=0)
    assert trace.starts == ("fit", "random", "single", "random")
    assert trace.n_clusters.max() <= 3


@pytest.mark.parametrize(
    ("process", "usual"),
    [(None, sb.BlockedGibbs()), (sb.FiniteDirichlet(3), sb.BlockedGibbs()), (sb.PitmanYor(0.5), sb.Slice())],
)
def test_clusters_without_a_closed_marginal_have_a_default(process: Any, usual: Any) -> None:
    rows = apart(60, 2, 3, 6.0)
    model = sb.Mixture(likelihood=sb.StudentT(), process=process or sb.DirichletProcess())
    options = {"draws": 10, "warmup": 5, "model": model}
    assert (sampled(rows, **options).partitions == sampled(rows, usual, **options).partitions).all()
    with pytest.raises(sb.NotSupported, match=r"StudentT under a MixtureOfFiniteMixtures .*SplitMerge.*BlockedGibbs"):
        sampled(rows, model=sb.Mixture(likelihood=sb.StudentT(), process=sb.MixtureOfFiniteMixtures()))
    with pytest.raises(sb.NotSupported, match=r"trees under StudentT.*dispersed"):
        sampled(rows, usual, model=model, init="ibhc")


def test_every_model_of_a_frame_has_a_default() -> None:
    """Columns by name are placed before a sampler is chosen; sticks of any law run where labels are not integrated."""
    rows = apart(60, 2, 3, 6.0)
    frame = pd.DataFrame(rows, columns=["a", "b"])
    columns = sb.Columns({"a": sb.Gaussian(), "b": sb.Gaussian()})
    sticks = sb.DirichletProcess(sticks=(2.0, 1.0))
    for model, data in ((sb.Mixture(columns), frame), (sb.Mixture(sb.Gaussian(), process=sticks), rows)):
        trace = sampled(data, model=model, draws=10, warmup=5)
        assert trace.log_joint.shape == (4, 10)
        assert trace.advice()


def test_a_sequence_has_a_start_for_each_chain() -> None:
    rows = apart(40)
    labels = np.arange(40) % 2
    trace = sampled(rows, sb.CollapsedGibbs(subset=1), init=["single", labels, "fit"], draws=1, warmup=0, chains=5)
    assert trace.starts == ("single", "labels", "fit", "single", "labels")
    same = sampled(rows, sb.CollapsedGibbs(subset=1), init=labels, draws=1, warmup=0, chains=2)
    assert (same.partitions[1] == trace.partitions[1]).all()
    for init, argument in (
        (["single", "tree"], r"init\[1\]"),
        ([labels, labels[1:]], r"init\[1\]"),
        (["dispersed"], r"init\[0\]"),
    ):
        with pytest.raises(sb.InvalidArgument, match=argument):
            sampled(rows, init=init)
    finite = sb.Mixture(likelihood=sb.Gaussian(), process=sb.FiniteDirichlet(3))
    with pytest.raises(sb.InvalidArgument, match="chain 1"):
        sampled(rows, model=finite, init=["single", "singletons"])


def test_the_posterior_does_not_depend_on_the_seed() -> None:
    rows = apart(60, 2, 3, 3.0)
    one, other = (sampled(rows, seed=seed, draws=2, chains=1) for seed in (0, 5))
    for name, value in one.model.likelihood._to_core()[1].items():
        np.testing.assert_array_equal(value, other.model.likelihood._to_core()[1][name])


def test_chains_that_stay_apart_are_named() -> None:
    """One chain of several is in the wrong place, the last one too."""
    rows = apart()
    good = np.arange(200) % 4
    for init in (["single", good, good, good], [good, good, good, "single"]):
        with pytest.warns(sb.ConvergenceWarning, match="each chain stays at one value") as caught:
            trace = sb.sample(MODEL, rows, sb.CollapsedGibbs(), init=init, draws=50, warmup=5, threads=1)
        assert [warning.filename for warning in caught] == [__file__]
        assert kinds(trace) == ["stuck"]
        assert trace.rhat("n_clusters") == np.inf
        (advice,) = trace.advice()
        assert "n_clusters" in advice.text
        assert "SplitMerge()" in advice.suggestions
        assert "advice: each chain stays" in repr(trace)
        assert "each chain stays" in trace._repr_html_()


def test_chains_of_one_start_that_never_move_are_named() -> None:
    with pytest.warns(
        sb.ConvergenceWarning, match='no chain moved: all draws are one partition, of 1 cluster.*"single"'
    ):
        trace = sb.sample(MODEL, apart(), sb.CollapsedGibbs(), init="single", draws=50, warmup=50, threads=1)
    assert kinds(trace) == ["still"]
    assert trace.rhat() == 1.0


def test_few_effective_draws_are_named_and_many_are_not(tmp_path: Any) -> None:
    rows = np.random.default_rng(0).normal(np.repeat([[-2.0], [2.0]], 20, axis=0))
    few = sampled(rows, draws=60)
    assert "ess" in kinds(few)
    assert "extend(draws=" in next(advice for advice in few.advice() if advice.kind == "ess").suggestions[0]
    few.save(tmp_path / "trace.safetensors")
    loaded = sb.load(tmp_path / "trace.safetensors")
    assert isinstance(loaded, sb.Trace)
    assert [str(advice) for advice in loaded.advice()] == [str(advice) for advice in few.advice()]
    assert (loaded.starts, loaded.stop_reason) == (few.starts, "draws")
    with warnings.catch_warnings():
        warnings.simplefilter("error", sb.ConvergenceWarning)
        many = sb.sample(MODEL, rows, draws=3000, threads=1)
    assert many.advice() == ()
    assert min(many.ess(name) for name in ("log_joint", "n_clusters", "largest_cluster")) >= 400.0
    cut = sampled(rows, draws=10**6, max_seconds=0.3)
    assert (cut.stop_reason, "stopped" in kinds(cut)) == ("max_seconds", True)


def test_copies_do_not_lead_the_start_and_its_estimate() -> None:
    """Open parameters are those of the fit that looks at distinct rows, so that copies open few clusters."""
    rows = np.repeat(np.random.default_rng(0).normal(np.repeat([[-4.0] * 2, [4.0] * 2], 50, axis=0)), 3, axis=0)
    fit = sb.fit(MODEL, rows)
    trace = sampled(rows, draws=200, warmup=100)
    assert fit.search_rows == 100
    for name, value in fit.model.likelihood._to_core()[1].items():
        if name != "resolution" and value is not None:
            np.testing.assert_allclose(value, trace.model.likelihood._to_core()[1][name], rtol=1e-9, atol=1e-9)
    assert trace.n_clusters.mean() < 6.0
    assert "repeats" not in kinds(trace)


def test_clusters_of_rounded_values_are_named(tmp_path: Any) -> None:
    ages = np.random.default_rng(0).normal(45.0, 12.0, size=(1000, 1)).round()
    with pytest.warns(sb.errors.Advice, match="where a fit has 1: values of column 0 are rounded"):
        trace = sampled(ages, draws=100, warmup=100)
    assert "repeats" in kinds(trace)
    trace.save(tmp_path / "trace.safetensors")
    loaded = sb.load(tmp_path / "trace.safetensors")
    assert isinstance(loaded, sb.Trace)
    assert [str(advice) for advice in loaded.advice()] == [str(advice) for advice in trace.advice()]
    with pytest.warns(sb.errors.Advice, match="values of column 0 are rounded"):
        assert "repeats" in kinds(trace.extend(10))
    exact = ages + np.random.default_rng(1).uniform(-0.5, 0.5, size=ages.shape)
    assert "repeats" not in kinds(sampled(exact, draws=100, warmup=100))


def test_agreement_of_one_start_says_little() -> None:
    rows = apart(60, 2, 3, 6.0)
    assert "one_start" in kinds(sampled(rows, init="single"))
    assert "one_start" in kinds(sampled(rows, chains=1))
    assert "one_start" not in kinds(sampled(rows, init=["single", "fit"]))


def test_one_draw_warns_and_so_do_longer_and_joined_chains() -> None:
    rows = apart(60, 2, 3, 6.0)
    with pytest.warns(sb.ConvergenceWarning, match="chains of 1 draw cannot be compared"):
        one = sb.sample(MODEL, rows, draws=1, warmup=0, threads=1)
    assert kinds(one) == ["ess"]
    with pytest.warns(sb.ConvergenceWarning, match="effective") as caught:
        longer = one.extend(20, threads=1)
    assert {warning.filename for warning in caught} == {__file__}
    with pytest.warns(sb.ConvergenceWarning, match="effective") as caught:
        sb.concat([longer, sampled(rows, draws=21, warmup=0, seed=1)])
    assert {warning.filename for warning in caught} == {__file__}


def test_advice_names_what_supports_the_model() -> None:
    rows = apart(60, 2, 3, 6.0)
    tails = sampled(rows, sb.Slice(), model=sb.Mixture(likelihood=sb.StudentT()), draws=20, warmup=0)
    tries = [word for advice in tails.advice() for word in advice.suggestions]
    assert "BlockedGibbs()" in tries
    assert not {"SplitMerge()", "TreeGuided()"} & set(tries)


def test_a_run_that_was_cut_short_goes_on_from_its_first_chain() -> None:
    trace = sampled(apart(40, 1, 2, 6.0), draws=10**5, warmup=5, max_seconds=1.0)
    (stopped,) = [advice for advice in trace.advice() if advice.kind == "stopped"]
    assert stopped.suggestions == (f"trace.extend(draws={10**5 - trace.log_joint.shape[1]})",)
    ahead = trace._chains.ran.ahead
    if ahead > 1:
        with pytest.raises(sb.InvalidArgument, match=f"draws must be at least {ahead}, by which a chain is ahead"):
            trace.extend(ahead - 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sb.ConvergenceWarning)
        assert trace.extend(max(ahead, 1), threads=1).log_joint.shape[1] == trace.log_joint.shape[1] + max(ahead, 1)


def test_traces_without_rows_know_their_data(tmp_path: Any) -> None:
    rows = apart(60, 2, 3, 6.0)
    model = sb.Mixture(likelihood=sb.KnownCovarianceGaussian(np.eye(2), mean=[0, 0], mean_precision=0.1))
    for name, data, seed in (("a", rows, 0), ("b", rows + 1.0, 1), ("c", rows, 2)):
        sampled(data, model=model, draws=5, seed=seed).save(tmp_path / f"{name}.safetensors", rows=False)
    a, b, c = (sb.load(tmp_path / f"{name}.safetensors") for name in "abc")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sb.ConvergenceWarning)
        assert sb.concat([a, c]).log_joint.shape == (8, 5)
    with pytest.raises(sb.InvalidArgument, match="data"):
        sb.concat([a, b])


def test_slices_are_refused_where_runs_end() -> None:
    rows = apart(40, 2, 2, 6.0)
    for mass, discount, is_refused in [
        (1.0, 0.4, False),
        (100.0, 0.4, True),
        (1.0, 0.45, True),
        (20.0, 0.3, False),
        (sb.Gamma(2.0, 0.1), 0.4, True),
        (sb.Gamma(1.0, 1.0), 0.3, False),
    ]:
        model = sb.Mixture(likelihood=sb.Gaussian(), process=sb.NormalizedGeneralizedGamma(mass, discount))
        if is_refused:
            with pytest.raises(sb.NotSupported, match="more than one of a hundred runs"):
                sampled(rows, sb.Slice(), model=model, draws=5, warmup=0)
        else:
            assert sampled(rows, sb.Slice(), model=model, draws=5, warmup=0).log_joint.shape == (4, 5)


def test_an_estimate_that_a_sampler_cannot_hold_is_an_error_of_the_data() -> None:
    rows = np.random.default_rng(0).normal(size=(60, 2))
    rows[3] = 1e8
    with pytest.raises(sb.InvalidArgument, match="rows whose estimated scale is") as caught:
        sampled(rows, model=sb.Mixture(likelihood=sb.Gaussian()))
    assert caught.value.argument == "data"


def test_the_default_truncation_holds_every_start() -> None:
    rows = np.random.default_rng(0).normal(size=(100, 1))
    trace = sampled(rows, sb.BlockedGibbs(), init=["single", np.arange(100) % 90], draws=2, warmup=0)
    assert trace.n_clusters[1].max() > 20


def test_advice_counts_the_draws_of_each_chain() -> None:
    trace = sampled(apart(60, 2, 3, 6.0), draws=30, warmup=0)
    quantities = ("log_joint", "n_clusters", "largest_cluster")
    least = min(trace.ess(name) for name in quantities)
    (few,) = [advice for advice in trace.advice() if advice.kind == "ess"]
    assert few.suggestions[0] == f"trace.extend(draws={np.ceil(30 * (1.2 * 400.0 / least - 1.0)):.0f})"
