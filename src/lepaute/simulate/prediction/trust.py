"""How far a prediction may be trusted: one statement, which all commands show and decide by.

It rests on how much of the simulated time comes from models used outside of the ranges in which they were fitted, and
on how uncertain the predicted time is for that. The latter is simulated: runs that draw the errors of extrapolation
and nothing else, against the same runs without them. Shares of the time do not tell it. Waiting dilutes a share of the
time of all ranks, and a panel in which one column of ranks is extrapolated while all others wait for it may be a
hundredth of the computing and a third of the time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum, sqrt
from typing import Any

from lepaute.kit.text import percent, significant
from lepaute.simulate.application import Application
from lepaute.simulate.conditions import Conditions, Layers, layers_of
from lepaute.simulate.engine import MESSAGES, Engine, KernelUse, MessageUse, Simulator
from lepaute.simulate.platform.plausibility import assumed_values
from lepaute.simulate.platform.schema import Platform
from lepaute.stats.decision import Decision, Weakness
from lepaute.stats.student import NORMAL_975

#: Share of computing, or of moving messages; what has less is left out of the text.
MIN_SHARE = 0.0005
#: Least standard deviation of the time by extrapolation that is told.
MIN_TOLD = 0.002


@dataclass(frozen=True, slots=True)
class Part:
    """One kernel, or one class of messages, outside its ranges.

    share        : of the computing time of all ranks, or of their time in moving messages; share_of_own: of the time of
                   this kernel, or of these messages
    met_and_fitted : in words: "k = 64..64, fitted in 128..2048"
    """

    name: str
    share: float
    share_of_own: float
    met_and_fitted: str


@dataclass(frozen=True, slots=True)
class OutsideRanges:
    """Shares of what one run computes, and of its time in moving messages (overheads, transfer, contention).

    Waiting for others is neither.

    kernels, messages : those with any time outside, largest first; messages None if the engine does not tell
                        them, or the platform not the sizes
    unknown_share     : of kernels whose model does not say in which ranges it was fitted, of computing
    moving_of_work    : what moving messages has of computing and moving messages
    The time of messages is estimated: the part that these sizes have of the time of all messages, each as if alone.
    """

    kernels: tuple[Part, ...]
    messages: tuple[Part, ...] | None
    unknown_share: float
    moving_of_work: float = 0.0

    @property
    def share(self) -> float:
        """Share of the computing time in kernels outside their fitted ranges."""
        return fsum(part.share for part in self.kernels)

    @property
    def messages_share(self) -> float:
        """Share of the time of moving messages in those outside the fitted sizes."""
        return fsum(part.share for part in self.messages or ())

    @property
    def messages_of_work(self) -> float:
        """Share of the time of computing and moving messages in messages outside the fitted sizes."""
        return self.messages_share * self.moving_of_work

    def to_dict(self) -> dict[str, Any]:
        def of(parts: tuple[Part, ...]) -> dict[str, Any]:
            return {
                part.name: {"share": part.share, "share_of_own": part.share_of_own, "sizes": part.met_and_fitted}
                for part in parts
            }

        return {
            "share": self.share,
            "messages_share": self.messages_share,
            "kernels": of(self.kernels),
            "messages": None if self.messages is None else of(self.messages),
            "unknown_share": self.unknown_share,
        }

    def text(self) -> str:
        """In words, for a person: one sentence."""
        said = [
            f"{significant(100.0 * share, 2)} % of {what} ({_named(parts)})"
            for share, what, parts in (
                (self.share, "computing", self.kernels),
                (self.messages_share, "moving messages", self.messages or ()),
            )
            if share >= MIN_SHARE
        ]
        if not said and self.unknown_share > 1.0 - MIN_SHARE:
            return self.unknown_text
        text = f"{' and '.join(said) or 'no computing'} was outside the fitted ranges"
        if self.unknown_share >= MIN_SHARE:
            text += f"; {'another ' * (self.share >= MIN_SHARE)}{self.unknown_text}"
        return text

    @property
    def unknown_text(self) -> str:
        """Of computing whose kernels have no fitted ranges, in words."""
        if self.unknown_share > 1.0 - MIN_SHARE:
            return "not known: the platform does not say which sizes its kernel models were fitted to"
        return f"{significant(100.0 * self.unknown_share, 2)} % of computing has no fitted ranges in the platform"


def outside_ranges(
    kernels: "Mapping[str, KernelUse]",
    platform: Platform,
    computing_s: float,
    *,
    messages: "Sequence[MessageUse] | None" = None,
    messages_s: float | None = None,
    moving_s: float = 0.0,
) -> OutsideRanges:
    """Use of kernels and messages outside the fitted ranges in one run.

    kernels     : use of each kernel, over all ranks; computing_s: in all kernels, over all ranks
    messages_s  : time of the messages of all classes, each as if alone; None: those of `messages` are all
    """
    whole_s = max(computing_s, fsum(use.time_s for use in kernels.values()), 1e-300)
    parts = [
        Part(name, use.extrapolated_time_s / whole_s, use.extrapolated_time_s / use.time_s, use.outside(name, platform))
        for name, use in kernels.items()
        if use.extrapolated_time_s > 0.0
    ]
    without = {model.kernel for model in platform.kernels if any(piece.range is None for piece in model.pieces)}
    unknown_s = fsum(use.time_s for name, use in kernels.items() if name in without)
    sent: tuple[Part, ...] | None = None
    if messages is not None and any(platform.network.fitted_sizes.values()):
        alone_s = max(fsum(use.time_s for use in messages) if messages_s is None else messages_s, 1e-300)
        sent = _largest_first(
            Part(use.link, use.outside_time_s / alone_s, use.outside_time_s / use.time_s, _sizes(use))
            for use in messages
            if use.outside_time_s > 0.0
        )
    return OutsideRanges(_largest_first(parts), sent, unknown_s / whole_s, moving_s / (moving_s + whole_s))


def _named(parts: Sequence[Part]) -> str:
    """The largest four."""
    shown = [part for part in parts if part.share >= MIN_SHARE][:4]
    return ", ".join(f"{MESSAGES.get(part.name, part.name)} {significant(100.0 * part.share, 2)} %" for part in shown)


def _largest_first(parts: Any) -> tuple[Part, ...]:
    return tuple(sorted(parts, key=lambda part: (-part.share, part.name)))


def _sizes(use: "MessageUse") -> str:
    met = f"{use.outside_from_bytes or 0:.0f} to {use.outside_to_bytes or 0:.0f} bytes"
    return f"{met}, fitted in {use.fitted_bytes[0]} to {use.fitted_bytes[1]}"


#: What is compared with others has a time that extrapolation makes uncertain by no larger a standard deviation.
MAX_UNCERTAIN = 0.05
#: Where that was not simulated (of an emulated program), no larger share of its computing is outside: more
#: can make the time as uncertain, as block sizes of half those that were fitted do. It is said beside what is compared.
MAX_COMPUTING = 0.1
#: Limit for a point of a search that nobody has looked at: it is, before it may be named.
MAX_UNSEEN = 0.5
#: Messages of sizes outside take no larger share of computing and moving messages.
MAX_MESSAGES = 0.2
#: Seeds of the draws. They are the same for all predictions and commands, so that equal predictions are judged alike.
SEEDS = (1, 2, 3, 4)
#: Of computing. A smaller share outside is not looked into: on the longest path it is a hundred times as much at most.
MIN_OUTSIDE = 1e-4
#: Layers that are on in the two runs of each seed.
DRAWN: Mapping[str, tuple[str, ...]] = {"extrapolated": ("extrapolation",), "as fitted": ()}


@dataclass(frozen=True, slots=True)
class Trust:
    """Known validity of a prediction.

    computing : share of the time of all kernels that is outside of the ranges of their models
    messages  : share that messages of sizes outside have of computing and moving messages
    time_relative_sd : that of the predicted time by errors of extrapolated kernels; None: not simulated
    seen : whether it was looked at; not a point of a search that is no candidate yet
    """

    computing: float
    messages: float = 0.0
    time_relative_sd: float | None = None
    seen: bool = True

    @property
    def decision(self) -> Decision:
        """Whether the prediction may be called better or worse than another one."""
        sd, extrapolated = self.time_relative_sd, f"{percent(self.computing)} of its computing is extrapolated"
        sent = f"messages of sizes outside take {percent(self.messages)} of its computing and communication"
        uncertain = f"extrapolation alone makes its time uncertain by ± {percent(NORMAL_975 * (sd or 0.0))}"
        most = MAX_COMPUTING if self.seen else MAX_UNSEEN
        lacks = (
            (sd is None and self.computing > most, Weakness("outside", extrapolated)),
            (sd is not None and sd > MAX_UNCERTAIN, Weakness("outside", uncertain)),
            (self.messages > MAX_MESSAGES, Weakness("outside", sent)),
            (self.computing > MAX_COMPUTING, Weakness("partly outside", extrapolated)),
        )
        return Decision.of(True, False, [weakness for applies, weakness in lacks if applies])

    @property
    def comparable(self) -> bool:
        return self.decision.is_shown

    @property
    def words(self) -> str:
        """Text for a column: no; yes; or what extrapolation leaves open: yes, ± 4.2 % by extrapolation."""
        if not self.comparable:
            return "no"
        return f"yes, {self.shortly}" if self.shortly else "yes"

    @property
    def shortly(self) -> str:
        """What extrapolation leaves open, for a cell of a table: ± 4.2 % by extrapolation."""
        sd = self.time_relative_sd or 0.0
        return f"± {percent(NORMAL_975 * sd)} by extrapolation" if sd >= MIN_TOLD else "; ".join(self.decision.reasons)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it is not comparable, in words; none where it is."""
        return () if self.comparable else self.decision.reasons

    @property
    def warnings(self) -> tuple[str, ...]:
        """The caveat that goes with the prediction; none where it is comparable."""
        return (f"not comparable with other predictions: {'; '.join(self.reasons)}",) if self.reasons else ()

    def to_dict(self) -> dict[str, Any]:
        return {
            "comparable": self.comparable,
            "extrapolated_share": self.computing,
            "messages_share": self.messages,
            "extrapolation_relative_sd": self.time_relative_sd,
            "reasons": list(self.reasons),
        }


