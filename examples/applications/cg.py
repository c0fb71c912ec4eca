"""Conjugate gradients with a 27-point operator, each rank a box of n x n x n points: what it computes and sends."""

import lepaute as lp


class Cg(lp.Application):
    """Conjugate gradients on a 27-point grid.

    grid : processes along x, y and z, as 16x8x8
    n : points of a process along each dimension
    iterations : of the solver
    """

    grid: lp.Grid
    n: int = 104
    iterations: int = 50
    spmv = lp.Cost(2.7e-8, error=0.05, noise=0.02, memory_share=0.9)  # seconds a point, all cores busy
    axpy = lp.Cost(2.1e-9, error=0.10, noise=0.02, memory_share=0.9)

    def run(self, me):
        faces = [(rank, 8 * self.n ** (3 - order)) for rank, order in me.cartesian(self.grid).neighbours(27)]
        for _ in me.steps(self.iterations):
            yield me.exchange(faces)
            yield me.compute(self.spmv, self.n**3)
            yield me.allreduce(8)
            yield me.compute(self.axpy, 3 * self.n**3)
            yield me.allreduce(8)
