
#include <mpi.h>
/* A bit of everything that programs do with MPI. */
int main(int argc, char **argv) {
    int rank, ranks, flag = 0, done = 0, at[8];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm row, twin, cart;
    MPI_Comm_split(MPI_COMM_WORLD, rank / 2, rank, &row);
    MPI_Comm_dup(row, &twin);
    MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &flag, 0, &cart);
    int up = rank ? rank - 1 : MPI_PROC_NULL, down = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;
    double x[4][1000] = {{0}}, sum = 0, all[64];
    int counts[64], displs[64];
    for (int i = 0; i < ranks; i++) { counts[i] = 1; displs[i] = i; }
    for (int s = 0; s < 3; s++) {
        MPI_Request r[4];
        MPI_Sendrecv(x[0], 1000, MPI_DOUBLE, up, 3, x[1], 1000, MPI_DOUBLE, down, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Sendrecv(x[0], 10, MPI_DOUBLE, 1 - rank % 2, 4, x[1], 10, MPI_DOUBLE, 1 - rank % 2, 4, row,
                     MPI_STATUS_IGNORE);
        MPI_Sendrecv_replace(x[2], 20, MPI_DOUBLE, up, 8, down, 8, cart, MPI_STATUS_IGNORE);
        MPI_Isend(x[0], 30, MPI_DOUBLE, (rank + 1) % ranks, 2, MPI_COMM_WORLD, &r[0]);
        MPI_Request_free(&r[0]);
        MPI_Recv(x[1], 30, MPI_DOUBLE, (rank + ranks - 1) % ranks, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Allreduce(x[0], &sum, 1, MPI_DOUBLE, MPI_SUM, row);
        MPI_Bcast(x[0], 100, MPI_DOUBLE, 1, twin);
        MPI_Reduce(x[0], x[1], 7, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        MPI_Gatherv(x[0], 1, MPI_DOUBLE, all, counts, displs, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        MPI_Alltoall(x[0], 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Irecv(x[1], 1000, MPI_DOUBLE, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &r[0]);
        MPI_Isend(x[0], 500, MPI_DOUBLE, (rank + 1) % ranks, 5, MPI_COMM_WORLD, &r[1]);
        while (!flag) MPI_Test(&r[0], &flag, MPI_STATUS_IGNORE);
        flag = 0;
        MPI_Wait(&r[1], MPI_STATUS_IGNORE);
        MPI_Irecv(x[1], 1000, MPI_DOUBLE, (rank + 1) % ranks, 6, MPI_COMM_WORLD, &r[0]);
        MPI_Isend(x[0], 1000, MPI_DOUBLE, (rank + ranks - 1) % ranks, 6, MPI_COMM_WORLD, &r[1]);
        int left = 2;
        while (left) { MPI_Waitsome(2, r, &done, at, MPI_STATUSES_IGNORE); left -= done; }
        if (rank == 0) for (int i = 1; i < ranks; i++)
                MPI_Recv(x[1], 10, MPI_DOUBLE, MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else MPI_Send(x[0], rank, MPI_DOUBLE, 0, 7, MPI_COMM_WORLD);
        MPI_Send(x[0], 5, MPI_DOUBLE, MPI_PROC_NULL, 9, MPI_COMM_WORLD);
        MPI_Recv(x[0], 5, MPI_DOUBLE, MPI_PROC_NULL, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Comm_free(&cart);
    MPI_Comm_free(&twin);
    MPI_Comm_free(&row);
    MPI_Finalize();
    return 0;
}
