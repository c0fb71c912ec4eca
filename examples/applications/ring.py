"""A ring pipeline: blocks go once around, and each rank computes on one while it hands on the one before."""

import lepaute as lp


class Ring(lp.Application):
    """Blocks that rank 0 sends go from rank to rank by nonblocking sends, and back to rank 0.

    ranks : processes of the ring
    blocks : that rank 0 sends
    block_bytes : of one of them
    window : sends of a rank that may be under way at once
    """

    ranks: int = 8
    blocks: int = 64
    block_bytes: int = 200_000
    window: int = 2
    work = lp.Cost(1e-9, error=0.05, noise=0.02)  # seconds a byte

    def run(self, me):
        left, right = (me.rank - 1) % me.size, (me.rank + 1) % me.size
        back, sends = [], []
        if me.rank == 0:
            for _ in range(self.blocks):
                back += [(yield me.irecv(left, 0))]
        for _ in me.steps(self.blocks):
            if me.rank > 0:
                yield me.receive(left, 0)
            yield me.compute(self.work, self.block_bytes)
            if len(sends) == self.window:
                yield me.wait(sends.pop(0))
            sends.append((yield me.isend(right, self.block_bytes, 0)))
        yield me.waitall(sends + back)
