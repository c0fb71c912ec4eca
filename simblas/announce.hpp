#pragma once
// Messages are announced to the ranks that probe for them, so that a loop of probes costs no event a turn.

#include "state.hpp"

namespace lepaute::simblas {

/// How a message is sent: what the sender is charged before the message is posted depends on it.
enum class Sending { blocking, synchronous, nonblocking };

/// The rank that runs is about to send: its computing passes, and the receiver is told. `caller`: see begin_call().
void announce(const void* caller, Sending how, const void* buffer, int count, MPI_Datatype type, int to, int tag,
              MPI_Comm comm);

/// A send whose receiver is not known here (persistent requests): from now on, nobody sleeps while probing.
void announce_anything(const void* caller);

/// Of a message from the rank `from` of the world, negative where that is not known; null where there is no model.
const models::Segment* segment_of(double size, int from, const Rank& to);

/// The rank of the world that `rank` of `comm` is; -1 where that cannot be said.
int world_rank(int rank, MPI_Comm comm);

void forget_communicator(MPI_Comm comm);

} // namespace lepaute::simblas
