/* Collective operations of neighbours: rows of a receive from each source and of a send to each destination, none with
 * a duration, then the row of the call, which waits for all of them. And calls of which only the name is kept, so that
 * a replay can refuse them: one-sided operations, by the creation of their windows, and what has no rows otherwise. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "record_calls.h"
#include "record_requests.h"

enum { TAG = INT32_MAX }; /* of messages that no program has named */

/* Who the neighbours are on one side; counts and types of each, or of all the first. */
typedef struct {
    int *ranks, count;
} neighbours;

typedef struct {
    const int *counts;
    const MPI_Datatype *types;
    bool own_count, own_type; /* of each neighbour */
} sizes;

static int64_t size_of(const sizes *these, int i) {
    return bytes_of(these->counts[these->own_count ? i : 0], these->types[these->own_type ? i : 0]);
}

static int *room(int count) {
    return lep_room(count > 0 ? (size_t)count : 1, sizeof(int));
}

static void of_grid(MPI_Comm comm, neighbours *from, neighbours *to) {
    int dimensions = 0;
    PMPI_Cartdim_get(comm, &dimensions);
    *from = (neighbours){room(2 * dimensions), 2 * dimensions};
    *to = (neighbours){room(2 * dimensions), 2 * dimensions};
    for (int i = 0; i < dimensions; i++) {
        int *two = from->ranks + (ptrdiff_t)2 * i;
        PMPI_Cart_shift(comm, i, 1, &two[0], &two[1]);
    }
    memcpy(to->ranks, from->ranks, (size_t)to->count * sizeof *to->ranks);
}

static void of_graph(MPI_Comm comm, neighbours *from, neighbours *to) {
    int rank = 0, count = 0;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Graph_neighbors_count(comm, rank, &count);
    *from = (neighbours){room(count), count};
    *to = (neighbours){room(count), count};
    PMPI_Graph_neighbors(comm, rank, count, from->ranks);
    PMPI_Graph_neighbors(comm, rank, count, to->ranks);
}

static void of_distributed_graph(MPI_Comm comm, neighbours *from, neighbours *to) {
    int in = 0, out = 0, weighted = 0;
    PMPI_Dist_graph_neighbors_count(comm, &in, &out, &weighted);
    *from = (neighbours){room(in), in};
    *to = (neighbours){room(out), out};
    int *weights[2] = {room(in), room(out)};
    PMPI_Dist_graph_neighbors(comm, in, from->ranks, weights[0], out, to->ranks, weights[1]);
    free(weights[0]);
    free(weights[1]);
}

static bool found(MPI_Comm comm, neighbours *from, neighbours *to) {
    int topology = MPI_UNDEFINED;
    PMPI_Topo_test(comm, &topology);
    if (topology == MPI_CART)
        of_grid(comm, from, to);
    else if (topology == MPI_GRAPH)
        of_graph(comm, from, to);
    else if (topology == MPI_DIST_GRAPH)
        of_distributed_graph(comm, from, to);
    else
        return false;
    return true;
}

/* The rows of one side, the first at *at_ns, each at a nanosecond of its own: what has ended is told by its start. */
static void write_side(int *code, const char *name, MPI_Comm comm, const neighbours *them, const sizes *these,
                       int64_t *at_ns) {
    for (int i = 0; i < them->count; i++, ++*at_ns)
        write_call(code, name, *at_ns, *at_ns,
                   (message){lep_world_rank(comm, them->ranks[i]), TAG, them->ranks[i] < 0 ? 0 : size_of(these, i),
                             (uint16_t)lep_world_communicator(comm)});
}

static void write_ends(MPI_Comm comm, const neighbours *them, int64_t first_ns, int64_t waited_ns) {
    static int code;
    for (int i = 0; i < them->count; i++)
        lep_write_completed(lep_code(&code, LEP_RECORD_MPI, LEP_RECORD_COMPLETED), first_ns + i,
                            lep_world_rank(comm, them->ranks[i]), TAG, waited_ns);
}

