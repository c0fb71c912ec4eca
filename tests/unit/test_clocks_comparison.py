"""From rows of synchronisations to the answer: exact cases made by hand."""

import json
from pathlib import Path
from typing import Any

import pandas
import pytest
from support_run import run_here

from lepaute.errors import ArchiveError, InputError
from lepaute.kit.json_values import to_json
from lepaute.measure.archive import Archive, ArchiveWriter
from lepaute.measure.clocks.comparison import Found, compared
from lepaute.measure.clocks.report import page
from lepaute.measure.clocks.request import KIND, SYNCHRONISATIONS, ClockFacts, ClockRequest, moments_of, simulated_of
from lepaute.measure.clocks.wording import answer, fact_lines, methods_table, open_lines

#: Of each method, what a synchronisation takes, and the errors of its worst rank at 0 and 5 s, ns.
SOME = {"SKaMPI": (0.002, 200, 4000), "HCA3": (1.2, 300, 500), "JK": (0.6, 1500, 900)}


def rows_of(mpiruns: int, methods: dict[str, tuple[float, float, float]] = SOME, **more: Any) -> pandas.DataFrame:
    """Two ranks beside rank 0, the second with half the error; in mpirun k all errors are 1 % larger than in k - 1."""
    return pandas.DataFrame(
        [
            {
                "mpirun": mpirun, "method": method, "rank": rank, "after_s": after_s, "checked_s": after_s + 0.001,
                "duration_s": took_s * (1 + 0.001 * mpirun), "shortest_error_ns": -error_ns * 1.01**mpirun / rank + 40,
                "half_round_trip_ns": 100.0, "true_error_ns": -error_ns * 1.01**mpirun / rank,
            }
            | more
            for mpirun in range(mpiruns)
            for method, (took_s, *errors_ns) in methods.items()
            for rank in (1, 2)
            for after_s, error_ns in zip((0.0, 5.0), errors_ns, strict=True)
        ]
    )  # fmt: skip


def archived(path: Path, rows: pandas.DataFrame, **facts: Any) -> Archive:
    about = ClockFacts(asked=ClockRequest(methods=tuple(SOME), after_s=(0.0, 5.0)), ranks=3, nodes=("here",), **facts)
    with ArchiveWriter(path, {"kind": KIND, "created": "2026-11-27T00:00:00Z", KIND: to_json(about)}) as archive:
        archive.add_table(SYNCHRONISATIONS, rows)
    return Archive.open(path)


@pytest.fixture
def found(tmp_path: Path) -> Found:
    return compared(archived(tmp_path / "c.zip", rows_of(11)))


def test_each_length_has_the_cheapest_method_of_the_best_ones(found: Found) -> None:
    now, later = found.choices
    assert (now.method, now.least, now.worse, now.open) == ("SKaMPI", "SKaMPI", ("JK", "HCA3"), ())
    # HCA3 has 500 ns after 5 s, JK 900 then but 1500 at the beginning of such a measurement, SKaMPI 4000.
    assert (later.method, later.least, later.worse) == ("HCA3", "HCA3", ("SKaMPI", "JK"))
    assert found.error("JK", 5.0).error_s == pytest.approx(1500e-9 * 1.01**5)  # the median is mpirun 5 of 0 to 10
    assert found.cost("JK").duration_s == pytest.approx(0.603)
    assert now.front == ("SKaMPI",)  # the best and the cheapest
    assert later.front == ("SKaMPI", "JK", "HCA3")
    (pair,) = [one for one in found.pairs if {one.method, one.other} == {"SKaMPI", "HCA3"} and one.length_s == 5.0]
    assert pair.ratio == pytest.approx(8.0)  # in every mpirun
    assert (pair.low, pair.high) == (pytest.approx(8.0), pytest.approx(8.0))


