"""A diagnosis in a few words: whether the models are good, what is worst, what to do, and three figures.

Flags that say the same of several subjects are one finding that names them all.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lepaute.kit.text import counted, percent
from lepaute.measure.fit.diagnostics.flag import KINDS, Flag, Severity

if TYPE_CHECKING:
    from lepaute.measure.fit.diagnostics import Diagnosis

#: Checks of the machine that are of a change of its speed.
CHANGES = ("step", "drift", "perturbation", "sentinels")
#: Subjects that the answer names.
MAX_NAMED = 3

#: What the size of a flag is called beside its subject, where it is no share; "": the sentence says all.
_VALUES: Mapping[str, Callable[[Flag], str]] = {
    "spread": lambda flag: f"factor {1.0 + flag.size:.2g}",
    "autocorrelation": lambda flag: f"{flag.size:.2f}",
    "calls": lambda flag: counted(round(flag.statistic), "call"),
    "sizes": lambda _: "",
    "constant": lambda _: "",
    "dependence": lambda flag: f"factor {1.0 + flag.size:.2g}",
    "no model": lambda flag: counted(round(flag.statistic), "call"),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """Flags of one kind and severity, at least one, in the order of the diagnosis.

    sentence : what is wrong, of all of them;  remedy : what it means and what to do, "" if there is nothing to do
    """

    kind: str
    severity: Severity
    flags: tuple[Flag, ...]

    @property
    def sentence(self) -> str:
        """What is wrong; of several subjects without the numbers of each."""
        wrong = self.flags[0].wrong if len(self.flags) == 1 else KINDS[self.kind].several
        return wrong.removesuffix(".") + "."

    @property
    def subjects(self) -> str:
        """The first few of what it is of: kernel dgemv, message isend and 2 more."""
        return _named([flag.subject for flag in self.flags])

    @property
    def remedy(self) -> str:
        """Meaning and remedy in a sentence; "" if there is nothing to do."""
        remedy = KINDS[self.kind].remedy
        return remedy[:1].upper() + remedy[1:]

    def value_of(self, flag: Flag) -> str:
        """The size of one of several flags, as text; "" if it has none to tell."""
        tell = _VALUES.get(self.kind)
        return percent(flag.size) if tell is None else tell(flag)


def findings(diagnosis: "Diagnosis") -> tuple[Finding, ...]:
    """All flags, those that say the same together; in the order of the first of each."""
    groups: dict[tuple[str, Severity], list[Flag]] = {}
    for flag in diagnosis.flags:
        groups.setdefault((flag.kind, flag.severity), []).append(flag)
    return tuple(Finding(kind, severity, tuple(flags)) for (kind, severity), flags in groups.items())


@dataclass(frozen=True, slots=True)
class Figures:
    """The three figures that matter most, the third in two parts; NaN if there is nothing to tell them by.

    time_without_finding : share of the time of all kernels in kernels of which nothing was found
    mean_error           : |mean of measured / predicted - 1| of every class of size of every kernel, averaged with its
                           time as weight; interruptions cut. On the calls that the models were fitted to it is of the
                           shape alone; it contains the noise of the means, and is no less than that
    machine_change       : largest relative change of the machine's speed meanwhile that is a finding; 0 if none is
    possible_change      : largest one that is as large as a finding, and that may be chance; 0 if none is
    """

    time_without_finding: float
    mean_error: float
    machine_change: float
    possible_change: float

    @property
    def texts(self) -> list[tuple[str, str]]:
        """Each as a value and what it is of."""
        change, of = percent(self.machine_change), "is the largest change of the machine's speed during the measurement"
        if self.machine_change == 0:
            change, of = "no change", "of the machine's speed was found during the measurement"
            if self.possible_change:
                of = f"of the machine's speed is certain; one of {percent(self.possible_change)} may be chance"
        return [
            (percent(self.time_without_finding), "of the kernels' time is in kernels without any finding"),
            (percent(self.mean_error), "mean error of the kernel models, over all sizes, weighted by time"),
            (change, of),
        ]


def figures(diagnosis: "Diagnosis") -> Figures:
    kernels = [subject for subject in diagnosis.subjects if subject.calls.of.weighs_time and len(subject.calls.of)]
    shares = np.array([subject.share for subject in kernels])
    clean = np.array([not diagnosis.of(subject.name) for subject in kernels], dtype=np.float64)
    error = np.array([float(kernel.calls.time_share() @ np.abs(kernel.calls.mean - 1.0)) for kernel in kernels])
    total = float(shares.sum())
    checks = [
        check for machine in diagnosis.machines for check in machine.checks if check.able and check.kind in CHANGES
    ]
    changes = [flag.size for flag in diagnosis.flags if flag.kind in CHANGES and _of_machine(flag.subject)]
    possible = [check.size for check in checks if check.size >= check.limits.notable and check.size not in changes]
    return Figures(
        float(shares @ clean) / total if total else np.nan,
        float(shares @ error) / total if total else np.nan,
        max(changes, default=0.0) if checks else np.nan,
        max(possible, default=0.0) if checks else np.nan,
    )


def _of_machine(subject: str) -> bool:
    return subject == "machine" or subject.startswith("host ")


def answer(diagnosis: "Diagnosis") -> str:
    """Whether the models are good, in one sentence without a full stop."""
    subjects = list(dict.fromkeys(flag.subject for flag in diagnosis.serious))
    if not subjects:
        count = len(findings(diagnosis))
        if not count:
            return "This calibration is good: nothing was found that speaks against its models"
        things = "one thing is" if count == 1 else f"{count} things are"
        return f"This calibration is good: nothing is serious, and {things} worth knowing"
    if any(_of_machine(subject) for subject in subjects):
        return "This calibration is not good: the machine changed while it was measured"
    kernels = [subject.removeprefix("kernel ") for subject in subjects if subject.startswith("kernel ")]
    if not kernels:
        operations = [subject.removeprefix("message ") for subject in subjects]
        return f"This calibration is good for computing; of messages, {_named(operations)} {_have(operations)}"
    share = sum(one.share for one in diagnosis.subjects if one.name in subjects and one.calls.of.weighs_time)
    of_time = f", {percent(share)} of the kernels' time," if share else ""
    return f"This calibration is not good: {_named(kernels)}{of_time} {_have(kernels)}"


def _have(names: list[str]) -> str:
    return "has a serious finding" if len(names) == 1 else "have serious findings"


def _named(names: list[str]) -> str:
    """The first few: "a, b, c and 2 more"."""
    more = len(names) - MAX_NAMED
    if more > 0:
        return f"{', '.join(names[:MAX_NAMED])} and {more} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def summary(diagnosis: "Diagnosis") -> dict[str, Any]:
    """Answer, figures (null where unknown) and findings for programs."""
    return {
        "answer": answer(diagnosis),
        "figures": {name: value if np.isfinite(value) else None for name, value in asdict(figures(diagnosis)).items()},
        "findings": [
            {
                "severity": finding.severity,
                "kind": finding.kind,
                "subjects": [flag.subject for flag in finding.flags],
                "sentence": finding.sentence,
                "remedy": finding.remedy,
            }
            for finding in findings(diagnosis)
        ],
    }
