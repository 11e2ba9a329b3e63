"""`stickbreak predict`."""

import click

from stickbreak.cli.columns import of_fit
from stickbreak.cli.options import (
    Reading,
    data_argument,
    json_option,
    keep_option,
    load_fit,
    model_argument,
    reading_options,
    threads_option,
)
from stickbreak.cli.output import check_kept, check_table_place, give_table
from stickbreak.cli.program import Command, rows_of


@click.command(cls=Command, short_help="Say which component each row belongs to.")
@model_argument
@data_argument
@click.option(
    "-o", "--out", metavar="FILE", help="A .csv, .parquet, .npy or .json file, or - for CSV on stdout. [default: -]"
)
@click.option(
    "--proba",
    is_flag=True,
    help="Give the responsibilities of all components for each row, which have sum one, instead of the best component. "
    "A background has the last column.",
)
@threads_option
@keep_option
@reading_options
@json_option
def predict(
    model: str,
    data: str,
    out: str | None,
    proba: bool,
    threads: int | None,
    keep: str | None,
    columns: str | None,
    key: str | None,
    delimiter: str | None,
    header: bool | None,
    as_json: bool,
) -> None:
    """Say which component of MODEL each row of DATA most probably belongs to, counted from 0; -1 is the background.

    DATA must have the columns of the data that MODEL was fitted to, and need not be the same data. Columns with names
    are matched by them, in whatever order they stand; without names they must stand in the order of the fit.

    \b
    Example:
        stickbreak predict model.safetensors rows.csv --out labels.csv
    """
    check_table_place("out", out, inputs=(model, data), keeps=keep is not None, prints=True)
    fit = load_fit(model)
    reading = Reading(columns=columns, key=key, delimiter=delimiter, header=header, keep=keep)
    table = reading.read(data, may_miss=fit._state.missing == "marginalize", words=of_fit(fit))
    has_background = fit.model.background is not None
    components = [f"component_{component}" for component in range(fit.n_components)]
    names = components + ["background"] * has_background if proba else ["component"]
    key_of_json = "responsibilities" if proba else "components"
    check_kept(table.kept, [*names, key_of_json])
    with rows_of(data):
        found = (
            fit.predict_proba(table, tail=has_background, threads=threads)
            if proba
            else fit.predict(table, threads=threads)
        )
        give_table(out, names, found, key=key_of_json, as_json=as_json, kept=table.kept)
