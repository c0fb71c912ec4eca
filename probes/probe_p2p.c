/* probe-p2p: point-to-point operations between two ranks, one row a call, in the order of the design.
 *
 * recv      rank 1   duration of MPI_Recv of a message that is already there (eager) or announced (rendezvous)
 * isend     rank 0   duration of the MPI_Isend call alone; the receive is posted before
 * pingpong  rank 0   there and back
 * exchange  both     MPI_Irecv + MPI_Send + MPI_Wait on both sides at once, as HPL exchanges rows
 * strided   rank 0   a message of 128 columns of a matrix, as a derived datatype made for it, and an empty answer
 * seen      rank 1   each MPI_Iprobe until one finds a message that has come long before, a row each
 * iprobe    both     one MPI_Iprobe that finds nothing
 * test      both     one MPI_Test of a receive that has not come
 * wtime     both     one MPI_Wtime
 *
 * Before each the ranks meet twice: an exchange of one byte, then a barrier, so that both are awake and the library
 * has nothing left to do. Buffers are those of a program: up to 64 KiB always the same work array, written just before,
 * as for the messages of a pivot search; larger ones at random places of a region written long before, as for matrices
 * between which the program has computed. --buffers warm or cold makes all of them of the one kind. The columns of a
 * strided message have just been written and are received into memory just allocated, as HPL's panels are.
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "probe_common.h"
#include "probe_mpi.h"

typedef enum { RECV, ISEND, PINGPONG, EXCHANGE, STRIDED, SEEN, IPROBE, TEST, WTIME, OPERATIONS } operation;

static const char *const operation_names[OPERATIONS] = {"recv", "isend",  "pingpong", "exchange", "strided",
                                                        "seen", "iprobe", "test",     "wtime"};

typedef struct {
    const char *name, *what; /* design_row and operation as text, copied to the row */
    operation operation;
    int size;
} p2p_row;

typedef struct {
    int64_t start_ns, end_ns; /* end_ns 0: this rank has nothing to report */
} span;

typedef struct {
    char *send, *receive; /* regions */
    size_t bytes;         /* of each */
    int warm_up_to;       /* bytes: smaller messages use the same buffer each time */
    lep_random random;
    MPI_Comm payload, meeting; /* apart, so that a probe of the payload never sees a meeting */
    int rank;
} bench;

enum { MAX_SIZE = 1 << 30, TAG = 7, WARM_UP_ROUNDS = 50, WORK_ARRAY = 64 << 10, COLUMNS = 128 };

static p2p_row *read_rows(const lep_design *design) {
    size_t name = lep_design_column(design, "design_row"), what = lep_design_column(design, "operation"),
           size = lep_design_column(design, "size_bytes");
    p2p_row *rows = lep_allocate(design->rows * sizeof *rows, "the design");
    for (size_t i = 0; i < design->rows; i++) {
        int found = lep_design_choice(design, i, what, operation_names, OPERATIONS);
        lep_design_integer(design, i, name, 0, 1000000000);
        if (found == STRIDED && lep_design_integer(design, i, size, 0, MAX_SIZE) % (8LL * COLUMNS) != 0)
            lep_design_fail(design, i, "size_bytes of a strided message is a multiple of %d", COLUMNS * 8);
        rows[i] = (p2p_row){lep_design_text(design, i, name), operation_names[found], (operation)found,
                            (int)lep_design_integer(design, i, size, 0, MAX_SIZE)};
    }
    return rows;
}

/* Longer than the message takes at 1 GB/s. Beyond 4 MiB nobody sends eagerly, and the announcement is there long
 * before. */
static int64_t arrival_ns(int size) {
    return 20000 + (size < (4 << 20) ? size : (4 << 20));
}

static char *place(bench *b, char *region, int size) {
    if (size <= b->warm_up_to) {
        memset(region, 1, (size_t)size);
        return region;
    }
    size_t places = (b->bytes - (size_t)size) / 64 + 1;
    return region + 64 * lep_random_below(&b->random, places);
}

