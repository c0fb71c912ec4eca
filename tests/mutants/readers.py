"""For each kind of input: what is changed, and all that the command line does with it before anything is simulated."""

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from oracles.mutated_designs import good_files, mutated

from lepaute.errors import LepauteError
from lepaute.kit.printable import printable
from mutants.changes import changed

DATA = Path(__file__).resolve().parents[1] / "data"
REFUSED, READ, FAILED = "refused", "read", "failed"
_LONGEST_MESSAGE = 2000


@dataclass(frozen=True)
class Outcome:
    """Of one mutant; problem: the traceback of what should not have been raised, empty otherwise."""

    number: int
    way: str
    result: str
    problem: str = ""


@dataclass(frozen=True)
class Kind:
    """originals: what is changed;  read: a mutant that stands in a file, raising LepauteError where it is refused."""

    originals: Callable[[], list[bytes]]
    read: Callable[[Path], None]
    change: Callable[[random.Random, bytes, list[bytes]], tuple[str, bytes]] = changed


def outcomes(name: str, first: int, count: int, seed: int, folder: Path) -> Iterator[Outcome]:
    """The outcomes of `count` mutants of one kind from number `first` on; each depends on seed and number alone."""
    kind = KINDS[name]
    originals = kind.originals()
    path = folder / f"mutant.{name}"
    for number in range(first, first + count):
        rng = random.Random(f"{name} {seed} {number}")
        way, data = kind.change(rng, rng.choice(originals), originals)
        path.write_bytes(data)
        yield outcome_of(number, way, kind.read, path)


def outcome_of(number: int, way: str, read: Callable[[Path], None], path: Path) -> Outcome:
    """What becomes of one mutant."""
    import traceback

    try:
        read(path)
    except LepauteError as error:
        message = printable(str(error))  # as it is printed
        if not message or not message.isprintable() or len(message) > _LONGEST_MESSAGE:
            return Outcome(number, way, FAILED, f"a message of {len(message)} characters: {message[:300]!r}")
        return Outcome(number, way, REFUSED)
    except BaseException:  # noqa: BLE001  what is looked for
        return Outcome(number, way, FAILED, traceback.format_exc(limit=-4))
    return Outcome(number, way, READ)


def _platforms() -> list[bytes]:
    from lepaute.platform.io import SHIPPED_FOLDER

    texts = [path.read_bytes() for path in sorted((DATA / "platforms").glob("*.yaml"))]
    texts += [
        b"\n".join(path.read_bytes().split(b"\n")[:60]) for path in sorted((DATA / "platforms/bad").glob("*.yaml"))
    ]
    shipped = (SHIPPED_FOLDER / "exascale-like.yaml").read_bytes()
    anchored = texts[0] + b"\npower: &p {idle_W: 1, computing_W: 2, communicating_W: 2}\n"
    return [*texts, shipped, anchored, *texts[:1] * 20]


def _read_platform(path: Path) -> None:
    from lepaute.platform import load_platform
    from lepaute.platform.io import parse_platform, platform_text
    from lepaute.platform.summary import summary
    from lepaute.simulate.topology import core_topology

    platform = load_platform(path)
    summary(platform)
    assert parse_platform(platform_text(platform)).sha256 == platform.sha256
    if platform.nodes.count <= 1000:
        core_topology(platform)


_FIELDS = (
    "name",
    "nodes.count",
    "nodes.cores",
    "nodes.cpus",
    "network.flow_factor",
    "network.remote.segments[0].latency_s",
)


def _settings() -> list[bytes]:
    values = ("x", "64", "4", "2", "scale", "1e-6", "[1, 2]", "{kind: torus, parameters: '4,4'}", "{a: &a 1, b: *a}")
    return [f"{field}={value}".encode() for field in (*_FIELDS, "topology", "power", "kernels[0]") for value in values]


def _read_settings(path: Path) -> None:
    from lepaute.kit.quantities import settings_of
    from lepaute.platform import load_platform, override

    text = path.read_bytes().decode(errors="surrogateescape")  # as arguments come
    override(load_platform(DATA / "platforms/small.yaml"), settings_of([text]))


def _hpl_dat() -> list[bytes]:
    return [(DATA / "hpl_dat/HPL.dat").read_bytes()]


def _read_hpl_dat(path: Path) -> None:
    from lepaute.simulate.apps.hpl.hpl_dat import read_hpl_dat

    dat = read_hpl_dat(path)
    dat.combinations()
    dat.text()


def _hostfiles() -> list[bytes]:
    return [
        b"# nodes\ndahu-1 slots=4\ndahu-2 slots=32 max_slots=32\ndahu-3:8\ndahu-4\n",
        b"node1.site slots = 2\nnode2.site slots = 2\nnode1.site\n",
    ]


def _rankfiles() -> list[bytes]:
    return [
        b"rank 0=dahu-1 slot=0:1\nrank 1=dahu-1 slot=3\nrank 2=dahu-2 slots=0-3\n",
        b"# three\nrank 0 = n1 slot=0:1,2\nrank 1 = n1 slot=1:*\nrank 2 = n2 slot=7\n",
    ]


def _read_hostfile(path: Path) -> None:
    from lepaute.platform import load_platform
    from lepaute.simulate.hostfile import read_hostfile

    read_hostfile(path, load_platform("dahu"))


def _read_rankfile(path: Path) -> None:
    from lepaute.platform import load_platform
    from lepaute.simulate.hostfile import read_rankfile

    read_rankfile(path, load_platform("dahu"))


