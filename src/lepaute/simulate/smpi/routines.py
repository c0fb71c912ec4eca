"""The formulas of simblas' table of routines: arithmetic in Python's notation, checked, and written out as C++.

A formula knows numbers, names, + - * /, powers of a name, min and max, comparisons, `and`, `or`, `not`,
`a if condition else b`, and letters: `side == 'L'`, `jobz in 'AS'`. Every number is a double: the sizes of a call
multiply to more than an int holds.
"""

import ast
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from lepaute.errors import InputError

OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.And: "&&",
    ast.Or: "||",
    ast.USub: "-",
    ast.Not: "!",
}
FUNCTIONS = ("min", "max")
HIGHEST_POWER = 4


@dataclass(frozen=True)
class Expression:
    """A checked formula: as it stands in the table, as C++, and the names that it needs."""

    text: str
    cpp: str
    names: frozenset[str]


def parse_expression(text: str, known: Collection[str]) -> Expression:
    """The formula `text`, which may use the names in `known`.

    Raises ValueError, with a text that says what is wrong, when it is not a formula or uses another name.
    """
    try:
        body = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError):  # ValueError: a null byte
        raise ValueError(f"{text.strip()!r} is not a formula") from None
    names: set[str] = set()
    cpp = _cpp(body, names)
    if unknown := sorted(names - set(known)):
        raise ValueError(f"{unknown[0]} in {text.strip()!r} is no argument of this routine and no `let`")
    return Expression(text.strip(), cpp, frozenset(names))


def _cpp(node: ast.expr, names: set[str]) -> str:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return repr(float(number))
        case ast.Constant(value=str() as letter) if len(letter) == 1 and letter.isalnum():
            return f"'{letter}'"
        case ast.Name(id=name):
            names.add(name)
            return name
        case ast.BinOp(left=ast.Name(id=name), op=ast.Pow(), right=ast.Constant(value=int() as power)) if (
            2 <= power <= HIGHEST_POWER
        ):
            names.add(name)
            return "(" + " * ".join([name] * power) + ")"
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return f"({_cpp(left, names)} {OPERATORS[type(op)]} {_cpp(right, names)})"
        case ast.UnaryOp(op=op, operand=operand) if type(op) in OPERATORS:
            return f"({OPERATORS[type(op)]}{_cpp(operand, names)})"
        case ast.Call(func=ast.Name(id=function), args=args, keywords=[]) if function in FUNCTIONS and len(args) > 1:
            return f"std::{function}({{{', '.join(_cpp(arg, names) for arg in args)}}})"
        case _:
            return _choice(node, names)


def _choice(node: ast.expr, names: set[str]) -> str:
    match node:
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return f"({_cpp(test, names)} ? {_cpp(body, names)} : {_cpp(orelse, names)})"
        case ast.BoolOp(op=op, values=values):
            return "(" + f" {OPERATORS[type(op)]} ".join(_cpp(value, names) for value in values) + ")"
        case ast.Compare(
            left=left, ops=[ast.In() | ast.NotIn() as op], comparators=[ast.Constant(value=str() as letters)]
        ) if letters.isalnum():
            tested = _cpp(left, names)
            among = " || ".join(f"{tested} == '{letter}'" for letter in letters)
            return f"({among})" if isinstance(op, ast.In) else f"(!({among}))"
        case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in OPERATORS:
            return f"({_cpp(left, names)} {OPERATORS[type(op)]} {_cpp(right, names)})"
        case _:
            raise ValueError(f"{ast.unparse(node)!r} is nothing that a formula may contain")


PRECISIONS = "sdcz"
#: What an argument can be: `scalar` and `array` of the type of the routine, `real` and `reals` of its real type.
KINDS = ("letter", "integer", "scalar", "real", "array", "reals", "integers")
VALUE_KINDS = ("letter", "integer")  # those that formulas may use
POINTER_KINDS = ("array", "reals", "integers")
#: The functions that move small data really, in simblas/entries.hpp.
ACTIONS = ("copy_vector", "swap_vectors", "copy_matrix", "set_matrix")
#: Words of C++ that a formula could be tempted to be called.
NOT_NAMES = frozenset("auto bool char const default do double else float for if int long new short signed this".split())
RETURNS = ("scalar", "real", "double", "index")


@dataclass(frozen=True)
class Argument:
    """One argument of the Fortran entry; `letters` are the precisions that have it."""

    name: str
    kind: str
    letters: str = PRECISIONS


@dataclass(frozen=True)
class Workspace:
    """`array`(1) is set to `size` by a call whose `length` is -1."""

    array: str
    length: str
    size: Expression


