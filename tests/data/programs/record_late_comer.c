
#include <mpi.h>
#include <unistd.h>
int main(void) {
    static double x[4][100];
    double sum;
    int rank, ranks;
    MPI_Init(0, 0);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm pair; /* ranks 0 and 1; the others are one each */
    MPI_Comm_split(MPI_COMM_WORLD, rank < 2 ? 0 : rank, rank, &pair);
    int up = rank ? rank - 1 : MPI_PROC_NULL, down = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;
    if (rank == 0)
        usleep(200000);
    MPI_Request requests[4];
    MPI_Irecv(x[0], 100, MPI_DOUBLE, up, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(x[1], 100, MPI_DOUBLE, down, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(x[2], 100, MPI_DOUBLE, up, 2, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(x[3], 100, MPI_DOUBLE, down, 1, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    if (rank == 0)
        usleep(300000);
    MPI_Allreduce(x[0], &sum, 1, MPI_DOUBLE, MPI_SUM, pair);
    MPI_Sendrecv(x[0], 100, MPI_DOUBLE, up, 3, x[1], 100, MPI_DOUBLE, down, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
}
