"""`stickbreak topics`."""

from typing import Any

import click

import stickbreak as sb
from stickbreak import checks
from stickbreak.cli.fields import NumberOr, Said, field_options
from stickbreak.cli.fit import starting_point
from stickbreak.cli.options import (
    checkpoint_of,
    checkpoint_options,
    columns_option,
    force_option,
    items,
    json_option,
    threads_option,
    watched,
)
from stickbreak.cli.output import (
    check_model_place,
    check_place,
    check_table_place,
    print_facts,
    print_json,
    say,
    write_table,
)
from stickbreak.cli.program import Command, ExitCode, rows_of
from stickbreak.cli.specifications import Kind, check_used, default, made
from stickbreak.cli.summary import WORDS_SHOWN, described_topics, facts_of_topics, lines_of_topics
from stickbreak.errors import InvalidArgument
from stickbreak.io import names
from stickbreak.io.corpora import read_corpus, read_vocabulary
from stickbreak.result.held_out import longest
from stickbreak.run.algorithms import Algorithm

_SCHEDULES = Kind(Algorithm)
_SAID = {
    "objective": Said(f"What is maximised: map or variational. [default: {sb.TopicModel._objective}]", "WORD"),
    "batches": Said("the number of batches."),
    "batch_size": Said("the most documents of a batch. Required for it."),
    "delay": Said("how much shorter the first steps are.", "N"),
    "decay": Said("how fast steps become shorter."),
    "sparsity": Said("How many topics a word of a document may belong to at the same time; dense is all."),
    "max_passes": Said("The most passes over the documents."),
    "tol": Said("Stop after a pass that gains less than this for each word.", "NATS"),
}
# Options that topic models do not take, or that have no effect on them.
_OF_MIXTURES = ("shuffle", "shard_rows", "margin", "bounds_memory", "moves", "units")
# If the number is estimated, it starts from the default.
_ESTIMATED = "estimate"
# Shorter documents are not scored.
_MIN_WORDS = 10


