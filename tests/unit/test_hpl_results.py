"""Results that the real HPL printed: read, predicted, and shown beside the predictions, without running anything.

Of tests/data/hpl_out, which says where its files are from.
"""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace

import pytest
from support_verify import predicted

from lepaute.cli.main import main
from lepaute.errors import InputError
from lepaute.measure.verify.campaign import Case
from lepaute.measure.verify.known_results import Verdict, causes_of, verdict
from lepaute.simulate import Hpl, PredictionRequest, predict_all
from lepaute.simulate.apps.hpl.hpl_dat import HplDat
from lepaute.simulate.apps.hpl.hpl_out import parse_hpl_results, read_hpl_results, real_report, report
from lepaute.simulate.platform import load_platform, override
from lepaute.watch.foreign import read_foreign

FILE = Path(__file__).parents[1] / "data/hpl_out/HPL.out"
LINE = "WR12R2C2        2000   128     1     2               0.09              5.998e+01"
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
OF_FILE = ("verify", "hpl", "-p", "dahu", "--runs", "2", "--results")
COMMAND = (*OF_FILE, str(FILE))


def test_all_runs_of_a_real_file_are_read_with_the_parameters_above_them():
    results = read_hpl_results(FILE, {})
    assert len(results) == 16
    first, last = results[0], results[-1]
    more = {"bcast": "1ring", "nbmin": 4, "swap": "mix", "swap_threshold": 64, "u": "no-transposed", "l1": "transposed"}
    expected = Hpl(n=1000, nb=64, p=1, q=2, **more)
    assert first.hpl == expected
    assert last.hpl == replace(expected, n=2000, nb=128, p=2, q=1, bcast="2ring")
    # 5.442e+01 Gflop/s says more than 0.01 s; 73.38 s and 7.276e-02 Gflop/s are of four digits both.
    assert first.time_s == pytest.approx(expected.flop_count / 54.42e9)
    assert last.time_s == pytest.approx(73.38, rel=1e-3)
    assert not any(result.failed for result in results)


@pytest.mark.parametrize(
    ("line", "hpl"),
    [
        (LINE, Hpl(n=2000, p=1, q=2)),
        (f"[1,0]<stdout>:{LINE}", Hpl(n=2000, p=1, q=2)),  # mpirun --tag-output
        (LINE.replace("5.998e+01", "5.9980e+01"), Hpl(n=2000, p=1, q=2)),  # HPL 2.2 and 2.3
        (LINE.replace("WR12R2C2", "WC05L3R16"), Hpl(n=2000, p=1, q=2, pmap="column", depth=0, bcast="long-modified",
                                                    rfact="left", ndiv=3, pfact="right", nbmin=16)),
        # NVIDIA's HPL, with the rate of a GPU behind.
        ("WC0 is no line\n" + LINE + " ( 2.999e+01)", Hpl(n=2000, p=1, q=2)),
    ],
)  # fmt: skip
def test_a_line_alone_says_all_but_the_swap_and_the_forms(line: str, hpl: Hpl) -> None:
    (result,) = parse_hpl_results(line, "job.log", {})
    assert result.hpl == hpl
    (result,) = parse_hpl_results(line, "job.log", {"swap": "spread-roll", "threads_per_rank": 4})
    assert result.hpl == replace(hpl, swap="spread-roll", threads_per_rank=4)


@pytest.mark.parametrize("time_s", [0.0004, 0.00499, 0.00514, 0.0101, 0.01499, 0.0249, 0.1049, 3.004])
def test_a_short_run_is_read_though_hpl_prints_one_digit_of_its_time(time_s: float) -> None:
    hpl = Hpl(n=300, p=1, q=2)
    printed = f"WR12R2C2         300   128     1     2 {time_s:18.2f} {hpl.rate_gflops(time_s):18.3e}"
    (result,) = parse_hpl_results(printed, "HPL.out", {})
    assert result.time_s == pytest.approx(time_s, rel=2e-3)


@pytest.mark.parametrize(("time_s", "printed_s"), [(0.0051, "0.02"), (0.0051, "0.00"), (0.0251, "0.02"), (0.1, "1.00")])
def test_a_short_time_that_is_not_of_its_rate_is_refused(time_s: float, printed_s: str) -> None:
    printed = f"WR12R2C2 300 128 1 2 {printed_s} {Hpl(n=300, p=1, q=2).rate_gflops(time_s * 1.03):.3e}"
    with pytest.raises(InputError, match="are not of one run with N = 300"):
        parse_hpl_results(printed, "HPL.out", {})


