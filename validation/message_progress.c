/* Messages between two ranks that compute or stay inside MPI: when they were posted, when they arrived.
 *
 *     message_progress PLAN RESULT          two ranks of one node, each bound to a core
 *
 * PLAN has a line for each message: sender (rank 0 or 1), way of receiving (0: MPI_Irecv before the message is sent,
 * then MPI_Wait; 1: MPI_Iprobe until it finds the message, then MPI_Recv), bytes, microseconds from the common start to
 * MPI_Isend, microseconds of dgemm of the sender between MPI_Isend and MPI_Wait, and microseconds of dgemm of the
 * receiver: between MPI_Irecv and MPI_Wait, or in each piece between two calls of MPI_Iprobe. 0: none.
 *
 * RESULT, which appears whole, has a row for each message; stamps are microseconds of CLOCK_MONOTONIC, which both ranks
 * share, since the call of MPI_Isend. Both buffers are written by their owners just before the common start.
 */
#define _GNU_SOURCE
#include <cblas.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { WAIT, PROBE };
enum { INNER = 256, MOST_ROWS = 16384, TAG = 1, MARGIN_US = 60 };

struct message {
    int sender, way;
    long bytes;
    double post_us, sender_us, receiver_us;
};

/* What one rank saw of a message: the sender has posted, posting_done, entered (MPI_Wait), done; the receiver has
 * posted (MPI_Irecv, or its first MPI_Iprobe), entered (MPI_Wait, or MPI_Recv after MPI_Iprobe found the message),
 * done. */
struct seen {
    double posted, posting_done, entered, done;
    long pieces, switches, late;
};

static double *left, *right, *product;
static double rows_per_us;

static double now_us(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return 1e6 * (double)time.tv_sec + 1e-3 * (double)time.tv_nsec;
}

static long switches(void) {
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nivcsw;
}

static void multiply(int rows) {
    cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, rows, INNER, INNER, -1e-9, left, MOST_ROWS, right, INNER,
                1.0, product, MOST_ROWS);
}

static void compute(double length_us) {
    double rows = length_us * rows_per_us;
    if (length_us > 0)
        multiply(rows < 1 ? 1 : rows > MOST_ROWS ? MOST_ROWS : (int)rows);
}

static void calibrate(void) {
    enum { ROWS = 4096, TIMES = 10 };
    multiply(ROWS);
    double began = now_us();
    for (int i = 0; i < TIMES; i++)
        multiply(ROWS);
    rows_per_us = ROWS * TIMES / (now_us() - began);
}

static void spin_until(double time_us) {
    while (now_us() < time_us)
        ;
}

static struct seen send(const struct message *message, char *buffer, double start_us) {
    struct seen seen = {0};
    MPI_Request request;
    spin_until(start_us + message->post_us);
    seen.posted = now_us();
    MPI_Isend(buffer, (int)message->bytes, MPI_CHAR, 1 - message->sender, TAG, MPI_COMM_WORLD, &request);
    seen.posting_done = now_us();
    compute(message->sender_us);
    seen.entered = now_us();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    seen.done = now_us();
    return seen;
}

