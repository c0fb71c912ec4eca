"""Options of `lepaute emulate` that are more than a number, and what simblas and the linker are told of them."""

import re
from pathlib import Path
from typing import Any

import pytest
from oracles.emulated import command, tiny, tiny_text

from lepaute.errors import InputError
from lepaute.kit.printed_time import value_in
from lepaute.simulate import Layers, Program
from lepaute.simulate.machine.core import machine_of
from lepaute.simulate.machine.population import with_network_of_run
from lepaute.simulate.platform.io import parse_platform
from lepaute.simulate.smpi.building import _script, skip_flags
from lepaute.simulate.smpi.emulate import Keep, Options, settings_of
from lepaute.simulate.smpi.request import Files, Folding, Private, reference_sizes, request_text
from lepaute.simulate.smpi.settings import private_of
from lepaute.study.components import application_of


@pytest.mark.parametrize(
    ("text", "private"),
    [
        ("panel.c", Private("panel.c")),
        ("panel.c:120", Private("panel.c:120")),
        ("make_panel@0-4096", Private("make_panel", 0, 4096)),
        ("panel.c@-64--1", Private("panel.c", -64, -1)),
    ],
)
def test_what_stays_private_is_a_place_and_bytes(text: str, private: Private) -> None:
    assert private_of(text) == private


@pytest.mark.parametrize("text", ["", "@0-1", "a b", "panel.c@", "panel.c@5", "panel.c@a-b", "panel.c@1-2-3"])
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="--private"):
        private_of(text)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--source", ".", "--binary", "x"], "give one of them"),
        (["--stack", "1"], "--stack is '1'; it must be at least"),
        (["--time-pattern", "t=(", "--binary", "x"], "is no regular expression"),
        (["--collectives", "ompi", "--binary", "x"], "collectives is 'ompi'; it must be one of openmpi, mpich"),
        (["--set", "network.nonsense=1"], "nonsense"),
        (["--trace", "no/such/folder/t.parquet"], "there is no folder no/such/folder"),
    ],
)
def test_options_that_make_no_sense_are_refused_before_anything_is_built(words, said, tmp_path):
    (tmp_path / "p.yaml").write_text(tiny_text())
    answer = command("emulate", "-p", tmp_path / "p.yaml", "-np", 2, *words, "--", "program")
    assert (answer.status, answer.err.count("\n")) == (2, 1)
    assert said in answer.err


def test_a_command_without_a_program_says_so() -> None:
    answer = command("emulate", "-p", "dahu", "-np", 2)
    assert answer.status == 2
    assert "no program is named" in answer.err


def request(**options: object) -> dict[str, str]:
    files = Files(Path("/r"), Path("/p"), options.pop("kernel_log", None))  # type: ignore[arg-type]
    text = request_text(
        tiny(),
        [0, 1, 4],
        seed=7,
        layers=Layers(days=False),
        files=files,
        **{"folding": Folding(), **options},  # type: ignore[arg-type]
    )
    head, machine, _ = text.partition("\nmachine\n")
    assert machine
    return dict(line.partition(" ")[::2] for line in head.splitlines())


def test_the_request_has_a_line_for_all_that_simblas_asks_for() -> None:
    assert request() == {
        "seed": "7 7", "without": "days", "cores": "0 1 4", "reference": "89 89 89", "wtime": "1e-07",
        "fold": f"0 {64 << 20} 0", "report": "/r", "progress": "/p", "measures": "0 0",
        "host_flops": "19999813737.219784", "slowdown": "1.0", "sleeping_probes": "1", "puts_off": "1",
        "own_factors": "0",
    }  # fmt: skip


def test_the_request_tells_what_is_folded_and_what_stays_private() -> None:
    told = request(
        folding=Folding(1 << 20, huge=False, private=(Private("my file.c:3", 5, -9),)), kernel_log=Path("/k")
    )
    assert told["fold"] == f"{1 << 20} {64 << 20} 0"
    assert (told["private"], told["kernel_log"]) == ("5 -9 my file.c:3", "/k")


def test_the_rate_of_what_has_no_model_is_that_of_dgemm_in_the_middle_of_its_range() -> None:
    assert reference_sizes(tiny()) == (89, 89, 89)  # sqrt(1 * 8000)
    without_m = parse_platform(tiny_text().replace("{m: [1, 8000], n: [1, 8000], k: [1, 8000]}", "{k: [64, 256]}"))
    assert reference_sizes(without_m) == (1024, 1024, 128)


