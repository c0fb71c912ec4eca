#include "clock_source.h"

#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

enum { LOOKS = 200 };

static int64_t read_wtime(const lep_clock *clock) {
    (void)clock;
    double seconds = MPI_Wtime(), whole = floor(seconds);
    return (int64_t)whole * 1000000000 + llround((seconds - whole) * 1e9);
}

static int64_t time_of(clockid_t which) {
    struct timespec now;
    clock_gettime(which, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int64_t read_monotonic(const lep_clock *clock) {
    (void)clock;
    return time_of(CLOCK_MONOTONIC);
}

static int64_t least_difference(const lep_clock *clock) {
    int64_t least = INT64_MAX;
    for (int i = 0; i < LOOKS; i++) {
        int64_t before = lep_clock_read_ns(clock), after = before;
        for (int look = 0; look < 1000 && after == before; look++)
            after = lep_clock_read_ns(clock);
        if (after == before)
            break; /* of a simulation, in which reading takes no time */
        if (after - before < least)
            least = after - before;
    }
    return least == INT64_MAX ? 1 : least;
}

#if defined(__x86_64__)

static int64_t read_ticks(const lep_clock *clock) {
    unsigned core;
    return llround((double)(__rdtscp(&core) - clock->first_tick) * clock->ns_per_tick);
}

/* Intel's and AMD's manuals: leaf 0x80000007, bit 8 of EDX: constant at all frequencies and in all sleep states. */
static const char *lacks_counter(void) {
    unsigned a, b, c, d;
    if (!__get_cpuid(0x80000001, &a, &b, &c, &d) || !(d & (1u << 27)))
        return "this processor has no RDTSCP";
    if (!__get_cpuid(0x80000007, &a, &b, &c, &d) || !(d & (1u << 8)))
        return "the time-stamp counter of this processor is not invariant: its frequency changes";
    return NULL;
}

/* Leaf 0x15: crystal frequency and ratio; 0 where the processor does not say. */
static double frequency_by_processor(void) {
    unsigned denominator, numerator, crystal_Hz, reserved;
    if (!__get_cpuid(0x15, &denominator, &numerator, &crystal_Hz, &reserved) || !denominator || !numerator)
        return 0;
    return (double)crystal_Hz * numerator / denominator;
}

static double frequency_by_counting(void) {
    unsigned core;
    int64_t from_ns = time_of(CLOCK_MONOTONIC_RAW), to_ns = from_ns;
    uint64_t from = __rdtscp(&core);
    while (to_ns - from_ns < 200000000)
        to_ns = time_of(CLOCK_MONOTONIC_RAW);
    return (double)(__rdtscp(&core) - from) / (double)(to_ns - from_ns) * 1e9;
}

static const char *open_counter(lep_clock *clock, const char *frequency) {
    const char *lacks = lacks_counter();
    if (lacks)
        return lacks;
    unsigned core;
    clock->ticks_per_s = frequency_by_processor();
    clock->ticks_from = "processor";
    if (*frequency && strcmp(frequency, "estimated") != 0) {
        char *end;
        clock->ticks_per_s = strtod(frequency, &end);
        clock->ticks_from = "given";
        if (*end || !(clock->ticks_per_s >= 1e6 && clock->ticks_per_s <= 1e11))
            return "the frequency of the time-stamp counter is a number of Hz between 1e6 and 1e11";
    } else if (*frequency || clock->ticks_per_s <= 0) {
        clock->ticks_per_s = frequency_by_counting();
        clock->ticks_from = "estimated";
    }
    clock->ns_per_tick = 1e9 / clock->ticks_per_s;
    clock->first_tick = __rdtscp(&core);
    clock->read_ns = read_ticks;
    return NULL;
}

#else

static const char *open_counter(lep_clock *clock, const char *frequency) {
    (void)clock, (void)frequency;
    return "RDTSCP is an instruction of x86-64 processors";
}

#endif

const char *lep_clock_open(lep_clock *clock, const char *name) {
    *clock = (lep_clock){.name = name, .ticks_from = ""};
    if (strcmp(name, "MPI_Wtime") == 0) {
        clock->read_ns = read_wtime;
    } else if (strcmp(name, "clock_gettime") == 0) {
        clock->read_ns = read_monotonic;
    } else if (strcmp(name, "rdtscp") == 0 || strncmp(name, "rdtscp:", 7) == 0) {
        const char *problem = open_counter(clock, name[6] ? name + 7 : "");
        if (problem)
            return problem;
    } else {
        return "no such clock; choose MPI_Wtime, clock_gettime, rdtscp, rdtscp:HZ or rdtscp:estimated";
    }
    clock->resolution_ns = least_difference(clock);
    return NULL;
}

int64_t lep_clock_made_at(const lep_clock *clock, int64_t base_ns) {
    int64_t since = base_ns - (int64_t)clock->first_tick,
            until_change = clock->change_at_ns - (int64_t)clock->first_tick;
    if (clock->steps > 0 && since > 0) {
        int64_t step = since / LEP_WANDER_STEP_NS;
        step = step < clock->steps ? step : clock->steps - 1;
        double inside = clock->drifts[step] * (double)(since - step * LEP_WANDER_STEP_NS);
        return base_ns + clock->ahead_ns + llround(clock->gained_ns[step] + inside);
    }
    double gained = since <= until_change
                        ? clock->drift * (double)since
                        : clock->drift * (double)until_change + clock->drift_after * (double)(since - until_change);
    return base_ns + clock->ahead_ns + llround(gained);
}

static int64_t read_made(const lep_clock *clock) {
    return lep_clock_made_at(clock, lep_clock_read_ns(clock->base));
}

lep_clock lep_clock_made(const lep_clock *base, int64_t from_ns, int64_t ahead_ns, double drift, int64_t change_at_ns,
                         double drift_after) {
    lep_clock clock = *base;
    clock.read_ns = read_made;
    clock.base = base;
    clock.first_tick = (uint64_t)from_ns;
    clock.ahead_ns = ahead_ns;
    clock.change_at_ns = change_at_ns;
    clock.drift = drift;
    clock.drift_after = drift_after;
    return clock;
}

void lep_clock_wanders(lep_clock *made, const double *drifts, double *gained_ns, int steps) {
    gained_ns[0] = 0;
    for (int step = 1; step < steps; step++)
        gained_ns[step] = gained_ns[step - 1] + drifts[step - 1] * LEP_WANDER_STEP_NS;
    made->drifts = drifts;
    made->gained_ns = gained_ns;
    made->steps = steps;
}
