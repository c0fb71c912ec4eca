
#include <mpi.h>
#include <stdlib.h>
#include <unistd.h>

static char out[200000], in[200000];

int main(int argc, char **argv) {
    int rank, count = atoi(argv[1]);
    MPI_Request r;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 20; i++) {
        MPI_Ibarrier(MPI_COMM_WORLD, &r);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        MPI_Ibcast(out, count, MPI_CHAR, i % 2, MPI_COMM_WORLD, &r);
        usleep(atoi(argv[2]) * (1 + rank));
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        MPI_Iallreduce(out, in, count, MPI_CHAR, MPI_SUM, MPI_COMM_WORLD, &r);
        usleep(atoi(argv[2]) * (2 - rank));
        MPI_Wait(&r, MPI_STATUS_IGNORE);
        MPI_Ialltoall(out, count, MPI_CHAR, in, count, MPI_CHAR, MPI_COMM_WORLD, &r);
        MPI_Wait(&r, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    return 0;
}
