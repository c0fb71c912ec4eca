/* An LU factorisation without pivoting, less its numbers: what a program for SMPI looks like that was prepared by hand
 * (-DHAND_MADE: its kernels are macros that let the modelled time pass, its matrix is SMPI's shared memory), and the
 * same program as it was (BLAS and malloc).
 *
 *   smpi_overhead N NB P Q TIMES      prints "time: seconds" of as many factorisations
 *
 * Both must do the same in the same order: only what the macros name differs. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef HAND_MADE
#include <smpi/smpi.h>
#define KERNEL(m, n, k) smpi_execute(SECONDS_A_PRODUCT*(double)(m) * (n) * (k) + SECONDS_A_CALL)
#define DGEMM(m, n, k, a, lda, b, ldb, c, ldc) KERNEL(m, n, k)
#define DTRSM(m, n, a, lda, b, ldb) KERNEL(m, n, n)
#define ALLOCATE(bytes) SMPI_SHARED_MALLOC(bytes)
#define RELEASE(data) SMPI_SHARED_FREE(data)
#else
enum { column_major = 102, no_transpose = 111, transpose = 112, lower = 122, unit = 132, right = 142 };
void cblas_dgemm(int, int, int, int, int, int, double, const double*, int, const double*, int, double, double*, int);
void cblas_dtrsm(int, int, int, int, int, int, int, double, const double*, int, double*, int);
#define DGEMM(m, n, k, a, lda, b, ldb, c, ldc)                                                                         \
    cblas_dgemm(column_major, no_transpose, transpose, m, n, k, -1.0, a, lda, b, ldb, 1.0, c, ldc)
#define DTRSM(m, n, a, lda, b, ldb)                                                                                    \
    cblas_dtrsm(column_major, right, lower, no_transpose, unit, m, n, 1.0, a, lda, b, ldb)
#define ALLOCATE(bytes) malloc(bytes)
#define RELEASE(data) free(data)
#endif

enum { blocks_a_product = 4 }; /* columns are updated a few blocks at a time, as with look-ahead */

static int local(int from, int blocks, int rank, int ranks) /* blocks of `rank` from block `from` on */
{
    int count = 0;
    for (int block = from; block < blocks; block++)
        count += block % ranks == rank;
    return count;
}

/* Along a ring, from `root`. */
static void ring(double* data, int count, int root, MPI_Comm comm) {
    int rank, ranks;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    const int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
    if (rank != root)
        MPI_Recv(data, count, MPI_DOUBLE, previous, 1, comm, MPI_STATUS_IGNORE);
    if (next != root)
        MPI_Send(data, count, MPI_DOUBLE, next, 1, comm);
}

/* Pairs exchange small messages, in as many rounds as it takes until all know of all: a pivot. */
static void agree(double* data, int count, MPI_Comm comm) {
    int rank, ranks;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    for (int bit = 1; bit < ranks; bit <<= 1)
        if ((rank ^ bit) < ranks)
            MPI_Sendrecv(data, count, MPI_DOUBLE, rank ^ bit, 2, data + count, count, MPI_DOUBLE, rank ^ bit, 2, comm,
                         MPI_STATUS_IGNORE);
}

int main(int argc, char** argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const int n = atoi(argv[1]), nb = atoi(argv[2]), p = atoi(argv[3]), q = atoi(argv[4]);
    const int times = atoi(argv[5]);
    const int blocks = n / nb, row = rank / q, column = rank % q;
    MPI_Comm in_row, in_column;
    MPI_Comm_split(MPI_COMM_WORLD, row, column, &in_row);
    MPI_Comm_split(MPI_COMM_WORLD, column, row, &in_column);

    const int rows = nb * local(0, blocks, row, p), columns = nb * local(0, blocks, column, q);
    double* matrix = ALLOCATE(sizeof(double) * rows * (size_t)columns);
    double* left = ALLOCATE(sizeof(double) * rows * nb);
    double* upper = ALLOCATE(sizeof(double) * nb * columns);
    double pivot[2 * 64] = {0.0};
    MPI_Barrier(MPI_COMM_WORLD);
    const double began = MPI_Wtime();
    for (int all = 0; all < times * blocks; all++) {
        const int step = all % blocks;
        const int below = nb * local(step, blocks, row, p), beside = nb * local(step, blocks, column, q);
        if (column == step % q) {
            for (int done = 0; done < nb; done += 16) { /* the panel, in strips */
                agree(pivot, 64, in_column);
                if (below > 0)
                    DGEMM(below, 16, nb, left, rows, upper, columns, matrix, rows);
            }
            if (below > 0)
                DTRSM(below, nb, matrix, rows, left, rows);
        }
        if (below > 0)
            ring(left, below * nb, step % q, in_row);
        if (beside > 0)
            ring(upper, beside * nb, step % p, in_column);
        for (int at = 0; below > 0 && at < beside; at += blocks_a_product * nb) {
            const int width = beside - at < blocks_a_product * nb ? beside - at : blocks_a_product * nb;
            DGEMM(below, width, nb, left, rows, upper + at, columns, matrix + (size_t)rows * at, rows);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("time: %.9f\n", MPI_Wtime() - began);
    RELEASE(matrix);
    RELEASE(left);
    RELEASE(upper);
    MPI_Finalize();
    return 0;
}
