/* The messages of ring.py as an MPI program, computing replaced by sleep: what the model is held against under SMPI.
 * ring BLOCKS BLOCK_BYTES WINDOW WORK: the last in seconds a byte. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void compute(double seconds) {
    const struct timespec pause = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&pause, NULL);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 5) {
        if (rank == 0)
            fprintf(stderr, "usage: ring BLOCKS BLOCK_BYTES WINDOW WORK\n");
        MPI_Finalize();
        return 2;
    }
    const int blocks = atoi(argv[1]), bytes = atoi(argv[2]), window = atoi(argv[3]);
    const double work_s = atof(argv[4]) * bytes;
    const int left = (rank + size - 1) % size, right = (rank + 1) % size;
    char *const values = calloc((size_t)blocks, (size_t)bytes);
    MPI_Request *const requests = calloc(2 * (size_t)blocks, sizeof *requests), *const sends = requests + blocks;
    for (int i = 0; i < blocks; i++) {
        requests[i] = MPI_REQUEST_NULL;
        if (rank == 0) {
            MPI_Irecv(values + (size_t)i * (size_t)bytes, bytes, MPI_BYTE, left, 0, MPI_COMM_WORLD, &requests[i]);
        }
    }
    for (int i = 0; i < blocks; i++) {
        char *const block = values + (size_t)i * (size_t)bytes;
        if (rank > 0) {
            MPI_Recv(block, bytes, MPI_BYTE, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        compute(work_s);
        if (i >= window) {
            MPI_Wait(&sends[i - window], MPI_STATUS_IGNORE);
        }
        MPI_Isend(block, bytes, MPI_BYTE, right, 0, MPI_COMM_WORLD, &sends[i]);
    }
    MPI_Waitall(2 * blocks, requests, MPI_STATUSES_IGNORE);
    free(values);
    free(requests);
    MPI_Finalize();
    return 0;
}
