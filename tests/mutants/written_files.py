"""Files that Lepaute itself wrote and reads again, and YAML besides platforms and studies: originals, and readers.

A file that is one of a folder is put into a sound folder, which is made once for each process.
"""

import io
import json
import random
import tempfile
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any
from warnings import catch_warnings

from oracles.paje_by_hand import exchange, posted
from oracles.paraver_by_hand import prv, prv_of
from oracles.replays import call, write
from oracles.trace_events import check_events
from support_fit import kernel_rows, message_rows
from support_verify import PROGRAM, measured, predicted

from lepaute.measure import design as new_designs
from lepaute.measure.archive.reader import table_of
from lepaute.measure.design.factors import Levels
from lepaute.measure.design.grammar import parse_factor
from lepaute.measure.experiment.closing import metadata_of
from lepaute.measure.experiment.entries import RunState
from lepaute.measure.experiment.options import read_installation
from lepaute.measure.experiment.workspace import Workspace
from lepaute.measure.fit.observations.calls import calls_by_kernel, pooled_observations
from lepaute.measure.fit.observations.columns import Place, check_observations
from lepaute.measure.verify import seal
from lepaute.measure.verify.campaign import Case, Plan, RecordedRun
from lepaute.simulate import Hpl, Stencil, TraceReplay, predict
from lepaute.simulate.apps import replay
from lepaute.simulate.conditions import read_transfer
from lepaute.simulate.platform import load_platform
from lepaute.simulate.prediction.saved import read_prediction
from lepaute.simulate.trace import read_trace
from lepaute.simulate.trace.reading import files_of, read_foreign
from lepaute.simulate.trace.report import description
from lepaute.simulate.trace.smpi import convert
from lepaute.study.capacity import machines_of
from lepaute.study.checking import opened_study
from lepaute.study.schema import study_of
from lepaute.watch.store import open_store
from lepaute.watch.store.folder import read_index
from mutants.changes import changed, column_replaced, value_replaced

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def changed_json(rng: random.Random, data: bytes, others: list[bytes]) -> tuple[str, bytes]:
    """Values of the document, or bytes, or nothing: of what is compared with something every change is refused."""
    if rng.random() < 0.05:
        return "nothing", data
    if rng.random() < 0.5:
        return "value replaced", value_replaced(rng, data)
    return changed(rng, data, others)


def _scratch(what: str) -> Path:
    """A folder of this process alone, with nothing in it yet."""
    return Path(tempfile.mkdtemp(prefix=f"{what}-", dir=_parent()))


@cache
def _parent() -> Path:
    folder = tempfile.TemporaryDirectory(prefix="lepaute-mutants-")
    _KEPT.append(folder)
    return Path(folder.name)


_KEPT: list[Any] = []  # removed with the process


@cache
def _store() -> tuple[Path, Path]:
    """The folder of a sound store, and where in it its file of values is."""
    from support_store import values

    folder = _scratch("store") / "store"
    with open_store(folder) as store:
        store.add_values(values(nodes=1, jobs=2))
    return folder, folder / read_index(folder).files["factor_values"][0].place


def store_indices() -> list[bytes]:
    return [(_store()[0] / "store.json").read_bytes()]


def store_tables() -> list[bytes]:
    return [_store()[1].read_bytes()]


def read_store_index(path: Path) -> None:
    """Alone first, which takes a tenth of the time of a store."""
    alone = _parent() / "index"
    alone.mkdir(exist_ok=True)
    (alone / "store.json").write_bytes(path.read_bytes())
    read_index(alone)
    _read_store(path, _store()[0] / "store.json")


def read_store_table(path: Path) -> None:
    _read_store(path, _store()[1])


def _read_store(path: Path, place: Path) -> None:
    """With the file in the place of the sound one, which comes back at once."""
    sound = place.read_bytes()
    place.write_bytes(path.read_bytes())
    try:
        with open_store(_store()[0], create=False) as store:
            store.values()
            store.factors()
            store.events()
    finally:
        place.write_bytes(sound)


