"""The order of execution: replications, blocks, shuffling, and several designs in one table."""

from collections.abc import Mapping, Sequence

from lepaute.design.cells import Value, shortened
from lepaute.design.columns import DECLARATION, TYPES, DeclaredColumn, declaration_of
from lepaute.design.draws import Draws
from lepaute.design.table import MOST_CELLS, Design
from lepaute.errors import DesignError
from lepaute.version import __version__

BLOCK = "block"
KIND = "kind"

Row = tuple[Value, ...]


def arranged(
    generator: str,
    seed: int,
    columns: Sequence[DeclaredColumn],
    treatments: Sequence[Row],
    *,
    arguments: Mapping[str, str],
    replications: int = 1,
    blocks: int | None = None,
) -> Design:
    """The design in which every treatment occurs `replications` times, in random order.

    blocks: None shuffles everything together; a number repeats the whole in as many blocks, one after the other, each
            shuffled for itself and numbered from 0 in the column `block`
    """
    checked_size(len(treatments), len(columns), replications, 1 if blocks is None else blocks)
    repeated = [row for row in treatments for _ in range(replications)]
    header = {
        "generator": f"lepaute design {generator}",
        "version": __version__,
        "seed": str(seed),
        DECLARATION: "",
        "replications": str(replications),
        **({} if blocks is None else {"blocks": str(blocks)}),
        **arguments,
    }
    if blocks is None:
        rows = Draws(seed, "order").shuffled(repeated)
    else:
        columns = (DeclaredColumn(BLOCK, "int"), *columns)
        rows = [(block, *row) for block in range(blocks) for row in Draws(seed, "order", str(block)).shuffled(repeated)]
    header[DECLARATION] = declaration_of(columns)
    return Design(header, tuple(column.name for column in columns), tuple(rows))


def checked_size(treatments: int, columns: int, replications: int, blocks: int) -> None:
    """Raises DesignError for counts that make no sense or a table that is too large to be made."""
    for what, count in (("replications", replications), ("blocks", blocks)):
        if type(count) is not int or count < 1:
            raise DesignError(f"{what} is {shortened(repr(count))}; give a whole number >= 1")
    rows = treatments * replications * blocks
    if rows * (columns + 2) > MOST_CELLS:
        raise DesignError(
            f"{rows} rows are too many: {treatments} treatments, {replications} replications, {blocks} blocks; take "
            "fewer levels, or a fraction, a Latin hypercube or a sample of them"
        )


def blocks(design: Design, *, count: int, seed: int) -> Design:
    """`count` blocks, one after the other, each with all the rows of `design` in an order of its own.

    The column `block` numbers them from 0. Raises DesignError where the design has blocks already.
    """
    if BLOCK in design.columns:
        raise DesignError("the design has blocks already; make it without them")
    arguments = {f"part.0.{key}": text for key, text in design.header.items()}
    return arranged("blocks", seed, _declared(design), design.rows, arguments=arguments, blocks=count)


def mix(*designs: Design, seed: int, kinds: Sequence[str] | None = None) -> Design:
    """One table of the rows of several designs, shuffled across all of them.

    kinds: a name for each design, for a first column `kind`

    A factor that a design does not have is empty (None) in its rows. Where the designs have blocks, all must have
    them, and the rows of a block stay in it. Raises DesignError where a factor has texts in one and numbers in another.
    """
    if not designs:
        raise DesignError("nothing to mix; give designs")
    names = [str(kind) for kind in kinds] if kinds is not None else []
    if kinds is not None and (isinstance(kinds, str) or len(set(names)) != len(names) or len(names) != len(designs)):
        raise DesignError(f"{len(names)} kinds for {len(designs)} designs; give each design a name of its own")
    columns = ([DeclaredColumn(KIND, "text")] if names else []) + _together(designs, reserved=bool(names))
    checked_size(sum(map(len, designs)), len(columns), 1, 1)
    blocked = [BLOCK in design.columns for design in designs]
    if any(blocked) and not all(blocked):
        raise DesignError("some designs have blocks and some have not; give all of them blocks, or none")
    rows: list[Row] = []
    for number, design in enumerate(designs):
        extra: dict[str, Value] = {KIND: names[number]} if names else {}
        for given in design:
            row = {**extra, **given}
            rows.append(tuple(_as_type(row.get(column.name), column.type) for column in columns))
    if any(blocked):
        place = [column.name for column in columns].index(BLOCK)
        # Numbers as a rule; where somebody made a block of another kind, equal ones still stay together.
        values = sorted({row[place] for row in rows}, key=lambda value: (str(type(value)), value))
        mixed = [
            row
            for value in values
            for row in Draws(seed, "order", str(value)).shuffled([row for row in rows if row[place] == value])
        ]
    else:
        mixed = Draws(seed, "order").shuffled(rows)
    header = {
        "generator": "lepaute design mix",
        "version": __version__,
        "seed": str(seed),
        DECLARATION: declaration_of(columns),
        "parts": str(len(designs)),
    }
    for number, design in enumerate(designs):
        header |= {f"part.{number}.{key}": text for key, text in design.header.items()}
    return Design(header, tuple(column.name for column in columns), tuple(mixed))


def _declared(design: Design) -> list[DeclaredColumn]:
    """The columns of a design with their types; those of the closed kinds are integers and texts."""
    columns = []
    for column in design.schema:
        closed = "text" if getattr(column, "choices", ()) else "int"
        columns.append(column if isinstance(column, DeclaredColumn) else DeclaredColumn(column.name, closed))
    return columns


def _together(designs: Sequence[Design], *, reserved: bool) -> list[DeclaredColumn]:
    types: dict[str, str] = {}
    for design in designs:
        for column in _declared(design):
            if reserved and column.name == KIND:
                raise DesignError("a design has a factor named kind; leave out the names of kinds, or rename it")
            other = types.setdefault(column.name, column.type)
            if other != column.type:
                if "text" in {other, column.type}:
                    raise DesignError(f"{column.name} has texts in one design and numbers in another; rename one")
                types[column.name] = TYPES[1]  # whole and real numbers: all real
    return [DeclaredColumn(name, kind) for name, kind in types.items()]


def _as_type(value: Value, kind: str) -> Value:
    return float(value) if kind == "real" and isinstance(value, int) else value
