"""A Ctrl-C while nodes are being connected to."""

import signal
import threading
from pathlib import Path

import pytest
from support_limits import wait_until, within

from lepaute.measure.nodes import pool
from lepaute.measure.schedulers.types import NodeAddress


def test_an_interrupt_does_not_wait_for_nodes_that_do_not_answer(tmp_path, monkeypatch):
    monkeypatch.setattr(pool, "CONNECT_S", 3600.0)
    deaf = tmp_path / "deaf"
    deaf.write_text(f"#!/bin/sh\necho $$ >> {tmp_path}/pids\nexec sleep 3600\n")
    deaf.chmod(0o755)
    pids = tmp_path / "pids"

    def interrupt() -> None:
        wait_until(lambda: pids.is_file() and pids.read_text().count("\n") == 2, "both connections")
        # To this thread: what the main thread waits for does not end by itself.
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with within("the end of the connections"), pytest.raises(KeyboardInterrupt):
        pool.Pool([NodeAddress("a"), NodeAddress("b")], python=str(deaf), folder="x").__enter__()
    for pid in pids.read_text().split():
        assert not Path("/proc", pid).exists()
