/* Collective operations that probe-collectives measures: their buffers, their call, and whether their result is right.
 *
 * size_bytes is what one rank gives to one other (Scatter, Gather, Allgather, Alltoall, Reduce_scatter_block: a block
 * of it for each rank), or the whole vector (Bcast, Reduce, Allreduce, Scan, Exscan). The v-variants get blocks of the
 * same size. Reductions add doubles where the size is a multiple of 8, else they combine bytes by exclusive or. Rank 0
 * is the root. */
#ifndef LEPAUTE_COLLECTIVE_OPERATIONS_H
#define LEPAUTE_COLLECTIVE_OPERATIONS_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

enum { LEP_MOST_REQUESTS = 2 };

typedef struct {
    MPI_Comm comm;
    int rank, ranks;
    int size_bytes;
    unsigned char *send, *receive; /* room for ranks * size_bytes, each */
    int count;                     /* of reductions */
    MPI_Datatype type;
    MPI_Op op;
    int *counts, *places; /* of the v-variants: of each rank */
} lep_collective;

typedef struct {
    const char *name;
    bool reduces;
    void (*call)(lep_collective *with);
    /* The same, not waited for: writes up to LEP_MOST_REQUESTS requests, returns how many; NULL where it is not
     * measured so. */
    int (*start)(lep_collective *with, MPI_Request *requests);
    /* Whether what this rank received is what the operation must give, for the content of lep_collective_fill. */
    bool (*right)(const lep_collective *with);
} lep_collective_operation;

extern const lep_collective_operation lep_collective_operations[];
extern const int lep_collective_operation_count;

/* Sets size, type and the layout of the v-variants. */
void lep_collective_size(lep_collective *with, const lep_collective_operation *operation, int size_bytes);
/* The content that `right` expects; clears what is received. */
void lep_collective_fill(lep_collective *with, const lep_collective_operation *operation);
/* Whether block `place` of what was received is the one that rank `from` gives to rank `to`. */
bool lep_collective_block_is(const lep_collective *with, int place, int from, int to);

#endif