static void write_exchange(int *code, const char *name, MPI_Comm comm, int64_t start_ns, int64_t end_ns,
                           const sizes *out, const sizes *in) {
    static int receive, send;
    neighbours from, to;
    if (!lep_recording || !found(comm, &from, &to))
        return;
    int64_t wait_ns = start_ns;
    write_side(&receive, "MPI_Irecv", comm, &from, in, &wait_ns);
    write_side(&send, "MPI_Isend", comm, &to, out, &wait_ns);
    write_call(code, name, wait_ns, end_ns > wait_ns ? end_ns : wait_ns, NONE);
    write_ends(comm, &from, start_ns, wait_ns);
    write_ends(comm, &to, start_ns + from.count, wait_ns);
    free(from.ranks);
    free(to.ranks);
}

/* `out` and `in` are sizes. */
#define EXCHANGED(form, call, out, in)                                                                                 \
    STAMPED(call, write_exchange(&code, "MPI_" #form, comm, start_ns, end_ns, out, in); lep_messages++)

/* The name alone. */
#define NAMED(form, parameters, arguments)                                                                             \
    LEP_EXPORT int MPI_##form parameters RECORDED("MPI_" #form, MPI_##form arguments, NONE, )

// clang-format off
#define PARTS(...) __VA_ARGS__
#define NEIGHBOUR(form, parameters, arguments, out, in)                                                                \
    LEP_EXPORT int MPI_Neighbor_##form(PARTS parameters)                                                               \
        EXCHANGED(Neighbor_##form, MPI_Neighbor_##form(PARTS arguments), out, in)                                    \
    NAMED(Ineighbor_##form, (PARTS parameters, MPI_Request *request), (PARTS arguments, request))

#define ONE(count, type) (&(const sizes){&(count), &(type), false, false})
#define EACH(counts, type) (&(const sizes){(counts), &(type), true, false})
#define TYPED(counts, types) (&(const sizes){(counts), (types), true, true})

NEIGHBOUR(allgather,
          (const void *give, int count, MPI_Datatype type, void *take, int take_count, MPI_Datatype take_type,
           MPI_Comm comm),
          (give, count, type, take, take_count, take_type, comm), ONE(count, type), ONE(take_count, take_type))
NEIGHBOUR(allgatherv,
          (const void *give, int count, MPI_Datatype type, void *take, const int counts[], const int at[],
           MPI_Datatype take_type, MPI_Comm comm),
          (give, count, type, take, counts, at, take_type, comm), ONE(count, type), EACH(counts, take_type))
NEIGHBOUR(alltoall,
          (const void *give, int count, MPI_Datatype type, void *take, int take_count, MPI_Datatype take_type,
           MPI_Comm comm),
          (give, count, type, take, take_count, take_type, comm), ONE(count, type), ONE(take_count, take_type))
NEIGHBOUR(alltoallv,
          (const void *give, const int counts[], const int at[], MPI_Datatype type, void *take, const int take_counts[],
           const int take_at[], MPI_Datatype take_type, MPI_Comm comm),
          (give, counts, at, type, take, take_counts, take_at, take_type, comm), EACH(counts, type),
          EACH(take_counts, take_type))
NEIGHBOUR(alltoallw,
          (const void *give, const int counts[], const MPI_Aint at[], const MPI_Datatype types[], void *take,
           const int take_counts[], const MPI_Aint take_at[], const MPI_Datatype take_types[], MPI_Comm comm),
          (give, counts, at, types, take, take_counts, take_at, take_types, comm), TYPED(counts, types),
          TYPED(take_counts, take_types))

NAMED(Win_create, (void *base, MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, MPI_Win *window),
      (base, size, unit, info, comm, window))
NAMED(Win_allocate, (MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *window),
      (size, unit, info, comm, base, window))
NAMED(Win_allocate_shared, (MPI_Aint size, int unit, MPI_Info info, MPI_Comm comm, void *base, MPI_Win *window),
      (size, unit, info, comm, base, window))
NAMED(Win_create_dynamic, (MPI_Info info, MPI_Comm comm, MPI_Win *window), (info, comm, window))
NAMED(Comm_idup, (MPI_Comm comm, MPI_Comm *made, MPI_Request *request), (comm, made, request))
NAMED(Comm_spawn,
      (const char *command, char *words[], int ranks, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *made,
       int errors[]),
      (command, words, ranks, info, root, comm, made, errors))
NAMED(Comm_accept, (const char *port, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *made),
      (port, info, root, comm, made))
NAMED(Comm_connect, (const char *port, MPI_Info info, int root, MPI_Comm comm, MPI_Comm *made),
      (port, info, root, comm, made))
// clang-format on
