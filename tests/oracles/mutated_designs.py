"""Damaged design files: what a disk, an editor or an enemy makes of a good one."""

import random

from lepaute.measure.design import (
    collective_design,
    dgemm_design,
    fractional,
    full_factorial,
    hpl_step_design,
    latin_hypercube,
    log_uniform,
    mix,
    p2p_design,
    uniform,
)

#: Pieces that parsers trip over.
PIECES = (
    *(b",", b'"', b'""', b"\n", b"\r", b"\r\n", b"\0", b"#", b"#@", b"=", b":", b";", b"\\", b"'", b" ", b"\t"),
    *(b"-", b"+1", b"-0", b"00", b"1_0", b"1e999", b"nan", b"inf", b"-inf", b"1e-400", b"0x10", b"9" * 30, b"9" * 5000),
    *(
        b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"\xc2\x85", b"\xd9\xa1",
        b"\xf0\x9f\x98\x80",
    ),
    *(b"design_row", b"#@columns=a:int", b"#@columns=", b"#@seed=1\n", b":int", b":real", b":text", b":", b"block"),
    *(b"=cmd|' /C calc'!A0", b"{0.__class__}", b"%s%n", b"__import__('os')", b"9223372036854775808"),
)  # fmt: skip


def good_files() -> list[bytes]:
    """Small designs of every kind, as files."""
    odd = ["plain", "a,b", 'say "hi"', "", " edge ", "é∞", "#x", "1", "uniform:1:2"]
    designs = [
        dgemm_design(1, products=2, product_range=(1e3, 1e5)),
        hpl_step_design(1, rows=4),
        p2p_design(1, counts={"recv": 4, "wtime": 2}),
        full_factorial({"word": odd, "ratio": [0.1, 1e-300, -0.0]}, replications=2, blocks=2, seed=1),
        latin_hypercube({"size_bytes": log_uniform(1, 2**62), "x": uniform(-1.0, 1e9)}, count=8, seed=1),
        fractional({"a": [0, 1], "b": [0, 1], "c": ["on", "off"]}, generators=["c=a*b"], seed=1),
        collective_design(1, sizes_bytes=(1, 4), replications=1),
    ]
    designs.append(mix(designs[3], full_factorial({"n": [1, 2]}, blocks=2, seed=2), kinds=["a", "b"], seed=3))
    return [design.to_csv().encode() for design in designs]


def mutated(rng: random.Random, good: list[bytes]) -> bytes:
    """One file with one to four faults."""
    data = bytearray(rng.choice(good))
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        place = rng.randrange(len(data) + 1)
        match rng.randrange(9):
            case 0:
                data[place:place] = rng.choice(PIECES)
            case 1:
                data[place : place + rng.choice((1, 1, 2, 5, 50))] = rng.choice(PIECES)
            case 2:
                data[place : place + 1] = bytes([rng.randrange(256)])
            case 3:
                del data[place : place + rng.choice((1, 1, 3, 30, 300))]
            case 4:
                del data[place:]
            case 5:
                other = rng.choice(good)
                start = rng.randrange(len(other))
                data[place:place] = other[start : start + rng.randrange(200)]
            case _:
                data = bytearray(b"\n".join(_reordered(rng, bytes(data).split(b"\n"))))
    return bytes(data)


def _reordered(rng: random.Random, lines: list[bytes]) -> list[bytes]:
    one, two = rng.randrange(len(lines)), rng.randrange(len(lines))
    match rng.randrange(4):
        case 0:
            lines[one], lines[two] = lines[two], lines[one]
        case 1:
            lines.insert(one, lines[two])
        case 2:
            del lines[one]
        case _:
            cells = lines[one].split(b",")
            cells[rng.randrange(len(cells))] = rng.choice(PIECES)
            lines[one] = b",".join(cells)
    return lines or [b""]
