"""`_core.pyi` against the built module: the same names, the same signatures. `make stubs` adds the types."""

import ast
import inspect
from pathlib import Path

import numpy as np
import pytest

import stickbreak as sb
from stickbreak import _core

STUB = Path(_core.__file__).with_name("_core.pyi")


@pytest.fixture(scope="module")
def stub() -> ast.Module:
    if not STUB.exists():
        pytest.fail(f"{STUB.name} does not lie beside the module")
    return ast.parse(STUB.read_text(encoding="utf-8"))


def parameters(function: ast.FunctionDef) -> list[tuple[str, str]]:
    """Names and kinds, without the receiver."""
    given = function.args
    found = [(each.arg, "positional") for each in (*given.posonlyargs, *given.args)]
    found += [(each.arg, "keyword") for each in given.kwonlyargs]
    assert given.vararg is None
    assert given.kwarg is None
    return [each for each in found if each[0] not in ("self", "cls")]


def built_parameters(function: object) -> list[tuple[str, str]]:
    kinds = {inspect.Parameter.KEYWORD_ONLY: "keyword"}
    signature = inspect.signature(function)  # type: ignore[arg-type]
    found = [(name, kinds.get(each.kind, "positional")) for name, each in signature.parameters.items()]
    return [each for each in found if each[0] not in ("self", "cls")]


def declared_names(stub: ast.Module) -> set[str]:
    names = {node.name for node in stub.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    return names | {node.target.id for node in stub.body if isinstance(node, ast.AnnAssign)}  # type: ignore[union-attr]


def test_names(stub: ast.Module) -> None:
    built = {name for name in dir(_core) if not name.startswith("__")} | {"__version__"}
    assert built == declared_names(stub)


def test_functions(stub: ast.Module) -> None:
    functions = [node for node in stub.body if isinstance(node, ast.FunctionDef)]
    assert functions
    for function in functions:
        assert parameters(function) == built_parameters(getattr(_core, function.name)), function.name


def test_classes(stub: ast.Module) -> None:
    for declared in (node for node in stub.body if isinstance(node, ast.ClassDef)):
        built = getattr(_core, declared.name)
        methods = {node.name: node for node in declared.body if isinstance(node, ast.FunctionDef)}
        assert set(methods) == {name for name in dir(built) if not name.startswith("_")}
        for name, method in methods.items():
            is_property = any(isinstance(each, ast.Name) and each.id == "property" for each in method.decorator_list)
            assert is_property == inspect.isgetsetdescriptor(built.__dict__[name]), name
            if not is_property:
                assert parameters(method) == built_parameters(getattr(built, name)), name


def test_classes_are_final(stub: ast.Module) -> None:
    for declared in (node for node in stub.body if isinstance(node, ast.ClassDef)):
        assert "final" in {each.id for each in declared.decorator_list if isinstance(each, ast.Name)}
        with pytest.raises(TypeError):
            type("Sub", (getattr(_core, declared.name),), {})


def test_registry_knows_every_public_specification() -> None:
    """Adding a likelihood or a process means one line in the core's registry and one class here."""
    registry = _core.registry()
    public = {name: getattr(sb, name) for name in sb.__all__}
    for kind, base in [("likelihoods", sb.Gaussian.__mro__[1]), ("processes", sb.DirichletProcess.__mro__[1])]:
        classes = {cls._name for cls in public.values() if isinstance(cls, type) and issubclass(cls, base)}
        assert set(registry[kind]) == classes


def test_version_is_the_packages() -> None:
    from importlib.metadata import version

    assert sb.__version__ == _core.__version__ == version("stickbreak")


def test_package_is_typed() -> None:
    assert (Path(sb.__file__).parent / "py.typed").exists()


def test_state_agrees_with_the_stub() -> None:
    """Types of the values, as declared."""
    rows = np.random.default_rng(0).standard_normal((20, 2))
    model = sb.Mixture(likelihood=sb.Gaussian(), process=sb.DirichletProcess())
    state = sb.fit(model, rows, sb.Full(max_passes=2), n_components=2, progress=False)._state
    assert isinstance(state.likelihood[0], str)
    assert isinstance(state.likelihood[1], dict)
    for name, kind in [("n_rows", int), ("dimension", int), ("n_components", int), ("elbo", float), ("bound", str)]:
        assert type(getattr(state, name)) is kind
    for array in (state.counts, state.weights, *state.components.values()):
        assert array.dtype == np.float64
    assert all(isinstance(record, dict) for record in state.history)
    indices, values = state.responsibilities(rows, 1, False, None)
    assert (indices.dtype, values.dtype) == (np.int64, np.float64)
