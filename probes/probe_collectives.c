/* probe-collectives: start and end of each call of collective, point-to-point or one-sided operations, on each rank, by
 * clocks that are made one.
 *
 * A row of the design is a batch of calls: operation, form (`forms` below), size_bytes, calls, and the process
 * synchronisation before each (process_sync.h). Rank r writes FILE.r<r>: a row for each call, with the local time of
 * its start, of the return of the nonblocking call, and of its end; calls to warm up have negative numbers. Marked
 * calls (marks: 1 started late, 2 took longer than the window) stay. FILE.clocks.r<r> has the model of rank 0's clock,
 * made anew before each batch when the last is older than --resync-s: both run-times of section 3.2 of "MPI
 * Benchmarking Revisited" follow, the longest local time and the global last end less the first start. The operation
 * `none` does nothing: its starts show the exit skew of the synchronisation.
 *
 * Before its batch each operation runs once with known content, outside of any timing; a wrong result ends the program.
 * --cold-bytes overwrites that much memory before each synchronisation (section 5.8).
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "clock_sync.h"
#include "collective_operations.h"
#include "one_sided.h"
#include "point_to_point.h"
#include "probe_common.h"
#include "probe_mpi.h"
#include "process_sync.h"
#include "transports.h"

enum { MOST_BYTES = 1 << 26, MOST_CALLS = 1000000, MOST_RESULT_BYTES = 1 << 30 };

typedef enum { BLOCKING, NONBLOCKING, PERSISTENT, IN_PLACE, OVERLAPPED } call_form;

/* nonblocking: started, compute_ns of work, then waited for; persistent: the same with requests that were made before;
 * in-place: blocking, with MPI_IN_PLACE; overlapped: nonblocking, under a name of its own. */
static const char *const forms[] = {"blocking", "nonblocking", "persistent", "in-place", "overlapped"};
enum { FORMS = sizeof forms / sizeof *forms };

typedef struct {
    const char *name; /* design_row as text */
    const lep_collective_operation *operation;
    const lep_process_method *synchronisation;
    call_form form;
    int size_bytes, calls;
    int64_t compute_ns, window_ns;
} batch;

typedef struct {
    int64_t start_ns, returned_ns, end_ns;
    int marks;
} call_times;

static const struct {
    const lep_collective_operation *operations;
    const int *count;
} tables[] = {
    {lep_collective_operations, &lep_collective_operation_count},
    {lep_point_to_point, &lep_point_to_point_count},
    {lep_one_sided, &lep_one_sided_count},
};
enum { TABLES = sizeof tables / sizeof *tables };

static const lep_collective_operation *operation_named(const char *name) {
    for (int table = 0; table < TABLES; table++)
        for (int i = 0; i < *tables[table].count; i++)
            if (strcmp(tables[table].operations[i].name, name) == 0)
                return &tables[table].operations[i];
    return NULL;
}

/* All names, with commas in between. */
static const char *operation_names(void) {
    static char names[512];
    names[0] = '\0';
    for (int table = 0; table < TABLES; table++)
        for (int i = 0; i < *tables[table].count; i++) {
            strncat(names, *names ? ", " : "", sizeof names - strlen(names) - 1);
            strncat(names, tables[table].operations[i].name, sizeof names - strlen(names) - 1);
        }
    return names;
}

static bool has_form(const lep_collective_operation *operation, call_form form) {
    switch (form) {
    case BLOCKING:
        return true;
    case PERSISTENT:
        return operation->init != NULL;
    case IN_PLACE:
        return operation->in_place != LEP_NEVER;
    default:
        return operation->start != NULL;
    }
}

