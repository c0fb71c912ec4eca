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

enum { MOST_CHECKS = 8, MOST_METHODS = 8, ROUNDS = 10, OUTLIERS_IN = 100, OUTLIER_TIMES = 50 };

typedef struct {
    double error_ns, deviation_ns, bound_ns, ahead_ns, drift;
} check;

typedef struct {
    bool made;
    double ahead_s, drift, change_after_s;
    int checks;
    double after_s[MOST_CHECKS];
} plan;

/* ---- messages that seem late ---------------------------------------------------------------------------------- */

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
    struct timespec pause = {.tv_sec = (time_t)(ns / 1e9), .tv_nsec = (long)fmod(ns, 1e9)};
    nanosleep(&pause, NULL);
}

/* ---- one synchronisation --------------------------------------------------------------------------------------- */

/* What rank 0's clock shows at some moment, less what the model of `partner` makes of its own, by ten exchanges. */
static double difference_to(int partner, MPI_Comm comm, const lep_clock *clock) {
    lep_clock_exchange rounds[ROUNDS];
    double least = INFINITY;
    lep_clock_ask(comm, partner, clock, rounds, ROUNDS);
    for (int i = 0; i < ROUNDS; i++) {
        double here = (double)(rounds[i].remote_ns - rounds[i].before_ns) / 2 -
                      (double)(rounds[i].after_ns - rounds[i].remote_ns) / 2;
        if (fabs(here) < fabs(least))
            least = here;
    }
    return least;
}

static void check_by_messages(const lep_clock_session *session, const lep_clock_model *model, check *result) {
    double error_ns = 0;
    for (int rank = 1; rank < session->ranks; rank++) {
        if (session->rank == 0) {
            error_ns = difference_to(rank, session->comm, session->clock);
            MPI_Send(&error_ns, 1, MPI_DOUBLE, rank, 1, session->comm);
            error_ns = 0;
        } else if (session->rank == rank) {
            lep_clock_answer(session->comm, 0, session->clock, model);
            MPI_Recv(&error_ns, 1, MPI_DOUBLE, 0, 1, session->comm, MPI_STATUS_IGNORE);
        }
    }
    result->error_ns = error_ns;
    result->deviation_ns = lep_clock_deviation_ns(model, lep_clock_read_ns(session->clock));
}

static void check_made(const lep_clock *mine, const lep_clock_model *model, int64_t base_ns, check *result) {
    int64_t x_ns = mine->base ? lep_clock_made_at(mine, base_ns) : base_ns;
    result->error_ns = (double)(lep_clock_at(model, x_ns) - base_ns);
    result->deviation_ns = lep_clock_deviation_ns(model, x_ns);
}

/* Returns how long it took, s: of the rank that took longest. */
static double synchronise(lep_clock_session *session, const lep_clock *base, const lep_clock_method *method,
                          const plan *todo, lep_random *random, check *results) {
    lep_clock made = *base;
    int64_t start_ns = lep_clock_read_ns(base);
    MPI_Bcast(&start_ns, 1, MPI_INT64_T, 0, session->comm);
    double ahead_s = between(random, todo->ahead_s), drift = between(random, todo->drift),
           drift_after = todo->change_after_s > 0 ? between(random, todo->drift) : drift;
    if (todo->made && session->rank > 0)
        made = lep_clock_made(base, start_ns, llround(ahead_s * 1e9), drift,
                              start_ns + llround(todo->change_after_s * 1e9), drift_after);
    session->clock = &made;
    MPI_Barrier(session->comm);
    int64_t began_ns = lep_clock_read_ns(base);
    lep_clock_model model = method->synchronise(session);
    double took_s = 1e-9 * (double)(lep_clock_read_ns(base) - began_ns), longest_s;
    MPI_Allreduce(&took_s, &longest_s, 1, MPI_DOUBLE, MPI_MAX, session->comm);
    MPI_Barrier(session->comm);
    int64_t end_ns = lep_clock_read_ns(base);
    MPI_Bcast(&end_ns, 1, MPI_INT64_T, 0, session->comm);
    for (int i = 0; i < todo->checks; i++) {
        int64_t then_ns = end_ns + llround(todo->after_s[i] * 1e9);
        results[i] = (check){.bound_ns = model.bound_ns, .ahead_ns = (double)made.ahead_ns, .drift = made.drift};
        if (todo->made) {
            check_made(&made, &model, then_ns, &results[i]);
            continue;
        }
        int64_t left_ns = then_ns - lep_clock_read_ns(base);
        struct timespec pause = {.tv_sec = left_ns / 1000000000, .tv_nsec = left_ns % 1000000000};
        if (left_ns > 0)
            nanosleep(&pause, NULL);
        MPI_Barrier(session->comm);
        check_by_messages(session, &model, &results[i]);
    }
    return longest_s;
}

