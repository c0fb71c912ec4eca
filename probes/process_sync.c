#include "process_sync.h"

#include <string.h>

#include "probe_common.h"

enum { TAG_ROUND = 11, CALLS_AHEAD = 10 };

static void nothing(lep_process_sync *sync) {
    (void)sync;
}

static int barrier(lep_process_sync *sync) {
    MPI_Barrier(sync->comm);
    return 0;
}

static int dissemination(lep_process_sync *sync) {
    char out = 0, in;
    for (int step = 1; step < sync->ranks; step *= 2) {
        int to = (sync->rank + step) % sync->ranks, from = (sync->rank - step + sync->ranks) % sync->ranks;
        MPI_Sendrecv(&out, 1, MPI_CHAR, to, TAG_ROUND, &in, 1, MPI_CHAR, from, TAG_ROUND, sync->comm,
                     MPI_STATUS_IGNORE);
    }
    return 0;
}

static int double_barrier(lep_process_sync *sync) {
    MPI_Barrier(sync->comm);
    MPI_Barrier(sync->comm);
    return 0;
}

static int64_t global_ns(const lep_process_sync *sync) {
    return lep_clock_at(sync->model, lep_clock_read_ns(sync->clock));
}

/* Until the global clock shows start_ns. */
static int wait_for_start(const lep_process_sync *sync) {
    if (global_ns(sync) > sync->start_ns)
        return LEP_STARTED_LATE;
    while (global_ns(sync) < sync->start_ns)
        ;
    return 0;
}

/* The first window starts when the word of it has reached all ranks: after so many broadcasts as it takes. */
static void begin_windows(lep_process_sync *sync) {
    MPI_Barrier(sync->comm);
    int64_t before_ns = global_ns(sync), longest_ns;
    int64_t word = 0;
    for (int i = 0; i < CALLS_AHEAD; i++)
        MPI_Bcast(&word, 1, MPI_INT64_T, 0, sync->comm);
    int64_t took_ns = global_ns(sync) - before_ns;
    MPI_Allreduce(&took_ns, &longest_ns, 1, MPI_INT64_T, MPI_MAX, sync->comm);
    sync->start_ns = global_ns(sync) + longest_ns;
    MPI_Bcast(&sync->start_ns, 1, MPI_INT64_T, 0, sync->comm);
}

static int next_window(lep_process_sync *sync) {
    sync->start_ns += sync->window_ns;
    return wait_for_start(sync);
}

static int round_time(lep_process_sync *sync) {
    /* Rank 0 has returned from the last call; others may still be in it, and come late: that is marked. */
    sync->start_ns = global_ns(sync) + sync->window_ns;
    MPI_Bcast(&sync->start_ns, 1, MPI_INT64_T, 0, sync->comm);
    return wait_for_start(sync);
}

const lep_process_method lep_process_methods[] = {
    {"MPI_Barrier", false, nothing, barrier},   {"dissemination", false, nothing, dissemination},
    {"double", false, nothing, double_barrier}, {"window", true, begin_windows, next_window},
    {"round-time", true, nothing, round_time},
};
const int lep_process_method_count = sizeof lep_process_methods / sizeof *lep_process_methods;

LEP_FIND_NAMED(lep_process_method, lep_process_method_named, lep_process_methods, lep_process_method_count)

void lep_process_sync_open(lep_process_sync *sync, const lep_process_method *method, MPI_Comm comm,
                           const lep_clock *clock, const lep_clock_model *model, int64_t window_ns) {
    *sync = (lep_process_sync){.method = method, .comm = comm, .clock = clock, .model = model};
    sync->window_ns = method->needs_clock ? window_ns : 0;
    MPI_Comm_rank(comm, &sync->rank);
    MPI_Comm_size(comm, &sync->ranks);
}

int lep_process_marks(const lep_process_sync *sync, int64_t end_ns) {
    if (sync->method->begin != begin_windows)
        return 0; /* only where the next call does not wait for this one */
    return lep_clock_at(sync->model, end_ns) - sync->start_ns > sync->window_ns ? LEP_TOOK_TOO_LONG : 0;
}

void lep_process_adapt(lep_process_sync *sync, int calls, int marked, int64_t longest_ns, int64_t usual_ns) {
    if (!sync->method->needs_clock || 4 * marked <= calls)
        return;
    int64_t longer_ns = sync->method->begin == begin_windows ? longest_ns : usual_ns;
    int64_t grown_ns = sync->window_ns + sync->window_ns / 2, needed_ns = longer_ns + longer_ns / 2;
    sync->window_ns = needed_ns > grown_ns ? needed_ns : grown_ns;
}
