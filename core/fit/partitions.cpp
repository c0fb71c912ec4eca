#include "fit/partitions.hpp"

#include <algorithm>
#include <cmath>

namespace lepaute::fit {

namespace {

/// A partition is preferred to one found before only where it is cheaper by more than sums are rounded.
constexpr double tie = 1.0 - 1e-12;
/// By so much of a sum of squares about the mean what is left out must be dearer than the limit, besides the slack.
constexpr double rounding = 1e-12;

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
            enough = enough && one.sizes_between(low, high) >= rules_->least;
            cost += one.scale * sums[s].cost(rules_->shape);
        }
        const bool whole = low == 0 && high == (*series_)[0].cells();
        if (!enough && !whole) {
            cost = infinity;
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

} // namespace

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

} // namespace lepaute::fit