@cache
def predictions() -> list[bytes]:
    """Of both engines' applications, and one of a program."""
    of_hpl = predicted(Hpl(n=2000, q=2)).to_dict()
    with catch_warnings(action="ignore"):  # the cost of a cell is given
        stencil = Stencil(cells=(8, 8, 8), grid=(2, 1, 1), iterations=2, cell_time_s=1e-8)
        of_stencil = predict(stencil, "dahu", runs=2).to_dict()
    of_program = of_hpl | {
        "application": "./a.out",
        "parameters": {"np": 2, "arguments": ["1"], "computing": "none", "collectives": None, "fold_bytes": 0},
    }
    return [json.dumps(each).encode() for each in (of_hpl, of_stencil, of_program)]


def read_saved_prediction(path: Path) -> None:
    prediction = read_prediction(path)
    json.dumps(prediction.to_dict())
    assert prediction.time_s.mean is not None
    assert repr(prediction)
    assert [prediction.rate, prediction.energy_j, prediction.interval_basis]


@cache
def _campaign() -> tuple[list[Any], Any, Any, Path]:
    cases, plan = [Case(hpl, predicted(hpl)) for hpl in (Hpl(n=2000), Hpl(n=2000, q=2))], Plan(2, 1)
    folder = _scratch("campaign")
    seal.seal_predictions(cases, plan, PROGRAM, folder)
    return cases, plan, PROGRAM, folder


def sealed_predictions() -> list[bytes]:
    return [(_campaign()[-1] / "predictions.json").read_bytes()]


def read_sealed(path: Path) -> None:
    """With a checksum that agrees, that what is behind it is reached."""
    *campaign, folder = _campaign()
    data = path.read_bytes()
    (folder / "predictions.json").write_bytes(data)
    (folder / "predictions.sha256").write_text(f"{sha256(data).hexdigest()}  predictions.json\n")
    seal.sealed_lag_s(folder)
    seal.sealed_coretype(folder)
    seal.sealed_before(*campaign, folder)


@cache
def run_journals() -> list[bytes]:
    path = _scratch("journal")
    journal = seal.RunJournal(path, seal.Seal(path, "0" * 64, ""))
    for repeat in range(2):
        journal.add(RecordedRun(repeat, 0, repeat, 0, "2026-11-21T09:14:00+00:00", measured(1.0), ()))
    journal.close()
    return [journal.path.read_bytes()]


def read_run_journal(path: Path) -> None:
    folder = _parent() / "journals"
    folder.mkdir(exist_ok=True)
    (folder / seal.JOURNAL_FILE).write_bytes(path.read_bytes())
    seal.RunJournal(folder, seal.Seal(folder, "0" * 64, "")).close()


@cache
def recordings() -> list[bytes]:
    """Two ranks that compute, exchange and reduce; compressed, and not."""
    import pyarrow.parquet as pq

    rows = [
        *({"rank": rank, "name": "dgemm", "m": 8.0, "start_s": 0.0, "duration_s": 1.0 - rank / 2} for rank in (0, 1)),
        call(0, "Send", 1, 800.0, 7, start_s=1.1, duration_s=0.2),
        call(1, "Recv", 0, 800.0, 7, start_s=0.6, duration_s=0.7),
        *(call(at, "Allreduce", -1, 8.0, comm=0, start_s=1.4 + at / 10, duration_s=0.2 - at / 10) for at in (0, 1)),
        call(0, "Recv", 1, 4.0, 1, start_s=1.7, duration_s=0.1),
        call(1, "Send", 0, 4.0, 1, start_s=1.7, duration_s=0.1),
    ]
    more = {"hosts": ["a", "b"], "nodes": [0, 1], "warnings": ["w"], "unsized": [], "seed": 1, "resolution_s": 1e-9}
    path = write(_scratch("recording") / "run.parquet", rows, application="program", mpi="Open MPI", **more)
    plain = path.with_name("plain.parquet")
    pq.write_table(pq.read_table(path), plain, compression="none")
    return [path.read_bytes(), plain.read_bytes()]


