/* The messages of cg.py as an MPI program, computing replaced by sleep: what the model is held against under SMPI.
 * cg PX PY PZ N ITERATIONS SPMV AXPY: the last two in seconds a point. It prints the time of its iterations. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void compute(double seconds) {
    const struct timespec pause = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&pause, NULL);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc != 8) {
        if (rank == 0)
            fprintf(stderr, "usage: cg PX PY PZ N ITERATIONS SPMV AXPY\n");
        MPI_Finalize();
        return 2;
    }
    const int px = atoi(argv[1]), py = atoi(argv[2]), pz = atoi(argv[3]), n = atoi(argv[4]), iterations = atoi(argv[5]);
    const double points = (double)n * n * n, spmv_s = atof(argv[6]) * points, axpy_s = atof(argv[7]) * points;
    const int x = rank / (py * pz), y = rank / pz % py, z = rank % pz;
    int to[26], count[26], neighbours = 0;
    size_t total = 0;
    for (int i = -1; i <= 1; i++) {
        for (int j = -1; j <= 1; j++) {
            for (int k = -1; k <= 1; k++) {
                const int order = abs(i) + abs(j) + abs(k), a = x + i, b = y + j, c = z + k;
                if (order == 0 || a < 0 || a >= px || b < 0 || b >= py || c < 0 || c >= pz) {
                    continue;
                }
                to[neighbours] = (a * py + b) * pz + c;
                count[neighbours] = order == 1 ? n * n : order == 2 ? n : 1;
                total += (size_t)count[neighbours++];
            }
        }
    }
    double *const values = calloc(2 * total + 1, sizeof *values), *const arrived = values + total;
    MPI_Request requests[52];
    double one = 1.0, sum = 0.0;
    MPI_Barrier(MPI_COMM_WORLD);
    const double start_s = MPI_Wtime();
    for (int iteration = 0; iteration < iterations; iteration++) {
        size_t at = 0;
        for (int i = 0; i < neighbours; at += (size_t)count[i++]) {
            MPI_Irecv(arrived + at, count[i], MPI_DOUBLE, to[i], 0, MPI_COMM_WORLD, &requests[i]);
        }
        at = 0;
        for (int i = 0; i < neighbours; at += (size_t)count[i++]) {
            MPI_Isend(values + at, count[i], MPI_DOUBLE, to[i], 0, MPI_COMM_WORLD, &requests[neighbours + i]);
        }
        MPI_Waitall(2 * neighbours, requests, MPI_STATUSES_IGNORE);
        compute(spmv_s);
        MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        compute(3.0 * axpy_s);
        MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    if (rank == 0) {
        printf("time: %.6f s\n", MPI_Wtime() - start_s);
    }
    free(values);
    MPI_Finalize();
    return 0;
}
