#pragma once
// The best line and the best partitions by either objective.

#include "fit/partitions.hpp"

namespace lepaute::fit {

/// The best line through the points [begin, end), end > begin.
Line best_line(const Series& series, std::size_t begin, std::size_t end, Objective objective, Shape shape);

/// The best partitions of all series at once, at the same edges, into 1 .. rules.most segments; exact for these cells.
/// All series have the same number of cells.
std::vector<Partition> best_partitions(const std::vector<Series>& series, const Rules& rules);

} // namespace lepaute::fit
