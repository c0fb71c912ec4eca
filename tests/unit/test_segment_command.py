"""`lepaute segment`: tables of OSU and Intel benchmarks and CSV, and what is said of them."""

from pathlib import Path

import numpy as np
import pytest

from lepaute.errors import InputError
from lepaute.measure.fit import segment
from lepaute.measure.fit.duration_tables import read_durations

DATA = Path(__file__).parents[1] / "data" / "duration_tables"
MADE = (512.0, 16384.0, 262144.0)  # the breakpoints of the tables that were made, see DATA/README.md


def test_latencies_of_osu_blocks_of_intels_benchmarks_and_bandwidths_are_read_as_durations():
    (table,) = read_durations(DATA / "osu_latency.txt")
    assert (table.name, table.y_name, table.unit) == ("OSU MPI Latency Test v5.9", "Latency (us)", "us")
    assert (len(table.x), table.x[0], table.x[-1]) == (24, 0.0, 4194304.0)
    assert table.duration_s[0] == pytest.approx(0.56e-6)
    pingpong, allreduce = read_durations(DATA / "imb_mpi1.txt")
    assert (pingpong.name, pingpong.y_name) == ("PingPong, 2 processes", "t[usec]")
    assert (allreduce.name, allreduce.y_name) == ("Allreduce, 2 processes", "t_avg[usec]")
    assert pingpong.duration_s[-1] == pytest.approx(607.35e-6)
    assert allreduce.duration_s[-1] == pytest.approx(1035.16e-6)
    (largest,) = read_durations(DATA / "imb_mpi1.txt", y="t_max[usec]")
    assert largest.duration_s[-1] == pytest.approx(1035.26e-6)
    (table,) = read_durations(DATA / "osu_bandwidth.txt")
    (latency,) = read_durations(DATA / "osu_three_protocols.txt")
    assert table.duration_s == pytest.approx(latency.duration_s, rel=0.01)
    assert table.notes == ("durations are size / Bandwidth (MB/s): with a window of messages, the time that each adds",)


@pytest.mark.parametrize("name", ["osu_three_protocols.txt", "osu_bandwidth.txt"])
def test_the_three_breakpoints_of_a_table_of_osu_are_found(name):
    (table,) = read_durations(DATA / name)
    assert segment(table.x, table.duration_s).breakpoints == MADE


def test_rows_of_csv_are_chosen_by_their_columns():
    (sends,) = read_durations(DATA / "two_operations.csv", only={"operation": "send"})
    (receives,) = read_durations(DATA / "two_operations.csv", only={"operation": "recv"})
    assert len(sends.x) == len(receives.x) == 69
    assert np.median(sends.duration_s / receives.duration_s) == pytest.approx(2.0, rel=0.02)


