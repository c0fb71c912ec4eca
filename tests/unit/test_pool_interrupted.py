"""A Ctrl-C while nodes are being connected to."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from lepaute.measure.nodes.pool import Pool
from lepaute.measure.schedulers.types import NodeAddress


def test_an_interrupt_does_not_wait_for_nodes_that_do_not_answer(tmp_path: Path) -> None:
    deaf = tmp_path / "deaf"
    deaf.write_text(f"#!/bin/sh\necho $$ >> {tmp_path}/pids\nexec sleep 60\n")
    deaf.chmod(0o755)
    pids = tmp_path / "pids"

    def interrupt() -> None:
        while not pids.is_file() or pids.read_text().count("\n") < 2:
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    began_s = time.monotonic()
    with pytest.raises(KeyboardInterrupt), Pool([NodeAddress("a"), NodeAddress("b")], python=str(deaf), folder="x"):
        pass
    assert time.monotonic() - began_s < 30  # of the 60 that a node has to answer
    for pid in pids.read_text().split():
        assert not Path("/proc", pid).exists()
