"""HPL.dat, the input file of HPL: every combination of parameters of one command, read and written.

HPL reads its file by position: line by line, on each line the values first, then free text. The same file, longer, is
HPCC's hpccinf.txt; what follows line 31 is not HPL's. Where HPL silently takes something else than what stands there
(a code that does not exist, a number with a point, values that it counts off wrongly), reading fails and says so.
"""

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from lepaute.errors import InputError
from lepaute.simulate.hpl import BROADCASTS, FACTORISATIONS, FORMS, ORDERS, SWAPS, Hpl
from lepaute.simulate.hpl_dat_lines import DatLines

TO_STDOUT = 6  # HPL's device numbers: 6 standard output, 7 standard error, anything else its file
MOST_COMBINATIONS = 100_000  # each has at least one simulated run


@dataclass(frozen=True, slots=True)
class HplDat:
    """What an HPL.dat says: a list of values for most parameters, one value for the others.

    Words as in Hpl; grids are pairs (P, Q), swap_threshold in columns, align in doubles. `threshold` is that of the
    residual check, not positive for no check. `output_file` and `device` say where HPL writes its report.
    """

    ns: tuple[int, ...]
    nbs: tuple[int, ...]
    grids: tuple[tuple[int, int], ...]
    pmap: str
    pfacts: tuple[str, ...]
    nbmins: tuple[int, ...]
    ndivs: tuple[int, ...]
    rfacts: tuple[str, ...]
    bcasts: tuple[str, ...]
    depths: tuple[int, ...]
    swap: str
    swap_threshold: int
    l1: str
    u: str
    equil: bool
    align: int
    threshold: float = 16.0
    output_file: str = "HPL.out"
    device: int = TO_STDOUT

    @classmethod
    def of(cls, hpl: Hpl, *, threshold: float = 16.0, device: int = TO_STDOUT) -> Self:
        """The file of exactly one run."""
        return cls(
            ns=(hpl.n,),
            nbs=(hpl.nb,),
            grids=((hpl.p, hpl.q),),
            pmap=hpl.pmap,
            pfacts=(hpl.pfact,),
            nbmins=(hpl.nbmin,),
            ndivs=(hpl.ndiv,),
            rfacts=(hpl.rfact,),
            bcasts=(hpl.bcast,),
            depths=(hpl.depth,),
            swap=hpl.swap,
            swap_threshold=hpl.nb if hpl.swap_threshold is None else hpl.swap_threshold,
            l1=hpl.l1,
            u=hpl.u,
            equil=hpl.equil,
            align=hpl.align,
            threshold=threshold,
            device=device,
        )

    def combinations(self, threads_per_rank: int = 1) -> list[Hpl]:
        """All runs, in the order in which HPL makes them: the process grid varies slowest, NDIV fastest.

        Raises InputError where there are more than a hundred thousand.
        """
        lists: tuple[tuple[Any, ...], ...] = (
            *(self.grids, self.ns, self.nbs, self.depths, self.bcasts),
            *(self.rfacts, self.pfacts, self.nbmins, self.ndivs),
        )
        size = math.prod(map(len, lists))
        if size > MOST_COMBINATIONS:
            raise InputError(f"HPL.dat asks for {size} combinations; shorten its lists to at most {MOST_COMBINATIONS}")
        return [
            Hpl(
                n=n,
                nb=nb,
                p=p,
                q=q,
                depth=depth,
                bcast=bcast,
                swap=self.swap,
                swap_threshold=self.swap_threshold,
                pfact=pfact,
                rfact=rfact,
                nbmin=nbmin,
                ndiv=ndiv,
                pmap=self.pmap,
                l1=self.l1,
                u=self.u,
                equil=self.equil,
                align=self.align,
                threads_per_rank=threads_per_rank,
            )
            for (p, q), n, nb, depth, bcast, rfact, pfact, nbmin, ndiv in itertools.product(*lists)
        ]

    def text(self) -> str:
        """The file, as HPL reads it: two titles, output file, device, then a count and a list for each parameter."""
        lines = [
            ("HPL input file", ""),
            ("written by Lepaute", ""),
            (self.output_file, "output file"),
            (str(self.device), "device out (6 = stdout, 7 = stderr, else the file)"),
            *listed("problem sizes", "N", self.ns),
            *listed("block sizes", "NB", self.nbs),
            (code(self.pmap, ORDERS), "PMAP (0 = row-major, 1 = column-major)"),
            *listed("process grids", "P", [p for p, _ in self.grids]),
            (values(q for _, q in self.grids), "Q"),
            (str(self.threshold), "threshold (not positive: no residual check)"),
            *listed(
                "panel factorisations", "PFACT (0 = left, 1 = Crout, 2 = right)", codes(self.pfacts, FACTORISATIONS)
            ),
            *listed("recursive stopping criteria", "NBMIN", self.nbmins),
            *listed("panels in recursion", "NDIV", self.ndivs),
            *listed(
                "recursive factorisations", "RFACT (0 = left, 1 = Crout, 2 = right)", codes(self.rfacts, FACTORISATIONS)
            ),
            *listed(
                "broadcasts",
                "BCAST (0 = 1rg, 1 = 1rM, 2 = 2rg, 3 = 2rM, 4 = Lng, 5 = LnM)",
                codes(self.bcasts, BROADCASTS),
            ),
            *listed("look-ahead depths", "DEPTH", self.depths),
            (code(self.swap, SWAPS), "SWAP (0 = binary exchange, 1 = long, 2 = mix)"),
            (str(self.swap_threshold), "swapping threshold"),
            (code(self.l1, FORMS), "L1 (0 = transposed, 1 = no-transposed)"),
            (code(self.u, FORMS), "U (0 = transposed, 1 = no-transposed)"),
            (str(int(self.equil)), "equilibration (0 = no, 1 = yes)"),
            (str(self.align), "memory alignment in doubles"),
        ]
        return "".join(f"{value:<12} {meaning}".rstrip() + "\n" for value, meaning in lines)


