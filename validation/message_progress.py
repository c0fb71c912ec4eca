"""Does a message progress while a peer computes? Two ranks on two cores of this machine, two MPI libraries.

It needs Debian's mpich, openmpi and OpenBLAS; four to eight minutes. Fixed before, except a trial that transports work:

* transports: Open MPI (ob1) by shared memory with CMA and without, and by TCP; MPICH by shared memory and TCP (UCX);
* messages (message_progress.c): 4 kB to 8 MB, log-uniform, in five classes; either rank sends; each rank computes
  nothing or a dgemm of 0.3 to 10 ms between posting and MPI_Wait; in half of them the receiver calls MPI_Iprobe between
  pieces of dgemm, then MPI_Recv. Receives are posted 20 us before; probed messages are sent at a random moment of a
  piece;
* eight programs a transport in random order; messages during which a rank was preempted or late are left out, counted;
* baseline: running median over the nine nearest sizes where both ranks wait inside MPI;
* slopes (Theil-Sen, 95 % by resampling programs) of the delay of delivery against the sender's computing, and of the
  sender's MPI_Wait against the receiver's: 1, the message waits for the next call; 0, it does not; above 0.8 and below
  0.2 are read so. Also: the time left when both are inside MPI again over the baseline; pieces of dgemm until MPI_Recv;
  MPI_Recv of a receiver that computes over one that spins. No goal: whatever comes out decides the model.

Added afterwards: the slope of MPI_Recv after MPI_Iprobe against what the sender still computes.
"""

import os
import random
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from shutil import which

import numpy as np
import pandas
from support.real_runs import AS_ROOT
from support.report import finish, options_of, run_main, say, stored

from lepaute.errors import LepauteError
from lepaute.kit.builds import built_once, digests

STUDY = "message_progress"
SOURCE = Path(__file__).with_suffix(".c")
INCLUDES = Path("/usr/include/x86_64-linux-gnu/openblas-pthread")
LIBRARIES = ("openmpi", "mpich")
TRANSPORTS = {
    "Open MPI, shared memory (CMA)": ("openmpi", ("--mca", "btl", "vader,self")),
    "Open MPI, shared memory (no CMA)": (
        "openmpi", ("--mca", "btl", "vader,self", "--mca", "btl_vader_single_copy_mechanism", "none")),
    "Open MPI, TCP": ("openmpi", ("--mca", "btl", "tcp,self")),
    "MPICH, shared memory": ("mpich", ()),
    "MPICH, TCP": (
        "mpich", ("-genv", "MPIR_CVAR_NOLOCAL", "1", "-genv", "UCX_TLS", "tcp,self", "-genv", "UCX_NET_DEVICES", "lo")),
}  # fmt: skip
PLACED = {
    "openmpi": ("--mca", "pml", "ob1", "--bind-to", "core", "--map-by", "core"),
    "mpich": ("-bind-to", "user:0,1"),
}
SIZES_BYTES = (4e3, 8e6)
CLASSES_BYTES = (4e3, 16e3, 64e3, 256e3, 1e6, 8.1e6)
COMPUTE_US = (300.0, 10_000.0)
POSTED_AFTER_US = 20.0
PROGRAMS, MESSAGES = 8, 560
LIMIT_S, GRACE_S = 120.0, 3.0
NEIGHBOURS = 9
RESAMPLES = 400
SEED = 20261122


def main() -> int:
    options = options_of(__doc__, ())
    frame = stored(options, f"{STUDY}_messages", partial(measured, options.quick))
    return finish(options, STUDY, flat(analysed(frame)), [], text(frame))


def measured(quick: bool) -> pandas.DataFrame:
    """All messages of all programs."""
    for name in (f"{what}.{library}" for library in LIBRARIES for what in ("mpicc", "mpirun")):
        if not which(name):
            raise LepauteError(f"{name} is missing; scripts/install_debian.sh test installs it")
    draw = random.Random(SEED)
    starts = [(name, number) for name in TRANSPORTS for number in range(2 if quick else PROGRAMS)]
    draw.shuffle(starts)
    programs = {library: program(library) for library in LIBRARIES}
    parts = []
    for order, (name, number) in enumerate(starts):
        say(f"{order + 1} of {len(starts)}: {name}")
        library, options = TRANSPORTS[name]
        plan = [message(draw) for _ in range(100 if quick else MESSAGES)]
        part = run(programs[library], [f"mpirun.{library}", *PLACED[library], *options, "-np", "2"], plan)
        parts.append(part.assign(transport=name, program=number, order=order))
    frame = pandas.concat(parts, ignore_index=True)
    first = ["transport", "program", "order"]
    return frame[[*first, *(column for column in frame.columns if column not in first)]].round(1)


