#include "clock_sync.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TAG_MODELS = 9 };

/* ---- pieces of the methods ------------------------------------------------------------------------------------ */

static lep_clock_model of_offset(const lep_clock_session *session, lep_clock_offset offset) {
    double drift = session->options.drift_deviation;
    return lep_clock_fitted(&offset.x_ns, &offset.offset_ns, &offset.deviation_ns, &offset.bound_ns, 1,
                            session->clock->resolution_ns, drift * drift);
}

/* `drift`: of the partner's clock, as far as it is known. */
static lep_clock_offset ask_by_bounds(lep_clock_session *session, int partner, double drift) {
    int count = session->options.exchanges;
    lep_clock_ask(session->comm, partner, session->clock, session->exchanges, count);
    return lep_offset_by_bounds(session->exchanges, count, session->scratch, session->clock->resolution_ns, drift);
}

/* Until no shorter round trip has been seen `exchanges` times. */
static lep_clock_offset ask_by_shortest(lep_clock_session *session, int partner) {
    int count = 0, best = 0;
    bool more = true;
    while (more) {
        more = count + 1 < LEP_CLOCK_MOST_EXCHANGES && count - best + 1 < session->options.exchanges;
        lep_clock_exchange *last = &session->exchanges[count], *least = &session->exchanges[best];
        lep_clock_ask_once(session->comm, partner, session->clock, last, more);
        if (last->after_ns - last->before_ns < least->after_ns - least->before_ns)
            best = count;
        count++;
    }
    return lep_offset_by_shortest(session->exchanges, count, session->scratch, session->clock->resolution_ns);
}

static void wait_until(const lep_clock *clock, int64_t then_ns) {
    int64_t left_ns = then_ns - lep_clock_read_ns(clock);
    if (left_ns <= 0)
        return;
    struct timespec pause = {.tv_sec = left_ns / 1000000000, .tv_nsec = left_ns % 1000000000};
    nanosleep(&pause, NULL);
}

typedef lep_clock_offset (*offset_of)(const lep_clock_exchange *exchanges, int count, double *scratch,
                                      int64_t resolution_ns);

static void ask_point(lep_clock_session *session, int partner, int point, offset_of estimate) {
    int count = session->options.exchanges_a_point;
    lep_clock_ask(session->comm, partner, session->clock, session->exchanges, count);
    lep_clock_offset offset = estimate(session->exchanges, count, session->scratch, session->clock->resolution_ns);
    session->times_ns[point] = offset.x_ns;
    session->offsets_ns[point] = offset.offset_ns;
    session->deviations_ns[point] = offset.deviation_ns;
    session->bounds_ns[point] = offset.bound_ns;
}

/* The least latencies of the exchanges of a point: no drift is known yet. */
static lep_clock_offset point_by_bounds(const lep_clock_exchange *exchanges, int count, double *scratch,
                                        int64_t resolution_ns) {
    return lep_offset_by_bounds(exchanges, count, scratch, resolution_ns, 0);
}

static lep_clock_model of_points(const lep_clock_session *session) {
    double drift = session->options.drift_deviation;
    return lep_clock_fitted(session->times_ns, session->offsets_ns, session->deviations_ns, session->bounds_ns,
                            session->options.points, session->clock->resolution_ns, drift * drift);
}

static lep_clock_model ask_line(lep_clock_session *session, int partner, offset_of estimate) {
    lep_clock_ask(session->comm, partner, session->clock, session->exchanges, 1); /* waits until the partner answers */
    int64_t start_ns = lep_clock_read_ns(session->clock);
    for (int point = 0; point < session->options.points; point++) {
        wait_until(session->clock, start_ns + point * session->options.spacing_ns);
        ask_point(session, partner, point, estimate);
    }
    return of_points(session);
}

static void answer_line(const lep_clock_session *session, int partner, const lep_clock_model *model) {
    for (int call = 0; call < 1 + session->options.points; call++)
        lep_clock_answer(session->comm, partner, session->clock, model);
}

/* The drift of a line, the offset of exchanges after it: the offset that a line gives is worse (the paper, 4.4). */
static lep_clock_model with_offset(const lep_clock_model *line, lep_clock_offset offset) {
    return (lep_clock_model){
        .x0_ns = offset.x_ns,
        .y0_ns = offset.x_ns + llround(offset.offset_ns),
        .drift = line->drift,
        .variance_ns2 = offset.deviation_ns * offset.deviation_ns,
        .drift_variance = line->drift_variance,
        .bound_ns = offset.bound_ns,
    };
}

