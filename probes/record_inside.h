/* What the parts of the recorder share. A call is timed in the order begin, clock, real call, clock, end: `end` writes
 * the row after the second stamp, so that no call pays for its own row. */
#ifndef LEPAUTE_RECORD_INSIDE_H
#define LEPAUTE_RECORD_INSIDE_H

#include "probe_common.h"
#include "record.h"

#define LEP_EXPORT __attribute__((visibility("default")))
/* The library is loaded at the start of the program, so that the cheap form of thread-local variables will do. */
#define LEP_THREAD_LOCAL _Thread_local __attribute__((tls_model("initial-exec")))

extern bool lep_recording;
extern int64_t lep_clock_shift_ns;            /* 0 but in tests, where it makes the clocks of ranks differ */
extern LEP_THREAD_LOCAL bool lep_inside_call; /* a library calls itself through its public names; only we count once */
extern LEP_THREAD_LOCAL int lep_step;

static inline int64_t lep_clock_ns(void) {
    return lep_now_ns() + lep_clock_shift_ns;
}

static inline bool lep_call_begin(void) {
    if (!lep_recording || lep_inside_call)
        return false;
    lep_inside_call = true;
    return true;
}

static inline void lep_call_end(void) {
    lep_inside_call = false;
}

/* The code of a name, found at the first call and kept in *code. */
int lep_code(int *code, lep_record_kind kind, const char *name);
void lep_write(const lep_record_row *row);
/* The next definition of a symbol after ours; ends the program where there is none. Never NULL. */
void *lep_next_symbol(const char *name);

void lep_record_open(int rank, int ranks, const char *mpi);
lep_record_header *lep_record_file(void); /* NULL where nothing is recorded */
void lep_record_close(void);

#endif
