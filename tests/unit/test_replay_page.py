"""The page of a replay: it opens offline in a real browser, says what the command says, and no name in it is markup."""

import datetime as dt
from dataclasses import replace
from pathlib import Path

from support_pages import Elements, text_of, widths_offline

from lepaute.kit.report.page import write_report
from lepaute.watch.report.history import ChangeAlarm, Day
from lepaute.watch.report.replay_page import Replayed, page
from lepaute.watch.report.summary import Change, Regression, Suspicion

HOSTILE = "<script>alert(1)</script>"


def replayed(*, alarms: bool = True) -> Replayed:
    """Ten days; on the fifth an alarm of a change two days before, and something suspicious."""
    machines = (("c", HOSTILE, 0),)
    change = Change("dgemm_rate_flops", -1, -0.1, -0.12, -0.08, 1)
    first = dt.date(2026, 1, 1)
    alarm = ChangeAlarm("c", machines, first + dt.timedelta(2), (change,), worse=True)
    suspicion = Suspicion("c", machines, (first + dt.timedelta(4),), (change,), ("j4",), 1e-7)
    days = [Day(first + dt.timedelta(number), 24, 0, (), ()) for number in range(10)]
    days[4] = replace(days[4], suspicious_tests=3, alarms=(alarm,) * alarms, suspicions=(suspicion,))
    regression = Regression("c", machines, alarm.since, first + dt.timedelta(4), (change,), ())
    return Replayed(days, (regression,) if alarms else (), 240, 0.05, 1e-4, "12 nodes")


def test_the_page_begins_with_what_would_have_been_found_when_and_what_may_be_false() -> None:
    text = page(replayed())
    elements = Elements(text)
    assert "Replayed 10 days: 1 alarm, the first on 2026-01-05" in text_of(text)
    assert ">2 days</dt>" in text, "from the change to its alarm"
    assert ">5\u00a0%</dt>" in text
    assert HOSTILE not in text
    assert "script" not in elements.tags
    assert all(link.startswith("#") and link[1:] in elements.ids for link in elements.links)
    assert "2026-01-01</text>" in text, "dates, and not numbers of days"
    quiet = page(replayed(alarms=False))
    assert "Replayed 10 days: no alarm" in quiet
    assert ("red: days" in text, "red: days" in quiet) == (True, False), "of what is drawn"


def test_the_page_fits_a_screen_and_a_telephone_without_a_network(browser, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    write_report(file, lambda: page(replayed()), replayed().to_dict)
    for width in (400, 1000):
        (shown,) = widths_offline(browser, file, width)
        assert shown > 250


def test_a_replay_without_days_is_a_page_too() -> None:
    assert "No day has a test or an alarm" in page(Replayed((), (), 0, 0.05, 1e-4, "no node"))