/* Fails where the operation is not measured in this form, with those in which it is. */
static call_form read_form(const lep_design *design, size_t row, const char *text,
                           const lep_collective_operation *operation) {
    char possible[128] = "";
    for (int i = 0; i < FORMS; i++) {
        if (!has_form(operation, (call_form)i))
            continue;
        if (strcmp(forms[i], text) == 0)
            return (call_form)i;
        strncat(possible, *possible ? ", " : "", sizeof possible - strlen(possible) - 1);
        strncat(possible, forms[i], sizeof possible - strlen(possible) - 1);
    }
    lep_design_fail(design, row, "form is %s; with this library %s is measured %s", text, operation->name, possible);
}

/* What the batches take at most: bytes of a message, and in the window of one-sided operations (-1: none); calls. */
typedef struct {
    int bytes, window_bytes, calls;
} extents;

static batch *read_batches(const lep_design *design, int ranks, const lep_element *element, extents *most) {
    static const char *const names[] = {"design_row", "operation",       "form",       "size_bytes",
                                        "calls",      "synchronisation", "compute_ns", "window_ns"};
    size_t columns[sizeof names / sizeof *names];
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        columns[i] = lep_design_column(design, names[i]);
    batch *batches = lep_allocate(design->rows * sizeof *batches, "the design");
    most->bytes = most->calls = 1;
    most->window_bytes = -1;
    for (size_t row = 0; row < design->rows; row++) {
        const char *operation = lep_design_text(design, row, columns[1]);
        const char *synchronisation = lep_design_text(design, row, columns[5]);
        batch one = {
            .name = lep_design_text(design, row, columns[0]),
            .operation = operation_named(operation),
            .synchronisation = lep_process_method_named(synchronisation),
            .size_bytes = (int)lep_design_integer(design, row, columns[3], 0, MOST_BYTES),
            .calls = (int)lep_design_integer(design, row, columns[4], 1, MOST_CALLS),
            .compute_ns = lep_design_integer(design, row, columns[6], 0, INT64_MAX / 2),
            .window_ns = lep_design_integer(design, row, columns[7], 0, 60000000000),
        };
        if (!one.operation)
            lep_design_fail(design, row, "operation is %s; choose one of %s", operation, operation_names());
        one.form = read_form(design, row, lep_design_text(design, row, columns[2]), one.operation);
        if (!one.synchronisation)
            lep_design_fail(design, row,
                            "synchronisation is %s; choose MPI_Barrier, dissemination, double, window or "
                            "round-time",
                            synchronisation);
        if (one.synchronisation->needs_clock && one.window_ns < 1)
            lep_design_fail(design, row, "window_ns is 0; %s needs the length of the first window", synchronisation);
        if (one.operation->reduces && one.size_bytes % element->bytes)
            lep_design_fail(design, row, "size_bytes is %d; %s reduces whole counts of %s, of %d bytes each",
                            one.size_bytes, operation, element->name, element->bytes);
        int64_t bytes = (int64_t)one.size_bytes * ranks;
        if (bytes > MOST_RESULT_BYTES)
            lep_design_fail(design, row, "size_bytes is %d; blocks for %d ranks take more than 1 GiB", one.size_bytes,
                            ranks);
        most->bytes = one.size_bytes > most->bytes ? one.size_bytes : most->bytes;
        most->calls = one.calls > most->calls ? one.calls : most->calls;
        if (one.operation->prepare && one.size_bytes > most->window_bytes)
            most->window_bytes = one.size_bytes;
        batches[row] = one;
    }
    return batches;
}

static void await(MPI_Request *requests, int count) {
    for (int i = 0; i < count; i++)
        MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
}

/* Starts a call that is waited for later; requests: those of the batch where they are persistent. */
static int start(lep_collective *with, const batch *todo, MPI_Request *requests, int persistent) {
    if (todo->form != PERSISTENT)
        return todo->operation->start(with, requests);
    MPI_Startall(persistent, requests);
    return persistent;
}

static int make_requests(lep_collective *with, const batch *todo, MPI_Request *requests) {
    return todo->form == PERSISTENT ? todo->operation->init(with, requests) : 0;
}

static void free_requests(MPI_Request *requests, int count) {
    for (int i = 0; i < count; i++)
        MPI_Request_free(&requests[i]);
}

