"""`stickbreak score`."""

import click

from stickbreak.cli.columns import of_fit
from stickbreak.cli.options import (
    Reading,
    data_argument,
    json_option,
    keep_option,
    load_fit,
    model_argument,
    read_weighted,
    reading_options,
    threads_option,
    weight_options,
)
from stickbreak.cli.output import check_kept, check_table_place, print_facts, print_json, write_table
from stickbreak.cli.program import Command, rows_of
from stickbreak.io.arrays import rows_without_values, sample_weights, with_density, without_empty_rows

# The column of `--rows`.
_COLUMN = "log_predictive"


@click.command(cls=Command, short_help="Say how well a model foretells rows.")
@model_argument
@data_argument
@click.option(
    "--rows",
    metavar="FILE",
    help="Also write the log predictive density of each row, in nats, to a .csv, .parquet, .npy or .json file.",
)
@click.option("--elbo", is_flag=True, help="Also compute the evidence lower bound of DATA under MODEL, in nats.")
@threads_option
@weight_options
@keep_option
@reading_options
@json_option
def score(
    model: str,
    data: str,
    rows: str | None,
    elbo: bool,
    threads: int | None,
    weights: str | None,
    keep: str | None,
    columns: str | None,
    weight_column: str | None,
    key: str | None,
    delimiter: str | None,
    header: bool | None,
    as_json: bool,
) -> None:
    """Say how well MODEL foretells the rows of DATA: the mean log predictive density, in nats a row.

    The higher, the better; it depends on the units of the data. To compare models, score rows that none of them was
    fitted to. With weights the mean is weighted. Rows without any value, or off the subspace of the fit, are left
    out.

    \b
    Example:
        stickbreak score model.safetensors new.csv --rows scores.csv
    """
    if keep is not None and rows is None:
        raise click.BadOptionUsage("--keep", "--keep needs --rows")
    check_table_place("rows", rows, inputs=(model, data, weights), keeps=keep is not None)
    fit = load_fit(model)
    reading = Reading(
        columns=columns, weight_column=weight_column, key=key, delimiter=delimiter, header=header, keep=keep
    )
    may_miss = fit._state.missing == "marginalize"
    table, sample_weight = read_weighted(data, weights, reading, may_miss=may_miss, words=of_fit(fit))
    check_kept(table.kept, [_COLUMN])
    with rows_of(data, weights, weight_column=weight_column):
        sample_weight = sample_weights(sample_weight, len(table))
        if may_miss:
            # They are not part of the bound, and their density is meaningless.
            sample_weight = without_empty_rows(sample_weight, rows_without_values(fit._rows(table)), "data", "mean")
        densities = fit.log_predictive(table, threads=threads)
        bound = fit.evaluate(table, sample_weight=sample_weight, threads=threads) if elbo else None
        # Rows off the subspace of the fit have no density; report their number.
        dense, sample_weight = with_density(densities, sample_weight, "data")
    mean = dense.mean() if sample_weight is None else (sample_weight * dense).sum() / sample_weight.sum()
    if rows is not None:
        write_table(rows, [_COLUMN], densities, key=_COLUMN, kept=table.kept)
    found = {"mean_log_predictive": float(mean), "n_rows": len(table)}
    if bound is not None:
        found["elbo"] = bound
    if as_json:
        print_json({**found, "rows": rows})
        return
    facts = [("rows", f"{len(table):,}"), ("log predictive density", f"{mean:.8g} nats a row, on average")]
    if bound is not None:
        facts.append(("ELBO", f"{bound:.8g} nats, {bound / len(table):.6g} a row"))
    print_facts(facts + ([] if rows is None else [("of each row", rows)]))
