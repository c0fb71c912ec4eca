/* The recorder: a library that is loaded before a program's own ones (LD_PRELOAD), and writes a row for every MPI and
 * BLAS call of the program into a file a rank. What the rows mean is in docs/concepts/traces.md; this is their raw
 * form.
 *
 * A program may add rows of its own, without being linked with anything: it asks dlsym(RTLD_DEFAULT,
 * LEP_RECORD_HOOKS) for the functions below, and does without where that is NULL. xhpl-lepaute does so for the loops
 * and phases of HPL, which are no dynamic symbols. */
#ifndef LEPAUTE_RECORD_H
#define LEPAUTE_RECORD_H

#include <stdbool.h>
#include <stdint.h>

/* ---- the file: a header, then rows in the order in which the calls ended -------------------------------------- */

enum {
    LEP_RECORD_NAMES = 448,
    LEP_RECORD_NAME_BYTES = 32,
    LEP_RECORD_HEADER_BYTES = 20480,
    LEP_RECORD_NOTES_BYTES = 4096,
    LEP_RECORD_CODE_BITS = 9,
    LEP_RECORD_THREAD_BITS = 6, /* the last number is that of all further threads */
    LEP_RECORD_STEPS = (1 << 17) - 1,
    LEP_RECORD_CHUNK_ROWS = 1 << 16, /* rows are mapped into memory 2 MiB at a time */
    LEP_RECORD_CHUNKS = 1 << 13,
};

enum { LEP_RECORD_PROC_NULL = -2 };
#define LEP_RECORD_COMPLETED "(completed)"
#define LEP_RECORD_WAITED "(waited)" /* rows of time within own code in which the thread had no core ... */
#define LEP_RECORD_SLEPT "(slept)"   /* ... or wanted none; peer is 1 in the kernel before, else 0 */

typedef enum { LEP_RUNNING, LEP_FINALIZED, LEP_ABORTED, LEP_EXITED } lep_record_end;
typedef enum { LEP_RECORD_KERNEL, LEP_RECORD_MPI, LEP_RECORD_PHASE } lep_record_kind;

/* What to add to this rank's clock to get rank 0's, known at one moment of this rank's clock. */
typedef struct {
    int64_t at_ns, add_ns, round_trip_ns; /* no round trip where the clock is the same one */
} lep_record_clock;

typedef struct {
    uint8_t kind;
    char name[LEP_RECORD_NAME_BYTES - 1];
} lep_record_name;

typedef struct {
    char magic[8]; /* "LEPREC5" */
    uint32_t header_bytes, row_bytes;
    int32_t rank, ranks, pid, finished; /* lep_record_end */
    int64_t used, lost;                 /* rows written, and rows that found no room */
    int64_t start_ns;                   /* of this rank's clock, after all ranks had come together in MPI_Init */
    int64_t end_ns;             /* when the program called MPI_Finalize, or ended without, 0 where it was killed */
    lep_record_clock clocks[2]; /* in MPI_Init, and in MPI_Finalize where the program came that far */
    char host[64], mpi[160];
    uint32_t names;   /* code c is names_of[c]; 0 is no code */
    uint32_t fortran; /* whether the program initialized MPI by a Fortran routine that passes by the C one */
    lep_record_name names_of[LEP_RECORD_NAMES];
    char notes[LEP_RECORD_NOTES_BYTES]; /* lines, what a program tells of itself */
    uint32_t cost_ps[2];                /* what a row takes between the end of its call and the next call; what a
                                         * test takes there that found nothing, as the one before */
    uint64_t affinity[16];              /* a bit for each core that the rank may use in MPI_Init */
    int32_t cores, threads;             /* online; of the program at its end, those of the MPI library left out */
    int32_t thread_level, abort_code;
    int64_t base_ns; /* of this rank's clock: what the starts of rows count from */
} lep_record_header;

_Static_assert(sizeof(lep_record_header) <= LEP_RECORD_HEADER_BYTES, "the header has a fixed size");

/* Half a line of the cache: what a row costs is above all the memory that it takes. */
typedef struct {
    uint64_t start_ns : 48; /* since base_ns of the header: from 0 again after 78 hours */
    uint64_t site : 16;     /* the place of the call: a line of rank-N.sites, 0 where it is not known */
    uint32_t duration;      /* nanoseconds below 2^31; else the highest bit is set and the rest counts 1024 ns */
    uint32_t step_and_code; /* code in the lowest LEP_RECORD_CODE_BITS bits, then thread, then 1 + step or 0 */
    union {
        struct {
            int32_t m, n, k, unused;
        } kernel; /* and phase */
        struct {
            int32_t peer;            /* rank in MPI_COMM_WORLD, -1 where there is none, or LEP_RECORD_PROC_NULL */
            int32_t tag;             /* or -1; of a collective operation its communicator (record_world.h); of tests
                                      * that found nothing the nanoseconds between them */
            int64_t size_bytes : 48; /* of a probe that found nothing: minus the number of looks */
            uint64_t comm : 16;      /* of messages between two ranks the lowest bits of the communicator */
        } message;
        struct {                 /* LEP_RECORD_COMPLETED: a request that began at start_ns is over */
            int32_t peer, tag;   /* what came, of a receive */
            int64_t by_start_ns; /* of this rank's clock: when the wait or test began that found it so */
        } completed;
    };
} lep_record_row;

_Static_assert(sizeof(lep_record_row) == 32, "rows follow each other without gaps");

/* ---- for programs that add rows ------------------------------------------------------------------------------- */

#define LEP_RECORD_HOOKS "lepaute_record_hooks"

typedef struct {
    int version; /* 1 */
    int (*code)(lep_record_kind kind, const char *name);
    int64_t (*now)(void);                                         /* 0 while nothing is recorded */
    void (*add)(int code, int64_t start_ns, int m, int n, int k); /* from start_ns to now; nothing where that is 0 */
    int (*step)(int step);                                        /* sets it for the rows that follow; the one before */
    int64_t (*messages)(void);                                    /* MPI calls of this rank so far, less its probes */
    void (*note)(const char *line); /* one more line of notes; passed over when the room is full */
} lep_record_hooks;

#endif