@dataclass(frozen=True)
class Kernel:
    """The kernel of the platform that models calls of precision `letter` for which `condition` holds."""

    letter: str
    name: str
    condition: Expression | None


@dataclass(frozen=True)
class Setting:
    """`name`[i] = `value` for i below `count`; a count of None is one value."""

    name: str
    count: Expression | None
    value: Expression


@dataclass(frozen=True)
class Action:
    """A call of `function` with these arguments of the routine."""

    function: str
    arguments: tuple[str, ...]


@dataclass(frozen=True)
class Block:
    """Routines that share a description.

    `names` are (precision, name). The counts `multiplies` and `adds` are of operations in the type of the routine;
    `flops` of real ones, given instead of both. `lapacke` and `cblas` are "" where there is no such entry.
    """

    line: int
    names: tuple[tuple[str, str], ...]
    takes: tuple[Argument, ...] = ()
    cblas: str = ""
    swaps: tuple[tuple[str, str], ...] = ()
    flips: tuple[str, ...] = ()
    lapacke: str = ""
    lapacke_extra: tuple[Argument, ...] = ()
    workspaces: tuple[Workspace, ...] = ()
    lets: tuple[tuple[str, Expression], ...] = ()
    needs: tuple[str, ...] | None = None
    sizes: tuple[Expression, ...] = ()
    multiplies: Expression | None = None
    adds: Expression | None = None
    flops: Expression | None = None
    kernels: tuple[Kernel, ...] = ()
    sets: tuple[Setting, ...] = ()
    does: Action | None = None
    returns: tuple[str, int] = ("", 0)

    def arguments(self, letter: str) -> tuple[Argument, ...]:
        """The arguments of the Fortran entry of one precision, in order."""
        return tuple(argument for argument in self.takes if letter in argument.letters)


@dataclass(frozen=True)
class Routine:
    """One row of the generated `lepaute_routines`: its number is its place in the list of `rows`."""

    name: str
    kernel: str


@dataclass
class _Reader:
    """What is known while the table is read: where, the kinds of arguments, and the keys that the block has so far."""

    source: str
    line: int = 0
    kinds: dict[str, str] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)

    def error(self, what: str) -> InputError:
        return InputError(f"{self.source}:{self.line}: {what}")

    def formula(self, text: str, block: Block, *more: str) -> Expression:
        known = {argument.name for argument in block.takes if argument.kind in VALUE_KINDS}
        try:
            return parse_expression(text, known | {name for name, _ in block.lets} | set(more))
        except ValueError as error:
            raise self.error(str(error)) from None

    def kind(self, name: str) -> str:
        if name not in self.kinds:
            raise self.error(f"{name} has no kind; add it to one of the lines that start with `arguments`")
        return self.kinds[name]

    def argument(self, block: Block, name: str, kinds: tuple[str, ...]) -> str:
        for argument in block.takes:
            if argument.name == name and argument.kind in kinds:
                return name
        raise self.error(f"{name} is no argument of this routine that is {' or '.join(kinds)}")


def read_routines(text: str, source: str = "routines.txt") -> tuple[Block, ...]:
    """The blocks of the table `text`.

    Raises InputError with `source`, the number of the line and what is wrong there.
    """
    reader = _Reader(source)
    blocks: list[Block] = []
    owners: dict[str, int] = {}
    inside = False
    for number, key, rest, indented in _lines(text):
        reader.line = number
        if indented and inside:
            blocks[-1] = _continued(reader, blocks[-1], key, rest)
        elif indented:
            raise reader.error("this line belongs to no routine")
        elif key == "arguments":
            inside = False
            _add_kinds(reader, rest)
        elif key == "routine":
            inside = True
            blocks.append(_opened(reader, owners, rest))
        else:
            raise reader.error(f"a line starts with `arguments`, `routine` or, inside a block, spaces; not {key!r}")
    for block in blocks:
        _check(reader, block)
    return tuple(blocks)


def rows(blocks: tuple[Block, ...]) -> tuple[Routine, ...]:
    """The rows of `lepaute_routines`: for each routine its kernels in order, then, unless one always holds, none."""
    return tuple(
        Routine(name, kernel)
        for block in blocks
        for letter, name in block.names
        for kernel in kernels_of(block, letter)
    )


def kernels_of(block: Block, letter: str) -> tuple[str, ...]:
    """The kernels that may model the routine of this precision; "" last where the conditions leave room."""
    kernels = [kernel for kernel in block.kernels if kernel.letter == letter]
    names = [kernel.name for kernel in kernels]
    return tuple(names) if kernels and kernels[-1].condition is None else (*names, "")


