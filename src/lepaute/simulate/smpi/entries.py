"""The C++ of simblas' entries, made of its table of routines.

For each routine and precision one inner function charges the call and writes what it leaves behind; around it stand
the entries: Fortran's (arguments by address, hidden lengths of strings ignored), CBLAS' and LAPACKE's (arguments by
value, a row-major call written as the column-major one that does the same). Sizes are double throughout: products of
three of them are beyond an int.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from lepaute.simulate.smpi.routines import Argument, Block, Workspace, kernels_of, rows

TYPES = {"s": "float", "d": "double", "c": "complex_float", "z": "complex_double"}
REAL_TYPES = {"s": "float", "d": "double", "c": "float", "z": "double"}
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
    def result(self) -> str:
        types = {"": "void", "index": "int", "double": "double", "real": REAL_TYPES[self.letter]}
        return types.get(self.block.returns[0], TYPES[self.letter])

    def call(self, values: Mapping[str, str]) -> str:
        return f"inner_{self.name}({', '.join(values[argument.name] for argument in self.uses)})"


def generate(blocks: tuple[Block, ...]) -> str:
    members = list(members_of(blocks))
    lines = "\n".join(f'    {{"{row.name}", "{row.kernel}"}},' for row in rows(blocks))
    table = (
        f"const lepaute_routine lepaute_routines[] = {{\n{lines}\n}};\n"
        "const int lepaute_routine_count = sizeof lepaute_routines / sizeof *lepaute_routines;\n"
    )
    parts = [HEAD, table, "namespace {\n", *map(_inner, members), "} // namespace\n", 'extern "C" {\n']
    for member in members:
        parts += [_fortran(member), *_cblas(member), *_lapacke(member)]
    return "\n".join([*parts, '} // extern "C"\n'])


def members_of(blocks: tuple[Block, ...]) -> Iterator[Member]:
    row = 0
    for block in blocks:
        for letter, name in block.names:
            used = _needed(block, _core_names(block, letter)) | {setting.name for setting in block.sets}
            used |= set(block.does.arguments) if block.does else set()
            uses = tuple(argument for argument in block.arguments(letter) if argument.name in used)
            yield Member(block, letter, name, row, uses)
            row += len(kernels_of(block, letter))


def _core_names(block: Block, letter: str) -> set[str]:
    formulas = [*block.sizes, block.multiplies, block.adds, block.flops]
    formulas += [kernel.condition for kernel in block.kernels if kernel.letter == letter]
    formulas += [formula for setting in block.sets for formula in (setting.value, setting.end)]
    return {name for formula in formulas if formula for name in formula.names} | set(block.needs or ())


def _needed(block: Block, names: Iterable[str]) -> set[str]:
    """`names`, and those behind the `let`s among them."""
    needed = set(names)
    for name, value in reversed(block.lets.items()):
        if name in needed:
            needed |= value.names
    return needed


def _let_lines(block: Block, needed: set[str], indent: str) -> list[str]:
    return [f"{indent}const double {name} = {value.cpp};" for name, value in block.lets.items() if name in needed]


def _inner_type(argument: Argument, letter: str) -> str:
    """The type of an argument inside, where values are read already."""
    own, real = TYPES[letter], REAL_TYPES[letter]
    types = {"letter": "char", "integer": "double", "scalar": own, "real": real}
    return {**types, "array": f"{own}*", "reals": f"{real}*", "integers": "int*"}[argument.kind]


def _passed(argument: Argument, letter: str, form: str) -> tuple[str, str]:
    """The type of an argument of an entry ("fortran", "cblas" or "lapacke"), and the expression for its value."""
    kind, name, inner = argument.kind, f"{argument.name}_", _inner_type(argument, letter)
    if kind == "letter":
        return {"fortran": "const char*", "cblas": "int", "lapacke": "char"}[form], f"letter({name})"
    if form == "fortran" and kind in {"integer", "scalar", "real"}:
        return f"const {'int' if kind == 'integer' else inner}*", f"*{name}"
    if form == "cblas" and letter in "cz" and kind == "scalar":
        return "const void*", f"*static_cast<const {inner}*>({name})"
    if form == "cblas" and letter in "cz" and kind == "array":
        return "void*", f"static_cast<{inner}>({name})"
    return ("int" if kind == "integer" else inner), name


def _parameters(arguments: Iterable[Argument], letter: str, form: str, used: set[str]) -> list[str]:
    """The parameters of an entry; those that are not used have no names."""
    types = ((argument.name, _passed(argument, letter, form)[0]) for argument in arguments)
    return [f"{typename} {name}_" if name in used else typename for name, typename in types]


def _inner(member: Member) -> str:
    block, letter = member.block, member.letter
    kind, value = block.returns
    parameters = ", ".join(f"{_inner_type(argument, letter)} {argument.name}" for argument in member.uses)
    lines = [f"{member.result} inner_{member.name}({parameters}) {{"]
    lines += _let_lines(block, _needed(block, _core_names(block, letter)), "    ")
    types = {argument.name: _inner_type(argument, letter).removesuffix("*") for argument in block.takes}
    for setting in block.sets:
        if setting.end is None:
            lines.append(f"    *{setting.name} = static_cast<{types[setting.name]}>({setting.value.cpp});")
        else:
            index = " i" if "i" in setting.value.names else ""
            body = f"[&](double{index}) {{ return {setting.value.cpp}; }}"
            lines.append(f"    fill({setting.name}, {setting.end.cpp}, {body});")
    if block.needs:
        nothing = {"": "return;", "index": "return -1;"}.get(kind, "return 0;")
        lines.append(f"    if (!({' && '.join(f'{name} > 0' for name in block.needs)})) {{\n        {nothing}\n    }}")
    if block.does:
        lines.append(f"    {block.does.function}({', '.join(block.does.arguments)});")
    row, sizes = _row_of(member), ", ".join(size.cpp for size in block.sizes)
    lines.append(f"    charge({row}, {sizes}, {_flops(block, letter)});")
    if kind:
        lines.append(f"    return {f'lepaute_index({row}, static_cast<int>(n))' if kind == 'index' else value};")
    return "\n".join([*lines, "}", ""])


def _row_of(member: Member) -> str:
    """The number of the row: a choice among kernels where there are several."""
    conditions = [kernel.condition for kernel in member.block.kernels if kernel.letter == member.letter]
    text = str(member.first_row + len(kernels_of(member.block, member.letter)) - 1)
    for place, condition in reversed(list(enumerate(conditions))):
        if condition is not None:
            text = f"{condition.cpp} ? {member.first_row + place} : {text}"
    return text


def _flops(block: Block, letter: str) -> str:
    """Real operations: a complex multiplication is six, a complex addition two."""
    if block.flops is not None:
        return block.flops.cpp
    assert block.multiplies is not None
    assert block.adds is not None
    by = ("6.0 * ", "2.0 * ") if letter in "cz" else ("", "")
    return f"{by[0]}{block.multiplies.cpp} + {by[1]}{block.adds.cpp}"


def _fortran(member: Member) -> str:
    block, letter = member.block, member.letter
    arguments = block.arguments(letter)
    queries = _queries(block, arguments)
    used = {argument.name for argument in member.uses} | {"info"} | _query_names(block, queries)
    values = {argument.name: _passed(argument, letter, "fortran")[1] for argument in arguments}
    lines = [f"{member.result} {member.name}_({', '.join(_parameters(arguments, letter, 'fortran', used))}) {{"]
    if "info" in values:
        lines.append("    *info_ = 0;")
    lines += _query_lines(member, queries, values, "return;")
    kind = block.returns[0]
    lines.append(f"    {'return ' if kind else ''}{member.call(values)}{' + 1' if kind == 'index' else ''};")
    return "\n".join([*lines, "}", ""])


def _queries(block: Block, arguments: Iterable[Argument]) -> list[Workspace]:
    """The workspaces that an entry with these arguments is asked about."""
    names = {argument.name for argument in arguments}
    return [work for work in block.workspaces if {work.array, work.length} <= names]


def _query_names(block: Block, queries: list[Workspace]) -> set[str]:
    formulas = {name for work in queries for name in work.size.names}
    return _needed(block, formulas) | {name for work in queries for name in (work.array, work.length)}


def _query_lines(member: Member, queries: list[Workspace], values: Mapping[str, str], leave: str) -> list[str]:
    """The lines that answer a question for the size of a workspace."""
    if not queries:
        return []
    names = _needed(member.block, {name for work in queries for name in work.size.names})
    types = {argument.name: _inner_type(argument, member.letter) for argument in member.block.takes}
    asked = " || ".join(f"{length} == -1" for length in dict.fromkeys(values[work.length] for work in queries))
    return [
        f"    if ({asked}) {{",
        *(f"        const {types[name]} {name} = {value};" for name, value in values.items() if name in names),
        *_let_lines(member.block, names, " " * 8),
        *(
            f"        *{values[work.array]} = static_cast<{types[work.array].removesuffix('*')}>({work.size.cpp});"
            for work in queries
        ),
        f"        {leave}",
        "    }",
    ]


def _cblas(member: Member) -> Iterator[str]:
    block, letter = member.block, member.letter
    if not block.cblas:
        return
    arguments, kind = block.arguments(letter), block.returns[0]
    values = {argument.name: _passed(argument, letter, "cblas")[1] for argument in arguments}
    parameters = _parameters(arguments, letter, "cblas", _used_in_both_orders(member))
    body, ordered = _ordered_call(member, values)
    if block.cblas == "order":
        parameters.insert(0, "int order" if ordered else "int")
    signature = ", ".join(parameters)
    if kind == "index":
        yield (
            f"std::size_t cblas_{member.name}({signature}) {{\n"
            f"    return static_cast<std::size_t>(std::max({member.call(values)}, 0));\n}}\n"
        )
        return
    yield f"{member.result} cblas_{member.name}({signature}) {{\n{body}}}\n"
    if kind == "scalar" and letter in "cz":
        # C cannot return a complex number everywhere: the standard's form writes it.
        yield (
            f"void cblas_{member.name}_sub({signature}, void* result) {{\n"
            f"    *static_cast<{TYPES[letter]}*>(result) = {member.call(values)};\n}}\n"
        )


def _used_in_both_orders(member: Member) -> set[str]:
    """The arguments of the inner function, and those that a row-major call takes their place with."""
    names = {argument.name for argument in member.uses}
    return names | {other for pair in member.block.swaps for one, other in (pair, pair[::-1]) if one in names}


def _ordered_call(member: Member, values: Mapping[str, str]) -> tuple[str, bool]:
    """The call of the inner function for both storage orders, and whether the order decides anything."""
    changed = dict(values)
    for one, other in member.block.swaps:
        changed[one], changed[other] = values[other], values[one]
    for name in member.block.flips:
        changed[name] = f"{FLIPS[name]}({values[name]})"
    by_columns, by_rows = member.call(values), member.call(changed)
    if by_columns == by_rows:
        return f"    {'return ' if member.block.returns[0] else ''}{by_columns};\n", False
    return f"    order == row_major ? {by_rows} : {by_columns};\n", True


def _lapacke(member: Member) -> Iterator[str]:
    block = member.block
    if not block.lapacke:
        return
    everything = [argument for argument in block.arguments(member.letter) if argument.name != "info"]
    short = [argument for argument in everything if argument.name not in WORKSPACES]
    yield _lapacke_entry(member, f"LAPACKE_{member.name}", [*short, *block.lapacke_extra], [])
    yield _lapacke_entry(member, f"LAPACKE_{member.name}_work", everything, _queries(block, everything))


def _lapacke_entry(member: Member, name: str, arguments: list[Argument], queries: list[Workspace]) -> str:
    block, letter = member.block, member.letter
    parameters = _parameters(arguments, letter, "lapacke", _used_in_both_orders(member) | _query_names(block, queries))
    values = {argument.name: _passed(argument, letter, "lapacke")[1] for argument in arguments}
    body, ordered = _ordered_call(member, values)
    if block.lapacke == "yes":
        parameters.insert(0, "int order" if ordered else "int")
    lines = [f"int {name}({', '.join(parameters)}) {{", *_query_lines(member, queries, values, "return 0;")]
    return "\n".join([*lines, f"{body}    return 0;", "}", ""])
