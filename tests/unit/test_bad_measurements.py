"""Measurements that cannot be are refused in one line; those that are merely poor are fitted, and flagged."""

import json

import numpy as np
import pandas
import pytest
from support_fit import kernel_rows, message_rows, write_calibration

import lepaute.measure.fit
from lepaute.cli.main import main
from lepaute.errors import FitError
from lepaute.measure.archive import Archive


def put(column, value, *, row=7, rows=1):
    """A defect: `value` in a column, in `rows` rows from number `row` (from 0) on."""

    def change(frame):
        frame = frame.copy()
        values = frame[column].astype(object if isinstance(value, str) or value is None else np.float64)
        values.iloc[row : row + rows] = value
        frame[column] = values
        return frame

    return change


def backwards(frame):
    """The clock is set back by 3 ms, in the middle of a process."""
    frame = frame.copy()
    frame.loc[150:299, "start_s"] -= 0.003
    frame.loc[0:299, "start_s"] = frame.loc[0:299, "start_s"].clip(lower=frame["start_s"].iloc[0] - 0.003)
    return frame


def copied(frame):
    return pandas.concat([frame, frame.iloc[20:30]], ignore_index=True)


#: What is wrong with the kernels' table -> what the error says of it, besides the table's name.
BAD_KERNELS = {
    "empty": (lambda frame: frame.iloc[:0], "no kernel observations"),
    "a column is absent": (lambda frame: frame.drop(columns="duration_s"), "lacks the column duration_s"),
    "a duration is NaN": (put("duration_s", np.nan), "row 8 (dgemm): duration_s is nan"),
    "durations are infinite": (put("duration_s", np.inf, rows=3), "row 8 (dgemm) and 2 more: duration_s is inf"),
    "a duration is negative": (put("duration_s", -1e-6), "duration_s is -1e-06, below 0; a clock that went backwards"),
    "a duration of a month": (put("duration_s", 2.6e6), "more than a week"),
    "durations in milliseconds": (lambda f: f.assign(duration_s=f["duration_s"] * 1e3), "durations are in seconds"),
    "a date is NaN": (put("start_s", np.nan), "start_s is nan"),
    "the clock goes backwards": (backwards, "the clock went backwards"),
    "rows appear twice": (copied, "row 3001 (dgemm) and 9 more: is an exact copy"),
    "durations are texts": (put("duration_s", "slow", row=0, rows=10**6), "holds texts such as 'slow'"),
    "durations are yes and no": (lambda f: f.assign(duration_s=f["duration_s"] > 1e-5), "duration_s holds bool"),
    "a size is NaN": (put("m", np.nan), "m is nan"),
    "a size is negative": (put("n", -3), "n is -3, below 0"),
    "a kernel has no name": (put("kernel", None), "kernel is missing"),
    "kernels are numbers": (lambda frame: frame.assign(kernel=1), "column kernel holds int64, not names"),
    "kernels are bytes": (lambda frame: frame.assign(kernel=[b"\xff"] * len(frame)), "column kernel holds object, not"),
    "a core of no node": (put("cpu", 2**40), "cpu is 1.09951e+12, above 1048575"),
    "a size that no real knows": (put("m", 1e300), "m is 1e+300, above"),
    "all durations are zero": (lambda frame: frame.assign(duration_s=0.0), "no kernel could be fitted"),
    "less than the clock's cost": (lambda frame: frame.assign(clock_cost_s=9.0), "no kernel could be fitted"),
}  # fmt: skip
BAD_MESSAGES = {
    "empty": (lambda frame: frame.iloc[:0], "fewer than 10 measurements of pingpong"),
    "a column is absent": (lambda frame: frame.drop(columns="size_bytes"), "lacks the column size_bytes"),
    "a duration is NaN": (put("duration_s", np.nan), "row 8"),
    "a duration is negative": (put("duration_s", -1e-6), "below 0"),
    "a size is negative": (put("size_bytes", -8), "size_bytes is -8, below 0"),
    "sizes are texts": (put("size_bytes", "8 KiB", row=0, rows=10**6), "column size_bytes holds texts such as '8 KiB'"),
    "rows appear twice": (copied, "row 1201"),
    "the clock goes backwards": (lambda f: f.assign(start_s=f["start_s"].to_numpy()[::-1]), "the clock went backwards"),
    "no ping-pong": (lambda frame: frame[frame["operation"] != "pingpong"], "fewer than 10 measurements of pingpong"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("table", "defect"), [("kernels", defect) for defect in BAD_KERNELS] + [("messages", bad) for bad in BAD_MESSAGES]
)
def test_observations_that_cannot_be_are_refused_in_one_line_that_says_where(table, defect, tmp_path, refusal_of):
    rows, defects = {"kernels": (kernel_rows, BAD_KERNELS), "messages": (message_rows, BAD_MESSAGES)}[table]
    change, said = defects[defect]
    path = write_calibration(tmp_path / "bad.zip", **{table: change(rows())})
    assert said in refusal_of("fit", path, "-o", tmp_path / "p.yaml")
    assert not (tmp_path / "p.yaml").exists()


def test_the_made_up_observations_without_a_defect_are_fitted(tmp_path, capsys):
    assert main(["fit", str(write_calibration(tmp_path / "good.zip")), "-o", str(tmp_path / "p.yaml")]) == 0
    assert "warning" not in capsys.readouterr().err


def constant(frame):
    return frame.assign(duration_s=1e-3, start_s=np.arange(len(frame)) * 2e-3)


def half_are_zero(frame):
    """A second kernel, whose durations are all zero."""
    zero = frame["kernel"] == "dtrsm"
    return frame.assign(duration_s=frame["duration_s"].where(~zero, 0.0))


#: What is poor about kernels -> kind of the flag, and what a person reads of it.
POOR = {
    "durations are constant": (constant, "constant", "All 3000 durations are exactly 1.00 ms"),
    "one size only": (lambda frame: frame.assign(m=100, n=100), "sizes", "Calls of only 1 size were measured"),
    "one kernel takes no time": (half_are_zero, "no model", "and has no model: simulations assume"),
    "few calls": (lambda frame: frame.groupby("block").head(3), "calls", "Only 15 calls were measured"),
}


@pytest.mark.slow
@pytest.mark.parametrize("defect", POOR)
def test_poor_observations_are_fitted_and_flagged_and_the_serious_are_printed(defect, tmp_path, capsys, json_of):
    change, kind, said = POOR[defect]
    kernels = change(kernel_rows(kernels=("dgemm", "dtrsm") if defect == "one kernel takes no time" else ("dgemm",)))
    path = write_calibration(tmp_path / "poor.zip", kernels=kernels)
    fit = ["fit", str(path), "-o", str(tmp_path / "p.yaml"), "--force"]
    flags = [flag for flag in json_of(*fit, "--json")["flags"] if flag["kind"] == kind]
    assert len(flags) == 1
    assert said in flags[0]["sentence"]
    assert main([*fit, "--details"]) == 0
    printed = capsys.readouterr()
    assert (flags[0]["severity"] == "serious") == (said in printed.err)
    assert printed.out.startswith("This calibration is not good") == (flags[0]["severity"] == "serious")


def test_messages_of_one_size_are_refused_or_flagged(tmp_path, capsys):
    path = write_calibration(tmp_path / "poor.zip", messages=message_rows().assign(size_bytes=64))
    status = main(["fit", str(path), "-o", str(tmp_path / "p.yaml"), "--json"])
    told = capsys.readouterr()
    if status == 2:
        assert len(told.err.splitlines()) == 1
    else:
        kinds = {(flag["subject"], flag["kind"]) for flag in json.loads(told.out)["flags"]}
        assert ("message pingpong", "sizes") in kinds


@pytest.mark.slow
def test_constant_durations_of_messages_are_flagged(tmp_path, json_of):
    messages = message_rows()
    messages = messages.assign(duration_s=1e-4, start_s=np.arange(len(messages)) * 2e-3)
    path = write_calibration(tmp_path / "poor.zip", messages=messages)
    flags = json_of("fit", path, "-o", tmp_path / "p.yaml", "--json")["flags"]
    assert ("message pingpong", "constant", "serious") in {(f["subject"], f["kind"], f["severity"]) for f in flags}


SIZES = np.arange(1.0, 101.0)
BAD_VECTORS = {
    "empty": ([], []),
    "two points": ([1.0, 2.0], [1.0, 2.0]),
    "of different lengths": (SIZES, SIZES[:-1]),
    "a NaN among the durations": (SIZES, np.where(SIZES == 5, np.nan, SIZES)),
    "an infinite size": (np.where(SIZES == 5, np.inf, SIZES), SIZES),
    "negative durations": (SIZES, -SIZES),
    "a duration of zero": (SIZES, SIZES - 1.0),
    "one size only": (np.full(50, 64.0), np.linspace(1.0, 1.1, 50)),
    "a table in the place of a vector": (np.ones((10, 2)), np.ones((10, 2))),
}


@pytest.mark.parametrize("defect", BAD_VECTORS)
def test_vectors_that_cannot_be_segmented_are_refused(defect):
    with pytest.raises(FitError) as refused:
        lepaute.fit.segment(*BAD_VECTORS[defect])
    assert "\n" not in str(refused.value)


def test_an_open_archive_that_is_given_twice_is_refused(tmp_path):
    archive = Archive.open(write_calibration(tmp_path / "once.zip"))
    with pytest.raises(FitError, match="give each once"):
        lepaute.fit.models([archive, archive])
