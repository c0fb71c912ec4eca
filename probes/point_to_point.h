/* Point-to-point operations as rows of the table that probe-collectives measures: ranks 2i and 2i + 1 are a pair.
 *
 * | name        | the even rank of a pair          | the odd rank           | nonblocking               |
 * |-------------|----------------------------------|------------------------|---------------------------|
 * | Send        | sends                            | receives               | MPI_Isend, MPI_Irecv      |
 * | Sendrecv    | sends and receives at once       | the same               | MPI_Irecv, then MPI_Isend |
 * | PingPong    | sends, then receives             | receives, then sends   | no                        |
 * | Bandwidth   | sends a stream, receives a reply | receives it, replies   | no                        |
 * | Bibandwidth | sends and receives a stream      | the same               | no                        |
 *
 * Of Send and Sendrecv there are persistent requests too. A stream is LEP_STREAM messages that are under way at once.
 * All pairs communicate at the same time; the last of an odd number of ranks has no partner and does nothing. */
#ifndef LEPAUTE_POINT_TO_POINT_H
#define LEPAUTE_POINT_TO_POINT_H

#include "collective_operations.h"

enum { LEP_STREAM = 64 };

extern const lep_collective_operation lep_point_to_point[];
extern const int lep_point_to_point_count;

#endif
