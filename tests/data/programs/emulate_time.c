#include <smpi/smpi.h>
extern double PMPI_Wtime(void);
static void sizes(void) { /* 1.0027 us: no whole number of them */
    dgemm(3, 3, 3);
}
static void untransposed(void) {
    double one = 1, none[1] = {0};
    int n = 3;
    dgemm_("N", "N", &n, &n, &n, &one, none, &n, none, &n, &one, none, &n);
}
static void asked(void) {
    double before = MPI_Wtime();
    dgemm(100, 100, 100);
    printf("took %.17g s\n", MPI_Wtime() - before);
}
static void often(void) {
    double before = MPI_Wtime();
    for (int i = 0; i < 1000; i++) {
        MPI_Wtime();
        dgemm(100, 100, 100);
    }
    printf("took %.17g s\n", MPI_Wtime() - before);
}
static void region(void) {
    dgemm(500, 500, 500);
    MPI_Pcontrol(1);
    dgemm(100, 100, 100);
    MPI_Pcontrol(0);
    dgemm(500, 500, 500);
    MPI_Pcontrol(1);
    dgemm(100, 100, 100);
    MPI_Pcontrol(0);
}
static void late(void) { /* the receiver waits for what the sender computes */
    int x = 0;
    if (rank == 0) {
        dgemm(1000, 1000, 100);
        MPI_Send(&x, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
    } else {
        double before = MPI_Wtime();
        MPI_Recv(&x, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        printf("waited %.17g s\n", MPI_Wtime() - before);
    }
}
static void overlap(void) { /* each computes between posting and waiting */
    int count = 2000000;
    double *sent = calloc(count, 8), *taken = calloc(count, 8);
    MPI_Request requests[2];
    MPI_Irecv(taken, count, MPI_DOUBLE, 1 - rank, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(sent, count, MPI_DOUBLE, 1 - rank, 0, MPI_COMM_WORLD, &requests[1]);
    dgemm(700, 700, 700);
    double before = MPI_Wtime();
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    printf("waited %.17g s\n", MPI_Wtime() - before);
    if (requests[0] != MPI_REQUEST_NULL || requests[1] != MPI_REQUEST_NULL) MPI_Abort(MPI_COMM_WORLD, 3);
}
static void blocked(void) { /* in a blocking call while the receive is posted; nothing is computed */
    int count = 100000, peer = 1 - rank, found;
    double *sent = calloc(count, 8), *taken = calloc(count, 8);
    MPI_Request request, other;
    MPI_Status status;
    MPI_Irecv(taken, count, MPI_DOUBLE, peer, 0, MPI_COMM_WORLD, &request);
    MPI_Ssend(sent, count, MPI_DOUBLE, peer, 0, MPI_COMM_WORLD); /* as HPL exchanges */
    MPI_Wait(&request, &status);
    MPI_Irecv(taken, count, MPI_DOUBLE, peer, 1, MPI_COMM_WORLD, &request);
    MPI_Send_init(sent, count, MPI_DOUBLE, peer, 1, MPI_COMM_WORLD, &other);
    MPI_Start(&other);
    MPI_Wait(&other, &status);
    MPI_Request_free(&other);
    MPI_Wait(&request, &status);
    MPI_Irecv(taken, count, MPI_DOUBLE, peer, 2, MPI_COMM_WORLD, &request);
    MPI_Isend(sent, count, MPI_DOUBLE, peer, 2, MPI_COMM_WORLD, &other);
    for (int i = 0; i < 200; i++) { /* in vain: what the receive has taken is not there for a probe */
        MPI_Iprobe(peer, 2, MPI_COMM_WORLD, &found, &status);
        if (found) MPI_Abort(MPI_COMM_WORLD, 4);
    }
    MPI_Wait(&request, &status);
    MPI_Wait(&other, &status);
    MPI_Irecv(taken, count, MPI_DOUBLE, peer, 3, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request); /* it is still received */
    MPI_Ssend(sent, count, MPI_DOUBLE, peer, 3, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    printf("done\n");
}
static void looped(void) { /* beside BLAS */
    volatile double x = 1;
    for (long i = 0; i < 30000000; i++) x = x * 0.999 + 1;
    dgemm(1000, 1000, 1000);
    MPI_Barrier(MPI_COMM_WORLD);
}
static void sampled(void) {
    int loops = 0;
    SMPI_SAMPLE_LOCAL(int i = 0, i < 50, i++, 5, -1) {
        ++loops;
        dgemm(100, 100, 100);
    }
    SMPI_SAMPLE_GLOBAL(int i = 0, i < 3, i++, 5, 0.1) {
        ++loops;
        dgemm(100, 100, 100);
    }
    printf("loops %d", loops);
}
static void unmodelled(void) {
    extern void dsymv_(const char *, const int *, const double *, const double *, const int *, const double *,
                       const int *, const double *, double *, const int *);
    int n = 1000, one = 1;
    double x = 1;
    dsymv_("U", &n, &x, &x, &n, &x, &one, &x, &x, &one);
}
int main(int argc, char **argv) {
    begin(&argc, &argv);
    if (!strcmp(argv[1], "sizes")) sizes();
    if (!strcmp(argv[1], "untransposed")) untransposed();
    if (!strcmp(argv[1], "asked")) asked();
    if (!strcmp(argv[1], "often")) often();
    if (!strcmp(argv[1], "region")) region();
    if (!strcmp(argv[1], "late")) late();
    if (!strcmp(argv[1], "overlap")) overlap();
    if (!strcmp(argv[1], "blocked")) blocked();
    if (!strcmp(argv[1], "looped")) looped();
    if (!strcmp(argv[1], "sampled")) sampled();
    if (!strcmp(argv[1], "unmodelled")) unmodelled();
    MPI_Finalize();
    return 0;
}
