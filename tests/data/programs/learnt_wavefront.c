/* Pipelined sweeps over a 2-D grid of ranks, from all four corners: ./wavefront N PLANES SWEEPS */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static double *block, *row, *column;
static int rows, columns, planes;

static void sweep(MPI_Comm grid, int down, int right) {
    int from_y, to_y, from_x, to_x;
    MPI_Cart_shift(grid, 0, down, &from_y, &to_y);
    MPI_Cart_shift(grid, 1, right, &from_x, &to_x);
    for (int k = 0; k < planes; k++) {
        if (from_y != MPI_PROC_NULL)
            MPI_Recv(row, columns, MPI_DOUBLE, from_y, 10, grid, MPI_STATUS_IGNORE);
        if (from_x != MPI_PROC_NULL)
            MPI_Recv(column, rows, MPI_DOUBLE, from_x, 20, grid, MPI_STATUS_IGNORE);
        double *plane = block + (size_t)k * rows * columns;
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < columns; j++) {
                double v = 0.5 * (row[j] + column[i]) + plane[(size_t)i * columns + j];
                plane[(size_t)i * columns + j] = row[j] = column[i] = 0.9 * v;
            }
        if (to_y != MPI_PROC_NULL)
            MPI_Send(row, columns, MPI_DOUBLE, to_y, 10, grid);
        if (to_x != MPI_PROC_NULL)
            MPI_Send(column, rows, MPI_DOUBLE, to_x, 20, grid);
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int n = argc > 1 ? atoi(argv[1]) : 256, sweeps = argc > 3 ? atoi(argv[3]) : 4;
    planes = argc > 2 ? atoi(argv[2]) : 20;
    int ranks, rank, dims[2] = {0, 0}, periods[2] = {0, 0};
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Dims_create(ranks, 2, dims);
    MPI_Comm grid;
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
    MPI_Comm_rank(grid, &rank);
    rows = n / dims[0];
    columns = n / dims[1];
    block = calloc((size_t)planes * rows * columns, sizeof *block);
    row = calloc((size_t)columns, sizeof *row);
    column = calloc((size_t)rows, sizeof *column);
    for (int turn = 0; turn < sweeps; turn++) {
        sweep(grid, 1, 1);
        sweep(grid, 1, -1);
        sweep(grid, -1, 1);
        sweep(grid, -1, -1);
        double sum = block[0], all;
        MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    if (rank == 0)
        printf("%d ranks as %d x %d\n", ranks, dims[0], dims[1]);
    MPI_Finalize();
}
