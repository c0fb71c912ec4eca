/* An integral over a cube by random points, in batches until it is known well enough: computing without memory. */
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>

int main(int argc, char **argv) {
    enum { BATCHES = 100, POINTS = 200000 };
    double sums[2] = {0.0, 0.0}, all[2];
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    uint64_t state = 88172645463325252ULL + (uint64_t)rank;
    for (int batch = 0; batch < BATCHES; batch++) {
        for (int i = 0; i < POINTS; i++) {
            double value = 1.0;
            for (int axis = 0; axis < 3; axis++) {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                value *= (double)(state >> 11) / 9007199254740992.0;
            }
            value = sqrt(value);
            sums[0] += value;
            sums[1] += value * value;
        }
        MPI_Reduce(sums, all, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    }
    if (rank == 0)
        printf("sums: %g, %g\n", all[0], all[1]);
    MPI_Finalize();
    return 0;
}
