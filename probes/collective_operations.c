#include "collective_operations.h"

#include <string.h>

/* ---- content -------------------------------------------------------------------------------------------------- */

/* Byte i of the block that rank `from` gives to rank `to`. */
static unsigned char byte_of(int from, int to, int i) {
    return (unsigned char)(31 * from + 17 * to + i + 1);
}

/* Element i of the vector of a rank: small integers, whose sums are exact. */
static double number_of(int rank, int i) {
    return rank + i % 7 + 1;
}

static double *numbers(unsigned char *bytes) {
    return (double *)(void *)bytes;
}

void lep_collective_size(lep_collective *with, const lep_collective_operation *operation, int size_bytes) {
    with->size_bytes = size_bytes;
    bool adds = operation->reduces && size_bytes % (int)sizeof(double) == 0;
    with->type = adds ? MPI_DOUBLE : MPI_BYTE;
    with->op = adds ? MPI_SUM : MPI_BXOR;
    with->count = adds ? size_bytes / (int)sizeof(double) : size_bytes;
    for (int rank = 0; rank < with->ranks; rank++) {
        with->counts[rank] = size_bytes;
        with->places[rank] = rank * size_bytes;
    }
}

void lep_collective_fill(lep_collective *with, const lep_collective_operation *operation) {
    int size = with->size_bytes, blocks = with->ranks;
    memset(with->receive, 0, (size_t)size * (size_t)blocks);
    if (operation->reduces && with->type == MPI_DOUBLE) {
        for (int i = 0; i < with->count * blocks; i++)
            numbers(with->send)[i] = number_of(with->rank, i);
        return;
    }
    for (int to = 0; to < blocks; to++)
        for (int i = 0; i < size; i++)
            with->send[to * size + i] = byte_of(with->rank, to, i);
}

/* ---- what is right --------------------------------------------------------------------------------------------- */

bool lep_collective_block_is(const lep_collective *with, int place, int from, int to) {
    const unsigned char *block = with->receive + (size_t)place * (size_t)with->size_bytes;
    for (int i = 0; i < with->size_bytes; i++)
        if (block[i] != byte_of(from, to, i))
            return false;
    return true;
}

/* The reduction over ranks 0 to `last` of the elements from `first` on. */
static bool reduced_is(const lep_collective *with, int last, int first) {
    for (int i = 0; i < with->count; i++) {
        int element = first + i;
        if (with->type == MPI_DOUBLE) {
            double sum = 0;
            for (int rank = 0; rank <= last; rank++)
                sum += number_of(rank, element);
            if (numbers(with->receive)[i] != sum)
                return false;
        } else {
            unsigned char combined = 0;
            for (int rank = 0; rank <= last; rank++)
                combined ^= byte_of(rank, element / with->size_bytes, element % with->size_bytes);
            if (with->receive[i] != combined)
                return false;
        }
    }
    return true;
}

static bool always(const lep_collective *with) {
    (void)with;
    return true;
}

static bool from_root(const lep_collective *with) {
    return lep_collective_block_is(with, 0, 0, with->rank);
}

/* Rank 0 gives, and receives nothing. */
static bool broadcast(const lep_collective *with) {
    return with->rank == 0 || lep_collective_block_is(with, 0, 0, 0);
}

static bool from_each(const lep_collective *with, int to) {
    for (int from = 0; from < with->ranks; from++)
        if (!lep_collective_block_is(with, from, from, to))
            return false;
    return true;
}

static bool gathered(const lep_collective *with) {
    return with->rank > 0 || from_each(with, 0);
}

static bool gathered_by_all(const lep_collective *with) {
    return from_each(with, 0);
}

static bool exchanged(const lep_collective *with) {
    return from_each(with, with->rank);
}

static bool reduced(const lep_collective *with) {
    return with->rank > 0 || reduced_is(with, with->ranks - 1, 0);
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

/* ---- the operations: NAME(what comes before the communicator), blocking and not -------------------------------- */

#define OPERATION(name, NAME, ...)                                                                                     \
    static void call_##name(lep_collective *w) {                                                                       \
        MPI_##NAME(__VA_ARGS__ w->comm);                                                                               \
    }                                                                                                                  \
    static int start_##name(lep_collective *w, MPI_Request *request) {                                                 \
        MPI_I##name(__VA_ARGS__ w->comm, request);                                                                     \
        return 1;                                                                                                      \
    }

#define BYTES w->size_bytes, MPI_BYTE
OPERATION(barrier, Barrier, )
OPERATION(bcast, Bcast, w->rank == 0 ? w->send : w->receive, BYTES, 0, )
OPERATION(reduce, Reduce, w->send, w->receive, w->count, w->type, w->op, 0, )
OPERATION(allreduce, Allreduce, w->send, w->receive, w->count, w->type, w->op, )
OPERATION(scatter, Scatter, w->send, BYTES, w->receive, BYTES, 0, )
OPERATION(gather, Gather, w->send, BYTES, w->receive, BYTES, 0, )
OPERATION(allgather, Allgather, w->send, BYTES, w->receive, BYTES, )
OPERATION(alltoall, Alltoall, w->send, BYTES, w->receive, BYTES, )
OPERATION(scan, Scan, w->send, w->receive, w->count, w->type, w->op, )
OPERATION(exscan, Exscan, w->send, w->receive, w->count, w->type, w->op, )
OPERATION(reduce_scatter_block, Reduce_scatter_block, w->send, w->receive, w->count, w->type, w->op, )
OPERATION(scatterv, Scatterv, w->send, w->counts, w->places, MPI_BYTE, w->receive, BYTES, 0, )
OPERATION(gatherv, Gatherv, w->send, BYTES, w->receive, w->counts, w->places, MPI_BYTE, 0, )
OPERATION(allgatherv, Allgatherv, w->send, BYTES, w->receive, w->counts, w->places, MPI_BYTE, )
OPERATION(alltoallv, Alltoallv, w->send, w->counts, w->places, MPI_BYTE, w->receive, w->counts, w->places, MPI_BYTE, )

static void call_none(lep_collective *with) {
    (void)with;
}

#define ROW(name, NAME, reduces, right)                                                                                \
    { #NAME, reduces, call_##name, start_##name, right }

const lep_collective_operation lep_collective_operations[] = {
    {"none", false, call_none, NULL, always},
    ROW(barrier, Barrier, false, always),
    ROW(bcast, Bcast, false, broadcast),
    ROW(reduce, Reduce, true, reduced),
    ROW(allreduce, Allreduce, true, reduced_for_all),
    ROW(scatter, Scatter, false, from_root),
    ROW(gather, Gather, false, gathered),
    ROW(allgather, Allgather, false, gathered_by_all),
    ROW(alltoall, Alltoall, false, exchanged),
    ROW(scan, Scan, true, scanned),
    ROW(exscan, Exscan, true, scanned_before),
    ROW(reduce_scatter_block, Reduce_scatter_block, true, reduced_block),
    ROW(scatterv, Scatterv, false, from_root),
    ROW(gatherv, Gatherv, false, gathered),
    ROW(allgatherv, Allgatherv, false, gathered_by_all),
    ROW(alltoallv, Alltoallv, false, exchanged),
};
const int lep_collective_operation_count = sizeof lep_collective_operations / sizeof *lep_collective_operations;
