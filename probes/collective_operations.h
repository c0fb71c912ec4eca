/* Operations that probe-collectives measures: their buffers, their calls, and whether their result is right.
 *
 * size_bytes is what one rank gives to one other (Scatter, Gather, Allgather, Alltoall, Reduce_scatter, Neighbor_...: a
 * block of it for each rank), or the whole vector (Bcast, Reduce, Allreduce, Scan, Exscan). The v- and w-variants get
 * blocks of the same size. Reductions take whole counts of their datatype. Neighbours are those of a periodic ring. */
#ifndef LEPAUTE_COLLECTIVE_OPERATIONS_H
#define LEPAUTE_COLLECTIVE_OPERATIONS_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

#include "reductions.h"

enum { LEP_MOST_REQUESTS = 2 };

/* Pages that buffers lie on: as the system chooses, of the usual size alone, or huge ones where there are any. */
typedef enum { LEP_PAGES_DEFAULT, LEP_PAGES_SMALL, LEP_PAGES_HUGE } lep_pages;

typedef struct {
    MPI_Comm comm, ring;
    int rank, ranks, root;
    lep_pages pages; /* of the buffers */
    lep_reduction reduction;
    int size_bytes;
    unsigned char *send, *receive; /* room for a block of each rank, two at least, each */
    const void *give;              /* what a call gets for these: they, or MPI_IN_PLACE */
    void *take;
    int count;            /* of elements of a reduction */
    int *counts, *places; /* of the v- and w-variants: of each rank */
    MPI_Datatype *types;
    MPI_Win window; /* MPI_WIN_NULL without one-sided operations */
    unsigned char *memory;
} lep_collective;

/* What MPI_IN_PLACE stands for, and on which ranks: the whole of what is given, this rank's block of it, or what the
 * root takes. */
typedef enum { LEP_NEVER, LEP_WHOLE, LEP_WHOLE_AT_ROOT, LEP_BLOCK, LEP_BLOCK_AT_ROOT, LEP_TAKEN_AT_ROOT } lep_in_place;

typedef struct {
    const char *name;
    bool reduces;
    void (*call)(lep_collective *with);
    /* The same, not waited for: writes up to LEP_MOST_REQUESTS requests, returns how many; NULL where it is not
     * measured so. */
    int (*start)(lep_collective *with, MPI_Request *requests);
    /* The same as persistent requests, not started; NULL where the library has none. */
    int (*init)(lep_collective *with, MPI_Request *requests);
    lep_in_place in_place;
    /* Of one-sided operations: fills the memory of the window. */
    void (*prepare)(lep_collective *with);
    /* Whether what this rank received is what the operation must give, for the content of lep_collective_fill. */
    bool (*right)(const lep_collective *with);
} lep_collective_operation;

extern const lep_collective_operation lep_collective_operations[];
extern const int lep_collective_operation_count;

/* Allocates buffers for blocks of so many bytes, and the ring; comm, rank, ranks and pages are given. */
void lep_collective_open(lep_collective *with, int most_bytes);
/* Sets size, count and the layout of the v-variants. */
void lep_collective_size(lep_collective *with, const lep_collective_operation *operation, int size_bytes);
/* The content that `right` expects; clears what is received. */
void lep_collective_fill(lep_collective *with, const lep_collective_operation *operation, bool in_place);
/* Whether a block is the one that rank `from` gives to rank `to`: at some address, and at a place of what was received.
 */
bool lep_collective_bytes_are(const lep_collective *with, const unsigned char *block, int from, int to);
bool lep_collective_block_is(const lep_collective *with, int place, int from, int to);

#endif
