/* Fourier transform of a square matrix of complex numbers, distributed by rows.
 *
 *   fft N REPETITIONS
 *
 * N rows of N numbers; N is a power of two and a multiple of the number of ranks. A transform processes the local rows,
 * transposes the matrix with one MPI_Alltoall, and processes the rows again: the result is transposed. The inverse does
 * the same and undoes the transposition. A repetition is a transform and its inverse.
 *
 * Two checks, not timed: one coefficient of the first transform against its definition as a sum, and the numbers after
 * all repetitions against the input.
 */
#include <complex.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
    int n, ranks, rank;
    int rows;                       /* of this rank: n / ranks */
    double complex* roots;          /* exp(-2 pi i k / n) for k < n */
    double complex *packed, *taken; /* rows x n numbers each */
} plan;

/* C's complex product also handles infinities, which costs more than the product itself. */
static double complex product(double complex a, double complex b) {
    return CMPLX(creal(a) * creal(b) - cimag(a) * cimag(b), creal(a) * cimag(b) + cimag(a) * creal(b));
}

/* Radix 2, in place: bit-reversal permutation, then log2 n passes of butterflies. */
static void transform_row(const plan* p, double complex* x, int inverse) {
    for (int i = 1, reversed = 0; i < p->n; i++) {
        int bit = p->n >> 1;
        for (; reversed & bit; bit >>= 1)
            reversed ^= bit;
        reversed |= bit;
        if (i < reversed) {
            double complex swap = x[i];
            x[i] = x[reversed];
            x[reversed] = swap;
        }
    }
    for (int half = 1; half < p->n; half *= 2) {
        int step = p->n / (2 * half);
        for (int group = 0; group < p->n; group += 2 * half)
            for (int k = 0; k < half; k++) {
                double complex root = p->roots[k * step];
                double complex *low = &x[group + k], *high = &x[group + k + half];
                double complex turned = product(*high, inverse ? conj(root) : root);
                *high = *low - turned;
                *low = *low + turned;
            }
    }
}

static void transform_rows(const plan* p, double complex* square, int inverse) {
    for (int row = 0; row < p->rows; row++)
        transform_row(p, &square[(size_t)row * (size_t)p->n], inverse);
}

/* Each pair of ranks exchanges the block in the rows of the one and the columns of the other. */
static void transpose(const plan* p, double complex* square) {
    size_t n = (size_t)p->n, rows = (size_t)p->rows, ranks = (size_t)p->ranks;
    int count = p->rows * p->rows;
    for (size_t to = 0; to < ranks; to++) /* transposed on the way out */
        for (size_t row = 0; row < rows; row++)
            for (size_t column = 0; column < rows; column++)
                p->packed[(to * rows + column) * rows + row] = square[row * n + to * rows + column];
    MPI_Alltoall(p->packed, count, MPI_C_DOUBLE_COMPLEX, p->taken, count, MPI_C_DOUBLE_COMPLEX, MPI_COMM_WORLD);
    for (size_t from = 0; from < ranks; from++)
        for (size_t row = 0; row < rows; row++)
            for (size_t column = 0; column < rows; column++)
                square[row * n + from * rows + column] = p->taken[(from * rows + row) * rows + column];
}

static void transform_square(const plan* p, double complex* square, int inverse) {
    transform_rows(p, square, inverse);
    transpose(p, square);
    transform_rows(p, square, inverse);
    if (inverse) {
        double scale = 1.0 / ((double)p->n * p->n);
        for (size_t i = 0; i < (size_t)p->rows * (size_t)p->n; i++)
            square[i] *= scale;
    }
}

/* Arbitrary input that every rank can compute. */
static double complex value_at(long row, long column) {
    return CMPLX((double)((row * 7919 + column * 104729) % 1009) / 1009.0 - 0.5,
                 (double)((row * 15485863 + column * 32452843) % 1013) / 1013.0 - 0.5);
}

/* Error of the coefficient (u, v), held by one rank, relative to N: difference from the sum over all numbers. */
static double coefficient_error(const plan* p, const double complex* spectrum, int u, int v) {
    double sum[2] = {0, 0}, all[2], error = 0, largest;
    for (int row = 0; row < p->rows; row++)
        for (int column = 0; column < p->n; column++) {
            long global = (long)p->rank * p->rows + row;
            double complex term = product(value_at(global, column), p->roots[(global * u + (long)column * v) % p->n]);
            sum[0] += creal(term);
            sum[1] += cimag(term);
        }
    MPI_Allreduce(sum, all, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (v / p->rows == p->rank) /* the spectrum is transposed */
        error = cabs(spectrum[(size_t)(v % p->rows) * (size_t)p->n + (size_t)u] - CMPLX(all[0], all[1])) / p->n;
    MPI_Allreduce(&error, &largest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return largest;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    plan p = {.n = argc > 1 ? atoi(argv[1]) : 0};
    int repetitions = argc > 2 ? atoi(argv[2]) : 0;
    MPI_Comm_size(MPI_COMM_WORLD, &p.ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &p.rank);
    if (p.n < 2 || (p.n & (p.n - 1)) != 0 || p.n % p.ranks != 0 || repetitions < 1) {
        if (p.rank == 0)
            fprintf(stderr, "usage: fft N REPETITIONS     N a power of two and a multiple of %d ranks\n", p.ranks);
        MPI_Finalize();
        return 2;
    }
    p.rows = p.n / p.ranks;
    size_t size = (size_t)p.rows * (size_t)p.n;
    double complex* square = malloc(size * sizeof *square);
    p.packed = malloc(size * sizeof *p.packed);
    p.taken = malloc(size * sizeof *p.taken);
    p.roots = malloc((size_t)p.n * sizeof *p.roots);
    if (square == NULL || p.packed == NULL || p.taken == NULL || p.roots == NULL) {
        fprintf(stderr, "fft: no memory for 3 x %zu numbers\n", size);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (int k = 0; k < p.n; k++)
        p.roots[k] = cexp(CMPLX(0.0, -2.0 * acos(-1.0) * k / p.n));
    for (int row = 0; row < p.rows; row++)
        for (int column = 0; column < p.n; column++)
            square[(size_t)row * (size_t)p.n + (size_t)column] = value_at((long)p.rank * p.rows + row, column);

    transform_square(&p, square, 0);
    double coefficient = coefficient_error(&p, square, p.n / 2 - 1, p.n / 4 + 1);
    transform_square(&p, square, 1);

    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int repetition = 0; repetition < repetitions; repetition++) {
        transform_square(&p, square, 0);
        transform_square(&p, square, 1);
    }
    double mine = MPI_Wtime() - start, time;
    MPI_Reduce(&mine, &time, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);

    double error = 0, largest;
    for (int row = 0; row < p.rows; row++)
        for (int column = 0; column < p.n; column++) {
            double complex found = square[(size_t)row * (size_t)p.n + (size_t)column];
            double off = cabs(found - value_at((long)p.rank * p.rows + row, column));
            error = off > error ? off : error;
        }
    MPI_Reduce(&error, &largest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (p.rank == 0) {
        printf("time: %.6f s\n", time);
        printf("error of a coefficient: %.3e\n", coefficient);
        printf("error after the inverse: %.3e\n", largest);
    }
    free(square);
    free(p.packed);
    free(p.taken);
    free(p.roots);
    MPI_Finalize();
    return 0;
}
