/* The clocks that a rank can read: MPI_Wtime, clock_gettime, the processor's time-stamp counter; in nanoseconds. */
#ifndef LEPAUTE_CLOCK_SOURCE_H
#define LEPAUTE_CLOCK_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct lep_clock lep_clock;

struct lep_clock {
    int64_t (*read_ns)(const lep_clock *clock);
    const char *name;
    int64_t resolution_ns;  /* least difference of two readings that is not 0, at least 1 */
    double ticks_per_s;     /* of a counter, else 0 */
    const char *ticks_from; /* "given", "processor" or "estimated" */
    double ns_per_tick;
    uint64_t first_tick;
    /* For tests: called when a message of an exchange has come, before the clock is read: the message seems late. */
    void (*after_receive)(const lep_clock *clock, bool answer);
    /* For tests: this clock is another one that is ahead, and that drifts, and drifts otherwise from some moment on. */
    const lep_clock *base;
    int64_t ahead_ns, change_at_ns; /* of the clock that it is made from */
    double drift, drift_after;
    /* Of one whose drift wanders: in each step of LEP_WANDER_STEP_NS its drift, and what it has gained before. */
    const double *drifts, *gained_ns;
    int steps;
};

enum { LEP_WANDER_STEP_NS = 100000000 };

/* Opens a clock by its name: "MPI_Wtime", "clock_gettime" (CLOCK_MONOTONIC), "rdtscp" (its frequency the processor's
 * word, where it gives one, else estimated), "rdtscp:HZ" (given), "rdtscp:estimated" (counted during 0.2 s of
 * CLOCK_MONOTONIC_RAW). Returns NULL, or why it cannot be had. An estimated frequency differs between two ranks of one
 * processor, so that clocks seem to drift (Hunold and Carpen-Amarie, section 4.2.1): take it last. */
const char *lep_clock_open(lep_clock *clock, const char *name);

/* For tests: `base` + ahead_ns, drifting from the moment at which `base` shows from_ns. */
lep_clock lep_clock_made(const lep_clock *base, int64_t from_ns, int64_t ahead_ns, double drift, int64_t change_at_ns,
                         double drift_after);
/* Lets its drift be drifts[k] in step k, and the last one afterwards; gained_ns: room for as many. Both stay in use. */
void lep_clock_wanders(lep_clock *made, const double *drifts, double *gained_ns, int steps);
/* What such a clock shows when its base shows base_ns. */
int64_t lep_clock_made_at(const lep_clock *clock, int64_t base_ns);

static inline int64_t lep_clock_read_ns(const lep_clock *clock) {
    return clock->read_ns(clock);
}

#endif
