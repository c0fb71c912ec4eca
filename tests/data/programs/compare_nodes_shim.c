
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
static int rank_of(void) {{
    static const char *const names[] = {{"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"}};
    for (int i = 0; i < 4; i++)
        if (getenv(names[i]))
            return atoi(getenv(names[i]));
    return 0;
}}
static int rank;
static long long begun_ns;
/* Before there are threads: MPI_Init changes the environment while others of its threads ask for the time. */
__attribute__((constructor)) static void begin(void) {{
    struct timespec now;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    begun_ns = now.tv_sec * 1000000000LL + now.tv_nsec;
    rank = rank_of();
}}
int clock_gettime(clockid_t which, struct timespec *now) {{
    long result = syscall(SYS_clock_gettime, which, now);
    if (which != CLOCK_MONOTONIC)
        return (int)result;
    long long real_ns = now->tv_sec * 1000000000LL + now->tv_nsec;
    long long made_ns = real_ns + rank * 3000000000LL + (long long)(rank * 2e-5 * (double)(real_ns - begun_ns));
    now->tv_sec = made_ns / 1000000000LL;
    now->tv_nsec = made_ns % 1000000000LL;
    return (int)result;
}}
int MPI_Scatter(const void *from, int sent, MPI_Datatype of, void *to, int got, MPI_Datatype type, int root,
                MPI_Comm all) {{
    int rank, ranks, result = PMPI_Scatter(from, sent, of, to, got, type, root, all);
    MPI_Comm_rank(all, &rank);
    MPI_Comm_size(all, &ranks);
    if (rank == ranks - 1)
        usleep({slow_us});
    return result;
}}
