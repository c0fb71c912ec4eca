/* probe-clocks: synchronises the clocks of all ranks, and says how far each is off afterwards.
 *
 * Each trial runs every method that is named, in random order. --made 1 gives every rank but rank 0 a clock of its own,
 * newly drawn for each method of each trial: up to --ahead-s before or behind that of rank 0, drifting by up to
 * --drift, by another drift from --change-after-s on. The ranks must share the clock that these are made from (one
 * machine, or a simulation), and then the error is known at any moment, without waiting for it. --made 0 takes the
 * clocks as they are: rank 0 exchanges ten messages with every rank at each moment, and the exchange that shows the
 * smallest difference counts (Hunold and Carpen-Amarie, section 4.5).
 *
 * --jitter-ns lets every message seem late by exponential times of this mean, one in a hundred by fifty times that:
 * simulated latencies do not scatter. --asymmetry-ns delays what rank 0 and other answering ranks send back.
 *
 * --together 1 is what lepaute clocks measures: in a trial every rank has one clock for all methods, and looks at the
 * errors of a method are waited for while the next ones synchronise, as long as none of these looks is due meanwhile.
 * At each moment both are written: the true error, where all ranks share the clock that theirs are made from, and what
 * the messages say by the exchange with the shortest round trip. --wander lets drifts walk at random.
 *
 * One row for each method, trial, rank and moment; 1.96 deviations and the bound around zero should hold the error.
 */
#include <mpi.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock_sync.h"
#include "probe_common.h"
#include "probe_mpi.h"

enum { MOST_CHECKS = 8, MOST_METHODS = 8, ROUNDS = 10, OUTLIERS_IN = 100, OUTLIER_TIMES = 50, WANDER_S = 900 };

/* checked_s: when it really was; true_ns, shortest_ns, half_trip_ns: NAN where they are not known. */
typedef struct {
    double error_ns, deviation_ns, bound_ns, ahead_ns, drift;
    double checked_s, true_ns, shortest_ns, half_trip_ns;
} check;

static check first_check(const lep_clock_model *model, const lep_clock *made, double checked_s) {
    return (check){.bound_ns = model->bound_ns,
                   .ahead_ns = (double)made->ahead_ns,
                   .drift = made->drift,
                   .checked_s = checked_s,
                   .true_ns = NAN,
                   .shortest_ns = NAN,
                   .half_trip_ns = NAN};
}

typedef struct {
    bool made;
    double ahead_s, drift, change_after_s, wander;
    int checks;
    double after_s[MOST_CHECKS];
} plan;

static struct {
    lep_random random;
    double jitter_ns, asymmetry_ns;
} delays;

static double uniform(lep_random *random) {
    return ((double)(lep_random_bits(random) >> 11) + 0.5) * 0x1p-53;
}

static double between(lep_random *random, double most) {
    return (2 * uniform(random) - 1) * most;
}

static void delay(const lep_clock *clock, bool answer) {
    (void)clock;
    double ns = -log(uniform(&delays.random)) * delays.jitter_ns;
    if (lep_random_below(&delays.random, OUTLIERS_IN) == 0)
        ns *= OUTLIER_TIMES;
    if (answer)
        ns += delays.asymmetry_ns;
    lep_sleep_ns((int64_t)ns);
}

/* By ten exchanges, what the model of a partner makes of its clock at some moment, less what rank 0's shows: the
 * smallest (the paper), and that of the shortest round trip, which is known to within half of this. */
typedef struct {
    double smallest_ns, shortest_ns, half_trip_ns;
} difference;

static difference difference_to(int partner, MPI_Comm comm, const lep_clock *clock) {
    lep_clock_exchange rounds[ROUNDS];
    difference found = {.smallest_ns = INFINITY, .half_trip_ns = INFINITY};
    lep_clock_ask(comm, partner, clock, rounds, ROUNDS);
    for (int i = 0; i < ROUNDS; i++) {
        double here = (double)(rounds[i].remote_ns - rounds[i].before_ns) / 2 -
                      (double)(rounds[i].after_ns - rounds[i].remote_ns) / 2;
        double half_trip_ns = (double)(rounds[i].after_ns - rounds[i].before_ns) / 2;
        if (fabs(here) < fabs(found.smallest_ns))
            found.smallest_ns = here;
        if (half_trip_ns < found.half_trip_ns) {
            found.half_trip_ns = half_trip_ns;
            found.shortest_ns = here;
        }
    }
    return found;
}

