
#include <mpi.h>

static double x[64], y[64];

/* Of a library whose integers have 64 bits, which is not installed here. */
void dgemm_64_(const char *, const char *, const long *, const long *, const long *, const double *, const double *,
               const long *, const double *, const long *, const double *, double *, const long *, unsigned long,
               unsigned long);

int main(int argc, char **argv) {
    int rank, ranks, over = 0, counts[2] = {3, 4}, at[2] = {0, 3};
    MPI_Request r[16];
    MPI_Comm one, two, half;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_dup(MPI_COMM_WORLD, &one);
    MPI_Comm_dup(MPI_COMM_WORLD, &two);
    MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &half);
    MPI_Ibarrier(MPI_COMM_WORLD, r);
    MPI_Ibcast(x, 4, MPI_DOUBLE, 1, two, r + 1);
    MPI_Ireduce(x, y, 5, MPI_DOUBLE, MPI_SUM, 1, one, r + 2);
    MPI_Iallreduce(x, y + 8, 6, MPI_DOUBLE, MPI_SUM, one, r + 3);
    MPI_Iscan(x, y + 16, 7, MPI_DOUBLE, MPI_SUM, one, r + 4);
    MPI_Iallgather(x, 2, MPI_DOUBLE, y + 24, 2, MPI_DOUBLE, one, r + 5);
    MPI_Ialltoall(x, 3, MPI_DOUBLE, y + 32, 3, MPI_DOUBLE, one, r + 6);
    MPI_Igatherv(x, counts[rank], MPI_DOUBLE, y + 40, counts, at, MPI_DOUBLE, 0, one, r + 7);
    MPI_Ireduce_scatter_block(x, y + 50, 2, MPI_DOUBLE, MPI_SUM, one, r + 8);
    MPI_Waitall(9, r, MPI_STATUSES_IGNORE);
    MPI_Iscatter(x, 3, MPI_DOUBLE, rank ? y : MPI_IN_PLACE, 3, MPI_DOUBLE, 0, one, r);
    while (!over)
        MPI_Test(r, &over, MPI_STATUS_IGNORE);
    MPI_Iallreduce(x, y, 6, MPI_DOUBLE, MPI_SUM, half, r);
    MPI_Wait(r, MPI_STATUS_IGNORE);
    if (rank == 0) { /* the same tag in two communicators, received the other way round */
        MPI_Send(x, 1, MPI_DOUBLE, 1, 5, one);
        MPI_Send(x, 2, MPI_DOUBLE, 1, 5, two);
    } else {
        MPI_Irecv(x, 8, MPI_DOUBLE, 0, 5, two, r);
        MPI_Irecv(y, 8, MPI_DOUBLE, 0, 5, one, r + 1);
        MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    }
    long size = 3;
    dgemm_64_("N", "N", &size, &size, &size, x, x, &size, x, &size, x, y, &size, 1, 1);
    MPI_Finalize();
    return 0;
}
