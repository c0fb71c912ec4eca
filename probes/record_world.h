/* Ranks of any communicator as ranks of MPI_COMM_WORLD, and what is known of requests that are under way. */
#ifndef LEPAUTE_RECORD_WORLD_H
#define LEPAUTE_RECORD_WORLD_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

/* LEP_RECORD_PROC_NULL for MPI_PROC_NULL, -1 for MPI_ANY_SOURCE and MPI_ROOT. */
int lep_world_rank(MPI_Comm comm, int rank);
/* The same number on all ranks of the communicator: a hash of who they are, 0 for all ranks of MPI_COMM_WORLD, -1
 * between two groups. */
int lep_world_group(MPI_Comm comm);
/* Before the communicator's handle may mean another one. */
void lep_world_forget(MPI_Comm comm);

typedef struct {
    int peer;
    bool receive;
    int64_t tag, size_bytes;
    MPI_Comm comm;
    int64_t start_ns; /* of the call that began it */
} lep_request;

void lep_request_keep(MPI_Request request, const lep_request *what);
/* What was kept of a request, which is forgotten; peer and tag are -1 where nothing was. */
lep_request lep_request_take(MPI_Request request);

#endif
