"""`lepaute predict hpl` as a user of HPL has it: HPL.dat in, HPL.out-like lines out, mappings, interrupts."""

import contextlib
import io
import json
import subprocess
from pathlib import Path

import pytest

from lepaute.cli.main import main
from lepaute.simulate import tasks as estimate
from lepaute.simulate.apps.hpl import work
from lepaute.simulate.native import NativeSimulator

DAT = Path(__file__).parents[1] / "data" / "hpl_dat" / "HPL.dat"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command in this process, which has loaded it already."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(["predict", "hpl", "-p", "dahu", *arguments])
    return subprocess.CompletedProcess(arguments, status, out.getvalue(), err.getvalue())


def answer(*arguments: str) -> dict:
    result = run(*arguments, "--json")
    assert result.returncode == 0, result.stderr
    assert not result.stderr or "has no effect" in result.stderr
    return json.loads(result.stdout)


@pytest.fixture
def one_dat(tmp_path: Path) -> Path:
    """The file with one combination: N = 1000, NB = 64, 2 x 2, 1ring-modified, RFACT crout, PFACT crout, NBMIN 4."""
    lines = DAT.read_text().splitlines()
    for line in (5, 7, 10, 14, 22):
        lines[line - 1] = "1"
    path = tmp_path / "HPL.dat"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_all_combinations_of_an_hpl_dat_are_predicted_in_hpl_s_order() -> None:
    predictions = answer("--dat", str(DAT), "--runs", "2")["predictions"]
    chosen = [[row["parameters"][name] for name in ("p", "n", "nb", "bcast", "pfact")] for row in predictions]
    assert chosen == [
        [p, n, nb, bcast, pfact]
        for p in (2, 1)
        for n in (1000, 2000)
        for nb in (64, 128)
        for bcast in ("1ring-modified", "2ring-modified")
        for pfact in ("crout", "right")
    ]
    assert {len(prediction["runs"]) for prediction in predictions} == {2}


def test_a_combination_of_a_file_is_what_its_options_alone_predict(one_dat: Path) -> None:
    options = ["--n", "1000", "--nb", "64", "--grid", "2x2", "--bcast", "1", "--rfact", "crout", "--nbmin", "4"]
    of_file = answer("--dat", str(one_dat), "--runs", "3", "--seed", "5")
    (from_file,) = of_file["predictions"]
    from_options = answer(*options, "--swap-threshold", "64", "--runs", "3", "--seed", "5")
    from_file |= {"answer": of_file["answer"], "simulation": None}
    assert from_options | {"simulation": None} == from_file


def test_the_report_on_several_combinations_is_a_table_of_hpl_s_lines_and_a_summary(tmp_path: Path) -> None:
    short = run("--dat", str(DAT), "--runs", "2").stdout.splitlines()
    assert not any(line.startswith("WR") for line in short)
    assert short[0].startswith("Fastest")
    result = run("--dat", str(DAT), "--runs", "2", "--details")
    assert result.returncode == 0, result.stderr
    rows = [line.split() for line in result.stdout.splitlines() if line.startswith("WR")]
    assert len(rows) == 32
    assert rows[0][:5] == ["WR11C2C4", "1000", "64", "2", "2"]
    lines = result.stdout.splitlines()
    orders = list(dict.fromkeys(row[1] for row in rows))
    assert len(orders) > 1  # rates of different N are no ranking
    for answer, order in zip(lines, orders, strict=False):
        of_order = [row for row in rows if row[1] == order]
        if "none of" in answer:
            assert all(row[-2:] == ["not", "comparable"] for row in of_order)
            continue
        best = max((row for row in of_order if row[-1] != "comparable"), key=lambda row: float(row[6]))
        assert best[0] in answer
        assert f"N = {order}" in answer
    to_file = run("--dat", str(DAT), "--runs", "2", "--details", "-o", str(tmp_path / "HPL.out"))
    assert "WR11C2C4        1000" in (tmp_path / "HPL.out").read_text()
    report, _, below = (tmp_path / "HPL.out").read_text().partition(" predicted.\n")
    assert report in result.stdout
    caveats = [line.removeprefix("Caveat: ") for line in below.splitlines()]
    assert caveats == [line.partition(" warning: ")[2] for line in lines if line.startswith("  warning: ")]
    assert not any(line.startswith("WR") for line in to_file.stdout.splitlines())
    assert to_file.stdout.startswith(lines[0])


