"""What is done about a node that regressed: every combination of what was done before and what the scheduler says."""

import pandas
import pytest

from lepaute.errors import InputError
from lepaute.measure.schedulers.types import NodeState
from lepaute.watch.drains import SETTLED_S, Verdict, limit_of, verdict_of

NOW_S = 1e9
ROW = {"node": "n1", "cpu": 0, "factor": "dgemm_rate_flops", "stratum": "", "before": 100.0, "size": -0.1}
REGRESSED, WELL = pandas.DataFrame([ROW]), pandas.DataFrame([ROW]).iloc[:0]
FREE = NodeState(out_of_service=False)
OURS = NodeState(out_of_service=True, reason="lepaute: dgemm_rate_flops -10 %")
THEIRS = NodeState(out_of_service=True, reason="new disk")
ASKED = ("requested", NOW_S - 5000)
DRAINED = ("drained", NOW_S - SETTLED_S - 1)


def values(*jobs: tuple[float, float]) -> pandas.DataFrame:
    """(start before now, value) of each job."""
    rows = [{**ROW, "state": "done", "started_s": NOW_S - ago_s, "value": value} for ago_s, value in jobs]
    return pandas.DataFrame(rows)


OLD, CONFIRMING, DENYING = (1e5, 90.0), (1000.0, 90.5), (1000.0, 99.0)


@pytest.mark.parametrize(
    ("jobs", "actions", "scheduler", "verdict"),
    [
        ([OLD], [], FREE, Verdict.REQUEST),
        ([OLD], [], None, Verdict.REQUEST),
        ([OLD], [ASKED], FREE, Verdict.WAITING),
        ([OLD, CONFIRMING], [ASKED], FREE, Verdict.DRAIN),
        ([OLD, DENYING], [ASKED], FREE, Verdict.REQUEST),
        # of several jobs since then the latest counts
        ([OLD, (2000.0, 90.0), DENYING], [ASKED], FREE, Verdict.REQUEST),
        ([OLD, CONFIRMING], [ASKED, ("failed", NOW_S - 10)], FREE, Verdict.DRAIN),
        # what was asked for before the last regression was over confirms nothing
        ([OLD, CONFIRMING], [ASKED, ("closed", NOW_S - 10)], FREE, Verdict.REQUEST),
        ([OLD, CONFIRMING], [ASKED], THEIRS, Verdict.TAKEN),
        ([OLD], [], THEIRS, Verdict.TAKEN),
        ([OLD, CONFIRMING], [ASKED, DRAINED], OURS, Verdict.DRAINED),
        ([OLD, CONFIRMING], [ASKED, DRAINED], THEIRS, Verdict.TAKEN),
        ([OLD, CONFIRMING], [ASKED, DRAINED], FREE, Verdict.RESUMED),
        ([OLD, CONFIRMING], [ASKED, ("drained", NOW_S - 1)], FREE, Verdict.DRAINED),
        ([OLD, CONFIRMING], [ASKED, DRAINED, ("resumed", NOW_S - 1)], FREE, Verdict.RESUMED),
        ([OLD, CONFIRMING], [ASKED, DRAINED, ("resumed", NOW_S - 1)], OURS, Verdict.RESUMED),
    ],
)
def test_a_regressed_node(jobs, actions, scheduler, verdict):
    assert verdict_of(REGRESSED, values(*jobs), actions, scheduler, NOW_S) is verdict
    assert verdict_of(WELL, values(*jobs), actions, scheduler, NOW_S) is Verdict.HEALTHY


def test_a_node_without_values_is_unknown() -> None:
    assert verdict_of(WELL, values(OLD).iloc[:0], [], FREE, NOW_S) is Verdict.UNKNOWN
    failed = values(OLD, DENYING).assign(state="failed", value=float("nan"))
    assert verdict_of(WELL, failed, [], FREE, NOW_S) is Verdict.UNKNOWN
    assert verdict_of(REGRESSED, failed, [], FREE, NOW_S) is Verdict.REQUEST


def test_a_limit_is_a_number_or_a_share_rounded_down() -> None:
    assert [limit_of(text, "--most")(50) for text in ("3", "5%", "1.9%", "0", "100%")] == [3, 2, 0, 0, 50]
    for text in ("-1", "101%", "many", "", "nan%", "٣"):
        with pytest.raises(InputError, match="--most is"):
            limit_of(text, "--most")