/* ---- the program ------------------------------------------------------------------------------------------------ */

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

static void write_rows(FILE *file, const char *path, int trial, const char *method, int ranks, double took_s,
                       const plan *todo, const check *rows) {
    for (int rank = 0; rank < ranks; rank++)
        for (int i = 0; i < todo->checks; i++) {
            const check *row = &rows[rank * todo->checks + i];
            fprintf(file, "%d,%s,%d,%d,%g,%.0f,%.1f,%.1f,%.6f,%.0f,%.4e\n", trial, method, ranks, rank,
                    todo->after_s[i], row->error_ns, row->deviation_ns, row->bound_ns, took_s, row->ahead_ns,
                    row->drift);
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
    };
    todo.checks = checks_of(lep_option_text(options, count, "--after-s"), todo.after_s);
    const lep_clock_method *methods[MOST_METHODS];
    int method_count = methods_of(lep_option_text(options, count, "--methods"), methods);
    lep_clock_options how = LEP_CLOCK_DEFAULTS;
    how.exchanges = (int)lep_option_integer(options, count, "--exchanges", 1, LEP_CLOCK_MOST_EXCHANGES);
    how.points = (int)lep_option_integer(options, count, "--points", 3, 100000);
    how.exchanges_a_point = (int)lep_option_integer(options, count, "--exchanges-a-point", 1, LEP_CLOCK_MOST_EXCHANGES);
    how.spacing_ns = llround(1e9 * number(options, count, "--spacing-s", 0, 60));
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
    check *mine = lep_allocate(sizeof(check) * MOST_CHECKS, "the results of a rank");
    check *all = lep_allocate(sizeof(check) * MOST_CHECKS * (size_t)ranks, "the results of all ranks");
    FILE *file = NULL;
    if (lep_self.rank == 0) {
        file = lep_output_open(path, lep_mpi_library(), seed, argc, argv);
        lep_output_note(file, "clock_source", "%s", base.name);
        lep_output_note(file, "clock_resolution_ns", "%lld", (long long)base.resolution_ns);
        if (base.ticks_per_s > 0)
            lep_output_note(file, "clock_frequency_Hz", "%.6f (%s)", base.ticks_per_s, base.ticks_from);
        lep_output_columns(file, "trial,method,ranks,rank,after_s,error_ns,deviation_ns,bound_ns,duration_s,"
                                 "true_offset_ns,true_drift");
    }
    lep_random order = lep_random_seeded((uint64_t)seed, 0); /* the same on all ranks */
    lep_random clocks = lep_random_seeded((uint64_t)seed, 2 * (uint64_t)lep_self.rank + 2);
    int bytes = todo.checks * (int)sizeof(check);
    for (int trial = 0; trial < trials; trial++) {
        for (int i = method_count - 1; i > 0; i--) {
            int other = (int)lep_random_below(&order, (uint64_t)i + 1);
            const lep_clock_method *method = methods[i];
            methods[i] = methods[other];
            methods[other] = method;
        }
        for (int i = 0; i < method_count; i++) {
            double took_s = synchronise(&session, &base, methods[i], &todo, &clocks, mine);
            MPI_Gather(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, 0, comm);
            if (file)
                write_rows(file, path, trial, methods[i]->name, ranks, took_s, &todo, all);
        }
    }
    if (file)
        lep_output_close(file, path);
    lep_clock_session_close(&session);
    MPI_Comm_free(&comm);
    lep_mpi_finish();
    return 0;
}
