#pragma once
// The best ways to cut a series into 1, 2, 3, ... segments, by dynamic programming (Bellman, "On the approximation of
// curves by line segments using dynamic programming", Communications of the ACM 4, 1961), and what may be left out.

#include "fit/series.hpp"

namespace lepaute::fit {

/// What is left out must be dearer than the limit by more than that.
inline constexpr double slack = 1.0 + 1e-9;

/// Edges at which a partition is cut, increasing, without the two ends.
struct Partition {
    std::vector<std::uint32_t> cuts;
    double cost = 0.0;
};

/// Best partitions of the cells up to each edge into 1 .. most segments; costs are offered in order of the lower edge.
class Partitions {
public:
    Partitions(std::size_t cells, std::size_t most);

    /// Least cost of `segments` segments that end at `edge`; 0 segments end at edge 0.
    [[nodiscard]] double best(std::size_t segments, std::size_t edge) const noexcept {
        return best_[segments * edges_ + edge];
    }
    /// A segment from `low` to each edge from low + 1 on, at `costs`; all offers for lower edges have been made.
    /// limit[k]: no partition into k segments in all that costs more is wanted; costs do not fall with the upper edge.
    void offer(std::size_t low, const std::vector<double>& costs, const std::vector<double>& limit);
    /// What was found for 1, 2, ... segments of all cells, as far as there is any.
    [[nodiscard]] std::vector<Partition> found() const;

private:
    std::size_t edges_;
    std::size_t most_;
    std::vector<double> best_;        // [segments][edge]
    std::vector<std::uint32_t> from_; // lower edge of the last of them
};

/// How series are cut: shared cells, and the fewest sizes of each in a segment (the whole may have fewer).
struct Rules {
    Objective objective = Objective::squared;
    Shape shape = Shape::line;
    std::uint32_t least = 2;
    std::size_t most = 1;
};

/// As best_partitions, of the squared objective.
std::vector<Partition> squared_partitions(const std::vector<Series>& series, const Rules& rules);

} // namespace lepaute::fit
