"""Runs on a node: writes and reads files of random bytes, and prints a row for each. Of the standard library only.

Usage: FOLDER FILES FILE_BYTES LIMIT_S
"""

import os
import sys
import time
from pathlib import Path

PIECE_BYTES = 4 << 20


def main() -> None:
    folder, files, file_bytes, limit_s = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    path = Path(folder) / f"lepaute-disk-{os.getpid()}"
    pieces = [os.urandom(PIECE_BYTES) for _ in range(4)]  # equal or zero bytes would be compressed by some disks
    began = time.monotonic()
    print("operation,size_bytes,start_s,duration_s")
    try:
        for number in range(files):
            if time.monotonic() - began > limit_s:
                break
            descriptor = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_RDWR, 0o600)
            try:
                start = time.monotonic()
                for place in range(file_bytes // PIECE_BYTES):
                    piece = memoryview(pieces[(number + place) % len(pieces)])
                    while piece:
                        piece = piece[os.write(descriptor, piece) :]
                os.fsync(descriptor)
                row("write", file_bytes, start)
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)  # what is read comes from the disk
                os.lseek(descriptor, 0, os.SEEK_SET)
                start, seen = time.monotonic(), 0
                while data := os.read(descriptor, PIECE_BYTES):
                    seen += len(data)
                row("read", seen, start)
            finally:
                os.close(descriptor)
    finally:
        path.unlink(missing_ok=True)


def row(operation: str, size_bytes: int, start: float) -> None:
    now = time.monotonic()
    print(f"{operation},{size_bytes},{start:.9f},{now - start:.9f}", flush=True)


if __name__ == "__main__":
    main()
