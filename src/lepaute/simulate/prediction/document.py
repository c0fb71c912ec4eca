"""A prediction as plain data: the JSON object of the contract, a table, a small table of HTML for a notebook."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lepaute.kit.files import write_atomic
from lepaute.kit.frames import frame_of
from lepaute.kit.later import pd
from lepaute.kit.notebook import facts_html
from lepaute.simulate.application import parameter_kinds

if TYPE_CHECKING:
    from lepaute.simulate.application import Application
    from lepaute.simulate.prediction.prediction import Prediction, Run

#: Conditions that columns of `table` have, and what they are unless a prediction says otherwise.
USUAL_CONDITIONS: Mapping[str, Any] = {"mapping": "sequential", "without": "", "repeat": 0, "state": "undisturbed"}
#: The types of all such columns.
CONDITION_KINDS: Mapping[str, Any] = {
    "mapping": str,
    "mapping_seed": "UInt64",
    "mapping_slots": str | None,
    "without": str,
    "transfer": str | None,
    "repeat": int,
    "lag_s": float,
    "state": str,
}


def subject(prediction: "Prediction") -> str:
    return f"{prediction.application.title} {prediction.application.label} on {prediction.platform_name}"


def html(prediction: "Prediction") -> str:
    rate, energy, application = prediction.rate, prediction.energy_j, prediction.application
    facts = [
        ("time", prediction.time_s.text("s")),
        ("rate", "" if rate is None else rate.text(application.rate.unit if application.rate else "")),
        ("energy", "" if energy is None else f"{energy.text()} J"),
        ("runs", f"{len(prediction.run_list)} simulated, seed {prediction.seed}, fidelity {prediction.fidelity}"),
        ("platform", f"{prediction.platform_name}, sha256 {prediction.platform_sha256[:12]}"),
    ]
    return facts_html(subject(prediction), facts, [f"warning: {warning}" for warning in prediction.warnings])


def content(prediction: "Prediction") -> dict[str, Any]:
    """The JSON object of the contract."""
    application, rate = prediction.application, prediction.rate
    parameters = application.parameters() | prediction.mapping
    if prediction.settings:
        parameters["set"] = prediction.settings
    if prediction.conditions is not None:
        parameters |= prediction.conditions.choices
    rate_key = application.rate.key if application.rate else ""
    of_any, undisturbed_s = prediction.any, prediction.undisturbed_time_s
    parts = prediction.parts
    return {
        "application": application.name,
        "platform": prediction.platform_name,
        "platform_sha256": prediction.platform_sha256,
        "parameters": parameters,
        "seed": prediction.seed,
        "time_s": prediction.time_s.to_dict(),
        **({rate_key: rate.to_dict()} if rate and rate_key else {}),
        **({"energy_j": prediction.energy_j.to_dict()} if prediction.energy_j else {}),
        **({"undisturbed_time_s": undisturbed_s.to_dict()} if of_any and prediction.state == "any" else {}),
        **({"any": of_any.to_dict(rate_key)} if of_any else {}),
        **({"interval_basis": prediction.interval_basis} if prediction.interval_basis else {}),
        **({"interval_parts": parts.to_dict(undisturbed_s.half_width_percent)} if parts else {}),
        "runs": [_run(application, run) for run in prediction.run_list],
        "fidelity": prediction.fidelity,
        **({"sampling_relative_sd": prediction.sampling_sd} if prediction.sampling_sd else {}),
        "warnings": list(prediction.warnings),
        **({"outside_ranges": prediction.outside.to_dict()} if prediction.outside else {}),
        "extrapolated_share": prediction.extrapolated_share,
        "comparable": prediction.comparable,
        "trust": prediction.trust.to_dict(),
        **(application.on().details(prediction.first) if prediction.first else {}),
        "simulation": prediction.simulation.to_dict(),
        "version": prediction.version,
    }


def write(prediction: "Prediction", path: str | Path) -> None:
    """Writes the JSON object, of a prediction from a file that of the file."""
    write_atomic(path, json.dumps(prediction.to_dict(), indent=2) + "\n")


def runs_table(prediction: "Prediction") -> "pd.DataFrame":
    """A row a run; see `Prediction.runs`."""
    application = prediction.application
    return frame_of((_run(application, run) for run in prediction.run_list), _run_kinds(application))


def table(prediction: "Prediction") -> "pd.DataFrame":
    """A row a run; see `Prediction.to_frame`."""
    application = prediction.application
    parameters = {**USUAL_CONDITIONS, **prediction.to_dict()["parameters"]}
    settings = {f"set {name}": value for name, value in parameters.pop("set", {}).items()}
    shared = {
        "application": application.name,
        "platform": prediction.platform_name,
        "ranks": application.ranks,
        **{name: cell_of(value) for name, value in (parameters | settings).items()},
    }
    kinds = {
        **dict.fromkeys(("application", "platform"), str),
        "ranks": int,
        **parameter_kinds(application),
        **CONDITION_KINDS,
        **dict.fromkeys(settings, str),
        **_run_kinds(application),
        "energy_j": float,
    }
    rows = ({**shared, **_run(application, run), "energy_j": run.energy_j} for run in prediction.run_list)
    return frame_of(rows, kinds)


def cell_of(value: Any) -> Any:
    """A parameter as a cell of a table: a box or grid as 8x8x4, what else is no plain value as text."""
    if isinstance(value, list | tuple):
        return ("x" if all(isinstance(number, int) for number in value) else " ").join(map(str, value))
    return value if isinstance(value, str | int | float | None) else str(value)


def _run(application: "Application", run: "Run") -> dict[str, Any]:
    rate = {application.rate.key: run.rate} if application.rate else {}
    return {"seed": run.seed, "time_s": run.time_s, **rate, **run.details}


def _run_kinds(application: "Application") -> dict[str, Any]:
    rate = {application.rate.key: float} if application.rate else {}
    return {"seed": "uint64", "time_s": float, **rate, **application.about.run_details}
