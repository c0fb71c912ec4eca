/* probe-semantics: what MPI_Send and MPI_Isend of a size promise, between two ranks, one test a row.
 *
 * deadlock: rank 0 sends; rank 1 posts its receive when rank 0 has said that MPI_Send returned, or when its patience is
 * over: returned, or blocked. Rank 1 looks for what rank 0 says all the time, so the library has its attention.
 *
 * silent: the same, but rank 1 makes no call of MPI until its patience is over, as a rank that computes: a library may
 * need the receiver's attention without needing its receive. With a `backlog` rank 0 sends that many messages before
 * the last one: where a library copies into a pool, the pool runs out, and `returned` says after how many sends.
 *
 * corruption: rank 0 calls MPI_Isend, overwrites the buffer, and only then lets rank 1 post the receive: rank 1 gets
 * what was there (copied) or what was written later (changed), if only in one byte. MPI forbids such a program; that is
 * how it tells when a library reads the buffer.
 *
 * head_to_head: both ranks send, then receive: returned, or a deadlock that nothing but the guard ends.
 *
 * The guard: a test that lasts longer than its patience and --guard-s writes its row with the outcome `hung` and ends
 * this process, and so, by mpirun, the other one. It is a timer of the kernel in each rank, so nobody else needs to
 * live for it.
 */
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "probe_common.h"
#include "probe_mpi.h"

typedef enum { DEADLOCK, SILENT, CORRUPTION, HEAD_TO_HEAD, TESTS } test_kind;

static const char *const test_names[TESTS] = {"deadlock", "silent", "corruption", "head_to_head"};

typedef enum { RETURNED, BLOCKED, COPIED, CHANGED } outcome;

static const char *const outcome_names[] = {"returned", "blocked", "copied", "changed"};

enum { MAX_SIZE = 1 << 30, MAX_BACKLOG = 4096, TAG = 7, WARM_UP_ROUNDS = 20, STATUS_HUNG = 3 };
enum { OLD = 0x5A, NEW = 0xA5 };

typedef struct {
    const char *name, *what; /* design_row and test as text */
    test_kind test;
    int size, backlog;
    int patience_ms;
} test_row;

typedef struct {
    unsigned char *buffer;
    MPI_Comm payload, telling; /* apart, so that no receive of one takes a message of the other */
    int rank;
} bench;

typedef struct {
    int64_t start_ns, end_ns;
    int outcome, returned;
} result;

/* What the handler writes must be there before it is needed: it may call little more than write(). */
static struct {
    char text[512];
    size_t length;
    int file;
} last_words;

static void give_up(int number) {
    (void)number;
    ssize_t written = write(last_words.file, last_words.text, last_words.length);
    (void)written;
    _exit(STATUS_HUNG);
}

static void guard(const test_row *row, FILE *file, int cpu, double limit_s) {
    last_words.file = fileno(file);
    int length = snprintf(last_words.text, sizeof last_words.text, "%s,%s,%d,%d,%d,hung,0,%.9f,%.9f,%d,%d\n", row->name,
                          row->what, row->size, row->backlog, row->patience_ms, 1e-9 * (double)lep_now_ns(), limit_s,
                          lep_self.rank, cpu);
    last_words.length = length > 0 ? (size_t)length : 0;
    /* Rank 0 first: its row is the one that counts, and its end is that of rank 1. */
    double wait_s = lep_self.rank == 0 ? limit_s : limit_s + 0.5;
    struct itimerval timer = {.it_value = {(time_t)wait_s, (suseconds_t)((wait_s - (double)(time_t)wait_s) * 1e6)}};
    setitimer(ITIMER_REAL, &timer, NULL);
}

static void dismiss_guard(void) {
    setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
}

static void tell(bench *b) {
    char nothing = 0;
    MPI_Send(&nothing, 1, MPI_CHAR, 1, TAG, b->telling);
}

static void hear(bench *b) {
    char nothing;
    MPI_Recv(&nothing, 1, MPI_CHAR, 0, TAG, b->telling, MPI_STATUS_IGNORE);
}

/* Both rows of a test have the outcome, which one rank knows. */
static void share_outcome(bench *b, result *seen, int knowing) {
    int known[2] = {seen->outcome, seen->returned};
    MPI_Bcast(known, 2, MPI_INT, knowing, b->telling);
    seen->outcome = known[0];
    seen->returned = known[1];
}

static void receive(bench *b, int size, result *seen) {
    LEP_TIMED(seen, MPI_Recv(b->buffer, size, MPI_BYTE, 0, TAG, b->payload, MPI_STATUS_IGNORE));
}

