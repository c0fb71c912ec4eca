"""A memory hierarchy as text: a line a plateau, a line an end of one, and the notes."""

from lepaute.fit.memory.hierarchy import Level, MemoryHierarchy
from lepaute.kit.text import size_text


def hierarchy_text(hierarchy: MemoryHierarchy) -> str:
    """The hierarchy as text: a line a plateau, a line a cache, and the notes."""
    lines = [f"memory hierarchy of {hierarchy.node}" if hierarchy.node else "memory hierarchy"]
    for number, plateau in enumerate(hierarchy.plateaus):
        best = max(plateau.bandwidths, key=lambda bandwidth: bandwidth.median)
        lines.append(
            f"  {size_text(plateau.first_bytes)} to {size_text(plateau.last_bytes)}: {best.median * 1e-9:.3g} GB/s "
            f"({best.low * 1e-9:.3g} to {best.high * 1e-9:.3g}; {best.curve})"
        )
        if number < len(hierarchy.levels):
            lines.append(f"    {level_text(hierarchy.levels[number])}")
    return "\n".join([*lines, *(f"  note: {note}" for note in hierarchy.notes)])


def level_text(level: Level) -> str:
    """One end of a plateau in a line: where it is, and what hwloc says of a cache there."""
    text = f"falls between {size_text(level.low_bytes)} and {size_text(level.high_bytes)}"
    text += " (no plateau follows)" if level.open else f" ({-100 * level.drop:+.0f} %)"
    if level.agrees is None:
        return text
    if level.known is None:
        return f"{text}; hwloc reports no cache of this size (a TLB may have this reach)"
    return f"{text}; hwloc reports L{level.known.level} of {size_text(level.known.size_bytes)}: agrees"