def read_hpl_dat(path: Path) -> HplDat:
    """The HPL.dat at `path`; raises InputError with its name and the line for what HPL would not or not so read."""
    return parse_hpl_dat(path.read_bytes().decode("utf-8", errors="replace"), path.name)


def parse_hpl_dat(text: str, name: str = "HPL.dat") -> HplDat:
    """What `text` says; `name` stands in the messages of the InputError that is raised for what it cannot say."""
    lines = DatLines(text, name)
    lines.skip(2)
    output_file = lines.word("output file name", default="HPL.out")
    device = lines.integer("device out")
    ns = lines.integers("N", least=1)
    nbs = lines.integers("NB", least=1)
    pmap = lines.choice("PMAP", ORDERS)
    n_grids = lines.count("process grids")
    ps = lines.integer_list("P", n_grids, least=1)
    qs = lines.integer_list("Q", n_grids, least=1)
    return HplDat(
        output_file=output_file,
        device=device,
        ns=ns,
        nbs=nbs,
        pmap=pmap,
        grids=tuple(zip(ps, qs, strict=True)),
        threshold=lines.number("threshold"),
        pfacts=lines.choices("PFACT", FACTORISATIONS),
        nbmins=lines.integers("NBMIN", least=1),
        ndivs=lines.integers("NDIV", least=2),
        rfacts=lines.choices("RFACT", FACTORISATIONS),
        bcasts=lines.choices("BCAST", BROADCASTS),
        depths=lines.integers("DEPTH", least=0),
        swap=lines.choice("SWAP", SWAPS),
        swap_threshold=lines.integer("swapping threshold", least=0),
        l1=lines.choice("L1", FORMS),
        u=lines.choice("U", FORMS),
        equil=lines.choice("equilibration", ("no", "yes")) == "yes",
        align=lines.integer("memory alignment", least=1),
    )


def listed(what: str, name: str, items: Sequence[int]) -> list[tuple[str, str]]:
    """The two lines of a parameter with several values."""
    return [(str(len(items)), f"number of {what}"), (values(items), name)]


def values(items: Iterable[int]) -> str:
    """Values on a line: one blank between them, or HPL counts them off wrongly."""
    return " ".join(map(str, items))


def code(word: str, words: tuple[str, ...]) -> str:
    """HPL's number of a choice: its place among the words."""
    return str(words.index(word))


def codes(chosen: tuple[str, ...], words: tuple[str, ...]) -> list[int]:
    """HPL's numbers of several choices."""
    return [words.index(word) for word in chosen]