@pytest.mark.parametrize(
    ("text", "options", "sizes", "seconds"),
    [
        ("size,duration_ms\n1,2\n2,3\n", {}, [1, 2], [2e-3, 3e-3]),
        ("1 2\n2 3\n", {"unit": "ns"}, [1, 2], [2e-9, 3e-9]),
        ("# mine\nbytes;time;other\n1K;2;x\n1M;3;y\n", {"unit": "us"}, [1024, 1048576], [2e-6, 3e-6]),
        ("a\tb\tc\n1\t2\t3\n", {"x": "c", "y": "a", "unit": "s"}, [3], [1.0]),
        ("\ufeffsize,time_us\r\n1,2\r\n3,\r\n4,0.00\r\n", {}, [1], [2e-6]),
        ('"size","avg (us)","min (us)"\n1,2,1\n', {}, [1], [2e-6]),
        ("Message size [B],run,half round trip [µs],BW [MB/s]\n8,0,2,4\n", {}, [8], [2e-6]),
        ("size_kib,t_ms\n0.5,2\n", {}, [512], [2e-3]),
        ("size [MB];t [s]\n2;3\n", {}, [2097152], [3.0]),
        ("size_bytes,bandwidth_MBps\n1000,2\n0,0\n", {}, [1000], [5e-4]),
        ("size,time_us,bw_Gbps\n1000,9,8\n", {"y": "bw_Gbps"}, [1000], [1e-6]),
        ("size,bandwidth\n1000,2\n", {"unit": "GB/s"}, [1000], [5e-7]),
        ("size,t[us],wait[us]\n1,2,3\n", {"y": "t"}, [1], [2e-6]),
    ],
)
def test_csv_is_read_as_its_heading_says(tmp_path, text, options, sizes, seconds):
    (tmp_path / "t.csv").write_text(text)
    (table,) = read_durations(tmp_path / "t.csv", **options)
    assert table.x.tolist() == sizes
    assert table.duration_s == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("1 2\n", {}, "the unit of 'column 2' is not told; give --unit s, ms, us, ns"),
        ("size,time_us\n1,2\n", {"unit": "ms"}, "the column 'time_us' is in us, and --unit says ms; leave --unit out"),
        ("a,b,c\n1,2,3\n", {"unit": "s"}, "which column has the sizes? name it with --x: a, b, c"),
        ("size,time_us,wait_us\n1,2,3\n", {}, "which column has the durations? name it with --y"),
        ("size,time_us\n1,2\n3\n", {}, ":3: 1 cells, where the first line has 2"),
        ("size,time_us\n1,2\n-3,4\n", {}, ":3: the size is -3; it must be a number of at least 0"),
        ("size,time_us\n1,-2\n", {}, ":2: the duration is -2; it must be a number of at least 0"),
        ("size,time_us\n1,two\n", {}, ":2: the duration is 'two'; it must be a number"),
        ("size;time_us\n1;1,5\n", {}, ":2: the duration is '1,5'; it must be a number; write decimals with a point"),
        ("size,MB/s\n1,-2\n", {}, ":2: the rate is -2; it must be a number of at least 0"),
        ("size,bw_MBps\n1,2\n", {"unit": "us"}, "column 'bw_MBps' tells its unit, and --unit says us; leave --unit"),
        ("size,bw_MBps\n1,2\n", {"unit": "GB/s"}, "and --unit says GB/s; leave --unit out"),
        ("size,bw\n1,2\n", {"unit": "us"}, "'bw' is a rate by its name, of unknown unit; give --unit MB/s, GB/s, Gb/s"),
        ("size,bw_mbps\n1,2\n", {}, "'bw_mbps' is a rate by its name, of unknown unit; give --unit MB"),
        ("size,time_us\n1,0\n", {}, "no row has a size and a duration above 0"),
        ("", {}, "holds no rows"),
        ("size,time_us\n", {}, "has a heading and no rows"),
        ("# OSU MPI Barrier Latency Test v5.9\n# Size\n", {}, "holds no table of sizes and durations"),
        ("size,time_us\n1,2\n", {"y": "none"}, "no column 'none'; there are size, time_us"),
    ],
)
def test_a_file_that_is_no_such_table_is_refused_with_what_to_do(tmp_path, text, options, message):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(InputError) as refused:
        read_durations(tmp_path / "t.csv", **options)
    assert message in str(refused.value)
    assert str(refused.value).startswith(str(tmp_path / "t.csv"))
    assert str(refused.value).count("t.csv") == 1


def test_the_rate_of_several_messages_at_once_is_said_to_be_that(tmp_path):
    lines = "# OSU MPI Bi-Directional Bandwidth Test v7.4\n# Size      Bandwidth (MB/s)\n1000  2000\n"
    (tmp_path / "t.txt").write_text(lines)
    (table,) = read_durations(tmp_path / "t.txt")
    assert table.notes == (
        "durations are size / Bandwidth (MB/s), which is of both directions together: shorter than the message of one",
    )


def test_a_bandwidth_has_its_interval_and_details_tell_which_breakpoints_were_chosen(output_of):
    printed = output_of("segment", DATA / "osu_three_protocols.txt")
    assert "<- chosen" not in printed
    assert "<- chosen" in output_of("segment", DATA / "osu_three_protocols.txt", "--details")
    assert printed.split()[-4:] == ["6.3", "5.4", "to", "7.7"]  # made with 1 / 0.16 ns = 6.25


@pytest.mark.parametrize("line", ["10:00:01 node1 create_qp failed", "2 of 4 ranks wait", "05/01/2024 12 3"])
def test_other_log_lines_are_skipped_and_a_damaged_row_is_refused(tmp_path, line):
    text = (DATA / "osu_log_line.txt").read_text().splitlines()
    text[9] = line
    (tmp_path / "t.txt").write_text("\n".join(text))
    assert read_durations(tmp_path / "t.txt")[0].notes
    text[9] = "6x4 1.78"
    (tmp_path / "t.txt").write_text("\n".join(text))
    with pytest.raises(InputError, match=r":10: the size is '6x4'"):
        read_durations(tmp_path / "t.txt")
