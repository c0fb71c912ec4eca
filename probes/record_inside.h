/* What the parts of the recorder share. A call is timed in the order begin, clock, real call, clock, end: `end` writes
 * the row after the second stamp, so that no call pays for its own row. */
#ifndef LEPAUTE_RECORD_INSIDE_H
#define LEPAUTE_RECORD_INSIDE_H

#include <stdatomic.h>

#include "probe_common.h"
#include "record.h"

#define LEP_EXPORT __attribute__((visibility("default")))
/* The library is loaded at the start of the program, so that the cheap form of thread-local variables will do. */
#define LEP_THREAD_LOCAL _Thread_local __attribute__((tls_model("initial-exec")))

extern bool lep_open; /* from MPI_Init to MPI_Finalize: requests are followed also while nothing is recorded */
extern bool lep_recording;
extern int64_t lep_clock_shift_ns; /* 0 but in tests, where it makes the clocks of ranks differ */
/* Whether each look of a program that waits by probing gets a row, and each of the calls without work between them. */
extern bool lep_every_call;
extern LEP_THREAD_LOCAL bool lep_inside_call; /* a library calls itself through its public names; only we count once */
extern LEP_THREAD_LOCAL int lep_step;
extern LEP_THREAD_LOCAL uint16_t lep_site; /* of the call under way (record_sites.c) */

/* Under SMPI all ranks are contexts of one thread that give way to each other inside of calls, and the clock is the
 * simulation's (record_smpi.c). */
#ifdef LEP_RECORD_SMPI
int64_t lep_clock_ns(void);
#define lep_starts lep_clock_ns
#define lep_ended lep_clock_ns

bool lep_call_begin(void);
void lep_call_end(void);
#else
static inline int64_t lep_clock_ns(void) {
    return lep_now_ns() + lep_clock_shift_ns;
}

/* The clock of the processor takes many times as long to read as the other one: a thread looks at it when a call begins
 * or ends that long after its last look. What it waited since then is of the interval that ends (record_core.c). */
typedef enum { LEP_OWN_CODE, LEP_IN_KERNEL, LEP_IN_CALL } lep_interval;
extern LEP_THREAD_LOCAL int64_t lep_look_due_ns;
extern LEP_THREAD_LOCAL uint32_t lep_thread;
void lep_look_at_core(int64_t now_ns, lep_interval interval);

static inline int64_t lep_starts(void) {
    int64_t now_ns = lep_clock_ns();
    if (now_ns > lep_look_due_ns)
        lep_look_at_core(now_ns, LEP_OWN_CODE);
    return now_ns;
}

static inline int64_t lep_ended(void) {
    int64_t now_ns = lep_clock_ns();
    if (now_ns <= lep_look_due_ns)
        return now_ns;
    lep_look_at_core(now_ns, LEP_IN_CALL);
    return lep_clock_ns();
}

static inline void lep_kernel_ended(int64_t end_ns) {
    if (end_ns > lep_look_due_ns)
        lep_look_at_core(end_ns, LEP_IN_KERNEL);
}

extern int64_t lep_base_ns; /* of the header */
void lep_sites_open(const char *folder, int rank);
uint16_t lep_site_of(const uintptr_t *frame, uintptr_t address);

/* Inlined: the frame and the return address are those of the routine that the program has called. */
static inline __attribute__((always_inline)) bool lep_call_begin(void) {
    if (!lep_open || lep_inside_call)
        return false;
    lep_inside_call = true;
    lep_site = lep_site_of(__builtin_frame_address(0), (uintptr_t)__builtin_return_address(0));
    return true;
}

static inline void lep_call_end(void) {
    lep_inside_call = false;
}
#endif

/* Programs may call MPI from several threads; what is guarded takes a few nanoseconds. */
static inline void lep_enter(atomic_flag *guard) {
    while (atomic_flag_test_and_set_explicit(guard, memory_order_acquire)) {
    }
}

static inline void lep_leave(atomic_flag *guard) {
    atomic_flag_clear_explicit(guard, memory_order_release);
}

/* A kernel without columns: HPL calls three of them after each look for a panel, millions in a long wait. */
static inline bool lep_no_work(int64_t n) {
    return n == 0 && !lep_every_call;
}

/* The code of a name, found at the first call and kept in *code. */
int lep_code(int *code, lep_record_kind kind, const char *name);
lep_record_row *lep_put(const lep_record_row *row);    /* where it is now; NULL where there was no room */
extern LEP_THREAD_LOCAL lep_record_row *lep_last_look; /* the row before, where that is a look that found nothing */

#ifndef LEP_RECORD_SMPI
static inline uint32_t lep_duration(int64_t took_ns) {
    uint64_t took = took_ns > 0 ? (uint64_t)took_ns : 0, most = UINT32_MAX >> 1, coarse = took >> 10;
    return (uint32_t)(took <= most ? took : (coarse < most ? coarse : most) | (most + 1));
}

static inline int64_t lep_duration_ns(uint32_t duration) {
    return duration <= UINT32_MAX >> 1 ? duration : (int64_t)(duration & (UINT32_MAX >> 1)) << 10;
}

