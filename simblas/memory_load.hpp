#pragma once
// How much slower computing becomes while other cores stream through memory. In the first run of a program whose ranks
// share nodes, other cores of this machine do that during half of the intervals, chosen by chance.

#include "state.hpp"

namespace lepaute::simblas {

/// The thread runs on `cpu` from now on.
void pin(int cpu);

/// Starts one process for each cpu of the request, and times a stream of our own with and without them.
void start_memory_load();

/// A cpu that sleeps while the ranks of others compute is slow when its own turn comes; in the real program it would
/// compute, or wait in a loop.
void keep_cpus_awake();

/// Decides whether the other cores are busy during the interval that now begins.
void choose_load(Site& site);

/// An interval that began at `site`, under the load that choose_load() decided on.
void add_interval(Site& site, double seconds);

} // namespace lepaute::simblas