static void check_by_messages(const lep_clock_session *session, const lep_clock_model *model, check *result) {
    difference mine = {0};
    for (int rank = 1; rank < session->ranks; rank++) {
        if (session->rank == 0) {
            difference of_rank = difference_to(rank, session->comm, session->clock);
            MPI_Send(&of_rank, 3, MPI_DOUBLE, rank, 1, session->comm);
        } else if (session->rank == rank) {
            lep_clock_answer(session->comm, 0, session->clock, model);
            MPI_Recv(&mine, 3, MPI_DOUBLE, 0, 1, session->comm, MPI_STATUS_IGNORE);
        }
    }
    result->error_ns = mine.smallest_ns;
    result->shortest_ns = mine.shortest_ns;
    result->half_trip_ns = mine.half_trip_ns;
    result->deviation_ns = lep_clock_deviation_ns(model, lep_clock_read_ns(session->clock));
}

static void check_made(const lep_clock *mine, const lep_clock_model *model, int64_t base_ns, check *result) {
    int64_t x_ns = mine->base ? lep_clock_made_at(mine, base_ns) : base_ns;
    result->error_ns = (double)(lep_clock_at(model, x_ns) - base_ns);
    result->deviation_ns = lep_clock_deviation_ns(model, x_ns);
}

static struct {
    double drifts[WANDER_S * (1000000000 / LEP_WANDER_STEP_NS)];
    double gained_ns[WANDER_S * (1000000000 / LEP_WANDER_STEP_NS)];
} wandering; /* of this rank's clock */

static double normal(lep_random *random) {
    double radius = sqrt(-2 * log(uniform(random)));
    return radius * cos(2 * M_PI * uniform(random));
}

/* A newly drawn clock of this rank, from now on; rank 0's, and where none are made, is the base. */
static lep_clock drawn_clock(const lep_clock_session *session, const lep_clock *base, const plan *todo,
                             lep_random *random) {
    int64_t start_ns = lep_clock_read_ns(base);
    MPI_Bcast(&start_ns, 1, MPI_INT64_T, 0, session->comm);
    double ahead_s = between(random, todo->ahead_s), drift = between(random, todo->drift),
           drift_after = todo->change_after_s > 0 ? between(random, todo->drift) : drift;
    if (!todo->made || session->rank == 0)
        return *base;
    lep_clock made = lep_clock_made(base, start_ns, llround(ahead_s * 1e9), drift,
                                    start_ns + llround(todo->change_after_s * 1e9), drift_after);
    if (todo->wander > 0) {
        const int steps = sizeof wandering.drifts / sizeof *wandering.drifts;
        const double of_step = todo->wander * sqrt(1e-9 * LEP_WANDER_STEP_NS);
        for (int step = 0; step < steps; step++) {
            wandering.drifts[step] = drift;
            drift += of_step * normal(random);
        }
        lep_clock_wanders(&made, wandering.drifts, wandering.gained_ns, steps);
    }
    return made;
}

/* *took_s: of the rank that took longest. */
static lep_clock_model timed(lep_clock_session *session, const lep_clock *base, const lep_clock_method *method,
                             double *took_s) {
    MPI_Barrier(session->comm);
    int64_t began_ns = lep_clock_read_ns(base);
    lep_clock_model model = method->synchronise(session);
    double mine_s = 1e-9 * (double)(lep_clock_read_ns(base) - began_ns);
    MPI_Allreduce(&mine_s, took_s, 1, MPI_DOUBLE, MPI_MAX, session->comm);
    MPI_Barrier(session->comm);
    return model;
}

/* Returns how long it took, s. */
static double synchronise(lep_clock_session *session, const lep_clock *base, const lep_clock_method *method,
                          const plan *todo, lep_random *random, check *results) {
    lep_clock made = drawn_clock(session, base, todo, random);
    session->clock = &made;
    double longest_s;
    lep_clock_model model = timed(session, base, method, &longest_s);
    int64_t end_ns = lep_clock_read_ns(base);
    if (todo->made) /* of one base; clocks of hosts may be days apart */
        MPI_Bcast(&end_ns, 1, MPI_INT64_T, 0, session->comm);
    for (int i = 0; i < todo->checks; i++) {
        int64_t then_ns = end_ns + llround(todo->after_s[i] * 1e9);
        results[i] = first_check(&model, &made, todo->after_s[i]);
        if (todo->made) {
            check_made(&made, &model, then_ns, &results[i]);
            results[i].true_ns = results[i].error_ns;
            continue;
        }
        lep_sleep_ns(then_ns - lep_clock_read_ns(base));
        MPI_Barrier(session->comm);
        check_by_messages(session, &model, &results[i]);
    }
    return longest_s;
}

