"""`sample`: arguments, same draws for any number of threads, early stops, files, predictions."""

import dataclasses
import os
import pickle
import signal
import threading

import numpy as np
import pytest
from scipy import sparse

import stickbreak as sb
from oracles.partitions import GaussianMarginal
from stickbreak import _core

RNG = np.random.default_rng(0)
X = np.concatenate([RNG.normal(-4, 1, size=(20, 2)), RNG.normal(4, 1, size=(25, 2))])
FIXED = sb.Gaussian(mean=[0.0, 0.0], mean_precision=0.1, dof=4.0, scale=np.eye(2))
MODEL = sb.Mixture(likelihood=FIXED, process=sb.DirichletProcess(1.0))
WORDS = RNG.poisson([[3, 0.5, 0.2, 1.0]] * 15 + [[0.2, 2.0, 3.0, 0.1]] * 15).astype(float)


def short(model=MODEL, data=X, sampler=None, **options):
    return sb.sample(model, data, sampler, **{"draws": 12, "warmup": 4, "chains": 2, **options})


def equal(one, other):
    assert (one.partitions == other.partitions).all()
    assert (one.log_joint == other.log_joint).all()
    assert (one.n_clusters == other.n_clusters).all()


def test_log_ratios_of_two_rows_are_the_posterior_odds():
    """With two rows a split or merge has one way to go, so its ratio is that of the posterior probabilities."""
    rows = np.array([[0.0, 0.0], [3.0, 1.0]])
    trace = sb.sample(MODEL, rows, sb.SplitMerge(proposal="sequential"), draws=200, warmup=0, chains=1, seed=1)
    log_joint = [trace.log_joint[trace.n_clusters == k][0] for k in (1, 2)]
    odds = log_joint[1] - log_joint[0]
    np.testing.assert_allclose([trace.log_ratio["split"], trace.log_ratio["merge"]], [odds, -odds], rtol=1e-10)
    assert np.isnan(trace.log_ratio["gibbs"])


SAMPLERS = [
    sb.CollapsedGibbs(),
    sb.CollapsedGibbs(subset=7),
    sb.SplitMerge(),
    sb.TreeGuided(),
    sb.BlockedGibbs(),
    sb.Slice(),
]


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_threads_do_not_matter(sampler):
    one = short(sampler=sampler, chains=3, threads=1)
    equal(one, short(sampler=sampler, chains=3, threads=2))
    # A chain is the same whatever the number of chains and of draws.
    longer = short(sampler=sampler, chains=1, draws=20)
    assert (longer.partitions[0, :12] == one.partitions[0]).all()
    assert not (one.partitions[0] == one.partitions[1]).all()
    assert not (one.partitions == short(sampler=sampler, chains=3, seed=1).partitions).all()


def test_shapes_and_kinds():
    trace = short(thin=3)
    assert trace.partitions.shape == (2, 12, 45)
    assert trace.partitions.dtype == np.int32
    assert trace.log_joint.shape == trace.n_clusters.shape == (2, 12)
    assert trace.seconds.shape == (2,)
    assert trace.hyperparameters == {}
    assert 0.0 <= trace.acceptance["gibbs"] <= 1.0
    assert set(short(sampler=sb.SplitMerge()).acceptance) == {"gibbs", "split", "merge"}
    assert trace.model == MODEL.__class__(likelihood=trace.model.likelihood, process=MODEL.process)
    with pytest.raises(ValueError):
        trace.log_joint[0, 0] = 1.0


@pytest.mark.parametrize("init", ["single", "singletons", np.arange(45) % 3, "fit"])
def test_starts(init):
    chosen = (
        sb.fit(sb.Mixture(likelihood=FIXED), X, n_components=2) if isinstance(init, str) and init == "fit" else init
    )
    trace = short(init=chosen, warmup=0, draws=1, sampler=sb.CollapsedGibbs(subset=1))
    expected = {"single": 1, "singletons": 45, "fit": 2}[init] if isinstance(init, str) else 3
    assert abs(trace.n_clusters - expected).max() <= 1


def test_starts_are_forgotten():
    found = [short(init=init, draws=300, warmup=200).n_clusters.mean() for init in ("single", "singletons")]
    assert abs(found[0] - found[1]) < 0.5


