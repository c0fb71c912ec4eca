"""SimGrid/SMPI, the second engine: it runs the code of any MPI program on a simulated machine."""
