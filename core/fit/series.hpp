#pragma once
// Points that are to be cut into segments, and the line through a part of them.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace lepaute::fit {

inline constexpr double infinity = std::numeric_limits<double>::infinity();

enum class Objective : std::uint8_t {
    squared,    // sum of weight * (value - f(x))^2
    logarithmic // sum of weight * (value - log f(x))^2, value = log y; intercept and slope of f are >= 0
};

enum class Shape : std::uint8_t {
    line,    // f(x) = intercept + slope * x
    constant // slope 0
};

/// Points in strictly increasing x. A cell is a run of points that no cut divides.
struct Series {
    std::vector<double> x;
    std::vector<double> value;
    std::vector<double> weight;
    std::vector<std::uint32_t> first; // of each cell its first point, then the number of points
    std::vector<std::uint32_t> sizes; // how many sizes lie below each edge; as `first` where each point is one
    double scale = 1.0;               // factor on its costs where several series share their cuts

    [[nodiscard]] std::size_t cells() const noexcept { return first.size() - 1; }
    [[nodiscard]] std::uint32_t sizes_between(std::size_t low, std::size_t high) const noexcept {
        return sizes[high] - sizes[low];
    }
};

/// intercept + slope * x, and the objective there.
struct Line {
    double intercept = 0.0;
    double slope = 0.0;
    double cost = 0.0;
};

/// Moments of weighted points about their means, added to one by one or merged (Chan, Golub and LeVeque, "Algorithms
/// for computing the sample variance", The American Statistician 37, 1983): no sum of squares loses its digits.
struct Moments {
    double weight = 0.0;
    double mean_x = 0.0, mean_y = 0.0;
    double xx = 0.0, xy = 0.0, yy = 0.0;

    void merge(const Moments& other) noexcept {
        const double total = weight + other.weight;
        if (total <= 0.0) {
            return;
        }
        const double share = other.weight / total;
        const double both = weight * share;
        const double dx = other.mean_x - mean_x;
        const double dy = other.mean_y - mean_y;
        xx += other.xx + dx * dx * both;
        xy += other.xy + dx * dy * both;
        yy += other.yy + dy * dy * both;
        mean_x += dx * share;
        mean_y += dy * share;
        weight = total;
    }

    /// Weighted sum of squares that the best line, or the best constant, leaves; >= 0.
    [[nodiscard]] double cost(Shape shape) const noexcept {
        if (shape == Shape::constant || xx <= 0.0) {
            return yy;
        }
        const double left = yy - xy * (xy / xx);
        return left > 0.0 ? left : 0.0;
    }
};

/// The moments of the points [begin, end) of a series.
inline Moments moments_of(const Series& series, std::size_t begin, std::size_t end) noexcept {
    Moments sum;
    for (std::size_t i = begin; i < end; ++i) {
        sum.merge({series.weight[i], series.x[i], series.value[i], 0.0, 0.0, 0.0});
    }
    return sum;
}

} // namespace lepaute::fit
