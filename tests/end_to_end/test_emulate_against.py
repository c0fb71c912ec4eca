"""What changes one thing of an emulated program: --mapping, --against, and studies."""

import json
from pathlib import Path

import pytest
from oracles.emulated import HEAD, build, command, tiny_text

pytestmark = pytest.mark.machine

#: Each rank sends as many bytes as it is told around the ring.
RING = (
    HEAD
    + r"""
int main(int argc, char** argv) {
    begin(&argc, &argv);
    int bytes = argc > 1 ? atoi(argv[1]) : 1000, to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks;
    char *out = calloc(bytes, 1), *in = calloc(bytes, 1);
    for (int i = 0; i < 20; i++)
        MPI_Sendrecv(out, bytes, MPI_BYTE, to, 0, in, bytes, MPI_BYTE, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 0)
        printf("round and round\n");
    MPI_Finalize();
    return 0;
}
"""
)
STUDY = """
format: lepaute-study/1
question: whatif
base:
  application: {program: ring, np: 2, arguments: "100000", computing: none}
  platform: p.yaml
whatif: {factor: bytes}
factors:
  bytes: {path: application.arguments, levels: ["100000", "200000"]}
  np: {path: application.np, levels: [2, 4]}
runs: 2
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("against")
    build(made, "ring", RING)
    (made / "p.yaml").write_text(tiny_text())
    (made / "s.yaml").write_text(STUDY)
    return made


def emulated(folder: Path, *options: object, np: int | str = 2, size: int = 100_000):
    fixed = ("-p", folder / "p.yaml", "-np", np, "--computing", "none")
    return command("emulate", *fixed, *options, "--", folder / "ring", size)


def mean_s(folder: Path, *options: object, np: int = 2, size: int = 100_000) -> float:
    return json.loads(emulated(folder, *options, "--json", np=np, size=size).out)["time_s"]["mean"]


def test_ranks_are_where_the_mapping_places_them_and_a_difference_is_that_of_two_emulations(folder: Path) -> None:
    near_s, far_s = mean_s(folder, np=8), mean_s(folder, "--mapping", "random", np=8)
    assert far_s > 1.05 * near_s  # more neighbours are on another node
    against = [word for text in ("mapping=random", "np=4", "arguments=200000") for word in ("--against", text)]
    said = emulated(folder, "--json", *against, np=8)
    assert said.status == 0, said.err
    mapping, ranks, larger = json.loads(said.out)["differences"]
    assert mapping["ratio"]["mean"] == pytest.approx(far_s / near_s, rel=1e-9)
    assert ranks["ratio"]["mean"] == pytest.approx(mean_s(folder, np=4) / near_s, rel=1e-9)
    assert larger["ratio"]["mean"] == pytest.approx(mean_s(folder, np=8, size=200_000) / near_s, rel=1e-9)


def test_the_answer_begins_with_the_difference_and_the_program_prints_once(folder: Path) -> None:
    said = emulated(folder, "--against", "collectives=mpich", "--against", "network.costs.wtime_s=1e-6")
    assert said.status == 0, said.err
    assert said.out == "round and round\n"
    lines = [line for line in said.err.splitlines() if " against " in line or " takes " in line]
    assert lines[0].startswith("collectives mpich against the default: 0 % (one run")
    assert lines[1].startswith("network.costs.wtime_s 1e-6 against the platform as it is: ")
    assert lines[2].startswith("ring takes ")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("color=red", "--against color=red: ring has no parameter 'color'; give time-pattern, fold"),
        ("np=2", "--against np=2: np has that value already"),
        ("np=0", "--against np=0: np is 0; it must be a whole number >= 1"),
        ("program=none", "--against program=none: there is no "),
        ("arguments='", "--against arguments=': arguments is \"'\": No closing quotation"),
    ],
)
def test_what_cannot_be_compared_is_refused_in_a_line(folder: Path, text: str, complaint: str) -> None:
    said = emulated(folder, "--against", text)
    assert said.status == 2
    assert said.err.startswith(f"lepaute: {complaint}")
    assert len(said.err.splitlines()) == 1


def test_a_study_of_a_program_has_the_times_of_its_emulations(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    said = command("study", "check", "s.yaml")
    assert "8 simulations (at most 36 more to judge them) by emulation, one after the other; how long" in said.out
    assert command("study", "whatif", "s.yaml").status == 0
    answer = json.loads((folder / "s.results" / "answer.json").read_text())
    text = (folder / "s.results" / "results.csv").read_text()
    assert answer
    assert text.count("\n") == 1 + 8
    again = command("study", "whatif", "s.yaml", "--resume")
    assert "0 simulations, 8 known before" in again.out + again.err
    (folder / "t.yaml").write_text(STUDY.replace("program: ring", "program: rings"))
    said = command("study", "check", "t.yaml")
    assert said.status == 2
    assert "there is no " in said.err
    (folder / "t.yaml").write_text(STUDY + "budget: {seconds: 10}\n")
    said = command("study", "whatif", "t.yaml")
    assert said.status == 2
    assert "how long emulations take is not known in advance; give budget.simulations" in said.err