def weaknesses_of(application: Application, platform: Platform) -> tuple[Weakness, ...]:
    """Inputs of a prediction measured elsewhere, or standing for something else; its caveats say it, too."""
    copied = (Weakness("copied", text) for text in assumed_values(platform))
    return (*copied, *(Weakness("approximated", text) for text in application.on(platform).approximated))


def trust_of(outside: "OutsideRanges | None", time_relative_sd: float | None) -> Trust:
    if outside is None:
        return Trust(0.0)
    if outside.share < MIN_OUTSIDE:
        time_relative_sd = 0.0
    return Trust(outside.share, outside.messages_of_work, time_relative_sd)


def cost_in_runs(application: Application, platform: Platform) -> float:
    """Upper bound of the draws' cost, in runs of the application in full."""
    if "extrapolation" not in layers_of(platform, application):
        return 0.0
    return len(DRAWN) * len(SEEDS) * application.on().simulated_share("sampled")


def simulator_of(
    layers: Layers, application: Application, engine: Engine, conditions: Conditions, repeat: int
) -> Simulator:
    """Simulator of runs that draw these layers alone; sampled where that is possible."""
    fidelity = "sampled" if engine.samples and "sampled" in application.about.fidelities else conditions.fidelity
    simulator = engine.on(replace(conditions, layers=layers, fidelity=fidelity, trace=None, repeat=repeat))
    simulator.prepare(application)
    return simulator


def simulator_of_draws(name: str, application: Application, engine: Engine, conditions: Conditions) -> Simulator:
    return simulator_of(Layers.only(*DRAWN[name]), application, engine, conditions, 0)


def relative_sd(extrapolated_s: Sequence[float], as_fitted_s: Sequence[float]) -> float:
    """Standard deviation of the logarithm of the time, from runs of equal seeds with and without the errors."""
    from lepaute import _core

    pairs = list(zip(extrapolated_s, as_fitted_s, strict=True))
    squares = [_core.natural_log(one / other) ** 2 for one, other in pairs if min(one, other) > 0.0]
    return sqrt(fsum(squares) / len(squares)) if squares else 0.0
