#pragma once
// MPI libraries move a rendezvous message only while its receiver is inside of MPI (docs/evidence/models.md, "Messages
// whose peers compute"); SMPI moves it in the background once both sides are posted. So MPI_Irecv of such a message
// makes a persistent receive here, which starts when the receiver is back in MPI after it has computed, or in a call
// that can wait, probes or starts a request.

#include "state.hpp"

#include <smpi/smpi.h>

namespace lepaute::simblas {

/// A call of MPI begins, and what the rank has computed has passed: receives that were put off start, if the rank
/// `has_computed` or the call `waits`.
void start_receives(Rank& rank, bool has_computed, bool waits);

/// Whether such receives are put off: the request, of which `request` is the place.
bool puts_off_receive(Rank& rank, void* buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                      MPI_Request* request);

/// `request` is complete: one of ours is freed and becomes MPI_REQUEST_NULL, as the program expects.
void forget_receive(MPI_Request& request);

/// The program itself has freed `request`; another may get its address.
void disown_receive(MPI_Request request);

} // namespace lepaute::simblas