/* ---- from rank 0, one rank after the other -------------------------------------------------------------------- */

static lep_clock_model offsets_from_root(lep_clock_session *session, double drift) {
    lep_clock_model mine = lep_clock_identity();
    for (int client = 1; client < session->ranks; client++) {
        if (session->rank == 0)
            lep_clock_answer(session->comm, client, session->clock, NULL);
        else if (session->rank == client)
            mine = of_offset(session, ask_by_bounds(session, 0, drift));
    }
    return mine;
}

static lep_clock_model skampi(lep_clock_session *session) {
    return offsets_from_root(session, 0);
}

static lep_clock_model jones_koenig(lep_clock_session *session) {
    if (session->ranks == 1)
        return lep_clock_identity();
    int64_t start_ns = lep_clock_read_ns(session->clock);
    for (int point = 0; point < session->options.points; point++) {
        if (session->rank > 0) {
            ask_point(session, 0, point, lep_offset_by_median);
            continue;
        }
        wait_until(session->clock, start_ns + point * session->options.spacing_ns);
        for (int client = 1; client < session->ranks; client++)
            lep_clock_answer(session->comm, client, session->clock, NULL);
    }
    return session->rank == 0 ? lep_clock_identity() : of_points(session);
}

/* ---- in a tree from the leaves up: every rank ends with the models of those below it, rank 0 with all ---------- */

typedef lep_clock_model (*pair_method)(lep_clock_session *session, int partner, bool asks);

static lep_clock_model pair_offset(lep_clock_session *session, int partner, bool asks) {
    if (asks)
        return of_offset(session, ask_by_shortest(session, partner));
    lep_clock_answer(session->comm, partner, session->clock, NULL);
    return lep_clock_identity();
}

static lep_clock_model pair_line(lep_clock_session *session, int partner, bool asks) {
    if (asks)
        return ask_line(session, partner, lep_offset_by_median);
    answer_line(session, partner, NULL);
    return lep_clock_identity();
}

static lep_clock_model pair_line_and_offset(lep_clock_session *session, int partner, bool asks) {
    lep_clock_model line = pair_line(session, partner, asks);
    if (asks)
        return with_offset(&line, ask_by_bounds(session, partner, line.drift));
    lep_clock_answer(session->comm, partner, session->clock, NULL);
    return line;
}

static int least(int a, int b) {
    return a < b ? a : b;
}

static lep_clock_model leaves_to_root(lep_clock_session *session, pair_method pair) {
    const int rank = session->rank, ranks = session->ranks, bytes = (int)sizeof(lep_clock_model);
    lep_clock_model *models = session->models; /* models[i]: of rank + i, by this rank's clock */
    models[0] = lep_clock_identity();
    for (int step = 1; step < ranks; step *= 2) {
        if (rank % (2 * step) == step) {
            lep_clock_model mine = pair(session, rank - step, true);
            MPI_Send(models, least(step, ranks - rank) * bytes, MPI_BYTE, rank - step, TAG_MODELS, session->comm);
            MPI_Send(&mine, bytes, MPI_BYTE, rank - step, TAG_MODELS, session->comm);
            break;
        }
        int client = rank + step;
        if (client >= ranks)
            continue;
        pair(session, client, false);
        int below = least(step, ranks - client);
        lep_clock_model theirs;
        MPI_Recv(models + step, below * bytes, MPI_BYTE, client, TAG_MODELS, session->comm, MPI_STATUS_IGNORE);
        MPI_Recv(&theirs, bytes, MPI_BYTE, client, TAG_MODELS, session->comm, MPI_STATUS_IGNORE);
        for (int i = 0; i < below; i++)
            models[step + i] = lep_clock_joined(&models[step + i], &theirs);
    }
    lep_clock_model mine;
    MPI_Scatter(models, bytes, MPI_BYTE, &mine, bytes, MPI_BYTE, 0, session->comm);
    return mine;
}

static lep_clock_model netgauge(lep_clock_session *session) {
    return leaves_to_root(session, pair_offset);
}

