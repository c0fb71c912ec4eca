/* Collective operations of MPI. The size of a row is the bytes that this rank gives, or gets from the root. */
#include "record_calls.h"

static message collective(int root, MPI_Comm comm, int64_t bytes) {
    return (message){root < 0 ? -1 : lep_world_rank(comm, root), lep_world_group(comm), bytes};
}

static int members(MPI_Comm comm) {
    int size = 0;
    PMPI_Comm_size(comm, &size);
    return size;
}

static int64_t sum_of(const int *counts, MPI_Comm comm) {
    int64_t sum = 0;
    for (int i = members(comm) - 1; counts && i >= 0; i--)
        sum += counts[i];
    return sum;
}

/* With MPI_IN_PLACE the arguments of that side mean nothing. */
static int64_t given(const void *buffer, int64_t items, MPI_Datatype type, int64_t instead, MPI_Datatype instead_type) {
    return buffer == MPI_IN_PLACE ? bytes_of(instead, instead_type) : bytes_of(items, type);
}

enum { NO_ROOT = -1 };

LEP_EXPORT int MPI_Barrier(MPI_Comm comm) RECORDED("MPI_Barrier", MPI_Barrier(comm), collective(NO_ROOT, comm, 0), )

    LEP_EXPORT int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
        RECORDED("MPI_Bcast", MPI_Bcast(buffer, count, type, root, comm),
                 collective(root, comm, bytes_of(count, type)), )

            LEP_EXPORT
    int MPI_Reduce(const void *out, void *in, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm)
        RECORDED("MPI_Reduce", MPI_Reduce(out, in, count, type, op, root, comm),
                 collective(root, comm, bytes_of(count, type)), )

#define REDUCTION(form)                                                                                                \
    LEP_EXPORT int MPI_##form(const void *out, void *in, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)       \
        RECORDED("MPI_" #form, MPI_##form(out, in, count, type, op, comm),                                             \
                 collective(NO_ROOT, comm, bytes_of(count, type)), )
            REDUCTION(Allreduce) REDUCTION(Scan) REDUCTION(Exscan) REDUCTION(Reduce_scatter_block)

                LEP_EXPORT
    int MPI_Reduce_scatter(const void *out, void *in, const int counts[], MPI_Datatype type, MPI_Op op, MPI_Comm comm)
        RECORDED("MPI_Reduce_scatter", MPI_Reduce_scatter(out, in, counts, type, op, comm),
                 collective(NO_ROOT, comm, bytes_of(sum_of(counts, comm), type)), )

            LEP_EXPORT int MPI_Allgather(const void *out, int out_count, MPI_Datatype out_type, void *in, int in_count,
                                         MPI_Datatype in_type, MPI_Comm comm)
                RECORDED("MPI_Allgather", MPI_Allgather(out, out_count, out_type, in, in_count, in_type, comm),
                         collective(NO_ROOT, comm, given(out, out_count, out_type, in_count, in_type)), )

                    LEP_EXPORT
    int MPI_Allgatherv(const void *out, int out_count, MPI_Datatype out_type, void *in, const int in_counts[],
                       const int at[], MPI_Datatype in_type, MPI_Comm comm)
        RECORDED("MPI_Allgatherv", MPI_Allgatherv(out, out_count, out_type, in, in_counts, at, in_type, comm),
                 collective(NO_ROOT, comm, given(out, out_count, out_type, 0, in_type)), )

            LEP_EXPORT int MPI_Gather(const void *out, int out_count, MPI_Datatype out_type, void *in, int in_count,
                                      MPI_Datatype in_type, int root, MPI_Comm comm)
                RECORDED("MPI_Gather", MPI_Gather(out, out_count, out_type, in, in_count, in_type, root, comm),
                         collective(root, comm, given(out, out_count, out_type, in_count, in_type)), )

                    LEP_EXPORT
    int MPI_Gatherv(const void *out, int out_count, MPI_Datatype out_type, void *in, const int in_counts[],
                    const int at[], MPI_Datatype in_type, int root, MPI_Comm comm)
        RECORDED("MPI_Gatherv", MPI_Gatherv(out, out_count, out_type, in, in_counts, at, in_type, root, comm),
                 collective(root, comm, given(out, out_count, out_type, 0, in_type)), )

            LEP_EXPORT int MPI_Scatter(const void *out, int out_count, MPI_Datatype out_type, void *in, int in_count,
                                       MPI_Datatype in_type, int root, MPI_Comm comm)
                RECORDED("MPI_Scatter", MPI_Scatter(out, out_count, out_type, in, in_count, in_type, root, comm),
                         collective(root, comm, given(in, in_count, in_type, out_count, out_type)), )

                    LEP_EXPORT
    int MPI_Scatterv(const void *out, const int out_counts[], const int at[], MPI_Datatype out_type, void *in,
                     int in_count, MPI_Datatype in_type, int root, MPI_Comm comm)
        RECORDED("MPI_Scatterv", MPI_Scatterv(out, out_counts, at, out_type, in, in_count, in_type, root, comm),
                 collective(root, comm, given(in, in_count, in_type, 0, out_type)), )

            LEP_EXPORT
    int MPI_Alltoall(const void *out, int out_count, MPI_Datatype out_type, void *in, int in_count,
                     MPI_Datatype in_type, MPI_Comm comm)
        RECORDED("MPI_Alltoall", MPI_Alltoall(out, out_count, out_type, in, in_count, in_type, comm),
                 collective(NO_ROOT, comm, members(comm) * given(out, out_count, out_type, in_count, in_type)), )

            LEP_EXPORT
    int MPI_Alltoallv(const void *out, const int out_counts[], const int out_at[], MPI_Datatype out_type, void *in,
                      const int in_counts[], const int in_at[], MPI_Datatype in_type, MPI_Comm comm)
        RECORDED("MPI_Alltoallv", MPI_Alltoallv(out, out_counts, out_at, out_type, in, in_counts, in_at, in_type, comm),
                 collective(NO_ROOT, comm,
                            out == MPI_IN_PLACE ? bytes_of(sum_of(in_counts, comm), in_type)
                                                : bytes_of(sum_of(out_counts, comm), out_type)), )

