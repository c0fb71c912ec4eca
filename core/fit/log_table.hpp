#pragma once
// What every segment of a series costs in the logarithm: first a lower bound, exactly where it is asked for.

#include "fit/log_line.hpp"

namespace lepaute::fit {

/// Costs of the segments between edges low < high; edge e lies before cell e. All times the scale of the series.
class LogTable {
public:
    /// least: the fewest sizes in a segment; one with fewer costs infinity, but for the whole.
    LogTable(const Series& series, Shape shape, std::uint32_t least);

    /// At most the cost: the cost itself once it is exact.
    [[nodiscard]] double bound(std::size_t low, std::size_t high) const noexcept { return entry(low, high).bound; }
    /// Near the cost.
    [[nodiscard]] double estimate(std::size_t low, std::size_t high) const noexcept {
        return entry(low, high).estimate;
    }
    [[nodiscard]] bool exact(std::size_t low, std::size_t high) const noexcept { return entry(low, high).exact; }
    /// Makes the cost exact and returns it.
    double refine(std::size_t low, std::size_t high);

private:
    struct Entry {
        double bound = 0.0;
        double estimate = 0.0;
        double ends = 0.0; // the better one of a constant and a line through the origin, without the scale
        float t = 0.0F;    // near the best inside the margins
        bool exact = false;
        bool several = false; // more than one minimum may be the least
    };
    class Row; // the segments from one edge on, on a grid of t

    [[nodiscard]] const Entry& entry(std::size_t low, std::size_t high) const noexcept {
        return entries_[low * edges_ + high];
    }

    const Series* series_;
    Shape shape_;
    std::size_t edges_;
    std::vector<Entry> entries_;
};

} // namespace lepaute::fit