def test_a_margin_or_an_error_that_is_enough_lets_a_cheaper_method_be_taken(found: Found, tmp_path: Path) -> None:
    archive = Archive.open(tmp_path / "c.zip")
    assert compared(archive, margin=2.1).choices[1].method == "JK"  # 1500 of 500 ns
    assert compared(archive, enough_s=1e-5).choices[1].method == "SKaMPI"  # 4 µs
    with pytest.raises(InputError, match="--margin"):
        compared(archive, margin=-0.1)


def test_what_is_said_names_methods_lengths_and_intervals(found: Found) -> None:
    said = answer(found)
    assert said.startswith("Take SKaMPI for what follows at once: clocks off by 210.2 ns (95 %: ")
    assert "; HCA3 for measurements of up to 5 s: " in said or "; HCA3 for up to 5 s: " in said
    assert open_lines(found) == []
    words = dict(fact_lines(found))
    assert words["error"].startswith("known, since all ranks' clocks are one clock; messages miss it by 40.0 ns in the")
    assert [row[0] for row in methods_table(found)[1]] == ["SKaMPI", "JK", "HCA3"]  # the cheapest first
    assert "Take SKaMPI" in page(found)
    assert json.loads(json.dumps(found.to_dict()))["choices"][1]["method"] == "HCA3"


def test_without_a_true_error_that_of_the_shortest_round_trip_counts(tmp_path: Path) -> None:
    found = compared(archived(tmp_path / "c.zip", rows_of(11, true_error_ns=float("nan"))))
    assert not found.known
    assert found.reference is None
    assert found.error("SKaMPI", 0.0).error_s == pytest.approx(1e-9 * (200 * 1.01**5 - 40))
    assert dict(fact_lines(found))["error"] == "by messages, which tell it to within 100 ns (half a round trip)"


def test_an_mpirun_that_lacks_a_look_does_not_count(tmp_path: Path) -> None:
    rows = rows_of(7)
    rows = rows[(rows["mpirun"] != 3) | (rows["method"] != "JK") | (rows["after_s"] == 0)]
    assert compared(archived(tmp_path / "c.zip", rows)).mpiruns == 6


def test_few_mpiruns_and_late_looks_are_caveats(tmp_path: Path) -> None:
    found = compared(archived(tmp_path / "c.zip", rows_of(3, checked_s=9.0)))
    assert found.errors[0].low_s is None
    assert any("3 mpiruns give no interval" in line for line in found.caveats)
    assert any("came late, by up to 9.00 s" in line for line in found.caveats)
    assert open_lines(found)[0].startswith("at once: JK, HCA3 not told apart from SKaMPI")


@pytest.mark.parametrize("damage", ["no rows", "no column", "texts"])
def test_a_table_that_is_none_of_clocks_is_refused_in_one_line(damage: str, tmp_path: Path) -> None:
    rows = {
        "no rows": lambda: rows_of(1).head(0),
        "no column": lambda: rows_of(1).drop(columns="duration_s"),
        "texts": lambda: rows_of(1, after_s="soon"),
    }[damage]()
    archive = archived(tmp_path / "c.zip", rows)
    with pytest.raises(ArchiveError):
        compared(archive)
    done = run_here("clocks", "c.zip", folder=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


def test_words_of_options_are_read() -> None:
    assert simulated_of("64,1") == (64, 1.0, 0.0)
    assert simulated_of("8, 0.5, 0.05") == (8, 0.5, 0.05)
    assert moments_of("0,500ms,1min") == (0.0, 0.5, 60.0)
    for text in ("64", "a,1", "64,nan", "1,2,3,4", "-1,2", "64,"):
        with pytest.raises(InputError, match="--simulate"):
            simulated_of(text)


def test_every_block_has_an_order_of_its_own_that_the_seed_gives() -> None:
    asked = ClockRequest()
    orders = [tuple(asked.order(block, 1)) for block in range(20)]
    assert len(set(orders)) > 15
    assert all(sorted(order) == sorted(asked.methods) for order in orders)
    assert orders == [tuple(asked.order(block, 1)) for block in range(20)]
    assert orders != [tuple(asked.order(block, 2)) for block in range(20)]
