"""`stickbreak generate`."""

import click

from stickbreak.cli.options import json_option, load_fit, model_argument
from stickbreak.cli.output import check_table_place, give_table
from stickbreak.cli.program import Command
from stickbreak.io.levels import decoded


@click.command(cls=Command, short_help="Draw new rows from a model.")
@model_argument
@click.option("-n", "n", type=int, required=True, metavar="N", help="The number of rows.")
@click.option("--seed", type=int, default=0, metavar="N", show_default=True, help="Decides the draw.")
@click.option(
    "-o", "--out", metavar="FILE", help="A .csv, .parquet, .npy or .json file, or - for CSV on stdout. [default: -]"
)
@json_option
def generate(model: str, n: int, seed: int, out: str | None, as_json: bool) -> None:
    """Draw N new rows from MODEL, out of its posterior predictive distribution.

    They look like the data that the model was fitted to, in the same units. The columns of a CSV file are called as
    those of the data were, or x1, x2 and so on where these had no names. Columns of text have their words, but for
    .npy files, which have their codes.

    \b
    Example:
        stickbreak generate model.safetensors -n 1000 --seed 7 --out new.csv
    """
    check_table_place("out", out, inputs=(model,), prints=True)
    fit = load_fit(model)
    rows = fit.sample(n, seed=seed)
    names = fit.column_names or [f"x{column}" for column in range(1, rows.shape[1] + 1)]
    # Arrays of NumPy hold numbers only.
    shown = rows if out is not None and out.lower().endswith(".npy") else decoded(rows, fit._levels)
    give_table(out, names, shown, key="rows", as_json=as_json)
