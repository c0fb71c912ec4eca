/* What all probes share: options, the clock, pinning, random numbers, design tables, raw files.
 *
 * Errors: a problem that every rank meets alike (a wrong option, a bad design) ends in lep_fail: one line on standard
 * error, exit status 2. A problem of one rank alone (its core cannot be had) ends in lep_fail_alone, which takes the
 * other ranks along.
 */
#ifndef LEPAUTE_PROBE_COMMON_H
#define LEPAUTE_PROBE_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#ifndef LEPAUTE_VERSION
#define LEPAUTE_VERSION "unknown"
#endif

typedef struct {
    const char *name;            /* of the program, starts every message */
    int rank;                    /* 0 without MPI; only rank 0 prints what all ranks would print */
    void (*leave)(void);         /* before an orderly exit (MPI_Finalize), or NULL */
    void (*abort_all)(int code); /* ends all ranks (MPI_Abort), or NULL */
} lep_process;

extern lep_process lep_self;

_Noreturn void lep_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
_Noreturn void lep_fail_alone(const char *format, ...) __attribute__((format(printf, 1, 2)));

typedef struct {
    const char *name;  /* with its dashes: "--design" */
    const char *value; /* the default on entry (NULL: none), what was given on return */
    bool required;
    const char *help;
} lep_option;

/* Takes `--name value` and `--name=value`. Unknown, repeated or missing options end the program with status 2. */
void lep_options_read(lep_option *options, size_t count, int argc, char **argv);
const char *lep_option_text(const lep_option *options, size_t count, const char *name);
long long lep_option_integer(const lep_option *options, size_t count, const char *name, long long low, long long high);
/* Number `index` of a list such as "0,1"; a list that is too short is an error. */
int lep_option_cpu(const lep_option *options, size_t count, const char *name, int index);
/* The place of the value among these words; another one is an error. */
int lep_option_choice(const lep_option *options, size_t count, const char *name, const char *const *words, int number);
/* How many numbers such a list has. */
int lep_option_length(const lep_option *options, size_t count, const char *name);

/* What is of this name in a list, NULL where nothing is. */
#define LEP_FIND_NAMED(type, function, list, count)                                                                    \
    const type *function(const char *name) {                                                                           \
        for (size_t i = 0; i < (size_t)(count); i++)                                                                   \
            if (strcmp((list)[i].name, name) == 0)                                                                     \
                return &(list)[i];                                                                                     \
        return NULL;                                                                                                   \
    }

static inline int64_t lep_now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Stamps of right before and right after some statements; `time` points to start_ns and end_ns. */
#define LEP_TIMED(time, ...)                                                                                           \
    do {                                                                                                               \
        (time)->start_ns = lep_now_ns();                                                                               \
        __VA_ARGS__;                                                                                                   \
        (time)->end_ns = lep_now_ns();                                                                                 \
    } while (0)

static inline void lep_spin_ns(int64_t duration_ns) {
    int64_t until = lep_now_ns() + duration_ns;
    while (lep_now_ns() < until) {
    }
}

static inline void lep_sleep_ns(int64_t duration_ns) {
    const struct timespec pause = {duration_ns / 1000000000, duration_ns % 1000000000};
    if (duration_ns > 0)
        nanosleep(&pause, NULL);
}

/* Median difference of two stamps taken back to back, in seconds: what every raw duration contains. */
double lep_clock_cost_s(void);
/* For qsort(). */
int lep_compare_int64(const void *left, const void *right);
/* Binds the calling process to one core, or fails alone. */
void lep_pin(int cpu);
/* Binds all threads that the process has by now, those of the BLAS among them, to some cores, or fails alone. */
void lep_pin_threads(const int *cpus, int count);

/* xorshift64*: the same numbers everywhere. */
typedef struct {
    uint64_t state;
} lep_random;

lep_random lep_random_seeded(uint64_t seed, uint64_t stream);

static inline uint64_t lep_random_bits(lep_random *random) {
    uint64_t x = random->state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    random->state = x;
    return x * UINT64_C(2685821657736338717);
}

static inline uint64_t lep_random_below(lep_random *random, uint64_t bound) {
    return bound ? lep_random_bits(random) % bound : 0; /* the bias of % is below 2^-30 for our bounds */
}

void lep_random_fill(lep_random *random, double *values, size_t count); /* uniform in [-0.5, 0.5) */

typedef struct {
    const char *path;
    size_t rows, columns;
    char **names; /* columns */
    char **cells; /* rows x columns, row by row */
    int *lines;   /* line number in the file, of each row */
    char *text;   /* the file's bytes, which names and cells point into */
} lep_design;

lep_design lep_design_read(const char *path);
size_t lep_design_column(const lep_design *design, const char *name);
/* The same, or `design->columns` where there is none. */
size_t lep_design_find(const lep_design *design, const char *name);
const char *lep_design_text(const lep_design *design, size_t row, size_t column);
long long lep_design_integer(const lep_design *design, size_t row, size_t column, long long low, long long high);
int lep_design_choice(const lep_design *design, size_t row, size_t column, const char *const *words, int number);
/* Fails with "FILE:LINE: message". */
_Noreturn void lep_design_fail(const lep_design *design, size_t row, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Opens the file and writes the header lines; `mpi` is NULL without MPI; `columns` is the line that names them. */
FILE *lep_output_open(const char *path, const char *mpi, long long seed, int argc, char **argv);
void lep_output_note(FILE *file, const char *key, const char *format, ...) __attribute__((format(printf, 3, 4)));
void lep_output_columns(FILE *file, const char *columns);
void lep_output_flush(FILE *file, const char *path);
void lep_output_close(FILE *file, const char *path);

/* Memory that has been written once, so that no page fault falls into a timed region. */
void *lep_allocate(size_t bytes, const char *what);

#endif