typedef struct {
    lep_clock_model model;
    int64_t end_ns; /* by rank 0's base, as all moments that are waited for */
    int checked;
    double took_s;
} synchronised;

/* About as long as a method takes, for rank 0 to see whether it ends before the next look is due. */
static int64_t expected_ns(const lep_clock_session *session, const lep_clock_method *method) {
    int64_t levels = 1, line_ns = session->options.points * session->options.spacing_ns;
    while (1 << levels < session->ranks)
        levels++;
    return (method->learns_drift ? levels * line_ns : 0) + 200000000;
}

enum { SYNCHRONISE, LOOK, END };

/* What is next, of which method, and how many ns before it is due: for rank 0 to decide. */
static void next_of(const lep_clock_session *session, const lep_clock *base, const lep_clock_method *const *methods,
                    int count, const synchronised *done, int begun, const plan *todo, int64_t next[3]) {
    int64_t now_ns = lep_clock_read_ns(base), due_ns = INT64_MAX;
    int which = -1;
    for (int i = 0; i < begun; i++) {
        if (done[i].checked == todo->checks)
            continue;
        int64_t then_ns = done[i].end_ns + llround(1e9 * todo->after_s[done[i].checked]);
        if (then_ns < due_ns) {
            due_ns = then_ns;
            which = i;
        }
    }
    bool fits = begun < count && (which < 0 || now_ns + expected_ns(session, methods[begun]) < due_ns);
    next[0] = fits ? SYNCHRONISE : which >= 0 ? LOOK : END;
    next[1] = fits ? begun : which;
    next[2] = fits || which < 0 || due_ns < now_ns ? 0 : due_ns - now_ns;
}

/* Of a rank, of each method `checks` results one after the other. shared: all ranks read the same base. */
static void synchronise_together(lep_clock_session *session, const lep_clock *base,
                                 const lep_clock_method *const *methods, int count, const plan *todo, bool shared,
                                 lep_random *random, check *results, synchronised *done) {
    lep_clock made = drawn_clock(session, base, todo, random);
    session->clock = &made;
    for (int begun = 0;;) {
        int64_t next[3] = {END, 0, 0};
        if (session->rank == 0)
            next_of(session, base, methods, count, done, begun, todo, next);
        MPI_Bcast(next, 3, MPI_INT64_T, 0, session->comm);
        if (next[0] == END)
            return;
        synchronised *one = &done[next[1]];
        if (next[0] == SYNCHRONISE) {
            one->model = timed(session, base, methods[begun], &one->took_s);
            one->end_ns = lep_clock_read_ns(base);
            one->checked = 0;
            begun++;
            continue;
        }
        lep_sleep_ns(next[2]); /* each by its own clock: those of hosts may be days apart */
        MPI_Barrier(session->comm);
        check *result = &results[next[1] * todo->checks + one->checked++];
        *result = first_check(&one->model, &made, 1e-9 * (double)(lep_clock_read_ns(base) - one->end_ns));
        check_by_messages(session, &one->model, result);
        if (shared || todo->made) {
            check exact;
            check_made(&made, &one->model, lep_clock_read_ns(base), &exact);
            result->true_ns = exact.error_ns;
        }
    }
}

static bool on_one_machine(const lep_clock_session *session) {
    for (int rank = 1; rank < session->ranks; rank++)
        if (session->machines[rank] != session->machines[0])
            return false;
    return true;
}

static int methods_of(const char *text, const lep_clock_method **methods) {
    char *copy = strdup(text);
    int count = 0;
    for (char *name = strtok(copy, ","); name; name = strtok(NULL, ",")) {
        if (count == MOST_METHODS || !(methods[count] = lep_clock_method_named(name)))
            lep_fail("--methods: %s is none of SKaMPI, Netgauge, JK, HCA, HCA2, HCA3", name);
        count++;
    }
    free(copy);
    return count;
}

