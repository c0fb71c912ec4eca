"""Which MPI library is faster, for which operations and sizes, by how much, and how sure."""
