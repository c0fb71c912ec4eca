/* xhpl-lepaute: HPL with a main of our own, which says how long each rank really worked.
 *
 * Linked with -Wl,--wrap=HPL_pdgesv, so that every call of the solver passes through the wrapper below, in the place
 * where HPL's own timer runs. One JSON line a call of the solver goes to standard output. CPU time and context
 * switches tell a disturbed run from a slow one: on a quiet machine wall_s and cpu_s agree. HPL's own report goes to
 * HPL.out, and its input is hpccinf.txt, as of the HPL inside HPCC that this is, or HPL.dat where there is none. */
#include <hpcc.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

/* NOLINTBEGIN(readability-identifier-naming): the linker's names */
void __real_HPL_pdgesv(HPL_T_grid *grid, HPL_T_palg *algorithm, HPL_T_pmat *matrix);
void __wrap_HPL_pdgesv(HPL_T_grid *grid, HPL_T_palg *algorithm, HPL_T_pmat *matrix);
FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
/* NOLINTEND(readability-identifier-naming) */

enum { WALL, CPU, VOLUNTARY, INVOLUNTARY, CORE, RANK, FIELDS };

FILE *__wrap_fopen(const char *path, const char *mode) {
    if (strcmp(path, "hpccoutf.txt") == 0)
        return __real_fopen("HPL.out", mode); /* appends, as HPCC does: what stands there stays */
    FILE *file = __real_fopen(path, mode);
    return file || strcmp(path, "hpccinf.txt") != 0 ? file : __real_fopen("HPL.dat", mode);
}

static double wall_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double seconds(struct timeval value) {
    return (double)value.tv_sec + 1e-6 * (double)value.tv_usec;
}

static void read_counters(double *fields) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    fields[CPU] = seconds(usage.ru_utime) + seconds(usage.ru_stime);
    fields[VOLUNTARY] = (double)usage.ru_nvcsw;
    fields[INVOLUNTARY] = (double)usage.ru_nivcsw;
    fields[WALL] = wall_s();
}

static void print_run(const HPL_T_grid *grid, const HPL_T_palg *algorithm, const HPL_T_pmat *matrix,
                      const double *ranks) {
    double time_s = 0.0, n = (double)matrix->n;
    for (int i = 0; i < grid->nprocs; i++)
        if (ranks[i * FIELDS + WALL] > time_s)
            time_s = ranks[i * FIELDS + WALL];
    double flop = n * n * (2.0 / 3.0 * n + 3.0 / 2.0); /* HPL's count, with the solve */
    printf("{\"n\": %d, \"nb\": %d, \"p\": %d, \"q\": %d, \"depth\": %d, \"nbmin\": %d, \"ndiv\": %d, "
           "\"time_s\": %.9f, \"gflops\": %.9g, \"ranks\": [",
           matrix->n, matrix->nb, grid->nprow, grid->npcol, algorithm->depth, algorithm->nbmin, algorithm->nbdiv,
           time_s, 1e-9 * flop / time_s);
    for (int i = 0; i < grid->nprocs; i++) {
        const double *fields = ranks + (size_t)i * FIELDS;
        printf("%s{\"rank\": %d, \"cpu\": %d, \"wall_s\": %.9f, \"cpu_s\": %.6f, \"voluntary_switches\": %ld, "
               "\"involuntary_switches\": %ld}",
               i ? ", " : "", (int)fields[RANK], (int)fields[CORE], fields[WALL], fields[CPU], (long)fields[VOLUNTARY],
               (long)fields[INVOLUNTARY]);
    }
    printf("]}\n");
    fflush(stdout);
}

void __wrap_HPL_pdgesv(HPL_T_grid *grid, HPL_T_palg *algorithm, HPL_T_pmat *matrix) {
    double before[FIELDS], fields[FIELDS];
    read_counters(before);
    __real_HPL_pdgesv(grid, algorithm, matrix);
    fields[WALL] = wall_s(); /* first: the rest is not HPL's time */
    fields[WALL] -= before[WALL];
    double after[FIELDS];
    read_counters(after);
    for (int i = CPU; i <= INVOLUNTARY; i++)
        fields[i] = after[i] - before[i];
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    fields[RANK] = rank;
    fields[CORE] = sched_getcpu();

    double *ranks = malloc((size_t)grid->nprocs * sizeof fields);
    if (!ranks) {
        MPI_Abort(MPI_COMM_WORLD, 2);
        return;
    }
    MPI_Gather(fields, FIELDS, MPI_DOUBLE, ranks, FIELDS, MPI_DOUBLE, 0, grid->all_comm);
    if (grid->iam == 0)
        print_run(grid, algorithm, matrix, ranks);
    free(ranks);
}

int main(int argc, char **argv) {
    HPL_RuntimeData best; /* the fastest of the runs, which HPL_main wants to keep; our lines hold them all */
    int failure = 0, rank;
    memset(&best, 0, sizeof best);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    HPL_main(argc, argv, &best, &failure);
    MPI_Bcast(&failure, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (failure && rank == 0)
        fprintf(stderr, "xhpl-lepaute: a run was skipped, or its residual is above HPL's threshold\n");
    MPI_Finalize();
    return failure ? 1 : 0;
}
