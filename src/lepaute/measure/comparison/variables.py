"""Whether the variables that set a library have an effect, and are those that a campaign was begun with.

Open MPI's parameters are those that ompi_info(1) and prte_info(1) list, MPICH's those whose names are in its shared
library, which looks each up by its name. UCX says itself what it ignores; what libfabric knows is not looked up.
"""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lepaute.archive.mpi_campaign import CampaignFacts, settings_text
from lepaute.errors import EnvironmentProblem, InputError
from lepaute.kit.command import run_command
from lepaute.kit.json_values import from_json
from lepaute.kit.mpi_launcher import MPICH, OPEN_MPI, TITLES
from lepaute.measure.comparison.libraries import PRELOAD, ReadyLibrary, said_by_tool

_ASK_S = 60.0
_PARAMETER = re.compile(r"^mca:[^:\n]*:[^:\n]*:param:([^:\n]+):", re.MULTILINE)
_INFO = (("ompi_info", "--all", "--level", "9", "--parsable"), ("prte_info", "--all", "--parsable"))
_CONTROL_VARIABLE = re.compile(rb"(?:MPIR_CVAR|MPIR_PARAM|MPICH)_[A-Z0-9_]+")
_LIBRARY_FILE = re.compile(r"\blib(?:mpi|mpich)\w*\.so\S* => (\S+)")
_NOT_PRELOADED = re.compile(r"object '([^']*)' from LD_PRELOAD cannot be preloaded \(([^)]*)\)")


def doubts(library: ReadyLibrary, ignored: Sequence[str]) -> list[str]:
    """A sentence for each variable that sets the library and has no effect; ignored: those of UCX, as it says."""
    named, given = library.named, library.facts.settings
    family = named.library.family
    lines = _not_preloaded(library) if given.get(PRELOAD) else []
    lines += [f"{named.label}: UCX knows no {name}, which has no effect" for name in ignored]
    prefix = {OPEN_MPI: "OMPI_MCA_", MPICH: "MPIR_CVAR_"}.get(family, "")
    asked = [name for name in given if prefix and name.startswith(prefix)]
    known = _known(library, prefix) if asked else set()
    for name in asked:
        if known and name not in known:
            meant = difflib.get_close_matches(name, known, 1)
            lines.append(
                f"{named.label}: {TITLES[family]} {named.library.version} knows no {name}, which has no effect"
                + (f"; is {meant[0]} meant?" if meant else "")
            )
    return lines


def check_same(begun: Mapping[str, Any], libraries: Iterable[ReadyLibrary]) -> None:
    """Raises InputError where a library is set by other variables than when the campaign was begun.

    begun: facts of the campaign, as far as there are any
    """
    before = {one.label: one.settings for one in from_json(CampaignFacts, dict(begun), lenient=True).libraries}
    for library in libraries:
        label, new = library.facts.label, dict(library.facts.settings)
        old = dict(before.get(label, new))
        if old != new:
            raise InputError(
                f"the campaign was begun with other variables of {label} ({settings_text(old) or 'none'}, now "
                f"{settings_text(new) or 'none'}); resume it in the same environment"
            )


def _known(library: ReadyLibrary, prefix: str) -> set[str]:
    """Names of all variables of the library; none where it does not tell."""
    named = library.named
    if named.library.family == OPEN_MPI:
        return {prefix + name for words in _INFO for name in _PARAMETER.findall(said_by_tool(named.library, *words))}
    match = _LIBRARY_FILE.search(_linked(library)[0])
    try:
        content = Path(match[1]).read_bytes() if match else b""
    except OSError:
        return set()
    return {name.decode() for name in _CONTROL_VARIABLE.findall(content)}


def _not_preloaded(library: ReadyLibrary) -> list[str]:
    found = dict(_NOT_PRELOADED.findall(_linked(library)[1]))
    return [f"{library.label}: {file} of {PRELOAD} is not loaded: {why}" for file, why in found.items()]


def _linked(library: ReadyLibrary) -> tuple[str, str]:
    """What the dynamic linker says of the probe, on both streams, without running it (ld.so(8))."""
    variables = {**library.named.environment, "LD_TRACE_LOADED_OBJECTS": "1", "LC_ALL": "C"}
    try:
        done = run_command([library.program], what="the dynamic linker", timeout_s=_ASK_S, environment=variables)
    except EnvironmentProblem:
        return "", ""
    return done.stdout, done.stderr
