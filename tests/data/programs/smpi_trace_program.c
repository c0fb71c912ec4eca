
#include <mpi.h>
#include <unistd.h>
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    static double a[100000], b[100000];
    MPI_Request requests[4];
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    usleep(1000 * (rank + 1));
    if (rank == 0) {
        usleep(4000);
        MPI_Send(a, 100000, MPI_DOUBLE, 1, 7, MPI_COMM_WORLD);
        MPI_Ssend(a, 3, MPI_DOUBLE, 1, 9, MPI_COMM_WORLD);
    } else if (rank == 1) {
        MPI_Recv(a, 100000, MPI_DOUBLE, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(a, 30, MPI_DOUBLE, 0, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < 3; i++) {
        MPI_Irecv(a, 500, MPI_DOUBLE, before, 1, MPI_COMM_WORLD, requests);
        MPI_Irecv(b, 600, MPI_DOUBLE, next, 2, MPI_COMM_WORLD, requests + 1);
        MPI_Isend(a, 500, MPI_DOUBLE, next, 1, MPI_COMM_WORLD, requests + 2);
        MPI_Isend(b, 500 + i, MPI_DOUBLE, before, 2, MPI_COMM_WORLD, requests + 3);
        if (i < 2)
            MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        else
            for (int k = 0; k < 4; k++)
                MPI_Wait(requests + k, MPI_STATUS_IGNORE);
        MPI_Sendrecv(a, 50 + rank, MPI_DOUBLE, next, 3, b, 100, MPI_DOUBLE, before, 3, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
    }
    MPI_Bcast(a, 1000, MPI_DOUBLE, 2, MPI_COMM_WORLD);
    MPI_Allreduce(a, b, 100, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