static double number(const lep_option *options, size_t count, const char *name, double low, double high) {
    const char *text = lep_option_text(options, count, name);
    char *end;
    double value = strtod(text, &end);
    if (*end || end == text || !(value >= low && value <= high))
        lep_fail("%s is %s; it must be a number from %g to %g", name, text, low, high);
    return value;
}

static int checks_of(const char *text, double *after_s) {
    int count = 0;
    char *copy = strdup(text);
    for (char *word = strtok(copy, ","); word; word = strtok(NULL, ",")) {
        char *end;
        if (count == MOST_CHECKS || !((after_s[count] = strtod(word, &end)) >= 0) || *end)
            lep_fail("--after-s is %s; give up to %d times in seconds, such as 0,5,20", text, MOST_CHECKS);
        if (count && after_s[count] < after_s[count - 1])
            lep_fail("--after-s is %s; the times must not decrease", text);
        count++;
    }
    free(copy);
    return count;
}

/* A number, or nothing where it is not known. */
static void write_number(FILE *file, const char *form, double value) {
    fputc(',', file);
    if (isfinite(value))
        fprintf(file, form, value);
}

/* rows: of each rank, the first of them `each` after that of the rank before */
static void write_rows(FILE *file, const char *path, int trial, const char *method, int ranks, double took_s,
                       const plan *todo, const check *rows, int each) {
    for (int rank = 0; rank < ranks; rank++)
        for (int i = 0; i < todo->checks; i++) {
            const check *row = &rows[rank * each + i];
            fprintf(file, "%d,%s,%d,%d,%g,%.0f,%.1f,%.1f,%.6f,%.0f,%.4e", trial, method, ranks, rank, todo->after_s[i],
                    row->error_ns, row->deviation_ns, row->bound_ns, took_s, row->ahead_ns, row->drift);
            write_number(file, "%.6f", row->checked_s);
            write_number(file, "%.0f", row->true_ns);
            write_number(file, "%.1f", row->shortest_ns);
            write_number(file, "%.1f", row->half_trip_ns);
            fputc('\n', file);
        }
    lep_output_flush(file, path);
}

