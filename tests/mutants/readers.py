"""For each kind of input: what is changed, and all that the command line does with it before anything is simulated."""

import contextlib
import gzip
import json
import random
import sqlite3
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from lepaute.errors import LepauteError
from lepaute.kit.documents import read_bytes, read_text
from lepaute.kit.hostfiles import read_slots
from lepaute.kit.node_sets import parse_node_set
from lepaute.kit.printable import printable
from lepaute.kit.quantities import settings_of
from lepaute.measure.compare.benchmark_output import is_benchmark_output, outputs, read_output
from lepaute.measure.design import read_design
from lepaute.measure.design.summary import summary_of
from lepaute.measure.design.table import parse_design
from lepaute.measure.fit.duration_tables import read_durations
from lepaute.measure.fit.population.coefficients import read_coefficients
from lepaute.simulate.apps.hpl.hpl_dat import read_hpl_dat
from lepaute.simulate.apps.hpl.hpl_out import read_hpl_results
from lepaute.simulate.machine.core import core_topology
from lepaute.simulate.machine.mapping import read_hostfile, read_rankfile
from lepaute.simulate.platform.io import SHIPPED_FOLDER, load_platform, override, parse_platform
from lepaute.simulate.platform.schema import platform_text
from lepaute.simulate.platform.simgrid import export_xml, import_xml
from lepaute.simulate.platform.simgrid.machines import LARGEST_TEXT_BYTES
from lepaute.simulate.platform.summary import summary
from lepaute.simulate.trace import read_trace
from lepaute.simulate.trace.breakdown import breakdown_of
from lepaute.simulate.trace.report import description
from lepaute.simulate.trace.viewers import events
from lepaute.study.schema import load_study
from lepaute.watch.changelog import read_changelog
from lepaute.watch.foreign import read_foreign
from lepaute.watch.foreign.csv_table import read_csv_table
from lepaute.watch.foreign.mapping import parse_mapping, read_mapping
from lepaute.watch.foreign.rows import Source
from lepaute.watch.proposals.proposed_event import read_inventory
from mutants import cut_traces
from mutants import written_files as written
from mutants.changes import changed, column_replaced

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
    """originals: what is changed;  read: a mutant that stands in a file, raising LepauteError where it is refused.

    share: of the mutants, where a tenth of those of another kind cost as much
    rows : which lines say something of their own, a pattern; `read` then returns what they are read as
    """

    originals: Callable[[], list[bytes]]
    read: Callable[[Path], Any]
    change: Callable[[random.Random, bytes, list[bytes]], tuple[str, bytes]] = changed
    share: float = 1.0
    rows: str = ""


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


def outcome_of(number: int, way: str, read: Callable[[Path], Any], path: Path) -> Outcome:
    """What becomes of one mutant."""
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


def _files(*patterns: str) -> Callable[[], list[bytes]]:
    """Of tests/data."""
    return lambda: [path.read_bytes() for pattern in patterns for path in sorted(DATA.glob(pattern))]


def _platforms() -> list[bytes]:
    texts = [path.read_bytes() for path in sorted((DATA / "platforms").glob("*.yaml"))]
    texts += [b"\n".join(at.read_bytes().split(b"\n")[:60]) for at in sorted((DATA / "platforms/bad").glob("*.yaml"))]
    shipped = (SHIPPED_FOLDER / "exascale-like.yaml").read_bytes()
    anchored = texts[0] + b"\npower: &p {idle_W: 1, computing_W: 2, communicating_W: 2}\n"
    return [*texts, shipped, anchored, *texts[:1] * 20]


def _read_platform(path: Path) -> None:
    platform = load_platform(path)
    summary(platform)
    assert parse_platform(platform_text(platform)).sha256 == platform.sha256
    if platform.nodes.count <= 1000:
        core_topology(platform)


_FIELDS = (
    "name", "nodes.count", "nodes.cores", "nodes.cpus", "network.flow_factor", "network.remote.segments[0].latency_s",
)  # fmt: skip


def _settings() -> list[bytes]:
    values = ("x", "64", "4", "2", "scale", "1e-6", "[1, 2]", "{kind: torus, parameters: '4,4'}", "{a: &a 1, b: *a}")
    return [f"{field}={value}".encode() for field in (*_FIELDS, "topology", "power", "kernels[0]") for value in values]


