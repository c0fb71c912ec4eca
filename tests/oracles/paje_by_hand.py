"""Small Paje traces of SMPI, written line by line as SimGrid 3.32 does."""

from collections.abc import Sequence

EVENTS = (
    ("PajeDefineContainerType", 0, "Alias Type Name"),
    ("PajeDefineStateType", 2, "Alias Type Name"),
    ("PajeDefineLinkType", 4, "Alias Type StartContainerType EndContainerType Name"),
    ("PajeDefineEntityValue", 5, "Alias Type Name Color"),
    ("PajeCreateContainer", 6, "Time Alias Type Container Name"),
    ("PajeDestroyContainer", 7, "Time Type Name"),
    ("PajeSetVariable", 8, "Time Type Container Value"),
    ("PajeSetState", 11, "Time Type Container Value"),
    ("PajePushState", 12, "Time Type Container Value Size"),
    ("PajePopState", 13, "Time Type Container"),
    ("PajeResetState", 14, "Time Type Container"),
    ("PajeStartLink", 15, "Time Type Container Value StartContainer Key Size"),
    ("PajeEndLink", 16, "Time Type Container Value EndContainer Key"),
)


def head(ranks: int, values: Sequence[str]) -> list[str]:
    """Definitions; the alias of a value is 100 and its place, that of a rank the rank and 1."""
    lines = ["#This file was generated using SimGrid-3.32.0", "#[./program --cfg=tracing:yes cluster.xml ]"]
    for name, code, fields in EVENTS:
        lines += [f"%EventDef {name} {code}", *(f"%       {field} string" for field in fields.split()), "%EndEventDef"]
    lines += ["0 1 0 MPI", "2 2 1 MPI_STATE", "4 3 0 1 1 MPI_LINK", "2 5 1 MIGRATE_STATE"]
    lines += [f'6 0.000000000 {rank + 1} 1 0 "rank-{rank}"' for rank in range(ranks)]
    return lines + [f'5 {100 + place} 2 {name} "0 0.5 1"' for place, name in enumerate(values)]


class PajeByHand:
    """Collects events of ranks; dates in seconds."""

    def __init__(self, ranks: int, *values: str) -> None:
        self.ranks, self.values = ranks, list(values)
        self.lines = head(ranks, values)
        self.messages = 0

    def push(self, at_s: float, rank: int, state: str, size: str = "NA") -> None:
        self.lines.append(f"12 {at_s:.9f} 2 {rank + 1} {100 + self.values.index(state)} {size}")

    def pop(self, at_s: float, rank: int) -> None:
        self.lines.append(f"13 {at_s:.9f} 2 {rank + 1} ")

    def state(self, from_s: float, to_s: float, rank: int, state: str, size: str = "NA") -> None:
        self.push(from_s, rank, state, size)
        self.pop(to_s, rank)

    def start(self, at_s: float, rank: int, key: str, size_bytes: int) -> None:
        self.messages += 1
        self.lines.append(f"15 {at_s:.9f} 3 0 PTP {rank + 1} {key}_{self.messages} {size_bytes}")

    def send(self, at_s: float, rank: int, items: str, key: str, size_bytes: int, state: str = "PMPI_Send") -> None:
        self.push(at_s, rank, state, items)
        self.start(at_s, rank, key, size_bytes)
        self.pop(at_s, rank)

    def end(self, at_s: float, rank: int, key: str) -> None:
        self.messages += 1
        self.lines.append(f"16 {at_s:.9f} 3 0 PTP {rank + 1} {key}_{self.messages}")

    def text(self, end_s: float = 10.0) -> str:
        """The file, in which all ranks end at end_s."""
        return "\n".join((*self.lines, *(f"7 {end_s:.9f} 1 {rank + 1}" for rank in range(self.ranks)))) + "\n"


def exchange() -> PajeByHand:
    """Rank 0 sleeps for 2 s, then sends 800 bytes (tag 7) for 1 s; rank 1 receives from 0 s on. Then a broadcast."""
    made = PajeByHand(2, "PMPI_Init", "sleeping", "PMPI_Send", "PMPI_Recv", "PMPI_Bcast")
    for rank in (0, 1):
        made.state(0.0, 0.0, rank, "PMPI_Init")
    made.push(0.0, 1, "PMPI_Recv", "200")
    made.state(0.0, 2.0, 0, "sleeping", "2.000000")
    made.push(2.0, 0, "PMPI_Send", "100")
    made.start(2.0, 0, "1_2_7", 800)
    made.end(3.0, 1, "1_2_7")
    made.pop(3.0, 1)
    made.pop(3.0, 0)
    for rank in (0, 1):
        made.state(3.0, 3.5, rank, "PMPI_Bcast", "10")
    return made


def posted() -> PajeByHand:
    """The exchange, then one of receives that are posted first."""
    made = exchange()
    made.values += ["PMPI_Sendrecv", "PMPI_Irecv", "PMPI_Waitall"]
    made.lines += [f'5 {100 + place} 2 {made.values[place]} "0 0 1"' for place in range(5, len(made.values))]
    for rank, other in ((0, 1), (1, 0)):
        made.state(4.0, 4.0, rank, "PMPI_Irecv", "50")
        made.push(4.0, rank, "PMPI_Sendrecv", "50")
        made.start(4.0, rank, f"{rank + 1}_{other}_3", 400)
    for rank, other in ((0, 1), (1, 0)):
        made.end(5.0, rank, f"{other}_{rank + 1}_3")
        made.pop(5.0, rank)
        made.state(5.0, 6.0, rank, "PMPI_Waitall", "1.000000")
    return made
