"""The C++ of simblas' entries, made of its table of routines.

For each routine and precision one inner function charges the call and writes what it leaves behind; around it stand
the entries: Fortran's (arguments by address, hidden lengths of strings ignored), CBLAS' and LAPACKE's (arguments by
value, a row-major call written as the column-major one that does the same). Sizes are double throughout: products of
three of them are beyond an int.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from lepaute.simulate.smpi.routines import Argument, Block, Expression, Workspace, kernels_of, rows

TYPES = {"s": "float", "d": "double", "c": "complex_float", "z": "complex_double"}
REAL_TYPES = {"s": "float", "d": "double", "c": "float", "z": "double"}
#: Real operations in one multiplication and one addition.
WEIGHTS = {"s": (1, 1), "d": (1, 1), "c": (6, 2), "z": (6, 2)}
#: Arguments that LAPACKE allocates itself; its functions with the suffix _work leave that to the caller.
WORKSPACES = frozenset({"work", "rwork", "iwork", "lwork", "lrwork", "liwork", "ldwork", "bwork"})
FLIPS = {"side": "other_side", "uplo": "other_uplo"}

HEAD = """\
// Made from simblas/routines.txt by lepaute.simulate.smpi.entries; to change it, change the table.

#include "entries.hpp"

using namespace lepaute::simblas;
"""


@dataclass(frozen=True)
class Member:
    """One routine of one precision.

    `first_row` is its first in `lepaute_routines`, `uses` are the arguments that its inner function takes.
    """

    block: Block
    letter: str
    name: str
    first_row: int
    uses: tuple[Argument, ...]

    @property
    def inner(self) -> str:
        return f"inner_{self.name}"

    @property
    def result(self) -> str:
        """The type that Fortran's entry returns."""
        kind = self.block.returns[0]
        types = {"": "void", "index": "int", "double": "double", "real": REAL_TYPES[self.letter]}
        return types.get(kind, TYPES[self.letter])


def generate(blocks: tuple[Block, ...]) -> str:
    """The C++ source of all entries of the table."""
    members = list(members_of(blocks))
    parts = [HEAD, _rows(blocks), "namespace {\n"]
    parts += [_inner(member) for member in members]
    parts += ["} // namespace\n", 'extern "C" {\n']
    for member in members:
        parts += [_fortran(member), *_cblas(member), *_lapacke(member)]
    parts.append('} // extern "C"\n')
    return "\n".join(parts)


def members_of(blocks: tuple[Block, ...]) -> Iterator[Member]:
    """Every routine of every precision, in the order of the rows."""
    row = 0
    for block in blocks:
        for letter, name in block.names:
            yield Member(block, letter, name, row, _uses(block, letter))
            row += len(kernels_of(block, letter))


def _rows(blocks: tuple[Block, ...]) -> str:
    lines = "\n".join(f'    {{"{row.name}", "{row.kernel}"}},' for row in rows(blocks))
    return (
        f"const lepaute_routine lepaute_routines[] = {{\n{lines}\n}};\n"
        "const int lepaute_routine_count = sizeof lepaute_routines / sizeof *lepaute_routines;\n"
    )


def _core_formulas(block: Block, letter: str) -> list[Expression]:
    given = (*block.sizes, block.multiplies, block.adds, block.flops)
    formulas = [formula for formula in given if formula is not None]
    formulas += [kernel.condition for kernel in block.kernels if kernel.letter == letter and kernel.condition]
    for setting in block.sets:
        formulas += [setting.value] + ([setting.count] if setting.count else [])
    return formulas


def _needed(block: Block, names: Iterable[str]) -> tuple[set[str], list[tuple[str, Expression]]]:
    """All names behind `names`, and those of the `let`s among them, in order."""
    needed = set(names)
    lets = []
    for name, value in reversed(block.lets):
        if name in needed:
            needed |= value.names
            lets.append((name, value))
    return needed, lets[::-1]


def _core_names(block: Block, letter: str) -> set[str]:
    names = {name for formula in _core_formulas(block, letter) for name in formula.names}
    return names | set(block.needs or ())


def _uses(block: Block, letter: str) -> tuple[Argument, ...]:
    used, _ = _needed(block, _core_names(block, letter))
    used |= {setting.name for setting in block.sets}
    used |= set(block.does.arguments) if block.does else set()
    return tuple(argument for argument in block.arguments(letter) if argument.name in used)


def _value_type(argument: Argument, letter: str) -> str:
    """The type of an argument inside: values are read already."""
    types = {
        "letter": "char",
        "integer": "double",
        "scalar": TYPES[letter],
        "real": REAL_TYPES[letter],
        "array": f"{TYPES[letter]}*",
        "reals": f"{REAL_TYPES[letter]}*",
        "integers": "int*",
    }
    return types[argument.kind]


def _let_lines(lets: list[tuple[str, Expression]], indent: str) -> list[str]:
    return [f"{indent}const double {name} = {value.cpp};" for name, value in lets]