def test_a_failed_residual_check_is_kept_with_its_result():
    text = (
        f"{LINE}\n{'-' * 80}\n||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=  1234.0000000 ...... FAILED\n{LINE}\n"
    )
    assert [result.failed for result in parse_hpl_results(text, "HPL.out", {})] == [True, False]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "HPL.out: has no line of results of HPL"),
        (LINE.replace("0.09", "9.00"), "HPL.out:1: 9.00 s and 5.998e+01 Gflop/s are not of one run with N = 2000"),
        (LINE.replace("e+01", "e+999"), "HPL.out:1: Gflops is '5.998e+999', no such number; the columns are T/V, N"),
        (LINE.replace("0.09              5.998e+01", "-nan inf"), "HPL.out:1: Time is '-nan', no such number"),
        (LINE[:60], "HPL.out:1: Gflops is '', no such number"),
        (LINE.replace("WR12R2C2", "WC0"), "HPL.out:1: 'WC0' is no code of HPL's own algorithms, as WR11C2R4 is"),
        (LINE.replace("WR12", "WR17"), "HPL.out:1: broadcast 7 is none of HPL's, 0 to 5"),
        (LINE.replace(" 128 ", "   0 "), "HPL.out:1: nb is 0"),
        (LINE.replace("0.09", "0.00").replace("5.998", "0.000"), "HPL.out:1: time and rate are zero"),
        (f"\nSWAP   : Magic\n{LINE}", "HPL.out:2: SWAP is 'Magic'; HPL prints Binary-exchange or Spread-roll"),
        (f"ALIGN  : eight\n{LINE}", "HPL.out:1: ALIGN is 'eight', no number"),
        (f"EQUIL  : no\n{LINE}", "HPL.out:1: --equil is False there, not True"),
    ],
)
def test_what_cannot_be_a_result_is_refused_with_its_line(text: str, complaint: str) -> None:
    with pytest.raises(InputError) as refusal:
        parse_hpl_results(text, "HPL.out", {"equil": True})
    assert str(refusal.value).startswith(complaint)


def test_results_in_mixed_precision_are_refused_by_name(capsys):
    words = ["verify", "hpl", "--results", str(FILE.with_name("nvidia_hpl_ai.out")), "-p", "dahu"]
    assert main(words) == 2
    assert "nvidia_hpl_ai.out:6: is a result of HPL_AI, which computes in mixed precision" in capsys.readouterr().err


def test_predictions_in_the_form_of_hpl_are_no_results():
    hpl = Hpl(n=1000, p=1, q=2)
    text = report(HplDat.of(hpl), predict_all([hpl], "dahu", PredictionRequest(runs=2)))
    with pytest.raises(InputError, match=r"HPL.out:2: holds predictions of Lepaute, nothing that ran"):
        parse_hpl_results(text, "HPL.out", {})


def test_the_report_of_a_campaign_is_read_as_what_it_was():
    cases = [Hpl(n=n, p=1, q=q, swap="mix", swap_threshold=64, u="no-transposed") for n in (1000, 2000) for q in (1, 2)]
    text = real_report("HPL", [(hpl, 0.01 * (1 + at), NOON) for at, hpl in enumerate(cases)])
    read = parse_hpl_results(text, "HPL.out", {})
    assert [result.hpl for result in read] == cases
    assert [result.time_s for result in read] == pytest.approx([0.01, 0.02, 0.03, 0.04], rel=1e-3)
    with pytest.raises(InputError, match="runs with SWAP mix and binary-exchange are of no one file"):
        HplDat.covering([cases[0], Hpl(n=1000)])


def test_runs_that_were_made_here_can_be_watched_with_their_dates(tmp_path):
    """A watch refuses a result without a date; the second run begins at 01:05 of the next day in UTC."""
    later = datetime(2026, 1, 31, 23, 5, tzinfo=timezone(timedelta(hours=-2)))
    file = tmp_path / "HPL.out"
    file.write_text(real_report("HPL", [(Hpl(n=1000), 0.01, NOON), (Hpl(n=2000), 0.02, later)]))
    values = read_foreign(file, node="n1")
    assert list(values["started_s"]) == [NOON.timestamp(), later.timestamp()]
    assert list(values["factor"]) == ["hpl_rate_flops"] * 2