static bool is_waited_for(const batch *todo) {
    return todo->form != BLOCKING && todo->form != IN_PLACE;
}

static void verify(lep_collective *with, const batch *todo) {
    lep_collective_size(with, todo->operation, todo->size_bytes);
    lep_collective_fill(with, todo->operation, todo->form == IN_PLACE);
    if (!is_waited_for(todo)) {
        todo->operation->call(with);
    } else {
        MPI_Request requests[LEP_MOST_REQUESTS];
        int persistent = make_requests(with, todo, requests);
        await(requests, start(with, todo, requests, persistent));
        free_requests(requests, persistent);
    }
    if (!todo->operation->right(with))
        lep_fail_alone("%s of %d bytes on %d ranks gave a wrong result: the library is broken, nothing was measured",
                       todo->operation->name, todo->size_bytes, with->ranks);
}

static void work(const lep_clock *clock, int64_t for_ns) {
    int64_t end_ns = lep_clock_read_ns(clock) + for_ns;
    while (lep_clock_read_ns(clock) < end_ns)
        ;
}

static void measure(lep_collective *with, const batch *todo, lep_process_sync *sync, call_times *times, int calls,
                    unsigned char *cold, size_t cold_bytes) {
    const lep_clock *clock = sync->clock;
    bool waits = is_waited_for(todo);
    MPI_Request requests[LEP_MOST_REQUESTS];
    int persistent = make_requests(with, todo, requests);
    todo->synchronisation->begin(sync);
    for (int call = 0; call < calls; call++) {
        if (cold_bytes)
            memset(cold, call, cold_bytes);
        int marks = todo->synchronisation->together(sync);
        int64_t start_ns = lep_clock_read_ns(clock), returned_ns = start_ns;
        if (waits) {
            int started = start(with, todo, requests, persistent);
            returned_ns = lep_clock_read_ns(clock);
            if (todo->compute_ns)
                work(clock, todo->compute_ns);
            await(requests, started);
        } else {
            todo->operation->call(with);
        }
        int64_t end_ns = lep_clock_read_ns(clock);
        times[call] =
            (call_times){start_ns, waits ? returned_ns : end_ns, end_ns, marks | lep_process_marks(sync, end_ns)};
    }
    free_requests(requests, persistent);
}

static void write_calls(FILE *file, const batch *todo, const lep_process_sync *sync, const call_times *times, int calls,
                        int first) {
    for (int call = 0; call < calls; call++)
        fprintf(file, "%s,%s,%s,%d,%s,%d,%lld,%lld,%lld,%d,%lld,%d\n", todo->name, todo->operation->name,
                forms[todo->form], todo->size_bytes, todo->synchronisation->name, first + call,
                (long long)times[call].start_ns, (long long)times[call].returned_ns, (long long)times[call].end_ns,
                times[call].marks, (long long)sync->window_ns, sync->rank);
}

/* Marked calls of any rank; of all calls, from start to end, the longest, and the median of the slowest rank. */
static void adapt(lep_process_sync *sync, const call_times *times, int calls, int *marks) {
    int64_t took_ns[2] = {0, 0}, *each_ns = lep_allocate((size_t)calls * sizeof *each_ns, "the times of a batch");
    int marked = 0;
    for (int call = 0; call < calls; call++) {
        each_ns[call] = times[call].end_ns - times[call].start_ns;
        marks[call] = times[call].marks;
    }
    MPI_Allreduce(MPI_IN_PLACE, marks, calls, MPI_INT, MPI_BOR, sync->comm);
    qsort(each_ns, (size_t)calls, sizeof *each_ns, lep_compare_int64);
    took_ns[0] = each_ns[calls - 1];
    took_ns[1] = each_ns[calls / 2];
    free(each_ns);
    MPI_Allreduce(MPI_IN_PLACE, took_ns, 2, MPI_INT64_T, MPI_MAX, sync->comm);
    for (int call = 0; call < calls; call++)
        marked += marks[call] != 0;
    lep_process_adapt(sync, calls, marked, took_ns[0], took_ns[1]);
}

