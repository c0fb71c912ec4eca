/* probe-ring: messages between neighbours of a ring of all ranks while the ranks do what an application does, one
 * exchange a row of the design, one row a call.
 *
 * pingpong  the rank at place `first` of the ring and its successor exchange a message; all others stand by.
 * shift     every rank sends to its successor and receives from its predecessor at the same time.
 *
 * The condition says what ranks do besides:
 *               standing by            waiting in a pingpong    between sending and receiving in a shift
 * idle          sleep                  MPI_Recv                 nothing
 * dgemm         dgemm after dgemm      MPI_Recv                 one dgemm
 * iprobe        MPI_Iprobe all the time, until the message is seen and MPI_Recv takes it
 * iprobe+dgemm  the same, a dgemm between two looks
 *
 * The ranks of a node follow each other in the numbers that mpirun gives. With --ranks-per-node less than all of them
 * the ring goes round the nodes instead, so that each of its messages is between two nodes.
 * Whatever is logged is written after the exchange, when nobody waits for this rank.
 */
#include <cblas.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "probe_common.h"
#include "probe_mpi.h"

typedef enum { PINGPONG, SHIFT, OPERATIONS } operation;
static const char *const operation_names[OPERATIONS] = {"pingpong", "shift"};

typedef enum { IDLE, DGEMM, IPROBE, IPROBE_DGEMM, CONDITIONS } condition;
static const char *const condition_names[CONDITIONS] = {"idle", "dgemm", "iprobe", "iprobe+dgemm"};

typedef enum { EXCHANGE, SEND, ISEND, RECV, WAIT, LOOK, COMPUTE } call_kind;
static const char *const call_names[] = {"exchange", "send", "isend", "recv", "wait", "iprobe", "dgemm"};

enum { MAX_SIZE = 1 << 30, MAX_DIMENSION = 1 << 14, TAG = 7, DONE = 8, WORK_ARRAY = 64 << 10 };
enum { SPARE = 16 << 20, WARM_UP_ROUNDS = 3 };
/* Of MPI_Iprobe that finds nothing and of dgemm only so many calls of an exchange have rows: a wait has thousands. */
enum { KEPT_MISSES = 8, KEPT_PRODUCTS = 64, ROOM = KEPT_MISSES + KEPT_PRODUCTS + 16 };
enum { SETTLE_NS = 100000, NAP_NS = 200000, LOOKS_A_DONE = 16 };

typedef struct {
    const char *name; /* design_row as text */
    operation operation;
    condition condition;
    int size, first, m, n, k;
} ring_row;

typedef struct {
    int64_t start_ns, end_ns;
    call_kind kind;
    int found;
} call;

typedef struct {
    int rank, ranks, place, successor, predecessor;
    int per_node;
    char *send, *receive; /* regions */
    double *a, *b, *c;
    size_t c_doubles;
    lep_random random;
    MPI_Comm payload, meeting;
    const ring_row *row;
    call log[ROOM]; /* of the exchange that runs */
    int used, misses, products;
    long polls;
} bench;

/* Rank at a place of the ring. On several nodes neighbours of the ring are on neighbouring nodes, core by core. */
static int rank_at(const bench *b, int place) {
    int nodes = b->ranks / b->per_node;
    place %= b->ranks;
    return place % nodes * b->per_node + place / nodes;
}

static void find_neighbours(bench *b) {
    int nodes = b->ranks / b->per_node;
    b->place = b->rank % b->per_node * nodes + b->rank / b->per_node;
    b->successor = rank_at(b, b->place + 1);
    b->predecessor = rank_at(b, b->place + b->ranks - 1);
}

static void keep(bench *b, call_kind kind, int found, int64_t start_ns, int64_t end_ns) {
    if (b->used < ROOM)
        b->log[b->used++] = (call){start_ns, end_ns, kind, found};
}

static int look(bench *b, int source) {
    int found;
    int64_t start_ns = lep_now_ns();
    MPI_Iprobe(source, TAG, b->payload, &found, MPI_STATUS_IGNORE);
    int64_t end_ns = lep_now_ns();
    b->polls++;
    if (found || b->misses++ < KEPT_MISSES)
        keep(b, LOOK, found != 0, start_ns, end_ns);
    return found;
}