def _read_settings(path: Path) -> None:
    text = path.read_bytes().decode(errors="surrogateescape")  # as arguments come
    override(load_platform(DATA / "platforms/small.yaml"), settings_of([text]))


def _read_hpl_dat(path: Path) -> None:
    dat = read_hpl_dat(path)
    dat.combinations()
    dat.text()


def _hostfiles() -> list[bytes]:
    return [
        b"# nodes\ndahu-1 slots=4\ndahu-2 slots=32 max_slots=32\ndahu-[3,5-6]:8\ndahu-4\n",
        b"node1.site slots = 2\nnode2.site slots = 2\nnode1.site\n",
        b"root@dahu-3 2\ndahu-4 cpu=1 user=x\ndahu-5 max_slots=2\n",
    ]


def _rankfiles() -> list[bytes]:
    return [
        b"rank 0=dahu-1 slot=0:1\nrank 1=dahu-1 slot=3\nrank 2=dahu-2 slots=0-3\n",
        b"# three\nrank 0 = n1 slot=0:1,2\nrank 1 = n1 slot=1:*\nrank 2 = n2 slot=7\n",
    ]


def _xml() -> list[bytes]:
    files = [path.read_bytes() for path in sorted((DATA / "simgrid").glob("*.xml"))]
    small = load_platform(DATA / "platforms/small.yaml")
    torus = override(small, {"nodes.count": "8", "topology": '{kind: torus, parameters: "2,2,2"}'})
    tree = override(small, {"nodes.count": "4", "topology": '{kind: fat-tree, parameters: "2;2,2;1,2;1,1"}'})
    return [*files, *(export_xml(each).text.encode() for each in (small, torus, tree))]


def _read_xml(path: Path) -> None:
    imported = import_xml(read_bytes(path, "a platform file of SimGrid", LARGEST_TEXT_BYTES), path.name)
    platform = imported.platform
    assert parse_platform(platform_text(platform)).sha256 == platform.sha256
    if platform.nodes.count <= 100:
        export_xml(platform)


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
        way, table = "column replaced", column_replaced(rng, table)
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
    import pyarrow.parquet as pq

    trace = read_trace(path)
    assert len(trace) == pq.read_metadata(path).num_rows
    description(trace)
    if len(trace):
        breakdown_of(trace)
    for _ in events(trace):
        pass


def _read_design(path: Path) -> object:
    design = read_design(path)
    assert parse_design(design.to_csv(), "again") == design
    if path.stat().st_size % 100 == 0:
        summary_of(design)
    return design.to_csv()


_FOREIGN = DATA / "watch" / "foreign"
_MAPPING = b"""cluster: {value: c}
node: node
cpu: cpu
job: jobid
date: {column: start, form: iso, timezone: Europe/Paris}
factors: {rate_flops: {column: rate, unit: Gflop/s}, heat_degC: {column: heat, unit: K}}
state: {column: end, done: [ok], failed: [crash]}
stratum: [blas]
"""
_CSV = b"""start,node,cpu,jobid,rate,heat,end,blas
2026-01-02T03:04:05+01:00,1,0,17,1.5,300.5,ok,mkl
2026-01-03,1,1,18,1.75,,ok,mkl
2026-01-04 12:30,"n,2",-1,19,NaN,301,ok,"open
blas"
2026-01-05T00:00:00Z,1,0,20,,,crash,mkl
"""


def _changed_database(rng: random.Random, data: bytes, others: list[bytes]) -> tuple[str, bytes]:
    """Bytes, or the report of a session: its pages of JSON, or a value in it."""
    if rng.random() < 0.4:
        return changed(rng, data, others)
    with contextlib.closing(sqlite3.connect(":memory:")) as base:
        base.deserialize(data)
        uuid, blob = rng.choice(base.execute("select uuid, json_blob from sessions").fetchall())
        if rng.random() < 0.5:
            way, text = changed(rng, blob.encode(), [blob.encode()])
        else:
            report = json.loads(blob)
            inside = rng.choice(
                [report, report["session_info"], report["runs"][0], *report["runs"][0]["testcases"] * 3]
            )
            inside[rng.choice(list(inside))] = rng.choice(
                (
                    None, 3, -1, 1e300, "x", "\x1b[2J", "\ud800", [], {}, {"a:b": [1]}, {"a:b": [1, 0, 0, 0, "s"]},
                    True, 2**80,
                )
            )  # fmt: skip
            way, text = "value replaced", json.dumps(report).encode()
        base.execute("update sessions set json_blob = ? where uuid = ?", (text, uuid))
        base.commit()
        return f"report: {way}", bytes(base.serialize())


