/* One clock for all ranks: methods that give every rank a model of rank 0's clock.
 *
 * SKaMPI    offsets, from rank 0, one rank after the other: p exchanges one after the other
 * Netgauge  offsets in a tree, which are added: log2 p
 * JK        lines, from rank 0, the ranks in turn (Jones and Koenig): p for each point
 * HCA       lines in a tree, then offsets from rank 0 in turn: log2 p for each point, then p
 * HCA2      lines and offsets in a tree, from the leaves to rank 0: log2 p for each point
 * HCA3      the same from rank 0 to the leaves
 *
 * The drifts of all lines are shrunk together (lep_clock_shrink), those between ranks of one machine apart from those
 * between machines: whether clocks drift at all is better known by all of them than by one.
 *
 * Sources: Hunold and Carpen-Amarie, "MPI Benchmarking Revisited", section 4 and appendix B, for the first five; the
 * same authors, "Hierarchical Clock Synchronization in MPI" (IEEE Cluster 2018), for HCA3. All of them here work with
 * any number of ranks: the tree is that of the next power of two without the ranks that do not exist. What differs from
 * the publications: models are times by times (clock_model.h); points of a line count from the middle of each
 * exchange (clock_offset.h), and lie `spacing_ns` apart, since a line needs a long lever more than many points. In HCA3
 * ranks answer by their own clocks, not by the global one; models are joined at the end, at rank 0. That is the same
 * line, since a line by least squares through times that a line maps is the line that is mapped; and it is the drift
 * between two clocks, which others can be like, that is shrunk, not one with the error of a whole branch in it.
 */
#ifndef LEPAUTE_CLOCK_SYNC_H
#define LEPAUTE_CLOCK_SYNC_H

#include <mpi.h>
#include <stdbool.h>

#include "clock_exchange.h"

typedef struct {
    int exchanges; /* for an offset that is not of a line; Netgauge: since the last shorter round trip */
    int points;    /* of a line, at least 3 */
    int exchanges_a_point;
    int64_t spacing_ns;     /* from point to point, if their exchanges do not take longer */
    double drift_deviation; /* of clocks whose drift nobody learns: what is known of it before */
} lep_clock_options;

/* Crystals are specified to within 100 ppm; of drifts spread evenly up to there, 95 of 100 are within 1.96 * 4.85e-5.
 */
#define LEP_CLOCK_DEFAULTS                                                                                             \
    (lep_clock_options) {                                                                                              \
        .exchanges = 100, .points = 30, .exchanges_a_point = 10, .spacing_ns = 20000000, .drift_deviation = 4.85e-5    \
    }

enum { LEP_CLOCK_MOST_EXCHANGES = 10000 };

/* What a rank needs for it: memory is allocated before, and freed after, the exchanges. */
typedef struct {
    MPI_Comm comm;
    int rank, ranks;
    const lep_clock *clock;
    lep_clock_options options;
    lep_clock_exchange *exchanges;                            /* the memory of all of these begins here */
    double *scratch, *offsets_ns, *deviations_ns, *bounds_ns; /* the last three: of points */
    int64_t *times_ns;
    lep_clock_model *models; /* rank 0: of every rank, */
    lep_clock_model **alike; /* and those of them that are shrunk together */
    int *machines;           /* of every rank, the lowest rank of its machine */
} lep_clock_session;

typedef struct {
    const char *name;
    bool learns_drift;
    lep_clock_model (*synchronise)(lep_clock_session *session); /* by all ranks together; of this rank */
} lep_clock_method;

extern const lep_clock_method lep_clock_methods[];
extern const int lep_clock_method_count;

/* NULL where there is none of that name. */
const lep_clock_method *lep_clock_method_named(const char *name);

/* `comm` is used for the messages: one of its own. Returns false, on all ranks, where memory is missing. */
bool lep_clock_session_open(lep_clock_session *session, MPI_Comm comm, const lep_clock *clock,
                            const lep_clock_options *options);
void lep_clock_session_close(lep_clock_session *session);

#endif
