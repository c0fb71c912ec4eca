static double data[20000];
static int found(int source, int tag, MPI_Comm comm) {
    int flag = 0;
    MPI_Iprobe(source, tag, comm, &flag, MPI_STATUS_IGNORE);
    return flag;
}
static void take(int source, int count) {
    MPI_Recv(data, count, MPI_DOUBLE, source, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    printf("%.17g\n", MPI_Wtime());
}
int main(int argc, char **argv) {
    begin(&argc, &argv);
    const char *how = argv[1];
    const int count = atoi(argv[2]);
    for (int round = 0; round < 3; round++) {
        if (!strcmp(how, "never")) {
            break;
        } else if (rank != 0) {
            dgemm(101 * rank, 103 + round, 97); /* never at the very date of a probe */
            MPI_Send(data, count, MPI_DOUBLE, 0, 5, MPI_COMM_WORLD);
        } else if (!strcmp(how, "one")) {
            for (int source = 1; source < ranks; source++) {
                while (!found(source, 5, MPI_COMM_WORLD)) { }
                take(source, count);
            }
        } else if (!strcmp(how, "any")) {
            for (int source = 1; source < ranks; source++) {
                while (!found(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD)) { }
                take(MPI_ANY_SOURCE, count);
            }
        } else if (!strcmp(how, "two")) {
            for (int left = 3, next = 1; left != 0; next = 3 - next)
                if ((left & next) && found(next, 5, MPI_COMM_WORLD)) {
                    take(next, count);
                    left -= next;
                }
        } else if (!strcmp(how, "clock")) {
            for (int source = 1; source < ranks; source++) {
                double began = MPI_Wtime(), slowest = 0;
                while (!found(source, 5, MPI_COMM_WORLD)) slowest = MPI_Wtime() - began;
                printf("%.17g\n", slowest);
                take(source, count);
            }
        } else if (!strcmp(how, "work")) {
            int turns = 0;
            for (int source = 1; source < ranks; source++) {
                while (!found(source, 5, MPI_COMM_WORLD)) {
                    dgemm(10, 10, 10);
                    turns++;
                }
                take(source, count);
            }
            printf("%d\n", turns);
        }
    }
    if (rank == 0 && !strcmp(how, "never")) while (!found(1, 9, MPI_COMM_WORLD)) { }
    MPI_Finalize();
    return 0;
}
