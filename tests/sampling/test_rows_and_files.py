"""`sample` and `Trace`: types of rows, rows that vary in some directions only, bad rows, files of other functions."""

import sys

import numpy as np
import pytest
from scipy import sparse

import stickbreak as sb

RNG = np.random.default_rng(0)
X = np.concatenate([RNG.normal(-4, 1, size=(20, 2)), RNG.normal(4, 1, size=(25, 2))])
FIXED = sb.Gaussian(mean=[0.0, 0.0], mean_precision=0.1, dof=4.0, scale=np.eye(2))
MODEL = sb.Mixture(likelihood=FIXED, process=sb.DirichletProcess(1.0))


def short(model=MODEL, data=X, sampler=None, **options):
    return sb.sample(model, data, sampler, **{"draws": 12, "warmup": 4, "chains": 2, **options})


@pytest.mark.parametrize("offset", [0.0, 1e4])
@pytest.mark.parametrize("likelihood", [sb.Gaussian, sb.DiagonalGaussian])
def test_the_type_of_rows_does_not_matter(likelihood, offset):
    """Rows become float64 first, so float32 rows give the same digits as the equal float64 rows."""
    narrow = (X + offset).astype(np.float32)
    model = short(sb.Mixture(likelihood=likelihood()), narrow.astype(float), draws=1).model
    one, other = short(model, narrow), short(model, narrow.astype(float))
    assert (one.partitions == other.partitions).all()
    assert one.log_joint == pytest.approx(other.log_joint, abs=1e-9)
    new = narrow[::7] + np.float32(0.3)
    assert one.log_predictive(new) == pytest.approx(other.log_predictive(new.astype(float)), abs=1e-10)


def test_a_trace_has_the_support_of_a_fit(tmp_path):
    wide = np.column_stack([X, np.full(45, 3.0), X.sum(1)])
    model = sb.Mixture(likelihood=sb.Gaussian())
    with pytest.warns(sb.SupportWarning, match="column 2 is constant"):
        fit = sb.fit(model, wide)
    with pytest.warns(sb.SupportWarning, match="column 2 is constant"):
        trace = short(model, wide)
    trace.save(tmp_path / "trace.safetensors")
    for found in (trace.support, sb.load(tmp_path / "trace.safetensors").support):
        assert (found.rank, found.constant, found.dependent) == (2, (2,), (3,))
        np.testing.assert_allclose(found.basis, fit.support.basis, atol=1e-12)
        assert not found.basis.flags.writeable
    assert short().support.rank == 2
    assert short().support.constant == ()


def test_rows_far_away_have_the_log_density_minus_infinity():
    found = short().log_predictive([[1e150, 0.0], [1e160, 0.0]])
    assert np.isfinite(found[0])
    assert found[1] == -np.inf
    with pytest.raises(sb.NumericalError, match="row 1 is so far"):
        short().predict([[1e150, 0.0], [1e160, 0.0]])


EQUAL = {
    "infinite": (sb.Gaussian(), np.full((9, 2), np.inf), "inf"),
    "negative": (sb.Multinomial(), np.full((9, 2), -1.0), "-1"),
    "no flags": (sb.Bernoulli(), np.full((9, 2), 0.5), "0.5"),
    "sparse": (sb.Poisson(), sparse.csr_array(np.full((9, 2), -2.0)), "-2"),
}


@pytest.mark.parametrize("name", EQUAL)
def test_equal_rows_of_bad_values_are_refused_for_their_values(name):
    likelihood, rows, found = EQUAL[name]
    with pytest.raises(sb.InvalidArgument) as caught:
        short(sb.Mixture(likelihood=likelihood), rows)
    assert caught.value.argument == "data"
    assert found in caught.value.found
    assert "equal" not in str(caught.value)


@pytest.mark.parametrize("likelihood", [sb.Gaussian(), sb.Multinomial()])
def test_equal_rows_of_good_values_are_refused_for_being_equal(likelihood):
    with pytest.raises(sb.InvalidArgument, match="rows that are all equal"):
        short(sb.Mixture(likelihood=likelihood), np.ones((9, 2)))


def test_checkpoints_of_the_other_function_are_named(tmp_path):
    chains, passes = (sb.Checkpoint(tmp_path / name, every_seconds=0) for name in ("chains", "passes"))

    def fitted(checkpoint):
        return sb.fit(MODEL, X, sb.Full(max_passes=1), n_components=2, checkpoint=checkpoint)

    short(checkpoint=chains)
    fitted(passes)
    before = [checkpoint.path.read_bytes() for checkpoint in (chains, passes)]
    with pytest.raises(sb.CheckpointError, match="a checkpoint of `sample`, from which `fit` cannot go on"):
        fitted(chains)
    with pytest.raises(sb.CheckpointError, match="a checkpoint of `fit`, from which `sample` cannot go on"):
        short(checkpoint=passes)
    assert [checkpoint.path.read_bytes() for checkpoint in (chains, passes)] == before


