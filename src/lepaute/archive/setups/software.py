"""Software: versions as programs print them, packages, and environment variables."""

import re

from lepaute.archive.documents import bounded_json, mapping
from lepaute.archive.setups.facts import SOFTWARE, VARIABLES, Fact
from lepaute.errors import ArchiveError

#: Of a job, a session or a user, not of a setup.
_OWN_VARIABLE = re.compile(
    r"SLURM_(JOB_?ID|JOBID|STEP.*|TASK_PID|JOB_START_TIME|JOB_END_TIME|TOPOLOGY_ADDR|NODEID|SRUN_COMM_PORT|JOB_UID"
    r"|LAUNCH_NODE_IPADDR|SUBMIT_.*|NODELIST|JOB_NODELIST|NODE_ALIASES|PROCID|LOCALID|GTIDS)"
    r"|OAR_(JOB_?ID|JOBID|NODE_FILE|NODEFILE|FILE_NODES|RESOURCE_.*|WORKDIR|O_WORKDIR|KEY)|PMIX_.*|PMI_.*"
    r"|LEPAUTE_(RUN|DEBUG).*|TMPDIR|PWD|OLDPWD|HOSTNAME|SHLVL"
)
_COPYRIGHT = re.compile(r"copyright|free software|warranty|report bugs|https?://", re.IGNORECASE)


def packages(text: str) -> list[Fact]:
    """One fact a package, of lines "name version" as dpkg-query -W and rpm print them, or of dpkg -l's table."""
    facts = []
    for line in text.splitlines():
        words = line.split()
        if len(words) >= 3 and words[0] in ("ii", "hi"):
            words = words[1:3]
        if len(words) == 1 and words[0].count("-") >= 2:
            words = _of_rpm(words[0])
        # dpkg-query lists names that it knows and that are not installed, without a version.
        if len(words) == 2 and words[1][:1].isalnum():
            facts.append(Fact(SOFTWARE, f"package {words[0]}", words[1]))
    return facts


def _of_rpm(word: str) -> list[str]:
    """Name and version of name-version-release.architecture."""
    name, number, release = word.rsplit("-", 2)
    return [name, f"{number}-{release}"] if number[:1].isdigit() else [word]


def libraries(text: str) -> list[Fact]:
    """Where the dynamic linker finds libraries, of lines "name (kind) => path"."""
    paths = frozenset(" ".join(line.split()) for line in text.splitlines() if "=>" in line)
    return [Fact(SOFTWARE, "shared libraries", paths)] if paths else []


def version(name: str, text: str) -> list[Fact]:
    """What a program says about its version: the first line that has a digit, else the first."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not _COPYRIGHT.search(line)]
    if not lines:
        return []
    version_line = next((line for line in lines if any(char.isdigit() for char in line)), lines[0])
    return [Fact(SOFTWARE, name, version_line)]


def variables(text: str) -> list[Fact]:
    """One fact a variable whose value is recorded; those of a job, session or user are left out, as are mere names."""
    try:
        values = mapping(mapping(bounded_json(text.encode(), "variables.json")).get("values"))
    except ArchiveError:
        return []
    return [
        Fact(VARIABLES, name, value)
        for name, value in values.items()
        if isinstance(value, str) and not _OWN_VARIABLE.fullmatch(name)
    ]