def test_every_broadcast_and_swap_that_hpl_dat_has_is_predicted(tmp_path: Path) -> None:
    lines = DAT.read_text().splitlines()
    for line, text in ((5, "1"), (7, "1"), (10, "1"), (14, "1"), (22, "6"), (23, "0 1 2 3 4 5"), (28, "1"), (29, "1")):
        lines[line - 1] = text
    for swap in "012":
        lines[25] = swap
        (tmp_path / "HPL.dat").write_text("\n".join(lines))
        result = run("--dat", str(tmp_path / "HPL.dat"), "--runs", "1", "--details")
        assert (result.returncode, result.stderr) == (0, "")
        codes = [line.split()[0] for line in result.stdout.splitlines() if line.startswith("WR")]
        assert codes == [f"WR1{code}C2C4" for code in range(6)]


def test_options_that_hpl_dat_does_not_decide_go_with_it(one_dat: Path) -> None:
    (prediction,) = answer(
        "--dat", str(one_dat), "--runs", "1", "--mapping", "random", "--set", "network.flow_factor=scale"
    )["predictions"]
    assert prediction["parameters"]["mapping"] == "random"
    assert prediction["parameters"]["set"] == {"network.flow_factor": "scale"}


def test_hosts_and_ranks_go_where_their_files_say(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("dahu-3 slots=2\ndahu-5 slots=2\n")
    (tmp_path / "ranks").write_text("".join(f"rank {rank}=dahu-3 slot=0:{rank}\n" for rank in range(4)))
    options = ["--n", "1000", "--grid", "2x2", "--runs", "1"]
    by_hosts = answer(*options, "--hostfile", str(tmp_path / "hosts"))["parameters"]
    assert (by_hosts["mapping"], by_hosts["mapping_slots"]) == ("hostfile", "3:0-1 5:0-1")
    by_ranks = answer(*options, "--rankfile", str(tmp_path / "ranks"))["parameters"]
    assert (by_ranks["mapping"], by_ranks["mapping_slots"]) == ("rankfile", "3:0 3:2 3:4 3:6")
    drawn = answer(*options, "--mapping", "random", "--mapping-seed", "9")["parameters"]
    assert (drawn["mapping"], drawn["mapping_seed"]) == ("random", 9)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--hostfile", "hosts"), "hosts:2: host dahu-77 is no node of platform dahu-2020-01"),
        (("--hostfile", "few"), "few has 2 slots, too few for 4 ranks"),
        (("--hostfile", "none"), "none: cannot be read (No such file"),
        (("--rankfile", "ranks"), "ranks:2: rank 1 needs 1 core and finds 0 free, rank 0 has it"),
        (("--rankfile", "ranks", "--mapping", "random"), "a rankfile places every rank"),
        (("--threads-per-rank", "4"), "no kernel models for 4 threads a rank; it has them for 1"),
        (("--trace", "t.parquet", "--trace-ranks", "3-1"), "a range must increase, such as 1-3"),
        (("--trace", "t.parquet", "--trace-ranks", "one"), "--trace-ranks is 'one'"),
        (("--trace", "t.parquet", "--trace-ranks", "0,4"), "there is no rank 4 to trace; this run has ranks 0 to 3"),
        (("--gantt", "t.png", "--trace-steps", "7-8"), "there is no step 8 to trace; this run has steps 0 to 7"),
    ],
)
def test_bad_mappings_and_requests_are_one_clear_line(tmp_path, monkeypatch, refusal_of, arguments, words):
    monkeypatch.chdir(tmp_path)
    Path("hosts").write_text("dahu-1:2\ndahu-77:2\n")
    Path("few").write_text("dahu-1:2\n")
    Path("ranks").write_text("rank 0=dahu-1 slot=4\nrank 1=dahu-1 slot=4\n")
    assert words in refusal_of("predict", "hpl", "-p", "dahu", "--n", "1000", "--grid", "2x2", *arguments)