static void write_row(FILE *file, const p2p_row *row, span time, int rank, int cpu) {
    fprintf(file, "%s,%s,%d,%.9f,%.9f,%d,%d\n", row->name, row->what, row->size, 1e-9 * (double)time.start_ns,
            1e-9 * (double)(time.end_ns - time.start_ns), rank, cpu);
}

static span run_recv(bench *b, int size) {
    span time = {0, 0};
    char *buffer = place(b, b->rank == 0 ? b->send : b->receive, size);
    lep_mpi_meet(b->meeting);
    if (b->rank == 0) {
        MPI_Send(buffer, size, MPI_BYTE, 1, TAG, b->payload);
        return time;
    }
    lep_spin_ns(arrival_ns(size));
    LEP_TIMED(&time, MPI_Recv(buffer, size, MPI_BYTE, 0, TAG, b->payload, MPI_STATUS_IGNORE));
    return time;
}

static span run_isend(bench *b, int size) {
    span time = {0, 0};
    MPI_Request request;
    char *buffer = place(b, b->rank == 0 ? b->send : b->receive, size);
    if (b->rank == 1)
        MPI_Irecv(buffer, size, MPI_BYTE, 0, TAG, b->payload, &request);
    lep_mpi_meet(b->meeting);
    if (b->rank == 0) {
        LEP_TIMED(&time, MPI_Isend(buffer, size, MPI_BYTE, 1, TAG, b->payload, &request));
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return time;
}

static span run_pingpong(bench *b, int size) {
    span time = {0, 0};
    char *out = place(b, b->send, size), *in = place(b, b->receive, size);
    lep_mpi_meet(b->meeting);
    if (b->rank == 0) {
        LEP_TIMED(&time, MPI_Send(out, size, MPI_BYTE, 1, TAG, b->payload);
                  MPI_Recv(in, size, MPI_BYTE, 1, TAG, b->payload, MPI_STATUS_IGNORE));
    } else {
        MPI_Recv(in, size, MPI_BYTE, 0, TAG, b->payload, MPI_STATUS_IGNORE);
        MPI_Send(out, size, MPI_BYTE, 0, TAG, b->payload);
    }
    return time;
}

static span run_exchange(bench *b, int size) {
    span time;
    MPI_Request request;
    char *out = place(b, b->send, size), *in = place(b, b->receive, size);
    lep_mpi_meet(b->meeting);
    LEP_TIMED(&time, MPI_Irecv(in, size, MPI_BYTE, 1 - b->rank, TAG, b->payload, &request);
              MPI_Send(out, size, MPI_BYTE, 1 - b->rank, TAG, b->payload); MPI_Wait(&request, MPI_STATUS_IGNORE));
    return time;
}

/* Columns of `rows` doubles, `stride` doubles from one to the next. */
static MPI_Datatype columns(int rows, int stride) {
    int lengths[COLUMNS];
    MPI_Aint places[COLUMNS];
    MPI_Datatype types[COLUMNS], made;
    for (int i = 0; i < COLUMNS; i++) {
        lengths[i] = rows;
        places[i] = (MPI_Aint)i * stride * (MPI_Aint)sizeof(double);
        types[i] = MPI_DOUBLE;
    }
    MPI_Type_create_struct(COLUMNS, lengths, places, types, &made);
    MPI_Type_commit(&made);
    return made;
}

static span run_strided(bench *b, int size) {
    span time = {0, 0};
    int rows = size / (COLUMNS * 8), stride = rows + rows / 2 + 8;
    char answer = 0;
    if (b->rank == 0) {
        double *matrix = (double *)(void *)b->send;
        for (int column = 0; column < COLUMNS; column++)
            for (int row = 0; row < rows; row++)
                matrix[(size_t)column * (size_t)stride + (size_t)row] += 1.0;
        lep_mpi_meet(b->meeting);
        time.start_ns = lep_now_ns();
        MPI_Datatype type = columns(rows, stride);
        MPI_Send(matrix, 1, type, 1, TAG, b->payload);
        MPI_Type_free(&type);
        MPI_Recv(&answer, 0, MPI_CHAR, 1, TAG, b->payload, MPI_STATUS_IGNORE);
        time.end_ns = lep_now_ns();
        return time;
    }
    void *panel = malloc((size_t)size);
    if (!panel)
        lep_fail_alone("out of memory for a message of %d bytes", size);
    MPI_Datatype type = columns(rows, rows);
    lep_mpi_meet(b->meeting);
    MPI_Recv(panel, 1, type, 0, TAG, b->payload, MPI_STATUS_IGNORE);
    MPI_Send(&answer, 0, MPI_CHAR, 0, TAG, b->payload);
    MPI_Type_free(&type);
    free(panel);
    return time;
}

/* A library may look for a message before it makes progress: then the first call misses what came since the rank's
 * last call. Every look is a row, written after the message has been received. */
enum { MOST_LOOKS = 64 };

static span run_seen(bench *b, const p2p_row *row, FILE *file, int cpu) {
    span looks[MOST_LOOKS], none = {0, 0};
    int found = 0, calls = 0;
    char *buffer = place(b, b->rank == 0 ? b->send : b->receive, row->size);
    lep_mpi_meet(b->meeting);
    if (b->rank == 0) {
        MPI_Send(buffer, row->size, MPI_BYTE, 1, TAG, b->payload);
        return none;
    }
    lep_spin_ns(10 * arrival_ns(row->size));
    while (!found) {
        span *look = &looks[calls < MOST_LOOKS ? calls++ : MOST_LOOKS - 1];
        LEP_TIMED(look, MPI_Iprobe(0, TAG, b->payload, &found, MPI_STATUS_IGNORE));
    }
    MPI_Recv(buffer, row->size, MPI_BYTE, 0, TAG, b->payload, MPI_STATUS_IGNORE);
    for (int i = 0; i < calls; i++)
        write_row(file, row, looks[i], b->rank, cpu);
    return none;
}

/* Both ranks measure the next three at once and then stay silent, so that no message of the next meeting arrives
 * while the other still measures. */
enum { SILENCE_NS = 20000 };

static span run_iprobe(bench *b, int size) {
    (void)size;
    span time;
    int found;
    lep_mpi_meet(b->meeting);
    lep_spin_ns(SILENCE_NS);
    LEP_TIMED(&time, MPI_Iprobe(1 - b->rank, TAG, b->payload, &found, MPI_STATUS_IGNORE));
    lep_spin_ns(SILENCE_NS);
    return time;
}

static span run_test(bench *b, int size) {
    (void)size;
    span time;
    int done;
    char in, out = 0;
    MPI_Request request;
    MPI_Irecv(&in, 1, MPI_CHAR, 1 - b->rank, TAG, b->payload, &request);
    lep_mpi_meet(b->meeting);
    lep_spin_ns(SILENCE_NS);
    LEP_TIMED(&time, MPI_Test(&request, &done, MPI_STATUS_IGNORE));
    lep_spin_ns(SILENCE_NS);
    MPI_Send(&out, 1, MPI_CHAR, 1 - b->rank, TAG, b->payload);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return time;
}

static span run_wtime(bench *b, int size) {
    span time;
    volatile double now;
    lep_mpi_meet(b->meeting);
    LEP_TIMED(&time, now = MPI_Wtime());
    (void)now, (void)size;
    return time;
}

static span (*const runs[OPERATIONS])(bench *b, int size) = {
    [RECV] = run_recv,       [ISEND] = run_isend,   [PINGPONG] = run_pingpong, [EXCHANGE] = run_exchange,
    [STRIDED] = run_strided, [IPROBE] = run_iprobe, [TEST] = run_test,         [WTIME] = run_wtime};

static span run(bench *b, const p2p_row *row, FILE *file, int cpu) {
    return row->operation == SEEN ? run_seen(b, row, file, cpu) : runs[row->operation](b, row->size);
}

/* First contacts between the ranks, eager and rendezvous, open connections and register memory. */
static void warm_up(bench *b) {
    FILE *nowhere = fopen("/dev/null", "w");
    if (!nowhere)
        lep_fail("cannot open /dev/null");
    static const int sizes[] = {0, 1024, 65536, 1 << 20};
    for (int round = 0; round < WARM_UP_ROUNDS; round++)
        for (int i = 0; i < 4; i++)
            run(b, &(p2p_row){"-", "-", (operation)(round % OPERATIONS), sizes[i]}, nowhere, 0);
    fclose(nowhere);
}

int main(int argc, char **argv) {
    int ranks;
    lep_mpi_start("probe-p2p", &argc, &argv, &ranks);
    lep_option options[] = {
        {"--design", NULL, true, "table of operations and sizes"},
        {"--out", NULL, true, "raw file; rank r writes FILE.r<r>"},
        {"--seed", NULL, true, "of content and places of the buffers"},
        {"--cpus", "0,1", false, "core of each rank"},
        {"--buffers", "program", false,
         "program (warm up to 64 KiB, then cold), cold (random places), warm (always one)"},
    };
    size_t count = sizeof options / sizeof options[0];
    lep_options_read(options, count, argc, argv);
    long long seed = lep_option_integer(options, count, "--seed", 0, INT64_MAX);
    static const char *const buffers[] = {"program", "cold", "warm"};
    int which = lep_option_choice(options, count, "--buffers", buffers, 3);
    int warm_up_to = ((const int[]){WORK_ARRAY, -1, MAX_SIZE})[which];
    if (ranks != 2)
        lep_fail("runs on two ranks, not %d: mpirun -np 2", ranks);
    lep_design design = lep_design_read(lep_option_text(options, count, "--design"));
    p2p_row *rows = read_rows(&design);
    int cpus[2] = {lep_option_cpu(options, count, "--cpus", 0), lep_option_cpu(options, count, "--cpus", 1)};
    int cpu = cpus[lep_self.rank];
    lep_pin(cpu);

    bench b = {.rank = lep_self.rank, .warm_up_to = warm_up_to, .bytes = (size_t)32 << 20};
    for (size_t i = 0; i < design.rows; i++)
        if ((size_t)rows[i].size * 2 > b.bytes) /* a strided message takes 1.5 times its size and a little */
            b.bytes = (size_t)rows[i].size * 2;
    b.random = lep_random_seeded((uint64_t)seed, (uint64_t)lep_self.rank);
    b.send = lep_allocate(b.bytes, "the messages to send");
    b.receive = lep_allocate(b.bytes, "the messages to receive");
    lep_random_fill(&b.random, (double *)(void *)b.send, b.bytes / sizeof(double));
    MPI_Comm_dup(MPI_COMM_WORLD, &b.payload);
    MPI_Comm_dup(MPI_COMM_WORLD, &b.meeting);

    const char *path = lep_mpi_path(lep_option_text(options, count, "--out"));
    FILE *file = lep_output_open(path, lep_mpi_library(), seed, argc, argv);
    lep_output_note(file, "warmup_calls", "%d", 4 * WARM_UP_ROUNDS);
    lep_output_note(file, "receive_delay_s", "2e-05 + 1e-09 * min(size_bytes, 4194304)");
    lep_output_note(file, "buffers", "%s", buffers[which]);
    lep_output_note(file, "region_bytes", "%zu", b.bytes);
    lep_output_columns(file, "design_row,operation,size_bytes,start_s,duration_s,rank,cpu");

    warm_up(&b);
    for (size_t i = 0; i < design.rows; i++) {
        span time = run(&b, &rows[i], file, cpu);
        if (time.end_ns)
            write_row(file, &rows[i], time, lep_self.rank, cpu);
        if (i % 64 == 63)
            lep_output_flush(file, path);
    }
    lep_output_close(file, path);
    MPI_Comm_free(&b.payload);
    free(rows);
    MPI_Comm_free(&b.meeting);
    MPI_Finalize();
    return 0;
}