def read_replay(path: Path) -> None:
    """Up to what the core would run."""
    replay._recording.cache_clear()  # files of one name, written within a tick of the clock
    behaviour = TraceReplay(path, own_code=(0.8, 1.0)).on(load_platform("dahu"))
    assert behaviour.application.ranks > 0
    behaviour.kernels.make()
    behaviour.core_parameters()


@cache
def paje_traces() -> list[bytes]:
    return [exchange().text().encode(), posted().text().encode()]


def read_paje(path: Path) -> object:
    trace = convert(path)
    assert (trace.duration_s >= 0).all()
    return description(trace), trace.to_frame().to_csv()


def time_independent_traces() -> list[bytes]:
    folder = Path(__file__).parents[1] / "data" / "time_independent" / "exchange.txt_files"
    return [b"".join(file.read_bytes() for file in sorted(folder.glob("*")))]


def goal_schedules() -> list[bytes]:
    more = b"num_ranks 2\nrank 0 {\na: send 8b to 1 tag 3 cpu 1 nic 0\nb: calc 5\nb requires a\n}\n"
    more += b"rank 1 {\nr: recv 8b from -1 tag -1\nc: calc 7 // a while\nc irequires r\n}\n"
    return [more, (Path(__file__).parents[1] / "data" / "goal" / "binomial_8.goal").read_bytes()]


@cache
def paraver_traces() -> list[bytes]:
    """The recording, with the names of calls in a file beside it."""
    folder = _scratch("paraver")
    (folder / "run.parquet").write_bytes(recordings()[0])
    return [prv_of(read_trace(folder / "run.parquet"), folder).read_bytes()]


def read_paraver(path: Path) -> object:
    prv(path.parent, 1).with_suffix(".pcf").replace(path.with_suffix(".pcf"))
    return read_foreign_trace(path)


def read_foreign_trace(path: Path) -> object:
    """Each event of the file stands in a row, or has a name."""
    files_of(path)
    trace = read_foreign(path)
    check_events(path, trace)
    return description(trace), trace.to_frame().to_csv()


@cache
def observations() -> list[bytes]:
    files = []
    for frame in (kernel_rows(), message_rows(blocks=1)):
        sink = io.BytesIO()
        frame.iloc[:40].to_parquet(sink)
        files.append(sink.getvalue())
    return files


def changed_table(rng: random.Random, data: bytes, others: list[bytes]) -> tuple[str, bytes]:
    """Three of four are sound Parquet of which a column is not what it should be."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if rng.random() < 0.25:
        return changed(rng, data, others)
    table = column_replaced(rng, pq.read_table(pa.BufferReader(data)))
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return "column replaced", sink.getvalue().to_pybytes()


def read_observations(path: Path) -> None:
    """As the table of kernels, or of messages, that a fit reads."""
    frame = table_of("observations/x.parquet", path.read_bytes())
    member = "observations/kernels.parquet" if "kernel" in frame.columns else "observations/p2p.parquet"
    check_observations(frame, Place("calibration.zip", member))
    if "kernel" in frame.columns:
        calls_by_kernel(pooled_observations([frame]))


@cache
def workspaces() -> list[bytes]:
    folder = _scratch("workspace")
    state = RunState(run_id="r", nodes=["n1", "n2"], name="e", parameters={"a": "1"}, warnings=["w"])
    Workspace.create(folder / "x.zip", state).close()
    return [(folder / "x.work" / "state.json").read_bytes()]


def read_workspace(path: Path) -> None:
    folder = _parent() / "x.work"
    folder.mkdir(exist_ok=True)
    (folder / "state.json").write_bytes(path.read_bytes())
    workspace = Workspace.reopen(folder)
    try:
        metadata_of(workspace)
    finally:
        workspace.close()


def transfers() -> list[bytes]:
    return [
        b"source: six studies\nrelative_sd: 0.034\nconfiguration_relative_sd: 0.01\nstudies: [a, b]\n",
        b"{source: x, relative_sd: 1e-3, studies: [a]}",
    ]


def read_transfer_layer(path: Path) -> None:
    read_transfer(path).to_dict()


_OWN = """import lepaute as lp


