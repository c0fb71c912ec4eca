#include "net/max_min.hpp"

#include <algorithm>
#include <limits>

namespace lepaute::net {

namespace {

struct Filling {
    double left_Bps;       // capacity not yet given away
    std::uint32_t unfixed; // flows whose rate still grows
};

} // namespace

std::vector<double> max_min_rates(std::span<const double> capacity_Bps, std::span<const Demand> demands) {
    std::vector<double> rate(demands.size(), 0.0);
    std::vector<Filling> links(capacity_Bps.size());
    for (std::size_t link = 0; link < links.size(); ++link) {
        links[link] = {capacity_Bps[link], 0};
    }
    std::vector<std::uint32_t> open(demands.size());
    for (std::uint32_t flow = 0; flow < demands.size(); ++flow) {
        open[flow] = flow;
        ++links[demands[flow].first].unfixed;
        if (demands[flow].second != demands[flow].first) {
            ++links[demands[flow].second].unfixed;
        }
    }
    const auto fair_share = [&](const Demand& demand) {
        const Filling& a = links[demand.first];
        const Filling& b = links[demand.second];
        return std::min({demand.cap_Bps, a.left_Bps / a.unfixed, b.left_Bps / b.unfixed});
    };
    while (!open.empty()) {
        double lowest = std::numeric_limits<double>::infinity();
        for (const std::uint32_t flow : open) {
            lowest = std::min(lowest, fair_share(demands[flow]));
        }
        // Every flow that cannot grow beyond the lowest share is fixed there; the slack keeps ties of equal shares,
        // which differ by rounding only, in one round.
        const double limit = lowest * (1.0 + 1e-12);
        std::vector<std::uint32_t> fixed;
        std::vector<std::uint32_t> still_open;
        for (const std::uint32_t flow : open) {
            (fair_share(demands[flow]) <= limit ? fixed : still_open).push_back(flow);
        }
        for (const std::uint32_t flow : fixed) {
            rate[flow] = lowest;
            const auto take = [&](LinkId link) {
                links[link].left_Bps = std::max(0.0, links[link].left_Bps - lowest);
                --links[link].unfixed;
            };
            take(demands[flow].first);
            if (demands[flow].second != demands[flow].first) {
                take(demands[flow].second);
            }
        }
        open = std::move(still_open);
    }
    return rate;
}

} // namespace lepaute::net