int main(int argc, char **argv) {
    int ranks;
    lep_mpi_start("probe-clocks", &argc, &argv, &ranks);
    lep_option options[] = {
        {"--out", NULL, true, "file of the rows"},
        {"--seed", "1", false, "of all that is drawn"},
        {"--trials", "1", false, "synchronisations by each method"},
        {"--methods", "SKaMPI,Netgauge,JK,HCA,HCA2,HCA3", false, "which ones"},
        {"--clock", "clock_gettime", false, "MPI_Wtime, clock_gettime, rdtscp, rdtscp:HZ, rdtscp:estimated"},
        {"--after-s", "0,5,20", false, "when to look at the errors"},
        {"--exchanges", "100", false, "for an offset"},
        {"--points", "30", false, "of a line"},
        {"--exchanges-a-point", "10", false, "for one of them"},
        {"--spacing-s", "0.02", false, "between points"},
        {"--made", "0", false, "1: clocks made from one that all ranks share"},
        {"--ahead-s", "1", false, "at most, of a made clock"},
        {"--drift", "1e-4", false, "at most, of a made clock"},
        {"--change-after-s", "0", false, "another drift from then on; 0: never"},
        {"--wander", "0", false, "deviation by which the drift of a made clock has walked after a second"},
        {"--together", "0", false, "1: all methods of a trial on one clock, looked at while the next ones synchronise"},
        {"--in-order", "0", false, "1: methods in the order in which they are named, else shuffled"},
        {"--jitter-ns", "0", false, "mean by which messages seem late"},
        {"--asymmetry-ns", "0", false, "by which answers are later than questions"},
    };
    const size_t count = sizeof options / sizeof *options;
    lep_options_read(options, count, argc, argv);
    long long seed = lep_option_integer(options, count, "--seed", 0, INT64_MAX);
    int trials = (int)lep_option_integer(options, count, "--trials", 1, 1000000);
    const char *path = lep_option_text(options, count, "--out");
    plan todo = {
        .made = lep_option_integer(options, count, "--made", 0, 1) == 1,
        .ahead_s = number(options, count, "--ahead-s", 0, 1e6),
        .drift = number(options, count, "--drift", 0, 1e-2),
        .change_after_s = number(options, count, "--change-after-s", 0, 1e6),
        .wander = number(options, count, "--wander", 0, 1e-2),
    };
    todo.checks = checks_of(lep_option_text(options, count, "--after-s"), todo.after_s);
    const lep_clock_method *methods[MOST_METHODS];
    int method_count = methods_of(lep_option_text(options, count, "--methods"), methods);
    lep_clock_options how = LEP_CLOCK_DEFAULTS;
    how.exchanges = (int)lep_option_integer(options, count, "--exchanges", 1, LEP_CLOCK_MOST_EXCHANGES);
    how.points = (int)lep_option_integer(options, count, "--points", 3, 100000);
    how.exchanges_a_point = (int)lep_option_integer(options, count, "--exchanges-a-point", 1, LEP_CLOCK_MOST_EXCHANGES);
    how.spacing_ns = llround(1e9 * number(options, count, "--spacing-s", 0, 60));
    bool together = lep_option_integer(options, count, "--together", 0, 1) == 1,
         in_order = lep_option_integer(options, count, "--in-order", 0, 1) == 1;
    delays.jitter_ns = number(options, count, "--jitter-ns", 0, 1e9);
    delays.asymmetry_ns = number(options, count, "--asymmetry-ns", 0, 1e9);
    delays.random = lep_random_seeded((uint64_t)seed, 2 * (uint64_t)lep_self.rank + 1);

    lep_clock base;
    const char *problem = lep_clock_open(&base, lep_option_text(options, count, "--clock"));
    if (problem)
        lep_fail("--clock %s: %s", lep_option_text(options, count, "--clock"), problem);
    if (delays.jitter_ns > 0 || delays.asymmetry_ns > 0)
        base.after_receive = delay;
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    lep_clock_session session;
    if (!lep_clock_session_open(&session, comm, &base, &how))
        lep_fail("not enough memory");
    const size_t most = (size_t)MOST_CHECKS * (together ? MOST_METHODS : 1);
    check *mine = lep_allocate(sizeof(check) * most, "the results of a rank");
    check *all = lep_allocate(sizeof(check) * most * (size_t)ranks, "the results of all ranks");
    const bool shared = strcmp(base.name, "clock_gettime") == 0 && on_one_machine(&session);
    FILE *file = NULL;
    if (lep_self.rank == 0) {
        file = lep_output_open(path, lep_mpi_library(), seed, argc, argv);
        lep_output_note(file, "clock_source", "%s", base.name);
        lep_output_note(file, "clock_resolution_ns", "%lld", (long long)base.resolution_ns);
        if (base.ticks_per_s > 0)
            lep_output_note(file, "clock_frequency_Hz", "%.6f (%s)", base.ticks_per_s, base.ticks_from);
        lep_output_columns(file,
                           "trial,method,ranks,rank,after_s,error_ns,deviation_ns,bound_ns,duration_s,"
                           "true_offset_ns,true_drift,checked_s,true_error_ns,shortest_error_ns,half_round_trip_ns");
    }
    lep_random order = lep_random_seeded((uint64_t)seed, 0); /* the same on all ranks */
    lep_random clocks = lep_random_seeded((uint64_t)seed, 2 * (uint64_t)lep_self.rank + 2);
    int bytes = todo.checks * (int)sizeof(check);
    for (int trial = 0; trial < trials; trial++) {
        for (int i = method_count - 1; i > 0 && !in_order; i--) {
            int other = (int)lep_random_below(&order, (uint64_t)i + 1);
            const lep_clock_method *method = methods[i];
            methods[i] = methods[other];
            methods[other] = method;
        }
        if (together) {
            synchronised done[MOST_METHODS];
            synchronise_together(&session, &base, methods, method_count, &todo, shared, &clocks, mine, done);
            MPI_Gather(mine, method_count * bytes, MPI_BYTE, all, method_count * bytes, MPI_BYTE, 0, comm);
            for (int i = 0; file && i < method_count; i++)
                write_rows(file, path, trial, methods[i]->name, ranks, done[i].took_s, &todo,
                           all + (size_t)i * todo.checks, method_count * todo.checks);
            continue;
        }
        for (int i = 0; i < method_count; i++) {
            double took_s = synchronise(&session, &base, methods[i], &todo, &clocks, mine);
            MPI_Gather(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, 0, comm);
            if (file)
                write_rows(file, path, trial, methods[i]->name, ranks, took_s, &todo, all, todo.checks);
        }
    }
    if (file)
        lep_output_close(file, path);
    lep_clock_session_close(&session);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return 0;
}
