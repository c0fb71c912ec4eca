"""Files that name hosts, one a line, as Open MPI, MPICH and batch systems write them."""

import re
from collections.abc import Iterator
from typing import NoReturn

from lepaute.errors import InputError
from lepaute.kit.node_sets import check_node_name, parse_node_set
from lepaute.kit.quantities import count_of

IPV6 = r"(?:[0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}|[0-9a-fA-F:]{0,40}::[0-9a-fA-F:]{0,40}"
_HOST_LINE = re.compile(
    rf"(?P<host>(?:[^\s:=@]{{1,64}}@)?(?:{IPV6}|[^\s:=@]+))(?:(?::|\s+)(?P<count>[0-9]+))?"
    r"(?P<keys>(?:\s+[\w-]+\s*=\s*\S+)*)"
)
#: Hosts as Slurm and Flux compress them, with a comma outside of brackets, and with the first brackets apart.
_HOSTS, _COMMA = re.compile(r"[A-Za-z0-9._,/\[\]-]+"), re.compile(r",(?![^\[]*\])")
_BRACKETS = re.compile(r"([^\[]*\[)([^\]]*)(\].*)")
_KEY = re.compile(r"([\w-]+)\s*=\s*(\S+)")
#: Keys of a hostfile with the number of slots, with a bound of it, and of how to log in, as Open MPI and LAM have them.
_SLOTS, _MAX_SLOTS = ("slots", "cpu", "cpus", "count"), ("max_slots", "slots_max")
_LOGIN = ("user", "username", "port")


class HostLines:
    """A file of hosts that is read line by line. text: its content; name: of the file, for messages"""

    def __init__(self, text: str, name: str) -> None:
        self._text, self._name = text, name
        self._line = 0

    def lines(self) -> Iterator[str]:
        """The lines that say something, without comments."""
        for line in self._text.splitlines():
            self._line += 1
            bare = line.partition("#")[0].strip()
            if bare:
                yield bare

    def refuse(self, problem: str) -> NoReturn:
        """Raises InputError, naming the line."""
        raise InputError(f"{self._name}:{self._line}: {problem}")

    def count(self, text: str, what: str, **bounds: int) -> int:
        return count_of(text, f"{self._name}:{self._line}: {what}", **bounds)

    def hosts(self, text: str) -> list[str]:
        """The hosts of a text, each with the user before it: of node[1-3,7],login all, in their order.

        Raises InputError for what is no host: n*host of LSF, +n0 and ^host of Open MPI.
        """
        user, at, names = text.rpartition("@")
        if re.fullmatch(IPV6, names):
            return [text]
        if not _HOSTS.fullmatch(names):
            self.refuse(f"{text[:80]!r} is no host; write a host, host slots=N or host:N")
        hosts: list[str] = []
        try:
            for part in _COMMA.split(names):
                first = _BRACKETS.fullmatch(part)
                if first is None:
                    hosts.append(check_node_name(part))
                    continue
                for numbers in first[2].split(","):
                    hosts += parse_node_set(f"{first[1]}{numbers}{first[3]}")
        except InputError as problem:
            self.refuse(str(problem))
        return [f"{user}{at}{name}" for name in hosts]

    def hosts_and_slots(self, line: str) -> tuple[list[str], int]:
        """The hosts of a line of a hostfile, and the slots of each.

        A line is `host`, `host slots=N`, `host:N`, `host N`, also of user@host, and of several hosts as Slurm and Flux
        write them, node[1-3,7]; a host alone is one slot, as in the node files of batch systems, and one with max_slots
        alone has as many. Raises InputError for any other.
        """
        match = _HOST_LINE.fullmatch(line)
        if match is None:
            self.refuse(f"{line[:80]!r} is no host; write a host, host slots=N or host:N")
        count = self._slots(match)
        if count < 1:
            self.refuse(f"host {match['host']} has {count} slots; leave it out or give it at least one")
        return self.hosts(match["host"]), count

    def _slots(self, match: re.Match[str]) -> int:
        count = None if match["count"] is None else self.count(match["count"], "the number of slots")
        most: int | None = None
        for key, value in _KEY.findall(match["keys"]):
            name = key.lower().replace("-", "_")
            if name in _SLOTS:
                count = self.count(value, key)
            elif name in _MAX_SLOTS:
                most = self.count(value, key)
            elif name not in _LOGIN:
                self.refuse(f"{key[:80]} is no key of a hostfile; write host slots=N")
        if count is not None and most is not None and count > most:
            self.refuse(f"has {count} slots, and at most {most}; correct one of the numbers")
        return next((each for each in (count, most) if each is not None), 1)


def read_slots(text: str, name: str) -> dict[str, int]:
    """Slots of each host of a hostfile, in the order of its lines; those of a host that comes again are added.

    Raises InputError, naming the line, where it is no hostfile.
    """
    file, slots = HostLines(text, name), dict[str, int]()
    for line in file.lines():
        hosts, count = file.hosts_and_slots(line)
        for host in hosts:
            slots[host] = slots.get(host, 0) + count
    if not slots:
        raise InputError(f"{name}: names no host; write one a line, as host slots=N")
    return slots