def test_parameters_that_are_none_are_estimated_and_kept():
    model = sb.Mixture(likelihood=sb.Gaussian())
    trace = short(model)
    fit = sb.fit(model, X)
    for name in ("mean", "mean_precision", "dof", "scale"):
        np.testing.assert_allclose(
            getattr(trace.model.likelihood, name), getattr(fit.model.likelihood, name), rtol=1e-9
        )
    again = short(trace.model)
    assert again.log_joint == pytest.approx(trace.log_joint, abs=1e-7)
    rule = short(sb.Mixture(likelihood=sb.Gaussian(prior="rule"), process=sb.DirichletProcess(sb.Gamma(1.0, 1.0))))
    assert rule.model.likelihood.mean_precision == 0.1
    assert rule.hyperparameters["concentration"].shape == (2, 12)
    # A truncation concerns fits alone.
    for truncation in ("stick", "tail"):
        other = sb.Mixture(likelihood=sb.Gaussian(), process=sb.DirichletProcess(truncation=truncation))
        assert (short(other).partitions == trace.partitions).all()


def test_columns_without_variance_are_projected_out():
    wide = np.column_stack([X, np.full(45, 3.0)])
    with pytest.warns(sb.SupportWarning, match="column 2 is constant"):
        trace = short(sb.Mixture(likelihood=sb.Gaussian()), wide)
    assert np.isfinite(trace.log_joint).all()
    inside, outside = trace.log_predictive([[-4.0, -4.0, 3.0], [-4.0, -4.0, 3.5]])
    assert np.isfinite(inside)
    assert outside == -np.inf


def test_a_callback_and_a_time_limit_stop_chains():
    seen = []

    def stop(draw):
        seen.append(draw)
        return draw.index == 4

    trace = short(draws=1000, chains=1, callbacks=[stop])
    assert trace.partitions.shape == (1, 5, 45)
    assert [draw.index for draw in seen] == list(range(5))
    assert seen[-1].log_joint == trace.log_joint[0, -1]
    limited = short(draws=10**6, max_seconds=0.5)
    assert 1 <= limited.partitions.shape[1] < 10**6
    equal_start = short(draws=5)
    assert (limited.partitions[:, :5] == equal_start.partitions[:, : limited.partitions.shape[1]]).all()
    with pytest.raises(sb.InvalidArgument) as caught:
        short(max_seconds=0.0)
    assert caught.value.argument == "max_seconds"

    def fail(draw):
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        short(callbacks=[fail])


