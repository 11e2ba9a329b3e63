"""All commands."""

import click

from stickbreak._core import __version__
from stickbreak.cli.demo import demo
from stickbreak.cli.fit import fit
from stickbreak.cli.generate import generate
from stickbreak.cli.info import info
from stickbreak.cli.mcmc import mcmc
from stickbreak.cli.predict import predict
from stickbreak.cli.program import Program
from stickbreak.cli.score import score
from stickbreak.cli.topics import topics

_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 100, "auto_envvar_prefix": None}


@click.group(cls=Program, context_settings=_CONTEXT)
@click.version_option(__version__, message="stickbreak %(version)s")
def program() -> None:
    """Find the clusters in a table of numbers, without saying how many there are.

    `fit` learns a Dirichlet-process mixture from a data file (.npy, .npz, .csv, .tsv or .parquet, one row for each
    observation) and writes a model file; the other commands use that model.

    \b
        stickbreak fit rows.csv --out model.safetensors
        stickbreak predict model.safetensors rows.csv --out labels.csv
        stickbreak score model.safetensors new.csv

    Every command has its own --help. Exit codes: 0 done, 1 the data, the model or the computation failed, 2 wrong
    usage, 130 interrupted by Ctrl-C, 141 broken pipe.
    """


for command in (fit, mcmc, topics, predict, score, generate, info, demo):
    program.add_command(command)
