#include "fit/log_table.hpp"

#include <algorithm>
#include <cmath>

namespace lepaute::fit {

/// Moments of the points from one edge up to another, at each node of t and at both ends.
class LogTable::Row {
public:
    explicit Row(std::size_t nodes) : mean_z(nodes), mean_p(nodes), zz(nodes), zp(nodes), pp(nodes) {}

    void merge(const Row& other, std::size_t used) noexcept {
        const double total = weight + other.weight;
        if (other.weight <= 0.0) {
            return;
        }
        const double share = other.weight / total;
        const double both = weight * share;
        for (std::size_t g = 0; g < used; ++g) {
            const double dz = other.mean_z[g] - mean_z[g];
            const double dp = other.mean_p[g] - mean_p[g];
            zz[g] += other.zz[g] + dz * dz * both;
            zp[g] += other.zp[g] + dz * dp * both;
            pp[g] += other.pp[g] + dp * dp * both;
            mean_z[g] += dz * share;
            mean_p[g] += dp * share;
        }
        constant.merge(other.constant);
        origin.merge(other.origin);
        weight = total;
    }

    double weight = 0.0;
    std::vector<double> mean_z, mean_p, zz, zp, pp; // of z and p at each node
    Moments constant, origin;
};

LogTable::LogTable(const Series& series, Shape shape, std::uint32_t least)
    : series_(&series), shape_(shape), edges_(series.cells() + 1), entries_(edges_ * edges_) {
    const std::size_t cells = series.cells();
    const auto positive = std::find_if(series.x.begin(), series.x.end(), [](double x) { return x > 0.0; });
    std::size_t count = 0;
    double bottom = 0.0;
    if (shape == Shape::line && positive != series.x.end()) {
        bottom = -std::log(series.x.back()) - log_margin;
        count = static_cast<std::size_t>((-std::log(*positive) + log_margin - bottom) / log_cell) + 2;
    }
    const auto node = [&](std::size_t g) { return bottom + log_cell * static_cast<double>(g); };
    std::vector<double> ratio(count);
    for (std::size_t g = 0; g < count; ++g) {
        ratio[g] = std::exp(node(g));
    }

    std::vector<Row> rows;
    rows.reserve(cells);
    for (std::size_t cell = 0; cell < cells; ++cell) {
        Row sum(count), one(count);
        for (std::uint32_t i = series.first[cell]; i < series.first[cell + 1]; ++i) {
            one.weight = series.weight[i];
            const double x = series.x[i], value = series.value[i];
            one.constant = {one.weight, 0.0, value, 0.0, 0.0, 0.0};
            one.origin = {one.weight, 0.0, x > 0.0 ? value - std::log(x) : 0.0, 0.0, 0.0, 0.0};
            for (std::size_t g = 0; g < count; ++g) {
                const double u = ratio[g] * x;
                one.mean_z[g] = value - std::log1p(u);
                one.mean_p[g] = u / (1.0 + u);
            }
            sum.merge(one, count);
        }
        rows.push_back(std::move(sum));
    }

    std::vector<double> squares(count);
    for (std::size_t low = 0; low < cells; ++low) {
        // From the node on at which all x of the row are far above 1 / r, the end of t stands for all.
        const double first_x = series.x[std::min<std::size_t>(series.first[low], series.x.size() - 1)];
        const double smallest = std::max(first_x, positive != series.x.end() ? *positive : 0.0);
        const std::size_t used =
            count == 0
                ? 0
                : std::min(count, static_cast<std::size_t>((log_margin - std::log(smallest) - bottom) / log_cell) + 2);
        const bool at_zero = first_x <= 0.0;
        Row row(used);
        for (std::size_t high = low + 1; high <= cells; ++high) {
            row.merge(rows[high - 1], used);
            Entry& entry = entries_[low * edges_ + high];
            const bool whole = low == 0 && high == cells;
            if (!whole && series.sizes_between(low, high) < least) {
                entry = {infinity, infinity, infinity, 0.0F, true, false};
                continue;
            }
            const double root = std::sqrt(row.weight);
            double estimate = row.constant.yy;
            if (!at_zero && shape == Shape::line) {
                estimate = std::min(estimate, row.origin.yy);
            }
            double bound = std::max(0.0, std::sqrt(estimate) - root * log_margin_error);
            const double ends = estimate;
            std::size_t best = 0;
            double best_shift = 0.0;
            double least_squares = infinity;
            for (std::size_t g = 0; g < used; ++g) {
                const double shift =
                    row.pp[g] > 0.0 ? std::clamp(row.zp[g] / row.pp[g], -0.5 * log_cell, 0.5 * log_cell) : 0.0;
                squares[g] = row.zz[g] - 2.0 * shift * row.zp[g] + shift * shift * row.pp[g];
                if (squares[g] < least_squares) {
                    least_squares = squares[g];
                    best = g;
                    best_shift = shift;
                }
            }
            const double error = root * log_cell_error;
            bool several = false;
            if (used > 0) {
                least_squares = std::max(0.0, least_squares);
                bound = std::min(bound, std::max(0.0, std::sqrt(least_squares) - error));
                estimate = std::min(estimate, least_squares);
                // Another minimum, not next to the best node, that may be as deep.
                const double rival = (std::sqrt(estimate) + 2.0 * error) * (std::sqrt(estimate) + 2.0 * error);
                for (std::size_t g = 1; g + 1 < used && !several; ++g) {
                    const bool beside = g + 1 >= best && g <= best + 1;
                    several =
                        !beside && squares[g] < rival && squares[g] <= squares[g - 1] && squares[g] <= squares[g + 1];
                }
            }
            const double t = used > 0 ? node(best) + best_shift : 0.0;
            entry = {
                series.scale * bound * bound, series.scale * estimate, ends, static_cast<float>(t), false, several};
        }
    }
}

double LogTable::refine(std::size_t low, std::size_t high) {
    Entry& found = entries_[low * edges_ + high];
    if (found.exact) {
        return found.bound;
    }
    const std::size_t begin = series_->first[low], end = series_->first[high];
    double cost = found.ends;
    if (shape_ == Shape::line && series_->x[end - 1] > std::max(series_->x[begin], 0.0)) {
        if (found.several) {
            cost = best_log_line(*series_, begin, end).cost;
        } else {
            const double t = found.t;
            const double inside = least_within(*series_, begin, end, t - 1.5 * log_cell, t + 1.5 * log_cell, t).cost;
            cost = found.ends <= inside ? std::min(inside, least_beyond(*series_, begin, end).cost) : inside;
        }
    }
    found.bound = found.estimate = series_->scale * cost;
    found.exact = true;
    return found.bound;
}

} // namespace lepaute::fit
