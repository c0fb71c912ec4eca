"""`lepaute learn`: an application, in Python, of a few recordings of a program."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from lepaute.cli.entry import complain
from lepaute.cli.options import AsJson, Force, argument, option
from lepaute.cli.terminal import answer_in, json_text, note, say, warn
from lepaute.errors import InputError
from lepaute.kit.outputs import check_outputs
from lepaute.kit.text import counted, percent, seconds
from lepaute.simulate.apps.own import Application, check
from lepaute.simulate.learn import Findings, find, table, written
from lepaute.simulate.learn.costs import MAX_ERROR
from lepaute.simulate.trace import read_trace

#: Lines of a file that nobody reads.
LONG = 500


def command(
    recordings: Annotated[list[Path], argument("TRACE...", "Recordings on two or more numbers of ranks.")],
    output: Annotated[Path, option("The Python file to write.", "--output", "-o", show_default=False)],
    parameter: Annotated[
        list[str] | None,
        option(
            "What differs between the recordings, such as n=512,512,1024: a value for each, then that of --check.",
            metavar="NAME=N[,N...]",
        ),
    ] = None,
    check_trace: Annotated[
        Path | None,
        option("A recording to compare the calls with; exit status 1: differs.", "--check", metavar="TRACE"),
    ] = None,
    recorded_on: Annotated[str | None, option("Platform of the recordings: a file, or a shipped one.")] = None,
    explain: Annotated[
        bool, option("Also print rules of each call, alternatives, and computing.", "--explain")
    ] = False,
    as_json: AsJson = False,
    force: Force = False,
) -> None:
    """Makes an application from recordings on a few ranks; lepaute predict simulates it on any number.

    Rules for partners, sizes, loops and communicators hold exactly in every recording; otherwise the command refuses,
    and says which recording would help. Computing between calls has a model with its error.
    """
    check_outputs({"--output": output}, inputs=[*recordings, check_trace], force=force)
    if output.suffix != ".py":
        raise InputError(f"output is {str(output)!r:.80}; it is a Python file, such as solver.py")
    *parameters, of_check = _parameters(parameter or [], len(recordings), checks=check_trace is not None)
    ranks_to_check = None if check_trace is None else len(read_trace(check_trace).ranks)
    findings = find(recordings, parameters, recorded_on)
    if explain and findings.refusal and not as_json:
        print("\n".join(_explained(findings)))
    warn(_caveats(findings, parameters))
    program = written(findings, output)
    lines, checked = list(_answer(findings, program, output)), None
    if check_trace is not None:
        fields = {name: value for name, value in of_check.items() if name in findings.learnt.parameters}
        checked = check(program(ranks=ranks_to_check, **fields), check_trace)  # type: ignore[call-arg]
        lines += [checked.text] * checked.same
    if as_json:
        document: dict[str, Any] = {"answer": answer_in("\n".join(lines)), **_content(findings, program, output)}
        if checked is not None:
            document["check"] = {"same": checked.same, "calls": checked.calls, "text": checked.text}
        print(json_text(document))
    else:
        say("\n".join(lines))
        if explain:
            print("\n".join(_explained(findings)))
    note(f"{output}: {counted(len(findings.text.splitlines()), 'line')}")
    if checked is not None and not checked.same:
        complain(checked.text)
        raise typer.Exit(1)


def _parameters(texts: list[str], count: int, *, checks: bool) -> list[dict[str, int]]:
    """Of every recording, and of one to check, what was varied; raises InputError."""
    made: list[dict[str, int]] = [{} for _ in range(count + 1)]
    for text in texts:
        name, is_, values = text.partition("=")
        numbers = [int(value) for value in values.split(",") if value.strip().isdigit()]
        usable = name.isidentifier() and len(numbers) in (1, count, count + checks)
        if not is_ or not usable or len(numbers) != len(values.split(",")):
            raise InputError(
                f"parameter is {text[:80]!r}; it is NAME=N, or with a value for each of {counted(count, 'recording')}"
            )
        if name in made[0]:
            raise InputError(f"parameter has {name} twice; give its values once, with commas")
        for of_recording, number in zip(made, numbers + numbers[-1:] * (count + 1 - len(numbers)), strict=True):
            of_recording[name] = number
    return made


def _caveats(findings: Findings, parameters: list[dict[str, int]]) -> Iterator[str]:
    programs = {str(calls.metadata.get("application")) for calls in findings.learnt.structure.recordings}
    if len(programs) > 1:
        yield f"the recordings are of different programs: {', '.join(sorted(programs))}"
    for name in parameters[0]:
        if name not in findings.learnt.parameters:
            number = re.compile(rf"\b{parameters[0][name]}\b")
            texts = [rule.text for step in findings.learnt.root.steps() for rule in step.rules.values()]
            parts = [text for text in texts if number.search(text) and not text.isdigit()]
            use = f"rules have the number, such as {parts[0]}" if parts else "nothing tells what depends on it"
            yield f"{name} is {parameters[0][name]} in all recordings: {use}; the class has no such field"
    rivals = [(step, rule) for step in findings.learnt.root.steps() for rule in step.rules.values() if rule.rivals]
    if rivals:
        rule = rivals[0][1]
        decided_at = min(rule.decided_at for _, rule in rivals)
        yield (
            f"{counted(len(rivals), 'rule')} with alternatives that hold as well: the simplest is taken, such as "
            f"{rule.text} instead of {rule.rivals[0]}; a recording on {decided_at} ranks would decide"
        )
    if rows := [row.text for row in findings.unexplained]:
        others = f" (and {counted(len(rows) - 1, 'other')})" if len(rows) > 1 else ""
        yield f"no rule holds for {rows[0]}{others}: drawn from what was recorded"
    if (lines := len(findings.text.splitlines())) > LONG:
        yield f"the file has {lines} lines: loops whose iterations follow no rule are written out, call by call"
    if findings.uncounted > 0.01:
        yield f"{percent(findings.uncounted)} of computing is left out: calls with less than 0.5 % before them"


def _answer(findings: Findings, program: type[Application], output: Path) -> Iterator[str]:
    rows, recordings = table(findings), findings.learnt.structure.recordings
    *most, last = [str(calls.ranks) for calls in recordings]
    calls = counted(sum(map(len, recordings)), "call")
    yield f"{program.__name__} of {output.name} makes the {calls} recorded on {', '.join(most)} and {last} ranks"
    rules = f"{sum(len(row['rules']) for row in rows)} at {counted(len(rows), 'place')}"
    yield f"  rules   {rules}, each holds in every recording"
    if findings.costs:
        largest = max(findings.costs.values(), key=lambda model: model.share)
        errors = (largest.error, largest.slope)
        error, slope = (f"± {percent(1.96 * x)}" if x < MAX_ERROR else "error unknown" for x in errors)
        models = f"{counted(len(findings.costs), 'model')} of computing; the largest, {percent(largest.share)} of it"
        yield f"  costs   {models}: {error}, and {slope} for each doubling of ranks beyond {last}"
    yield f"  next    lepaute predict {output} -p PLATFORM --np {64 * int(last)}"


def _explained(findings: Findings) -> Iterator[str]:
    """The places, indented as loops are."""
    for row in table(findings):
        indent = "  " * (row["depth"] + 1)
        yield f"{indent}{row['place']}, {counted(row['calls'], 'call')}"
        for name, rule in row["rules"].items():
            rivals = f"; also {', '.join(rule['rivals'])}: {rule['decided_at']} ranks decide" if rule["rivals"] else ""
            yield f"{indent}    {name}: {rule['rule']} ({counted(rule['values'], 'value')}{rivals})"
        for name in row["unexplained"]:
            yield f"{indent}    {name}: no rule holds"
        if (model := row["computing"]) is not None:
            times = [seconds(model[name]) for name in ("constant_s", "factor_s") if model[name]]
            shares = {name: percent(model[name]) for name in ("share", "noise", "imbalance")}
            shares |= {
                name: percent(model[name]) if model[name] < MAX_ERROR else "unknown"
                for name in ("error", "extrapolation")
            }
            yield (
                f"{indent}    computing: {' + '.join(times)} * ({model['model_s']}), {shares['share']} of all, error "
                f"{shares['error']}, {shares['extrapolation']} a doubling, noise {shares['noise']}, ranks differ by "
                f"{shares['imbalance']}"
            )


def _content(findings: Findings, program: type[Application], output: Path) -> dict[str, Any]:
    learnt = findings.learnt
    return {
        "file": str(output),
        "class": program.__name__,
        "recordings": [
            {"file": str(calls.path), "ranks": calls.ranks, "calls": len(calls), "parameters": dict(calls.parameters)}
            for calls in learnt.structure.recordings
        ],
        "parameters": {name: list(values) for name, values in learnt.parameters.items()},
        "communicators": {str(number): rule.text for number, rule in learnt.groups.items()},
        "places": table(findings),
        "unexplained": [
            {"text": row.text, "time_share": row.time_share, "bytes_share": row.bytes_share}
            for row in findings.unexplained
        ],
        "computing_without_a_model": findings.uncounted,
    }
