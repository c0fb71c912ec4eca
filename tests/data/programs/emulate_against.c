int main(int argc, char** argv) {
    begin(&argc, &argv);
    int bytes = argc > 1 ? atoi(argv[1]) : 1000, to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks;
    char *out = calloc(bytes, 1), *in = calloc(bytes, 1);
    for (int i = 0; i < 20; i++)
        MPI_Sendrecv(out, bytes, MPI_BYTE, to, 0, in, bytes, MPI_BYTE, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 0)
        printf("round and round\n");
    MPI_Finalize();
    return 0;
}
