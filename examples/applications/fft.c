/* The messages of fft.py as an MPI program, computing replaced by sleep: what the model is held against under SMPI.
 * fft N REPEATS BUTTERFLY: the last in seconds a step. The all-to-all is by pairs, whatever the library prefers. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void compute(double seconds) {
    const struct timespec pause = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&pause, NULL);
}

static void all_to_all(const char *from, char *to, int bytes, int rank, int size) {
    for (int step = 1; step < size; step++) {
        const int target = (rank + step) % size, source = (rank + size - step) % size;
        MPI_Sendrecv(from + (size_t)target * (size_t)bytes, bytes, MPI_BYTE, target, 0, to + (size_t)source * (size_t)bytes,
                     bytes, MPI_BYTE, source, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 4) {
        if (rank == 0)
            fprintf(stderr, "usage: fft N REPEATS BUTTERFLY\n");
        MPI_Finalize();
        return 2;
    }
    const int n = atoi(argv[1]), repeats = atoi(argv[2]);
    const double rows = (double)n / size, rows_s = atof(argv[3]) * rows * n * log2(n);
    const int bytes = (int)lround(16.0 * rows * rows);
    char *const values = calloc(2 * (size_t)size, (size_t)bytes), *const arrived = values + (size_t)size * (size_t)bytes;
    for (int i = 0; i < 2 * repeats; i++) {
        compute(rows_s);
        all_to_all(values, arrived, bytes, rank, size);
    }
    free(values);
    MPI_Finalize();
    return 0;
}