def test_the_command_gives_json_and_files_and_an_exit_status(tmp_path, capsys):
    folder = tmp_path / "compared"
    report = ["--report", str(folder.with_suffix(".html"))]
    assert main([*COMMAND, "--json", "--output", str(folder), "--tolerance", "10%", *report]) == 1
    whole = json.loads(capsys.readouterr().out)
    told = whole["verifications"]
    assert json.loads((folder / "verification.json").read_text()) == whole
    assert list(whole)[:3] == ["answer", "verdict", "decision"]
    assert (whole["verdict"], whole["causes"][0]["cause"]) == ("slower", "blas_threads")
    figures = re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", Path(report[1]).read_text().replace("\u00a0", " "))
    measured_s, length, predicted_s = re.search(
        r": (\S+ s), (.* as long) as predicted \((\S+ s)\)", whole["answer"]
    ).groups()
    assert [value for value, _ in figures] == [predicted_s, measured_s, length]
    assert figures[0][1].removeprefix("predicted for ") in whole["answer"]
    assert told[0]["measured"][0]["line"] == 47
    assert told[0]["results"] == "HPL.out"
    assert told[0]["measured_time_s"] == told[0]["measured"][0]["time_s"]
    written = ("results.csv", "verification.json", "verification.png", "verification.svg")
    assert {path.name for path in folder.iterdir()} == set(written)
    assert main([*COMMAND, "--output", str(folder)]) == 2
    assert "holds results.csv of an earlier verification" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--n", "2000", "--repeats", "2", "--nodes", "a"), "leave out --n, --repeats, --nodes"),
        (("--swap", "binary-exchange"), "HPL.out:30: --swap is 'mix' there, not 'binary-exchange'"),
    ],
)
def test_options_that_say_otherwise_than_the_results_are_refused(words, complaint, capsys):
    assert main([*COMMAND, *words]) == 2
    assert complaint in capsys.readouterr().err


