"""`stickbreak fit`."""

import warnings
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import click

import stickbreak as sb
from stickbreak.cli.columns import AUTO, Chosen, likelihood_option, spec_option
from stickbreak.cli.fields import Said, field_options
from stickbreak.cli.options import (
    Reading,
    checkpoint_of,
    checkpoint_options,
    data_argument,
    force_option,
    json_option,
    read_values,
    read_weighted,
    reading_options,
    threads_option,
    weight_options,
)
from stickbreak.cli.output import check_model_place, check_place, print_facts, print_json, say
from stickbreak.cli.program import Command, ExitCode, rows_of
from stickbreak.cli.specifications import Kind, SomeOf, check_used, kebab, made, owners_of, parameter_options
from stickbreak.cli.summary import described, facts
from stickbreak.cli.trees import units_of
from stickbreak.io import datafiles
from stickbreak.model.likelihoods import Likelihood
from stickbreak.model.processes import Process
from stickbreak.model.specification import REGISTRY
from stickbreak.run.algorithms import Algorithm, Stochastic
from stickbreak.run.moves import USUAL, Move, usual_moves

_PROCESSES, _SCHEDULES, _MOVES = Kind(Process), Kind(Algorithm), Kind(Move)
_ALGORITHM = owners_of(Algorithm.__subclasses__())
# `moves` and `units` have options of their own.
_SAID = {
    "objective": Said(
        "What is maximised: variational, the evidence lower bound; or, for point estimates, map or ml. "
        f"[default: {sb.Mixture._objective}]",
        "WORD",
    ),
    "batches": Said("the number of batches; auto is one for every 5000 rows, from 1 to 20."),
    "batch_size": Said("the most rows of a batch. Required for it."),
    "delay": Said("how much shorter the first steps are; at least 0.", "N"),
    "decay": Said("how fast steps become shorter, above 0.5 and at most 1."),
    "shuffle": Said("whether rows go to batches at random, as --seed decides, or in their order."),
    "sparsity": Said(
        "How many components a row may belong to at the same time: 1 gives hard clusters, dense is all, auto is 16 or "
        "all where they are fewer."
    ),
    "margin": Said(
        "Leave out the components whose log weight for a row is this many nats below that of its best: less work, and "
        "at most n K exp(-NATS) nats less of the bound; none leaves out none.",
        "NATS",
    ),
    "bounds_memory": Said(
        "Memory for bounds that spare work on data of 40 columns or more; the result does not depend on it.", "BYTES"
    ),
    "shard_rows": Said("The most rows that are visited at once; more need more memory.", "ROWS"),
    "max_passes": Said("The most passes over the data. [default: 500 with moves that add components, else 100]"),
    "tol": Said(
        "Stop after a pass that gains less than this many nats for each row (unit of weight), or 0.001 in all; 0 never "
        "stops early.",
        "NATS",
    ),
}


# Likelihoods that support missing values.
_MARGINALISING = ", ".join(
    AUTO if "blocks" in entry["parameters"] else kebab(name)
    for name, entry in REGISTRY["likelihoods"].items()
    if "missing" in entry["supports"]
)


