"""A hang in a test ends, and says what hung."""

import threading

import pytest
from support_limits import wait_until, within, within_cpu


def test_what_does_not_end_is_ended_and_named_and_what_ends_is_left_alone() -> None:
    with pytest.raises(TimeoutError, match=r"^the bus: not within 0\.01 s$"):
        wait_until(lambda: False, "the bus", limit_s=0.01)
    with pytest.raises(pytest.fail.Exception, match=r"^sum: more than 0\.1 s of CPU time$"), within_cpu("sum", 0.1):
        sum(each for each in iter(int, 1))
    with pytest.raises(pytest.fail.Exception, match=r"^the bus: not within 0\.1 s$"), within("the bus", 0.1):
        threading.Event().wait()
    with within("nothing", 0.05), within_cpu("nothing", 0.05):
        pass
    threading.Event().wait(0.1)
