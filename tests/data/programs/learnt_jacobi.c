/* 2-D Jacobi on a Cartesian grid: ./jacobi N ITERATIONS; N x N cells over MPI_Dims_create(ranks). */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

/* Returns the largest change. */
static double relax(const double *old, double *new, int rows, int columns) {
    int w = columns + 2;
    double most = 0;
    for (int i = 1; i <= rows; i++)
        for (int j = 1; j <= columns; j++) {
            const double *c = old + (size_t)i * w + j;
            double v = 0.2 * (c[0] + c[-1] + c[1] + c[-w] + c[w]), change = v > c[0] ? v - c[0] : c[0] - v;
            new[(size_t)i * w + j] = v;
            most = change > most ? change : most;
        }
    return most;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int n = argc > 1 ? atoi(argv[1]) : 512, iterations = argc > 2 ? atoi(argv[2]) : 100;
    int ranks, rank, dims[2] = {0, 0}, periods[2] = {0, 0}, at[2];
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Dims_create(ranks, 2, dims);
    MPI_Comm grid;
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
    MPI_Comm_rank(grid, &rank);
    MPI_Cart_coords(grid, rank, 2, at);
    int up, down, west, east;
    MPI_Cart_shift(grid, 0, 1, &up, &down);
    MPI_Cart_shift(grid, 1, 1, &west, &east);
    int rows = n / dims[0] + (at[0] < n % dims[0]), columns = n / dims[1] + (at[1] < n % dims[1]), w = columns + 2;
    double *old = calloc((size_t)(rows + 2) * w, sizeof *old), *new = calloc((size_t)(rows + 2) * w, sizeof *new);
    MPI_Datatype column;
    MPI_Type_vector(rows, 1, w, MPI_DOUBLE, &column);
    MPI_Type_commit(&column);
    if (rank == 0)
        old[w + 1] = 1.0;
    double worst = 0;
    for (int turn = 0; turn < iterations; turn++) {
        MPI_Request r[8];
        MPI_Irecv(old + 1, columns, MPI_DOUBLE, up, 1, grid, &r[0]);
        MPI_Irecv(old + (size_t)(rows + 1) * w + 1, columns, MPI_DOUBLE, down, 2, grid, &r[1]);
        MPI_Irecv(old + w, 1, column, west, 3, grid, &r[2]);
        MPI_Irecv(old + w + columns + 1, 1, column, east, 4, grid, &r[3]);
        MPI_Isend(old + w + 1, columns, MPI_DOUBLE, up, 2, grid, &r[4]);
        MPI_Isend(old + (size_t)rows * w + 1, columns, MPI_DOUBLE, down, 1, grid, &r[5]);
        MPI_Isend(old + w + 1, 1, column, west, 4, grid, &r[6]);
        MPI_Isend(old + w + columns, 1, column, east, 3, grid, &r[7]);
        MPI_Waitall(8, r, MPI_STATUSES_IGNORE);
        double most = relax(old, new, rows, columns);
        double *swap = old; old = new; new = swap;
        if (turn % 10 == 9)
            MPI_Allreduce(&most, &worst, 1, MPI_DOUBLE, MPI_MAX, grid);
    }
    if (rank == 0)
        printf("%d ranks as %d x %d, last change %.3e\n", ranks, dims[0], dims[1], worst);
    MPI_Finalize();
}
