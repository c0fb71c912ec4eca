/* Loaded before an MPI library (LD_PRELOAD): one rank leaves MPI_Barrier late, as those of some libraries do (Hunold
 * and Carpen-Amarie, "MPI Benchmarking Revisited", figure 10). LEPAUTE_LATE_RANK, LEPAUTE_LATE_NS. */
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static int64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int MPI_Barrier(MPI_Comm comm) {
    static int rank = -1, late_rank = -1;
    static int64_t late_ns;
    if (rank < 0) {
        const char *which = getenv("LEPAUTE_LATE_RANK"), *how_long = getenv("LEPAUTE_LATE_NS");
        PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
        late_rank = which ? atoi(which) : -1;
        late_ns = how_long ? atoll(how_long) : 0;
    }
    int status = PMPI_Barrier(comm);
    if (rank == late_rank)
        for (int64_t until_ns = now_ns() + late_ns; now_ns() < until_ns;)
            ;
    return status;
}
