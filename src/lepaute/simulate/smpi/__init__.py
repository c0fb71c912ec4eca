"""Any MPI program on a simulated machine: SMPI, with a BLAS that takes time instead of computing."""
