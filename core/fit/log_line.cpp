#include "fit/log_line.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace lepaute::fit {

namespace {

constexpr int most_steps = 40;
constexpr std::size_t most_looked_at = 1000;
constexpr std::size_t most_followed = 4;

/// The objective at t and its derivatives.
struct At {
    double mean = 0.0;
    double cost = 0.0;
    double slope = 0.0;     // half of the first derivative
    double curvature = 0.0; // half of the second
    double zp = 0.0, pp = 0.0;
};

At evaluate(const Series& series, std::size_t begin, std::size_t end, double t, std::size_t stride = 1) {
    thread_local std::vector<double> zs, ps; // room that is kept: this is called some ten thousand times
    const std::size_t count = (end - begin + stride - 1) / stride;
    if (zs.size() < count) {
        zs.resize(count);
        ps.resize(count);
    }
    const double r = std::exp(t);
    double weight = 0.0, mean_z = 0.0, mean_p = 0.0, mean_q = 0.0;
    for (std::size_t k = 0, i = begin; k < count; ++k, i += stride) {
        const double u = r * series.x[i];
        const double w = series.weight[i];
        const double p = u / (1.0 + u);
        zs[k] = series.value[i] - std::log(1.0 + u);
        ps[k] = p;
        weight += w;
        mean_z += w * zs[k];
        mean_p += w * p;
        mean_q += w * p * (1.0 - p);
    }
    mean_z /= weight;
    mean_p /= weight;
    mean_q /= weight;
    double zz = 0.0, zp = 0.0, pp = 0.0, zq = 0.0;
    for (std::size_t k = 0, i = begin; k < count; ++k, i += stride) {
        const double w = series.weight[i], p = ps[k];
        const double dz = zs[k] - mean_z, dp = p - mean_p;
        zz += w * dz * dz;
        zp += w * dz * dp;
        pp += w * dp * dp;
        zq += w * dz * (p * (1.0 - p) - mean_q);
    }
    return {mean_z, zz, -zp, pp - zq, zp, pp};
}

} // namespace

LogLine best_log_constant(const Series& series, std::size_t begin, std::size_t end) noexcept {
    const Moments sum = moments_of(series, begin, end);
    return {-infinity, sum.mean_y, sum.yy};
}

LogLine best_log_through_origin(const Series& series, std::size_t begin, std::size_t end) noexcept {
    if (series.x[begin] <= 0.0) {
        return {infinity, 0.0, infinity};
    }
    Moments sum;
    for (std::size_t i = begin; i < end; ++i) {
        sum.merge({series.weight[i], 0.0, series.value[i] - std::log(series.x[i]), 0.0, 0.0, 0.0});
    }
    return {infinity, sum.mean_y, sum.yy};
}

LogLine least_within(const Series& series, std::size_t begin, std::size_t end, double low, double high, double start) {
    double t = std::clamp(start, low, high);
    At at = evaluate(series, begin, end, t);
    LogLine best{t, at.mean, at.cost};
    for (int step = 0; step < most_steps; ++step) {
        // Where the objective bends the wrong way, the part of the curvature that never does.
        const double curvature = at.curvature > 0.0 ? at.curvature : at.pp;
        if (curvature <= 0.0) {
            break;
        }
        double next = std::clamp(t - at.slope / curvature, low, high);
        double moved = next - t;
        // What a further step can gain is below what the sum is known to.
        if (moved * moved * curvature <= 1e-11 * at.cost) {
            break;
        }
        At there = evaluate(series, begin, end, next);
        while (there.cost > at.cost && std::abs(moved) > 1e-9) {
            moved /= 2.0;
            next = t + moved;
            there = evaluate(series, begin, end, next);
        }
        if (there.cost >= at.cost) {
            break;
        }
        t = next;
        at = there;
        best = {t, at.mean, at.cost};
    }
    return best;
}

LogRange log_range(const Series& series, std::size_t begin, std::size_t end) noexcept {
    std::size_t positive = begin;
    while (positive + 1 < end && series.x[positive] <= 0.0) {
        ++positive;
    }
    return {-std::log(series.x[end - 1]) - log_margin, -std::log(series.x[positive]) + log_margin};
}