def _hpl_output() -> list[bytes]:
    files = [(DATA / "hpl_out/HPL.out").read_bytes(), (_FOREIGN / "hpccoutf.txt").read_bytes()]
    start = b"\nHPL_pdgesv() start time Fri Sep  5 01:31:45 2025\n"
    line = b"WR11C2R4       82432   224    16    20              73.92             5.0515e+03"
    short = b"SWAP   : Mix (threshold = 64)\n" + b"\n".join([line + start, line.replace(b"11C2", b"12R2") + start] * 2)
    others = [(DATA / "hpl_out" / name).read_bytes() + start for name in ("amd_swp_column.out", "nvidia_no_date.out")]
    return [short, short, files[1], files[0].replace(b"\n---", start + b"---"), *others]


def _read_foreign(path: Path) -> object:
    """As the format that it is recognised as, and as the one that it was."""
    asked = "hpl" if path.suffix == ".hpl-output" else "reframe"
    values = read_foreign(path, asked, node="n1" if asked == "hpl" or b"reframe 3" in path.read_bytes()[:100] else "")
    assert len(values)
    values.value.sum()
    return values.to_csv(), values.attrs


def _read_csv(path: Path) -> object:
    values = read_foreign(path, mapping=parse_mapping(_MAPPING.decode(), "m.yaml"))
    assert len(values)
    return values.to_csv(), values.attrs


def _read_mapping(path: Path) -> None:
    mapping = read_mapping(path)
    assert mapping.columns()
    assert len(read_csv_table(Source(path, _CSV), mapping, "", ""))


_DURATIONS = DATA / "duration_tables"
_OSU_RUNS = b"""# OSU MPI Broadcast Latency Test v7.4
# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations
1                       4.34              4.10              4.60        1000
64                      4.50              4.20              4.90        1000
# OSU MPI Non-blocking Allreduce Latency Test v7.4
# Size           Overall(us)       Compute(us)    Pure Comm.(us)        Overlap(%)
4                      10.54              5.85              4.89              4.31
# OSU MPI Barrier Latency Test v7.4
# Avg Latency(us)
             12.30
"""


def _benchmark_outputs() -> list[bytes]:
    return [(_DURATIONS / name).read_bytes() for name in ("osu_latency.txt", "imb_mpi1.txt")] + [_OSU_RUNS, _OSU_RUNS]


def _short_outputs() -> list[bytes]:
    """Of few sizes: each that is compared takes milliseconds."""
    whole = _benchmark_outputs()
    return [b"\n".join(data.split(b"\n")[:lines]) + b"\n" for data, lines in zip(whole, (6, 28, 99, 99), strict=True)]


def _compare_output(path: Path) -> object:
    """With itself, an empty line more."""
    read = read_output(path)
    assert is_benchmark_output(path)
    other = path.with_suffix(".other")
    other.write_bytes(path.read_bytes() + b"\n")
    outputs(path, other).to_dict()
    return read


def _studies() -> list[bytes]:
    examples = DATA.parents[1] / "examples"
    return [
        file.read_bytes() for name in ("studies", "literature") for file in sorted((examples / name).glob("*.yaml"))
    ]


def _inventories() -> list[bytes]:
    return [
        b"node,chassis,rack\nnode[1-4],c1,r1\nnode[5-8],c2,r1\nnode9,,r2\n",
        b"\xef\xbb\xbfnode,switch\n13/14,s1\n15,s2\n",
    ]


def _read_changelog(path: Path) -> object:
    """As both of its files; refused where it is neither."""
    with contextlib.suppress(LepauteError):
        return read_changelog(path)
    return read_changelog(None, path)


_COEFFICIENTS = b"""# of a day
day,node,cpu,mnk,1,sd:mnk
1,1,0,1.1e-10,2e-6,1e-12
1,1,1,1.2e-10,2.5e-6,2e-12
2,1,0,1.15e-10,2e-6,1e-12
2,1,1,1e-10,-1e-6,1e-12
"""


