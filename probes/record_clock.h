#ifndef LEPAUTE_RECORD_CLOCK_H
#define LEPAUTE_RECORD_CLOCK_H

#include "record.h"

/* Called by all ranks together, after MPI_Init and before MPI_Finalize. */
lep_record_clock lep_clock_compare(void);

#endif
