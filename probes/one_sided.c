#include "one_sided.h"

#include <string.h>

/* The odd rank of its pair that an even one reaches; MPI_PROC_NULL for all others. */
static int target_of(const lep_collective *with) {
    bool origin = with->rank % 2 == 0 && with->rank + 1 < with->ranks;
    return origin ? with->rank + 1 : MPI_PROC_NULL;
}

static bool is_target(const lep_collective *with) {
    return with->rank % 2 == 1;
}

#define ONE_SIDED(name, ...)                                                                                           \
    static void call_##name(lep_collective *with) {                                                                    \
        int target = target_of(with), size = with->size_bytes, count = with->count;                                    \
        MPI_Datatype type = with->reduction.element->type;                                                             \
        (void)size, (void)count, (void)type;                                                                           \
        if (target == MPI_PROC_NULL)                                                                                   \
            return;                                                                                                    \
        __VA_ARGS__;                                                                                                   \
        MPI_Win_flush(target, with->window);                                                                           \
    }
ONE_SIDED(put,
          MPI_Put(with->send + (size_t)target * (size_t)size, size, MPI_BYTE, target, 0, size, MPI_BYTE, with->window))
ONE_SIDED(get, MPI_Get(with->receive, size, MPI_BYTE, target, 0, size, MPI_BYTE, with->window))
ONE_SIDED(accumulate,
          MPI_Accumulate(with->send, count, type, target, 0, count, type, with->reduction.with->op, with->window))

static void meet(const lep_collective *with) {
    MPI_Win_sync(with->window);
    MPI_Barrier(with->comm);
    MPI_Win_sync(with->window);
}

static void prepare_empty(lep_collective *with) {
    memset(with->memory, 0, (size_t)with->size_bytes);
    meet(with);
}

static void prepare_block(lep_collective *with) {
    size_t size = (size_t)with->size_bytes;
    if (is_target(with))
        memcpy(with->memory, with->send + (size_t)(with->rank - 1) * size, size);
    meet(with);
}

static void prepare_vector(lep_collective *with) {
    memcpy(with->memory, with->send, (size_t)with->size_bytes);
    meet(with);
}

static bool put_is_right(const lep_collective *with) {
    meet(with);
    bool right = !is_target(with) || lep_collective_bytes_are(with, with->memory, with->rank - 1, with->rank);
    meet(with);
    return right;
}

static bool get_is_right(const lep_collective *with) {
    int target = target_of(with);
    return target == MPI_PROC_NULL || lep_collective_block_is(with, 0, target, with->rank);
}

static bool accumulate_is_right(const lep_collective *with) {
    meet(with);
    bool right = !is_target(with) ||
                 lep_reduction_is(&with->reduction, with->memory, with->rank - 1, with->rank, 0, with->count);
    meet(with);
    return right;
}

/* Whole pages: MPICH 4.0.2 puts into windows of 24 bytes each 8 bytes before their begin. */
void lep_one_sided_open(lep_collective *with, int most_bytes) {
    enum { PAGE = 4096 };
    MPI_Aint bytes = ((MPI_Aint)most_bytes / PAGE + 1) * PAGE;
    MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, with->comm, &with->memory, &with->window);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, with->window);
}

void lep_one_sided_close(lep_collective *with) {
    MPI_Win_unlock_all(with->window);
    MPI_Win_free(&with->window);
}

const lep_collective_operation lep_one_sided[] = {
    {.name = "Put", .call = call_put, .prepare = prepare_empty, .right = put_is_right},
    {.name = "Get", .call = call_get, .prepare = prepare_block, .right = get_is_right},
    {.name = "Accumulate",
     .reduces = true,
     .call = call_accumulate,
     .prepare = prepare_vector,
     .right = accumulate_is_right},
};
const int lep_one_sided_count = sizeof lep_one_sided / sizeof *lep_one_sided;
