#include "clock_sync.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "probe_common.h"

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
        lep_sleep_ns(start_ns + point * session->options.spacing_ns - lep_clock_read_ns(session->clock));
        ask_point(session, partner, point, estimate);
    }
    return of_points(session);
}

static void answer_line(const lep_clock_session *session, int partner) {
    for (int call = 0; call < 1 + session->options.points; call++)
        lep_clock_answer(session->comm, partner, session->clock, NULL);
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

/* In a tree every rank but 0 learns the clock of one other. */
static int partner_in_tree(int rank) {
    return rank & (rank - 1);
}

/* Every rank has the model of a partner's clock (rank 0's, or that in the tree); lines are shrunk with those of alike
 * pairs: on one machine, or on two. Gives each rank the model of rank 0's clock. */
static lep_clock_model settled(lep_clock_session *session, lep_clock_model mine, bool lines, bool tree) {
    const int bytes = (int)sizeof(lep_clock_model);
    lep_clock_model *models = session->models;
    MPI_Gather(&mine, bytes, MPI_BYTE, models, bytes, MPI_BYTE, 0, session->comm);
    if (session->rank == 0) {
        for (int same = 0; same < 2 && lines; same++) {
            int count = 0;
            for (int rank = 1; rank < session->ranks; rank++) {
                int partner = tree ? partner_in_tree(rank) : 0;
                if ((session->machines[rank] == session->machines[partner]) == same)
                    session->alike[count++] = &models[rank];
            }
            lep_clock_shrink(session->alike, count, session->options.points - 2);
        }
        for (int rank = 1; rank < session->ranks && tree; rank++)
            models[rank] = lep_clock_joined(&models[rank], &models[partner_in_tree(rank)]);
    }
    MPI_Scatter(models, bytes, MPI_BYTE, &mine, bytes, MPI_BYTE, 0, session->comm);
    return mine;
}

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
        lep_sleep_ns(start_ns + point * session->options.spacing_ns - lep_clock_read_ns(session->clock));
        for (int client = 1; client < session->ranks; client++)
            lep_clock_answer(session->comm, client, session->clock, NULL);
    }
    return settled(session, session->rank == 0 ? lep_clock_identity() : of_points(session), true, false);
}

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
    answer_line(session, partner);
    return lep_clock_identity();
}

static lep_clock_model line_and_offset(lep_clock_session *session, int partner, bool asks, offset_of estimate) {
    if (asks) {
        lep_clock_model line = ask_line(session, partner, estimate);
        return with_offset(&line, ask_by_bounds(session, partner, line.drift));
    }
    answer_line(session, partner);
    lep_clock_answer(session->comm, partner, session->clock, NULL);
    return lep_clock_identity();
}

static lep_clock_model by_medians(lep_clock_session *session, int partner, bool asks) {
    return line_and_offset(session, partner, asks, lep_offset_by_median);
}

static lep_clock_model by_bounds(lep_clock_session *session, int partner, bool asks) {
    return line_and_offset(session, partner, asks, point_by_bounds);
}

/* In a step of the tree ranks that are `step` apart meet. */
static void meet(lep_clock_session *session, int step, pair_method pair, lep_clock_model *mine) {
    const int rank = session->rank;
    if (rank % (2 * step) == step)
        *mine = pair(session, rank - step, true);
    else if (rank % (2 * step) == 0 && rank + step < session->ranks)
        pair(session, rank + step, false);
}

static lep_clock_model leaves_to_root(lep_clock_session *session, pair_method pair) {
    lep_clock_model mine = lep_clock_identity();
    for (int step = 1; step < session->ranks; step *= 2)
        meet(session, step, pair, &mine);
    return mine;
}

static lep_clock_model netgauge(lep_clock_session *session) {
    return settled(session, leaves_to_root(session, pair_offset), false, true);
}

static lep_clock_model hca(lep_clock_session *session) {
    lep_clock_model line = settled(session, leaves_to_root(session, pair_line), true, true);
    lep_clock_model offset = offsets_from_root(session, line.drift);
    if (session->rank == 0)
        return line;
    offset.drift = line.drift;
    offset.drift_variance = line.drift_variance;
    return offset;
}

static lep_clock_model hca2(lep_clock_session *session) {
    return settled(session, leaves_to_root(session, by_medians), true, true);
}

static lep_clock_model hca3(lep_clock_session *session) {
    lep_clock_model mine = lep_clock_identity();
    int step = 1;
    while (step < session->ranks)
        step *= 2;
    for (step /= 2; step >= 1; step /= 2)
        meet(session, step, by_bounds, &mine);
    return settled(session, mine, true, true);
}

const lep_clock_method lep_clock_methods[] = {
    {"SKaMPI", false, skampi}, {"Netgauge", false, netgauge}, {"JK", true, jones_koenig},
    {"HCA", true, hca},        {"HCA2", true, hca2},          {"HCA3", true, hca3},
};
const int lep_clock_method_count = sizeof lep_clock_methods / sizeof *lep_clock_methods;

LEP_FIND_NAMED(lep_clock_method, lep_clock_method_named, lep_clock_methods, lep_clock_method_count)

/* The lowest rank of each rank's machine. */
static void find_machines(lep_clock_session *session) {
    MPI_Comm machine;
    int lowest = session->rank;
    MPI_Comm_split_type(session->comm, MPI_COMM_TYPE_SHARED, session->rank, MPI_INFO_NULL, &machine);
    MPI_Bcast(&lowest, 1, MPI_INT, 0, machine);
    MPI_Comm_free(&machine);
    MPI_Allgather(&lowest, 1, MPI_INT, session->machines, 1, MPI_INT, session->comm);
}

bool lep_clock_session_open(lep_clock_session *session, MPI_Comm comm, const lep_clock *clock,
                            const lep_clock_options *options) {
    *session = (lep_clock_session){.comm = comm, .clock = clock, .options = *options};
    MPI_Comm_rank(comm, &session->rank);
    MPI_Comm_size(comm, &session->ranks);
    size_t most = LEP_CLOCK_MOST_EXCHANGES, points = (size_t)options->points, ranks = (size_t)session->ranks;
    size_t of_point = 3 * sizeof(double) + sizeof(int64_t);
    size_t of_rank = sizeof(lep_clock_model) + sizeof(lep_clock_model *) + sizeof(int);
    session->exchanges =
        calloc(1, most * (sizeof *session->exchanges + sizeof *session->scratch) + points * of_point + ranks * of_rank);
    int missing = !session->exchanges;
    session->scratch = (double *)(session->exchanges + most);
    session->offsets_ns = session->scratch + most;
    session->deviations_ns = session->offsets_ns + points;
    session->bounds_ns = session->deviations_ns + points;
    session->times_ns = (int64_t *)(session->bounds_ns + points);
    session->models = (lep_clock_model *)(session->times_ns + points);
    session->alike = (lep_clock_model **)(session->models + ranks);
    session->machines = (int *)(session->alike + ranks);
    MPI_Allreduce(MPI_IN_PLACE, &missing, 1, MPI_INT, MPI_MAX, comm);
    if (missing)
        lep_clock_session_close(session);
    else
        find_machines(session);
    return !missing;
}

void lep_clock_session_close(lep_clock_session *session) {
    free(session->exchanges);
    *session = (lep_clock_session){0};
}
