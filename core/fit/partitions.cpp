#include "fit/partitions.hpp"

#include "fit/log_table.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lepaute::fit {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
/// A partition is preferred to one found before only where it is cheaper by more than sums are rounded.
constexpr double tie = 1.0 - 1e-12;
/// What is left out must be dearer than the limit by more than that.
constexpr double slack = 1.0 + 1e-9;
/// And, of a sum of squares about the mean, by so much.
constexpr double rounding = 1e-12;
/// Rounds in which only the segments of the cheapest partitions are made exact, before all that remain are.
constexpr int lazy_rounds = 6;

} // namespace

Partitions::Partitions(std::size_t cells, std::size_t most)
    : edges_(cells + 1), most_(most), best_((most + 1) * edges_, infinity), from_((most + 1) * edges_, 0) {
    best_[0] = 0.0;
}

void Partitions::offer(std::size_t low, const std::vector<double>& costs, const std::vector<double>& limit) {
    for (std::size_t before = 0; before < most_; ++before) {
        const double so_far = best(before, low);
        // The limit of this number of segments is the weakest of those that go on from here.
        const double wanted = limit[before + 1] * slack;
        if (so_far > wanted || so_far == infinity) {
            continue;
        }
        double* best = &best_[(before + 1) * edges_];
        std::uint32_t* from = &from_[(before + 1) * edges_];
        for (std::size_t high = low + 1; high < edges_; ++high) {
            const double total = so_far + costs[high - low - 1];
            if (total > wanted && total < infinity) {
                break;
            }
            if (total < best[high] * tie) {
                best[high] = total;
                from[high] = static_cast<std::uint32_t>(low);
            }
        }
    }
}

std::vector<Partition> Partitions::found() const {
    std::vector<Partition> result;
    for (std::size_t segments = 1; segments <= most_; ++segments) {
        const double cost = best(segments, edges_ - 1);
        if (cost == infinity) {
            break;
        }
        Partition one{{}, cost};
        std::size_t edge = edges_ - 1;
        for (std::size_t k = segments; k > 1; --k) {
            edge = from_[k * edges_ + edge];
            one.cuts.push_back(static_cast<std::uint32_t>(edge));
        }
        std::reverse(one.cuts.begin(), one.cuts.end());
        result.push_back(std::move(one));
    }
    return result;
}

namespace {

/// Squared costs of segments that begin, or end, at one edge.
class Sweeps {
public:
    Sweeps(const std::vector<Series>& series, const Rules& rules) : series_(&series), rules_(&rules) {
        for (const Series& one : series) {
            std::vector<Moments> moments;
            moments.reserve(one.cells());
            for (std::size_t cell = 0; cell < one.cells(); ++cell) {
                moments.push_back(moments_of(one, one.first[cell], one.first[cell + 1]));
            }
            cells_.push_back(std::move(moments));
        }
    }

    /// Costs of the segments from `low` to low + 1 .. high; cut short (infinite) beyond `limit`.
    void up(std::size_t low, std::size_t high, double limit, std::vector<double>& costs) const {
        costs.assign(high - low, infinity);
        std::vector<Moments> sums(series_->size());
        for (std::size_t edge = low + 1; edge <= high; ++edge) {
            const double cost = extended(sums, edge - 1, low, edge);
            costs[edge - low - 1] = cost;
            if (cost > limit && cost < infinity) {
                return;
            }
        }
    }

    /// Costs of the segments from low, low + 1, .. to `high`.
    void down(std::size_t low, std::size_t high, std::vector<double>& costs) const {
        costs.assign(high - low, infinity);
        std::vector<Moments> sums(series_->size());
        for (std::size_t edge = high; edge-- > low;) {
            costs[edge - low] = extended(sums, edge, edge, high);
        }
    }

private:
    /// Adds a cell to the sums of a segment; the cost of the segment.
    double extended(std::vector<Moments>& sums, std::size_t cell, std::size_t low, std::size_t high) const {
        double cost = 0.0;
        bool enough = true;
        for (std::size_t s = 0; s < sums.size(); ++s) {
            const Series& one = (*series_)[s];
            sums[s].merge(cells_[s][cell]);
            enough = enough && one.points_between(low, high) >= rules_->least;
            cost += one.scale * sums[s].cost(rules_->shape);
        }
        const bool whole = low == 0 && high == (*series_)[0].cells();
        if (!enough && !whole) {
            return infinity;
        }
        return cost;
    }

