"""Files that people have (tests/data/small_inputs): read, and what is left out is said, or refused by what is wrong."""

import bz2
import gzip
import lzma
from pathlib import Path

import pyarrow
import pytest

import lepaute as lp
from lepaute.cli.main import main
from lepaute.simulate.trace.table import FORMATS_TEXT

DATA = Path(__file__).parents[1] / "data" / "small_inputs"
PREDICT = "predict trace {} -p dahu --runs 1 --without all"
INGEST = "watch ingest {0}/14-no-date.csv --mapping {0}/14-mapping.yaml --store {1}/store"
CASES = {
    "segment {}/01-rate-named-mb_s.csv": "'bandwidth_mb_s' is a rate by its name, of unknown unit; give --unit MB/s",
    "segment {}/02-imb-zero-row.txt": "caveat: line 8 of 0 bytes, for which nothing is called, left out",
    "segment {}/03-prepend-rank.txt": "from    OSU MPI Latency Test v7.4: 17 sizes from 1 B to 64 KiB, Avg Latency(us)",
    "segment {}/11-nonblocking-overall.txt": "1 caveat: the time is Pure Comm.(us); Overall(us) has what",
    "segment {}/17-imb-two-sizes.txt": "17-imb-two-sizes.txt: Reduce, 2 processes: 2 sizes; give 3 or more",
    "segment {}/19-hump.txt": " times as long as 64 KiB",
    "compare a={0}/13-two-hundred-times-a.txt b={0}/13-two-hundred-times-b.txt": "one run each: not tested\n",
    "compare a={0}/03-prepend-rank.txt b={0}/01-rate-named-mb_s.csv": "01-rate-named-mb_s.csv: is no output of the OSU",
    PREDICT.format("{}/07-two-applications.prv"): "1 record of another application, without calls of MPI, left out of",
    PREDICT.format("{}/09-one-application.prv.gz"): "a program of 09-one-application.prv.gz, 2 ranks",
    PREDICT.format("{}/10-liballprof.txt"): f"10-liballprof.txt: of no format that is read: {FORMATS_TEXT}",
    PREDICT.format("{}"): f"of no format that is read: {FORMATS_TEXT}",
    PREDICT.format("{}/15-ti-list/run/list.txt"): "a program of list.txt, 2 ranks",
    PREDICT.format("{}/g_cut.goal"): "has 1 of 4 ranks, not rank 1; it is truncated",
    PREDICT.format("{}/g_big24.goal"): "line 1: 'num_ranks 16000000': at most 4194304 are simulated",
    PREDICT.format("{}/p_cut.prv"): "ends at 1.20 ms of 1.00 s (its header), task 1 without MPI_Finalize: truncated",
    PREDICT.format("{}/p_cut3.prv"): "ends at 1.20 ms of 1.00 s (its header), task 1 without MPI_Finalize: truncated",
    PREDICT.format("{}/p_big.prv"): "line 1: has 99999999 tasks; at most 4194304 ranks are simulated",
    "trace show {}/p_isend.prv": "its records end at 1.00 µs of 1.00 s (its header)",
    PREDICT.format("{}/ti_cut_compute.txt"): "rank 0 begins (init) and does not end (finalize); it is truncated",
    PREDICT.format("{}/ti_root.txt"): "ti_root.txt, line 1: bcast's root is 55; there are 2 ranks",
    PREDICT.format("{}/ti_msgsize2.txt"): "line 2: rank 1 receives 10 bytes of a message of 1000000 from rank 0",
    PREDICT.format("{}/ti_bigrank.txt"): "has lines of 1 rank, none of rank 0 of 16777215; it is truncated",
    PREDICT.format("{}/ti_memory_2783.txt"): "has lines of 3 ranks, none of rank 2 of 16777215; it is truncated",
    INGEST: "12 new factor values from 1 file",
    f"{INGEST} --file-date": "14-no-date.csv: --date or --file-date is given, and the mapping has a date, too",
}


@pytest.mark.parametrize("command", CASES)
def test_a_file_is_read_or_refused_as_it_should_be(command, tmp_path, capsys):
    status = main([word.format(DATA, tmp_path) for word in command.split()])
    printed = capsys.readouterr()
    assert CASES[command] in printed.out + printed.err
    assert status == (2 if "lepaute: " in printed.err else 0)