static void compute(bench *b) {
    const ring_row *row = b->row;
    size_t places = (b->c_doubles - (size_t)row->m * (size_t)row->n) / 8 + 1;
    double *c = b->c + 8 * lep_random_below(&b->random, places);
    int64_t start_ns = lep_now_ns();
    cblas_dgemm(CblasColMajor, CblasNoTrans, CblasTrans, row->m, row->n, row->k, -1.0, b->a, row->m, b->b, row->n, 1.0,
                c, row->m);
    int64_t end_ns = lep_now_ns();
    if (b->products++ < KEPT_PRODUCTS)
        keep(b, COMPUTE, 0, start_ns, end_ns);
}

static bool looks(const bench *b) {
    return b->row->condition == IPROBE || b->row->condition == IPROBE_DGEMM;
}

static bool computes(const bench *b) {
    return b->row->condition == DGEMM || b->row->condition == IPROBE_DGEMM;
}

/* Takes the message as the condition has it. */
static void receive(bench *b, char *buffer, int source) {
    while (looks(b) && !look(b, source))
        if (computes(b))
            compute(b);
    int64_t start_ns = lep_now_ns();
    MPI_Recv(buffer, b->row->size, MPI_BYTE, source, TAG, b->payload, MPI_STATUS_IGNORE);
    keep(b, RECV, 0, start_ns, lep_now_ns());
}

static void send(bench *b, char *buffer, int target) {
    int64_t start_ns = lep_now_ns();
    MPI_Send(buffer, b->row->size, MPI_BYTE, target, TAG, b->payload);
    keep(b, SEND, 0, start_ns, lep_now_ns());
}

/* As in probe-p2p: small messages lie in the same work array each time, large ones at random places. */
static char *place_of(bench *b, char *region) {
    size_t size = (size_t)b->row->size;
    if (size <= WORK_ARRAY) {
        memset(region, 1, size);
        return region;
    }
    return region + 64 * lep_random_below(&b->random, SPARE / 64);
}

/* Until rank `first` says that its exchange is over. */
static void stand_by(bench *b, int first) {
    int over = 0;
    for (long turn = 0; !over; turn++) {
        if (looks(b))
            look(b, b->predecessor);
        if (computes(b))
            compute(b);
        else if (!looks(b))
            nanosleep(&(struct timespec){0, NAP_NS}, NULL);
        /* Looking for the end all the time would double the looks of the condition `iprobe`. */
        if (b->row->condition != IPROBE || turn % LOOKS_A_DONE == 0)
            MPI_Iprobe(first, DONE, b->meeting, &over, MPI_STATUS_IGNORE);
    }
    char nothing;
    MPI_Recv(&nothing, 0, MPI_CHAR, first, DONE, b->meeting, MPI_STATUS_IGNORE);
}

/* The role of this rank. */
static const char *run_pingpong(bench *b) {
    int first = rank_at(b, b->row->first), second = rank_at(b, b->row->first + 1);
    char *out = place_of(b, b->send), *in = place_of(b, b->receive), nothing = 0;
    MPI_Barrier(b->meeting);
    if (b->rank == first) {
        lep_spin_ns(SETTLE_NS); /* the others have begun with what the condition wants */
        int64_t start_ns = lep_now_ns();
        send(b, out, second);
        receive(b, in, second);
        keep(b, EXCHANGE, 0, start_ns, lep_now_ns());
        for (int rank = 0; rank < b->ranks; rank++)
            if (rank != first && rank != second)
                MPI_Send(&nothing, 0, MPI_CHAR, rank, DONE, b->meeting);
        return "first";
    }
    if (b->rank == second) {
        int64_t start_ns = lep_now_ns();
        receive(b, in, first);
        send(b, out, first);
        keep(b, EXCHANGE, 0, start_ns, lep_now_ns());
        return "second";
    }
    stand_by(b, first);
    return "bystander";
}

