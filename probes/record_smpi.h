/* The entries that the recorder's wrappers go on to under SMPI: SMPI's own MPI_ ones, since only those heed the error
 * handler of a communicator. */
#ifndef LEPAUTE_RECORD_SMPI_H
#define LEPAUTE_RECORD_SMPI_H

#include <mpi.h>
#include <stdbool.h>

// clang-format off
#define LEP_WRAPPED(X)                                                                                                 \
    X(MPI_Send) X(MPI_Ssend) X(MPI_Bsend) X(MPI_Rsend) X(MPI_Isend) X(MPI_Issend) X(MPI_Ibsend) X(MPI_Irsend)          \
    X(MPI_Recv) X(MPI_Irecv) X(MPI_Sendrecv) X(MPI_Wait) X(MPI_Waitall) X(MPI_Waitany) X(MPI_Waitsome) X(MPI_Test)     \
    X(MPI_Testall) X(MPI_Testany) X(MPI_Testsome) X(MPI_Probe) X(MPI_Barrier) X(MPI_Bcast) X(MPI_Reduce)               \
    X(MPI_Allreduce) X(MPI_Scan) X(MPI_Exscan) X(MPI_Reduce_scatter_block) X(MPI_Reduce_scatter) X(MPI_Gather)         \
    X(MPI_Gatherv) X(MPI_Allgather) X(MPI_Allgatherv) X(MPI_Scatter) X(MPI_Scatterv) X(MPI_Alltoall) X(MPI_Alltoallv)  \
    X(MPI_Comm_split) X(MPI_Comm_dup) X(MPI_Comm_create) X(MPI_Comm_free) X(MPI_Comm_disconnect) X(MPI_Recv_init)      \
    X(MPI_Start) X(MPI_Sendrecv_replace) X(MPI_Request_free) X(MPI_Cancel) X(MPI_Comm_split_type)                      \
    X(MPI_Comm_dup_with_info) X(MPI_Cart_create) X(MPI_Cart_sub) X(MPI_Graph_create) X(MPI_Intercomm_create)           \
    X(MPI_Intercomm_merge) X(MPI_Ibarrier) X(MPI_Ibcast) X(MPI_Ireduce) X(MPI_Iallreduce) X(MPI_Iscan) X(MPI_Iexscan)      \
    X(MPI_Ireduce_scatter_block) X(MPI_Ireduce_scatter) X(MPI_Igather) X(MPI_Igatherv) X(MPI_Iallgather)               \
    X(MPI_Iallgatherv) X(MPI_Iscatter) X(MPI_Iscatterv) X(MPI_Ialltoall) X(MPI_Ialltoallv)
// clang-format on

#define LEP_DECLARE(name) extern __typeof__(name) *lep_next_##name;
LEP_WRAPPED(LEP_DECLARE)

/* Whether a return address lies in simblas. */
bool lep_called_by_simblas(const void *place);

#endif