class Ring(lp.Application):
    \"\"\"Messages around a ring.\"\"\"

    n: int = 4
    grid: lp.Grid = lp.Grid("2x1")
    work = lp.Cost(1e-9)

    def run(self, me):
        yield me.compute(self.work, self.n)
        yield me.send((me.rank + 1) % me.ranks, 8)
        yield me.receive()
"""


def own_studies() -> list[bytes]:
    base = "base: {application: {class: ring.py:Ring, n: 8, grid: 2x1}, platform: dahu, lag: 2h, without: [days]}\n"
    return [
        f"question: whatif\n{base}factors: {{n: {{path: application.n, levels: [8, 16]}}}}\nruns: 2\n".encode(),
        f"question: tune\n{base}factors:\n  grid: {{path: application.grid, levels: [2x1, 1x2]}}\n"
        "constraints: [n > 2]\nderived: {per_n: time_s / n}\nbudget: {simulations: 9}\n".encode(),
    ]


def read_own_study(path: Path) -> None:
    """Up to the first simulation."""
    source = path.parent / "ring.py"
    if not source.exists():
        source.write_text(_OWN)
    opened_study(path)


@cache
def catalogues() -> list[bytes]:
    return [(EXAMPLES / "studies" / "catalogue.yaml").read_bytes()]


def read_catalogue(path: Path) -> None:
    """Priced, as a study of capacity does before it simulates."""
    machines_of(
        study_of(
            {
                "question": "capacity",
                "base": {"application": {"name": "hpl", "n": "20k", "grid": "8x8"}, "platform": "dahu"},
                "capacity": {"catalogue": path.name, "nodes": [2, 4]},
            }
        ),
        path.parent,
    )


def installations() -> list[bytes]:
    return [
        b"control: {turbo: false, governor: performance}\nwarm_up_s: 5\nmonitor_period_s: 1.5\nparameters: {n: 3}\n",
        b"{reference_period_s: 60, parameters: {a: b}}",
    ]


def read_installation_file(path: Path) -> None:
    read_installation(path)


def designs() -> list[bytes]:
    """Small ones of every kind."""
    odd = ["plain", "a,b", 'say "hi"', "", " edge ", "é∞", "#x", "1", "uniform:1:2"]
    made = [
        new_designs.dgemm_design(1, products=2, product_range=(1e3, 1e5)),
        new_designs.hpl_step_design(1, rows=4),
        new_designs.p2p_design(1, counts={"recv": 4, "wtime": 2}),
        new_designs.full_factorial({"word": odd, "ratio": [0.1, 1e-300, -0.0]}, replications=2, blocks=2, seed=1),
        new_designs.latin_hypercube(
            {"size_bytes": new_designs.log_uniform(1, 2**62), "x": new_designs.uniform(-1.0, 1e9)}, count=8, seed=1
        ),
        new_designs.fractional({"a": [0, 1], "b": [0, 1], "c": ["on", "off"]}, generators=["c=a*b"], seed=1),
        new_designs.collective_design(1, sizes_bytes=(1, 4), replications=1),
    ]
    made.append(
        new_designs.mix(made[3], new_designs.full_factorial({"n": [1, 2]}, blocks=2, seed=2), kinds=["a", "b"], seed=3)
    )
    return [design.to_csv().encode() for design in made]


def factors() -> list[bytes]:
    texts = "size_bytes=1,1Ki,1Mi", "op=send,recv", "n=uniform:1:100", "n=loguniform:1:1e6", "m,k=64,8;128,16"
    return [*(text.encode() for text in texts), b'word="a,b",c', b"x=0.5,-1e3"]


def read_factor(path: Path) -> None:
    names, factor = parse_factor(path.read_bytes().decode(errors="surrogateescape"))
    if isinstance(factor, Levels):
        new_designs.full_factorial({names: factor}, seed=1).to_csv()
