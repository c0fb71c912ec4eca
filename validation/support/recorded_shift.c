/* Two ranks that note the machine's clock right before each of their calls: what a recorder with shifted clocks should
 * find out. Prints rank, call, nanoseconds. */
#include <mpi.h>
#include <stdio.h>
#include <time.h>

enum { CALLS = 50 };

int main(int argc, char** argv) {
    static long long before_ns[CALLS];
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int call = 0; call < CALLS; call++) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        before_ns[call] = now.tv_sec * 1000000000LL + now.tv_nsec;
        MPI_Barrier(MPI_COMM_WORLD);
    }
    for (int call = 0; call < CALLS; call++)
        printf("%d %d %lld\n", rank, call, before_ns[call]);
    MPI_Finalize();
    return 0;
}