    const std::vector<Series>* series_;
    const Rules* rules_;
    std::vector<std::vector<Moments>> cells_;
};

/// Costs that can be reached with 1 .. most segments, by cutting where it gains most, again and again; [0] is unused.
std::vector<double> reachable(const Sweeps& sweeps, std::size_t cells, std::size_t most) {
    struct Piece {
        std::size_t low, high, cut;
        double cost, cut_cost;
    };
    std::vector<double> up, down;
    const auto piece = [&](std::size_t low, std::size_t high) {
        sweeps.up(low, high, infinity, up);
        sweeps.down(low, high, down);
        Piece made{low, high, low, up.back(), infinity};
        for (std::size_t cut = low + 1; cut < high; ++cut) {
            const double cost = up[cut - low - 1] + down[cut - low];
            if (cost < made.cut_cost) {
                made.cut = cut;
                made.cut_cost = cost;
            }
        }
        return made;
    };
    std::vector<Piece> pieces{piece(0, cells)};
    std::vector<double> result{infinity, pieces.front().cost};
    double total = pieces.front().cost;
    while (result.size() <= most) {
        const auto widest = std::max_element(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) {
            return a.cost - a.cut_cost < b.cost - b.cut_cost; // -inf where there is no cut
        });
        if (widest->cut_cost == infinity) {
            result.resize(most + 1, infinity);
            break;
        }
        const Piece cut = *widest;
        total += cut.cut_cost - cut.cost;
        *widest = piece(cut.low, cut.cut);
        pieces.push_back(piece(cut.cut, cut.high));
        result.push_back(std::max(total, 0.0));
    }
    return result;
}

std::vector<Partition> squared_partitions(const std::vector<Series>& series, const Rules& rules) {
    const std::size_t cells = series.front().cells();
    const Sweeps sweeps(series, rules);
    std::vector<double> limit = reachable(sweeps, cells, rules.most);
    double whole = 0.0; // sums in another order are rounded differently, which matters where almost nothing is left
    for (const Series& one : series) {
        whole += one.scale * moments_of(one, 0, one.x.size()).yy;
    }
    for (double& cost : limit) {
        cost += rounding * whole;
    }
    Partitions partitions(cells, rules.most);
    std::vector<double> costs;
    for (std::size_t low = 0; low < cells; ++low) {
        double widest = -1.0;
        for (std::size_t before = 0; before < rules.most; ++before) {
            const double left = limit[before + 1] * slack - partitions.best(before, low);
            widest = std::max(widest, std::isnan(left) ? infinity : left);
        }
        if (widest < 0.0) {
            continue; // no partition worth having is cut here
        }
        sweeps.up(low, cells, widest, costs);
        partitions.offer(low, costs, limit);
    }
    return partitions.found();
}

/// The tables of all series together.
class LogTables {
public:
    LogTables(const std::vector<Series>& series, const Rules& rules) {
        for (const Series& one : series) {
            tables_.emplace_back(one, rules.shape, rules.least);
        }
    }
    [[nodiscard]] double bound(std::size_t low, std::size_t high) const noexcept {
        double sum = 0.0;
        for (const LogTable& one : tables_) {
            sum += one.bound(low, high);
        }
        return sum;
    }
    [[nodiscard]] double estimate(std::size_t low, std::size_t high) const noexcept {
        double sum = 0.0;
        for (const LogTable& one : tables_) {
            sum += one.estimate(low, high);
        }
        return sum;
    }
    [[nodiscard]] bool exact(std::size_t low, std::size_t high) const noexcept {
        return std::all_of(tables_.begin(), tables_.end(), [&](const LogTable& one) { return one.exact(low, high); });
    }
    double refine(std::size_t low, std::size_t high) {
        double sum = 0.0;
        for (LogTable& one : tables_) {
            sum += one.refine(low, high);
        }
        return sum;
    }

private:
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
    for (int round = 0; round < lazy_rounds; ++round) {
        std::vector<Partition> cheapest = partitions_of(cells, rules.most, by_bound);
        if (!follow(cheapest)) {
            return cheapest; // all their segments were exact: nothing can be cheaper
        }
    }
    refine_all_that_may_matter(tables, cells, reached);
    while (true) {
        std::vector<Partition> cheapest = partitions_of(cells, rules.most, by_bound);
        if (!follow(cheapest)) {
            return cheapest;
        }
    }
}

} // namespace

std::vector<Partition> best_partitions(const std::vector<Series>& series, const Rules& rules) {
    return rules.objective == Objective::squared ? squared_partitions(series, rules) : log_partitions(series, rules);
}

namespace {

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
            series.points_between(low, cut) >= rules.least && series.points_between(cut, high) >= rules.least;
        result.push_back(enough ? below.cost(low, cut) + above.cost(cut, high) : infinity);
    }
    return result;
}

std::size_t best_log_cut(const Series& series, std::size_t begin, std::size_t end, std::size_t low, std::size_t high) {
    const std::vector<double> below = log_costs_on_the_way(series, begin, low, high);
    const std::vector<double> above = log_costs_on_the_way(series, end, high, low);
    std::size_t best = low;
    double least = infinity;
    for (std::size_t cut = low; cut <= high; ++cut) {
        if (const double cost = below[cut - low] + above[high - cut]; cost < least) {
            least = cost;
            best = cut;
        }
    }
    return best;
}

} // namespace lepaute::fit
