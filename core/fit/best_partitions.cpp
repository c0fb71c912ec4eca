// Those of the logarithmic objective: bounds first, exact costs where they may matter.

#include "fit/best_partitions.hpp"

#include "fit/log_table.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace lepaute::fit {

namespace {

/// Rounds in which only the segments of the cheapest partitions are made exact, before all that remain are.
constexpr int lazy_rounds = 6;

/// The tables of all series together.
class LogTables {
public:
    LogTables(const std::vector<Series>& series, const Rules& rules) {
        for (const Series& one : series) {
            tables_.emplace_back(one, rules.shape, rules.least);
        }
    }
    [[nodiscard]] double bound(std::size_t low, std::size_t high) const noexcept {
        return sum(tables_, [=](const LogTable& table) { return table.bound(low, high); });
    }
    [[nodiscard]] double estimate(std::size_t low, std::size_t high) const noexcept {
        return sum(tables_, [=](const LogTable& table) { return table.estimate(low, high); });
    }
    [[nodiscard]] bool exact(std::size_t low, std::size_t high) const noexcept {
        return std::all_of(tables_.begin(), tables_.end(), [&](const LogTable& one) { return one.exact(low, high); });
    }
    double refine(std::size_t low, std::size_t high) {
        return sum(tables_, [=](LogTable& table) { return table.refine(low, high); });
    }

private:
    template <class Tables, class Cost>
    static double sum(Tables& tables, const Cost& cost) {
        double all = 0.0;
        for (auto& table : tables) {
            all += cost(table);
        }
        return all;
    }
    std::vector<LogTable> tables_;
};

template <typename Cost>
std::vector<Partition> partitions_of(std::size_t cells, std::size_t most, const Cost& cost) {
    const std::vector<double> no_limit(most + 1, infinity);
    Partitions partitions(cells, most);
    std::vector<double> costs;
    for (std::size_t low = 0; low < cells; ++low) {
        costs.resize(cells - low);
        for (std::size_t high = low + 1; high <= cells; ++high) {
            costs[high - low - 1] = cost(low, high);
        }
        partitions.offer(low, costs, no_limit);
    }
    return partitions.found();
}

/// Makes the segments of a partition exact; its cost, and whether some were not exact before.
std::pair<double, bool> refine_along(LogTables& tables, const Partition& partition, std::size_t cells) {
    double sum = 0.0;
    bool news = false;
    std::size_t low = 0;
    for (std::size_t k = 0; k <= partition.cuts.size(); ++k) {
        const std::size_t high = k < partition.cuts.size() ? partition.cuts[k] : cells;
        news = news || !tables.exact(low, high);
        sum += tables.refine(low, high);
        low = high;
    }
    return {sum, news};
}

/// Makes exact what may be part of a best partition: a segment for which the bounds of what lies before, of itself and
/// of what lies behind add up to no more than `reached` for some number of segments.
void refine_all_that_may_matter(LogTables& tables, std::size_t cells, const std::vector<double>& reached) {
    const std::size_t most = reached.size() - 1;
    const std::size_t edges = cells + 1;
    std::vector<double> before((most + 1) * edges, infinity), behind((most + 1) * edges, infinity);
    before[0] = 0.0;
    behind[cells] = 0.0;
    for (std::size_t k = 0; k < most; ++k) {
        for (std::size_t low = 0; low < cells; ++low) {
            double least = infinity;
            for (std::size_t high = low + 1; high <= cells; ++high) {
                const double bound = tables.bound(low, high);
                double& there = before[(k + 1) * edges + high];
                there = std::min(there, before[k * edges + low] + bound);
                least = std::min(least, bound + behind[k * edges + high]);
            }
            behind[(k + 1) * edges + low] = least;
        }
    }
    for (std::size_t low = 0; low < cells; ++low) {
        for (std::size_t high = low + 1; high <= cells; ++high) {
            const double bound = tables.bound(low, high);
            if (bound == infinity || tables.exact(low, high)) {
                continue;
            }
            bool matters = false;
            for (std::size_t k = 0; k < most && !matters; ++k) {
                for (std::size_t rest = 0; k + rest < most && !matters; ++rest) {
                    const double whole = before[k * edges + low] + bound + behind[rest * edges + high];
                    matters = whole <= reached[k + rest + 1] * slack && whole < infinity;
                }
            }
            if (matters) {
                tables.refine(low, high);
            }
        }
    }
}

std::vector<Partition> log_partitions(const std::vector<Series>& series, const Rules& rules) {
    const std::size_t cells = series.front().cells();
    LogTables tables(series, rules);
    std::vector<double> reached(rules.most + 1, infinity);
    const auto follow = [&](const std::vector<Partition>& partitions) {
        bool news = false;
        for (std::size_t k = 0; k < partitions.size(); ++k) {
            const auto [cost, refined] = refine_along(tables, partitions[k], cells);
            reached[k + 1] = std::min(reached[k + 1], cost);
            news = news || refined;
        }
        return news;
    };
    const auto by_bound = [&](std::size_t low, std::size_t high) { return tables.bound(low, high); };
    follow(partitions_of(cells, rules.most,
                         [&](std::size_t low, std::size_t high) { return tables.estimate(low, high); }));
    for (int round = 0;; ++round) {
        if (round == lazy_rounds) {
            refine_all_that_may_matter(tables, cells, reached);
        }
        std::vector<Partition> cheapest = partitions_of(cells, rules.most, by_bound);
        if (!follow(cheapest)) {
            return cheapest; // all their segments were exact: nothing can be cheaper
        }
    }
}

} // namespace

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

std::vector<Partition> best_partitions(const std::vector<Series>& series, const Rules& rules) {
    return rules.objective == Objective::squared ? squared_partitions(series, rules) : log_partitions(series, rules);
}

} // namespace lepaute::fit
