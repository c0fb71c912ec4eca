/* An FFT's communication: a pencil-decomposed cube of N^3, transposed within rows and within columns of a grid of
 * ranks made by MPI_Comm_split, with a computation over the pencils before each: ./transpose N ITERATIONS */
#include <complex.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void along(double complex *a, size_t count) {
    for (int stage = 0; stage < 6; stage++)
        for (size_t i = 0; i < count; i += 2) {
            double complex x = a[i], y = a[i + 1];
            a[i] = 0.5 * (x + y);
            a[i + 1] = 0.5 * (x - y) * (0.8 + 0.6 * I);
        }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int n = argc > 1 ? atoi(argv[1]) : 64, iterations = argc > 2 ? atoi(argv[2]) : 10;
    int ranks, rank, dims[2] = {0, 0};
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Dims_create(ranks, 2, dims);
    MPI_Comm row, column;
    MPI_Comm_split(MPI_COMM_WORLD, rank / dims[1], rank, &row);
    MPI_Comm_split(MPI_COMM_WORLD, rank % dims[1], rank, &column);
    size_t count = (size_t)n * n * n / ranks;
    double complex *a = calloc(count, sizeof *a), *b = calloc(count, sizeof *b);
    a[0] = 1;
    int in_row = (int)(count / dims[1]), in_column = (int)(count / dims[0]);
    for (int turn = 0; turn < iterations; turn++) {
        along(a, count);
        MPI_Alltoall(a, in_row, MPI_C_DOUBLE_COMPLEX, b, in_row, MPI_C_DOUBLE_COMPLEX, row);
        along(b, count);
        MPI_Alltoall(b, in_column, MPI_C_DOUBLE_COMPLEX, a, in_column, MPI_C_DOUBLE_COMPLEX, column);
        along(a, count);
    }
    double sum = creal(a[0]), all = 0;
    MPI_Reduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d ranks as %d x %d, %.6e\n", ranks, dims[0], dims[1], all);
    MPI_Finalize();
}
