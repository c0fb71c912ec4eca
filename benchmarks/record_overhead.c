/* Calls that do next to nothing, many times: what each takes longer under the recorder is the recorder's. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

void cblas_dscal(int n, double alpha, double* x, int incx);

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(int argc, char** argv) {
    enum { BATCHES = 40, CALLS = 5000 };
    MPI_Init(&argc, &argv);
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    double x = 1.0, y, least[4] = {1e9, 1e9, 1e9, 1e9};
    int flag;
    for (int batch = 0; batch < BATCHES; batch++) {
        double start_s = now_s();
        for (int i = 0; i < CALLS; i++)
            cblas_dscal(1, 1.0, &x, 1);
        double scaled_s = now_s();
        for (int i = 0; i < CALLS; i++)
            MPI_Iprobe(0, 5, comm, &flag, MPI_STATUS_IGNORE);
        double probed_s = now_s();
        for (int i = 0; i < CALLS; i++) {
            MPI_Request request;
            MPI_Irecv(&x, 1, MPI_DOUBLE, 0, 5, comm, &request);
            MPI_Send(&x, 1, MPI_DOUBLE, 0, 5, comm);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        double waited_s = now_s();
        for (int i = 0; i < CALLS; i++) {
            MPI_Request request;
            MPI_Isend(&x, 1, MPI_DOUBLE, 0, 6, comm, &request);
            MPI_Request_free(&request);
            MPI_Recv(&y, 1, MPI_DOUBLE, 0, 6, comm, MPI_STATUS_IGNORE);
        }
        double took[4] = {scaled_s - start_s, probed_s - scaled_s, waited_s - probed_s, now_s() - waited_s};
        if (batch == BATCHES / 2)
            least[3] = 1e9; /* of the second half alone: what was freed before must not cost */
        for (int i = 0; i < 4; i++)
            least[i] = took[i] < least[i] ? took[i] : least[i];
    }
    printf("{\"blas\": %.2f, \"probe\": %.2f, \"message\": %.2f, \"freed\": %.2f}\n", 1e9 * least[0] / CALLS,
           1e9 * least[1] / CALLS, 1e9 * least[2] / CALLS / 3, 1e9 * least[3] / CALLS / 3);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return 0;
}
