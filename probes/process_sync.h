/* How ranks come together before each call that is measured, behind one struct of functions.
 *
 * | name          | what ranks wait for                                                                  |
 * |---------------|--------------------------------------------------------------------------------------|
 * | MPI_Barrier   | the library's barrier: its exit skew differs from library to library                 |
 * | dissemination | a barrier of our own, the same for every library: in round k rank r sends to r + 2^k |
 * | double        | MPI_Barrier twice: the second is entered by ranks that the first has brought together |
 * | window        | a moment of the global clock, each call's a window after the last one's              |
 * | round-time    | a moment of the global clock that rank 0 sends before each call                      |
 *
 * The first three need no clock. Sources: Hunold and Carpen-Amarie, "MPI Benchmarking Revisited", section 4 and
 * algorithms 8 to 14 (windows, as SKaMPI and NBCBench have them); the dissemination barrier: Hensgen, Finkel and
 * Manber, "Two algorithms for barrier synchronization" (1988); round-time: Hunold and Carpen-Amarie, IEEE Cluster 2018.
 *
 * Nothing is dropped: a call that began late, or did not end within its window on some rank, is marked, and windows
 * grow between batches of calls.
 */
#ifndef LEPAUTE_PROCESS_SYNC_H
#define LEPAUTE_PROCESS_SYNC_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "clock_model.h"
#include "clock_source.h"

enum { LEP_STARTED_LATE = 1, LEP_TOOK_TOO_LONG = 2 };

typedef struct lep_process_sync lep_process_sync;

typedef struct {
    const char *name;
    bool needs_clock;
    /* By all ranks, before the first call of a batch. */
    void (*begin)(lep_process_sync *sync);
    /* By all ranks before each call: returns together, as far as it can, with marks of this rank. */
    int (*together)(lep_process_sync *sync);
} lep_process_method;

struct lep_process_sync {
    const lep_process_method *method;
    MPI_Comm comm;
    int rank, ranks;
    const lep_clock *clock;       /* of this rank */
    const lep_clock_model *model; /* from it to rank 0's */
    int64_t window_ns;            /* 0 where there are no windows; the lead that rank 0 gives, for round-time */
    int64_t start_ns;             /* of the present window, by rank 0's clock */
};

extern const lep_process_method lep_process_methods[];
extern const int lep_process_method_count;
const lep_process_method *lep_process_method_named(const char *name);

/* `comm` is one of its own. For windows, `clock` and `model` outlive it; window_ns is the first window. */
void lep_process_sync_open(lep_process_sync *sync, const lep_process_method *method, MPI_Comm comm,
                           const lep_clock *clock, const lep_clock_model *model, int64_t window_ns);

/* Marks of a call that ended, on this rank, when its clock showed end_ns. */
int lep_process_marks(const lep_process_sync *sync, int64_t end_ns);

/* After a batch, by all ranks: `marked` of `calls` calls had a mark on some rank. Where more than a quarter had,
 * windows become one and a half times as long, at least as long as 1.5 `longest_ns`, the longest call of all ranks, and
 * leads of round-time as 1.5 `usual_ns`, the median call of the slowest rank: rank 0 must not let a call begin while a
 * rank is still in the last one. */
void lep_process_adapt(lep_process_sync *sync, int calls, int marked, int64_t longest_ns, int64_t usual_ns);

#endif
