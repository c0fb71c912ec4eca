#pragma once
// Max-min fair sharing of links by flows.

#include <cstdint>
#include <span>
#include <vector>

namespace lepaute::net {

using LinkId = std::uint32_t;

/// The links a flow crosses (at most two: up and down link of two nodes, or the one loopback link) and the rate that
/// it never exceeds, in bytes/s.
struct Demand {
    LinkId first;
    LinkId second; // equal to first when the flow crosses one link
    double cap_Bps;
};

/// Max-min fair rates (bytes/s, one per flow) by progressive filling
/// (Bertsekas & Gallager, Data Networks, 2nd ed., section 6.5.2), a cap being a private link of its flow.
/// Ensures: no link carries more than its capacity, and every flow is at its cap or crosses a full link on which no
/// other flow is faster. capacity_Bps: one per link.
[[nodiscard]] std::vector<double> max_min_rates(std::span<const double> capacity_Bps, std::span<const Demand> demands);

} // namespace lepaute::net