def program(library: str) -> Path:
    """message_progress.c built with the compiler of an MPI library, once."""
    command = [f"mpicc.{library}", "-O2", "-std=c11", f"-I{INCLUDES}", str(SOURCE), "-lopenblas"]

    def build(folder: Path) -> None:
        subprocess.run([*command, "-o", folder / STUDY], check=True)

    return built_once(f"{STUDY}-{library}", [*command, *digests([SOURCE])], STUDY, build) / STUDY


def message(draw: random.Random) -> str:
    """A line of the plan."""
    sender, probes = draw.randrange(2), draw.randrange(2)
    size_bytes = int(log_uniform(draw, SIZES_BYTES))
    sender_us, receiver_us = (log_uniform(draw, COMPUTE_US) if draw.randrange(2) else 0.0 for _ in range(2))
    posted_us = POSTED_AFTER_US + (draw.uniform(0, max(receiver_us, POSTED_AFTER_US)) if probes else 0.0)
    return f"{sender} {probes} {size_bytes} {posted_us:.0f} {sender_us:.0f} {receiver_us:.0f}\n"


def log_uniform(draw: random.Random, bounds: tuple[float, float]) -> float:
    return float(np.exp(draw.uniform(*np.log(bounds))))


def run(program: Path, start: list[str], plan: list[str]) -> pandas.DataFrame:
    """The messages of one program."""
    with tempfile.TemporaryDirectory() as folder:
        inputs, outputs = Path(folder, "plan"), Path(folder, "result.csv")
        inputs.write_text("".join(plan), encoding="utf-8")
        command = [*start, str(program), str(inputs), str(outputs)]
        environment = os.environ | AS_ROOT | {"OPENBLAS_NUM_THREADS": "1"}
        running = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        try:
            deadline_s = time.monotonic() + LIMIT_S
            while running.poll() is None and not outputs.is_file() and time.monotonic() < deadline_s:
                time.sleep(0.1)
            running.wait(GRACE_S)
        except subprocess.TimeoutExpired:  # MPI_Finalize of MPICH 4.0.2 through TCP hangs now and then
            running.terminate()
            running.wait()
        if not outputs.is_file():
            raise RuntimeError(f"no result from: {' '.join(command)}")
        return pandas.read_csv(outputs)


def undisturbed(frame: pandas.DataFrame) -> pandas.DataFrame:
    """Messages that count, with the derived columns of the analysis."""
    rows = frame[(frame["switches"] == 0) & (frame["late"] == 0)].copy()
    rows["class"] = np.digitize(rows["size_bytes"], CLASSES_BYTES) - 1
    rows["sender_computes"] = rows["sender_asked_us"] > 0
    rows["receiver_computes"] = rows["receiver_asked_us"] > 0
    both_inside_us = rows[["receiver_entered_us", "sender_entered_us"]].max(axis=1)
    rows["left_us"] = rows["receiver_done_us"] - both_inside_us
    rows["recv_us"] = rows["receiver_done_us"] - rows["receiver_entered_us"]
    for column in ("delivery_baseline_us", "completion_baseline_us", "recv_baseline_us"):
        rows[column] = np.nan
    for _, part in rows.groupby("transport"):
        inside = part[~part["sender_computes"] & ~part["receiver_computes"]]
        waiting, spinning = inside[inside["way"] == "wait"], inside[inside["way"] == "probe"]
        sizes = part["size_bytes"].to_numpy()
        rows.loc[part.index, "delivery_baseline_us"] = baseline(waiting, "receiver_done_us", sizes)
        rows.loc[part.index, "completion_baseline_us"] = baseline(waiting, "sender_done_us", sizes)
        rows.loc[part.index, "recv_baseline_us"] = baseline(spinning, "recv_us", sizes)
    rows["delivery_delay_us"] = rows["receiver_done_us"] - rows["delivery_baseline_us"]
    rows["completion_delay_us"] = rows["sender_done_us"] - rows["completion_baseline_us"]
    rows["left"] = rows["left_us"] / rows["delivery_baseline_us"]
    rows["recv_ratio"] = rows["recv_us"] / rows["recv_baseline_us"]
    rows["still_us"] = rows["sender_entered_us"] - rows["receiver_entered_us"]
    rows["recv_delay_us"] = rows["recv_us"] - rows["recv_baseline_us"]
    rows["pieces_to_notice"] = rows["receiver_entered_us"] / rows["receiver_asked_us"].where(rows["receiver_computes"])
    return rows


