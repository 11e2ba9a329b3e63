"""`stickbreak demo`."""

import contextlib
import importlib.util
import sys
from pathlib import Path
from typing import Any

import click

from stickbreak.cli.options import json_option, threads_option
from stickbreak.cli.output import make_folder, print_json
from stickbreak.cli.program import Command
from stickbreak.cli.summary import described
from stickbreak.errors import NotSupported

# The packages of the extra "demo", by the names under which Python imports them.
_PACKAGES = {"sklearn": "scikit-learn", "matplotlib": "matplotlib", "PIL": "pillow"}
_LEAST_HEIGHT = 16


@click.command(cls=Command, short_help="Fit two photographs, and draw what was found.")
@click.option(
    "--out", default="demo", metavar="FOLDER", show_default=True, help="Where the model file and the figure go."
)
@click.option(
    "--components",
    "n_components",
    type=int,
    default=1,
    show_default=True,
    metavar="N",
    help="Components to start from; births, merges and deletes find how many there are.",
)
@click.option(
    "--sparsity",
    type=int,
    default=4,
    show_default=True,
    metavar="N",
    help="Components that a patch may belong to at the same time.",
)
@click.option(
    "--passes",
    "max_passes",
    type=int,
    default=10,
    show_default=True,
    metavar="N",
    help="Passes over the data, at most.",
)
@click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    metavar="N",
    help="Decides the order of the rows and of the batches.",
)
@threads_option
@click.option(
    "--height",
    type=click.IntRange(min=_LEAST_HEIGHT),
    metavar="PIXELS",
    help="Take only the middle of each photograph, of this height.",
)
@click.option("--held-out", is_flag=True, help="Then fit each photograph alone, and score the patches of the other.")
@json_option
def demo(as_json: bool, **options: Any) -> None:
    """Fit a Dirichlet-process mixture to all patches of two photographs, and draw what it found.

    It starts from one component and finds about a hundred, in about a minute on two cores; Ctrl-C ends the fit early.
    It needs pip install "stickbreak[demo]".

    \b
    Example:
        stickbreak demo --height 120 --out demo
    """
    missing = [package for module, package in _PACKAGES.items() if importlib.util.find_spec(module) is None]
    if missing:
        raise NotSupported(f'the demo needs {" and ".join(missing)}: pip install "stickbreak[demo]"')
    # Not before: it imports those packages.
    from stickbreak.demo import program

    out = Path(options.pop("out"))
    make_folder("out", str(out))
    # With --json, messages for people go to stderr.
    with contextlib.redirect_stdout(sys.stderr) if as_json else contextlib.nullcontext():
        fit = program.run(program.Options(out=out, **options))
    if as_json:
        print_json({**described(fit), "out": str(out / program.MODEL_FILE), "figure": str(out / program.FIGURE_FILE)})
