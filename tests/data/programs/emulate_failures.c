static void __attribute__((noinline)) deep(void) {
    volatile char large[4 << 20];
    for (int i = 0; i < 4 << 20; i += 4096) large[i] = 1;
}
int main(int argc, char **argv) {
    begin(&argc, &argv);
    const char *how = argv[1];
    int x[9] = {0};
    if (!strcmp(how, "deadlock")) MPI_Recv(x, 1, MPI_INT, (rank + 1) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (!strcmp(how, "nan")) {
        volatile double y = NAN;
        while (y != y) { }
    }
    if (!strcmp(how, "endless")) for (volatile long i = 0;; i++) { }
    if (!strcmp(how, "converging")) {
        double mine = 1, all = 1;
        while (all > 0.5) {
            dgemm(10, 10, 10);
            MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        }
    }
    if (!strcmp(how, "pivot") && rank == 1) {
        volatile int *row = malloc(8);
        row[(long)1 << 40] = 1;
    }
    if (!strcmp(how, "stack")) deep();
    if (!strcmp(how, "status") && rank == 1) {
        fprintf(stderr, "cannot read input.dat\n");
        exit(3);
    }
    if (!strcmp(how, "abort") && rank == 1) {
        fprintf(stderr, "grid of 0 points\n");
        MPI_Abort(MPI_COMM_WORLD, 7);
    }
    if (!strcmp(how, "argument")) MPI_Send(x, 1, MPI_INT, 99, 0, MPI_COMM_WORLD);
    if (!strcmp(how, "truncated")) {
        if (rank == 0) MPI_Send(x, 9, MPI_INT, 1, 0, MPI_COMM_WORLD);
        if (rank == 1) MPI_Recv(x, 3, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (!strcmp(how, "lacking")) MPI_Neighbor_allgather(x, 1, MPI_INT, x + 1, 1, MPI_INT, MPI_COMM_WORLD);
    if (!strcmp(how, "unfinished")) return 0;
    if (!strcmp(how, "memory"))
        for (int i = 0; i < 200; i++) {
            char *p = malloc(1 << 24);
            p[0] = 1;
        }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return !strcmp(how, "result") ? 4 : 0;
}
