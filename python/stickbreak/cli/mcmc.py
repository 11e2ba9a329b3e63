"""`stickbreak mcmc`."""

from dataclasses import fields, replace
from typing import Any, Literal

import click

import stickbreak as sb
from stickbreak import checks
from stickbreak.cli.columns import Chosen, likelihood_option, spec_option
from stickbreak.cli.fields import Said, field_options
from stickbreak.cli.fit import starting_point
from stickbreak.cli.options import (
    Reading,
    checkpoint_of,
    checkpoint_options,
    data_argument,
    force_option,
    json_option,
    reading_options,
    threads_option,
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
from stickbreak.cli.specifications import Kind, check_used, made, owners_of, parameter_options
from stickbreak.model.likelihoods import Likelihood
from stickbreak.model.processes import Process
from stickbreak.result.partitioning import LOSSES
from stickbreak.run.samplers import Sampler

_PROCESSES, _SAMPLERS = Kind(Process), Kind(Sampler)
_OF_SAMPLERS = owners_of(Sampler.__subclasses__())
_SAID = {
    "proposal": Said("how rows are dealt to the parts of a split, restricted or sequential.", "WORD"),
    "scans": Said("restricted scans before the last one."),
    "global_moves": Said("moves of whole clusters in a sweep."),
    "depth": Said("how often a node is drawn within the last one."),
    "exact": Said("leave the posterior unchanged, or the published algorithm, a mere search.", flag="--exact/--search"),
    "trees": Said("what trees clusters have, guide or fresh.", "WORD"),
    "evenness": Said("how even nodes are drawn, max or max/n.", "WORD"),
    "local": Said("how rows are chosen, uniform or guided.", "WORD"),
    "subset": Said("Rows that a Gibbs sweep visits. [default: all]"),
    "truncation": Said("Number of components. [default: enough]", option="--sampler-truncation"),
}
# Parameters that have no effect, or no exact sampler.
_OF_FIT_ALONE = ("base", "resolution", "truncation")


@click.command(cls=Command, short_help="Draw partitions of the rows of a data file from their exact posterior.")
@data_argument
@click.option("-o", "--out", required=True, metavar="FILE", help="Where the trace goes, such as trace.safetensors.")
@likelihood_option
@spec_option
@click.option(
    "--process",
    type=_PROCESSES,
    default="dirichlet-process",
    metavar="NAME",
    help=f"The prior on partitions: {_PROCESSES.names()}. [default: dp]",
)
@click.option("--n-components", type=int, metavar="N", help="finite-dirichlet: the number of components.")
@parameter_options(Likelihood, Process, besides=("n_components", *_OF_FIT_ALONE))
@click.option(
    "--sampler",
    type=_SAMPLERS,
    metavar="NAME",
    help=f"How chains move: {_SAMPLERS.names()}. [default: sm, or slice, or blocked-gibbs, the first that may]",
)
@field_options(*Sampler.__subclasses__(), said=_SAID)
@click.option("--draws", type=int, default=1000, metavar="N", show_default=True, help="Draws that each chain keeps.")
@click.option("--warmup", type=int, default=500, metavar="N", show_default=True, help="Sweeps before the first draw.")
@click.option("--chains", type=int, default=4, metavar="N", show_default=True, help="Number of chains.")
@click.option("--thin", type=int, default=1, metavar="N", show_default=True, help="Sweeps from one draw to the next.")
@click.option(
    "--init",
    metavar="WORD|FILE",
    default="dispersed",
    show_default=True,
    help="Where chains start: dispersed (far apart), single, singletons, ibhc, one-on-top or fit; a model file "
    "(.safetensors); or a data file with one column of labels from 0.",
)
@click.option("--seed", type=int, default=0, metavar="N", show_default=True, help="Decides every random choice.")
@click.option(
    "--until-ess", type=float, metavar="N", help="End when every quantity has as many effective draws, and R-hat 1.01."
)
@click.option("--max-seconds", type=float, metavar="SECONDS", help="Begin no further sweep after this time.")
@click.option(
    "--labels",
    metavar="FILE",
    help="Where the labels of a partition that represents all draws go: .csv, .npy, .json or .parquet.",
)
@click.option(
    "--loss",
    type=click.Choice(LOSSES),
    help="Which partition: that of the lowest expected variation of information (vi) or Binder's loss (binder), or the "
    "draw of the highest log joint (map). [default: vi]",
)
@click.option("--no-rows", is_flag=True, help="Leave the data out of the trace file, which then predicts nothing.")
@threads_option
@reading_options
@checkpoint_options
@click.option("-q", "--quiet", is_flag=True, help="Show no progress and no summary.")
@force_option
@json_option
def mcmc(
    data: str,
    out: str,
    likelihood: type[Likelihood] | None,
    columns_spec: str | None,
    process: type[Process],
    sampler: type[Sampler] | None,
    n_components: int | None,
    draws: int,
    warmup: int,
    chains: int,
    thin: int,
    init: str,
    seed: int,
    until_ess: float | None,
    max_seconds: float | None,
    labels: str | None,
    loss: Literal["vi", "binder", "map"] | None,
    no_rows: bool,
    threads: int | None,
    columns: str | None,
    key: str | None,
    delimiter: str | None,
    header: bool | None,
    checkpoint: str | None,
    every_seconds: float | None,
    quiet: bool,
    force: bool,
    as_json: bool,
    **given: Any,
) -> int:
    """Draw partitions of the rows of DATA from their exact posterior and write them to a trace file.

    DATA is a .npy, .npz, .csv, .tsv or .parquet file with one observation a row. If columns hold text, each column
    gets a likelihood of its own. What you do not say of
    the likelihood is estimated by a fit first. Ctrl-C ends the chains early: their draws are still written, if warm-up
    is over. The log joint probability is in nats.

    \b
    Example:
        stickbreak mcmc rows.csv --out trace.safetensors --sampler tree-guided
    """
    of_sampler = {name: given.pop(name) for name in _OF_SAMPLERS}
    kind = sampler or sb.SplitMerge
    check_used([kind], of_sampler, {name: said.option for name, said in _SAID.items() if said.option is not None})
    is_usual = sampler is None and all(value is None for value in of_sampler.values())
    moves = None if is_usual else made(kind, of_sampler)
    if "n_components" in {field.name for field in fields(process)} or n_components is not None:
        given["n_components"] = n_components
    chosen = Chosen(likelihood, columns_spec, given)
    check_used((chosen.kind, process), given)
    model = sb.Mixture(likelihood=chosen.made(given), process=made(process, given))
    inputs = (data, init)
    check_model_place(out, inputs=inputs, force=force)
    check_table_place("labels", labels, inputs=inputs, outputs=(out,))
    if loss is not None and labels is None:
        raise click.UsageError("--loss needs --labels")
    if checkpoint is not None:
        check_place("checkpoint", checkpoint, inputs=inputs, outputs=(out, labels))
    reading = Reading(columns=columns, key=key, delimiter=delimiter, header=header, quiet=quiet)
    rows = reading.read(data, words=chosen.text)
    if (found := chosen.of_data(rows, data, quiet=quiet)) is not None:
        model = replace(model, likelihood=found)
    with rows_of(data):
        trace = sb.sample(
            model,
            rows,
            moves,
            draws=draws,
            warmup=warmup,
            chains=chains,
            thin=thin,
            init=starting_point(init),
            seed=seed,
            threads=threads,
            progress=False if quiet else None,
            max_seconds=max_seconds,
            until=None if until_ess is None else _until(until_ess),
            checkpoint=checkpoint_of(checkpoint, every_seconds),
        )
    trace.save(out, rows=not no_rows)
    estimate = None if labels is None else trace.point_estimate(loss or "vi", threads=threads)
    if labels is not None and estimate is not None:
        write_table(labels, ["cluster"], estimate.labels, "clusters")
    if as_json:
        print_json({**_described(trace), **_estimated(estimate), "out": out})
    elif not quiet:
        estimated = () if estimate is None else (("labels", f"{estimate.n_clusters} clusters in {labels}"),)
        print_facts([*_facts(trace), *estimated, ("trace file", out)])
    if trace.stop_reason == "interrupted":
        say(f"stickbreak: interrupted; the draws so far are in {out}", err=True)
        return ExitCode.INTERRUPTED
    return ExitCode.OK


def _until(ess: float) -> sb.Until:
    try:
        return sb.Until(ess)
    except sb.InvalidArgument as error:
        raise checks.invalid_argument("until_ess", error.found or "", error.allowed or "") from None


def _described(trace: sb.Trace) -> dict[str, Any]:
    chains, draws, n = trace.partitions.shape
    return {
        "n_rows": n,
        "chains": chains,
        "draws": draws,
        "seconds": float(trace.seconds.max()),
        "n_clusters": float(trace.n_clusters.mean()),
        "log_joint": float(trace.log_joint.mean()),
        "ess": trace.ess(),
        "rhat": trace.rhat(),
        "exact": trace.exact,
        "stop_reason": trace.stop_reason,
        "advice": [str(advice) for advice in trace.advice()],
        "acceptance": trace.acceptance,
    }


def _estimated(found: sb.PointEstimate | None) -> dict[str, Any]:
    if found is None:
        return {}
    return {"labels": {"loss": found.loss, "expected_loss": found.expected_loss, "n_clusters": found.n_clusters}}


def _facts(trace: sb.Trace) -> list[tuple[str, str]]:
    found = _described(trace)
    kind = "" if found["exact"] else ", of a search: not of the posterior"
    return [
        ("draws", f"{found['draws']} of each of {found['chains']} chains, {found['n_rows']} rows{kind}"),
        ("clusters", f"{found['n_clusters']:.2f} on average"),
        ("log joint", f"{found['log_joint']:.2f} nats on average, ESS {found['ess']:.0f}, R-hat {found['rhat']:.3f}"),
        ("time", f"{found['seconds']:.1f} s"),
        *(("advice", text) for text in found["advice"]),
    ]
