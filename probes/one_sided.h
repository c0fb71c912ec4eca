/* One-sided operations as rows of the table that probe-collectives measures: the even rank of a pair (ranks 2i and
 * 2i + 1) reads or writes the memory of the odd one and completes that with MPI_Win_flush; the odd rank does nothing.
 * The window is locked by all ranks for the whole run (MPI_Win_lock_all). */
#ifndef LEPAUTE_ONE_SIDED_H
#define LEPAUTE_ONE_SIDED_H

#include "collective_operations.h"

extern const lep_collective_operation lep_one_sided[];
extern const int lep_one_sided_count;

/* Memory for blocks of so many bytes, allocated by MPI; by all ranks. */
void lep_one_sided_open(lep_collective *with, int most_bytes);
void lep_one_sided_close(lep_collective *with);

#endif
