#include "net/topology.hpp"

#include <algorithm>

namespace lepaute::net {

double Topology::narrowest(std::uint32_t a, std::uint32_t b, double most_Bps) const {
    if (least_Bps_ >= most_Bps) {
        return most_Bps;
    }
    std::vector<LinkId> links;
    route(a, b, links);
    double least_Bps = most_Bps;
    for (const LinkId link : links) {
        least_Bps = std::min(least_Bps, links_[link].capacity_Bps);
    }
    return least_Bps;
}

} // namespace lepaute::net
