
#include <mpi.h>

static char give[4096], take[4096];

int main(int argc, char **argv) {
    int rank, sizes[] = {2, 1}, wraps[] = {0, 1}, counts[] = {3, 4}, at[] = {0, 64};
    MPI_Datatype types[] = {MPI_INT, MPI_DOUBLE};
    MPI_Comm grid, pair, both;
    MPI_Group all;
    MPI_Win window;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Cart_create(MPI_COMM_WORLD, 2, sizes, wraps, 0, &grid);
    int other = 1 - rank;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, &other, MPI_UNWEIGHTED, 1, &other, MPI_UNWEIGHTED, MPI_INFO_NULL,
                                   0, &pair);
    MPI_Comm_create_group(MPI_COMM_WORLD, all, 5, &both);
    MPI_Alltoallw(give, counts, at, types, take, counts, at, types, MPI_COMM_SELF);
    MPI_Neighbor_alltoall(give, 10, MPI_DOUBLE, take, 10, MPI_DOUBLE, grid); /* a neighbour, nobody, itself twice */
    int own = 5 + rank, its = 5 + other;
    MPI_Neighbor_allgatherv(give, own, MPI_CHAR, take, &its, at, MPI_CHAR, pair);
    if (argc > 1) {
        MPI_Win_create(take, 64, 1, MPI_INFO_NULL, both, &window);
        MPI_Win_free(&window);
    }
    MPI_Finalize();
    return 0;
}