def test_chains_of_the_command_line_go_on_from_their_checkpoint(tmp_path, capsys):
    from stickbreak.cli.commands import program

    rows, out, kept = tmp_path / "rows.npy", tmp_path / "trace.safetensors", tmp_path / "chains"
    np.save(rows, X)

    def run(*options):
        start = ["mcmc", str(rows), "-o", str(out), "--warmup", "4", "--chains", "2", "--prior", "rule", "--quiet"]
        return program.main([*start, *options], standalone_mode=False)

    checkpoint = ["--checkpoint", str(kept), "--checkpoint-seconds", "0"]
    assert run("--draws", "5", *checkpoint) == 0
    before = kept.read_bytes()
    assert run("--draws", "12", *checkpoint) == 0
    assert kept.read_bytes() != before
    expected = short(sb.Mixture(likelihood=sb.Gaussian(prior="rule")), sampler=sb.SplitMerge())
    assert (sb.load(out).partitions == expected.partitions).all()
    assert run("--draws", "12", "--seed", "1", *checkpoint) == 1
    assert "seed" in capsys.readouterr().err
    assert run("--draws", "5", "--checkpoint-seconds", "3") == 2
    assert run("--draws", "5", "--checkpoint", str(out)) == 2


@pytest.mark.parametrize("installed", [True, False])
def test_draws_for_arviz(monkeypatch: pytest.MonkeyPatch, installed: bool) -> None:
    rows = np.random.default_rng(0).normal([[-9.0], [9.0]], size=(2, 10)).reshape(-1, 1)
    model = sb.Mixture(likelihood=sb.Gaussian(), process=sb.DirichletProcess(sb.Gamma(1.0, 1.0)))
    trace = sb.sample(model, rows, draws=12, warmup=4, chains=2, progress=False)
    if not installed:
        monkeypatch.setitem(sys.modules, "arviz", None)
        with pytest.raises(sb.NotSupported, match="pip install arviz"):
            trace.to_arviz()
        return
    pytest.importorskip("arviz", reason="ArviZ is not installed")
    posterior = trace.to_arviz().posterior
    assert set(posterior.data_vars) == {"n_clusters", "log_joint", "largest_cluster", "concentration"}
    np.testing.assert_array_equal(posterior["log_joint"], trace.log_joint)
    np.testing.assert_array_equal(posterior["n_clusters"], trace.n_clusters)
    assert posterior.attrs["exact"] == 1


@pytest.mark.parametrize("keep_rows", [None, [3, 1, 30]])
@pytest.mark.parametrize("learned", [False, True])
def test_a_trace_without_its_rows_comes_back(tmp_path, keep_rows, learned):
    process = sb.DirichletProcess(sb.Gamma(2.0, 1.0) if learned else 1.0)
    trace = short(sb.Mixture(likelihood=FIXED, process=process), keep_rows=keep_rows)
    path = tmp_path / "trace.safetensors"
    for rows in (True, False):
        trace.save(path, rows=rows)
        again = sb.load(path)
        assert repr(again) == repr(trace)
        assert again.model == trace.model
        np.testing.assert_array_equal(again.partitions, trace.partitions)
        np.testing.assert_array_equal(again.largest_cluster, trace.largest_cluster)
        np.testing.assert_array_equal(again.cluster_sizes(1, 3), trace.cluster_sizes(1, 3))
        assert (again.kept_rows is None) == (keep_rows is None)
        assert again.acceptance == trace.acceptance
        assert {name: again.ess(name) for name in again.hyperparameters} == pytest.approx(
            {name: trace.ess(name) for name in trace.hyperparameters}, nan_ok=True
        )
        np.testing.assert_array_equal(again.point_estimate().labels, trace.point_estimate().labels)
    with pytest.raises(sb.NotSupported, match="saved without its rows"):
        again.predict(X)
    with pytest.raises(sb.NotSupported, match="saved without its rows"):
        again.log_predictive(X)
    with pytest.raises(sb.NotSupported, match="saved without its rows"):
        again.support  # noqa: B018
    with pytest.raises(sb.InvalidType, match="rows"):
        trace.save(path, rows="no")


def test_wrong_sizes_and_kept_rows_of_a_file_are_refused(tmp_path):
    header, found = short(keep_rows=[3, 1])._to_parts()
    wrong = {
        "sizes": [found["sizes"] + 1, found["sizes"][:-1], found["sizes"].astype(np.int32)],
        "kept_rows": [np.array([3, 3]), np.array([3, 45]), np.array([3, 1, 2]), np.array([0.5, 1.0])],
        "partitions": [found["partitions"] + 50, found["partitions"][..., :1]],
    }
    for name, values in wrong.items():
        for value in values:
            with pytest.raises(ValueError, match=r"draws|clusters|labels"):
                sb.Trace._from_parts(header, {**found, name: value})


def test_files_without_sizes_are_read():
    """As they were written before traces had sizes."""
    trace = short()
    header, found = trace._to_parts()
    old = {name: value for name, value in found.items() if name != "sizes"}
    del header["hyperparameters"]
    again = sb.Trace._from_parts(header, old)
    np.testing.assert_array_equal(again.cluster_sizes(0, 5), trace.cluster_sizes(0, 5))