#: Lines with a word, and no comments.
LINES = r"\s*[^#\s]"
KINDS = {
    "durations": Kind(
        _benchmark_outputs,
        lambda path: [
            (table, table.x.tolist(), table.duration_s.tolist(), table.notes) for table in read_durations(path)
        ],
        rows=r"\s*\d",
    ),
    "hpl-results": Kind(_files("hpl_out/*.out"), lambda path: read_hpl_results(path, {}), rows=r"W[RC]"),
    "study": Kind(_studies, load_study),
    "inventory": Kind(_inventories, read_inventory, rows=LINES),
    "changelog": Kind(_files("**/events.csv", "**/outliers.csv"), _read_changelog, rows=LINES),
    "coefficients": Kind(lambda: [_COEFFICIENTS], read_coefficients, rows=LINES),
    "slots": Kind(
        _hostfiles, lambda path: read_slots(read_text(path, "a hostfile"), path.name), rows=r"[^#=]*(slots?.*)?$"
    ),
    "node-set": Kind(
        lambda: [b"node[1-4,7].site", b"a,b,c-[001-100]", b"dahu-1-2"],
        lambda path: parse_node_set(path.read_bytes().decode(errors="surrogateescape")),
    ),
    "benchmark-output": Kind(_short_outputs, _compare_output, share=0.2, rows=r"\s*\d"),
    "reframe": Kind(_files("watch/foreign/reframe*.log"), _read_foreign, rows=r"(?!.*job_completion_time).*\S"),
    "reframe-base": Kind(_files("watch/foreign/reframe_results.db"), _read_foreign, _changed_database),
    "hpl-output": Kind(_hpl_output, _read_foreign, rows=r"W[RC]"),
    "csv": Kind(lambda: [_CSV, gzip.compress(_CSV)], _read_csv, rows=LINES),
    "mapping": Kind(lambda: [_MAPPING], _read_mapping),
    "platform": Kind(_platforms, _read_platform),
    "set": Kind(_settings, _read_settings),
    "hpl-dat": Kind(lambda: [(DATA / "hpl_dat/HPL.dat").read_bytes()], _read_hpl_dat),
    "hostfile": Kind(_hostfiles, lambda path: read_hostfile(path, load_platform("dahu")), rows=r"[^#=]*(slots?.*)?$"),
    "rankfile": Kind(_rankfiles, lambda path: read_rankfile(path, load_platform("dahu")), rows=LINES),
    "xml": Kind(_xml, _read_xml),
    "design": Kind(written.designs, _read_design, rows=LINES),
    "trace": Kind(written.recordings, _read_trace, _changed_trace),
    "replay": Kind(written.recordings, written.read_replay, _changed_trace),
    "smpi-trace": Kind(written.paje_traces, written.read_paje, rows=r"([6-9]|1\d) "),
    "time-independent": Kind(written.time_independent_traces, written.read_foreign_trace, rows=LINES),
    "goal": Kind(written.goal_schedules, written.read_foreign_trace, rows=r"(\w+ ?: ?)?(send|recv|calc)[^/]*$"),
    "paraver": Kind(written.paraver_traces, written.read_paraver, rows=LINES),
    "otf2": Kind(cut_traces.archives, cut_traces.read_damaged, cut_traces.changed_file, 0.3),
    **{
        f"cut-{name}": Kind(partial(cut_traces.traces, f".{name}"), cut_traces.read_cut, cut_traces.cut_file, 0.3)
        for name in ("parquet", "otf2", "prv", "txt", "goal")
    },
    "observations": Kind(written.observations, written.read_observations, written.changed_table),
    "store-index": Kind(written.store_indices, written.read_store_index, written.changed_json, 0.2),
    "store-table": Kind(written.store_tables, written.read_store_table, written.changed_table, 0.1),
    "prediction": Kind(written.predictions, written.read_saved_prediction, written.changed_json),
    "sealed": Kind(written.sealed_predictions, written.read_sealed, written.changed_json),
    "run-journal": Kind(written.run_journals, written.read_run_journal),
    "workspace": Kind(written.workspaces, written.read_workspace, written.changed_json),
    "transfer": Kind(written.transfers, written.read_transfer_layer),
    "own-study": Kind(written.own_studies, written.read_own_study),
    "catalogue": Kind(written.catalogues, written.read_catalogue),
    "installation": Kind(written.installations, written.read_installation_file),
    "factor": Kind(written.factors, written.read_factor),
}
