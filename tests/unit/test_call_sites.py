"""Places of calls, of a recording's raw files and of programs as linkers write them."""

from pathlib import Path

import pytest
from support_record_files import written

from lepaute.errors import InputError
from lepaute.measure.call_sites import read_sites
from lepaute.measure.record_file import trace_of_records
from lepaute.simulate.trace.table import trace_of_columns


def test_stamps_go_on_where_their_bits_begin_again_and_sites_are_joined_by_text(tmp_path: Path) -> None:
    turn_ns, site = 1 << 48, 1 << 48  # after 78 hours; the site stands above the stamp
    rows = [
        (turn_ns - 9_000, "MPI_Irecv", 10, -1, (1, 7, 8)),
        (5_000 + 1 * site, "MPI_Waitall", 900, -1, (-1, -1, 8)),
        (turn_ns - 9_000, "(completed)", 0, -1, (1, 7, turn_ns + 5_000)),
        (8_000 + 2 * site, "MPI_Send", 10, -1, (1, 7, 8)),
    ]
    texts = ("10 /a/solver\t20 /b/solver\t\n", "30 /a/solver\t\n")
    records = []
    for rank in (0, 1):
        (tmp_path / f"rank-{rank}.sites").write_text("".join(texts if rank == 0 else reversed(texts)))
        records.append(written(tmp_path / f"rank-{rank}.rec", *rows, rank=rank, ranks=2))
    assert records[0].rows["start_ns"].tolist() == [turn_ns - 9_000, turn_ns + 5_000, turn_ns + 8_000]
    trace = trace_of_records(records, {})
    assert trace.metadata["sites"] == ["(solver+0x10) < (solver+0x20)", "(solver+0x30)"]
    assert trace.site.tolist() == [-1, 0, 1, -1, 1, 0]
    assert trace.completion[0] == trace.completion[1] >= 0
    with pytest.raises(InputError, match=r"site of row 1 is 0; it is the place of one of sites, or -1"):
        trace_of_columns({**trace.to_frame(), "kind": trace.kind, "name": trace.name}, trace.names, {})


def test_objects_that_are_no_programs_have_offsets(tmp_path: Path) -> None:
    def text(content: bytes | None) -> str:
        path, sites = tmp_path / "object", tmp_path / "rank-0.sites"
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_bytes(content)
        sites.write_text(f"1a2b {path.parent}/other{len(content or b'')}/../object\t\n")
        return read_sites(sites)[0]

    program = Path("/proc/self/exe").read_bytes()
    for damaged in (None, b"", b"#!/bin/sh\n", program[:40], program[:4096], b"\x7fELF\x02\x01" + bytes(range(256))):
        assert text(damaged) == "(object+0x1a2b)"
    assert read_sites(tmp_path / "rank-1.sites") == ()