@click.command(cls=Command, short_help="Fit a mixture to the rows of a data file.")
@data_argument
@click.option("-o", "--out", required=True, metavar="FILE", help="Where the model file goes, such as m.safetensors.")
@likelihood_option
@spec_option
@click.option(
    "--process",
    type=_PROCESSES,
    default="dirichlet-process",
    metavar="NAME",
    help=f"The prior on the weights of the components: {_PROCESSES.names()}. [default: dp]",
)
@click.option(
    "--n-components",
    type=int,
    metavar="N",
    help="Number of components to start from; --moves change it. Required for a process of a fixed number. "
    "[default: that of --init, else 1 with birth or split among the moves, else 50 or the number of rows]",
)
@parameter_options(Likelihood, Process, besides=("n_components",))
@click.option(
    "--background",
    is_flag=True,
    help="Give rows that belong to no component, such as outliers between clusters, a density of their own; their "
    "label is -1.",
)
@click.option(
    "--schedule",
    type=_SCHEDULES,
    default="memoized",
    metavar="NAME",
    help=f"How often the components are updated: {_SCHEDULES.names()}. full is once a pass over the data, memoized "
    "after every batch of rows, stochastic too, by a step that forgets a part of the batches before. "
    "[default: memoized]",
)
@field_options(*Algorithm.__subclasses__(), said=_SAID, besides=("moves", "units"))
@click.option(
    "--moves",
    type=SomeOf(_MOVES),
    help=f"How the number of components changes between passes: some of {_MOVES.names()}, with commas between them, or "
    f"none. [default: {','.join(kebab(type(move).__name__) for move in USUAL)}, or none where schedule, objective or "
    "model do not take them]",
)
@click.option(
    "--units",
    metavar="WORD",
    help="What belongs to components: rows; kd-tree, nodes of a tree that stand for many rows that agree; or auto, a "
    "tree where a trial says that it needs few nodes. [default: rows]",
)
@click.option(
    "--kd-tree",
    "tree",
    multiple=True,
    metavar="NAME=VALUE",
    help=f"A setting of the tree, as often as you like: {', '.join(field.name for field in fields(sb.KdTree))}. See "
    "stickbreak.KdTree.",
)
@click.option(
    "--init",
    default="kmeans++",
    metavar="WORD|FILE",
    show_default=True,
    help="Where to start: kmeans++, random or sequential; a model file (.safetensors); or a data file with one column "
    "of labels from 0, or with the responsibilities of each row, one column a component.",
)
@click.option(
    "--n-init",
    type=int,
    default=1,
    metavar="N",
    show_default=True,
    help="Starts; the one with the best ELBO is kept. Where clusters overlap, 2 finds more than 1.",
)
@click.option("--seed", type=int, default=0, metavar="N", show_default=True, help="Decides every random choice.")
@click.option(
    "--missing",
    default="error",
    metavar="WORD",
    show_default=True,
    help="What to do with missing values: error, or marginalize, by which a row counts with what "
    f"it has ({_MARGINALISING}).",
)
@threads_option
@weight_options
@reading_options
@checkpoint_options
@click.option("-q", "--quiet", is_flag=True, help="Show no progress and no summary.")
@force_option
@json_option
def fit(
    data: str,
    out: str,
    likelihood: type[Likelihood] | None,
    columns_spec: str | None,
    process: type[Process],
    background: bool,
    schedule: type[Algorithm],
    n_components: int | None,
    init: str,
    n_init: int,
    seed: int,
    missing: str,
    threads: int | None,
    weights: str | None,
    columns: str | None,
    weight_column: str | None,
    key: str | None,
    delimiter: str | None,
    header: bool | None,
    checkpoint: str | None,
    every_seconds: float | None,
    tree: tuple[str, ...],
    quiet: bool,
    force: bool,
    as_json: bool,
    **given: Any,
) -> int:
    """Fit a mixture to the rows of DATA and write it to a model file.

    DATA is a .npy, .npz, .csv, .tsv or .parquet file with one observation a row, a folder of Parquet files, or - for
    text on stdin. If columns hold text, each column gets a likelihood of its own. What you do not say of
    the model follows the data, and the number of components is found by births, merges and deletes, starting from one.
    A progress bar shows on a terminal. Ctrl-C ends the fit early: its last complete state is still written, and the
    exit code is 130. The ELBO is in nats, of the whole data.

    \b
    Example:
        stickbreak fit rows.csv --out model.safetensors
    """
    own_number = "n_components" in {field.name for field in fields(process)}
    of_algorithm = {name: given.pop(name) for name in _ALGORITHM}
    of_algorithm["units"] = units_of(of_algorithm["units"], tree)
    check_used([schedule], of_algorithm)
    chosen = Chosen(likelihood, columns_spec, given)
    check_used((chosen.kind, process), given)
    if own_number:
        given["n_components"] = n_components
    behind = sb.Background() if background else None
    model = sb.Mixture(likelihood=chosen.made(given), process=made(process, given), background=behind)
    algorithm: Any = made(schedule, of_algorithm | {"moves": _moves(schedule, model, of_algorithm)})
    inputs = (data, weights, init)
    check_model_place(out, inputs=inputs, force=force)
    if checkpoint is not None:
        check_place("checkpoint", checkpoint, inputs=inputs, outputs=(out,))
    reading = Reading(
        columns=columns, weight_column=weight_column, key=key, delimiter=delimiter, header=header, quiet=quiet
    )
    may_miss = missing == "marginalize"
    rows, sample_weight = read_weighted(data, weights, reading, may_miss=may_miss, words=chosen.text)
    if (found := chosen.of_data(rows, data, quiet=quiet, may_miss=may_miss)) is not None:
        model = replace(model, likelihood=found)
        algorithm = made(schedule, of_algorithm | {"moves": _moves(schedule, model, of_algorithm)})
    with rows_of(data, weights, weight_column=weight_column), warnings.catch_warnings():
        if as_json or not quiet:
            # What is printed has them.
            warnings.simplefilter("ignore", sb.Advice)
        result = sb.fit(
            model,
            rows,
            algorithm,
            n_components=None if own_number else n_components,
            init=starting_point(init),
            n_init=n_init,
            seed=seed,
            threads=threads,
            sample_weight=sample_weight,
            missing=missing,
            progress=False if quiet else None,
            checkpoint=checkpoint_of(checkpoint, every_seconds),
        )
    result.save(out)
    if as_json:
        print_json({**described(result), "out": out})
    elif not quiet:
        print_facts([*facts(result, _options()), ("model file", out)])
    if result.stop_reason is sb.StopReason.INTERRUPTED:
        say(f"stickbreak: interrupted; the last complete state is in {out}", err=True)
        return ExitCode.INTERRUPTED
    return ExitCode.OK


def _options() -> dict[str, click.Option]:
    """Return the options of the command, in which advice is given."""
    return fit.options()


def _moves(schedule: type[Algorithm], model: sb.Mixture, given: dict[str, Any]) -> tuple[Move, ...]:
    if given["moves"] is not None:
        return tuple(kind() for kind in given["moves"])
    judged = schedule is not Stochastic and given["objective"] in (None, "variational")
    return usual_moves(model) if judged else ()


def starting_point(init: str) -> Any:
    """Return the word, the fit or the labels that `--init` names."""
    suffix = datafiles.suffix_of(Path(init))
    if suffix == ".safetensors":
        return sb.load(init)
    if suffix not in datafiles.SUFFIXES:
        if Path(init).is_file():
            raise click.BadParameter(
                f"{init!r} is a file whose name does not say what it is: model files end in .safetensors, and data "
                f"files in one of {', '.join(sorted(datafiles.SUFFIXES))}",
                param_hint="'--init'",
            )
        return init
    values = read_values(init)
    if values.shape[1] > 1:
        return values
    labels = values[:, 0]
    whole = labels.astype("int64")
    return whole if (whole == labels).all() else labels
