"""The cases of the speed table, with their limits and goals."""

from dataclasses import dataclass

MB = 1e6


@dataclass(frozen=True, slots=True)
class Budget:
    """Limit and goal for the user time of one run on one core, and the limit of the engine's memory (None: none)."""

    limit_s: float
    goal_s: float | None = None
    engine_limit_bytes: float | None = None


@dataclass(frozen=True, slots=True)
class SpeedCase:
    """A prediction whose speed is measured; `budgets` by fidelity; `published` is what the emulation took."""

    name: str
    options: dict[str, str]
    budgets: dict[str, Budget]
    published: str


def hpl(platform: str, n: int, nb: int, grid: str, **more: str) -> dict[str, str]:
    """The options of a prediction: 2ring, depth 1 and binary exchange unless told otherwise."""
    usual = {"bcast": "2ring", "depth": "1", "swap": "binary-exchange"}
    return {"platform": platform, "n": str(n), "nb": str(nb), "grid": grid, "runs": "1"} | usual | more


CASES = (
    SpeedCase(
        "Dahu, 1024 ranks, N = 500,000, NB = 128",
        hpl("dahu-2020-01", 500_000, 128, "32x32"),
        {"full": Budget(6.0, 4.0, 64 * MB), "sampled": Budget(0.4, 0.25)},
        "16,752 to 17,103 s, 9 GB",
    ),
    SpeedCase(
        "64 × 64 ranks, N = 4,000,000, NB = 1024",
        hpl("stampede-like", 4_000_000, 1024, "64x64"),
        {"full": Budget(40.0, 25.0), "sampled": Budget(4.0, 2.5)},
        "47 h, 16 GB",
    ),
    SpeedCase(
        "77 × 78 ranks, N = 3,875,000, NB = 1024",
        hpl("stampede-like", 3_875_000, 1024, "77x78"),
        {"full": Budget(45.0, 30.0, 128 * MB), "sampled": Budget(2.5, 1.5)},
        "not done",
    ),
    SpeedCase(
        "the same, long-modified, depth 0, spread-roll",
        hpl("stampede-like", 3_875_000, 1024, "77x78", bcast="long-modified", depth="0", swap="spread-roll"),
        {"full": Budget(400.0, 100.0), "sampled": Budget(20.0, 5.0)},
        "not done",
    ),
    SpeedCase(
        "75,264 ranks as 224 × 336, N = 24,000,000, NB = 512",
        hpl("exascale-like", 24_000_000, 512, "224x336"),
        {"sampled": Budget(120.0, None, 4e9)},
        "out of reach",
    ),
)
QUICK = (
    SpeedCase(
        "quick trial: Dahu, 64 ranks, N = 20,000",
        hpl("dahu-2020-01", 20_000, 128, "8x8"),
        {"full": Budget(6.0, 4.0, 64 * MB), "sampled": Budget(0.4, 0.25)},
        "10 s, 600 MB (SMPI here)",
    ),
)
#: Exact sharing may take so many times the limit.
EXACT_FACTOR = 3.0
EXACT = {"set": "network.sharing=exact"}

#: (ranks as a grid, steps) of the scaling law, all on one machine.
SCALING = tuple((side, steps) for side in (16, 32, 64) for steps in (200, 400, 800))
QUICK_SCALING = tuple((side, steps) for side in (4, 8, 16) for steps in (20, 40, 80))
EXPONENT_LIMIT = 1.1

SIXTEEN_RATIO_LIMIT = 8.5
SAMPLED_ERROR_LIMIT_PERCENT = 0.5
SAMPLED_SIZES, QUICK_SAMPLED_SIZES = (100_000, 250_000, 500_000), (20_000,)