def baseline(rows: pandas.DataFrame, column: str, size_bytes: np.ndarray) -> np.ndarray:
    """Running median of the nearest in size, interpolated linearly on logarithms."""
    rows = rows.sort_values("size_bytes")
    if len(rows) < NEIGHBOURS:
        return np.full(len(size_bytes), np.nan)
    typical = rows[column].rolling(NEIGHBOURS, center=True, min_periods=NEIGHBOURS // 2 + 1).median()
    return np.exp(np.interp(np.log(size_bytes), np.log(rows["size_bytes"]), np.log(typical)))


def theil_sen(rows: pandas.DataFrame, x: str, y: str) -> float:
    """Median of the slopes between all pairs of messages; NaN with fewer than two."""
    across, up = rows[x].to_numpy(), rows[y].to_numpy()
    i, j = np.triu_indices(len(rows), 1)
    run_us = across[j] - across[i]
    apart = np.abs(run_us) > 1.0
    return float(np.median((up[j] - up[i])[apart] / run_us[apart])) if apart.any() else float("nan")


def with_interval(rows: pandas.DataFrame, statistic: Callable[[pandas.DataFrame], float]) -> tuple[float, ...]:
    """A statistic and its 95 % interval by resampling programs."""
    rng = np.random.default_rng(SEED)
    parts = [part for _, part in rows.groupby("program")]
    if len(rows) < NEIGHBOURS or len(parts) < PROGRAMS // 2:
        return (float("nan"),) * 3
    drawn = [
        statistic(pandas.concat([parts[i] for i in rng.integers(len(parts), size=len(parts))]))
        for _ in range(RESAMPLES)
    ]
    low, high = np.nanquantile(drawn, [0.025, 0.975])
    return statistic(rows), float(low), float(high)


def analysed(frame: pandas.DataFrame) -> pandas.DataFrame:
    """A row for each transport and class of sizes; columns of (value, low, high)."""
    rows = undisturbed(frame)
    found = []
    for (name, number), part in rows.groupby(["transport", "class"], sort=False):
        wait, probe = part[part["way"] == "wait"], part[part["way"] == "probe"]
        s, r = "sender_computes", "receiver_computes"
        only_sender, only_receiver = wait[wait[s] & ~wait[r]], wait[~wait[s] & wait[r]]
        both = wait[wait[s] & wait[r]]
        pieces = probe[~probe[s] & probe[r]]
        found.append(
            {
                "transport": name,
                "class": int(number),
                "baseline_us": float(wait.loc[~wait[s] & ~wait[r], "receiver_done_us"].median()),
                "sender": with_interval(
                    only_sender, lambda r: theil_sen(r, "sender_entered_us", "delivery_delay_us")),
                "receiver": with_interval(
                    only_receiver, lambda r: theil_sen(r, "receiver_entered_us", "completion_delay_us")),
                "left_sender": median(only_sender, "left"),
                "left_receiver": median(only_receiver, "left"),
                "left_both": median(both, "left"),
                "notice": median(pieces, "pieces_to_notice"),
                "recv": median(pieces, "recv_ratio"),
                "recv_sender": with_interval(
                    probe[probe[s] & probe[r] & (probe["still_us"] > 0)],
                    lambda r: theil_sen(r, "still_us", "recv_delay_us")),
                "recv_us": float(pieces["recv_us"].median()),
            }
        )  # fmt: skip
    order = {name: position for position, name in enumerate(TRANSPORTS)}
    return pandas.DataFrame(sorted(found, key=lambda row: (order[row["transport"]], row["class"])))


def median(rows: pandas.DataFrame, column: str) -> tuple[float, ...]:
    return with_interval(rows, lambda r: float(r[column].median()))


def flat(table: pandas.DataFrame) -> pandas.DataFrame:
    """The table with a column for each number."""
    columns = {}
    for name in table.columns:
        if isinstance(table[name].iloc[0], tuple):
            for position, suffix in enumerate(("", "_low", "_high")):
                columns[name + suffix] = table[name].map(lambda value, position=position: round(value[position], 3))
        else:
            columns[name] = table[name]
    return pandas.DataFrame(columns)


def text(frame: pandas.DataFrame) -> str:
    counted = undisturbed(frame)
    return f"""## Messages whose peers compute

{len(frame)} messages between two ranks, each on a core of its own of this machine (Open MPI 4.1.4, MPICH 4.0.2), of
which {len(counted)} count; during the others a rank was preempted or late (`validation/message_progress.py`).

{READING}
{{cases}}
"""


READING = """* There is no asynchronous progress: slopes of delay against computing are about 0 or 1 at every size, also
  after a successful MPI_Iprobe, but for the sizes around MPICH's eager limit of 8 kB.
* Eager messages (up to 8 kB in MPICH's shared memory, 64 kB in Open MPI's TCP, 20 kB in MPICH's; at most 4 kB in Open
  MPI's shared memory) never wait.
* Rendezvous messages wait for the next MPI call of the receiver, and, by TCP or shared memory without CMA, of the
  sender as well. The whole transfer is then still to come, and takes 1.0 to 1.3 times as long as without dgemm.
* A receiver that probes notices a message with its first MPI_Iprobe (Open MPI), often the second (MPICH). MPI_Recv of a
  rendezvous message then takes 1.0 to 1.4 times as long as after spinning (up to 1.9 from 16 to 64 kB, Open MPI, CMA).
"""


if __name__ == "__main__":
    run_main(main)
