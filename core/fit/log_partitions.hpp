#pragma once
// The best partitions by the logarithmic objective: bounds first, exact costs where they may matter.

#include "fit/partitions.hpp"

namespace lepaute::fit {

/// As best_partitions, of the logarithmic objective.
std::vector<Partition> log_partitions(const std::vector<Series>& series, const Rules& rules);

} // namespace lepaute::fit
