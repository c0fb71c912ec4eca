"""Tasks on all cores."""

import time

import pytest
from support_limits import wait_until

from lepaute.simulate.tasks import Task, run_tasks


def test_every_result_comes_under_its_key_whatever_the_order():
    tasks = [Task(number, float(number % 3), lambda number=number: number * number) for number in range(20)]
    assert run_tasks(tasks) == {number: number * number for number in range(20)}


def test_the_share_behind_grows_to_one():
    shares = []
    run_tasks([Task(number, 1.0, lambda: time.sleep(0.01)) for number in range(6)], shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_a_task_that_runs_counts_by_the_time_it_has_run():
    shares = []

    def seen_on_its_way() -> bool:
        return any(0.0 < share < 0.95 for share in shares)

    run_tasks([Task(0, 10.0, lambda: wait_until(seen_on_its_way, "a share"))], shares.append, clocked=True)
    assert seen_on_its_way()
    assert shares[-1] == 1.0


def test_the_first_failure_is_raised_and_what_has_not_begun_is_dropped():
    begun = []

    def fail():
        raise ValueError("no")

    tasks = [Task("bad", 1000.0, fail)]
    tasks += [
        Task(number, 1.0, lambda number=number: (begun.append(number), time.sleep(0.05))) for number in range(500)
    ]
    with pytest.raises(ValueError, match="no"):
        run_tasks(tasks)
    assert len(begun) < 400
