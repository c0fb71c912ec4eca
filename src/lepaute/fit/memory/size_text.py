"""Sizes as a person says them."""


def size_text(size_bytes: float) -> str:
    """Bytes in the unit that a person would take: 48 KiB, 1.2 MiB."""
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size_bytes >= factor:
            return f"{size_bytes / factor:.3g} {unit}"
    return f"{size_bytes:g} B"
