"""A prediction read back from the JSON that `Prediction.to_json` wrote."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NoReturn

from lepaute.errors import InputError
from lepaute.kit.documents import read_json, read_text
from lepaute.kit.json_values import from_json
from lepaute.kit.numbers import path_of
from lepaute.simulate.application import About, Application
from lepaute.simulate.apps import APPLICATIONS, application_class
from lepaute.simulate.apps.program import Program
from lepaute.simulate.behaviour import Behaviour
from lepaute.simulate.prediction.document import CONDITION_KINDS
from lepaute.simulate.prediction.prediction import AnyRun, Prediction, Run, SimulationFigures, Spread
from lepaute.simulate.prediction.trust import Trust
from lepaute.simulate.smpi.emulate import Options
from lepaute.simulate.smpi.request import Folding
from lepaute.stats.intervals import Interval

#: Members of a run and of a prediction are bounded by what is read at all.
MAX_BYTES = 256 << 20


@dataclass(frozen=True)
class Document:
    """The members that every prediction has; the rates and what applications add are `more`.

    application, platform, parameters, seed, version : what repeats the prediction bit for bit
    time_s   : mean, low and high of a run; bounds null for a single run
    energy_j : as time_s;  extrapolated_share : of the time of computing, beyond the fitted sizes
    """

    application: str
    platform: str
    platform_sha256: str
    parameters: Mapping[str, Any]
    seed: int
    time_s: Mapping[str, float | None]
    runs: tuple[Mapping[str, Any], ...]
    fidelity: str
    warnings: tuple[str, ...]
    trust: Mapping[str, Any]
    simulation: SimulationFigures
    version: str
    energy_j: Mapping[str, float | None] | None = None
    extrapolated_share: float | None = None
    sampling_relative_sd: float = 0.0
    more: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, repr=False)
class SavedPrediction(Prediction):
    """A prediction as it was written: means and intervals are those of the file, not computed anew from the runs.

    nodes is 0 and the first run unknown: the file does not have them; `difference` refuses it, having no conditions.
    """

    document: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def time_s(self) -> Spread:
        return _spread(self.document["time_s"])

    @property
    def state(self) -> str:
        return str(self.document["parameters"].get("state", "undisturbed"))

    @property
    def undisturbed_time_s(self) -> Spread:
        return _spread(self.document.get("undisturbed_time_s", self.document["time_s"]))

    @property
    def any(self) -> AnyRun | None:
        if (content := self.document.get("any")) is None:
            return None
        key = self.application.rate.key if self.application.rate else ""
        rate = _spread(content[key]) if key in content else None
        return AnyRun(_spread(content["time_s"]), rate, content["share_of_runs"], content["slower_by_most"])

    @property
    def interval_basis(self) -> str | None:
        basis = self.document.get("interval_basis")
        return basis if isinstance(basis, str) else None

    @property
    def rate(self) -> Spread | None:
        key = self.application.rate.key if self.application.rate else ""
        return _spread(self.document[key]) if key in self.document else None

    @property
    def energy_j(self) -> Spread | None:
        return _spread(self.document["energy_j"]) if "energy_j" in self.document else None

    @property
    def extrapolated_share(self) -> float | None:
        share: float | None = self.document.get("extrapolated_share")
        return share

    def to_dict(self) -> dict[str, Any]:
        return dict(self.document)


class _Unknown(Behaviour):
    """What it does is not in the file."""

    def emulation(self, seed: int) -> NoReturn:  # noqa: ARG002
        raise InputError(f"{self.application.title} of a saved prediction cannot be run; its class is not in the file")


@dataclass(frozen=True)
class SavedApplication(Application):
    """Saved part of one's own application, or of a replay: all but what it does."""

    title: str = ""
    label: str = ""
    ranks: int = 1
    saved: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if not (isinstance(self.title, str) and isinstance(self.label, str) and isinstance(self.ranks, int)):
            raise InputError("program is no title, label and number of ranks")

    @property
    def about(self) -> About:  # type: ignore[override]
        kinds = {name: str if isinstance(value, list) else type(value) for name, value in self.saved.items()}
        return About(self.title, behaviour=_Unknown, parameter_kinds=kinds)

    def parameters(self) -> dict[str, Any]:
        return dict(self.saved)


