#include "collective_operations.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "probe_common.h"

#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif
#if MPI_VERSION >= 4 || (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define PERSISTENT(NAME) MPI_##NAME##_init
#elif defined(OMPI_HAVE_MPI_EXT_PCOLLREQ)
#define PERSISTENT(NAME) MPIX_##NAME##_init
#endif

/* Byte i of the block that rank `from` gives to rank `to`. */
static unsigned char byte_of(int from, int to, int i) {
    return (unsigned char)(31 * from + 17 * to + i + 1);
}

static int blocks_of(const lep_collective *with) {
    return with->ranks > 2 ? with->ranks : 2; /* each rank of a ring has two neighbours */
}

enum { HUGE_PAGE = 2 << 20 };

/* madvise(2): asked for before the memory is touched, which makes the pages. */
static unsigned char *allocate_on(lep_pages pages, size_t bytes, const char *what) {
    if (pages == LEP_PAGES_DEFAULT)
        return lep_allocate(bytes, what);
    void *memory = NULL;
    bytes = (bytes / HUGE_PAGE + 1) * HUGE_PAGE;
    if (posix_memalign(&memory, HUGE_PAGE, bytes) != 0)
        lep_fail_alone("no memory for %s (%.1f MB)", what, (double)bytes * 1e-6);
    if (madvise(memory, bytes, pages == LEP_PAGES_HUGE ? MADV_HUGEPAGE : MADV_NOHUGEPAGE) != 0)
        lep_fail_alone("--pages: this system has no choice of pages (madvise)");
    memset(memory, 1, bytes);
    return memory;
}

void lep_collective_open(lep_collective *with, int most_bytes) {
    size_t bytes = (size_t)most_bytes * (size_t)blocks_of(with), ranks = (size_t)with->ranks;
    with->send = allocate_on(with->pages, bytes, "what is sent");
    with->receive = allocate_on(with->pages, bytes, "what is received");
    with->counts = lep_allocate(ranks * sizeof *with->counts, "counts");
    with->places = lep_allocate(ranks * sizeof *with->places, "displacements");
    with->types = lep_allocate(ranks * sizeof(MPI_Datatype), "datatypes");
    for (int rank = 0; rank < with->ranks; rank++)
        with->types[rank] = MPI_BYTE;
    MPI_Cart_create(with->comm, 1, &with->ranks, &(int){1}, 0, &with->ring);
    with->window = MPI_WIN_NULL;
}

void lep_collective_size(lep_collective *with, const lep_collective_operation *operation, int size_bytes) {
    with->size_bytes = size_bytes;
    with->count = operation->reduces ? size_bytes / with->reduction.element->bytes : size_bytes;
    for (int rank = 0; rank < with->ranks; rank++) {
        with->counts[rank] = operation->reduces ? with->count : size_bytes;
        with->places[rank] = rank * size_bytes;
    }
}

/* Puts what a rank gives where it takes, as far as the operation has it so. */
static void join_in_place(lep_collective *with, lep_in_place where) {
    size_t size = (size_t)with->size_bytes;
    bool at_root = where == LEP_WHOLE_AT_ROOT || where == LEP_BLOCK_AT_ROOT || where == LEP_TAKEN_AT_ROOT;
    if (at_root && with->rank != with->root)
        return;
    if (where == LEP_TAKEN_AT_ROOT) {
        with->take = MPI_IN_PLACE;
        return;
    }
    with->give = MPI_IN_PLACE;
    if (where == LEP_WHOLE || where == LEP_WHOLE_AT_ROOT)
        memcpy(with->receive, with->send, size * (size_t)with->ranks);
    else
        memcpy(with->receive + size * (size_t)with->rank, with->send, size);
}

void lep_collective_fill(lep_collective *with, const lep_collective_operation *operation, bool in_place) {
    int size = with->size_bytes, blocks = blocks_of(with);
    memset(with->receive, 0, (size_t)size * (size_t)blocks);
    with->give = with->send;
    with->take = with->receive;
    if (operation->reduces)
        lep_reduction_fill(&with->reduction, with->send, with->rank, with->count * blocks);
    else
        for (int to = 0; to < blocks; to++)
            for (int i = 0; i < size; i++)
                with->send[to * size + i] = byte_of(with->rank, to, i);
    if (in_place)
        join_in_place(with, operation->in_place);
    if (operation->prepare)
        operation->prepare(with);
}