LogLine least_beyond(const Series& series, std::size_t begin, std::size_t end) {
    LogLine best = best_log_constant(series, begin, end);
    const auto offer = [&best](const LogLine& found) { best = found.cost < best.cost ? found : best; };
    const LogLine origin = best_log_through_origin(series, begin, end);
    offer(origin);
    const auto [low, high] = log_range(series, begin, end);
    // There log(1 + r x) is r x, or log(r x) + 1 / (r x): the best r, or 1 / r, is that of a straight line.
    const Moments small = moments_of(series, begin, end);
    Moments large;
    for (std::size_t i = begin; i < end && origin.cost < infinity; ++i) {
        large.merge({series.weight[i], 1.0 / series.x[i], series.value[i] - std::log(series.x[i]), 0.0, 0.0, 0.0});
    }
    const double r = small.xx > 0.0 ? small.xy / small.xx : 0.0;
    if (r > 0.0 && std::log(r) < low) {
        offer(least_within(series, begin, end, std::log(r) - 1.0, low, std::log(r)));
    }
    const double inverse = large.xx > 0.0 ? large.xy / large.xx : 0.0;
    if (inverse > 0.0 && -std::log(inverse) > high) {
        offer(least_within(series, begin, end, high, 1.0 - std::log(inverse), -std::log(inverse)));
    }
    return best;
}

std::vector<double> log_costs_on_the_way(const Series& series, std::size_t fixed, std::size_t from, std::size_t until) {
    const bool upward = fixed < from;
    const std::size_t low = std::min(fixed, from), high = std::max(fixed, from);
    const LogLine start = best_log_line(series, low, high);
    const double r = std::isinf(start.t) ? 0.0 : std::exp(start.t);
    double weight = 0.0, mean_z = 0.0, mean_p = 0.0, mean_q = 0.0, zz = 0.0, zp = 0.0, pp = 0.0, zq = 0.0;
    Moments constant, origin;
    const auto add = [&](std::size_t i) {
        const double u = r * series.x[i];
        const double z = series.value[i] - std::log1p(u), p = u / (1.0 + u), q = p * (1.0 - p);
        weight += series.weight[i];
        const double share = series.weight[i] / weight, both = (weight - series.weight[i]) * share;
        const double dz = z - mean_z, dp = p - mean_p, dq = q - mean_q;
        zz += dz * dz * both;
        zp += dz * dp * both;
        pp += dp * dp * both;
        zq += dz * dq * both;
        mean_z += dz * share;
        mean_p += dp * share;
        mean_q += dq * share;
        constant.merge({series.weight[i], 0.0, series.value[i], 0.0, 0.0, 0.0});
        origin.merge({series.weight[i], 0.0, series.value[i] - std::log(std::max(series.x[i], 1e-300)), 0.0, 0.0, 0.0});
    };
    for (std::size_t i = low; i < high; ++i) {
        add(i);
    }
    std::vector<double> costs;
    for (std::size_t far = from;; upward ? ++far : --far) {
        double cost = std::min(constant.yy, origin.yy);
        if (r > 0.0) {
            // One step of Newton's method from the line of the start, which few points more hardly move.
            const double curvature = pp - zq;
            cost = std::min(cost, curvature > 0.0 ? std::max(0.0, zz - zp * zp / curvature) : zz);
        }
        costs.push_back(cost);
        if (far == until) {
            return costs;
        }
        add(upward ? far : far - 1);
    }
}

LogLine best_log_line(const Series& series, std::size_t begin, std::size_t end) {
    if (series.x[end - 1] <= std::max(series.x[begin], 0.0)) {
        return best_log_constant(series, begin, end); // one size: a constant says all
    }
    LogLine best = least_beyond(series, begin, end);
    const auto [bottom, top] = log_range(series, begin, end);
    // Of many points every so many say which cells are worth following.
    const std::size_t stride = 1 + (end - begin) / most_looked_at;
    double weight = 0.0;
    for (std::size_t i = begin; i < end; i += stride) {
        weight += series.weight[i];
    }
    const double error = std::sqrt(weight) * log_cell_error;
    struct Cell {
        double t, shift, least;
    };
    std::vector<Cell> cells;
    const auto count = static_cast<std::size_t>((top - bottom) / log_cell) + 2;
    for (std::size_t number = 0; number < count; ++number) {
        const double t = bottom + log_cell * static_cast<double>(number);
        const At at = evaluate(series, begin, end, t, stride);
        const double shift = at.pp > 0.0 ? std::clamp(at.zp / at.pp, -0.5 * log_cell, 0.5 * log_cell) : 0.0;
        const double squares = std::max(0.0, at.cost - 2.0 * shift * at.zp + shift * shift * at.pp);
        cells.push_back({t, shift, std::max(0.0, std::sqrt(squares) - error)});
    }
    std::sort(cells.begin(), cells.end(), [](const Cell& a, const Cell& b) { return a.least < b.least; });
    const std::size_t followed = stride == 1 ? cells.size() : std::min(cells.size(), most_followed);
    for (std::size_t place = 0; place < followed; ++place) {
        const Cell& cell = cells[place];
        if (stride == 1 && cell.least * cell.least >= best.cost) {
            break;
        }
        const LogLine found =
            least_within(series, begin, end, cell.t - 0.5 * log_cell, cell.t + 0.5 * log_cell, cell.t + cell.shift);
        if (found.cost < best.cost) {
            best = found;
        }
    }
    return best;
}

} // namespace lepaute::fit
