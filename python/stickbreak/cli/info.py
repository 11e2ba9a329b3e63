"""`stickbreak info`."""

import click

from stickbreak.cli.fit import fit as fit_command
from stickbreak.cli.options import json_option, load_fit, model_argument
from stickbreak.cli.output import print_facts, print_json, say
from stickbreak.cli.program import Command
from stickbreak.cli.summary import described, described_topics, facts, facts_of_topics, lines_of_topics
from stickbreak.result.loading import load
from stickbreak.result.topic_fit import TopicFit


@click.command(cls=Command, short_help="Say what a model file holds.")
@model_argument
@json_option
def info(model: str, as_json: bool) -> None:
    """Say what the model file MODEL holds: the same summary as `fit` or `topics` prints.

    With --json there are also the weights and the counts of the components, and the parameters of the model. A topic
    model has the most probable words of each topic, or their numbers if no words are known.

    \b
    Example:
        stickbreak info model.safetensors
    """
    found = load(model)
    if isinstance(found, TopicFit):
        if as_json:
            print_json(described_topics(found))
        else:
            print_facts(facts_of_topics(found))
            for line in lines_of_topics(found):
                say(line)
        return
    fit = load_fit(model)
    if as_json:
        print_json(described(fit))
    else:
        print_facts(facts(fit, fit_command.options()))
