/* Collective operations of MPI. The size of a row is the bytes that this rank gives, or gets from the root. */
#include "record_calls.h"
#include "record_requests.h"

static message collective(int root, MPI_Comm comm, int64_t bytes) {
    return (message){root < 0 ? -1 : lep_world_rank(comm, root), lep_world_communicator(comm), bytes, 0};
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

/* A nonblocking one, until its wait: that is of nobody's message. */
static void begun(MPI_Request request, message what, int64_t start_ns) {
    what.peer = -1;
    what.tag = -1;
    lep_request_keep(request, &(lep_request){.what = what, .start_ns = lep_recording ? start_ns : 0});
}

// clang-format off
#define PARTS(...) __VA_ARGS__
#define COLLECTIVE(form, nonblocking, parameters, arguments, what)                                                     \
    LEP_EXPORT int MPI_##form(PARTS parameters) RECORDED("MPI_" #form, MPI_##form(PARTS arguments), what, )            \
    LEP_EXPORT int MPI_##nonblocking(PARTS parameters, MPI_Request *request)                                           \
        RECORDED("MPI_" #nonblocking, MPI_##nonblocking(PARTS arguments, request), what, begun(*request, what, start_ns))

COLLECTIVE(Barrier, Ibarrier, (MPI_Comm comm), (comm), collective(NO_ROOT, comm, 0))
COLLECTIVE(Bcast, Ibcast, (void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm),
           (buffer, count, type, root, comm), collective(root, comm, bytes_of(count, type)))
COLLECTIVE(Reduce, Ireduce,
           (const void *out, void *in, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm),
           (out, in, count, type, op, root, comm), collective(root, comm, bytes_of(count, type)))
#define REDUCTION(form, nonblocking)                                                                                   \
    COLLECTIVE(form, nonblocking, (const void *out, void *in, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm), \
               (out, in, count, type, op, comm), collective(NO_ROOT, comm, bytes_of(count, type)))
REDUCTION(Allreduce, Iallreduce)
REDUCTION(Scan, Iscan)
REDUCTION(Exscan, Iexscan)
REDUCTION(Reduce_scatter_block, Ireduce_scatter_block)
COLLECTIVE(Reduce_scatter, Ireduce_scatter,
           (const void *out, void *in, const int counts[], MPI_Datatype type, MPI_Op op, MPI_Comm comm),
           (out, in, counts, type, op, comm), collective(NO_ROOT, comm, bytes_of(sum_of(counts, comm), type)))
COLLECTIVE(Allgather, Iallgather,
           (const void *out, int out_count, MPI_Datatype out_type, void *in, int in_count, MPI_Datatype in_type,
            MPI_Comm comm),
           (out, out_count, out_type, in, in_count, in_type, comm),
           collective(NO_ROOT, comm, given(out, out_count, out_type, in_count, in_type)))
COLLECTIVE(Allgatherv, Iallgatherv,
           (const void *out, int out_count, MPI_Datatype out_type, void *in, const int in_counts[], const int at[],
            MPI_Datatype in_type, MPI_Comm comm),
           (out, out_count, out_type, in, in_counts, at, in_type, comm),
           collective(NO_ROOT, comm, given(out, out_count, out_type, 0, in_type)))
COLLECTIVE(Gather, Igather,
           (const void *out, int out_count, MPI_Datatype out_type, void *in, int in_count, MPI_Datatype in_type,
            int root, MPI_Comm comm),
           (out, out_count, out_type, in, in_count, in_type, root, comm),
           collective(root, comm, given(out, out_count, out_type, in_count, in_type)))
COLLECTIVE(Gatherv, Igatherv,
           (const void *out, int out_count, MPI_Datatype out_type, void *in, const int in_counts[], const int at[],
            MPI_Datatype in_type, int root, MPI_Comm comm),
           (out, out_count, out_type, in, in_counts, at, in_type, root, comm),
           collective(root, comm, given(out, out_count, out_type, 0, in_type)))
COLLECTIVE(Scatter, Iscatter,
           (const void *out, int out_count, MPI_Datatype out_type, void *in, int in_count, MPI_Datatype in_type,
            int root, MPI_Comm comm),
           (out, out_count, out_type, in, in_count, in_type, root, comm),
           collective(root, comm, given(in, in_count, in_type, out_count, out_type)))
COLLECTIVE(Scatterv, Iscatterv,
           (const void *out, const int out_counts[], const int at[], MPI_Datatype out_type, void *in, int in_count,
            MPI_Datatype in_type, int root, MPI_Comm comm),
           (out, out_counts, at, out_type, in, in_count, in_type, root, comm),
           collective(root, comm, given(in, in_count, in_type, 0, out_type)))
COLLECTIVE(Alltoall, Ialltoall,
           (const void *out, int out_count, MPI_Datatype out_type, void *in, int in_count, MPI_Datatype in_type,
            MPI_Comm comm),
           (out, out_count, out_type, in, in_count, in_type, comm),
           collective(NO_ROOT, comm, members(comm) * given(out, out_count, out_type, in_count, in_type)))
COLLECTIVE(Alltoallv, Ialltoallv,
           (const void *out, const int out_counts[], const int out_at[], MPI_Datatype out_type, void *in,
            const int in_counts[], const int in_at[], MPI_Datatype in_type, MPI_Comm comm),
           (out, out_counts, out_at, out_type, in, in_counts, in_at, in_type, comm),
           collective(NO_ROOT, comm,
                      out == MPI_IN_PLACE ? bytes_of(sum_of(in_counts, comm), in_type)
                                          : bytes_of(sum_of(out_counts, comm), out_type)))

#ifndef LEP_RECORD_SMPI /* which has none */
static int64_t each_bytes(const int *counts, const MPI_Datatype *types, MPI_Comm comm) {
    int64_t sum = 0;
    for (int i = members(comm) - 1; counts && i >= 0; i--)
        sum += bytes_of(counts[i], types[i]);
    return sum;
}

COLLECTIVE(Alltoallw, Ialltoallw,
           (const void *out, const int out_counts[], const int out_at[], const MPI_Datatype out_types[], void *in,
            const int in_counts[], const int in_at[], const MPI_Datatype in_types[], MPI_Comm comm),
           (out, out_counts, out_at, out_types, in, in_counts, in_at, in_types, comm),
           collective(NO_ROOT, comm,
                      out == MPI_IN_PLACE ? each_bytes(in_counts, in_types, comm)
                                          : each_bytes(out_counts, out_types, comm)))
#endif

#define COMM_MADE(form, parameters, arguments)                                                                         \
    LEP_EXPORT int MPI_##form parameters                                                                               \
        RECORDED("MPI_" #form, MPI_##form arguments, collective(NO_ROOT, comm, 0),                                   \
                 lep_world_made(comm, result == MPI_SUCCESS ? *made : MPI_COMM_NULL))
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
#ifndef LEP_RECORD_SMPI
COMM_MADE(Dist_graph_create,
          (MPI_Comm comm, int nodes, const int from[], const int counts[], const int to[], const int weights[],
           MPI_Info info, int reorder, MPI_Comm *made),
          (comm, nodes, from, counts, to, weights, info, reorder, made))
COMM_MADE(Dist_graph_create_adjacent,
          (MPI_Comm comm, int in, const int from[], const int from_weights[], int out, const int to[],
           const int to_weights[], MPI_Info info, int reorder, MPI_Comm *made),
          (comm, in, from, from_weights, out, to, to_weights, info, reorder, made))
/* Called by its members alone, and theirs is the number: of who they are. */
LEP_EXPORT int MPI_Comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *made)
    RECORDED("MPI_Comm_create_group", MPI_Comm_create_group(comm, group, tag, made),
             *made == MPI_COMM_NULL ? NONE : collective(NO_ROOT, *made, 0), )
#endif
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