bool lep_collective_block_is(const lep_collective *with, int place, int from, int to) {
    return lep_collective_bytes_are(with, with->receive + (size_t)place * (size_t)with->size_bytes, from, to);
}

bool lep_collective_bytes_are(const lep_collective *with, const unsigned char *block, int from, int to) {
    for (int i = 0; i < with->size_bytes; i++)
        if (block[i] != byte_of(from, to, i))
            return false;
    return true;
}

/* The reduction over ranks 0 to `last` of the elements from `first` on. */
static bool reduced_is(const lep_collective *with, int last, int first) {
    return lep_reduction_is(&with->reduction, with->receive, 0, last, first, with->count);
}

static bool always(const lep_collective *with) {
    (void)with;
    return true;
}

/* In place the root keeps its block where it is. */
static bool from_root(const lep_collective *with) {
    return with->take == MPI_IN_PLACE || lep_collective_block_is(with, 0, with->root, with->rank);
}

/* The root gives, and receives nothing. */
static bool broadcast(const lep_collective *with) {
    return with->rank == with->root || lep_collective_block_is(with, 0, with->root, 0);
}

static bool from_each(const lep_collective *with, int to) {
    for (int from = 0; from < with->ranks; from++)
        if (!lep_collective_block_is(with, from, from, to))
            return false;
    return true;
}

static bool gathered(const lep_collective *with) {
    return with->rank != with->root || from_each(with, 0);
}

static bool gathered_by_all(const lep_collective *with) {
    return from_each(with, 0);
}

static bool exchanged(const lep_collective *with) {
    return from_each(with, with->rank);
}

static bool reduced(const lep_collective *with) {
    return with->rank != with->root || reduced_is(with, with->ranks - 1, 0);
}

static bool reduced_for_all(const lep_collective *with) {
    return reduced_is(with, with->ranks - 1, 0);
}

static bool reduced_block(const lep_collective *with) {
    return reduced_is(with, with->ranks - 1, with->rank * with->count);
}

static bool scanned(const lep_collective *with) {
    return reduced_is(with, with->rank, 0);
}

static bool scanned_before(const lep_collective *with) {
    return with->rank == 0 || reduced_is(with, with->rank - 1, 0);
}

static int neighbour(const lep_collective *with, int direction) {
    return (with->rank + direction + with->ranks) % with->ranks;
}

static bool gathered_by_neighbours(const lep_collective *with) {
    return lep_collective_block_is(with, 0, neighbour(with, -1), 0) &&
           lep_collective_block_is(with, 1, neighbour(with, 1), 0);
}

/* Block 0 goes to the rank before and block 1 to the one after, which are the same of two ranks: libraries differ in
 * which of its blocks comes first there. */
static bool exchanged_by_neighbours(const lep_collective *with) {
    int before = neighbour(with, -1), after = neighbour(with, 1);
    return (lep_collective_block_is(with, 0, before, 1) && lep_collective_block_is(with, 1, after, 0)) ||
           (before == after && lep_collective_block_is(with, 0, before, 0) &&
            lep_collective_block_is(with, 1, after, 1));
}

/* The operations: NAME(what comes before the communicator), blocking, nonblocking and persistent. */
#ifdef PERSISTENT
#define INIT(name, NAME, comm, ...)                                                                                    \
    static int init_##name(lep_collective *w, MPI_Request *request) {                                                  \
        PERSISTENT(NAME)(__VA_ARGS__ comm, MPI_INFO_NULL, request);                                                    \
        return 1;                                                                                                      \
    }
#define INIT_OF(name) init_##name
#else
#define INIT(...)
#define INIT_OF(name) NULL
#endif

#define OPERATION_ON(comm, name, NAME, ...)                                                                            \
    static void call_##name(lep_collective *w) {                                                                       \
        MPI_##NAME(__VA_ARGS__ comm);                                                                                  \
    }                                                                                                                  \
    static int start_##name(lep_collective *w, MPI_Request *request) {                                                 \
        MPI_I##name(__VA_ARGS__ comm, request);                                                                        \
        return 1;                                                                                                      \
    }                                                                                                                  \
    INIT(name, NAME, comm, __VA_ARGS__)
#define OPERATION(name, NAME, ...) OPERATION_ON(w->comm, name, NAME, __VA_ARGS__)

