#pragma once

#include "state.hpp"

namespace lepaute::simblas {

/// The rank that runs sends this message: counted where its datatype has gaps, and timed at first.
void note_gaps(const void* buffer, int count, MPI_Datatype type, MPI_Comm comm);

} // namespace lepaute::simblas
