/* Halo exchange: Jacobi's method on a square decomposed into P x Q blocks, one per rank.
 *
 *   halo N ITERATIONS [EVERY]
 *
 * N x N points in the unit square, zero on its border. Before each sweep a rank exchanges the outermost rows and
 * columns of its block with its four neighbours; every EVERY-th sweep (default 10) all ranks sum up their changes.
 *
 * The initial values are sin(pi x) sin(pi y), which each sweep multiplies by cos(pi h), h = 1 / (N + 1): the exact
 * result is known, and the program prints its error.
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum side { NORTH, SOUTH, WEST, EAST, SIDES };

typedef struct {
    int rows, columns;           /* of the block, without the halo of one point around it */
    int first_row, first_column; /* number of its first point in the whole square, from 0 */
    double *now, *next;          /* (rows + 2) (columns + 2) values, row by row */
} block;

static size_t at(const block* b, int row, int column) {
    return (size_t)row * (size_t)(b->columns + 2) + (size_t)column;
}

/* Share `index` of `count` points divided among `parts` ranks; the first ranks get one more if there is a remainder. */
static int share(int count, int parts, int index, int* first) {
    int least = count / parts, more = count % parts;
    *first = index * least + (index < more ? index : more);
    return least + (index < more);
}

static double start_value(const block* b, int row, int column, double h) {
    double pi = acos(-1.0);
    return sin(pi * h * (b->first_row + row)) * sin(pi * h * (b->first_column + column));
}

/* Exchanges the outermost points with the neighbours; beyond the border the neighbour is MPI_PROC_NULL. */
static void exchange(block* b, const int neighbours[SIDES], MPI_Datatype column, MPI_Comm grid) {
    size_t sent[SIDES] = {at(b, 1, 1), at(b, b->rows, 1), at(b, 1, 1), at(b, 1, b->columns)};
    size_t taken[SIDES] = {at(b, 0, 1), at(b, b->rows + 1, 1), at(b, 1, 0), at(b, 1, b->columns + 1)};
    const enum side opposite[SIDES] = {SOUTH, NORTH, EAST, WEST};
    MPI_Request requests[2 * SIDES];
    for (int side = 0; side < SIDES; side++) {
        int is_row = side == NORTH || side == SOUTH;
        int count = is_row ? b->columns : 1;
        MPI_Datatype type = is_row ? MPI_DOUBLE : column;
        /* A message is known by the side on which it leaves. */
        MPI_Irecv(&b->now[taken[side]], count, type, neighbours[side], opposite[side], grid, &requests[side]);
        MPI_Isend(&b->now[sent[side]], count, type, neighbours[side], side, grid, &requests[SIDES + side]);
    }
    MPI_Waitall(2 * SIDES, requests, MPI_STATUSES_IGNORE);
}

/* Each point becomes the mean of its neighbours; the sum of the squared changes. */
static double sweep(block* b) {
    double change = 0;
    for (int row = 1; row <= b->rows; row++) {
        const double *above = &b->now[at(b, row - 1, 0)], *here = &b->now[at(b, row, 0)];
        const double* below = &b->now[at(b, row + 1, 0)];
        double* result = &b->next[at(b, row, 0)];
        for (int column = 1; column <= b->columns; column++) {
            result[column] = 0.25 * (above[column] + below[column] + here[column - 1] + here[column + 1]);
            double difference = result[column] - here[column];
            change += difference * difference;
        }
    }
    double* swap = b->now;
    b->now = b->next;
    b->next = swap;
    return change;
}

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int n = argc > 1 ? atoi(argv[1]) : 0, iterations = argc > 2 ? atoi(argv[2]) : 0;
    int every = argc > 3 ? atoi(argv[3]) : 10;
    int ranks, rank, shape[2] = {0, 0}, periodic[2] = {0, 0}, place[2], neighbours[SIDES];
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Dims_create(ranks, 2, shape);
    if (n < shape[0] || iterations < 1 || every < 1) {
        if (rank == 0)
            fprintf(stderr, "usage: halo N ITERATIONS [EVERY]     N at least %d on %d ranks\n", shape[0], ranks);
        MPI_Finalize();
        return 2;
    }
    MPI_Comm grid;
    MPI_Cart_create(MPI_COMM_WORLD, 2, shape, periodic, 0, &grid);
    MPI_Comm_rank(grid, &rank);
    MPI_Cart_coords(grid, rank, 2, place);
    MPI_Cart_shift(grid, 0, 1, &neighbours[NORTH], &neighbours[SOUTH]);
    MPI_Cart_shift(grid, 1, 1, &neighbours[WEST], &neighbours[EAST]);

    block b;
    b.rows = share(n, shape[0], place[0], &b.first_row);
    b.columns = share(n, shape[1], place[1], &b.first_column);
    size_t size = (size_t)(b.rows + 2) * (size_t)(b.columns + 2);
    b.now = calloc(size, sizeof(double));
    b.next = calloc(size, sizeof(double));
    if (b.now == NULL || b.next == NULL) {
        fprintf(stderr, "halo: no memory for 2 x %zu values\n", size);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    double h = 1.0 / (n + 1);
    for (int row = 1; row <= b.rows; row++)
        for (int column = 1; column <= b.columns; column++)
            b.now[at(&b, row, column)] = b.next[at(&b, row, column)] = start_value(&b, row, column, h);
    MPI_Datatype column_type;
    MPI_Type_vector(b.rows, 1, b.columns + 2, MPI_DOUBLE, &column_type);
    MPI_Type_commit(&column_type);

    double all_change = 0;
    MPI_Barrier(grid);
    double start = MPI_Wtime();
    for (int iteration = 1; iteration <= iterations; iteration++) {
        exchange(&b, neighbours, column_type, grid);
        double change = sweep(&b);
        if (iteration % every == 0)
            MPI_Allreduce(&change, &all_change, 1, MPI_DOUBLE, MPI_SUM, grid);
    }
    double mine = MPI_Wtime() - start, time;
    MPI_Reduce(&mine, &time, 1, MPI_DOUBLE, MPI_MAX, 0, grid);

    double factor = pow(cos(acos(-1.0) * h), iterations), sum = 0, error = 0, all_sum, all_error;
    for (int row = 1; row <= b.rows; row++)
        for (int column = 1; column <= b.columns; column++) {
            double value = b.now[at(&b, row, column)];
            double off = fabs(value - factor * start_value(&b, row, column, h));
            sum += value;
            error = off > error ? off : error;
        }
    MPI_Reduce(&sum, &all_sum, 1, MPI_DOUBLE, MPI_SUM, 0, grid);
    MPI_Reduce(&error, &all_error, 1, MPI_DOUBLE, MPI_MAX, 0, grid);
    if (rank == 0) {
        printf("grid: %d x %d ranks\n", shape[0], shape[1]);
        printf("time: %.6f s\n", time);
        printf("last change: %.6e\n", sqrt(all_change));
        printf("checksum: %.12e\n", all_sum);
        printf("error: %.3e\n", all_error);
    }
    MPI_Type_free(&column_type);
    MPI_Comm_free(&grid);
    free(b.now);
    free(b.next);
    MPI_Finalize();
    return 0;
}
