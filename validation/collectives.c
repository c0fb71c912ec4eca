/* One collective operation of MPI, on blocks or vectors of so many bytes: what validation/collectives.py emulates. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static int is(const char *name, const char *other) { return strcmp(name, other) == 0; }

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const char *name = argv[1];
    const int count = (int)(strtoul(argv[2], NULL, 10) / sizeof(double));
    double *sent = calloc((size_t)count * (size_t)size, sizeof *sent);
    double *received = calloc((size_t)count * (size_t)size, sizeof *received);
    int *counts = malloc((size_t)size * sizeof *counts);
    int *places = malloc((size_t)size * sizeof *places);
    for (int rank = 0; rank < size; rank++) {
        counts[rank] = count;
        places[rank] = rank * count;
    }
    const MPI_Comm all = MPI_COMM_WORLD;
    if (is(name, "barrier"))
        MPI_Barrier(all);
    else if (is(name, "bcast"))
        MPI_Bcast(sent, count, MPI_DOUBLE, 0, all);
    else if (is(name, "reduce"))
        MPI_Reduce(sent, received, count, MPI_DOUBLE, MPI_SUM, 0, all);
    else if (is(name, "allreduce"))
        MPI_Allreduce(sent, received, count, MPI_DOUBLE, MPI_SUM, all);
    else if (is(name, "gather"))
        MPI_Gather(sent, count, MPI_DOUBLE, received, count, MPI_DOUBLE, 0, all);
    else if (is(name, "scatter"))
        MPI_Scatter(sent, count, MPI_DOUBLE, received, count, MPI_DOUBLE, 0, all);
    else if (is(name, "allgather"))
        MPI_Allgather(sent, count, MPI_DOUBLE, received, count, MPI_DOUBLE, all);
    else if (is(name, "allgatherv"))
        MPI_Allgatherv(sent, count, MPI_DOUBLE, received, counts, places, MPI_DOUBLE, all);
    else if (is(name, "alltoall"))
        MPI_Alltoall(sent, count, MPI_DOUBLE, received, count, MPI_DOUBLE, all);
    else if (is(name, "reduce_scatter"))
        MPI_Reduce_scatter(sent, received, counts, MPI_DOUBLE, MPI_SUM, all);
    else
        MPI_Abort(all, 2);
    MPI_Finalize();
    return 0;
}