@click.command(cls=Command, short_help="Fit a topic model to the documents of a corpus.")
@click.argument("corpus")
@click.option("-o", "--out", required=True, metavar="FILE", help="Where the model file goes, such as t.safetensors.")
@click.option("-k", "--n-topics", type=int, required=True, metavar="K", help="The number of topics.")
@click.option(
    "--concentration",
    type=NumberOr(float, "number", _ESTIMATED),
    default=default(sb.LatentDirichlet, "concentration"),
    show_default=True,
    help="The total mass of the prior of a document's weights; each topic has a K-th of it.",
)
@click.option(
    "--word-concentration",
    type=NumberOr(float, "number", _ESTIMATED),
    default=default(sb.TopicModel, "word_concentration"),
    show_default=True,
    help="The pseudo-count of every word in every topic.",
)
@click.option(
    "--vocabulary",
    metavar="FILE",
    help="The words of the columns, one a line, all different. [default: the names of the columns of a table, "
    "else their numbers]",
)
@columns_option
@click.option(
    "--words", type=int, default=WORDS_SHOWN, metavar="N", show_default=True, help="Words to print of each topic."
)
@click.option(
    "--proportions", metavar="FILE", help="Where the topics of each document go: .csv, .npy, .json or .parquet."
)
@click.option("--test", metavar="FILE", help="Documents to score: nats for each word held out of them.")
@click.option(
    "--schedule",
    type=_SCHEDULES,
    default="memoized",
    metavar="NAME",
    help=f"How often the topics are updated: {_SCHEDULES.names()}. [default: memoized]",
)
@field_options(*Algorithm.__subclasses__(), said=_SAID, besides=_OF_MIXTURES)
@field_options(sb.Words, said={})
@click.option(
    "--init", default="kmeans++", metavar="WORD|FILE", show_default=True, help="Where to start; or a model file."
)
@click.option("--seed", type=int, default=0, metavar="N", show_default=True, help="Decides every random choice.")
@threads_option
@checkpoint_options
@click.option("-q", "--quiet", is_flag=True, help="Show no progress and no summary.")
@force_option
@json_option
def topics(
    corpus: str,
    out: str,
    n_topics: int,
    concentration: float | str,
    word_concentration: float | str,
    vocabulary: str | None,
    columns: str | None,
    words: int,
    proportions: str | None,
    test: str | None,
    schedule: type[Algorithm],
    init: str,
    seed: int,
    threads: int | None,
    checkpoint: str | None,
    every_seconds: float | None,
    quiet: bool,
    force: bool,
    as_json: bool,
    **given: Any,
) -> int:
    """Fit a topic model to the documents of CORPUS and write it to a model file.

    CORPUS is a docword file (.txt or .gz) of the UCI repository, a sparse array of SciPy (.npz) or a table with a row
    for each document and a column for each word. Ctrl-C ends the fit early: its last complete state is still written.

    \b
    Example:
        stickbreak topics docword.kos.txt.gz -k 50 --vocabulary vocab.kos.txt --out topics.safetensors
    """
    check_used([schedule, sb.Words], given)
    process = sb.LatentDirichlet(n_topics, concentration=_number(concentration))
    model = sb.TopicModel(process, word_concentration=_number(word_concentration))
    algorithm: Any = made(schedule, given | {"units": made(sb.Words, given)})
    words = checks.integer("words", words, minimum=1)
    inputs = (corpus, vocabulary, test, init)
    check_model_place(out, inputs=inputs, force=force)
    check_table_place("proportions", proportions, inputs=inputs, outputs=(out,))
    if checkpoint is not None:
        check_place("checkpoint", checkpoint, inputs=inputs, outputs=(out, proportions))
    with watched(corpus, quiet=quiet) as watch:
        chosen = None if columns is None else items(columns)
        counts = read_corpus(corpus, "corpus", columns=chosen, watch=watch)
    n_words = counts.rows.shape[1]
    if vocabulary is not None:
        known = read_vocabulary(vocabulary)
        if len(known) != n_words:
            allowed = f"{n_words} words, one a line, as {corpus} has columns"
            raise checks.invalid_argument("vocabulary", f"{vocabulary} with {len(known)}", allowed)
        counts = names.Table(counts.rows, known)
    held_out = None if test is None else read_corpus(test, "test", columns=chosen)
    if held_out is not None:
        _check_words(held_out, counts)
    with rows_of(corpus):
        fit = sb.fit(
            model,
            counts,
            algorithm,
            init=starting_point(init),
            seed=seed,
            threads=threads,
            progress=False if quiet else None,
            checkpoint=checkpoint_of(checkpoint, every_seconds),
        )
    fit.save(out)
    if proportions is not None:
        titles = [f"topic {topic}" for topic in range(n_topics)]
        write_table(proportions, titles, fit.transform(counts, threads=threads), "proportions")
    score = None if held_out is None else _score(fit, held_out, test, seed=seed, threads=threads)
    if as_json:
        print_json({**described_topics(fit, words), "test": score, "out": out})
    elif not quiet:
        print_facts([*facts_of_topics(fit, score), ("model file", out)])
        for line in lines_of_topics(fit, words):
            say(line)
    if fit.stop_reason is sb.StopReason.INTERRUPTED:
        say(f"stickbreak: interrupted; the last complete state is in {out}", err=True)
        return ExitCode.INTERRUPTED
    return ExitCode.OK


def _number(value: float | str) -> float | None:
    return None if value == _ESTIMATED else float(value)


def _score(
    fit: sb.TopicFit, documents: names.Table, file: str | None, *, seed: int, threads: int | None
) -> float | None:
    """Return the score of documents; None, with a warning, if they are too short: the fit is made already."""
    if longest(fit._counts(documents, "test")) >= _MIN_WORDS:
        return fit.document_completion(documents, seed=seed, min_words=_MIN_WORDS, threads=threads)
    said = f"{file} has no document of at least {_MIN_WORDS} different words, so none was scored"
    say(f"stickbreak: warning: {said}", err=True)
    return None


def _check_words(test: names.Table, corpus: names.Table) -> None:
    """Refuse documents of other words than the corpus has."""
    if corpus.names is not None:
        try:
            names.named(test, "test", corpus.names)
        except InvalidArgument as error:
            allowed = "a table with the words of the corpus"
            raise checks.invalid_argument("test", error.found or "another one", allowed) from error
    found, wanted = test.rows.shape[1], corpus.rows.shape[1]
    if found != wanted:
        raise checks.invalid_argument("test", f"of {found} words", f"of {wanted} words, the vocabulary of the corpus")