static struct seen receive(const struct message *message, char *buffer) {
    struct seen seen = {0};
    seen.posted = now_us();
    if (message->way == WAIT) {
        MPI_Request request;
        MPI_Irecv(buffer, (int)message->bytes, MPI_CHAR, message->sender, TAG, MPI_COMM_WORLD, &request);
        seen.posting_done = now_us();
        compute(message->receiver_us);
        seen.entered = now_us();
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        for (;;) {
            int found = 0;
            MPI_Iprobe(message->sender, TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
            if (found)
                break;
            compute(message->receiver_us);
            seen.pieces++;
        }
        seen.posting_done = seen.entered = now_us();
        MPI_Recv(buffer, (int)message->bytes, MPI_CHAR, message->sender, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    seen.done = now_us();
    return seen;
}

static void fail(const char *what) {
    fprintf(stderr, "message_progress: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(1);
}

static void *allocate(size_t bytes) {
    void *memory = aligned_alloc(4096, bytes);
    if (!memory)
        fail("no memory");
    memset(memory, 0, bytes);
    return memory;
}

static long read_plan(const char *path, struct message **plan) {
    long count = 0, room = 1024;
    FILE *file = fopen(path, "r");
    *plan = malloc((size_t)room * sizeof **plan);
    if (!file || !*plan)
        fail("the plan cannot be read");
    for (struct message m; fscanf(file, "%d %d %ld %lf %lf %lf", &m.sender, &m.way, &m.bytes, &m.post_us, &m.sender_us,
                                  &m.receiver_us) == 6;) {
        if (count == room && !(*plan = realloc(*plan, (size_t)(room *= 2) * sizeof **plan)))
            fail("no memory");
        (*plan)[count++] = m;
    }
    fclose(file);
    return count;
}

static void write_result(const char *path, long count, const struct message *plan, const struct seen *seen) {
    char part[4096];
    snprintf(part, sizeof part, "%s.part", path);
    FILE *file = fopen(part, "w");
    if (!file)
        fail("the result cannot be written");
    fprintf(file, "sender,way,size_bytes,sender_asked_us,receiver_asked_us,isend_us,sender_entered_us,sender_done_us,"
                  "receiver_posted_us,receiver_entered_us,receiver_done_us,pieces,switches,late\n");
    for (long i = 0; i < count; i++) {
        const struct message *m = &plan[i];
        const struct seen *s = &seen[m->sender * count + i], *r = &seen[(1 - m->sender) * count + i];
        fprintf(file, "%d,%s,%ld,%.0f,%.0f,%.1f,%.1f,%.1f,%.1f,%.1f,%.1f,%ld,%ld,%ld\n", m->sender,
                m->way == WAIT ? "wait" : "probe", m->bytes, m->sender_us, m->receiver_us, s->posting_done - s->posted,
                s->entered - s->posted, s->done - s->posted, r->posted - s->posted, r->entered - s->posted,
                r->done - s->posted, r->pieces, s->switches + r->switches, s->late + r->late);
    }
    if (fclose(file) || rename(part, path))
        fail("the result cannot be written");
}

int main(int argc, char **argv) {
    int rank, size;
    struct message *plan;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 3 || size != 2)
        fail("takes two ranks and two arguments: PLAN RESULT");
    long count = read_plan(argv[1], &plan), most = 1;
    for (long i = 0; i < count; i++)
        most = plan[i].bytes > most ? plan[i].bytes : most;
    char *buffer = allocate((size_t)most);
    left = allocate(sizeof(double) * MOST_ROWS * INNER);
    right = allocate(sizeof(double) * INNER * INNER);
    product = allocate(sizeof(double) * MOST_ROWS * INNER);
    for (long i = 0; i < (long)MOST_ROWS * INNER; i++)
        left[i] = 1.0 + 1e-3 * (double)(i % 97);
    for (long i = 0; i < INNER * INNER; i++)
        right[i] = 1.0 - 1e-3 * (double)(i % 89);
    struct seen *seen = allocate((size_t)count * sizeof *seen), *both = allocate(2 * (size_t)count * sizeof *seen);
    MPI_Barrier(MPI_COMM_WORLD);
    calibrate();

    for (long i = 0; i < count; i++) {
        const struct message *m = &plan[i];
        char mark = (char)(1 + i % 100);
        memset(buffer, rank == m->sender ? mark : 0, (size_t)m->bytes);
        MPI_Barrier(MPI_COMM_WORLD);
        double start_us = now_us() + MARGIN_US;
        MPI_Bcast(&start_us, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        long before = switches();
        int late = now_us() > start_us;
        spin_until(start_us);
        seen[i] = rank == m->sender ? send(m, buffer, start_us) : receive(m, buffer);
        seen[i].switches = switches() - before;
        seen[i].late = late;
        if (buffer[0] != mark || buffer[m->bytes / 2] != mark || buffer[m->bytes - 1] != mark)
            fail("a message arrived damaged");
    }

    int bytes = (int)((size_t)count * sizeof *seen);
    MPI_Gather(seen, bytes, MPI_BYTE, both, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (rank == 0)
        write_result(argv[2], count, plan, both);
    MPI_Finalize();
    return 0;
}
