/* The part of the probes that needs MPI: start, end, and the file of a rank. */
#ifndef LEPAUTE_PROBE_MPI_H
#define LEPAUTE_PROBE_MPI_H

#include <mpi.h>

/* MPI_Init, and the error paths of probe_common bound to MPI. `ranks` receives the number of ranks. */
void lep_mpi_start(const char *name, int *argc, char ***argv, int *ranks);
/* Of two ranks: an exchange of one byte, then a barrier. */
void lep_mpi_meet(MPI_Comm comm);
const char *lep_mpi_library(void);
/* "F.r<rank>", allocated. */
char *lep_mpi_path(const char *path);

#endif
