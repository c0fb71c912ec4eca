#include "fit/series.hpp"

#include "fit/log_line.hpp"

#include <cmath>

namespace lepaute::fit {

Moments moments_of(const Series& series, std::size_t begin, std::size_t end) noexcept {
    Moments sum;
    for (std::size_t i = begin; i < end; ++i) {
        sum.merge({series.weight[i], series.x[i], series.value[i], 0.0, 0.0, 0.0});
    }
    return sum;
}

Line best_line(const Series& series, std::size_t begin, std::size_t end, Objective objective, Shape shape) {
    if (objective == Objective::squared) {
        const Moments sum = moments_of(series, begin, end);
        const double slope = shape == Shape::line && sum.xx > 0.0 ? sum.xy / sum.xx : 0.0;
        return {sum.mean_y - slope * sum.mean_x, slope, sum.cost(shape)};
    }
    const LogLine line =
        shape == Shape::constant ? best_log_constant(series, begin, end) : best_log_line(series, begin, end);
    if (std::isinf(line.t)) {
        return line.t < 0.0 ? Line{std::exp(line.mean), 0.0, line.cost} : Line{0.0, std::exp(line.mean), line.cost};
    }
    return {std::exp(line.mean), std::exp(line.mean + line.t), line.cost};
}

} // namespace lepaute::fit
