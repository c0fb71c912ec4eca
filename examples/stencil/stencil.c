/* A real MPI program that does what `lepaute predict stencil` simulates: a 7-point stencil on a periodic box, faces
 * exchanged with MPI_Sendrecv along x, y and z, one way and then the other, and one MPI_Allreduce per iteration.
 *
 *   mpicc -O2 -o stencil stencil.c -lm
 *   mpirun -np 2 ./stencil PX PY PZ NX NY NZ ITERATIONS [--sweeps-only]
 *
 * Prints the time of the iterations (maximum over ranks) and the mean time per cell. With --sweeps-only nothing is
 * sent: the time per cell is then the value for --cell-time, including the packing of faces.
 */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    int cells[3];           /* of this rank, without the halo of one layer */
    double *now, *next;     /* (x + 2) (y + 2) (z + 2), z fastest */
    double *packed, *taken; /* a face each */
} box;

static size_t at(const box *b, int x, int y, int z) {
    return ((size_t)x * (size_t)(b->cells[1] + 2) + (size_t)y) * (size_t)(b->cells[2] + 2) + (size_t)z;
}

/* Copies the layer `where` (0 and cells + 1 are the halo) across `axis` to or from `face`; returns its cell count. */
static int copy_face(box *b, int axis, int where, double *face, int out_of_box) {
    int u = axis == 0 ? 1 : 0, v = axis == 2 ? 1 : 2, count = 0, p[3];
    p[axis] = where;
    for (p[u] = 1; p[u] <= b->cells[u]; p[u]++)
        for (p[v] = 1; p[v] <= b->cells[v]; p[v]++, count++) {
            double *cell = &b->now[at(b, p[0], p[1], p[2])];
            if (out_of_box)
                face[count] = *cell;
            else
                *cell = face[count];
        }
    return count;
}

static void exchange(box *b, MPI_Comm grid, int axis, int upwards, int send) {
    int from, to, last = b->cells[axis];
    MPI_Cart_shift(grid, axis, upwards ? 1 : -1, &from, &to);
    int count = copy_face(b, axis, upwards ? last : 1, b->packed, 1);
    if (send)
        MPI_Sendrecv(b->packed, count, MPI_DOUBLE, to, 2 * axis + !upwards, b->taken, count, MPI_DOUBLE, from,
                     2 * axis + !upwards, grid, MPI_STATUS_IGNORE);
    copy_face(b, axis, upwards ? 0 : last + 1, send ? b->taken : b->packed, 0);
}

static double sweep(box *b) {
    double residual = 0;
    size_t dx = at(b, 1, 0, 0), dy = at(b, 0, 1, 0);
    for (int x = 1; x <= b->cells[0]; x++)
        for (int y = 1; y <= b->cells[1]; y++)
            for (int z = 1; z <= b->cells[2]; z++) {
                const double *c = &b->now[at(b, x, y, z)];
                double value = 0.4 * c[0] + 0.1 * (c[dx] + c[dy] + c[1] + *(c - dx) + *(c - dy) + *(c - 1));
                b->next[at(b, x, y, z)] = value;
                residual += (value - c[0]) * (value - c[0]);
            }
    double *swap = b->now;
    b->now = b->next;
    b->next = swap;
    return residual;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int processes[3], periodic[3] = {1, 1, 1}, place[3], rank, largest = 0;
    int send = !(argc > 8 && !strcmp(argv[8], "--sweeps-only"));
    if (argc < 8) {
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        if (rank == 0)
            fprintf(stderr, "usage: stencil PX PY PZ NX NY NZ ITERATIONS [--sweeps-only]\n");
        MPI_Finalize();
        return 2;
    }
    for (int d = 0; d < 3; d++)
        processes[d] = atoi(argv[1 + d]);
    MPI_Comm grid;
    MPI_Cart_create(MPI_COMM_WORLD, 3, processes, periodic, 0, &grid);
    MPI_Comm_rank(grid, &rank);
    MPI_Cart_coords(grid, rank, 3, place);
    box b;
    double volume = 1, cells = 1;
    for (int d = 0; d < 3; d++) {
        int all = atoi(argv[4 + d]);
        b.cells[d] = all / processes[d] + (place[d] < all % processes[d]);
        volume *= b.cells[d] + 2;
        cells *= b.cells[d];
        largest = b.cells[d] > largest ? b.cells[d] : largest;
    }
    b.now = calloc((size_t)volume, sizeof(double));
    b.next = calloc((size_t)volume, sizeof(double));
    b.packed = calloc((size_t)largest * (size_t)largest, sizeof(double));
    b.taken = calloc((size_t)largest * (size_t)largest, sizeof(double));
    if (!b.now || !b.next || !b.packed || !b.taken)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (size_t i = 0; i < (size_t)volume; i++) /* also touches every page */
        b.now[i] = b.next[i] = (double)(i * 7919 % 1009);
    int iterations = atoi(argv[7]);
    double norm = 0, start = 0;
    for (int iteration = -2; iteration < iterations; iteration++) { /* two to warm up */
        if (iteration == 0) {
            MPI_Barrier(grid);
            start = MPI_Wtime();
        }
        for (int axis = 0; axis < 3; axis++)
            for (int upwards = 1; upwards >= 0; upwards--)
                exchange(&b, grid, axis, upwards, send && processes[axis] > 1);
        double residual = sweep(&b);
        if (send)
            MPI_Allreduce(&residual, &norm, 1, MPI_DOUBLE, MPI_SUM, grid);
        else
            norm = residual;
    }
    double mine = MPI_Wtime() - start, time, cell = mine / iterations / cells, sum;
    MPI_Reduce(&mine, &time, 1, MPI_DOUBLE, MPI_MAX, 0, grid);
    MPI_Reduce(&cell, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, grid);
    int ranks;
    MPI_Comm_size(grid, &ranks);
    if (rank == 0)
        printf("{\"time_s\": %.9g, \"cell_time_s\": %.6g, \"residual\": %.9g}\n", time, sum / ranks, sqrt(norm));
    free(b.now);
    free(b.next);
    free(b.packed);
    free(b.taken);
    MPI_Finalize();
    return 0;
}