static const char *run_shift(bench *b) {
    MPI_Request request;
    char *out = place_of(b, b->send), *in = place_of(b, b->receive);
    MPI_Barrier(b->meeting);
    int64_t start_ns = lep_now_ns();
    MPI_Isend(out, b->row->size, MPI_BYTE, b->successor, TAG, b->payload, &request);
    int64_t sent_ns = lep_now_ns();
    keep(b, ISEND, 0, start_ns, sent_ns);
    if (b->row->condition == DGEMM)
        compute(b);
    receive(b, in, b->predecessor);
    int64_t received_ns = lep_now_ns();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    int64_t end_ns = lep_now_ns();
    keep(b, WAIT, 0, received_ns, end_ns);
    keep(b, EXCHANGE, 0, start_ns, end_ns);
    return "all";
}

static const char *run(bench *b, const ring_row *row) {
    b->row = row;
    b->used = b->misses = b->products = 0;
    b->polls = 0;
    return row->operation == PINGPONG ? run_pingpong(b) : run_shift(b);
}

static void write_rows(FILE *file, const bench *b, const char *role, int cpu) {
    const ring_row *row = b->row;
    for (int i = 0; i < b->used; i++) {
        const call *one = &b->log[i];
        fprintf(file, "%s,%s,%s,%d,%d,%d,%d,%d,%s,%s,%d,%ld,%.9f,%.9f,%d,%d,%d\n", row->name,
                operation_names[row->operation], condition_names[row->condition], row->size, row->first, row->m, row->n,
                row->k, role, call_names[one->kind], one->found, one->kind == EXCHANGE ? b->polls : 0L,
                1e-9 * (double)one->start_ns, 1e-9 * (double)(one->end_ns - one->start_ns), b->rank, cpu, b->ranks);
    }
}

static int choice(const lep_design *design, size_t row, const char *column, const char *const *names, int count) {
    return lep_design_choice(design, row, lep_design_column(design, column), names, count);
}

static int number(const lep_design *design, size_t row, const char *column, long long most) {
    return (int)lep_design_integer(design, row, lep_design_column(design, column), 0, most);
}

static ring_row *read_rows(const lep_design *design, int ranks) {
    size_t name = lep_design_column(design, "design_row");
    ring_row *rows = lep_allocate(design->rows * sizeof *rows, "the design");
    for (size_t i = 0; i < design->rows; i++) {
        ring_row *row = &rows[i];
        lep_design_integer(design, i, name, 0, 1000000000);
        row->name = lep_design_text(design, i, name);
        row->operation = (operation)choice(design, i, "operation", operation_names, OPERATIONS);
        row->condition = (condition)choice(design, i, "condition", condition_names, CONDITIONS);
        row->size = number(design, i, "size_bytes", MAX_SIZE);
        row->first = number(design, i, "first", ranks - 1);
        row->m = number(design, i, "m", MAX_DIMENSION);
        row->n = number(design, i, "n", MAX_DIMENSION);
        row->k = number(design, i, "k", MAX_DIMENSION);
        bool wants = row->condition == DGEMM || row->condition == IPROBE_DGEMM;
        if (wants != (row->m > 0 && row->n > 0 && row->k > 0) || (!wants && (row->m || row->n || row->k)))
            lep_design_fail(design, i, "m, n, k are %d, %d, %d; above 0 where the condition has dgemm, else 0", row->m,
                            row->n, row->k);
    }
    return rows;
}

static void allocate(bench *b, const ring_row *rows, size_t count) {
    size_t message = 0, a = 1, factor = 1, c = 1;
    for (size_t i = 0; i < count; i++) {
        const ring_row *row = &rows[i];
        size_t m = (size_t)row->m, n = (size_t)row->n, k = (size_t)row->k;
        message = (size_t)row->size > message ? (size_t)row->size : message;
        a = m * k > a ? m * k : a;
        factor = n * k > factor ? n * k : factor;
        c = m * n > c ? m * n : c;
    }
    b->send = lep_allocate(message + SPARE, "the messages to send");
    b->receive = lep_allocate(message + SPARE, "the messages to receive");
    lep_random_fill(&b->random, (double *)(void *)b->send, (message + SPARE) / sizeof(double));
    b->c_doubles = c + SPARE / sizeof(double); /* more than a core's own caches hold, as the matrix of an application */
    b->a = lep_allocate(a * sizeof(double), "a factor");
    b->b = lep_allocate(factor * sizeof(double), "a factor");
    b->c = lep_allocate(b->c_doubles * sizeof(double), "products");
    lep_random_fill(&b->random, b->a, a);
    lep_random_fill(&b->random, b->b, factor);
    lep_random_fill(&b->random, b->c, b->c_doubles);
}

