/* The function that HPL_pdinfo falls back to when its input file is missing or wrong. HPCC's version makes up a small
 * problem of its own; a run of something else than what was asked for must not pass for a result, so ours stops.
 * In a file of its own, without hpcc.h, since it needs none of its thirty arguments. */
#include <mpi.h>
#include <stdio.h>

int HPCC_Defaults(void);

int HPCC_Defaults(void) {
    fprintf(stderr, "xhpl-lepaute: the working folder has neither an HPL.dat nor an hpccinf.txt that HPL reads\n");
    fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 2);
    return 1;
}
