"""Counts primes by mpi4py: rank 0 hands out pieces of the numbers to whichever rank has finished the last one."""

from mpi4py import MPI  # type: ignore[import-not-found]

END, PIECE = 400_000, 10_000
comm = MPI.COMM_WORLD


def primes(first: int, end: int) -> int:
    return sum(all(n % d for d in range(3, int(n**0.5) + 1, 2)) for n in range(first | 1, end, 2))


pieces = range(3, END, PIECE)
if comm.rank == 0:
    found, status = 1, MPI.Status()
    left = [*pieces, *[None] * (comm.size - 1)]
    for worker in range(1, comm.size):
        comm.send(left.pop(0), dest=worker)
    while left:
        found += comm.recv(source=MPI.ANY_SOURCE, status=status)
        comm.send(left.pop(0), dest=status.source)
    print("primes:", found)
else:
    while (first := comm.recv(source=0)) is not None:
        comm.send(primes(first, min(first + PIECE, END)), dest=0)