static inline lep_record_row lep_row(int code, int64_t start_ns, int64_t end_ns) {
    return (lep_record_row){.start_ns = (uint64_t)(start_ns - lep_base_ns),
                            .site = lep_site,
                            .duration = lep_duration(end_ns - start_ns),
                            .step_and_code = ((uint32_t)(lep_step + 1) << LEP_RECORD_THREAD_BITS | lep_thread)
                                                 << LEP_RECORD_CODE_BITS |
                                             (uint32_t)code};
}

static inline void lep_write_kernel(int code, int64_t start_ns, int64_t end_ns, int m, int n, int k) {
    lep_record_row row = lep_row(code, start_ns, end_ns);
    row.kernel.m = m;
    row.kernel.n = n;
    row.kernel.k = k;
    row.kernel.unused = 0;
    lep_put(&row);
    lep_last_look = NULL;
}

static inline void lep_write_message(int code, int64_t start_ns, int64_t end_ns, int peer, int tag, int64_t size_bytes,
                                     uint16_t comm) {
    lep_record_row row = lep_row(code, start_ns, end_ns);
    row.message.peer = peer;
    row.message.tag = tag;
    row.message.size_bytes = size_bytes;
    row.message.comm = comm;
    lep_put(&row);
    lep_last_look = NULL;
}

static inline void lep_write_completed(int code, int64_t start_ns, int peer, int tag, int64_t by_start_ns) {
    lep_record_row row = lep_row(code, start_ns, start_ns);
    row.completed.peer = peer;
    row.completed.tag = tag;
    row.completed.by_start_ns = by_start_ns;
    lep_put(&row);
    lep_last_look = NULL;
}
#endif

/* The next definition of a symbol after ours; ends the program where there is none. Never NULL. */
void *lep_next_symbol(const char *name);

void lep_record_open(int rank, int ranks, const char *mpi);
lep_record_header *lep_record_file(void); /* NULL where nothing is recorded */
void lep_record_close(lep_record_end how);
void lep_core_before(void);                   /* MPI_Init */
void lep_core_begin(lep_record_header *file); /* in MPI_Init, behind all else */
void lep_core_end(lep_record_header *file);
int64_t lep_record_took_ns(void); /* the calls of MPI_Test so far */
void lep_record_rewind(void);     /* the next row is the first */

#ifdef LEP_RECORD_SMPI
void lep_write_message(int code, int64_t start_ns, int64_t end_ns, int peer, int tag, int64_t size_bytes,
                       uint16_t comm);
void lep_write_completed(int code, int64_t start_ns, int peer, int tag, int64_t by_start_ns);
void lep_write_look(int code, int64_t start_ns, int64_t end_ns, int peer, int tag, uint16_t comm);
void lep_write_test(int code, int64_t start_ns, int64_t end_ns);
#else
enum { SAME_WAIT_NS = 20000 };

static inline int64_t lep_since_ns(const lep_record_row *row, int64_t now_ns) {
    return now_ns - lep_base_ns - ((int64_t)row->start_ns + lep_duration_ns(row->duration));
}

/* Of a row of looks, which may grow. */
static inline void lep_put_look(lep_record_row row) {
    row.message.size_bytes = -1;
    lep_last_look = lep_put(&row);
    if (lep_every_call)
        lep_last_look = NULL;
}

/* A look that found nothing. Successive looks for the same message are one row, from the first to the last: they are
 * one wait, and a row each would fill a disk. */
static inline void lep_write_look(int code, int64_t start_ns, int64_t end_ns, int peer, int tag, uint16_t comm) {
    lep_record_row row = lep_row(code, start_ns, end_ns);
    lep_record_row *last = lep_last_look;
    if (last && last->step_and_code == row.step_and_code && last->message.peer == peer && last->message.tag == tag &&
        last->message.comm == comm && lep_since_ns(last, start_ns) < SAME_WAIT_NS) {
        last->duration = lep_duration(end_ns - lep_base_ns - (int64_t)last->start_ns);
        last->message.size_bytes--;
        return;
    }
    row.message.peer = peer;
    row.message.tag = tag;
    row.message.comm = comm;
    lep_put_look(row);
}

/* A test that found nothing. A program may compute between its tests, so that their row has the time between them. */
static inline void lep_write_test(int code, int64_t start_ns, int64_t end_ns) {
    lep_record_row row = lep_row(code, start_ns, end_ns);
    lep_record_row *last = lep_last_look;
    int64_t since_ns = last ? lep_since_ns(last, start_ns) : 0;
    if (last && last->step_and_code == row.step_and_code && since_ns < SAME_WAIT_NS &&
        last->message.tag < INT32_MAX - SAME_WAIT_NS) {
        last->duration = lep_duration(end_ns - lep_base_ns - (int64_t)last->start_ns);
        last->message.tag += (int32_t)since_ns;
        last->message.size_bytes--;
        return;
    }
    row.message.peer = -1;
    row.message.tag = 0;
    row.message.comm = 0;
    lep_put_look(row);
}
#endif

#endif
