"""Runs command lines in processes forked off one that has the package imported already: milliseconds each."""

import contextlib
import gc
import json
import os
import pkgutil
import resource
import shutil
import signal
import subprocess
import sys
import time
import warnings
import zlib
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from support_limits import HANG_CPU_S, HANG_S
from support_rights import obey_permissions

import lepaute

#: Memory of a command line above that of the command with nothing hostile in it. What a hostile value of these sizes
#: may need (copies of a text of 100 kB, a table) is far below; what it declares (10^9 nodes) is far above.
MEMORY_BYTES = 256 << 20
#: Command lines of a process.
TOGETHER = 32
#: Of addresses: libraries reserve more than they use.
RESERVED_BYTES = 3 << 30
#: Folders of the cache that any command may leave (lepaute.watch.kept, lepaute.simulate.platform.io).
MEANT_TO_STAY = {"judgements", "platforms"}
#: Of other packages; of ours, everything.
PRELOADED = (
    *("pandas", "duckdb", "yaml", "jinja2", "pyarrow.parquet", "pyarrow.dataset", "pyarrow.pandas_compat", "_strptime"),
    *("matplotlib.figure", "matplotlib.backends.backend_agg", "PIL.BmpImagePlugin", "PIL.JpegImagePlugin"),
    *("PIL.GifImagePlugin", "PIL.PpmImagePlugin"),
)
#: Needs packages of an extra.
NOT_PRELOADED = ("lepaute.measure.fit.population.posterior",)


@dataclass(frozen=True)
class Places:
    """Where and how command lines run.

    path: its programs are found, each line is run once, and the answer has the "files" that it wrote
    most_cpu_s, most_s: of each line; kept: files that each finds in its folder, with their texts
    more_bytes: of memory than the first line; those that take more are run again, alone
    columns: of the terminal that the streams are taken for; 0: they are files
    """

    folder: str
    fifo: str
    path: str | None = None
    most_cpu_s: float = HANG_CPU_S
    most_s: float = HANG_S
    more_bytes: int = MEMORY_BYTES // 2
    kept: dict[str, str] = field(default_factory=dict)
    columns: int = 0


def serve() -> None:
    """Reads {"cases": [[word, ...], ...]} with fields of Places as lines of JSON; answers what became of each."""
    for module in pkgutil.walk_packages(lepaute.__path__, "lepaute."):
        if module.name not in NOT_PRELOADED and "node_agent" not in module.name and not module.name.endswith("main"):
            import_module(module.name)
    for name in PRELOADED:
        import_module(name)
    dispatcher: Any = import_module("lepaute.cli.main")
    # Of a short command line, most of the time: its options are built once, not for each.
    commands: Any = import_module("lepaute.cli.commands")
    ready = {command.name: commands.built(command.name) for command in dispatcher.COMMANDS}
    commands.built = lambda name, _arguments: ready[name]
    # Bundled in another process: the JavaScript engine that does it has threads, which a fork lacks.
    print_library = "from lepaute.watch.site.write import plot_library; print(plot_library(), end='')"
    library = subprocess.check_output([sys.executable, "-c", print_library], text=True)
    site: Any = import_module("lepaute.watch.site.write")
    site.plot_library = lambda: library
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(run_all(request.pop("cases"), Places(**request))), flush=True)
    os._exit(0)  # without taking apart what is imported


def run_all(cases: list[list[str]], places: Places) -> list[dict[str, Any]]:
    """What became of each command line; several in one process, which is quicker than a process for each.

    The memory of all is compared with what the first took. One that the process did not survive, or whose answer is not
    a plain one, is run again in a process of its own: its answer is that.
    """
    answers: list[dict[str, Any]] = []
    while len(answers) < len(cases):
        together = run_in_one(cases[len(answers) : len(answers) + TOGETHER], places)
        assert together, "a process that ran no command line"
        for answer in together:
            words, usual_bytes = cases[len(answers)], (answers or together)[0]["memory_bytes"]
            is_final = places.path is not None or _is_plain(answer, usual_bytes + places.more_bytes)
            answers.append(answer if is_final else run_in_one([words], places)[0])
    return answers


def _is_plain(answer: dict[str, Any], most_bytes: int) -> bool:
    return (
        answer["status"] in (0, 1, 2)
        and answer["memory_bytes"] < most_bytes
        and "Traceback" not in answer["stderr"]
        and not (answer["left"]["tmp"] or answer["left"]["home"])
    )


