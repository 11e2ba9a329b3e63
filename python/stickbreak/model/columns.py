"""`Columns`: blocks of columns, each with a likelihood of its own. See `likelihoods`."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypeAlias

from stickbreak import _core, checks
from stickbreak.io.names import Names, position
from stickbreak.model.likelihoods import Likelihood

_ALLOWED = "a dict of likelihoods, each by the names or positions of its columns"
_KEYS = "names separated by commas, or a tuple of names or positions"

Block: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Columns(Likelihood):
    r"""Blocks of columns, each with a likelihood of its own, independent of each other given the component.

    .. math:: p(x \mid \phi) = \prod_j p_j(x_{B_j} \mid \phi_j)

    This is the model of tables that hold amounts, counts, categories and flags together. `columns_for` chooses the
    blocks of a data frame.

    In data frames and files, columns of `Categorical` may hold text, declared categories, booleans or numbers, and
    columns of `Bernoulli` booleans or two words. The fit keeps their values in `Fit.levels`. Whole numbers 0, 1, 2 and
    so on are codes already. Values of later frames are matched with the levels, in any order, and a new value is an
    error that names it.

    Parameters
    ----------
    blocks : dict
        The likelihood of each block by its columns: their names separated by commas, such as "age, income", or a tuple
        of names or positions, for arrays and for names with commas. Every column of the data belongs to one block.
        Parameters of a likelihood with one number for each column follow the order of the key. An `exposure` is the
        name or the position of a column of the same block.

    Raises
    ------
    InvalidType
        `blocks` is not a dict, a key is neither a string nor a tuple of strings and integers, or a value is not a
        likelihood.
    InvalidArgument
        There are no blocks, a block has no columns, a column is named twice, or a name has a lone surrogate. When the
        data are known: a name that they do not have, or a column of theirs in no block.
    NotSupported
        A block is itself `Columns`, or has a parameter with a `Gamma` prior.

    Notes
    -----
    With ``fit(missing="marginalize")`` single values may be missing in blocks of likelihoods that allow it. In blocks
    of other likelihoods, such as `Gaussian` in several columns, a row lacks all columns or none.

    `Fit.components` and `Fit.point_estimates` have a dict for each block, by the names of its columns. Rows are dense.

    Examples
    --------
    >>> import stickbreak as sb
    >>> sb.Columns({"age, income": sb.Gaussian(), "sex": sb.Categorical(), "visits": sb.NegativeBinomial()})
    Columns({'age, income': Gaussian(), 'sex': Categorical(), 'visits': NegativeBinomial()})
    """

    blocks: Mapping[Any, Likelihood]

    def __post_init__(self) -> None:
        given = self.blocks
        if not isinstance(given, Mapping):
            raise checks.invalid_type("blocks", checks.describe(given), _ALLOWED)
        if not given:
            raise checks.invalid_argument("blocks", "an empty dict", _ALLOWED)
        blocks: dict[Block, Likelihood] = {}
        seen: set[str | int] = set()
        for key, value in given.items():
            block = _block(key)
            again = next((column for column in block if column in seen), None)
            if again is not None or len(set(block)) < len(block):
                column = again if again is not None else next(name for name in block if block.count(name) > 1)
                raise checks.invalid_argument("blocks", f"the column {_quoted(column)} twice", "each column once")
            seen.update(block)
            blocks[block] = _likelihood(key, value)
        object.__setattr__(self, "blocks", _Frozen(blocks))
        if all(isinstance(column, int) for column in seen) and seen == set(range(len(seen))):
            _core.check_likelihood(*self._to_core())

    def _parameters(self) -> dict[str, Any]:
        return {"blocks": dict(self.blocks)}

    def _has_face(self, face: str) -> bool:
        return all(part._has_face(face) for part in self.blocks.values()) or face == "imputation"

    def _supports(self, feature: str) -> bool:
        # A row may lack all columns of any block.
        of_blocks = [own._supports(feature) for own in self.blocks.values()]
        if feature == "hidden":
            return any(of_blocks)
        return feature == "missing" or (feature != "sparse" and all(of_blocks))

    def _placed(self, names: Names | None, n_columns: int) -> Self:
        """Return the same likelihood with the positions of its columns.

        Raises
        ------
        InvalidArgument
            A column does not exist, or one of the data is in no block.
        """
        blocks: dict[Block, Likelihood] = {}
        owners: dict[int, str | int] = {}
        n_columns = n_columns or sum(map(len, self.blocks))
        for block, part in self.blocks.items():
            places = []
            for column in block:
                place = position(column, "blocks", names, n_columns)
                if place in owners:
                    found = f"the column {_quoted(column)} twice, also as {_quoted(owners[place])}"
                    raise checks.invalid_argument("blocks", found, "each column once")
                owners[place] = column
                places.append(place)
            blocks[tuple(places)] = part._placed(names, n_columns)
        left = [place for place in range(n_columns) if place not in owners]
        if left:
            hint = "or leave such columns out"
            counts = next((block for block, part in blocks.items() if getattr(part, "exposure", None) in left), None)
            if counts is not None:
                title = _title(_named_block(tuple(map(int, counts)), names))
                hint = f"add the column of exposures to the block of its counts, {title}"
            shown = ", ".join(_quoted(place if names is None else names[place]) for place in left[:5])
            found = f"no block with the column{'s' if len(left) > 1 else ''} {shown}" + (" ..." if left[5:] else "")
            raise checks.invalid_argument("blocks", found, "a block for every column", hint)
        return type(self)(blocks)

    def _own_names(self) -> Names | None:
        names = [column for block in self.blocks for column in block]
        return tuple(map(str, names)) if all(isinstance(name, str) for name in names) else None

    def _domains(self, names: Names | None, n_columns: int) -> tuple[str, ...]:
        found = [""] * n_columns
        for block, part in self._placed(names, n_columns)._positions():
            for column, domain in zip(block, part._domains(None, len(block)), strict=True):
                found[column] = domain
        return tuple(found)

    def _n_levels(self, names: Names | None, n_columns: int) -> tuple[int | None, ...]:
        found: list[int | None] = [None] * n_columns
        for block, part in self._placed(names, n_columns)._positions():
            for column, number in zip(block, part._n_levels(None, len(block)), strict=True):
                found[column] = number
        return tuple(found)

    def _with_levels(self, sizes: Sequence[int | None]) -> Self:
        if not sizes:
            return self
        blocks = {block: part._with_levels([sizes[column] for column in block]) for block, part in self._positions()}
        return type(self)(blocks)

    def _named(self, names: Names | None) -> Self:
        """Return the same likelihood with the names of its columns."""
        if names is None:
            return self
        named = [(_named_block(block, names), part) for block, part in self._positions()]
        return type(self)({block: part._named(names) for block, part in named})

    def _positions(self) -> list[tuple[tuple[int, ...], Likelihood]]:
        """Return the positions of the columns of each block, once it is placed, and its likelihood."""
        return [(tuple(map(int, block)), part) for block, part in self.blocks.items()]

    def _to_core(self) -> tuple[str, dict[str, Any]]:
        parameters: dict[str, Any] = {}
        described = []
        for index, (block, part) in enumerate(self.blocks.items()):
            name, own = _within(part, block)._to_core()
            described.append(" ".join([name, *map(str, block)]))
            parameters |= {f"{index}.{key}": value for key, value in own.items()}
        return self._name, {"blocks": "; ".join(described), **parameters}

    @classmethod
    def _of_core(cls, parameters: dict[str, Any]) -> Self:
        """Make the likelihood that the core describes."""
        blocks: dict[Block, Likelihood] = {}
        for index, described in enumerate(str(parameters["blocks"]).split(";")):
            name, *columns = described.split()
            block, own = tuple(map(int, columns)), _of_block(parameters, index)
            if isinstance(own.get("exposure"), int | float):
                own["exposure"] = block[int(own["exposure"])]
            blocks[block] = Likelihood._from_core(name, own)
        return cls(blocks)

    def _titled(self) -> dict[str, Likelihood]:
        """Return the likelihood of each block by the names or the positions of its columns, separated by commas."""
        return {_title(block): part for block, part in self.blocks.items()}

    def _parts(self, values: Mapping[str, Any]) -> list[tuple[tuple[int, ...], Likelihood, dict[str, Any]]]:
        """Return the blocks, once they are placed: their columns, their likelihood, and their values by name."""
        return [
            (block, _within(part, block), _of_block(values, index))
            for index, (block, part) in enumerate(self._positions())
        ]

    def _part(self, values: Mapping[str, Any], column: int) -> tuple[Likelihood, dict[str, Any], int]:
        """Return the block of a column: its likelihood, its values by name, and the position of the column in it."""
        for block, part, own in self._parts(values):
            if column in block:
                return part, own, block.index(column)
        raise IndexError(column)

    def _nested(self, values: Mapping[str, Any], names: Names | None) -> dict[str, dict[str, Any]]:
        """Return values that the core names by blocks as a dict for each block, by the names of its columns."""
        return {_title(_named_block(block, names)): own for block, _, own in self._parts(values)}

    def _listed(self, parameters: Sequence[str], names: Names | None) -> str:
        blocks = self._parts(dict.fromkeys(parameters))
        return "; ".join(f"{', '.join(own)} of {_title(_named_block(block, names))}" for block, _, own in blocks if own)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self) or not isinstance(other, Columns):
            return NotImplemented
        return list(self.blocks.items()) == list(other.blocks.items())

    def __hash__(self) -> int:
        return hash((type(self), *self.blocks.items()))

    def __repr__(self) -> str:
        shown = [f"{_key(block)!r}: {part!r}" for block, part in self.blocks.items()]
        return f"{type(self).__name__}({{{', '.join(shown)}}})"


class _Frozen(dict[Block, Likelihood]):
    """Blocks that cannot be changed."""

    def _refuse(self, *_: object, **__: object) -> Any:
        raise TypeError("the blocks of Columns cannot be changed; make new Columns")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse


def _within(part: Likelihood, block: Block) -> Likelihood:
    """Return the likelihood of a block with the position of its exposures in the block."""
    place = getattr(part, "exposure", None)
    if not isinstance(place, int):
        return part
    if place not in block:
        found = f"column {place}, which is in another block than the counts {_title(block)}"
        raise checks.invalid_argument("exposure", found, 'a column of the same block, or "total"')
    return replace(part, exposure=block.index(place))  # type: ignore[call-arg]


def _of_block(values: Mapping[str, Any], index: int) -> dict[str, Any]:
    """Return the values of one block, without the number of the block in their names."""
    prefix = f"{index}."
    return {key.removeprefix(prefix): value for key, value in values.items() if key.startswith(prefix)}


def _block(key: object) -> Block:
    """Return the columns of a key."""
    if isinstance(key, str):
        names = tuple(name.strip() for name in key.split(","))
        if not all(names):
            raise checks.invalid_argument("blocks", f"the key {checks.quote(key)}", _KEYS, "a name is empty")
        return tuple(map(_name, names))
    columns: Iterable[object] = key if isinstance(key, tuple) else (key,)
    found: list[str | int] = []
    for column in columns:
        if isinstance(column, str):
            found.append(_name(column))
        elif isinstance(column, bool) or not isinstance(column, Hashable):
            raise checks.invalid_type("blocks", f"the key {key!r}", _KEYS)
        else:
            found.append(checks.integer("blocks", column, minimum=0, or_else=[_KEYS]))
    if not found:
        raise checks.invalid_argument("blocks", "a block without columns", _KEYS)
    return tuple(found)


def _name(column: str) -> str:
    """Return the name of a column, which the core reads as UTF-8."""
    if checks.has_surrogate(column):
        found = f"the name {checks.quote(column)}, which has a lone surrogate"
        raise checks.invalid_argument("blocks", found, "names that can be written as UTF-8")
    return column


def _likelihood(key: object, value: object) -> Likelihood:
    if isinstance(value, type) and issubclass(value, Likelihood):
        hint = f"write {value.__name__}()"
        raise checks.invalid_type("blocks", f"the class {value.__name__} for {key!r}", "a likelihood", hint)
    if not isinstance(value, Likelihood):
        raise checks.invalid_type("blocks", f"{checks.describe(value)} for {key!r}", "a likelihood, such as Gaussian()")
    if isinstance(value, Columns):
        reason = "its blocks are blocks of the whole"
        raise checks.not_supported("blocks", f"Columns for {key!r}", reason, "its blocks")
    if value._is_learned():
        found = f"a Gamma prior of a parameter of {type(value).__name__} for {key!r}"
        raise checks.not_supported("blocks", found, "only samplers of one likelihood learn it", "a number")
    return value


def _quoted(column: str | int) -> str:
    return checks.quote(column) if isinstance(column, str) else str(column)


def _title(columns: Iterable[str | int]) -> str:
    return ", ".join(map(str, columns))


def _named_block(block: tuple[int, ...], names: Names | None) -> Block:
    """Return the columns of a block by name, if they have names."""
    return block if names is None else tuple(names[column] for column in block)


def _key(block: Block) -> str | Block:
    """Return a key that makes this block, the plainer one if there are two."""
    plain = all(isinstance(name, str) and name == name.strip() and name and "," not in name for name in block)
    return _title(block) if plain else block