def _row_of(member: Member) -> str:
    conditions = [kernel.condition for kernel in member.block.kernels if kernel.letter == member.letter]
    text = str(member.first_row + len(kernels_of(member.block, member.letter)) - 1)
    for place, condition in reversed(list(enumerate(conditions))):
        if condition is not None:
            text = f"{condition.cpp} ? {member.first_row + place} : {text}"
    return text


def _flops(member: Member) -> str:
    block = member.block
    if block.flops is not None:
        return block.flops.cpp
    if block.multiplies is None or block.adds is None:
        raise AssertionError("a block has either flops or multiplies and adds")
    weights = WEIGHTS[member.letter]
    if weights == (1, 1):
        return f"{block.multiplies.cpp} + {block.adds.cpp}"
    return f"{weights[0]}.0 * {block.multiplies.cpp} + {weights[1]}.0 * {block.adds.cpp}"


def _inner(member: Member) -> str:
    block, letter = member.block, member.letter
    kind, value = block.returns
    parameters = ", ".join(f"{_value_type(argument, letter)} {argument.name}" for argument in member.uses)
    lines = [f"{member.result} {member.inner}({parameters}) {{"]
    lines += _let_lines(_needed(block, _core_names(block, letter))[1], "    ")
    for setting in block.sets:
        if setting.count is None:
            typename = _value_type(next(a for a in block.takes if a.name == setting.name), letter).removesuffix("*")
            lines.append(f"    *{setting.name} = static_cast<{typename}>({setting.value.cpp});")
        else:
            index = " i" if "i" in setting.value.names else ""
            body = f"[&](double{index}) {{ return {setting.value.cpp}; }}"
            lines.append(f"    fill({setting.name}, {setting.count.cpp}, {body});")
    if block.needs:
        nothing = {"": "return;", "index": "return -1;"}.get(kind, "return 0;")
        lines.append(f"    if (!({' && '.join(f'{name} > 0' for name in block.needs)})) {{\n        {nothing}\n    }}")
    if block.does:
        lines.append(f"    {block.does.function}({', '.join(block.does.arguments)});")
    sizes = ", ".join(size.cpp for size in block.sizes)
    row = _row_of(member)
    lines.append(f"    charge({row}, {sizes}, {_flops(member)});")
    if kind == "index":
        lines.append(f"    return lepaute_index({row}, static_cast<int>(n));")
    elif kind:
        lines.append(f"    return {value};")
    return "\n".join([*lines, "}", ""])


def _call(member: Member, values: Mapping[str, str]) -> str:
    return f"{member.inner}({', '.join(values[argument.name] for argument in member.uses)})"


def _fortran(member: Member) -> str:
    block, letter = member.block, member.letter
    arguments = block.arguments(letter)
    queries = [work for work in block.workspaces if {work.array, work.length} <= {a.name for a in arguments}]
    used = {argument.name for argument in member.uses} | {"info"} | _query_names(block, queries)
    signature = ", ".join(_fortran_parameter(argument, letter, argument.name in used) for argument in arguments)
    lines = [f"{member.result} {member.name}_({signature}) {{"]
    if any(argument.name == "info" for argument in arguments):
        lines.append("    *info_ = 0;")
    lines += _query(block, letter, queries, {a.name: _fortran_value(a) for a in arguments}, "return;")
    call = _call(member, {argument.name: _fortran_value(argument) for argument in arguments})
    if block.returns[0] == "index":
        call += " + 1"
    lines.append(f"    return {call};" if block.returns[0] else f"    {call};")
    return "\n".join([*lines, "}", ""])


def _fortran_parameter(argument: Argument, letter: str, named: bool) -> str:
    types = {"letter": "const char*", "integer": "const int*"}
    types |= {"scalar": f"const {TYPES[letter]}*", "real": f"const {REAL_TYPES[letter]}*"}
    typename = types.get(argument.kind) or _value_type(argument, letter)
    return f"{typename} {argument.name}_" if named else typename


def _fortran_value(argument: Argument) -> str:
    if argument.kind == "letter":
        return f"letter({argument.name}_)"
    return f"*{argument.name}_" if argument.kind in {"integer", "scalar", "real"} else f"{argument.name}_"


def _query_names(block: Block, queries: list[Workspace]) -> set[str]:
    formulas = {name for work in queries for name in work.size.names}
    return _needed(block, formulas)[0] | {name for work in queries for name in (work.array, work.length)}


def _query(block: Block, letter: str, queries: list[Workspace], values: Mapping[str, str], leave: str) -> list[str]:
    """The lines that answer a question for the size of a workspace."""
    if not queries:
        return []
    names, lets = _needed(block, {name for work in queries for name in work.size.names})
    kinds = {argument.name: argument for argument in block.takes}
    asked = " || ".join(f"{length} == -1" for length in dict.fromkeys(values[work.length] for work in queries))
    lines = [f"    if ({asked}) {{"]
    lines += [
        f"        const {_value_type(kinds[name], letter)} {name} = {value};"
        for name, value in values.items()
        if name in names
    ]
    lines += _let_lines(lets, " " * 8)
    for work in queries:
        typename = _value_type(kinds[work.array], letter).removesuffix("*")
        lines.append(f"        *{values[work.array]} = static_cast<{typename}>({work.size.cpp});")
    return [*lines, f"        {leave}", "    }"]


