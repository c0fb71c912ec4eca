#pragma once
// What SimGrid multiplies the latencies of a route's links by, so that a message takes that of the platform.

#include "models/network_model.hpp"

#include <algorithm>
#include <simgrid/s4u.hpp>
#include <vector>

namespace lepaute::simblas {

using Links = std::vector<simgrid::s4u::Link*>;
constexpr double envelope_bytes = 16.0; // that SMPI adds to each message

/// Of all messages: without one, SimGrid shares a link between flows by weights in which those with latency have
/// 1 / latency and those without have 1, and starves these, even on a link that nobody shares.
constexpr double least_latency_s = 1e-12;

/// The factor on the sum of the links' latencies that makes it the latency of the segment and what cables add, less
/// what the envelope takes.
inline double latency_factor(const models::Segment& segment, const Links& links) {
    double sum_s = 0.0;
    for (const simgrid::s4u::Link* link : links) {
        sum_s += link->get_latency();
    }
    // In files that are written route by route, the latency of segments is that of a first link of its own.
    const bool by_route = !links.empty() && links.front()->get_name().ends_with("_latency");
    const double cables_s = by_route ? segment.cable_latency_factor * (sum_s - links.front()->get_latency()) : 0.0;
    const double wanted_s = segment.latency_s + cables_s - envelope_bytes / segment.bandwidth_Bps;
    return sum_s > 0.0 ? std::max(least_latency_s, wanted_s) / sum_s : 1.0;
}

} // namespace lepaute::simblas