def test_messages_without_a_record_are_refused_where_no_other_side_is_known(tmp_path: Path) -> None:
    text = (DATA / "07-two-applications.prv").read_text()
    (tmp_path / "x.pcf").write_text((DATA / "07-two-applications.pcf").read_text())
    (tmp_path / "x.prv").write_text("".join(line for line in text.splitlines(True) if not line.startswith("3:")))
    with pytest.raises(lp.errors.InputError, match="has 1 send, 1 receive and no record of communication"):
        lp.read_trace(tmp_path / "x.prv")
    (tmp_path / "x.prv").write_text(text.replace("50000003:31", "50000003:99"))
    with pytest.raises(lp.errors.InputError, match=r"MPI call 99, which x.pcf does not name"):
        lp.read_trace(tmp_path / "x.prv")


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, pyarrow.Codec("zstd").compress])
def test_compressed_files_are_read_by_their_content_and_refused_where_they_are_cut(pack, tmp_path):
    plain = lp.read_trace(DATA / "15-ti-list" / "run" / "list.txt")
    (tmp_path / "one.txt").write_bytes(
        pack(b"0 init\n0 send 1 0 1e6\n1 init\n1 recv 0 0 1e6\n1 finalize\n0 finalize\n")
    )
    assert lp.read_trace(tmp_path / "one.txt").to_frame().equals(plain.to_frame())
    data = bytes(pack((DATA / "19-hump.txt").read_bytes()))
    (tmp_path / "t.txt").write_bytes(data)
    assert len(lp.fit.read_durations(tmp_path / "t.txt")[0].x) == 19
    (tmp_path / "t.txt").write_bytes(pack(bytes(65 << 20)))
    with pytest.raises(lp.errors.InputError, match=r"has more than 67108864 bytes"):
        lp.fit.read_durations(tmp_path / "t.txt")
    (tmp_path / "t.txt").write_bytes(data[: len(data) // 2])
    with pytest.raises(lp.errors.InputError, match=r"ends in the middle of its .* data; copy it again"):
        lp.fit.read_durations(tmp_path / "t.txt")
    (tmp_path / "t.txt").write_bytes(data[:20] + b"\xff" * 20 + data[40:])
    with pytest.raises(lp.errors.InputError):
        lp.fit.read_durations(tmp_path / "t.txt")


@pytest.mark.parametrize("prefix", ["[0] ", "[1,0]<stdout>:", "[prterun-n1-17@1,0]<stdout>: ", " 0: "])
def test_what_a_launcher_puts_before_lines_is_taken_off(prefix: str, tmp_path: Path) -> None:
    lines = (DATA / "19-hump.txt").read_text().splitlines()
    other = prefix.replace("0]", "3]").replace("0:", "3:")
    plain = lp.fit.read_durations(DATA / "19-hump.txt")[0]
    text = "\n".join([*(prefix + line for line in lines[:6]), "mpirun warns", f"{other}4 99.0", ""])
    (tmp_path / "t.txt").write_text(text + "\n".join(prefix + line for line in lines[6:]))
    (table,) = lp.fit.read_durations(tmp_path / "t.txt")
    assert table.duration_s.tolist() == plain.duration_s.tolist()
    assert "left out, as the launcher's" in table.notes[-1]
    (tmp_path / "t.csv").write_text(f"{prefix}size,time_us\n{prefix}1,2\n{prefix}3,4\n")
    assert lp.fit.read_durations(tmp_path / "t.csv")[0].x.tolist() == [1, 3]


@pytest.mark.parametrize(
    "name",
    ["bandwidth_mb_s", "mb_s", "gib_s", "throughput_gb_s", "bandwidth_mb_sec", "msgs_s", "ops_s", "bw_s", "Gflops_s"],
)
def test_a_rate_is_not_read_as_seconds(name: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(f"size,{name}\n1,2\n3,4\n5,6\n")
    with pytest.raises(lp.errors.InputError, match=f"'{name}' is a rate by its name, of unknown unit; give --unit"):
        lp.fit.read_durations(tmp_path / "t.csv")


def test_columns_that_are_not_used_are_named(tmp_path, output_of):
    (tmp_path / "t.csv").write_text("size,time_us,node,meaning_us\n" + "".join(f"{size},2,a,1\n" for size in (1, 2, 3)))
    assert "2 columns not used (node, meaning_us)" in output_of("segment", tmp_path / "t.csv", "--y", "time_us")
    (tmp_path / "w.csv").write_text(
        "day,node,rate,heat,rack\n2026-01-01,a,1,,r\n2026-01-01,a,1,,r\n2026-01-02,a,2,,r\n"
    )
    factors = "{rate_flops: {column: rate, unit: flop/s}, heat_degC: {column: heat, unit: degC}}"
    (tmp_path / "m.yaml").write_text(f"node: node\ndate: day\nfactors: {factors}\n")
    words = ["watch", "ingest", str(tmp_path / "w.csv"), "--mapping", str(tmp_path / "m.yaml"), "--store"]
    told = [line.partition("w.csv: ")[2] for line in output_of(*words, tmp_path / "store").splitlines()[1:]]
    assert told == [
        "1 column that the mapping does not name (rack)",
        "3 cells without a value",
        "1 value that is there twice",
    ]
