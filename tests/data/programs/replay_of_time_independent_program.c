
#include <mpi.h>
#include <smpi/smpi.h>

static char a[2000000], b[2000000];

int main(int argc, char **argv) {
    int rank, ranks;
    MPI_Request q[2];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 0; i < 20; i++) {
        const int size = i % 4 == 3 ? 200000 : 500 + i % 4 * 1500, shift = 1 + i % 3;
        smpi_execute_flops(2e6 * (1 + (rank * 7 + i) % 5));
        MPI_Irecv(a, size, MPI_CHAR, (rank + ranks - shift) % ranks, 3, MPI_COMM_WORLD, &q[0]);
        MPI_Isend(b, size, MPI_CHAR, (rank + shift) % ranks, 3, MPI_COMM_WORLD, &q[1]);
        smpi_execute_flops(1e6);
        if (i % 2) {
            MPI_Waitall(2, q, MPI_STATUSES_IGNORE);
        } else {
            MPI_Wait(&q[1], MPI_STATUS_IGNORE);
            MPI_Wait(&q[0], MPI_STATUS_IGNORE);
        }
        if (rank % 2)
            MPI_Recv(a, size, MPI_CHAR, rank - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else
            MPI_Send(a, size, MPI_CHAR, rank + 1, 1, MPI_COMM_WORLD);
        MPI_Allreduce(a, b, 4, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        if (i % 5 == 0)
            MPI_Alltoall(a, 100, MPI_INT, b, 100, MPI_INT, MPI_COMM_WORLD);
        if (i % 5 == 1)
            MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
