#include "probe_mpi.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probe_common.h"

static void leave(void) {
    MPI_Finalize();
}

static void abort_all(int code) {
    MPI_Abort(MPI_COMM_WORLD, code);
}

void lep_mpi_start(const char *name, int *argc, char ***argv, int *ranks) {
    MPI_Init(argc, argv);
    lep_self = (lep_process){name, 0, leave, abort_all};
    MPI_Comm_rank(MPI_COMM_WORLD, &lep_self.rank);
    MPI_Comm_size(MPI_COMM_WORLD, ranks);
}

void lep_mpi_meet(MPI_Comm comm) {
    char mine = 0, theirs = 0;
    int other = 1 - lep_self.rank;
    MPI_Sendrecv(&mine, 1, MPI_CHAR, other, 7, &theirs, 1, MPI_CHAR, other, 7, comm, MPI_STATUS_IGNORE);
    MPI_Barrier(comm);
}

const char *lep_mpi_library(void) {
    static char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    MPI_Get_library_version(text, &length);
    return text;
}

char *lep_mpi_path(const char *path) {
    size_t room = strlen(path) + 16;
    char *own = lep_allocate(room, "a name");
    snprintf(own, room, "%s.r%d", path, lep_self.rank);
    return own;
}
