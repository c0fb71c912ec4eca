#pragma once

namespace lepaute::simblas {

/// Writes what was simulated as JSON to the file of the request; at the end of the simulation.
void write_report();

/// Tells the launcher, now and then, how far the simulation is.
void write_progress();

} // namespace lepaute::simblas
