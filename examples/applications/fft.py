"""A two-dimensional Fourier transform of n x n complex numbers, rows shared by all ranks: transposes by all-to-all."""

from math import log2

import lepaute as lp


class Fft(lp.Application):
    """A 2D Fourier transform by two all-to-alls.

    ranks : processes
    n : numbers along each dimension
    repeats : transforms
    algorithm : of the all-to-all, pairwise or bruck
    """

    ranks: int = 4
    n: int = 2048
    repeats: int = 10
    algorithm: str = "pairwise"
    butterfly = lp.Cost(1.5e-9, error=0.10, noise=0.02)  # seconds for each of n log2(n) steps of a row

    def run(self, me):
        rows = self.n / me.size
        for _ in me.steps(self.repeats):
            for _dimension in range(2):
                yield me.compute(self.butterfly, rows * self.n * log2(self.n))
                yield me.alltoall(16 * rows * rows, self.algorithm)
