/* Point-to-point operations as rows of the table that probe-collectives measures: ranks 2i and 2i + 1 are a pair.
 *
 * | name     | the even rank of a pair    | the odd rank               | nonblocking               |
 * |----------|----------------------------|----------------------------|---------------------------|
 * | Send     | sends                      | receives                   | MPI_Isend, MPI_Irecv      |
 * | Sendrecv | sends and receives at once | sends and receives at once | MPI_Irecv, then MPI_Isend |
 * | PingPong | sends, then receives       | receives, then sends       | no                        |
 *
 * All pairs communicate at the same time; the last of an odd number of ranks has no partner and does nothing. */
#ifndef LEPAUTE_POINT_TO_POINT_H
#define LEPAUTE_POINT_TO_POINT_H

#include "collective_operations.h"

extern const lep_collective_operation lep_point_to_point[];
extern const int lep_point_to_point_count;

#endif