def test_several_results_of_one_case_are_one_row_with_their_spread(tmp_path, capsys):
    file = tmp_path / "three.out"
    file.write_text("\n".join([LINE, LINE.replace("5.998e+01", "5.600e+01"), LINE.replace("5.998e+01", "6.300e+01")]))
    assert main([*OF_FILE, str(file)]) == 3
    text = capsys.readouterr().out
    assert "All real runs, s:" in text
    assert len(text.splitlines()) == 3 + 2 + 1 + 2
    assert main(["verify", "hpl", "--results", str(file), "-p", "dahu", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    low, high = told["interval_of_mean_s"]
    assert told["time_s"]["low"] < low < high < told["time_s"]["high"]


def test_what_no_file_and_no_option_says_of_the_runs_is_told(tmp_path, capsys):
    file = tmp_path / "grep.out"
    file.write_text(LINE)
    words = [*OF_FILE, str(file)]
    assert main(words) == 3
    assert (
        "warning: grep.out: no list of parameters above the results; assumed, unless --dat HPL.dat or other options "
        "are given: --swap binary-exchange --l1 transposed --u transposed --equil 1 --align 8\n"
    ) in capsys.readouterr().err
    assert main([*words, *"--swap mix --swap-threshold 64 --l1 transposed --equil 1 --align 8".split()]) == 3
    assert "given: --u transposed\n" in capsys.readouterr().err
    assert main([*COMMAND]) == 1
    assert "assumed" not in capsys.readouterr().err


def test_an_hpl_dat_gives_what_lines_without_a_list_of_parameters_leave_out(tmp_path, capsys):
    file, dat = tmp_path / "grep.out", tmp_path / "HPL.dat"
    file.write_text(LINE)
    same = Hpl(n=2000, p=1, q=2, swap="spread-roll", u="no-transposed")
    dat.write_text(HplDat.covering([same, replace(same, n=1000), replace(same, nb=64)]).text())
    words = [*OF_FILE, str(file), "--json", "--tolerance", "100%", "--dat", str(dat)]
    assert main(words) == 0
    printed = capsys.readouterr()
    parameters = json.loads(printed.out)["parameters"]
    assert (parameters["swap"], parameters["u"], parameters["n"]) == ("spread-roll", "no-transposed", 2000)
    assert "warning: grep.out: no results of 3 further cases of the HPL.dat" in printed.err
    for other, difference in (
        (replace(same, n=1000), "N is 2000, and HPL.dat has 1000"),
        (replace(same, p=2, q=1), "P x Q is 1 x 2, and HPL.dat has 2 x 1"),
        (replace(same, rfact="left"), "RFACT is right, and HPL.dat has left"),
    ):
        dat.write_text(HplDat.of(other).text())
        assert main(words) == 2
        assert capsys.readouterr().err == f"lepaute: grep.out:1: {difference}\n"


def test_a_run_that_took_longer_is_told_so_with_the_predicted_times_and_where_to_look(tmp_path, capsys):
    file = tmp_path / "slow.out"
    file.write_text(_result(n=4000, time_s=4.0))
    words = ["verify", "hpl", "-p", "dahu", "--runs", "10", "--results", str(file)]
    assert main(words) == 1
    out = capsys.readouterr().out
    predicted_s = re.match(r"Your slow.out is slow: 4.00 s, \S+ times as long as predicted \(([0-9.]+) s\)", out)[1]
    (error,) = set(re.findall(r"-[0-9.]+ %", out))  # the first line and the table have one figure of one fact
    (rate,) = re.findall(r"Gflop/s, predicted ([0-9.]+)", out)
    assert main([*words, "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert f"{told['rate_gflops']['mean']:.3g}" == rate
    assert float(predicted_s) == pytest.approx(told["time_s"]["mean"], rel=0.05)
    assert float(error[:-2]) == pytest.approx(100.0 * (told["time_s"]["mean"] / 4.0 - 1.0), abs=0.06)
    assert "  causes  several ranks, threads or programs on one core; another machine" in out
    assert "  where   computing" in out


def test_a_core_that_did_more_than_any_core_can_is_asked_for_its_threads(tmp_path, capsys):
    file = tmp_path / "fast.out"
    file.write_text(_result(n=137472, time_s=690.0, nb=384))
    assert main([*OF_FILE, str(file)]) == 0
    out = capsys.readouterr().out
    verdict = r"Your fast.out is fast: 690 s, (\d+) times as fast as predicted \([\d,]+ s\); possibly about \d+ thread"
    told = re.match(verdict, out)
    assert told
    assert f"error {told[1]} times as long (predicted relative to measured)" in " ".join(out.split())
    assert f"  {told[1]} times as long  " in out


def _case(ranks: int = 1, threads: int = 1, n: int = 50_000) -> Case:
    hpl = Hpl(n=n, p=1, q=ranks, threads_per_rank=threads)
    return Case(hpl, predicted(hpl, (99.0, 100.0, 101.0)))


def _keys(case: Case, ratio: float) -> list[str]:
    return [cause.cause for cause in causes_of(case, ratio, load_platform("dahu"))]


def test_causes_fit_the_size_and_the_direction_of_the_gap() -> None:
    """Dahu has nodes of 32 cores."""
    alone, node, nodes = _case(), _case(ranks=32), _case(ranks=128)
    assert _keys(node, 1.12)[:2] == ["clock", "load"]
    assert {"slow_node", "network"} <= set(_keys(nodes, 1.12))
    assert not {"slow_node", "network"} & set(_keys(node, 1.12))
    far = _keys(node, 48.0)
    assert far[0] == "blas_threads"
    assert {"one_core", "slow_blas"} <= set(far)
    assert not {"clock", "load", "libraries", "machine", "precision", "threads"} & set(far)
    assert _keys(_case(threads=16), 15.0)[0] == "one_thread"
    assert "shared_cores" in _keys(node, 2.1)
    assert not {"blas_threads", "one_core"} & set(_keys(alone, 32.0))
    assert {"threads", "precision"} <= set(_keys(alone, 0.05))
    assert {"slow_blas", "network", "load"}.isdisjoint(_keys(alone, 0.05))
    assert _keys(alone, 5000.0) == []
    small = Case(alone.hpl, predicted(alone.hpl, (0.099, 0.1, 0.101)))
    assert _keys(small, 7.0)[0] == "small"
    assert "small" not in [one.cause for one in causes_of(small, 7.0, load_platform("dahu"), common=True)]
    assert "small" not in _keys(small, 20.0), "no chance makes a run twenty times as long"


def test_what_the_results_show_comes_first() -> None:
    platform = override(load_platform("dahu"), {"nodes.memory_bytes": 24000000000})
    (first, *_) = causes_of(_case(ranks=32), 300.0, platform)
    assert (first.cause, first.seen) == ("memory", True)
    assert first.text == "swapping: the matrix fills 83 % of a node's memory"
    assert causes_of(_case(ranks=32), 3000.0, load_platform("dahu")) == []


def test_the_platform_comes_first_only_where_what_it_extrapolates_explains_the_gap_and_all_cases_have_it() -> None:
    """A quarter of computing outside would have to take 2.7 times as long for the run to take 30 % longer."""
    hpl, dahu = Hpl(n=50_000, p=1, q=4), load_platform("dahu")
    quarter, most = (
        Case(hpl, replace(predicted(hpl, (99.0, 100.0, 101.0)), outside=SimpleNamespace(share=share)))
        for share in (0.25, 0.9)
    )
    assert causes_of(most, 1.2, dahu)[0].cause == causes_of(most, 1.2, dahu, common=True)[0].cause == "extrapolated"
    assert [cause.cause for cause in causes_of(quarter, 1.3, dahu)][:2] == ["clock", "load"]
    assert [cause.cause for cause in causes_of(most, 1.2, dahu, common=False)][:2] == ["load", "clock"]


def _judged(ratio: float, count: int = 1, **changed: object) -> Verdict:
    """Of `count` cases the first took so many times as long as predicted; intervals are ± 10 %."""
    rows = [
        {"measured_time_s": 100.0 * (ratio if at == 0 else 1.02), "predicted_time_s": 100.0, "mean_low_s": 100.0 / 1.1,
         "mean_high_s": 110.0, "inside_interval": True, "flop_count": 1e12, "low_s": 90.0, "high_s": 110.0,
         "error_percent": 100.0 * (1.0 / (ratio if at == 0 else 1.02) - 1.0),
         "measured_rate_gflops": 1.0, "predicted_rate_gflops": 1.0, "only_disturbed": False} | changed
        for at in range(count)
    ]  # fmt: skip
    return verdict("HPL.out", [], [_case(ranks=32)] * count, rows, load_platform("dahu"))


def test_the_verdict_comes_in_one_line_with_size_direction_and_cause_and_allows_for_many_cases() -> None:
    assert _judged(1.04).text == "Your HPL.out is as expected: error -3.8 %"
    assert _judged(1.12).text.startswith(
        "Your HPL.out is slow: 112 s, 12 % longer than predicted (100 s); possibly the clock frequency"
    )
    assert "4800 s, 48 times as long as predicted (100 s); possibly threads of BLAS" in _judged(48.0).text
    assert _judged(3000.0).text.endswith("; unknown why: no cause that is known makes so large a gap")
    assert (_judged(3000.0).value, _judged(3000.0).causes) == ("slower", ())
    assert (_judged(0.6).value, round(_judged(0.6).error_percent or 0.0)) == ("faster", 67)
    assert _judged(1.12, inside_interval=None).value == "unknown"
    assert _judged(1.02, high_s=200.0).value == "undecided"
    assert [_judged(1.12, count).value for count in (1, 16)] == ["slower", "as_expected"]
    assert "N = 50000, NB = 128, WR12R2C2, 1 x 32: 120 s, 20 % longer than predicted (100 s); " in _judged(1.2, 16).text


def test_a_result_that_hpl_calls_wrong_is_none_and_ends_with_status_1(tmp_path, capsys):
    check = "||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=  1234.0000000 ...... FAILED\n"
    file, words = tmp_path / "HPL.out", ["verify", "hpl", "-p", "dahu", "--runs", "2", "--results"]
    file.write_text(_result(n=4000, time_s=9.0) + check + _result(n=4000, time_s=4.0))
    assert main([*words, str(file), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["verdict"], told["measured_time_s"]) == ("failed", pytest.approx(4.0, rel=1e-3))
    assert [one["failed"] for one in told["measured"]] == [True, False]


def _result(n: int, time_s: float, nb: int = 128) -> str:
    """A line of HPL's, of a run on one process."""
    rate = (2 / 3 * n**3 + 3 / 2 * n**2) / time_s / 1e9
    return f"WC00C2R2 {n:12d} {nb:5d}     1     1 {time_s:18.2f} {rate:22.4e}\n"