def _xml() -> list[bytes]:
    from lepaute.platform import load_platform, override
    from lepaute.platform.simgrid import export_xml

    files = [path.read_bytes() for path in sorted((DATA / "simgrid").glob("*.xml"))]
    small = load_platform(DATA / "platforms/small.yaml")
    torus = override(small, {"nodes.count": "8", "topology": '{kind: torus, parameters: "2,2,2"}'})
    tree = override(small, {"nodes.count": "4", "topology": '{kind: fat-tree, parameters: "2;2,2;1,2;1,1"}'})
    return [*files, *(export_xml(each).text.encode() for each in (small, torus, tree))]


def _read_xml(path: Path) -> None:
    from lepaute.kit.documents import read_bytes
    from lepaute.platform.io import parse_platform, platform_text
    from lepaute.platform.simgrid import export_xml, import_xml
    from lepaute.platform.simgrid.reading import LARGEST_TEXT_BYTES

    imported = import_xml(read_bytes(path, "a platform file of SimGrid", LARGEST_TEXT_BYTES), path.name)
    platform = imported.platform
    assert parse_platform(platform_text(platform)).sha256 == platform.sha256
    if platform.nodes.count <= 100:
        export_xml(platform)


def _traces() -> list[bytes]:
    import tempfile

    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {
        "rank": pa.array([0, 0, 1, 1], pa.int32()),
        "step": pa.array([0, 1, 0, -1], pa.int32()),
        "start_s": [0.0, 1.0, 0.0, 2.0],
        "duration_s": [1.0, 0.5, 2.0, 0.25],
        "kind": ["kernel", "mpi", "kernel", "phase"],
        "name": ["dgemm", "MPI_Send", "dtrsm", "solve"],
        "m": [8.0, 0.0, 8.0, 0.0],
        "peer": pa.array([-1, 1, -1, -1], pa.int32()),
    }
    metadata = {
        "format": "lepaute-trace/1",
        "source": "recording",
        "application": "hpl",
        "ranks": 2,
        "seed": 1,
        "whole": True,
        "parameters": {"n": 1000, "nb": 64, "p": 2, "q": 1},
        "hosts": ["a", "b"],
        "nodes": [0, 1],
        "warnings": ["w"],
        "unsized": ["MPI_Bcast"],
        "version": "1",
        "created": "today",
        "mpi": "Open MPI",
        "resolution_s": 1e-9,
    }
    table = pa.table(columns).replace_schema_metadata({"lepaute-trace": json.dumps(metadata)})
    files = []
    with tempfile.TemporaryDirectory() as folder:
        for compression in ("none", "zstd"):
            path = Path(folder) / "t.parquet"
            pq.write_table(table, path, compression=compression)
            files.append(path.read_bytes())
    return files


def _changed_trace(rng: random.Random, data: bytes, others: list[bytes]) -> tuple[str, bytes]:
    """Half the mutants are sound Parquet whose metadata, or a column, is not."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if rng.random() < 0.4:
        way, made = changed(rng, data, others)
        return way, made
    table = pq.read_table(pa.BufferReader(data))
    key = b"lepaute-trace"
    stored = table.schema.metadata[key]
    if rng.random() < 0.4:
        name = rng.choice(table.column_names)
        values = rng.choice(
            (
                [None] * 4,
                [-1] * 4,
                [1e300] * 4,
                [float("nan")] * 4,
                ["\x1b[2J"] * 4,
                [b"\xff"] * 4,
                [True] * 4,
                [[1]] * 4,
                [2**40] * 4,
            )
        )
        table = table.set_column(table.column_names.index(name), name, pa.array(values))
        way = "column replaced"
    else:
        document = json.loads(stored)
        name = rng.choice(list(document))
        document[name] = rng.choice(
            (None, 3, -1, 1e300, "x", "\x1b[2J", [], [None], [-5], ["x", 1], {}, {"n": []}, True, 2**80, [[[]]] * 9)
        )
        stored = json.dumps(document).encode()
        way = "metadata replaced"
        if rng.random() < 0.3:
            way, stored = "metadata damaged", changed(rng, stored, [stored])[1]
    sink = pa.BufferOutputStream()
    pq.write_table(table.replace_schema_metadata({key: stored}), sink)
    return way, sink.getvalue().to_pybytes()


def _read_trace(path: Path) -> None:
    from lepaute.trace import read_trace
    from lepaute.trace.breakdown import breakdown_of
    from lepaute.trace.describe import description
    from lepaute.trace.perfetto import events

    trace = read_trace(path)
    description(trace)
    if len(trace):
        breakdown_of(trace)
    for _ in events(trace):
        pass


def _changed_design(rng: random.Random, _data: bytes, others: list[bytes]) -> tuple[str, bytes]:
    return "bytes, lines, cells", mutated(rng, others)


def _read_design(path: Path) -> None:
    from lepaute.design import read_design
    from lepaute.design.summary import summary_of
    from lepaute.design.table import parse_design

    design = read_design(path)
    assert parse_design(design.to_csv(), "again") == design
    if path.stat().st_size % 100 == 0:
        summary_of(design)


KINDS = {
    "platform": Kind(_platforms, _read_platform),
    "set": Kind(_settings, _read_settings),
    "hpl-dat": Kind(_hpl_dat, _read_hpl_dat),
    "hostfile": Kind(_hostfiles, _read_hostfile),
    "rankfile": Kind(_rankfiles, _read_rankfile),
    "xml": Kind(_xml, _read_xml),
    "design": Kind(good_files, _read_design, _changed_design),
    "trace": Kind(_traces, _read_trace, _changed_trace),
}
