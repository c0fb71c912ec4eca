/* Exchanges of messages between two ranks that compare their clocks (clock_offset.h says what they show). */
#ifndef LEPAUTE_CLOCK_EXCHANGE_H
#define LEPAUTE_CLOCK_EXCHANGE_H

#include <mpi.h>
#include <stdbool.h>

#include "clock_model.h"
#include "clock_offset.h"
#include "clock_source.h"

/* `count` exchanges with a rank that answers at the same time. */
void lep_clock_ask(MPI_Comm comm, int partner, const lep_clock *clock, lep_clock_exchange *exchanges, int count);

/* One of them; the partner answers until one comes without `more`. */
void lep_clock_ask_once(MPI_Comm comm, int partner, const lep_clock *clock, lep_clock_exchange *result, bool more);

/* The other side: shows the time that `model` gives; NULL: the clock itself. */
void lep_clock_answer(MPI_Comm comm, int partner, const lep_clock *clock, const lep_clock_model *model);

#endif
