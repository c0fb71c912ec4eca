
#include <mpi.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define N 512
int main(int argc, char** argv) {
    int provided, asked = -1, rank, ranks;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Query_thread(&asked);
    if (provided < MPI_THREAD_MULTIPLE || asked != provided)
        MPI_Abort(MPI_COMM_WORLD, 1);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc > 1)
        omp_set_num_threads(atoi(argv[1]));
    double* a = calloc(N * N, sizeof *a);
    double mine = 0, sum = 0;
#pragma omp parallel reduction(+ : mine)
    mine += omp_get_num_threads();
    MPI_Datatype column;
    MPI_Type_vector(N, 1, N, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    MPI_Request requests[2];
    for (int i = 0; i < 50; i++) {
        MPI_Irecv(a, 1, column, (rank + 1) % ranks, 1, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(a + N - 1, 1, column, (rank + ranks - 1) % ranks, 1, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Iallreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    if (rank == 0)
        printf("threads: %g\n", sum / ranks);
    MPI_Finalize();
    return 0;
}
