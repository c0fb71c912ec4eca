"""The running system: kernel and its command line, distribution, modules, settings, complaints of the kernel."""

import re
import shlex

from lepaute.archive.documents import bounded_json, mapping
from lepaute.archive.setups.facts import OTHER, SYSTEM, Fact, chosen, counted, fields
from lepaute.errors import ArchiveError

#: Words of the kernel command line that name this node's disk, image or address, not how it runs.
_OWN_WORDS = re.compile(r"(BOOT_IMAGE|root|initrd|resume|ip|BOOTIF|hostname|nfsroot|UUID|ds)=.*", re.DOTALL)
_SELECTED = re.compile(r"\[([^\]\n]*)\]")
#: What the kernel says when hardware is ill or slowed down; the rest of its log is dates and enumeration.
_COMPLAINT = re.compile(
    r"machine check|hardware error|\bmce\b|\becc\b|throttl|overheat|thermal|i/o error|out of memory|oom-kill|"
    r"soft lockup|call trace|firmware bug|clocksource.*unstable|link is down",
    re.IGNORECASE,
)
#: Beyond this a line or a setting is none of the kernel's: bounds the work of the searches above.
_LONGEST_LINE, _LONGEST_SETTING = 1000, 4096
_TIME = re.compile(r"^\[[^\]]*\]\s*")
_NUMBER = re.compile(r"0x[0-9a-f]+|\b[0-9a-f]{8,}\b|[0-9]+", re.IGNORECASE)
_MOST_COMPLAINTS = 200
_REMOTE = re.compile(r"nfs4?|lustre|beegfs|gpfs|ceph|glusterfs|cifs|9p|orangefs|pvfs2|overlay|fuse\..*")


def uname(text: str) -> list[Fact]:
    """Kernel release and build, of `uname -a`; the host's name is left out."""
    words = text.split()
    if len(words) < 3:
        return []
    return [Fact(SYSTEM, "kernel", words[2]), Fact(SYSTEM, "kernel build", " ".join(words[3:]))]


def os_release(text: str) -> list[Fact]:
    """The distribution's name and version."""
    values = {name: value.strip("\"'") for name, value in fields(text, "=").items()}
    return chosen(SYSTEM, values, {"PRETTY_NAME": "distribution", "VERSION_ID": "distribution version"})


def command_line(text: str) -> list[Fact]:
    """The words of the kernel command line but those that name the node's own disk, image or address."""
    text = text[:_LONGEST_SETTING]
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    return [Fact(SYSTEM, "kernel command line", frozenset(word for word in words if not _OWN_WORDS.fullmatch(word)))]


def modules(text: str) -> list[Fact]:
    """Names of the loaded modules; sizes and users are left out."""
    names = [line.split()[0] for line in text.splitlines() if line.strip()]
    return [Fact(SYSTEM, "modules", frozenset(names) - {"Module"})]


def kernel_log(text: str) -> list[Fact]:
    """The kernel's complaints, without times and numbers; the rest of its log is left out."""
    heads = (line[:_LONGEST_LINE] for line in text.splitlines())
    lines = (_TIME.sub("", line) for line in heads if _COMPLAINT.search(line))
    # Each once: how often the kernel says a thing depends on how long it has run.
    plain = sorted({_NUMBER.sub("#", line)[:200] for line in lines})
    return [Fact(SYSTEM, "complaints of the kernel", frozenset(plain[:_MOST_COMPLAINTS]))]


def limits(text: str) -> list[Fact]:
    """The limits of the shell's ulimit -a that are not unlimited by their name and value."""
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    return [Fact(SYSTEM, "limits of processes", counted(line for line in lines if "pending signals" not in line))]


def mounts(text: str) -> list[Fact]:
    """Where file systems of disks and of the network are mounted, with their type."""
    rows = [line.split() for line in text.splitlines()]
    rows = [
        row for row in rows if len(row) > 2 and not row[1].startswith(("/run/", "/proc/", "/sys/", "/dev/", "/tmp/"))
    ]
    kept = [row for row in rows if row[0].startswith("/") or _REMOTE.fullmatch(row[2])]
    return [Fact(SYSTEM, "file systems", frozenset(f"{row[2]} at {row[1]}" for row in kept))]


def absent(text: str) -> list[Fact]:
    """What could not be collected of the node: names only, the reasons are in the file."""
    try:
        names = frozenset(mapping(bounded_json(text.encode(), "absent.json")))
    except ArchiveError:
        return []
    return [Fact(OTHER, "files that could not be collected whole", names)]


def setting(what: str, text: str) -> list[Fact]:
    """A control file of one or a few words: the selected one where it lists all, else what stands there."""
    text = text[:_LONGEST_SETTING]
    selected = _SELECTED.findall(text)
    values = selected or text.split()
    if not values:
        return []
    # One line a core: the value once where all agree.
    value = values[0] if len(set(values)) == 1 else " ".join(values)
    return [Fact(SYSTEM, what, value)]
