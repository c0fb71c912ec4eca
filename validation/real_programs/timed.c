/* Loaded before a program of MPI (LD_PRELOAD): prints how long its slowest rank took from the end of MPI_Init, after
 * which all wait for each other, to MPI_Finalize. That is what a recording spans. */
#include <mpi.h>
#include <stdio.h>

static double begun_s = -1.0;

static void begin(void) {
    if (begun_s >= 0.0)
        return;
    PMPI_Barrier(MPI_COMM_WORLD);
    begun_s = PMPI_Wtime();
}

static void end(void) {
    double took_s = PMPI_Wtime() - begun_s, slowest_s = 0.0;
    int rank = 0;
    if (begun_s < 0.0)
        return;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Reduce(&took_s, &slowest_s, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    begun_s = -1.0;
    if (rank == 0) {
        printf("\nfrom MPI_Init to MPI_Finalize: %.6f s\n", slowest_s);
        fflush(stdout);
    }
}

int MPI_Init(int *argc, char ***argv) {
    int result = PMPI_Init(argc, argv);
    begin();
    return result;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
    int result = PMPI_Init_thread(argc, argv, required, provided);
    begin();
    return result;
}

int MPI_Finalize(void) {
    end();
    return PMPI_Finalize();
}

/* From Fortran, whose routines pass by those of C. */
void pmpi_init_thread_(int *required, int *provided, int *result);

#define FORTRAN(ending)                                                                                                \
    void pmpi_init_##ending(int *result), pmpi_finalize_##ending(int *result);                                         \
    void mpi_init_##ending(int *result) {                                                                              \
        pmpi_init_##ending(result);                                                                                    \
        begin();                                                                                                       \
    }                                                                                                                  \
    void mpi_finalize_##ending(int *result) {                                                                          \
        end();                                                                                                         \
        pmpi_finalize_##ending(result);                                                                                \
    }
FORTRAN() FORTRAN(f08_)

void mpi_init_thread_(int *required, int *provided, int *result) {
    pmpi_init_thread_(required, provided, result);
    begin();
}
