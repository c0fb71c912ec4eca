#include "fit/splits.hpp"

#include "fit/best_partitions.hpp"
#include "fit/log_line.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace lepaute::fit {

namespace {

/// Of the cuts that are nearly the best so many are looked at by themselves.
constexpr std::size_t most_cuts_looked_at = 4;

/// Costs of one segment after the other, each little different from the one before.
class Neighbours {
public:
    Neighbours(const Series& series, const Rules& rules) : series_(&series), rules_(&rules) {}

    double cost(std::size_t low, std::size_t high) {
        const std::size_t begin = series_->first[low], end = series_->first[high];
        if (rules_->objective == Objective::squared || rules_->shape == Shape::constant) {
            return best_line(*series_, begin, end, rules_->objective, rules_->shape).cost;
        }
        if (std::isfinite(last_.t)) {
            last_ = least_within(*series_, begin, end, last_.t - near, last_.t + near, last_.t);
            const double ends = std::min(best_log_constant(*series_, begin, end).cost,
                                         best_log_through_origin(*series_, begin, end).cost);
            if (last_.cost < ends) {
                return last_.cost;
            }
        }
        last_ = best_log_line(*series_, begin, end);
        return last_.cost;
    }

private:
    static constexpr double near = 2.0; // how far t may move from a segment to the next
    const Series* series_;
    const Rules* rules_;
    LogLine last_;
};

} // namespace

std::vector<double> split_costs(const Series& series, std::size_t low, std::size_t high, const Rules& rules) {
    std::vector<double> result;
    Neighbours below(series, rules), above(series, rules);
    for (std::size_t cut = low + 1; cut < high; ++cut) {
        const bool enough =
            series.sizes_between(low, cut) >= rules.least && series.sizes_between(cut, high) >= rules.least;
        result.push_back(enough ? below.cost(low, cut) + above.cost(cut, high) : infinity);
    }
    return result;
}

std::size_t best_log_cut(const Series& series, std::size_t begin, std::size_t end, std::size_t low, std::size_t high) {
    const std::vector<double> below = log_costs_on_the_way(series, begin, low, high);
    const std::vector<double> above = log_costs_on_the_way(series, end, high, low);
    const auto nearly = [&](std::size_t cut) { return below[cut - low] + above[high - cut]; };
    std::vector<std::size_t> cuts(high - low + 1);
    std::iota(cuts.begin(), cuts.end(), low);
    const std::size_t looked_at = std::min(cuts.size(), most_cuts_looked_at);
    std::partial_sort(cuts.begin(), cuts.begin() + static_cast<std::ptrdiff_t>(looked_at), cuts.end(),
                      [&](std::size_t a, std::size_t b) { return nearly(a) < nearly(b); });
    std::size_t best = cuts.front();
    double least = infinity;
    for (std::size_t k = 0; k < looked_at; ++k) {
        const double cost = best_log_line(series, begin, cuts[k]).cost + best_log_line(series, cuts[k], end).cost;
        if (cost < least) {
            least = cost;
            best = cuts[k];
        }
    }
    return best;
}

} // namespace lepaute::fit