def _lines(text: str) -> Iterator[tuple[int, str, str, bool]]:
    for number, line in enumerate(text.splitlines(), start=1):
        content = line.split("#", 1)[0].rstrip()
        if content.strip():
            key, _, rest = content.strip().partition(" ")
            yield number, key, rest.strip(), content[0].isspace()


def _opened(reader: _Reader, owners: dict[str, int], rest: str) -> Block:
    reader.seen = set()
    block = Block(reader.line, _names(reader, rest))
    for _, name in block.names:
        if owners.setdefault(name, reader.line) != reader.line:
            raise reader.error(f"{name} is described in line {owners[name]} already")
    return block


def _continued(reader: _Reader, block: Block, key: str, rest: str) -> Block:
    if key not in KEYS:
        raise reader.error(f"{key!r} is none of {', '.join(KEYS)}")
    if key in reader.seen and key not in REPEATED:
        raise reader.error(f"{key!r} stands twice in this block")
    if key != "takes" and "takes" not in reader.seen:
        raise reader.error("`takes` comes first in a block")
    reader.seen.add(key)
    return KEYS[key](reader, block, rest)


def _add_kinds(reader: _Reader, rest: str) -> None:
    kind, *names = rest.split() or [""]
    if kind not in KINDS:
        raise reader.error(f"{kind!r} is none of the kinds {', '.join(KINDS)}")
    for name in names:
        if reader.kinds.setdefault(name, kind) != kind:
            raise reader.error(f"{name} is {reader.kinds[name]} already")


def _names(reader: _Reader, rest: str) -> tuple[tuple[str, str], ...]:
    names: list[tuple[str, str]] = []
    for group in rest.split(","):
        words = group.split()
        if words and "?" in words[0]:
            pattern, *letters = words
            names += [(letter, pattern.replace("?", letter)) for letter in letters]
        else:
            pairs = [word.partition("=") for word in words]
            names += [(letter, name) for letter, _, name in pairs]
    for letter, name in names:
        if letter not in tuple(PRECISIONS) or not re.fullmatch(r"[a-z][a-z0-9]*", name):
            raise reader.error(f"{rest!r} is neither `?name s d c z` nor `d=name z=name`, joined by commas")
    if not names:
        raise reader.error("this block names no routine")
    return tuple(names)


def _takes(reader: _Reader, block: Block, rest: str) -> Block:
    arguments = []
    for word in rest.split():
        name, _, letters = word.partition(":")
        if set(letters) - set(PRECISIONS):
            raise reader.error(f"{word!r}: after the colon come letters of {PRECISIONS}")
        arguments.append(Argument(name, reader.kind(name), letters or PRECISIONS))
    if len({argument.name for argument in arguments}) < len(arguments):
        raise reader.error("an argument stands twice")
    return replace(block, takes=tuple(arguments))


def _cblas(reader: _Reader, block: Block, rest: str) -> Block:
    if rest not in {"plain", "order"}:
        raise reader.error(f"cblas is `plain` or `order`, not {rest!r}")
    return replace(block, cblas=rest)


def _row_major(reader: _Reader, block: Block, rest: str) -> Block:
    swaps: list[tuple[str, str]] = []
    flips: list[str] = []
    for change in rest.split(","):
        match change.split():
            case ["swap", one, other]:
                swaps.append((reader.argument(block, one, VALUE_KINDS), reader.argument(block, other, VALUE_KINDS)))
            case ["flip", ("side" | "uplo") as name]:
                flips.append(reader.argument(block, name, VALUE_KINDS))
            case _:
                raise reader.error(f"{change.strip()!r} is neither `swap ONE OTHER` nor `flip side` or `flip uplo`")
    return replace(block, swaps=tuple(swaps), flips=tuple(flips))


def _lapacke(reader: _Reader, block: Block, rest: str) -> Block:
    if rest in {"yes", "plain"}:
        return replace(block, lapacke=rest)
    return replace(
        block, lapacke="yes", lapacke_extra=tuple(Argument(name, reader.kind(name)) for name in rest.split())
    )


def _workspace(reader: _Reader, block: Block, rest: str) -> Block:
    array, length, size = [*rest.split(maxsplit=2), "", "", ""][:3]
    made = Workspace(
        reader.argument(block, array, POINTER_KINDS),
        reader.argument(block, length, ("integer",)),
        reader.formula(size, block),
    )
    return replace(block, workspaces=(*block.workspaces, made))