def run_in_one(cases: list[list[str]], places: Places) -> list[dict[str, Any]]:
    """Answers of command lines that one process ran one after the other, up to the one that ended or stopped it.

    An answer: status (negative: signal; SIGPROF after most_cpu_s), whether it waited for most_s and was stopped,
    output, bytes at most until then, what is left in the folders, which of the files kept there it changed.
    """
    folder = Path(places.folder)
    shutil.rmtree(folder, ignore_errors=True)
    for number in range(len(cases)):
        for name in ("work", "tmp", "home", "path"):
            (folder / str(number) / name).mkdir(parents=True)
        for name, text in places.kept.items():
            (folder / str(number) / "work" / name).write_text(text)
    child = os.fork()
    if child == 0:
        _be_the_commands(cases, places)
    # Somebody at the other end of the pipe, who writes nothing and reads all.
    reader = os.open(places.fifo, os.O_RDONLY | os.O_NONBLOCK)
    timed_out, done, began_s = False, 0, time.monotonic()
    while True:
        pid, status, _ = os.wait4(child, os.WNOHANG)
        if pid:
            break
        if (folder / str(done) / "ended").exists():
            done, began_s = done + 1, time.monotonic()
        if time.monotonic() - began_s > places.most_s:
            timed_out = True
            os.killpg(child, signal.SIGKILL)
        with contextlib.suppress(OSError):
            os.close(os.open(places.fifo, os.O_WRONLY | os.O_NONBLOCK))
            os.read(reader, 1 << 20)
        time.sleep(0.002)
    os.close(reader)
    answers = []
    for number in range(len(cases)):
        place = folder / str(number)
        if not (place / "stderr").exists():
            break
        if (place / "ended").exists():
            ended = json.loads((place / "ended").read_text())
        else:
            ended = {"status": os.waitstatus_to_exitcode(status), "timed_out": timed_out, "memory_bytes": 0}
        answers.append(
            {
                **ended,
                "stdout": (place / "stdout").read_text(errors="surrogateescape")[:100_000],
                "stderr": (place / "stderr").read_text(errors="surrogateescape")[:100_000],
                "left": {
                    name: sorted(set(os.listdir(place / name)) - MEANT_TO_STAY - places.kept.keys())
                    for name in ("work", "tmp", "home")
                },
                "files": {} if places.path is None else contents(place / "work"),
                "touched": [name for name, text in places.kept.items() if _content(place / "work" / name) != text],
            }
        )
    return answers


def _content(path: Path) -> str | None:
    return path.read_text(errors="replace") if path.is_file() else None


def contents(folder: Path) -> dict[str, str]:
    """The texts of all files below a folder by their names; of other files a checksum."""
    texts = {}
    for path in sorted(each for each in folder.rglob("*") if each.is_file()):
        content = path.read_bytes()
        with contextlib.suppress(UnicodeDecodeError):
            texts[str(path.relative_to(folder))] = content.decode()
            continue
        texts[str(path.relative_to(folder))] = str(zlib.crc32(content))
    return texts


def _be_the_commands(cases: list[list[str]], places: Places) -> None:
    try:
        os.setsid()
        obey_permissions()
        size_bytes = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size_bytes + RESERVED_BYTES,) * 2)
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for number, words in enumerate(cases):
            place = Path(places.folder, str(number))
            signal.setitimer(signal.ITIMER_PROF, places.most_cpu_s)
            status = _run_command(words, place, places.path, places.columns)
            used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
            told = {"status": status, "timed_out": False, "memory_bytes": used}
            (place / "ended.part").write_text(json.dumps(told))
            (place / "ended.part").rename(place / "ended")
    finally:
        os._exit(0)


def _run_command(words: list[str], place: Path, path: str | None, columns: int) -> int:
    status = 99
    try:
        # What is built is built once, where programs of this machine build it.
        home = place / "home" if path is None else place.parent.with_name("home")
        os.environ.update(TMPDIR=str(place / "tmp"), LEPAUTE_HOME=str(home), PATH=path or str(place / "path"))
        os.chdir(place / "work")
        written = os.O_WRONLY | os.O_CREAT
        for descriptor, name, flags in ((0, os.devnull, os.O_RDONLY), (1, "stdout", written), (2, "stderr", written)):
            opened = os.open(place / name if descriptor else name, flags, 0o600)
            os.dup2(opened, descriptor)
            os.close(opened)
        sys.stdin = open(0, closefd=False)  # noqa: SIM115
        sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
        if columns:
            os.environ["COLUMNS"] = str(columns)
            sys.stdout.isatty = sys.stderr.isatty = lambda: True  # type: ignore[method-assign]
        import tempfile

        from lepaute.cli.main import main

        tempfile.tempdir = None
        sys.argv = ["lepaute", *words]
        warnings.simplefilter("ignore")
        status = main(words)  # given its words, it does not end the process, which has further command lines
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:  # noqa: BLE001 - as the interpreter does
        import traceback

        traceback.print_exc()
        sys.stderr.flush()
        status = 1
    return status


if __name__ == "__main__":
    serve()
