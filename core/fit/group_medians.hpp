#pragma once
// Medians of groups of streams, day by day, and for each stream that of the others of its group.

#include <cstdint>
#include <span>
#include <vector>

namespace lepaute::fit {

struct GroupMedians {
    std::vector<double> whole;  ///< of each group, shape (days, groups)
    std::vector<double> others; ///< of the others of its group, of each stream, shape (days, streams)
};

/// values : shape (days, streams), NaN where there is none; group : of each stream, -1 for none
/// order  : of all streams by value, NaN last, shape (days, streams), or empty where it is not known
/// NaN where fewer than `fewest` others have a value, of a whole group one more.
GroupMedians group_medians(std::span<const double> values, std::span<const std::int64_t> group,
                           std::span<const std::int64_t> order, std::size_t groups, std::size_t fewest);

} // namespace lepaute::fit
