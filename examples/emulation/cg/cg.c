/* Conjugate gradients for the Laplacian of a square, five points, as a sparse matrix distributed by rows.
 *
 *   cg SIDE ITERATIONS
 *
 * SIDE x SIDE unknowns; a rank has whole lines of the square. The matrix is stored by rows (CSR). An iteration
 * exchanges one line with each neighbour, multiplies the matrix and a vector, and sums up two scalar products over all
 * ranks. The right-hand side is that of the solution 1, and the program prints the error after a fixed number of
 * iterations.
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    int side, lines, first_line; /* of the square; those of this rank */
    int below, above;            /* ranks, or MPI_PROC_NULL */
    long rows;
    long* start; /* of each row in the two arrays that follow */
    int* column; /* 0 is the first unknown of the line below the first one of this rank */
    double* value;
} matrix;

static void* array(size_t count, size_t size) {
    void* memory = calloc(count, size);
    if (memory == NULL) {
        fprintf(stderr, "cg: no memory for %zu values\n", count);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return memory;
}

static void set_up(matrix* a) {
    a->rows = (long)a->lines * a->side;
    a->start = array((size_t)a->rows + 1, sizeof *a->start);
    a->column = array(5 * (size_t)a->rows, sizeof *a->column);
    a->value = array(5 * (size_t)a->rows, sizeof *a->value);
    long entry = 0;
    for (int line = 0; line < a->lines; line++)
        for (int x = 0; x < a->side; x++) {
            const int y = a->first_line + line, here = (line + 1) * a->side + x;
            const int is_inside[5] = {y > 0, x > 0, 1, x < a->side - 1, y < a->side - 1};
            const int column[5] = {here - a->side, here - 1, here, here + 1, here + a->side};
            for (int i = 0; i < 5; i++)
                if (is_inside[i]) {
                    a->column[entry] = column[i];
                    a->value[entry++] = i == 2 ? 4.0 : -1.0;
                }
            a->start[(long)line * a->side + x + 1] = entry;
        }
}

/* y = A x; x has a line of each neighbour before and after those of this rank. */
static void multiply(const matrix* a, double* x, double* y) {
    const int side = a->side;
    double *first = x + side, *last = x + (long)a->lines * side;
    MPI_Request requests[4];
    MPI_Irecv(x, side, MPI_DOUBLE, a->below, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(last + side, side, MPI_DOUBLE, a->above, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(last, side, MPI_DOUBLE, a->above, 0, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(first, side, MPI_DOUBLE, a->below, 1, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    for (long row = 0; row < a->rows; row++) {
        double sum = 0;
        for (long i = a->start[row]; i < a->start[row + 1]; i++)
            sum += a->value[i] * x[a->column[i]];
        y[row] = sum;
    }
}

static double scalar_product(long count, const double* x, const double* y) {
    double mine = 0, all;
    for (long i = 0; i < count; i++)
        mine += x[i] * y[i];
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    matrix a = {.side = argc > 1 ? atoi(argv[1]) : 0};
    const int iterations = argc > 2 ? atoi(argv[2]) : 0;
    int ranks, rank;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (a.side < ranks || iterations < 1) {
        if (rank == 0)
            fprintf(stderr, "usage: cg SIDE ITERATIONS     SIDE at least %d\n", ranks);
        MPI_Finalize();
        return 2;
    }
    a.first_line = (int)((long)a.side * rank / ranks);
    a.lines = (int)((long)a.side * (rank + 1) / ranks) - a.first_line;
    a.below = rank > 0 ? rank - 1 : MPI_PROC_NULL;
    a.above = rank < ranks - 1 ? rank + 1 : MPI_PROC_NULL;
    set_up(&a);

    const size_t rows = (size_t)a.rows, side = (size_t)a.side;
    double* x = array(rows, sizeof *x);
    double* r = array(rows, sizeof *r);
    double* q = array(rows, sizeof *q);
    double* p = array(rows + 2 * side, sizeof *p);
    for (size_t i = 0; i < rows + 2 * side; i++)
        p[i] = 1.0;
    multiply(&a, p, r); /* the solution is 1 everywhere; x = 0 */
    memcpy(p + side, r, rows * sizeof *p);
    double rho = scalar_product(a.rows, r, r);

    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    for (int iteration = 0; iteration < iterations; iteration++) {
        multiply(&a, p, q);
        const double alpha = rho / scalar_product(a.rows, p + side, q);
        for (size_t i = 0; i < rows; i++) {
            x[i] += alpha * p[side + i];
            r[i] -= alpha * q[i];
        }
        const double next = scalar_product(a.rows, r, r), beta = next / rho;
        rho = next;
        for (size_t i = 0; i < rows; i++)
            p[side + i] = r[i] + beta * p[side + i];
    }
    const double mine = MPI_Wtime() - start;
    double time, error = 0, largest;
    MPI_Reduce(&mine, &time, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);

    for (size_t i = 0; i < rows; i++)
        error = fmax(error, fabs(x[i] - 1.0));
    MPI_Reduce(&error, &largest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("time: %.6f s\n", time);
        printf("residual: %.6e\n", sqrt(rho));
        printf("error: %.3e\n", largest);
    }
    free(a.start), free(a.column), free(a.value);
    free(x), free(r), free(q), free(p);
    MPI_Finalize();
    return 0;
}