static lep_clock_model hca(lep_clock_session *session) {
    lep_clock_model line = leaves_to_root(session, pair_line), offset = offsets_from_root(session, line.drift);
    if (session->rank == 0)
        return line;
    offset.drift = line.drift;
    offset.drift_variance = line.drift_variance;
    return offset;
}

static lep_clock_model hca2(lep_clock_session *session) {
    return leaves_to_root(session, pair_line_and_offset);
}

/* ---- in a tree from the root down ------------------------------------------------------------------------------ */

/* The errors of a reference, by the global time that it shows, as a model of that time by itself. */
static lep_clock_model errors_of(const lep_clock_model *reference, int64_t at_ns) {
    lep_clock_model errors = lep_clock_moved(reference, at_ns);
    errors.x0_ns = errors.y0_ns;
    errors.drift = 0;
    return errors;
}

static lep_clock_model hca3(lep_clock_session *session) {
    const int rank = session->rank, ranks = session->ranks, bytes = (int)sizeof(lep_clock_model);
    lep_clock_model mine = lep_clock_identity();
    int step = 1;
    while (step < ranks)
        step *= 2;
    for (step /= 2; step >= 1; step /= 2) {
        if (rank % (2 * step) == step) {
            int reference = rank - step;
            lep_clock_model line = ask_line(session, reference, point_by_bounds), errors;
            line = with_offset(&line, ask_by_bounds(session, reference, line.drift));
            MPI_Recv(&errors, bytes, MPI_BYTE, reference, TAG_MODELS, session->comm, MPI_STATUS_IGNORE);
            mine = lep_clock_joined(&line, &errors);
        } else if (rank % (2 * step) == 0 && rank + step < ranks) {
            answer_line(session, rank + step, &mine);
            lep_clock_answer(session->comm, rank + step, session->clock, &mine);
            lep_clock_model errors = errors_of(&mine, lep_clock_read_ns(session->clock));
            MPI_Send(&errors, bytes, MPI_BYTE, rank + step, TAG_MODELS, session->comm);
        }
    }
    return mine;
}

/* ---- the struct of functions ----------------------------------------------------------------------------------- */

const lep_clock_method lep_clock_methods[] = {
    {"SKaMPI", false, skampi}, {"Netgauge", false, netgauge}, {"JK", true, jones_koenig},
    {"HCA", true, hca},        {"HCA2", true, hca2},          {"HCA3", true, hca3},
};
const int lep_clock_method_count = sizeof lep_clock_methods / sizeof *lep_clock_methods;

const lep_clock_method *lep_clock_method_named(const char *name) {
    for (int i = 0; i < lep_clock_method_count; i++)
        if (strcmp(lep_clock_methods[i].name, name) == 0)
            return &lep_clock_methods[i];
    return NULL;
}

bool lep_clock_session_open(lep_clock_session *session, MPI_Comm comm, const lep_clock *clock,
                            const lep_clock_options *options) {
    *session = (lep_clock_session){.comm = comm, .clock = clock, .options = *options};
    MPI_Comm_rank(comm, &session->rank);
    MPI_Comm_size(comm, &session->ranks);
    size_t most = LEP_CLOCK_MOST_EXCHANGES, points = (size_t)options->points;
    session->exchanges = calloc(most, sizeof *session->exchanges);
    session->scratch = calloc(most, sizeof *session->scratch);
    session->offsets_ns = calloc(points, sizeof *session->offsets_ns);
    session->deviations_ns = calloc(points, sizeof *session->deviations_ns);
    session->bounds_ns = calloc(points, sizeof *session->bounds_ns);
    session->times_ns = calloc(points, sizeof *session->times_ns);
    session->models = calloc((size_t)session->ranks, sizeof *session->models);
    int missing = !session->exchanges || !session->scratch || !session->offsets_ns || !session->deviations_ns ||
                  !session->bounds_ns || !session->times_ns || !session->models;
    MPI_Allreduce(MPI_IN_PLACE, &missing, 1, MPI_INT, MPI_MAX, comm);
    if (missing)
        lep_clock_session_close(session);
    return !missing;
}

void lep_clock_session_close(lep_clock_session *session) {
    free(session->exchanges);
    free(session->scratch);
    free(session->offsets_ns);
    free(session->deviations_ns);
    free(session->bounds_ns);
    free(session->times_ns);
    free(session->models);
    *session = (lep_clock_session){0};
}