/* First contacts between the neighbours, eager and rendezvous, and the first products. */
static void warm_up(bench *b, const ring_row *rows, size_t count) {
    static const int sizes[] = {1024, 1 << 20};
    ring_row computing = {0};
    size_t largest = 0;
    for (size_t i = 0; i < count; i++) {
        if (rows[i].m)
            computing = rows[i];
        if ((size_t)rows[i].size > largest)
            largest = (size_t)rows[i].size;
    }
    for (int round = 0; round < WARM_UP_ROUNDS; round++)
        for (int i = 0; i < 2; i++)
            for (int what = IDLE; what < CONDITIONS; what++) {
                bool wants = what == DGEMM || what == IPROBE_DGEMM;
                if (wants && !computing.m)
                    continue;
                ring_row row = {.name = "-", .condition = (condition)what, .operation = SHIFT};
                row.size = (size_t)sizes[i] < largest ? sizes[i] : (int)largest;
                if (wants)
                    row.m = computing.m, row.n = computing.n, row.k = computing.k;
                run(b, &row);
                row.operation = PINGPONG;
                row.first = round % b->ranks;
                run(b, &row);
            }
}

int main(int argc, char **argv) {
    int ranks;
    lep_mpi_start("probe-ring", &argc, &argv, &ranks);
    lep_option options[] = {
        {"--design", NULL, true, "table of exchanges, their sizes and conditions"},
        {"--out", NULL, true, "raw file; rank r writes FILE.r<r>"},
        {"--seed", NULL, true, "of content and places of the buffers"},
        {"--cpus", "0,1", false, "core of each rank"},
        {"--ranks-per-node", "0", false, "0: all ranks are on one node"},
    };
    size_t count = sizeof options / sizeof options[0];
    lep_options_read(options, count, argc, argv);
    long long seed = lep_option_integer(options, count, "--seed", 0, INT64_MAX);
    if (ranks < 2)
        lep_fail("runs on two ranks or more, not %d: mpirun -np 2", ranks);
    int per_node = (int)lep_option_integer(options, count, "--ranks-per-node", 0, ranks);
    if (per_node && ranks % per_node)
        lep_fail("option --ranks-per-node is %d; %d ranks do not fill nodes of that many", per_node, ranks);
    lep_design design = lep_design_read(lep_option_text(options, count, "--design"));
    ring_row *rows = read_rows(&design, ranks);
    int cpu = lep_option_cpu(options, count, "--cpus", lep_self.rank);
    lep_pin(cpu);

    static bench b;
    b.rank = lep_self.rank;
    b.ranks = ranks;
    b.per_node = per_node ? per_node : ranks;
    find_neighbours(&b);
    b.random = lep_random_seeded((uint64_t)seed, (uint64_t)lep_self.rank);
    allocate(&b, rows, design.rows);
    MPI_Comm_dup(MPI_COMM_WORLD, &b.payload);
    MPI_Comm_dup(MPI_COMM_WORLD, &b.meeting);

    const char *path = lep_mpi_path(lep_option_text(options, count, "--out"));
    FILE *file = lep_output_open(path, lep_mpi_library(), seed, argc, argv);
    lep_output_note(file, "ranks", "%d", ranks);
    lep_output_note(file, "place", "%d", b.place);
    lep_output_note(file, "kept_misses", "%d", KEPT_MISSES);
    lep_output_note(file, "kept_products", "%d", KEPT_PRODUCTS);
    lep_output_columns(file, "design_row,operation,condition,size_bytes,first,m,n,k,role,call,found,polls,start_s,"
                             "duration_s,rank,cpu,ranks");

    warm_up(&b, rows, design.rows);
    for (size_t i = 0; i < design.rows; i++) {
        const char *role = run(&b, &rows[i]);
        write_rows(file, &b, role, cpu);
        if (i % 64 == 63)
            lep_output_flush(file, path);
    }
    lep_output_close(file, path);
    free(rows);
    MPI_Comm_free(&b.payload);
    MPI_Comm_free(&b.meeting);
    MPI_Finalize();
    return 0;
}
