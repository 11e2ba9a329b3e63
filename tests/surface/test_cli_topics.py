"""`stickbreak topics`: its output equals the package's results; refusals."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import sparse

import stickbreak as sb
from stickbreak.cli.commands import program

WORDS = [f"word{number}" for number in range(30)]
QUICK = ["--max-passes", "5", "--tol", "0", "--quiet"]


@pytest.fixture
def counts() -> np.ndarray:
    rates = np.where(np.arange(40)[:, None] % 2 == np.arange(30) // 15, 4.0, 0.05)
    return np.random.default_rng(0).poisson(rates)


@pytest.fixture
def corpus(tmp_path: Path, counts: np.ndarray) -> Path:
    rows, columns = np.nonzero(counts)
    lines = [f"{r + 1} {c + 1} {counts[r, c]}" for r, c in zip(rows, columns, strict=True)]
    path = tmp_path / "docword.txt.gz"
    path.write_bytes(gzip.compress("\n".join(["40", "30", str(len(lines)), *lines]).encode()))
    return path


def run(*arguments: object, status: int = 0) -> str:
    result = CliRunner().invoke(program, ["topics", *map(str, arguments)])
    assert result.exit_code == status, result.output
    return result.output


def test_it_writes_what_fit_returns(tmp_path: Path, corpus: Path, counts: np.ndarray) -> None:
    out, table = tmp_path / "t.safetensors", tmp_path / "proportions.npy"
    run(corpus, "-k", 2, "--out", out, "--proportions", table, *QUICK)
    expected = sb.fit(sb.TopicModel(sb.LatentDirichlet(2)), counts, sb.Memoized(max_passes=5, tol=0))
    found = sb.load(out)
    np.testing.assert_array_equal(found.topics, expected.topics)
    np.testing.assert_array_equal(np.load(table), expected.transform(counts))


def test_settings_of_words(tmp_path: Path, corpus: Path, counts: np.ndarray) -> None:
    run(corpus, "-k", 3, "--out", tmp_path / "t.safetensors", "--restarts", 2, "--no-warm-start", *QUICK)
    words = sb.Words(restarts=2, warm_start=False)
    expected = sb.fit(sb.TopicModel(sb.LatentDirichlet(3)), counts, sb.Memoized(max_passes=5, tol=0, units=words))
    np.testing.assert_array_equal(sb.load(tmp_path / "t.safetensors").topics, expected.topics)


def test_short_documents_to_score_are_told(tmp_path: Path, corpus: Path) -> None:
    short = tmp_path / "short.txt"
    short.write_text("1\n30\n2\n1 1 5\n1 2 3\n")
    said = run(corpus, "-k", 2, "--out", tmp_path / "t.safetensors", "--test", short, *QUICK)
    assert "short.txt has no document of at least 10 different words" in said
    assert "nan" not in said
    told = CliRunner().invoke(
        program,
        ["topics", str(corpus), "-k", "2", "--out", str(tmp_path / "j.safetensors"), "--test", str(short), "--json"],
    )
    assert json.loads(told.stdout)["test"] is None


@pytest.mark.parametrize("suffix", [".npz", ".npy", ".csv"])
def test_other_files_give_the_same(tmp_path: Path, corpus: Path, counts: np.ndarray, suffix: str) -> None:
    other = tmp_path / f"counts{suffix}"
    if suffix == ".npz":
        sparse.save_npz(other, sparse.csr_array(counts))
    elif suffix == ".npy":
        np.save(other, counts)
    else:
        np.savetxt(other, counts, delimiter=",", fmt="%d")
    topics = []
    for path in (corpus, other):
        run(path, "-k", 2, "--out", tmp_path / "t.safetensors", *QUICK)
        topics.append(sb.load(tmp_path / "t.safetensors").topics)
    np.testing.assert_array_equal(*topics)


def test_what_is_printed(tmp_path: Path, corpus: Path, counts: np.ndarray) -> None:
    out, vocabulary = tmp_path / "t.safetensors", tmp_path / "vocab.txt"
    vocabulary.write_text("\n".join(WORDS) + "\n")
    options = [corpus, "-k", 2, "--out", out, "--vocabulary", vocabulary, "--test", corpus, "--words", 3]
    options += ["--max-passes", 5, "--tol", 0, "--concentration", "estimate"]
    told = json.loads(run(*options, "--json"))
    fit = sb.load(out)
    assert told["top_words"] == fit.top_words(WORDS, 3)
    assert told["test"] == fit.document_completion(counts)
    assert told["concentration"] == fit.concentration != 0.5
    assert told["estimated"] == ["concentration"]
    assert (told["n_documents"], told["n_words"], told["n_tokens"]) == (40, 30, counts.sum())
    text = run(*options)
    assert f"40 documents, {counts.sum():,} words, of 30 distinct ones" in text
    assert f"topic 0: {' '.join(fit.top_words(WORDS, 3)[0])}" in text
    assert f"2 topics, concentration {fit.concentration:.4g} (estimated), word concentration 0.1\n" in text


def test_words_are_kept(tmp_path: Path, corpus: Path, counts: np.ndarray) -> None:
    out, vocabulary, table = tmp_path / "t.safetensors", tmp_path / "vocab.txt", tmp_path / "counts.csv"
    vocabulary.write_text("\n".join(WORDS))
    np.savetxt(table, counts, delimiter=",", fmt="%d", header=",".join(WORDS), comments="")
    for options in ([corpus, "--vocabulary", vocabulary], [table]):
        told = json.loads(run(*options, "-k", 2, "--out", out, "--max-passes", 5, "--tol", 0, "--json"))
        assert sb.load(out).column_names == tuple(WORDS)
        assert told["top_words"] == sb.load(out).top_words(n=8)
        info = CliRunner().invoke(program, ["info", str(out)]).output
        assert f"topic 1: {' '.join(told['top_words'][1])}\n" in info
    run(corpus, "-k", 2, "--out", out, *QUICK)
    numbers = sb.load(out).top_words(n=8)[1]
    assert f"topic 1: {' '.join(map(str, numbers))}\n" in CliRunner().invoke(program, ["info", str(out)]).output


def test_documents_to_score_have_the_words_of_the_corpus(tmp_path: Path, corpus: Path, counts: np.ndarray) -> None:
    out, vocabulary, table = tmp_path / "t.safetensors", tmp_path / "vocab.txt", tmp_path / "test.csv"
    vocabulary.write_text("\n".join(WORDS))
    options = [corpus, "-k", 2, "--out", out, "--max-passes", 5, "--tol", 0, "--json", "--test"]
    np.savetxt(table, counts[:, ::-1], delimiter=",", fmt="%d", header=",".join(WORDS[::-1]), comments="")
    expected = json.loads(run(*options, corpus))["test"]
    assert json.loads(run(*options, table, "--vocabulary", vocabulary))["test"] == expected
    out.unlink()
    np.savetxt(table, counts, delimiter=",", fmt="%d", header=",".join(["other", *WORDS[1:]]), comments="")
    refused = run(*options, table, "--vocabulary", vocabulary, status=2)
    assert "--test must be a table with the words of the corpus, but it is a table without 'word0'" in refused
    np.save(tmp_path / "narrow.npy", counts[:, :3])
    assert "of 30 words" in run(*options, tmp_path / "narrow.npy", status=2)
    assert not out.exists()


def test_info_and_commands_of_mixtures(tmp_path: Path, corpus: Path) -> None:
    out = tmp_path / "t.safetensors"
    told = json.loads(run(corpus, "-k", 2, "--out", out, "--max-passes", 5, "--tol", 0, "--json"))
    info = CliRunner().invoke(program, ["info", str(out), "--json"])
    assert {name: told[name] for name in json.loads(info.output)} == json.loads(info.output)
    assert "40 documents" in CliRunner().invoke(program, ["info", str(out)]).output
    refused = CliRunner().invoke(program, ["predict", str(out), str(corpus)])
    assert refused.exit_code == 1
    assert "a topic model of `stickbreak topics`" in refused.output


def test_schedules_and_checkpoints(tmp_path: Path, corpus: Path) -> None:
    out, checkpoint = tmp_path / "t.safetensors", tmp_path / "c.checkpoint"
    run(corpus, "-k", 2, "--out", out, "--schedule", "stochastic", "--batch-size", 10, "--sparsity", "dense", *QUICK)
    assert len(sb.load(out).history) == 5
    run(corpus, "-k", 2, "--out", out, "--checkpoint", checkpoint, *QUICK)
    once = sb.load(out).topics
    assert checkpoint.exists()
    run(corpus, "-k", 2, "--out", out, "--checkpoint", checkpoint, *QUICK)
    np.testing.assert_array_equal(sb.load(out).topics, once)


@pytest.mark.parametrize(
    ("options", "status", "said"),
    [
        ([], 2, "--n-topics"),
        (["-k", 0], 2, "--n-topics must be an integer from 1"),
        (["-k", 100_000], 2, "--n-topics must be at most"),
        (["-k", 2, "--concentration", "big"], 2, "neither a number nor"),
        (["-k", 2, "--schedule", "stochastic"], 2, "--batch-size"),
        (["-k", 2, "--batch-size", 3], 2, "does not go with memoized"),
        (["-k", 2, "--restarts", -1], 2, "--restarts must be an integer from 0 to 1000, but it is -1"),
        (["-k", 2, "--first-pass", "scald"], 2, "--first-pass must be 'plain' or 'scaled'"),
        (["-k", 2, "--words", 0], 2, "words"),
        (["-k", 2, "--vocabulary", "missing.txt"], 1, "cannot be read"),
        (["-k", 2, "--test", "missing.docx"], 2, "the name of a docword file"),
        (["-k", 2, "--proportions", "p.doc"], 2, "proportions"),
    ],
)
def test_bad_usage(tmp_path: Path, corpus: Path, options: list[object], status: int, said: str) -> None:
    assert said in run(corpus, "--out", tmp_path / "t.safetensors", *options, status=status)
    assert not (tmp_path / "t.safetensors").exists()


def test_a_vocabulary_of_another_length(tmp_path: Path, corpus: Path) -> None:
    (tmp_path / "vocab.txt").write_text("one\ntwo\n")
    said = run(corpus, "-k", 2, "--out", tmp_path / "t.safetensors", "--vocabulary", tmp_path / "vocab.txt", status=2)
    assert "30 words" in said


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_columns_of_a_table(tmp_path: Path, counts: np.ndarray, suffix: str) -> None:
    lines = [
        ",".join(["document", *WORDS]),
        *(f"d{number}," + ",".join(map(str, row)) for number, row in enumerate(counts)),
    ]
    text = "\n".join(lines).encode()
    path = tmp_path / f"table{suffix}"
    path.write_bytes(gzip.compress(text) if suffix.endswith("gz") else text)
    assert "--columns" in run(path, "-k", 2, "--out", tmp_path / "t.safetensors", *QUICK, status=1)
    run(path, "-k", 2, "--columns", "2-31", "--out", tmp_path / "t.safetensors", *QUICK)
    found = sb.load(tmp_path / "t.safetensors")
    assert found.column_names == tuple(WORDS)
    expected = sb.fit(sb.TopicModel(sb.LatentDirichlet(2)), counts, sb.Memoized(max_passes=5, tol=0))
    np.testing.assert_array_equal(found.topics, expected.topics)


def test_columns_of_a_docword_file_are_refused(tmp_path: Path, corpus: Path) -> None:
    arguments = [corpus, "-k", 2, "--columns", "2-31", "--out", tmp_path / "t.safetensors", *QUICK]
    result = CliRunner().invoke(program, ["topics", *map(str, arguments)])
    assert result.exit_code != 0
    assert "is not a table" in result.output + str(result.exception)
