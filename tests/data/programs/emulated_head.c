
#include <mpi.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
void dgemm_(const char *, const char *, const int *, const int *, const int *, const double *, const double *,
            const int *, const double *, const int *, const double *, double *, const int *);
static int rank, ranks;
static void dgemm(int m, int n, int k) {
    double one = 1, none[1] = {0};
    dgemm_("N", "T", &m, &n, &k, &one, none, &m, none, &n, &one, none, &m);
}
static void begin(int *argc, char ***argv) {
    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
}