@pytest.fixture
def interruptible():
    """Restore the handler of SIGINT, which background processes may ignore."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_returns_the_draws_so_far():
    def interrupt(draw):
        if (draw.chain, draw.index) == (1, 20):
            os.kill(os.getpid(), signal.SIGINT)

    trace = short(draws=10**6, callbacks=[interrupt])
    assert 1 <= trace.partitions.shape[1] < 10**6


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_of_the_estimate_is_one():
    rows = np.random.default_rng(0).normal(size=(300_000, 5)) * np.arange(300_000)[:, None]
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        short(sb.Mixture(likelihood=sb.Gaussian()), rows, draws=1, warmup=0, chains=1)


@pytest.mark.parametrize(
    ("model", "data"),
    [
        (MODEL, X),
        (sb.Mixture(likelihood=sb.Gaussian(), process=sb.DirichletProcess(sb.Gamma(2.0, 1.0))), X.astype(np.float32)),
        (sb.Mixture(likelihood=sb.Multinomial(pseudo_counts=0.5)), sparse.csr_array(WORDS)),
    ],
)
def test_a_saved_trace_says_the_same(tmp_path, model, data):
    trace = short(model, data)
    trace.save(tmp_path / "trace.safetensors")
    again = sb.load(tmp_path / "trace.safetensors")
    equal(trace, again)
    assert again.model == trace.model
    assert again.acceptance == trace.acceptance
    np.testing.assert_equal(again.log_ratio, trace.log_ratio)
    assert again.seconds.tolist() == trace.seconds.tolist()
    np.testing.assert_allclose(again.log_predictive(data), trace.log_predictive(data), rtol=1e-12)
    assert (again.predict(data) == trace.predict(data)).all()
    for name in ("log_joint", *trace.hyperparameters):
        assert again.ess(name) == trace.ess(name)


def test_damaged_traces_are_refused(tmp_path):
    from stickbreak.io import files

    trace = short(sb.Mixture(likelihood=FIXED, process=sb.DirichletProcess(sb.Gamma(1.0, 1.0))))
    header, arrays = trace._to_parts()
    learned = arrays["hyperparameters.concentration"]
    changes = [
        {"partitions": arrays["partitions"][:, :3]},
        {"partitions": arrays["partitions"].astype(np.int64)},
        {"log_joint": arrays["log_joint"][:, :0]},
        {"rows": arrays["rows"][:4]},
        {"n_clusters": arrays["log_joint"]},
        {"seconds": arrays["seconds"].astype(np.float32)},
        {"hyperparameters.concentration": learned.astype(np.int64)},
    ]
    for number, change in enumerate(changes):
        path = tmp_path / f"{number}.safetensors"
        files.write(path, header, arrays | change, files.TRACE)
        with pytest.raises(sb.ModelFileError):
            sb.load(path)
    # Invalid labels are found on use.
    files.write(path, header, arrays | {"partitions": np.full_like(arrays["partitions"], -2)}, files.TRACE)
    with pytest.raises(sb.ModelFileError):
        sb.load(path).log_predictive(X)


def test_predictions():
    trace = short(draws=200, warmup=50)
    labels = trace.predict([[-4.0, -4.0], [4.0, 4.0], [900.0, -900.0]])
    best = trace.partitions.reshape(-1, 45)[trace.log_joint.argmax()]
    assert labels[0] == np.bincount(best[:20]).argmax()
    assert labels[1] == np.bincount(best[20:]).argmax()
    assert labels[2] == best.max() + 1
    # A density: its integral is one.
    grid = np.linspace(-40, 40, 401)
    one = sb.Mixture(likelihood=sb.Gaussian(mean=[0.0], mean_precision=0.1, dof=3.0, scale=[[1.0]]))
    density = np.exp(short(one, X[:, :1]).log_predictive(grid[:, None]))
    assert density.sum() * 0.2 == pytest.approx(1.0, abs=1e-3)


def test_predictions_have_the_hyperparameters_of_their_draw():
    """Of two predictive weights of a Dirichlet process: n_c m(c and x) / m(c) and the concentration times m(x)."""
    trace = short(sb.Mixture(likelihood=FIXED, process=sb.DirichletProcess(sb.Gamma(1.0, 1.0))), draws=30)
    grid = np.column_stack([np.zeros(1000), np.linspace(4.0, 24.0, 1000)])
    marginal = GaussianMarginal(FIXED.mean, FIXED.mean_precision, FIXED.dof, FIXED.scale)
    chain, draw = np.unravel_index(trace.log_joint.argmax(), trace.log_joint.shape)
    labels = trace.partitions[chain, draw]
    clusters = [X[labels == label] for label in range(labels.max() + 1)]
    joins = np.array(
        [
            [np.log(len(rows)) + marginal.log_m(np.vstack([rows, x])) - marginal.log_m(rows) for rows in clusters]
            for x in grid
        ]
    )
    alone = np.array([marginal.log_m(x[None]) for x in grid])

    def predicted(concentration):
        return np.column_stack([joins, np.log(concentration) + alone]).argmax(1)

    found = trace.hyperparameters["concentration"]
    np.testing.assert_array_equal(trace.predict(grid, loss="map"), predicted(found[chain, draw]))
    # The label depends on the concentration: that of most other draws gives other labels.
    others = [(predicted(value) != predicted(found[chain, draw])).any() for value in found.ravel()]
    assert np.mean(others) > 0.9


BAD = {
    "model": {"model": FIXED},
    "sampler": {"sampler": "gibbs"},
    "draws": {"draws": 0},
    "warmup": {"warmup": -1},
    "chains": {"chains": 0},
    "thin": {"thin": 0},
    "seed": {"seed": -1},
    "threads": {"threads": 0},
    "max_seconds": {"max_seconds": -1.0},
    "progress": {"progress": "yes"},
    "callbacks": {"callbacks": print},
    "init": {"init": "kmeans++"},
    "subset": {"sampler": sb.CollapsedGibbs(subset=46)},
}


@pytest.mark.parametrize("argument", BAD)
def test_bad_arguments_are_named(argument):
    with pytest.raises((sb.InvalidArgument, sb.InvalidType)) as caught:
        short(**BAD[argument])
    assert caught.value.argument == argument


@pytest.mark.parametrize("init", [np.zeros(44, int), np.full(45, 45), np.zeros(45), 3, np.zeros((45, 2))])
def test_bad_starts_are_named(init):
    with pytest.raises((sb.InvalidArgument, sb.InvalidType)) as caught:
        short(init=init)
    assert caught.value.argument == "init"


def test_starts_that_the_process_does_not_allow():
    model = sb.Mixture(likelihood=FIXED, process=sb.FiniteDirichlet(3))
    with pytest.raises(sb.InvalidArgument) as caught:
        short(model, init="singletons")
    assert caught.value.argument == "init"


@pytest.mark.parametrize(
    "data",
    [np.where(X > 6, np.nan, X), np.full_like(X, np.inf), X[:, 0], np.ones((9, 2)), "x.parquet", np.zeros((0, 2))],
)
def test_bad_data_are_named(data):
    with pytest.raises((sb.StickbreakError, ValueError)) as caught:
        short(sb.Mixture(likelihood=sb.Gaussian()), data)
    assert getattr(caught.value, "argument", "data") == "data"


def test_what_is_not_supported_says_what_to_use():
    with pytest.raises(sb.NotSupported) as caught:
        short(data=lambda: iter([X]))
    assert caught.value.argument == "data"
    with pytest.raises(sb.NotSupported) as caught:
        short(sb.Mixture(likelihood=sb.SphericalGaussian(base="product")))
    assert caught.value.argument == "model"


def test_the_model_of_a_fit_to_rounded_rows_can_be_sampled():
    rounded = np.round(X)
    fit = sb.fit(sb.Mixture(likelihood=sb.Gaussian()), rounded, progress=False)
    assert (np.asarray(fit.model.likelihood.resolution) > 0).any()
    trace = short(fit.model, rounded, init=fit)
    assert not np.any(trace.model.likelihood.resolution)


def test_a_trace_is_read_only_and_can_be_pickled():
    trace = short()
    for array in (trace.partitions, trace.log_joint, trace.n_clusters, trace.seconds):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    again = pickle.loads(pickle.dumps(trace))
    equal(trace, again)
    assert (again.predict(X) == trace.predict(X)).all()


def test_labels_of_a_file_fit_the_numbers_of_clusters():
    header, found = short()._to_parts()
    found["partitions"] = found["partitions"] - 7
    with pytest.raises(ValueError, match="labels"):
        sb.result.trace.Trace._from_parts(header, found)


def test_names_of_quantities_are_checked():
    trace = short()
    for function in (trace.ess, trace.rhat):
        with pytest.raises(sb.InvalidArgument) as caught:
            function("elbo")
        assert caught.value.argument == "name"
    for data in (X[:, :1], np.full((2, 2), np.nan)):
        with pytest.raises(sb.InvalidArgument):
            trace.log_predictive(data)


def test_large_partitions_are_a_memory_map(monkeypatch):
    from stickbreak.result import room

    expected = short()
    monkeypatch.setattr(room, "_MOST_IN_MEMORY", 100)
    trace = short()
    assert isinstance(trace.partitions, np.memmap)
    equal(trace, expected)


def test_the_progress_bar_says_where_chains_are(capsys):
    short(progress=True, draws=10**5, max_seconds=0.6)
    assert "log joint" in capsys.readouterr().err


@pytest.mark.parametrize("sampler", [sb.CollapsedGibbs(subset=9), sb.SplitMerge(), sb.BlockedGibbs(), sb.Slice()])
@pytest.mark.parametrize("is_learned", [False, True])
def test_a_run_goes_on_from_its_checkpoint(tmp_path, sampler, is_learned):
    process = sb.NormalizedGeneralizedGamma(sb.Gamma(1.0, 1.0), sb.Beta(1.5, 1.5))
    if is_learned:
        process = sb.PitmanYor(sb.Beta(1.0, 9.0), concentration=sb.Gamma(1.0, 1.0))
        if isinstance(sampler, sb.BlockedGibbs):
            sampler = sb.BlockedGibbs(truncation=30)
        if isinstance(sampler, sb.Slice):
            process = sb.PitmanYor(0.2, concentration=sb.Gamma(1.0, 1.0))
    elif isinstance(sampler, sb.BlockedGibbs):
        process = sb.DirichletProcess(sb.Gamma(1.0, 1.0))
    elif isinstance(sampler, sb.Slice):
        process = sb.NormalizedGeneralizedGamma(sb.Gamma(1.0, 1.0), 0.2)
    model = sb.Mixture(likelihood=FIXED, process=process)
    whole = short(model, sampler=sampler, draws=30)
    checkpoint = sb.Checkpoint(tmp_path / "chains.checkpoint", every_seconds=0)
    cut = short(model, sampler=sampler, draws=30, checkpoint=checkpoint, callbacks=[lambda draw: draw.index == 7])
    assert cut.partitions.shape[1] == 8
    resumed = short(model, sampler=sampler, draws=30, checkpoint=checkpoint)
    equal(whole, resumed)
    assert whole.hyperparameters
    for name in whole.hyperparameters:
        assert (whole.hyperparameters[name] == resumed.hyperparameters[name]).all()
    # Once more: everything is there. Then for longer.
    equal(whole, short(model, sampler=sampler, draws=30, checkpoint=checkpoint))
    longer = short(model, sampler=sampler, draws=40, checkpoint=checkpoint)
    equal(longer, short(model, sampler=sampler, draws=40))


def test_checkpoints_of_other_runs_are_refused(tmp_path):
    path = tmp_path / "chains.checkpoint"
    checkpoint = sb.Checkpoint(path, every_seconds=0)
    short(checkpoint=checkpoint)
    before = path.read_bytes()
    other = sb.Mixture(likelihood=FIXED, process=sb.DirichletProcess(2.0))
    wide = sb.Mixture(likelihood=dataclasses.replace(FIXED, dof=9.0), process=sb.DirichletProcess(1.0))
    changes = {
        "sampler": {"sampler": sb.CollapsedGibbs()},
        "data": {"data": X + 1.0},
        "likelihood": {"model": wide},
        "process": {"model": other},
        "warmup": {"warmup": 5},
        "thin": {"thin": 2},
        "chains": {"chains": 3},
        "init": {"init": "singletons"},
        "seed": {"seed": 1},
        "draws": {"draws": 3},
    }
    for name, change in changes.items():
        with pytest.raises(sb.CheckpointError, match=rf"(written for (another )?|now ){name}\b"):
            short(**change, checkpoint=checkpoint)
        assert path.read_bytes() == before
    with pytest.raises(sb.CheckpointError):
        sb.fit(MODEL, X, sb.Full(max_passes=1), n_components=2, checkpoint=checkpoint)
    sb.fit(MODEL, X, sb.Full(max_passes=1), n_components=2, checkpoint=sb.Checkpoint(tmp_path / "fit"))
    with pytest.raises(sb.CheckpointError):
        short(checkpoint=sb.Checkpoint(tmp_path / "fit"))
    path.write_bytes(before[:-20])
    with pytest.raises(sb.CheckpointError):
        short(checkpoint=checkpoint)
    with pytest.raises(sb.InvalidType):
        short(checkpoint=str(path))


def test_processes_without_weights_are_estimated_under_a_dirichlet_process():
    process = sb.NormalizedGeneralizedGamma.inverse_gaussian(1.0)
    with pytest.raises(sb.NotSupported) as caught:
        sb.fit(sb.Mixture(likelihood=sb.Gaussian(), process=process), X)
    assert caught.value.argument == "process"
    assert "sb.sample" in caught.value.allowed
    trace = short(sb.Mixture(likelihood=sb.Gaussian(), process=process))
    fit = sb.fit(sb.Mixture(likelihood=sb.Gaussian(), process=sb.DirichletProcess(1.0)), X)
    np.testing.assert_allclose(trace.model.likelihood.scale, fit.model.likelihood.scale, rtol=1e-9)
    assert trace.model.process == process


@pytest.mark.parametrize("kind", ["--exact", "--search"])
def test_the_command_line_tells_a_search_apart(tmp_path, capsys, kind):
    from stickbreak.cli.commands import program

    rows, out = tmp_path / "rows.npy", tmp_path / "trace.safetensors"
    np.save(rows, X)
    start = ["mcmc", str(rows), "-o", str(out), "--draws", "4", "--warmup", "0", "--chains", "1", "--prior", "rule"]
    assert program.main([*start, "--sampler", "tree-guided", kind], standalone_mode=False) == 0
    assert ("search" in capsys.readouterr().out) == (kind == "--search")
    assert program.main([*start, "--sampler", "cg", kind], standalone_mode=False) == 2
    assert f"{kind} does not go with collapsed-gibbs" in capsys.readouterr().err


def test_the_command_line_draws_a_trace(tmp_path, capsys):
    from stickbreak.cli.commands import program

    rows, out = tmp_path / "rows.npy", tmp_path / "trace.safetensors"
    np.save(rows, X)
    labels = tmp_path / "labels.csv"
    options = ["--draws", "20", "--warmup", "5", "--chains", "2", "--sampler", "split-merge", "--json"]
    options += ["--labels", str(labels)]
    assert program.main(["mcmc", str(rows), "-o", str(out), *options], standalone_mode=False) == 0
    assert '"draws": 20' in capsys.readouterr().out
    trace = sb.load(out)
    equal(trace, short(sb.Mixture(likelihood=sb.Gaussian()), draws=20, warmup=5, sampler=sb.SplitMerge()))
    best = np.unravel_index(trace.log_joint.argmax(), trace.log_joint.shape)
    assert (np.loadtxt(labels, skiprows=1) == trace.partitions[best]).all()
    assert program.main(["info", str(out)], standalone_mode=False) == 1
    assert "a trace" in capsys.readouterr().err
    assert program.main(["mcmc", str(rows), "-o", str(out), "--draws", "0"], standalone_mode=False) == 2


def test_the_command_line_tells_the_rates_of_a_likelihood_and_of_a_process_apart(tmp_path, capsys):
    from stickbreak.cli.commands import program

    rows, out = tmp_path / "rows.npy", tmp_path / "trace.safetensors"
    np.save(rows, np.random.default_rng(2).poisson([[2.0], [9.0]], size=(2, 20)).reshape(-1, 1))
    finite = ["--process", "mixture-of-finite-mixtures", "--concentration", "0.5", "--process-rate", "3"]
    likelihood = ["--likelihood", "poisson", "--shape", "1", "--rate", "2"]
    chains = ["--draws", "4", "--warmup", "1", "--chains", "1", "--quiet"]
    arguments = ["mcmc", str(rows), "-o", str(out), *chains]
    assert program.main([*arguments, *likelihood, *finite], standalone_mode=False) == 0
    model = sb.load(out).model
    assert model.process == sb.MixtureOfFiniteMixtures(0.5, rate=3.0)
    assert model.likelihood.rate == 2.0
    capsys.readouterr()
    for wrong, said in [
        ([*likelihood, *finite[:-1], "0"], "--process-rate must be greater than 0, but it is 0"),
        (finite[-2:], "--process-rate does not go with gaussian or dirichlet-process"),
        ([*finite, "--rate", "2"], "--rate does not go with gaussian or mixture-of-finite-mixtures"),
        ([*likelihood[:-1], "-2", *finite], "--rate must be greater than 0, but it is -2"),
    ]:
        assert program.main([*arguments, *wrong], standalone_mode=False) == 2
        assert said in capsys.readouterr().err


def test_the_command_line_writes_the_labels_of_the_loss(tmp_path):
    """The usual loss is "vi"; the best draw of all, "map", is one of the second chain."""
    from stickbreak.cli.commands import program

    rows, out, labels = tmp_path / "rows.npy", tmp_path / "trace.safetensors", tmp_path / "labels.npy"
    rng = np.random.default_rng(1)
    np.save(rows, 2.5 * rng.normal(size=(5, 2))[rng.integers(5, size=60)] + rng.normal(size=(60, 2)))
    options = ["--draws", "8", "--warmup", "0", "--chains", "2", "--prior", "rule", "--quiet", "--seed", "0"]
    options += ["--init", "single", "--sampler", "collapsed-gibbs"]
    arguments = ["mcmc", str(rows), "-o", str(out), "--force", "--labels", str(labels), *options]
    written = {}
    for loss in (None, "vi", "binder", "map"):
        chosen = [] if loss is None else ["--loss", loss]
        assert program.main([*arguments, *chosen], standalone_mode=False) == 0
        written[loss] = np.load(labels)
        np.testing.assert_array_equal(written[loss], sb.load(out).point_estimate(loss or "vi").labels)
    assert len({one.tobytes() for one in written.values()}) > 1
    trace = sb.load(out)
    bests = trace.log_joint.argmax(1)
    assert trace.log_joint[1, bests[1]] > trace.log_joint[0, bests[0]]
    np.testing.assert_array_equal(written["map"], trace.partitions[1, bests[1]])


@pytest.mark.filterwarnings("ignore::stickbreak.TruncationWarning")
def test_a_fit_with_too_many_clusters_is_a_start_too():
    trace = short(sampler=sb.BlockedGibbs(truncation=1))
    assert (trace.n_clusters == 1).all()
    with pytest.raises(sb.InvalidArgument, match="at most 1, the number of components") as caught:
        short(sampler=sb.BlockedGibbs(truncation=1), init="singletons")
    assert caught.value.argument == "init"


def test_samplers_name_what_to_use_instead():
    def refused(process, sampler):
        with pytest.raises((sb.NotSupported, sb.InvalidArgument)) as caught:
            short(sb.Mixture(likelihood=FIXED, process=process), sampler=sampler)
        return caught.value.argument, caught.value.allowed

    assert refused(sb.NormalizedGeneralizedGamma(1.0, 0.3), sb.BlockedGibbs()) == ("sampler", "Slice()")
    assert refused(sb.FiniteDirichlet(3), sb.Slice()) == ("sampler", "BlockedGibbs()")
    for sampler in (sb.BlockedGibbs(), sb.Slice()):
        expected = ("sampler", "CollapsedGibbs(), SplitMerge() or TreeGuided()")
        assert refused(sb.MixtureOfFiniteMixtures(), sampler) == expected
    assert refused(sb.FiniteDirichlet(3), sb.BlockedGibbs(truncation=4)) == ("truncation", "None")
    argument, allowed = refused(sb.PitmanYor(0.5), sb.BlockedGibbs())
    assert argument == "truncation"
    assert "Slice()" in allowed


def test_an_error_keeps_the_draws_so_far(monkeypatch):
    # Such a model is refused, because a sweep soon needs too many components.
    monkeypatch.setattr(_core, "check_model", lambda *_: None)
    model = sb.Mixture(likelihood=FIXED, process=sb.NormalizedGeneralizedGamma(1.0, 0.9))
    with pytest.raises(sb.NumericalError, match="the slice of row") as caught:
        short(model, sampler=sb.Slice(), init="single", warmup=0, draws=1000, chains=1, seed=3)
    trace = caught.value.trace
    assert trace.stop_reason == "error"
    assert 0 < trace.partitions.shape[1] < 1000
    assert np.isfinite(trace.log_joint).all()


def test_labels_that_belong_too_far_behind_are_an_error():
    # Under a large concentration almost every swap of sticks is accepted.
    model = sb.Mixture(likelihood=FIXED, process=sb.DirichletProcess(1e300))
    with pytest.raises(sb.NumericalError, match=r"more than 1000000 components.*a smaller concentration"):
        short(model, sampler=sb.Slice(), init="single", warmup=0, draws=100, chains=1)


def test_a_memory_map_is_read_in_place(tmp_path):
    path = tmp_path / "rows.npy"
    np.save(path, X.astype(np.float32))
    mapped = np.load(path, mmap_mode="r")
    for sampler in (sb.BlockedGibbs(), sb.Slice()):
        equal(short(data=mapped, sampler=sampler), short(data=X.astype(np.float32), sampler=sampler))
