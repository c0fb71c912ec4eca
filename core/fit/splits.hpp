#pragma once
// Two lines that meet: what each place of their meeting costs.

#include "fit/partitions.hpp"

namespace lepaute::fit {

/// Costs of two segments between edges low and high that meet at each edge between (infinity where too few sizes lie
/// on one side); of one series. In the logarithm a line is sought near that of the neighbouring edge.
std::vector<double> split_costs(const Series& series, std::size_t low, std::size_t high, const Rules& rules);

/// The point before which two lines, best in the logarithm, meet best, of the points low .. high; the first line begins
/// at point `begin`, the second ends before `end`; begin < low <= high < end.
std::size_t best_log_cut(const Series& series, std::size_t begin, std::size_t end, std::size_t low, std::size_t high);

} // namespace lepaute::fit