/* Longer than a copy takes at 0.5 GB/s. */
static int64_t patience_of(const test_row *row) {
    return 1000000 * (int64_t)row->patience_ms + 2 * (int64_t)row->size * (row->backlog + 1);
}

/* Rank 1 leaves when it hears that rank 0 begins: it waits from then on, however late rank 0 got its core. So a send
 * that is said to have returned has; one that is said to block may have been kept from its core. */
static void begin(bench *b) {
    lep_mpi_meet(b->telling);
    if (b->rank == 0)
        tell(b);
    else
        hear(b);
}

static result run_deadlock(bench *b, const test_row *row) {
    result seen = {.outcome = RETURNED};
    begin(b);
    if (b->rank == 0) {
        LEP_TIMED(&seen, MPI_Send(b->buffer, row->size, MPI_BYTE, 1, TAG, b->payload));
        tell(b);
        share_outcome(b, &seen, 1);
        return seen;
    }
    /* A send that returns is heard of at once: only one that does not costs the patience. */
    int64_t until = lep_now_ns() + patience_of(row);
    int found = 0;
    while (!found && lep_now_ns() < until)
        MPI_Iprobe(0, TAG, b->telling, &found, MPI_STATUS_IGNORE);
    seen.outcome = found ? RETURNED : BLOCKED;
    seen.returned = found;
    receive(b, row->size, &seen);
    hear(b);
    share_outcome(b, &seen, 1);
    return seen;
}

static result run_silent(bench *b, const test_row *row) {
    result seen = {.outcome = RETURNED};
    int64_t patience_ns = patience_of(row);
    if (b->rank == 0) {
        lep_mpi_meet(b->telling);
        int64_t until =
            lep_now_ns() + patience_ns; /* before rank 1 hears that it begins: rank 0 stops counting first */
        tell(b);
        for (int i = 0; i <= row->backlog; i++) {
            LEP_TIMED(&seen, MPI_Send(b->buffer, row->size, MPI_BYTE, 1, TAG, b->payload));
            seen.returned += seen.end_ns < until;
        }
    } else {
        lep_mpi_meet(b->telling);
        hear(b);
        lep_spin_ns(patience_ns);
        for (int i = 0; i <= row->backlog; i++)
            receive(b, row->size, &seen);
    }
    seen.outcome = seen.returned > row->backlog ? RETURNED : BLOCKED;
    share_outcome(b, &seen, 0);
    return seen;
}

static result run_corruption(bench *b, const test_row *row) {
    result seen = {.outcome = COPIED};
    size_t size = (size_t)row->size;
    memset(b->buffer, b->rank == 0 ? OLD : 0, size);
    lep_mpi_meet(b->telling);
    if (b->rank == 0) {
        MPI_Request request;
        LEP_TIMED(&seen, MPI_Isend(b->buffer, row->size, MPI_BYTE, 1, TAG, b->payload, &request));
        memset(b->buffer, NEW, size);
        tell(b);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        share_outcome(b, &seen, 1);
        return seen;
    }
    hear(b);
    receive(b, row->size, &seen);
    for (size_t i = 0; i < size; i++) {
        if (b->buffer[i] != OLD && b->buffer[i] != NEW)
            lep_fail_alone("design row %s: a byte arrived that was never sent", row->name);
        if (b->buffer[i] == NEW)
            seen.outcome = CHANGED;
    }
    share_outcome(b, &seen, 1);
    return seen;
}

static result run_head_to_head(bench *b, const test_row *row) {
    result seen = {.outcome = RETURNED, .returned = 1};
    lep_mpi_meet(b->telling);
    LEP_TIMED(&seen, MPI_Send(b->buffer, row->size, MPI_BYTE, 1 - b->rank, TAG, b->payload));
    MPI_Recv(b->buffer, row->size, MPI_BYTE, 1 - b->rank, TAG, b->payload, MPI_STATUS_IGNORE);
    return seen;
}

static result (*const runs[TESTS])(bench *b, const test_row *row) = {run_deadlock, run_silent, run_corruption,
                                                                     run_head_to_head};

