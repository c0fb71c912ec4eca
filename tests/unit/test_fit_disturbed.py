"""Which rows the fits leave out where other load disturbed some runs."""

import pandas

from lepaute.measure.fit.observations.calibrations import without_disturbed

KERNELS = ("probe", "cpu")


def runs(*rows: tuple[int, int, bool], probe: str = "dgemm", cpu: int = 0) -> pandas.DataFrame:
    """Two rows of observations for each run (block, attempt, disturbed)."""
    frame = pandas.DataFrame([row for row in rows for _ in range(2)], columns=["block", "attempt", "disturbed"])
    return frame.assign(probe=probe, cpu=cpu, duration_s=1.0)


def left(frames: list[pandas.DataFrame]) -> list[tuple[int, int, bool]]:
    pairs = [
        (int(block), int(attempt), bool(disturbed))
        for frame in frames
        for block, attempt, disturbed in zip(frame["block"], frame["attempt"], frame["disturbed"], strict=True)
    ]
    return sorted(set(pairs))


def test_disturbed_runs_are_left_out_where_three_blocks_have_an_undisturbed_one():
    table = runs((0, 0, True), (0, 1, False), (1, 0, False), (2, 0, False), (3, 0, True), (4, 0, True), (4, 1, True))
    kept, short = without_disturbed([table], KERNELS)
    assert left(kept) == [(0, 1, False), (1, 0, False), (2, 0, False)]
    assert short == ()
    assert len(table) == 14  # what was given stays as it was


def test_all_rows_are_used_where_too_few_blocks_have_an_undisturbed_run():
    table = runs((0, 0, True), (0, 1, False), (1, 0, False), (2, 0, True), (3, 0, True))
    kept, short = without_disturbed([table], KERNELS)
    assert short == ("dgemm 0",)
    assert len(kept[0]) == len(table)


def test_each_probe_and_core_is_judged_for_itself():
    quiet = [(block, 0, False) for block in range(3)]
    poor = runs((0, 0, False), (1, 0, True), (2, 0, True), cpu=1)
    table = pandas.concat([runs(*quiet, (3, 0, True)), poor, runs(*quiet, (0, 1, True), probe="hpl_steps_1x1", cpu=1)])
    (kept,), short = without_disturbed([table], KERNELS)
    assert short == ("dgemm 1",)
    counts = kept.groupby(["probe", "cpu"])["disturbed"].agg(["size", "sum"])
    assert counts.to_dict("index") == {
        ("dgemm", 0): {"size": 6, "sum": 0},
        ("dgemm", 1): {"size": 6, "sum": 4},
        ("hpl_steps_1x1", 1): {"size": 6, "sum": 0},
    }


def test_blocks_of_several_archives_count_together_and_old_archives_count_as_undisturbed():
    old = runs((0, 0, False), (1, 0, False)).drop(columns=["attempt", "disturbed"])
    kept, short = without_disturbed([old, runs((0, 0, True), (1, 0, False))], KERNELS)
    assert short == ()
    assert [len(frame) for frame in kept] == [4, 2]
