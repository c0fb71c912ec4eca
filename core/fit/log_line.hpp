#pragma once
// Lines that are best in the logarithm. With f(x) = intercept * (1 + r x), the best intercept for a given r follows
// from the mean of z = value - log(1 + r x), so that one unknown is left: t = log r. Its objective, the sum of weighted
// squares of z about their mean, is smooth, and has z' = -p with p = r x / (1 + r x), z'' = -p (1 - p) in [-1/4, 0].

#include "fit/series.hpp"

namespace lepaute::fit {

/// A line by t = log(slope / intercept); -inf is a constant, +inf a line through the origin.
struct LogLine {
    double t = -infinity;
    double mean = 0.0; // of z: the logarithm of the intercept; of value - log x at t = inf: that of the slope
    double cost = infinity;
};

/// Objective at the two ends of t: the best constant, and the best line through the origin (inf where some x is 0).
LogLine best_log_constant(const Series& series, std::size_t begin, std::size_t end) noexcept;
LogLine best_log_through_origin(const Series& series, std::size_t begin, std::size_t end) noexcept;

/// The least objective for low <= t <= high, found by Newton's method from `start`.
LogLine least_within(const Series& series, std::size_t begin, std::size_t end, double low, double high, double start);

/// The range of t inside the margins of the points [begin, end), some of which have x > 0.
struct LogRange {
    double low, high;
};
LogRange log_range(const Series& series, std::size_t begin, std::size_t end) noexcept;

/// The least objective beyond that range: where a constant, or a line through the origin, is nearly the best, the best
/// may have the smallest of slopes, or of intercepts.
LogLine least_beyond(const Series& series, std::size_t begin, std::size_t end);

/// The best line of all: by a look at every cell of t of the width of `log_cell`, each followed to its minimum where
/// its lower bound allows it to be the least. Of more than a thousand points a part is looked at, and the cells that
/// are best there are followed.
LogLine best_log_line(const Series& series, std::size_t begin, std::size_t end);

/// Costs, nearly, of the segments between point `fixed` and each of the points from, from + 1, ... until, or from,
/// from - 1, ... until; of the two the smaller is the first of the segment, the larger the first behind it.
std::vector<double> log_costs_on_the_way(const Series& series, std::size_t fixed, std::size_t from, std::size_t until);

/// Width of the cells of t.
inline constexpr double log_cell = 0.3;
/// Outside [-log(largest x) - log_margin, -log(smallest x) + log_margin] the ends of t stand for it.
inline constexpr double log_margin = 8.0;
/// How much less than at the ends of t the root of the objective over the root of the weight can be beyond the margin:
/// log(1 + r x) there departs from a constant, or from log(r x), by at most exp(-log_margin), and the standard
/// deviation of what lies in an interval is at most half of it.
inline constexpr double log_margin_error = 0.5 * 3.3546262790251185e-4;
/// The same within half a cell of a line in t: |z - z0 + s p0| <= s^2 / 8.
inline constexpr double log_cell_error = (0.5 * log_cell) * (0.5 * log_cell) / 16.0;

} // namespace lepaute::fit
