"""The `#@key=value` lines with which every design begins."""

from lepaute.version import __version__


def header_of(kind: str, seed: int, **arguments: object) -> dict[str, str]:
    """Generator, version and seed, then the generator's arguments as they were given."""
    header = {"generator": f"lepaute design {kind}", "version": __version__, "seed": str(seed)}
    for key, value in arguments.items():
        header[key] = " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return header