static void write_model(FILE *file, const char *method, const char *before_row, const lep_clock_model *model) {
    fprintf(file, "%s,%s,%lld,%lld,%.12e,%.6e,%.6e,%.6e,%.1f,%d\n", before_row, method, (long long)model->x0_ns,
            (long long)model->y0_ns, model->drift, model->variance_ns2, model->drift_variance, model->covariance_ns,
            model->bound_ns, lep_self.rank);
}

static char *clocks_path(const char *out) {
    size_t room = strlen(out) + 16;
    char *name = lep_allocate(room, "a name");
    snprintf(name, room, "%s.clocks", out);
    return lep_mpi_path(name);
}

static const char *const page_names[] = {"default", "small", "huge"}; /* as lep_pages has them */

static void write_transports(const char *name) {
    if (!*name)
        return;
    const char *path = lep_mpi_path(name);
    FILE *file = fopen(path, "w");
    if (!file)
        lep_fail_alone("--transports: %s cannot be written", path);
    lep_transports_write(file);
    lep_output_close(file, path);
}

int main(int argc, char **argv) {
    int ranks;
    lep_mpi_start("probe-collectives", &argc, &argv, &ranks);
    lep_option options[] = {
        {"--design", NULL, true, "table of batches"},
        {"--out", NULL, true, "raw file; rank r writes FILE.r<r> and FILE.clocks.r<r>"},
        {"--seed", "1", false, "recorded; the order is the design's"},
        {"--clock", "clock_gettime", false, "MPI_Wtime, clock_gettime, rdtscp, rdtscp:HZ, rdtscp:estimated"},
        {"--clock-method", "HCA", false, "SKaMPI, Netgauge, JK, HCA, HCA2 or HCA3"},
        {"--resync-s", "10", false, "greatest age of the clock models when a batch begins"},
        {"--warm-up", "5", false, "calls before each batch"},
        {"--cold-bytes", "0", false, "memory overwritten before each call"},
        {"--datatype", "MPI_DOUBLE", false, "of reductions"},
        {"--op", "MPI_SUM", false, "of reductions"},
        {"--root", "0", false, "of operations that have one"},
        {"--pages", "default", false, "that buffers lie on: default, small or huge"},
        {"--transports", "", false, "file; rank r writes into FILE.r<r> what it shares with others at the end"},
    };
    const size_t count = sizeof options / sizeof *options;
    lep_options_read(options, count, argc, argv);
    long long seed = lep_option_integer(options, count, "--seed", 0, INT64_MAX);
    int64_t resync_ns = 1000000000 * lep_option_integer(options, count, "--resync-s", 0, 86400);
    int warm_up = (int)lep_option_integer(options, count, "--warm-up", 0, 1000);
    size_t cold_bytes = (size_t)lep_option_integer(options, count, "--cold-bytes", 0, 1 << 30);
    const char *out = lep_option_text(options, count, "--out");
    const lep_clock_method *method = lep_clock_method_named(lep_option_text(options, count, "--clock-method"));
    if (!method)
        lep_fail("--clock-method: %s is none of SKaMPI, Netgauge, JK, HCA, HCA2, HCA3",
                 lep_option_text(options, count, "--clock-method"));
    extents most;
    lep_design design = lep_design_read(lep_option_text(options, count, "--design"));
    lep_collective with = {.rank = lep_self.rank, .ranks = ranks};
    with.pages = (lep_pages)lep_option_choice(options, count, "--pages", page_names, 3);
    with.root = (int)lep_option_integer(options, count, "--root", 0, ranks - 1);
    with.reduction =
        lep_reduction_named(lep_option_text(options, count, "--datatype"), lep_option_text(options, count, "--op"));
    batch *batches = read_batches(&design, ranks, with.reduction.element, &most);
    lep_clock clock;
    const char *problem = lep_clock_open(&clock, lep_option_text(options, count, "--clock"));
    if (problem)
        lep_fail("--clock %s: %s", lep_option_text(options, count, "--clock"), problem);

    MPI_Comm meeting;
    MPI_Comm_dup(MPI_COMM_WORLD, &with.comm);
    MPI_Comm_dup(MPI_COMM_WORLD, &meeting);
    lep_collective_open(&with, most.bytes);
    if (most.window_bytes >= 0)
        lep_one_sided_open(&with, most.window_bytes);
    int room = most.calls > warm_up ? most.calls : warm_up;
    call_times *times = lep_allocate((size_t)room * sizeof *times, "the times of a batch");
    int *marks = lep_allocate((size_t)room * sizeof *marks, "the marks of a batch");
    unsigned char *cold = lep_allocate(cold_bytes, "the memory that makes caches cold");
    lep_clock_session session;
    if (!lep_clock_session_open(&session, meeting, &clock, &LEP_CLOCK_DEFAULTS))
        lep_fail("not enough memory");

    const char *path = lep_mpi_path(out), *model_path = clocks_path(out);
    FILE *file = lep_output_open(path, lep_mpi_library(), seed, argc, argv);
    FILE *models = lep_output_open(model_path, lep_mpi_library(), seed, argc, argv);
    for (int i = 0; i < 2; i++) {
        FILE *one = i ? models : file;
        lep_output_note(one, "ranks", "%d", ranks);
        lep_output_note(one, "reductions", "%s of %s", with.reduction.with->name, with.reduction.element->name);
        lep_output_note(one, "root", "%d", with.root);
        lep_output_note(one, "clock_source", "%s", clock.name);
        lep_output_note(one, "clock_resolution_ns", "%lld", (long long)clock.resolution_ns);
        if (clock.ticks_per_s > 0)
            lep_output_note(one, "clock_frequency_Hz", "%.6f (%s)", clock.ticks_per_s, clock.ticks_from);
    }
    lep_output_columns(file, "design_row,operation,form,size_bytes,synchronisation,call,start_ns,returned_ns,end_ns,"
                             "marks,window_ns,rank");
    lep_output_columns(models, "before_row,method,x0_ns,y0_ns,drift,variance_ns2,drift_variance,covariance_ns,bound_ns,"
                               "rank");
    lep_clock_model model = lep_clock_identity();
    int64_t synchronised_ns = 0;
    for (size_t row = 0; row < design.rows; row++) {
        const batch *todo = &batches[row];
        int64_t now_ns = lep_now_ns(); /* rank 0 decides for all */
        int old = row == 0 || now_ns - synchronised_ns > resync_ns;
        MPI_Bcast(&old, 1, MPI_INT, 0, meeting);
        if (old) {
            model = method->synchronise(&session);
            synchronised_ns = lep_now_ns();
            write_model(models, method->name, todo->name, &model);
            lep_output_flush(models, model_path);
        }
        verify(&with, todo);
        lep_process_sync sync;
        lep_process_sync_open(&sync, todo->synchronisation, meeting, &clock, &model, todo->window_ns);
        if (warm_up) {
            measure(&with, todo, &sync, times, warm_up, cold, cold_bytes);
            write_calls(file, todo, &sync, times, warm_up, -warm_up);
            adapt(&sync, times, warm_up, marks);
        }
        measure(&with, todo, &sync, times, todo->calls, cold, cold_bytes);
        write_calls(file, todo, &sync, times, todo->calls, 0);
        lep_output_flush(file, path);
    }
    model = method->synchronise(&session);
    write_model(models, method->name, "end", &model);
    lep_output_close(models, model_path);
    lep_output_close(file, path);
    write_transports(lep_option_text(options, count, "--transports"));
    lep_clock_session_close(&session);
    if (most.window_bytes >= 0)
        lep_one_sided_close(&with);
    MPI_Finalize();
    return 0;
}
