#pragma once
// What the program computes itself, between two calls of MPI: its CPU time on this machine, by the place in the program
// where it began, and what is charged for it.

#include "state.hpp"

namespace lepaute::simblas {

/// The program calls MPI and goes on at `caller`: what it has computed is counted, unless that is less than `least_s`.
void begin_call(Rank& rank, const void* caller, double least_s = 0.0);

/// What the rank has computed since its clock was started or read is counted and, where asked for, charged.
void account(Rank& rank, double least_s = 0.0);

/// The rank's clock starts now: other ranks have run in this thread.
void restart_clock(Rank& rank);

/// MPI returns to the program.
void end_call(Rank& rank);

/// Called once the request is known.
void prepare_measurement();

} // namespace lepaute::simblas
