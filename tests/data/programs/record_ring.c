
#include <mpi.h>
#include <string.h>
#include <stdlib.h>
void dscal_(const int *n, const double *a, double *x, const int *incx);
int main(int argc, char **argv) {
    double x[100] = {0}, sum, one = 1.0;
    int rank, ranks, n = 100, step = 1, flag;
    MPI_Init(&argc, &argv);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm turned; /* its rank r is rank ranks - 1 - r of the world */
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &turned);
    MPI_Comm_rank(turned, &rank);
    int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    MPI_Datatype pair;
    MPI_Type_vector(2, 1, 3, MPI_DOUBLE, &pair);
    MPI_Type_commit(&pair);
    for (int i = 0; i < 10; i++) {
        MPI_Request requests[2];
        MPI_Irecv(x, 50, MPI_DOUBLE, MPI_ANY_SOURCE, 3, turned, &requests[0]);
        MPI_Isend(x + 50, 5, pair, next, 3, turned, &requests[1]);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        MPI_Waitall(1, &requests[1], MPI_STATUSES_IGNORE);
        MPI_Sendrecv(x, 7, MPI_INT, next, 4, x + 50, 50, MPI_INT, before, 4, turned, MPI_STATUS_IGNORE);
        for (int look = 0; look < 1000; look++)
            MPI_Iprobe(next, 99, turned, &flag, MPI_STATUS_IGNORE);
        dscal_(&n, &one, x, &step);
        MPI_Allreduce(x, &sum, 1, MPI_DOUBLE, MPI_SUM, turned);
        MPI_Bcast(x, 2, MPI_DOUBLE, 0, turned);
    }
    MPI_Comm_free(&turned);
    if (argc > 1 && strcmp(argv[1], "dies") == 0)
        abort();
    MPI_Finalize();
    return argc > 1 ? atoi(argv[1]) : 0;
}
