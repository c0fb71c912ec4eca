"""simblas' table of routines as values: what each routine takes, what a call of it costs, and what it leaves behind.

The table, `simblas/routines.txt`, tells its own notation. Here it is read and checked; `entries` makes C++ of it.

Its formulas are arithmetic in Python's notation, written out as C++: numbers, names, + - * /, powers of a name, min and
max, comparisons, `and`, `or`, `not`, `a if condition else b`, and letters: `side == 'L'`, `jobz in 'AS'`. Every number
is a double: the sizes of a call multiply to more than an int holds.
"""

import ast
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NamedTuple

from lepaute.errors import InputError

PRECISIONS = "sdcz"
#: What an argument can be: `scalar` and `array` of the type of the routine, `real` and `reals` of its real type.
KINDS = ("letter", "integer", "scalar", "real", "array", "reals", "integers")
VALUE_KINDS = ("letter", "integer")  # those that formulas may use
POINTER_KINDS = ("array", "reals", "integers")
#: The functions that move small data really, in simblas/entries.hpp.
ACTIONS = ("copy_vector", "swap_vectors", "copy_matrix", "set_matrix")
#: Words of C++ that a formula could be tempted to be called.
NOT_NAMES = frozenset("auto bool char const default do double else float for if int long new short signed this".split())
KEYS = (
    *("takes", "cblas", "row-major", "lapacke", "workspace", "let", "needs", "sizes", "multiplies", "adds", "flops"),
    *("kernel", "sets", "does", "returns"),
)
REPEATED = ("workspace", "let", "kernel", "sets")
OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.USub: "-",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.And: "&&",
    ast.Or: "||",
    ast.Not: "!",
}
FUNCTIONS = ("min", "max")
HIGHEST_POWER = 4


class Expression(NamedTuple):
    """A checked formula: as C++, and the names that it needs."""

    cpp: str
    names: frozenset[str]


def _parse_expression(text: str, known: Collection[str]) -> Expression:
    """The formula `text`, which may use the names in `known`; raises ValueError, saying why, for any other."""
    try:
        body = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError):  # ValueError: a null byte
        raise ValueError(f"{text.strip()!r} is not a formula") from None
    names: set[str] = set()
    cpp = _cpp(body, names)
    if unknown := sorted(names - set(known)):
        raise ValueError(f"{unknown[0]} in {text.strip()!r} is no argument of this routine and no `let`")
    return Expression(cpp, frozenset(names))


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
        case ast.UnaryOp(op=op, operand=operand) if type(op) in OPERATORS:
            return f"({OPERATORS[type(op)]}{_cpp(operand, names)})"
        case ast.Call(func=ast.Name(id=function), args=args, keywords=[]) if function in FUNCTIONS and len(args) > 1:
            return f"std::{function}({{{', '.join(_cpp(arg, names) for arg in args)}}})"
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
        case ast.BinOp(left=left, op=op, right=right) | ast.Compare(left=left, ops=[op], comparators=[right]) if (
            type(op) in OPERATORS
        ):
            return f"({_cpp(left, names)} {OPERATORS[type(op)]} {_cpp(right, names)})"
        case _:
            raise ValueError(f"{ast.unparse(node)!r} is nothing that a formula may contain")


class Argument(NamedTuple):
    """One argument of the Fortran entry; `letters` are the precisions that have it."""

    name: str
    kind: str
    letters: str = PRECISIONS


class Workspace(NamedTuple):
    """`array`(1) is set to `size` by a call whose `length` is -1."""

    array: str
    length: str
    size: Expression


class Kernel(NamedTuple):
    """The kernel of the platform that models calls of precision `letter` for which `condition` holds."""

    letter: str
    name: str
    condition: Expression | None


class Setting(NamedTuple):
    """`name`[i] = `value` for i below `end`; an end of None is one value."""

    name: str
    end: Expression | None
    value: Expression


class Action(NamedTuple):
    function: str
    arguments: tuple[str, ...]


class Routine(NamedTuple):
    """One row of the generated `lepaute_routines`: its number is its place in the list of `rows`."""

    name: str
    kernel: str


@dataclass
class Block:
    """Routines that share a description.

    `names` are (precision, name). The counts `multiplies` and `adds` are of operations in the type of the routine;
    `flops` of real ones, given instead of both. `lapacke` and `cblas` are "" if there is no such entry.
    """

    line: int
    names: tuple[tuple[str, str], ...]
    takes: tuple[Argument, ...] = ()
    cblas: str = ""
    swaps: list[tuple[str, str]] = field(default_factory=list)
    flips: list[str] = field(default_factory=list)
    lapacke: str = ""
    lapacke_extra: tuple[Argument, ...] = ()
    workspaces: list[Workspace] = field(default_factory=list)
    lets: dict[str, Expression] = field(default_factory=dict)
    needs: tuple[str, ...] | None = None
    sizes: tuple[Expression, ...] = ()
    multiplies: Expression | None = None
    adds: Expression | None = None
    flops: Expression | None = None
    kernels: list[Kernel] = field(default_factory=list)
    sets: list[Setting] = field(default_factory=list)
    does: Action | None = None
    returns: tuple[str, int] = ("", 0)

    def arguments(self, letter: str) -> tuple[Argument, ...]:
        """The arguments of the Fortran entry of one precision, in order."""
        return tuple(argument for argument in self.takes if letter in argument.letters)


