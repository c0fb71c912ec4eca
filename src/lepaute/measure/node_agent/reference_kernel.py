"""A short fixed piece of work, repeated throughout a campaign, whose time changes only when the machine does."""

from __future__ import annotations

import hashlib
import time
import zlib

#: Fits the second-level cache of every processor in use: no memory traffic in the first part.
_COMPUTE_BYTES = 128 * 1024
_COMPUTE_PASSES = 40
_COMPRESSED_BYTES = 64 * 1024
_COMPRESSION_PASSES = 3
#: More than a core's share of most last-level caches, little enough for a node that is full of ranks.
_MEMORY_BYTES = 24 * 1024 * 1024
_MEMORY_PASSES = 4


class ReferenceKernel:
    """The work and its buffers: made once, so that no measurement pays for first touches of pages."""

    def __init__(self) -> None:
        self._small = bytes(range(256)) * (_COMPUTE_BYTES // 256)
        self._text = b"".join(hashlib.sha256(b"%d" % i).hexdigest().encode() for i in range(_COMPRESSED_BYTES // 64))
        self._source = bytearray(b"\x5a") * _MEMORY_BYTES
        self._destination = bytearray(_MEMORY_BYTES)
        self.measure()  # the first pass touches the pages and fills the caches

    def measure(self) -> tuple[float, float]:
        """(compute_s, memory_s): wall time of hashing and compressing within the cache, and of copies through memory.

        Two kinds of computing, since a hash may run in an instruction of its own. Wall time, not CPU time: another
        process on the core is one of the changes to be seen. 10 to 40 ms together on the processors of ten years.
        """
        start = time.perf_counter()
        for _ in range(_COMPUTE_PASSES):
            hashlib.sha256(self._small).digest()
        for _ in range(_COMPRESSION_PASSES):
            zlib.compress(self._text, 6)
        middle = time.perf_counter()
        for _ in range(_MEMORY_PASSES):
            memoryview(self._destination)[:] = self._source
        return middle - start, time.perf_counter() - middle
