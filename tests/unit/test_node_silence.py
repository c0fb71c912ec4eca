"""Silence of the other end of a connection is counted only while this process runs itself."""

from lepaute.measure.node_agent.wire import Silence


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_silence_is_the_time_since_something_was_heard():
    silence = Silence(10.0, clock := Clock())
    for expected_s in (10.0, 20.0, 30.0):
        clock.now_s += 10.0
        assert silence.seconds() == expected_s
    silence.heard()
    clock.now_s += 4.0
    assert silence.seconds() == 4.0


def test_the_time_in_which_this_process_was_stopped_is_not_silence_of_the_other():
    silence = Silence(10.0, clock := Clock())
    clock.now_s += 9.0
    silence.seconds()
    clock.now_s += 3600.0  # stopped for an hour; what came meanwhile is not read yet
    assert silence.seconds() == 19.0