def read_prediction(path: str | Path) -> Prediction:
    """The prediction in a file that `Prediction.to_json` or `lepaute predict --json` wrote.

    Parameters
    ----------
    path : name of the file

    Returns
    -------
    A `Prediction` with the runs, means (seconds, the unit of the rate, joules), intervals and warnings of the file.
    What the file does not have is left out: traces, breakdowns, and the conditions that `lepaute.difference` needs.

    Raises
    ------
    InputError : one line, where the file is not there, or is no prediction of one application

    Examples
    --------
    >>> import lepaute as lp
    >>> prediction = lp.predict(lp.Hpl(n=2000, p=2, q=2), "dahu", runs=3)
    >>> prediction.to_json("prediction.json")
    >>> lp.read_prediction("prediction.json").time_s == prediction.time_s
    True
    """
    file = path_of(path, "the file of a prediction")
    content = read_json(read_text(file, "a prediction", MAX_BYTES), str(file), most_bytes=MAX_BYTES)
    if isinstance(content, dict) and "predictions" in content:
        raise InputError(f"{file}: has several predictions; write each with Prediction.to_json")
    try:
        found = _prediction(from_json(Document, content, str(file)), dict(content))
    except (LookupError, TypeError, AttributeError, ArithmeticError, ValueError) as problem:
        told = " ".join(str(problem).split()).removeprefix(f"{file}").removeprefix(": ")
        raise InputError(f"{file}: is no prediction that this version reads: {told[:300]}") from None
    return found


def _prediction(document: Document, content: dict[str, Any]) -> Prediction:
    parameters = dict(document.parameters)
    settings = parameters.pop("set", {})
    application = _application(document.application, parameters, document.more.get("program"))
    if not document.runs:
        raise ValueError("it has no runs")
    key = application.rate.key if application.rate else ""
    for values in (content, content.get("any") or {}):
        for name in {"time_s", "energy_j", key} & values.keys():
            _spread(values[name])
    known = ("seed", "time_s", key)
    return SavedPrediction(
        application=application,
        platform_name=document.platform,
        platform_sha256=document.platform_sha256,
        seed=document.seed,
        run_list=tuple(
            Run(
                int(run["seed"]),
                float(run["time_s"]),
                float(run[key]) if key else None,
                details={name: value for name, value in run.items() if name not in known},
            )
            for run in document.runs
        ),
        fidelity=document.fidelity,
        warnings=document.warnings,
        simulation=document.simulation,
        settings=dict(settings),
        version=document.version,
        mapping={name: value for name, value in parameters.items() if name.startswith("mapping")},
        nodes=0,
        sampling_sd=document.sampling_relative_sd,
        trust=Trust(
            *(document.trust[name] for name in ("extrapolated_share", "messages_share", "extrapolation_relative_sd"))
        ),
        document=content,
    )


def _application(name: str, parameters: Mapping[str, Any], program: Any) -> Application:
    if isinstance(program, Mapping):
        own = {name: value for name, value in parameters.items() if name not in CONDITION_KINDS}
        if name not in APPLICATIONS or not Path(str(own.get("recording"))).exists():
            return SavedApplication(program["title"], program["label"], program["ranks"], own)
    if name in APPLICATIONS:
        kind: Any = application_class(name)
        given = {each.name: parameters[each.name] for each in fields(kind) if each.name in parameters}
        application: Application = kind(**given)
        return application
    if "arguments" not in parameters:
        raise InputError(
            f"a prediction of {name[:60]}, an application of one's own, by a version that did not tell of it"
        )
    return Program(
        Path(name),
        tuple(map(str, parameters["arguments"])),
        parameters["np"],
        options=Options(
            computing=parameters["computing"],
            collectives=parameters["collectives"],
            folding=Folding(parameters["fold_bytes"]),
        ),
    )


def _spread(values: Mapping[str, float | None]) -> Spread:
    mean, low, high = (values[name] for name in ("mean", "low", "high"))
    if mean is None:
        raise ValueError("a mean is null")
    return Spread(mean, *Interval(low, high).ends)
