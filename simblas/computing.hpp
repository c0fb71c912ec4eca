#pragma once
// What the program computes itself, between two calls of MPI: its CPU time on this machine, by the place in the program
// where it began, and what is charged for it.

#include "state.hpp"

#include <chrono>

namespace lepaute::simblas {

/// The program calls MPI and goes on at `caller`: what it has computed is counted, unless that is less than `least_s`.
void begin_call(Rank& rank, const void* caller, double least_s = 0.0);

/// What the rank has computed since its clock was started or read is counted and, where asked for, charged.
void account(Rank& rank, double least_s = 0.0);

/// The rank's clock starts now: other ranks have run in this thread.
void restart_clock(Rank& rank);

/// MPI returns to the program.
void end_call(Rank& rank);

/// CPU time of this thread, in seconds; not by clock_gettime(), whose clock stands still for SMPI (clocks.cpp).
[[nodiscard]] double cpu_s();

/// While it lives, what runs is no computing of the rank's own: a model is evaluated.
class NotOwn {
public:
    explicit NotOwn(Rank& rank) : rank_(rank), from_(std::chrono::steady_clock::now()) {}
    ~NotOwn() { rank_.not_own_s += std::chrono::duration<double>(std::chrono::steady_clock::now() - from_).count(); }
    NotOwn(const NotOwn&) = delete;
    NotOwn& operator=(const NotOwn&) = delete;

private:
    Rank& rank_;
    std::chrono::steady_clock::time_point from_;
};

/// Called once the request is known.
void prepare_measurement();

} // namespace lepaute::simblas
