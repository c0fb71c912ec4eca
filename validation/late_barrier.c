/* Loaded before an MPI library (LD_PRELOAD): one rank leaves MPI_Barrier late, as those of some libraries do (Hunold
 * and Carpen-Amarie, "MPI Benchmarking Revisited", figure 10). LEPAUTE_LATE_RANK, LEPAUTE_LATE_NS. */
#include <mpi.h>
#include <stdlib.h>

int MPI_Barrier(MPI_Comm comm) {
    static int rank = -1, late_rank;
    static double late_s;
    if (rank < 0) {
        PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
        late_rank = atoi(getenv("LEPAUTE_LATE_RANK"));
        late_s = 1e-9 * atof(getenv("LEPAUTE_LATE_NS"));
    }
    int status = PMPI_Barrier(comm);
    if (rank == late_rank)
        for (double until_s = PMPI_Wtime() + late_s; PMPI_Wtime() < until_s;)
            ;
    return status;
}