def test_a_long_prediction_is_announced_with_how_long_it_will_take(monkeypatch, capsys):
    monkeypatch.setattr(estimate, "WORTH_TELLING_S", 0.0)
    monkeypatch.setattr(estimate, "WORTH_MEASURING_S", 0.0)
    monkeypatch.setattr(work, "WORTH_MEASURING_S", 0.0)
    assert main(["predict", "hpl", "-p", "dahu", "--n", "3000", "--grid", "4x4", "--runs", "3", "--json"]) == 0
    told = capsys.readouterr()
    assert told.err.startswith("lepaute: this will take about ")
    assert "s: 3 runs on " in told.err
    assert json.loads(told.out)["application"] == "hpl"


def test_the_announced_time_is_that_of_the_steps_that_will_be_simulated(monkeypatch, json_of):
    monkeypatch.setattr(estimate, "WORTH_MEASURING_S", 0.0)
    monkeypatch.setattr(work, "WORTH_MEASURING_S", 0.0)

    def measure(_self, hpl, trial_steps):
        steps = work.simulated_steps(hpl, trial_steps=trial_steps)
        return 1e-7 * work.events_of_steps(hpl, steps, solve=False)

    monkeypatch.setattr(NativeSimulator, "measure", measure)
    asked: list[float] = []
    monkeypatch.setattr(estimate, "estimated_wall_s", lambda run_s, *_: asked.append(run_s[0]) or 0.0)
    line = ["predict", "hpl", "-p", "dahu", "--n", "48000", "--nb", "24", "--runs", "1", "--json"]
    for fidelity in ("full", "sampled"):
        assert json_of(*line, "--fidelity", fidelity)["fidelity"] == fidelity
    assert 0.03 < asked[1] / asked[0] < 0.6  # 135 of 2000 steps


def test_several_values_are_all_combined(tmp_path: Path) -> None:
    done = run("--n", "1000,1500", "--grid", "1x1,1x2", "--runs", "2", "--json")
    found = [each["parameters"] for each in json.loads(done.stdout)["predictions"]]
    assert [(each["n"], each["p"], each["q"]) for each in found] == [
        (1000, 1, 1), (1000, 1, 2), (1500, 1, 1), (1500, 1, 2),
    ]  # fmt: skip
    assert "scaling" not in json.loads(done.stdout)  # of one problem alone
    output = tmp_path / "HPL.out"
    lists = ("--nb", "64,128", "--bcast", "1,long", "--swap", "mix,binary-exchange", "--equil", "0,1")
    done = run("--n", "1000", "--grid", "1x1,1x2", *lists, "--runs", "1", "--json", "--output", str(output))
    told = json.loads(done.stdout)
    runs = [each["parameters"] for each in told["predictions"]]
    assert len({tuple(each[name] for name in ("nb", "p", "q", "bcast", "swap", "equil")) for each in runs}) == 2**5
    assert "scaling" not in told  # block sizes are chosen, too
    # One file for each row swap, switch, and swapping threshold, which follows NB in a mix.
    assert [output.read_text().count(words) for words in ("PMAP", "WR1")] == [6, 2**5]
    assert "combinations; shorten them" in run("--n", ",".join(["1000"] * 400), "--nb", ",".join(["64"] * 400)).stderr


def test_n_fills_a_share_of_the_memory_of_the_node_with_most_ranks() -> None:
    done = run(
        "--memory-fraction", "50%", "--grid", "3x11", "--set", "nodes.memory_bytes=1000000000", "--runs", "1", "--json"
    )
    hpl = json.loads(done.stdout)["parameters"]
    on_a_node = 32 / 33 * 8 * hpl["n"] * (hpl["n"] + 1)  # dahu has 32 cores a node
    larger = hpl["n"] + hpl["nb"]
    assert hpl["n"] % hpl["nb"] == 0
    assert on_a_node <= 0.5e9 < 32 / 33 * 8 * larger * (larger + 1)
    for arguments, words in (
        (("--memory-fraction", "0.8", "--n", "1000"), "both say n"),
        (("--memory-fraction", "0.8", "--dat", str(DAT)), "both say n"),
        (("--memory-fraction", "1.5"), "above 0 and at most 1"),
        (("--memory-fraction", "0.8", "--set", "nodes.memory_bytes=1000"), "holds no block of 128"),
    ):
        refused = run(*arguments)
        assert (refused.returncode, len(refused.stderr.splitlines())) == (2, 1), refused.stderr
        assert words in refused.stderr
