/* The messages of workers.py as an MPI program, computing replaced by sleep: what the model is held against under SMPI.
 * workers TASKS TASK_BYTES RESULT_BYTES UNIT: the last in seconds; a task has at least four bytes. */
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
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 5) {
        if (rank == 0)
            fprintf(stderr, "usage: workers TASKS TASK_BYTES RESULT_BYTES UNIT\n");
        MPI_Finalize();
        return 2;
    }
    const int tasks = atoi(argv[1]), task_bytes = atoi(argv[2]), result_bytes = atoi(argv[3]);
    const double unit_s = atof(argv[4]);
    int *const task = calloc(1, (size_t)task_bytes), count;
    char *const result = calloc(1, (size_t)result_bytes + 1);
    MPI_Status status;
    if (rank == 0) {
        for (int next = 0; next < tasks; next++) {
            int worker = next + 1;
            if (worker >= size) {
                MPI_Recv(result, result_bytes, MPI_BYTE, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &status);
                worker = status.MPI_SOURCE;
            }
            *task = next;
            MPI_Send(task, task_bytes, MPI_BYTE, worker, 0, MPI_COMM_WORLD);
        }
        for (int i = 0; i < tasks && i < size - 1; i++) {
            MPI_Recv(result, result_bytes, MPI_BYTE, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &status);
        }
        for (int worker = 1; worker < size; worker++) {
            MPI_Send(task, 0, MPI_BYTE, worker, 0, MPI_COMM_WORLD);
        }
    } else {
        for (;;) {
            MPI_Recv(task, task_bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &status);
            MPI_Get_count(&status, MPI_BYTE, &count);
            if (count == 0) {
                break;
            }
            compute(unit_s * (1 + *task * 5 % 7));
            MPI_Send(result, result_bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
        }
    }
    free(task);
    free(result);
    MPI_Finalize();
    return 0;
}
