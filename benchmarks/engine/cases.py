"""The cases of the speed table, with what is wanted and aimed at."""

from dataclasses import dataclass

MB = 1e6


@dataclass(frozen=True, slots=True)
class Budget:
    """Limit and goal for the user time of a run on one core, and the limit of the engine's memory (None: none).

    runs : of the prediction; where there are several, the times are a run's share, start-up included
    """

    limit_s: float
    goal_s: float | None = None
    engine_limit_bytes: float | None = None
    runs: int = 1


@dataclass(frozen=True, slots=True)
class SpeedCase:
    """A prediction whose speed is measured; `budgets` by fidelity; `published` is what the emulation took."""

    name: str
    options: dict[str, str]
    budgets: dict[str, Budget]
    published: str


def hpl(platform: str, n: int, nb: int, grid: str, **more: str) -> dict[str, str]:
    """The options of a prediction: 2ring, depth 1 and binary exchange unless told otherwise; no parts of intervals."""
    usual = {"bcast": "2ring", "depth": "1", "swap": "binary-exchange", "runs": "1", "no-parts": ""}
    return {"platform": platform, "n": str(n), "nb": str(nb), "grid": grid} | usual | more


#: The words of `fidelity` for `lepaute predict`, by what the table calls it.
FIDELITIES = {"full": "full", "sampled": "sampled", "sampled, each of ten": "sampled"}

CASES = (
    SpeedCase(
        "Dahu, 1024 ranks, N = 500,000, NB = 128",
        hpl("dahu-2020-01", 500_000, 128, "32x32"),
        {
            "full": Budget(5.0, 3.0, 64 * MB),
            "sampled": Budget(0.6, 0.4),
            "sampled, each of ten": Budget(0.3, 0.1, runs=10),
        },
        "16,752 to 17,103 s, 9 GB",
    ),
    SpeedCase(
        "64 × 64 ranks, N = 4,000,000, NB = 1024",
        hpl("stampede-like", 4_000_000, 1024, "64x64"),
        {"full": Budget(45.0, 30.0), "sampled": Budget(3.0, 2.0)},
        "47 h, 16 GB",
    ),
    SpeedCase(
        "77 × 78 ranks, N = 3,875,000, NB = 1024",
        hpl("stampede-like", 3_875_000, 1024, "77x78"),
        {"full": Budget(50.0, 35.0, 128 * MB), "sampled": Budget(4.0, 2.0)},
        "not done",
    ),
    SpeedCase(
        "exascale-like, 256 × 294 ranks, N = 24,000,000, NB = 1024",
        hpl("exascale-like", 24_000_000, 1024, "256x294"),
        {"sampled": Budget(120.0, 60.0, 4e9)},
        "out of reach",
    ),
    SpeedCase(
        "77 × 78, long-modified, depth 0, spread-roll",
        hpl("stampede-like", 3_875_000, 1024, "77x78", bcast="long-modified", depth="0", swap="spread-roll"),
        {"full": Budget(400.0, 100.0), "sampled": Budget(20.0, 5.0)},
        "not done",
    ),
)
QUICK = (
    SpeedCase(
        "quick trial: Dahu, 64 ranks, N = 20,000",
        hpl("dahu-2020-01", 20_000, 128, "8x8"),
        {"full": Budget(6.0, 4.0, 64 * MB), "sampled, each of ten": Budget(0.4, 0.25, runs=10)},
        "10 s, 600 MB (SMPI here)",
    ),
)
#: Exact sharing may take so many times the limit.
EXACT_FACTOR = 3.0
EXACT = {"set": "network.sharing=exact"}

#: The other swaps against binary exchange, user time without start-up.
SWAPS = ("binary-exchange", "spread-roll", "mix")
SWAP_FACTOR, SWAP_GOAL = 2.0, 1.3
SWAP_SIZES = {"Dahu, 1024 ranks, N = 100,000": ("dahu-2020-01", 100_000, 128, "32x32")}
QUICK_SWAP_SIZES = {"quick trial, 64 ranks, N = 20,000": ("dahu-2020-01", 20_000, 128, "8x8")}


@dataclass(frozen=True, slots=True)
class Square:
    """side x side ranks of one machine, large enough for all of them, and that many steps.

    With NB = side the share of pivot exchanges in the messages is the same at every size.
    """

    side: int
    steps: int

    @property
    def ranks(self) -> int:
        return self.side * self.side

    @property
    def options(self) -> dict[str, str]:
        grid = f"{self.side}x{self.side}"
        one = hpl("exascale-like", self.side * self.steps, self.side, grid, set="nodes.count=12500")
        return one | {"fidelity": "full"}


def _square(side: int) -> Square:
    """As many steps as make some seconds of it, and enough for half of the process columns to swap."""
    return Square(side, max(side // 2, 640_000 // (side * side)))


AGAINST_RANKS = tuple(_square(side) for side in (8, 16, 32, 64, 128, 256, 316))
AGAINST_STEPS = tuple(Square(32, steps) for steps in (100, 200, 400, 800, 1600, 3200, 6400))
QUICK_AGAINST_RANKS = tuple(Square(side, 64_000 // (side * side)) for side in (8, 16, 32))
QUICK_AGAINST_STEPS = tuple(Square(8, steps) for steps in (1000, 2000, 4000))
#: No event costs so many times what it costs on 1024 ranks (or with the middle number of steps).
FLAT_FACTOR = 1.5
EXPONENT_LIMIT = 1.1  # of user time on events

SIXTEEN_RATIO_LIMIT = 8.5
SAMPLED_ERROR_LIMIT_PERCENT = 0.5
SAMPLED_SIZES, QUICK_SAMPLED_SIZES = (100_000, 250_000, 500_000), (20_000,)
