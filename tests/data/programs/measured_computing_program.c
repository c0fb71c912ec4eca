
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Of the thread in which all ranks compute; the clock of clock_gettime() is that of the simulation. */
static double cpu_s(void) {
    struct timespec now;
    syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec + 1e-9 * now.tv_nsec;
}

int main(int argc, char** argv) {
    int rank, ranks, no = 0, yes = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const char* call = argv[1];
    MPI_Comm made, sub;
    MPI_Group all;
    MPI_Win window;
    double begun = cpu_s(), start = MPI_Wtime(), sum = 0, summed;
    if (strcmp(call, "Comm_dup") == 0)
        MPI_Comm_dup(MPI_COMM_WORLD, &made);
    else if (strcmp(call, "Comm_dup_with_info") == 0)
        MPI_Comm_dup_with_info(MPI_COMM_WORLD, MPI_INFO_NULL, &made);
    else if (strcmp(call, "Comm_split") == 0)
        MPI_Comm_split(MPI_COMM_WORLD, 0, rank, &made);
    else if (strcmp(call, "Comm_create") == 0) {
        MPI_Comm_group(MPI_COMM_WORLD, &all);
        MPI_Comm_create(MPI_COMM_WORLD, all, &made);
    } else if (strcmp(call, "Cart_create") == 0)
        MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &no, 0, &made);
    else if (strcmp(call, "Cart_sub") == 0) {
        MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &no, 0, &made);
        MPI_Cart_sub(made, &yes, &sub);
    } else if (strcmp(call, "Win_create") == 0)
        MPI_Win_create(&start, sizeof start, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    else if (strcmp(call, "Allreduce") == 0)
        MPI_Allreduce(&start, &summed, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    else
        return 3;
    double between = cpu_s();
    for (int i = 0; i < 400000; i++)
        sum += sin(i);
    double ended = cpu_s(), mine = MPI_Wtime() - start;
    printf("%.9f %.9f %.9f %.9f %g\n", mine, begun, between, ended, sum);
    MPI_Finalize();
    return 0;
}
