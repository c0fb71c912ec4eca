"""An application of a few recordings: what a program does on any number of ranks, learnt from runs on few.

reading    calls of recordings, and computing between them
folding    sequences of calls as nested loops
structure  one structure for all ranks of all recordings
grammar    the expressions that rules are made of
rules      the first rule that holds at every observation
learning   rules for all places of a structure
costs      models of computing
writing    the Python file
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from keyword import iskeyword
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy

from lepaute.errors import InputError
from lepaute.kit.files import write_atomic
from lepaute.kit.numbers import path_of, plain
from lepaute.kit.text import counted, percent, ranks_text
from lepaute.simulate.apps.own import Application, checking
from lepaute.simulate.apps.own.loading import loaded
from lepaute.simulate.apps.own.values import MOST
from lepaute.simulate.learn.costs import CostModel, learn_costs
from lepaute.simulate.learn.learning import Learnt, Step, learn_rules
from lepaute.simulate.learn.reading import BETWEEN_TWO, read_all
from lepaute.simulate.learn.structure import structure_of
from lepaute.simulate.learn.writing import program_text
from lepaute.simulate.platform import load_platform

#: What no rule explains has at most so much of the time, and of the bytes.
MAX_UNEXPLAINED = 0.05
#: Names that a learnt class has for other things, beside those of Application.
_RESERVED = frozenset(("lp", "rank", "ranks", "size"))
#: Recordings with more calls are not compared with the file call by call.
MAX_VERIFIED = 1_000_000


@dataclass(frozen=True)
class Unexplained:
    """A property of a place that no rule has: its shares of the time and of the bytes of the largest recording."""

    step: Step
    what: str
    time_share: float
    bytes_share: float

    @property
    def text(self) -> str:
        values = numpy.unique(self.step.unexplained[self.what])
        span = f"{values.min():.0f} to {values.max():.0f}" if self.what != "where" and len(values) else "some ranks"
        what = "condition" if self.what == "where" else self.what
        return (
            f"{what} of {named(self.step)} ({span}): {percent(self.time_share)} of the time, "
            f"{percent(self.bytes_share)} of the bytes"
        )


@dataclass(frozen=True)
class Findings:
    """What recordings tell of a program.

    costs : by id of the step before which is computed;  uncounted : share of computing in no model
    """

    learnt: Learnt
    costs: Mapping[int, CostModel]
    uncounted: float
    recorded_on: str = ""

    @cached_property
    def unexplained(self) -> list[Unexplained]:
        """What follows no rule, the largest share of time first."""
        structure = self.learnt.structure
        last = structure.recording == len(structure.recordings) - 1
        time_s = structure.values["before_s"] + structure.values["duration_s"]
        sent = numpy.where(structure.values["number"] >= 0, structure.values["size"], 0.0)
        rows = []
        for step, what in self.learnt.unexplained:
            events = numpy.concatenate([call.events for call in step.place.calls()])
            events = events[last[events]]
            shares = [float(amount[events].sum() / max(amount[last].sum(), 1e-300)) for amount in (time_s, sent)]
            rows.append(Unexplained(step, what, *shares))
        return sorted(rows, key=lambda row: -row.time_share)

    @property
    def refusal(self) -> str:
        """Why it cannot be extrapolated, and which recording would help; empty where it can."""
        learnt = self.learnt
        if learnt.unknown_groups:
            where = f"the ranks of communicator {learnt.unknown_groups[0]}"
            return f"{where} follow no rule (rows, columns, planes, blocks); {self._help()}"
        large = [row for row in self.unexplained if max(row.time_share, row.bytes_share) > MAX_UNEXPLAINED]
        if not large:
            return ""
        more = len({id(row.step) for row in self.unexplained}) - 1
        others = f" (and {counted(more, 'more place')})" if more else ""
        return f"no rule holds in every recording for the {large[0].text}{others}; {self._help()}"

    def _help(self) -> str:
        """What would help: other recordings, or a replay where values depend on data or time."""
        structure = self.learnt.structure
        known = sorted({int(ranks) for ranks in structure.ranks})
        replay = "a replay takes calls as they are: lepaute predict trace"
        if any(self._varies(row) for row in self.unexplained):
            return f"on a rank it differs from call to call, by data, time, or a pattern that no rule has; {replay}"
        if not all(calls.sites for calls in structure.recordings):
            return f"a recording has no call sites: one made by this version of lepaute record would help; {replay}"
        if len(known) == 1:
            return f"recordings on other numbers of ranks than {known[0]} would help, such as {known[0] // 2 or 4}"
        if not any(calls.parameters for calls in structure.recordings):
            return (
                f"the problem size, named (--parameter n=512), or leaving out {ranks_text(known[0])} may help; {replay}"
            )
        return (
            f"a second recording on {ranks_text(known[-1])} would tell whether it depends on data or on time; {replay}"
        )

    def _varies(self, row: Unexplained) -> bool:
        """Whether a partner or a size differs between calls of one rank, or a count between recordings alike."""
        structure = self.learnt.structure
        if row.what not in ("peer", "tag", "size", "count"):
            return False
        keys = [(calls.ranks, tuple(calls.parameters.items())) for calls in structure.recordings]
        first_of = numpy.array([keys.index(key) for key in keys])  # of the same ranks and parameters
        events = numpy.concatenate([call.events for call in row.step.place.calls()])
        pair = first_of[structure.recording[events]] * 2**24 + structure.rank[events]
        if row.what == "count":
            runs = structure.recording[events] * 2**24 + structure.rank[events]
            _, first, values = numpy.unique(runs, return_index=True, return_counts=True)
            pair = pair[first]
        else:
            values = structure.values[row.what][events]
        _, first, group = numpy.unique(pair, return_index=True, return_inverse=True)
        return bool((values != values[first][group.reshape(-1)]).any())

    @cached_property
    def text(self) -> str:
        """The file; raises InputError for what cannot be extrapolated."""
        if self.refusal:
            raise InputError(f"{self.learnt.structure.recordings[-1].path}: {self.refusal}")
        return program_text(
            self.learnt, self.costs, self.recorded_on, [f"Not explained: {row.text}." for row in self.unexplained]
        )


def named(step: Step) -> str:
    """A place in words: isend at main (solver+0x1a2b)."""
    first = next(step.place.calls(), None)
    code, _, site, *_ = (first and first.signature) or ("", 0, "")
    what = code if not step.place.is_loop else f"the loop of {code}" if code else "the loop"
    return f"{what} at {site.split(' < ')[0]}" if site else str(what)


def find(
    recordings: Sequence["str | PathLike[str]"],
    parameters: Sequence[Mapping[str, int]] | None = None,
    recorded_on: str | None = None,
) -> Findings:
    """What recordings tell; raises InputError as `learn` does, but not for what cannot be extrapolated."""
    if isinstance(recordings, str | PathLike) or len(recordings) < 2:
        raise InputError("recordings are two or more, of different numbers of ranks, such as 4, 8 and 16")
    paths = [path_of(path, "a recording") for path in recordings]
    known = [dict(names) for names in parameters] if parameters is not None else [{} for _ in paths]
    if len(known) != len(paths):
        raise InputError(f"parameters are {len(known)}; they are of {counted(len(paths), 'recording')}, in their order")
    names = set().union(*known)
    for path, of_path in zip(paths, known, strict=True):
        if lacking := sorted(names - of_path.keys()):
            raise InputError(f"{path}: has no {lacking[0]}, which others have; give it for every recording")
        for name, value in of_path.items():
            text = str(name)
            taken = hasattr(Application, text) or text in _RESERVED or text.startswith("before_") or iskeyword(text)
            if taken or not text.isidentifier():
                raise InputError(f"parameters of {path}: {text!r:.40}; take another name, which the class does not use")
            if type(plain(value)) is not int or not 0 <= value <= MOST:
                raise InputError(f"parameters of {path}: {text}={value!r:.40}; it is a whole number below 2^31")
    platform = None if recorded_on is None else load_platform(recorded_on).name  # refused before it takes long
    learnt = learn_rules(structure_of(read_all(paths, known)))
    costs, uncounted = learn_costs(learnt)
    if platform is None:
        platforms = {str(calls.metadata.get("platform") or "") for calls in learnt.structure.recordings}
        recorded_on = platforms.pop() if len(platforms) == 1 else ""
    return Findings(learnt, costs, uncounted, recorded_on or "")


def learn(
    recordings: Sequence["str | PathLike[str]"],
    output: "str | PathLike[str]",
    *,
    parameters: Sequence[Mapping[str, int]] | None = None,
    recorded_on: str | None = None,
) -> type[Application]:
    """An application that makes the calls of a program on any number of ranks, learnt from recordings on few.

    Rules for peers, sizes, loops and communicators hold exactly in every recording; computing between calls has a model
    with its error. The file is Python, to be read and changed.

    Parameters
    ----------
    recordings : traces of `lepaute record`, of two or more numbers of ranks
    output : the file to write, solver.py
    parameters : of every recording in its order what was varied, such as {"n": 512}
    recorded_on : the platform that the program ran on, by name or file; without it nothing is known of its cores

    Returns
    -------
    the class, as `lepaute predict solver.py` has it

    Raises
    ------
    InputError : for recordings of which no application can be made, with what would help

    Examples
    --------
    >>> import lepaute as lp
    >>> Solver = lp.learn(["r4.parquet", "r8.parquet", "r16.parquet"], "solver.py")  # doctest: +SKIP
    >>> lp.predict(Solver(ranks=1024), "dahu")  # doctest: +SKIP
    """
    return written(find(recordings, parameters, recorded_on), path_of(output, "output"))


def written(findings: Findings, output: Path) -> type[Application]:
    """The class of the file that is written; raises InputError where it does not make the calls of a recording."""
    text = findings.text
    with TemporaryDirectory() as folder:
        trial = Path(folder, "learnt.py")
        trial.write_text(text, encoding="utf-8")
        verify(loaded(str(trial)), findings)
    write_atomic(output, text)
    return loaded(str(output))


def verify(program: type[Application], findings: Findings) -> None:
    """Raises InputError for the first call of a recording that the program does not make."""
    for calls in findings.learnt.structure.recordings:
        if len(calls) > MAX_VERIFIED:
            continue  # the rules hold at all its calls; it is not gone through once more
        fields = {name: value for name, value in calls.parameters.items() if name in findings.learnt.parameters}
        checked = checking.checked(program(ranks=calls.ranks, **fields), calls.path)  # type: ignore[call-arg]
        if not checked.same and not findings.unexplained:
            raise InputError(f"{calls.path}: the rules do not give its calls: {checked.text}")


def table(findings: Findings) -> list[dict[str, Any]]:
    """A row a place: its call, rules with what else holds, and the model of computing before it."""
    rows = []
    for step in findings.learnt.root.steps():
        if step.place is findings.learnt.structure.root:
            continue
        model = findings.costs.get(id(step))
        rules = {
            name: {"rule": rule.text, "values": rule.values, "rivals": list(rule.rivals), "decided_at": rule.decided_at}
            for name, rule in step.rules.items()
            if not (name == "tag" and step.code not in BETWEEN_TWO)
        }
        rows.append(
            {
                "place": named(step),
                "depth": step.place.depth,
                "calls": sum(len(call.events) for call in step.place.calls()),
                "rules": rules,
                "unexplained": sorted(step.unexplained),
                "computing": None if model is None else computing(findings, model),
            }
        )
    return rows


def computing(findings: Findings, model: CostModel) -> dict[str, Any]:
    names = ("constant_s", "factor_s", "share", "error", "extrapolation", "noise", "imbalance", "missed_at_largest")
    values = (model.constant, model.factor, model.share, model.error, model.slope, model.noise, model.imbalance)
    return {
        "model_s": model.form.text(sorted(findings.learnt.parameters)) or "1",
        **dict(zip(names, (*values, model.missed), strict=True)),
        "means_s": {str(ranks): seconds for ranks, seconds in model.points},
    }
