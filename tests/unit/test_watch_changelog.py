"""The log of events and outliers: which nodes an entry touches, and what is no entry."""

import datetime as dt
from pathlib import Path

import pytest

from lepaute.errors import InputError
from lepaute.watch.changelog import NodeSet, Outlier, read_changelog

DATA = Path(__file__).parents[1] / "data" / "watch"
NODES = [("dahu", "13"), ("dahu", "14"), ("dahu", "dahu-16"), ("gros", "13"), ("mine", "node13.site")]


def test_the_published_log_is_read() -> None:
    log = read_changelog(DATA / "events.csv", DATA / "outliers.csv")
    assert (len(log.events), len(log.outliers)) == (23, 41)
    assert {event.kind for event in log.events} == {"protocol", "platform"}
    resets = log.resets_s([("dahu", "26"), ("dahu", "13")])
    # four protocol events (2019-07-13, 10-18, 2020-05-05, 11-06) and the software of 2021-03-01, of all clusters; BIOS
    # of 2020-04-01 and 12-15; a power drain of node 26; two of the cooling of node 13
    assert (len(resets["dahu", "26"]), len(resets["dahu", "13"])) == (8, 9)
    assert ("dahu", "31", "1965756") in log.outlying_jobs([("dahu", "31"), ("dahu", "30")])
    assert not log.outlying_jobs([("dahu", "30"), ("gros", "31")]) & {
        ("dahu", "30", "1965756"),
        ("gros", "31", "1965756"),
    }


@pytest.mark.parametrize(
    ("cluster", "text", "touched"),
    [
        ("all", "all", set(NODES)),
        ("dahu", "all", {("dahu", "13"), ("dahu", "14"), ("dahu", "dahu-16")}),
        ("dahu", "13/16", {("dahu", "13"), ("dahu", "dahu-16")}),
        ("dahu", "dahu-[13-14]", {("dahu", "13"), ("dahu", "14")}),
        ("dahu", "[13-15/2],16", {("dahu", "13"), ("dahu", "dahu-16")}),
        ("all", "13", {("dahu", "13"), ("gros", "13")}),
        ("mine", "node[11-13].site", {("mine", "node13.site")}),
        ("mine", "13", set()),
    ],
)
def test_a_set_of_nodes_has_those_that_it_names(cluster: str, text: str, touched: set[tuple[str, str]]) -> None:
    assert NodeSet(cluster, text).among(NODES) == touched


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("2020-13-01,dahu,all,platform,x", "events.csv:2: the date is '2020-13-01'; write it as 2020-04-01"),
        ("2020-12-01,dahu,all,bios,x", "events.csv:2: the type of an event is 'bios'; give protocol or platform"),
        ("2020-12-01,,all,platform,x", "events.csv:2: the cluster is empty"),
        ("2020-12-01,dahu,,platform,x", "events.csv:2: .*is not a set of nodes"),
        ("2020-12-01,dahu,13-/,platform,x", "events.csv:2: .*not a"),
        ("2020-12-01,dahu,13,platform,a, b", "events.csv:2: there are more cells than columns; put a description"),
        ('2020-12-01,dahu,13,platform,"a', "events.csv is not a CSV file: unexpected end of data"),
    ],
)
def test_a_faulty_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "events.csv"
    path.write_text(f"date,cluster,node,type,description\n{line}\n")
    with pytest.raises(InputError, match=message):
        read_changelog(path)


def test_an_outlier_needs_a_job() -> None:
    with pytest.raises(InputError, match="the job of an outlier is empty"):
        Outlier(dt.date(2020, 1, 1), NodeSet("dahu", "1"), "", "x")