def _cblas(member: Member) -> Iterator[str]:
    block, letter = member.block, member.letter
    if not block.cblas:
        return
    arguments = block.arguments(letter)
    kind = block.returns[0]
    used = {argument.name for argument in member.uses} | _partners(block, member.uses)
    parameters = [_cblas_parameter(argument, letter, argument.name in used) for argument in arguments]
    values = {argument.name: _cblas_value(argument, letter) for argument in arguments}
    body, ordered = _ordered_call(member, values)
    if block.cblas == "order":
        parameters.insert(0, "int order" if ordered else "int")
    signature = ", ".join(parameters)
    if kind == "index":
        yield (
            f"std::size_t cblas_{member.name}({signature}) {{\n"
            f"    return static_cast<std::size_t>(std::max({_call(member, values)}, 0));\n}}\n"
        )
        return
    yield f"{member.result} cblas_{member.name}({signature}) {{\n{body}}}\n"
    if kind == "scalar" and letter in "cz":
        # C cannot return a complex number everywhere: the standard's form writes it.
        yield (
            f"void cblas_{member.name}_sub({signature}, void* result) {{\n"
            f"    *static_cast<{TYPES[letter]}*>(result) = {_call(member, values)};\n}}\n"
        )


def _cblas_parameter(argument: Argument, letter: str, named: bool) -> str:
    types = {"letter": "int", "integer": "int", "real": REAL_TYPES[letter], "scalar": TYPES[letter]}
    if letter in "cz":
        types |= {"scalar": "const void*", "array": "void*"}
    typename = types.get(argument.kind) or _value_type(argument, letter)
    return f"{typename} {argument.name}_" if named else typename


def _cblas_value(argument: Argument, letter: str) -> str:
    if argument.kind == "letter":
        return f"letter({argument.name}_)"
    if letter in "cz" and argument.kind in {"scalar", "array"}:
        pointer = f"static_cast<{'const ' if argument.kind == 'scalar' else ''}{TYPES[letter]}*>({argument.name}_)"
        return f"*{pointer}" if argument.kind == "scalar" else pointer
    return f"{argument.name}_"


def _partners(block: Block, uses: tuple[Argument, ...]) -> set[str]:
    """The arguments that a row-major call takes the place of those in `uses` with."""
    names = {argument.name for argument in uses}
    return {other for pair in block.swaps for one, other in (pair, pair[::-1]) if one in names}


def _ordered_call(member: Member, values: Mapping[str, str]) -> tuple[str, bool]:
    """The call of the inner function for both storage orders, and whether the order decides anything."""
    changed = dict(values)
    for one, other in member.block.swaps:
        changed[one], changed[other] = values[other], values[one]
    for name in member.block.flips:
        changed[name] = f"{FLIPS[name]}({values[name]})"
    by_columns, by_rows = _call(member, values), _call(member, changed)
    give = "return " if member.block.returns[0] else ""
    if by_columns == by_rows:
        return f"    {give}{by_columns};\n", False
    return f"    order == row_major ? {by_rows} : {by_columns};\n", True


def _lapacke(member: Member) -> Iterator[str]:
    block, letter = member.block, member.letter
    if not block.lapacke:
        return
    everything = [argument for argument in block.arguments(letter) if argument.name != "info"]
    short = [argument for argument in everything if argument.name not in WORKSPACES]
    yield _lapacke_entry(member, f"LAPACKE_{member.name}", [*short, *block.lapacke_extra], [])
    names = {argument.name for argument in everything}
    queries = [work for work in block.workspaces if {work.array, work.length} <= names]
    yield _lapacke_entry(member, f"LAPACKE_{member.name}_work", everything, queries)


def _lapacke_entry(member: Member, name: str, arguments: list[Argument], queries: list[Workspace]) -> str:
    block, letter = member.block, member.letter
    used = {argument.name for argument in member.uses} | _partners(block, member.uses) | _query_names(block, queries)
    types = {"letter": "char", "integer": "int"}
    parameters = []
    for argument in arguments:
        typename = types.get(argument.kind) or _value_type(argument, letter)
        parameters.append(f"{typename} {argument.name}_" if argument.name in used else typename)
    values = {
        argument.name: f"letter({argument.name}_)" if argument.kind == "letter" else f"{argument.name}_"
        for argument in arguments
    }
    body, ordered = _ordered_call(member, values)
    if block.lapacke == "yes":
        parameters.insert(0, "int order" if ordered else "int")
    lines = [f"int {name}({', '.join(parameters)}) {{"]
    lines += _query(block, letter, queries, values, "return 0;")
    return "\n".join([*lines, f"{body}    return 0;", "}", ""])