def _let(reader: _Reader, block: Block, rest: str) -> Block:
    name, equals, value = (part.strip() for part in rest.partition("="))
    if not equals or not re.fullmatch(r"[a-z][a-z_0-9]*", name) or name in NOT_NAMES:
        raise reader.error(f"{rest!r} is not `NAME = FORMULA`, with a name that C++ has no use for")
    if any(argument.name == name for argument in block.takes) or name in dict(block.lets):
        raise reader.error(f"{name} has a meaning in this block already")
    return replace(block, lets=(*block.lets, (name, reader.formula(value, block))))


def _needs(reader: _Reader, block: Block, rest: str) -> Block:
    return replace(block, needs=tuple(reader.formula(name, block).cpp for name in rest.split()))


def _sizes(reader: _Reader, block: Block, rest: str) -> Block:
    parts = re.split(r",(?![^(]*\))", rest)
    if len(parts) != 3:
        raise reader.error(f"sizes are three formulas, m, n and k, not {len(parts)}")
    return replace(block, sizes=tuple(reader.formula(part, block) for part in parts))


def _count(name: str) -> "Callable[[_Reader, Block, str], Block]":
    def read(reader: _Reader, block: Block, rest: str) -> Block:
        value = reader.formula(rest, block)
        match name:
            case "multiplies":
                return replace(block, multiplies=value)
            case "adds":
                return replace(block, adds=value)
            case _:
                return replace(block, flops=value)

    return read


def _kernel(reader: _Reader, block: Block, rest: str) -> Block:
    match = re.fullmatch(r"(\w) (\w+)(?: if (.+))?", rest)
    if not match or match[1] not in {letter for letter, _ in block.names}:
        raise reader.error(
            f"{rest!r} is not `LETTER KERNEL` or `LETTER KERNEL if CONDITION`, of a letter of this block"
        )
    if any(kernel.letter == match[1] and kernel.condition is None for kernel in block.kernels):
        raise reader.error("a kernel without a condition stands above: this one is never reached")
    made = Kernel(match[1], match[2], reader.formula(match[3], block) if match[3] else None)
    return replace(block, kernels=(*block.kernels, made))


def _sets(reader: _Reader, block: Block, rest: str) -> Block:
    match = re.fullmatch(r"(\w+)(?:\[(.+)\])? = (.+)", rest)
    if not match:
        raise reader.error(f"{rest!r} is neither `NAME = VALUE` nor `NAME[COUNT] = VALUE`")
    made = Setting(
        reader.argument(block, match[1], POINTER_KINDS),
        reader.formula(match[2], block) if match[2] else None,
        reader.formula(match[3], block, "i"),
    )
    return replace(block, sets=(*block.sets, made))


def _does(reader: _Reader, block: Block, rest: str) -> Block:
    match = re.fullmatch(r"(\w+)\((.+)\)", rest)
    if not match or match[1] not in ACTIONS:
        raise reader.error(f"{rest!r} is no call of {', '.join(ACTIONS)}")
    names = tuple(reader.argument(block, name.strip(), KINDS) for name in match[2].split(","))
    return replace(block, does=Action(match[1], names))


def _returns(reader: _Reader, block: Block, rest: str) -> Block:
    match = re.fullmatch(rf"({'|'.join(RETURNS)})(?: (\d+))?", rest)
    if not match or (match[1] == "index") != (match[2] is None):
        raise reader.error(f"{rest!r} is neither `index` nor `scalar`, `real` or `double` with a whole number")
    return replace(block, returns=(match[1], int(match[2] or 0)))


KEYS: Mapping[str, Callable[[_Reader, Block, str], Block]] = {
    "takes": _takes,
    "cblas": _cblas,
    "row-major": _row_major,
    "lapacke": _lapacke,
    "workspace": _workspace,
    "let": _let,
    "needs": _needs,
    "sizes": _sizes,
    "multiplies": _count("multiplies"),
    "adds": _count("adds"),
    "flops": _count("flops"),
    "kernel": _kernel,
    "sets": _sets,
    "does": _does,
    "returns": _returns,
}
REPEATED = ("workspace", "let", "kernel", "sets")


def _check(reader: _Reader, block: Block) -> None:
    reader.line = block.line
    name = block.names[0][1]
    if block.needs is None or not block.sizes:
        raise reader.error(f"{name} lacks one of `takes`, `needs`, `sizes`")
    given = (block.multiplies is not None, block.adds is not None, block.flops is not None)
    if given not in {(True, True, False), (False, False, True)}:
        raise reader.error(f"{name} needs either `multiplies` and `adds`, or `flops`")