def read_routines(text: str, source: str = "routines.txt") -> tuple[Block, ...]:
    """The blocks of the table `text`; raises InputError with `source`, the number of the line and what is wrong."""
    reader = _Reader(source)
    for reader.line, line in enumerate(text.splitlines(), start=1):
        content = line.split("#", 1)[0].rstrip()
        if content.strip():
            key, _, rest = content.strip().partition(" ")
            reader.take(key, rest.strip(), indented=content[0].isspace())
    for block in reader.blocks:
        reader.line, name = block.line, block.names[0][1]
        if block.needs is None or not block.sizes:
            raise reader.error(f"{name} lacks one of `takes`, `needs`, `sizes`")
        if [each is not None for each in (block.multiplies, block.adds, block.flops)] not in (
            [True, True, False],
            [False, False, True],
        ):
            raise reader.error(f"{name} needs either `multiplies` and `adds`, or `flops`")
    return tuple(reader.blocks)


def rows(blocks: Collection[Block]) -> tuple[Routine, ...]:
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


class _Reader:
    """What is known while the table is read: where, the kinds of arguments, and the keys that the block has so far.

    A line of a block is read by the method of its key.
    """

    def __init__(self, source: str) -> None:
        self.source, self.line = source, 0
        self.blocks: list[Block] = []
        self._kinds: dict[str, str] = {}
        self._owners: dict[str, int] = {}
        self._seen: set[str] | None = None  # keys of the present block; None outside of any

    def error(self, what: str) -> InputError:
        return InputError(f"{self.source}:{self.line}: {what}")

    def take(self, key: str, rest: str, *, indented: bool) -> None:
        if indented and self._seen is not None:
            if key not in KEYS:
                raise self.error(f"{key!r} is none of {', '.join(KEYS)}")
            if key in self._seen and key not in REPEATED:
                raise self.error(f"{key!r} stands twice in this block")
            if key != "takes" and "takes" not in self._seen:
                raise self.error("`takes` comes first in a block")
            self._seen.add(key)
            block = self.blocks[-1]
            if key in ("multiplies", "adds", "flops"):
                setattr(block, key, self._formula(rest, block))
            else:
                getattr(self, f"_{key.replace('-', '_')}")(block, rest)
        elif indented:
            raise self.error("this line belongs to no routine")
        elif key == "arguments":
            self._seen = None
            self._add_kinds(*(rest.split() or [""]))
        elif key == "routine":
            self._seen = set()
            self._open(rest)
        else:
            raise self.error(f"a line starts with `arguments`, `routine` or, inside a block, spaces; not {key!r}")

    def _formula(self, text: str, block: Block, *more: str) -> Expression:
        known = {argument.name for argument in block.takes if argument.kind in VALUE_KINDS}
        try:
            return _parse_expression(text, known | set(block.lets) | set(more))
        except ValueError as error:
            raise self.error(str(error)) from None

    def _kind(self, name: str) -> str:
        if name not in self._kinds:
            raise self.error(f"{name} has no kind; add it to one of the lines that start with `arguments`")
        return self._kinds[name]

    def _argument(self, block: Block, name: str, kinds: tuple[str, ...]) -> str:
        if not any(argument.name == name and argument.kind in kinds for argument in block.takes):
            raise self.error(f"{name} is no argument of this routine that is {' or '.join(kinds)}")
        return name

    def _add_kinds(self, kind: str, *names: str) -> None:
        if kind not in KINDS:
            raise self.error(f"{kind!r} is none of the kinds {', '.join(KINDS)}")
        for name in names:
            if self._kinds.setdefault(name, kind) != kind:
                raise self.error(f"{name} is {self._kinds[name]} already")

    def _open(self, rest: str) -> None:
        names: list[tuple[str, str]] = []
        for group in rest.split(","):
            words = group.split()
            if words and "?" in words[0]:
                names += [(letter, words[0].replace("?", letter)) for letter in words[1:]]
            else:
                names += [(letter, name) for letter, _, name in (word.partition("=") for word in words)]
        for letter, name in names:
            if letter not in tuple(PRECISIONS) or not re.fullmatch(r"[a-z][a-z0-9]*", name):
                raise self.error(f"{rest!r} is neither `?name s d c z` nor `d=name z=name`, joined by commas")
            if self._owners.setdefault(name, self.line) != self.line:
                raise self.error(f"{name} is described in line {self._owners[name]} already")
        if not names:
            raise self.error("this block names no routine")
        self.blocks.append(Block(self.line, tuple(names)))

    def _takes(self, block: Block, rest: str) -> None:
        arguments = []
        for word in rest.split():
            name, _, letters = word.partition(":")
            if set(letters) - set(PRECISIONS):
                raise self.error(f"{word!r}: after the colon come letters of {PRECISIONS}")
            arguments.append(Argument(name, self._kind(name), letters or PRECISIONS))
        if len({argument.name for argument in arguments}) < len(arguments):
            raise self.error("an argument stands twice")
        block.takes = tuple(arguments)

    def _cblas(self, block: Block, rest: str) -> None:
        if rest not in {"plain", "order"}:
            raise self.error(f"cblas is `plain` or `order`, not {rest!r}")
        block.cblas = rest

    def _row_major(self, block: Block, rest: str) -> None:
        for change in rest.split(","):
            match change.split():
                case ["swap", one, other]:
                    pair = (self._argument(block, one, VALUE_KINDS), self._argument(block, other, VALUE_KINDS))
                    block.swaps.append(pair)
                case ["flip", ("side" | "uplo") as name]:
                    block.flips.append(self._argument(block, name, VALUE_KINDS))
                case _:
                    raise self.error(f"{change.strip()!r} is neither `swap ONE OTHER` nor `flip side` or `flip uplo`")

    def _lapacke(self, block: Block, rest: str) -> None:
        block.lapacke = rest if rest in {"yes", "plain"} else "yes"
        if block.lapacke != rest:
            block.lapacke_extra = tuple(Argument(name, self._kind(name)) for name in rest.split())

    def _workspace(self, block: Block, rest: str) -> None:
        array, length, size = [*rest.split(maxsplit=2), "", "", ""][:3]
        names = (self._argument(block, array, POINTER_KINDS), self._argument(block, length, ("integer",)))
        block.workspaces.append(Workspace(*names, self._formula(size, block)))

    def _let(self, block: Block, rest: str) -> None:
        name, equals, value = (part.strip() for part in rest.partition("="))
        if not equals or not re.fullmatch(r"[a-z][a-z_0-9]*", name) or name in NOT_NAMES:
            raise self.error(f"{rest!r} is not `NAME = FORMULA`, with a name that C++ has no use for")
        if any(argument.name == name for argument in block.takes) or name in block.lets:
            raise self.error(f"{name} has a meaning in this block already")
        block.lets[name] = self._formula(value, block)

    def _needs(self, block: Block, rest: str) -> None:
        block.needs = tuple(self._formula(name, block).cpp for name in rest.split())

    def _sizes(self, block: Block, rest: str) -> None:
        parts = re.split(r",(?![^(]*\))", rest)
        if len(parts) != 3:
            raise self.error(f"sizes are three formulas, m, n and k, not {len(parts)}")
        block.sizes = tuple(self._formula(part, block) for part in parts)

    def _kernel(self, block: Block, rest: str) -> None:
        match = re.fullmatch(r"(\w) (\w+)(?: if (.+))?", rest)
        if not match or match[1] not in {letter for letter, _ in block.names}:
            raise self.error(
                f"{rest!r} is not `LETTER KERNEL` or `LETTER KERNEL if CONDITION`, of a letter of this block"
            )
        if any(kernel.letter == match[1] and kernel.condition is None for kernel in block.kernels):
            raise self.error("a kernel without a condition stands above: this one is never reached")
        block.kernels.append(Kernel(match[1], match[2], self._formula(match[3], block) if match[3] else None))

    def _sets(self, block: Block, rest: str) -> None:
        match = re.fullmatch(r"(\w+)(?:\[(.+)\])? = (.+)", rest)
        if not match:
            raise self.error(f"{rest!r} is neither `NAME = VALUE` nor `NAME[COUNT] = VALUE`")
        name, end = self._argument(block, match[1], POINTER_KINDS), match[2] and self._formula(match[2], block)
        block.sets.append(Setting(name, end or None, self._formula(match[3], block, "i")))

    def _does(self, block: Block, rest: str) -> None:
        match = re.fullmatch(r"(\w+)\((.+)\)", rest)
        if not match or match[1] not in ACTIONS:
            raise self.error(f"{rest!r} is no call of {', '.join(ACTIONS)}")
        block.does = Action(match[1], tuple(self._argument(block, name.strip(), KINDS) for name in match[2].split(",")))

    def _returns(self, block: Block, rest: str) -> None:
        match = re.fullmatch(r"(scalar|real|double|index)(?: (\d+))?", rest)
        if not match or (match[1] == "index") != (match[2] is None):
            raise self.error(f"{rest!r} is neither `index` nor `scalar`, `real` or `double` with a whole number")
        block.returns = (match[1], int(match[2] or 0))
