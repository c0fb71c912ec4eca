/* Barriers at known places: how deep `exchange` is called follows from the names, its frame from the ranks. */
#include <mpi.h>
#include <string.h>

static volatile int sum; /* what is done behind a call keeps it from being the last of its function */

/* A frame whose size depends on the call. */
static void __attribute__((noinline)) exchange(int bytes) {
    char room[bytes];
    memset(room, 0, bytes);
    MPI_Barrier(MPI_COMM_WORLD);
    sum += room[bytes - 1];
}

static void __attribute__((noinline)) halo(int bytes) {
    exchange(bytes);
    sum++;
}

static int __attribute__((noinline)) again(int depth) {
    int below = depth > 0 ? again(depth - 1) : 0;
    MPI_Allreduce(MPI_IN_PLACE, &below, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return below;
}

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 1; i <= 40; i++) {
        halo(100 * i + rank);
        if (i % 2)
            exchange(7000 / i);
    }
    halo(10);
    again(6);
    MPI_Bcast(&rank, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Bcast(&rank, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Finalize();
}