#define BYTES w->size_bytes, MPI_BYTE
#define REDUCED w->reduction.element->type, w->reduction.with->op
#define BLOCKS w->counts, w->places, MPI_BYTE
OPERATION(barrier, Barrier, )
OPERATION(bcast, Bcast, w->rank == w->root ? w->send : w->receive, BYTES, w->root, )
OPERATION(reduce, Reduce, w->give, w->take, w->count, REDUCED, w->root, )
OPERATION(allreduce, Allreduce, w->give, w->take, w->count, REDUCED, )
OPERATION(scatter, Scatter, w->send, BYTES, w->take, BYTES, w->root, )
OPERATION(gather, Gather, w->give, BYTES, w->take, BYTES, w->root, )
OPERATION(allgather, Allgather, w->give, BYTES, w->take, BYTES, )
OPERATION(alltoall, Alltoall, w->give, BYTES, w->take, BYTES, )
OPERATION(scan, Scan, w->give, w->take, w->count, REDUCED, )
OPERATION(exscan, Exscan, w->give, w->take, w->count, REDUCED, )
OPERATION(reduce_scatter_block, Reduce_scatter_block, w->give, w->take, w->count, REDUCED, )
OPERATION(reduce_scatter, Reduce_scatter, w->give, w->take, w->counts, REDUCED, )
OPERATION(scatterv, Scatterv, w->send, BLOCKS, w->take, BYTES, w->root, )
OPERATION(gatherv, Gatherv, w->give, BYTES, w->take, BLOCKS, w->root, )
OPERATION(allgatherv, Allgatherv, w->give, BYTES, w->take, BLOCKS, )
OPERATION(alltoallv, Alltoallv, w->give, BLOCKS, w->take, BLOCKS, )
OPERATION(alltoallw, Alltoallw, w->give, w->counts, w->places, w->types, w->take, w->counts, w->places, w->types, )
OPERATION_ON(w->ring, neighbor_allgather, Neighbor_allgather, w->send, BYTES, w->receive, BYTES, )
OPERATION_ON(w->ring, neighbor_alltoall, Neighbor_alltoall, w->send, BYTES, w->receive, BYTES, )

static void call_none(lep_collective *with) {
    (void)with;
}

#define ROW(name, NAME, reduces, in_place, right)                                                                      \
    { #NAME, reduces, call_##name, start_##name, INIT_OF(name), in_place, NULL, right }

const lep_collective_operation lep_collective_operations[] = {
    {.name = "none", .call = call_none, .right = always},
    ROW(barrier, Barrier, false, LEP_NEVER, always),
    ROW(bcast, Bcast, false, LEP_NEVER, broadcast),
    ROW(reduce, Reduce, true, LEP_WHOLE_AT_ROOT, reduced),
    ROW(allreduce, Allreduce, true, LEP_WHOLE, reduced_for_all),
    ROW(scatter, Scatter, false, LEP_TAKEN_AT_ROOT, from_root),
    ROW(gather, Gather, false, LEP_BLOCK_AT_ROOT, gathered),
    ROW(allgather, Allgather, false, LEP_BLOCK, gathered_by_all),
    ROW(alltoall, Alltoall, false, LEP_WHOLE, exchanged),
    ROW(scan, Scan, true, LEP_WHOLE, scanned),
    ROW(exscan, Exscan, true, LEP_WHOLE, scanned_before),
    ROW(reduce_scatter_block, Reduce_scatter_block, true, LEP_WHOLE, reduced_block),
    ROW(reduce_scatter, Reduce_scatter, true, LEP_WHOLE, reduced_block),
    ROW(scatterv, Scatterv, false, LEP_TAKEN_AT_ROOT, from_root),
    ROW(gatherv, Gatherv, false, LEP_BLOCK_AT_ROOT, gathered),
    ROW(allgatherv, Allgatherv, false, LEP_BLOCK, gathered_by_all),
    ROW(alltoallv, Alltoallv, false, LEP_WHOLE, exchanged),
    ROW(alltoallw, Alltoallw, false, LEP_WHOLE, exchanged),
    ROW(neighbor_allgather, Neighbor_allgather, false, LEP_NEVER, gathered_by_neighbours),
    ROW(neighbor_alltoall, Neighbor_alltoall, false, LEP_NEVER, exchanged_by_neighbours),
};
const int lep_collective_operation_count = sizeof lep_collective_operations / sizeof *lep_collective_operations;