static test_row *read_rows(const lep_design *design) {
    size_t name = lep_design_column(design, "design_row"), what = lep_design_column(design, "test"),
           size = lep_design_column(design, "size_bytes"), backlog = lep_design_column(design, "backlog"),
           patience = lep_design_column(design, "patience_ms");
    test_row *rows = lep_allocate(design->rows * sizeof *rows, "the design");
    for (size_t i = 0; i < design->rows; i++) {
        int found = lep_design_choice(design, i, what, test_names, TESTS);
        lep_design_integer(design, i, name, 0, 1000000000);
        int waiting = (int)lep_design_integer(design, i, backlog, 0, MAX_BACKLOG);
        if (waiting && found != SILENT)
            lep_design_fail(design, i, "backlog is %d; only a silent test has messages before its last", waiting);
        rows[i] = (test_row){lep_design_text(design, i, name),
                             test_names[found],
                             (test_kind)found,
                             (int)lep_design_integer(design, i, size, 0, MAX_SIZE),
                             waiting,
                             (int)lep_design_integer(design, i, patience, 1, 100000)};
    }
    return rows;
}

/* First contacts between the ranks open connections: no test shall wait for them. */
static void warm_up(bench *b) {
    for (int round = 0; round < WARM_UP_ROUNDS; round++) {
        run_corruption(b, &(test_row){"-", "-", CORRUPTION, round % 2, 0, 1});
        for (int turn = 0; turn < 2; turn++)
            if (b->rank == turn)
                MPI_Send(b->buffer, 1024, MPI_BYTE, 1 - b->rank, TAG, b->payload);
            else
                MPI_Recv(b->buffer, 1024, MPI_BYTE, 1 - b->rank, TAG, b->payload, MPI_STATUS_IGNORE);
    }
}

int main(int argc, char **argv) {
    int ranks;
    lep_mpi_start("probe-semantics", &argc, &argv, &ranks);
    lep_option options[] = {
        {"--design", NULL, true, "table of tests and sizes"},
        {"--out", NULL, true, "raw file; rank r writes FILE.r<r>"},
        {"--seed", NULL, true, "goes into the header; nothing is drawn"},
        {"--cpus", "0,1", false, "core of each rank"},
        {"--guard-s", "5", false, "a test that lasts longer, beyond its patience, ends the program"},
    };
    size_t count = sizeof options / sizeof options[0];
    lep_options_read(options, count, argc, argv);
    long long seed = lep_option_integer(options, count, "--seed", 0, INT64_MAX);
    long long guard_s = lep_option_integer(options, count, "--guard-s", 1, 3600);
    if (ranks != 2)
        lep_fail("runs on two ranks, not %d: mpirun -np 2", ranks);
    lep_design design = lep_design_read(lep_option_text(options, count, "--design"));
    test_row *rows = read_rows(&design);
    int cpus[2] = {lep_option_cpu(options, count, "--cpus", 0), lep_option_cpu(options, count, "--cpus", 1)};
    int cpu = cpus[lep_self.rank];
    lep_pin(cpu);

    size_t bytes = 1 << 16;
    for (size_t i = 0; i < design.rows; i++)
        if ((size_t)rows[i].size > bytes)
            bytes = (size_t)rows[i].size;
    bench b = {.rank = lep_self.rank};
    b.buffer = lep_allocate(bytes, "a message");
    MPI_Comm_dup(MPI_COMM_WORLD, &b.payload);
    MPI_Comm_dup(MPI_COMM_WORLD, &b.telling);

    const char *path = lep_mpi_path(lep_option_text(options, count, "--out"));
    FILE *file = lep_output_open(path, lep_mpi_library(), seed, argc, argv);
    lep_output_note(file, "patience_s", "1e-03 * patience_ms + 2e-09 * size_bytes * (backlog + 1)");
    lep_output_note(file, "guard_s", "%lld", guard_s);
    lep_output_columns(file,
                       "design_row,test,size_bytes,backlog,patience_ms,outcome,returned,start_s,duration_s,rank,cpu");
    lep_output_flush(file, path);

    signal(SIGALRM, give_up);
    warm_up(&b);
    for (size_t i = 0; i < design.rows; i++) {
        guard(&rows[i], file, cpu, (double)guard_s + 1e-9 * (double)patience_of(&rows[i]));
        result seen = runs[rows[i].test](&b, &rows[i]);
        dismiss_guard();
        fprintf(file, "%s,%s,%d,%d,%d,%s,%d,%.9f,%.9f,%d,%d\n", rows[i].name, rows[i].what, rows[i].size,
                rows[i].backlog, rows[i].patience_ms, outcome_names[seen.outcome], seen.returned,
                1e-9 * (double)seen.start_ns, 1e-9 * (double)(seen.end_ns - seen.start_ns), lep_self.rank, cpu);
        lep_output_flush(file, path); /* the guard writes past this buffer: it must be empty */
    }
    lep_output_close(file, path);
    free(rows);
    MPI_Comm_free(&b.payload);
    MPI_Comm_free(&b.telling);
    MPI_Finalize();
    return 0;
}
