"""The registry of the core against the Python classes: no rule of one is missing or different in the other."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from typing import Any, Literal, get_args, get_origin

import numpy as np
import pytest
from numpy.typing import ArrayLike
from scipy import sparse

import stickbreak as sb
from stickbreak import _core
from stickbreak.model.likelihoods import Likelihood

REGISTRY = _core.registry()
FAMILIES = ("likelihoods", "processes", "moves", "samplers", "priors")
ENTRIES = [(name, entry) for family in FAMILIES for name, entry in REGISTRY[family].items()]
PARAMETERS = [(name, field, rule) for name, entry in ENTRIES for field, rule in entry["parameters"].items()]

# Types of a field besides None, by kind of parameter.
TYPES: dict[str, Any] = {
    "number": {float},
    "number or gamma": {float, sb.Gamma},
    "number or beta": {float, sb.Beta},
    "number or vector": {ArrayLike},
    "number or matrix": {ArrayLike},
    "pair": {tuple[float, float]},
    "vector": {ArrayLike},
    "matrix": {ArrayLike},
    "vector or matrix": {ArrayLike},
    "integer": {int},
    "flag": {bool},
    "blocks": {Mapping[Any, Likelihood]},
    "column or total": {int, str},
}
# Values of the parameters that must be given.
REQUIRED = {
    "n_components": 3,
    "n_topics": 3,
    "discount": 0.3,
    "covariance": np.eye(2),
    "shape": 1.0,
    "rate": 1.0,
    "mass": 1.0,
    "blocks": {(0, 1): sb.Poisson()},
    "a": 1.5,
    "b": 2.0,
}


def made(name: str, entry: dict[str, Any], **given: Any) -> Any:
    """Return an object of the class called `name`, with what it requires and what is given."""
    required = {field: REQUIRED[field] for field, rule in entry["parameters"].items() if rule["required"]}
    return getattr(sb, name)(**{**required, **given})


def outside(rule: dict[str, Any]) -> Iterator[Any]:
    """Yield values that the rule refuses, just outside its range and far from it."""
    if rule["kind"] == "integer":
        least, greatest = rule["range"]
        yield from (least - 1, greatest + 1)
    elif rule["kind"] == "word":
        yield from ("", "unheard of")
    elif "range" in rule:
        least, greatest = rule["range"]
        numbers = [math.nextafter(least, -math.inf), -math.inf, math.inf]
        numbers.append(greatest if rule["below"] else math.nextafter(greatest, math.inf))
        yield from ((number, 1.0) for number in numbers) if rule["kind"] == "pair" else numbers


@pytest.mark.parametrize(("name", "entry"), ENTRIES)
def test_a_class_has_the_parameters_of_its_entry(name: str, entry: dict[str, Any]) -> None:
    assert [field.name for field in fields(getattr(sb, name))] == list(entry["parameters"])


@pytest.mark.parametrize(("name", "field", "rule"), PARAMETERS)
def test_a_field_has_the_kind_and_default_of_its_parameter(name: str, field: str, rule: dict[str, Any]) -> None:
    declared = next(each for each in fields(getattr(sb, name)) if each.name == field)
    assert rule["required"] == (declared.default is MISSING)
    if not rule["required"]:
        assert declared.default == rule["default"]
    if rule["kind"] == "word":
        # The type of an optional word includes None.
        annotation = declared.type if rule["default"] is not None else get_args(declared.type)[0]
        assert get_origin(annotation) is Literal
        assert list(get_args(annotation)) == rule["words"]
        assert rule["default"] in (*rule["words"], None)
    else:
        types = set(get_args(declared.type) or (declared.type,)) - {type(None)}
        expected = TYPES[rule["kind"]]
        assert types == expected or declared.type in ({*expected} | {each | None for each in expected})


@pytest.mark.parametrize(
    ("name", "field", "rule"), [each for each in PARAMETERS if any(True for _ in outside(each[2]))]
)
def test_values_out_of_range_are_refused(name: str, field: str, rule: dict[str, Any]) -> None:
    entry = dict(ENTRIES)[name]
    made(name, entry)
    for value in outside(rule):
        with pytest.raises(sb.InvalidArgument) as caught:
            made(name, entry, **{field: value})
        assert caught.value.argument == field


@pytest.mark.parametrize(("name", "field", "rule"), [each for each in PARAMETERS if "words" in each[2]])
def test_every_word_is_known(name: str, field: str, rule: dict[str, Any]) -> None:
    entry = dict(ENTRIES)[name]
    for word in rule["words"]:
        try:
            assert getattr(made(name, entry, **{field: word}), field) == word
        except sb.NotSupported as error:  # it is known, and refused with the reason
            assert error.argument == field  # noqa: PT017


def test_the_hint_for_sparse_rows_names_the_likelihoods_that_take_them() -> None:
    """The hint is written in Python, not in the core."""
    taking = {name for name, entry in REGISTRY["likelihoods"].items() if "sparse" in entry["supports"]}
    model = sb.Mixture(likelihood=sb.Gaussian(), process=sb.DirichletProcess())
    with pytest.raises(sb.InvalidType, match="which take it as it is") as caught:
        sb.fit(model, sparse.csr_array(np.eye(3)))
    assert {name for name in REGISTRY["likelihoods"] if name in str(caught.value)} == taking


@pytest.mark.parametrize("likelihood", [sb.Gaussian(), sb.SphericalGaussian(base="product")])
@pytest.mark.parametrize("process", [sb.DirichletProcess(), sb.DirichletProcess(truncation="stick")])
def test_usual_moves_are_those_that_the_core_takes(likelihood: Any, process: Any) -> None:
    rows = np.random.default_rng(0).standard_normal((20, 2))
    mixture = sb.Mixture(likelihood=likelihood, process=process)
    moves = sb.Memoized(moves=(sb.Birth(),), max_passes=1)
    if mixture._takes_moves:
        assert sb.fit(mixture, rows, moves, progress=False).n_components > 0
    else:
        with pytest.raises(sb.NotSupported, match="a move with"):
            sb.fit(mixture, rows, moves, progress=False)
