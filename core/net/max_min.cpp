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
    for (std::uint32_t demand = 0; demand < demands.size(); ++demand) {
        open[demand] = demand;
        for (const LinkId link : demands[demand].links) {
            links[link].unfixed += demands[demand].flows;
        }
    }
    const auto fair_share = [&](const Demand& demand) {
        double share = demand.cap_Bps;
        for (const LinkId link : demand.links) {
            share = std::min(share, links[link].left_Bps / links[link].unfixed);
        }
        return share;
    };
    while (!open.empty()) {
        double lowest = std::numeric_limits<double>::infinity();
        for (const std::uint32_t demand : open) {
            lowest = std::min(lowest, fair_share(demands[demand]));
        }
        // Every flow that cannot grow beyond the lowest share is fixed there; the slack keeps ties of equal shares,
        // which differ by rounding only, in one round.
        const double limit = lowest * (1.0 + 1e-12);
        std::vector<std::uint32_t> fixed;
        std::vector<std::uint32_t> still_open;
        for (const std::uint32_t demand : open) {
            (fair_share(demands[demand]) <= limit ? fixed : still_open).push_back(demand);
        }
        for (const std::uint32_t demand : fixed) {
            rate[demand] = lowest;
            for (const LinkId link : demands[demand].links) {
                links[link].left_Bps = std::max(0.0, links[link].left_Bps - lowest * demands[demand].flows);
                links[link].unfixed -= demands[demand].flows;
            }
        }
        open = std::move(still_open);
    }
    return rate;
}

} // namespace lepaute::net