def test_settings_of_smpi_leave_the_clock_to_simblas_and_forbid_a_free_test(tmp_path: Path) -> None:
    settings = settings_of(tiny(), 8, Options(stack_kib=2048), tmp_path)
    assert settings["smpi/wtime"] == "0"
    assert float(settings["smpi/test"]) > 0
    assert (settings["smpi/tmpdir"], settings["contexts/stack-size"]) == (str(tmp_path), "2048")
    assert settings["smpi/privatization"] == "dlopen"
    assert settings_of(tiny(), 8, Options(privatize=False), tmp_path)["smpi/privatization"] == "no"
    assert Keep(trace=tmp_path / "t").settings()["tracing/filename"] == str(tmp_path / "t")


def test_a_skipped_function_is_replaced_under_its_c_and_its_fortran_name(tmp_path: Path) -> None:
    assert skip_flags([], tmp_path) == []
    assert skip_flags(["check", "fill_"], tmp_path) == [
        f"{tmp_path}/skip.o",
        *("-Wl,--defsym=check=lepaute_skip", "-Wl,--defsym=check_=lepaute_skip", "-Wl,--defsym=fill_=lepaute_skip"),
    ]
    with pytest.raises(InputError, match="not the name of a function"):
        skip_flags(["a;b"], tmp_path)


def test_the_compilers_name_simblas_before_all_that_the_makefile_names() -> None:
    script = _script(Path("/usr/bin/smpicc"), Path("/cache dir/simblas"))
    link = script.split("done\n")[1]
    assert link.index("'/cache dir/simblas/libsimblas.so'") < link.index('"$@"') < link.index("--wrap=malloc")
    assert "-fno-f2c" not in script
    assert "-fno-f2c" in _script(Path("/usr/bin/smpif90"), Path("/x"))


def test_the_last_value_that_matches_counts() -> None:
    lines = ["time 1.5 s", "time 2e-3 s", "end"]
    assert value_in(lines, r"time (\S+)") == 2e-3
    for pattern, problem in {
        r"Time (\S+)": "nothing that matches",
        r"(time)": "'time' for '(time)', which is not a number",
        r"end(x)?": "None for",
        r"(-inf)": "'-inf' for '(-inf)', which is no time",
        r"(nan)": "which is no time",
    }.items():
        with pytest.raises(ValueError, match=re.escape(problem)):
            value_in([*lines, "-inf nan"], pattern)


def test_the_request_has_the_messages_that_the_run_draws() -> None:
    network = tiny().network
    unsure = network.remote.model_copy(update={"discrepancy_relative_sd": 0.25})
    platform = tiny().model_copy(update={"network": network.model_copy(update={"remote": unsure})})

    def machine(seed: int, layers: Layers) -> str:
        text = request_text(
            platform, [0], seed=seed, layers=layers, folding=Folding(), files=Files(Path("/r"), Path("/p"))
        )
        return text.partition("\nmachine\n")[2].rstrip("\n")

    drawn = machine_of(with_network_of_run(platform, 8, Layers()), 1).text().rstrip("\n")
    # Factors of messages come from the request: with other latencies than the file of the run they would undo its own.
    assert machine(8, Layers()) == drawn != machine(9, Layers())
    for alone in (Layers.without(["network"]), Layers.without(["overheads"])):
        assert machine(8, Layers()) != machine(8, alone) != machine(9, alone)
    neither = Layers.without(["network", "overheads"])
    assert machine(8, neither) == machine(9, neither)


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"np": 2.5}, "np is 2.5; it must be a whole number >= 1"),
        ({"np": True}, "np is True; it must be a whole number"),
        ({"arguments": None}, "arguments is None; it must be a text"),
        ({"arguments": [1, 2]}, "arguments is [1, 2]; it must be a text"),
        ({"memory_share": 7.0}, "memory_share is 7; it must be at most 1"),
        ({"stack": 1}, "stack is 1; it must be a whole number >= 64"),
        ({"contention": "maybe"}, "contention is 'maybe'; it must be true or false"),
        ({"fold": "1M", "private": "a.c"}, "private is 'a.c'; it must be a list of texts"),
        ({"timeout": "x"}, "timeout is 'x'; it must be a finite number"),
    ],
)
def test_values_of_a_study_are_refused_by_the_name_of_their_field(values: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError, match=re.escape(problem)):
        application_of({"program": "cg", **values})


def test_numbers_in_a_study_are_the_texts_of_a_command_line(tmp_path: Path) -> None:
    program = tmp_path / "cg"
    program.write_bytes(b"")
    made = application_of({"program": "cg", "np": "2", "arguments": 100, "fold": 4096}, tmp_path)
    assert made == Program(program, ("100",), 2, options=Options(folding=Folding(4096)))
