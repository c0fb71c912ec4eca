
#include <math.h>
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
    int rank, found = 0, value = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime(), sum = 0;
    if (rank == 0) {
        while (!found)
            MPI_Iprobe(1, 5, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
        MPI_Recv(&value, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        for (int i = 0; i < 400000; i++)
            sum += sin(i);
        MPI_Send(&value, 1, MPI_INT, 0, 5, MPI_COMM_WORLD);
    }
    double mine = MPI_Wtime() - start;
    printf("rank %d: %.9f s, %g\n", rank, mine, sum);
    MPI_Finalize();
    return 0;
}
