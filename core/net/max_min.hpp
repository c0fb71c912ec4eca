#pragma once
// Max-min fair sharing of links by flows.

#include "net/links.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace lepaute::net {

/// Flows that cross the same links, and the rate that each of them never exceeds, in bytes/s.
struct Demand {
    std::span<const LinkId> links; // each at most once
    double cap_Bps;
    std::uint32_t flows = 1;
};

/// Max-min fair rates (bytes/s of one flow, one per demand) by progressive filling
/// (Bertsekas & Gallager, Data Networks, 2nd ed., section 6.5.2), a cap being a private link of its flow.
/// Ensures: no link carries more than its capacity, and every flow is at its cap or crosses a full link on which no
/// other flow is faster. capacity_Bps: one per link.
[[nodiscard]] std::vector<double> max_min_rates(std::span<const double> capacity_Bps, std::span<const Demand> demands);

} // namespace lepaute::net
