"""The options with which the steps of HPL are made: a fraction of all combinations that calls every kernel."""

from dataclasses import dataclass, fields

import numpy as np

from lepaute.design.sizes import in_turn

_TRANSPOSED, _NOT = "transposed", "no-transposed"
#: Of U and the swap: the three that call other kernels than the defaults do.
_FORMS = ((_NOT, "binary-exchange"), (_NOT, "spread-roll"), (_TRANSPOSED, "spread-roll"))
#: Of PFACT and NBMIN. dger is called where PFACT is right and a leaf has three columns or more.
_LEAVES = (("right", 8), ("left", 4), ("crout", 1), ("right", 4), ("left", 2), ("crout", 8))
#: With so many runs, every kernel that HPL calls under any option is called.
FEWEST_RUNS = len(_FORMS)


@dataclass(frozen=True, slots=True)
class StepOptions:
    """Options of HPL that change which kernels a step calls, and on which sizes; the defaults are those of `Hpl`."""

    nbmin: int = 2
    ndiv: int = 2
    pfact: str = "crout"
    rfact: str = "right"
    l1: str = _TRANSPOSED
    u: str = _TRANSPOSED
    swap: str = "binary-exchange"
    equil: int = 1

    def words(self) -> tuple[str, ...]:
        """As arguments of the step probe."""
        return tuple(word for field in fields(self) for word in (f"--{field.name}", str(getattr(self, field.name))))


def drawn_step_options(rng: np.random.Generator, runs: int) -> list[StepOptions]:
    """Options for so many runs, balanced: each level of each factor comes as often as the others, or once more.

    Of FEWEST_RUNS or more, the runs together with some of the default options call every kernel of HPL.
    """
    leaves = _LEAVES[: len(_FORMS)] if runs < len(_LEAVES) else _LEAVES
    columns = (
        in_turn(rng, _FORMS, runs),
        in_turn(rng, leaves, runs),
        in_turn(rng, ("left", "crout", "right"), runs),
        in_turn(rng, (_NOT, _TRANSPOSED), runs),
        in_turn(rng, (2, 3), runs),
        in_turn(rng, (0, 1), runs),
    )
    return [
        StepOptions(nbmin=nbmin, ndiv=ndiv, pfact=pfact, rfact=rfact, l1=l1, u=u, swap=swap, equil=equil)
        for (u, swap), (pfact, nbmin), rfact, l1, ndiv, equil in zip(*columns, strict=True)
    ]