/* ---- communicators: collective too ------------------------------------------------------------------------------- */

// clang-format off
#define COMM_MADE(form, parameters, arguments)                                                                         \
    LEP_EXPORT int MPI_##form parameters                                                                               \
        RECORDED("MPI_" #form, MPI_##form arguments, collective(NO_ROOT, comm, 0), )
COMM_MADE(Comm_split, (MPI_Comm comm, int colour, int key, MPI_Comm *made), (comm, colour, key, made))
COMM_MADE(Comm_split_type, (MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *made),
          (comm, type, key, info, made))
COMM_MADE(Comm_dup, (MPI_Comm comm, MPI_Comm *made), (comm, made))
COMM_MADE(Comm_dup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm *made), (comm, info, made))
COMM_MADE(Comm_create, (MPI_Comm comm, MPI_Group group, MPI_Comm *made), (comm, group, made))
COMM_MADE(Cart_create, (MPI_Comm comm, int count, const int sizes[], const int wraps[], int reorder, MPI_Comm *made),
          (comm, count, sizes, wraps, reorder, made))
COMM_MADE(Cart_sub, (MPI_Comm comm, const int kept[], MPI_Comm *made), (comm, kept, made))
COMM_MADE(Graph_create, (MPI_Comm comm, int nodes, const int index[], const int edges[], int reorder, MPI_Comm *made),
          (comm, nodes, index, edges, reorder, made))
COMM_MADE(Intercomm_create, (MPI_Comm comm, int leader, MPI_Comm peers, int remote, int tag, MPI_Comm *made),
          (comm, leader, peers, remote, tag, made))
COMM_MADE(Intercomm_merge, (MPI_Comm comm, int high, MPI_Comm *made), (comm, high, made))
    // clang-format on

    /* A handle that is free must not be taken for the older one. Forgotten before the call: after it, another thread
     * may be given the same handle. */
    LEP_EXPORT int MPI_Comm_free(MPI_Comm *comm) {
    lep_world_forget(*comm);
    RECORDED("MPI_Comm_free", MPI_Comm_free(comm), NONE, )
}

LEP_EXPORT int MPI_Comm_disconnect(MPI_Comm *comm) {
    lep_world_forget(*comm);
    RECORDED("MPI_Comm_disconnect", MPI_Comm_disconnect(comm), NONE, )
}
