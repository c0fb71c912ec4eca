#pragma once
// A network of round numbers for tests of the engine.

#include "models/network_model.hpp"

#include <utility>
#include <vector>

namespace lepaute::tests {

inline constexpr double eager_latency = 1e-3;
inline constexpr double rendezvous_latency = 2e-3;

/// The same between nodes as inside of one.
inline models::Network network_of(std::vector<models::Segment> segments, double link_Bps) {
    models::Network result;
    result.loopback.segments = std::move(segments);
    result.remote = result.loopback;
    result.loopback_noncontiguous = result.loopback;
    result.remote_noncontiguous = result.loopback;
    result.node_link_Bps = link_Bps;
    result.loopback_Bps = link_Bps;
    return result;
}

/// Up to 100 bytes eager, up to 1000 detached, rendezvous above; 1000 bytes/s; overheads 1 and 2 ms; link 1000 bytes/s.
inline models::Network network() {
    const models::Segment eager{0.0, models::Protocol::eager, eager_latency, 1000.0, {1e-3, 0.0}, {}, {2e-3, 0.0}, 0.0};
    models::Segment detached = eager;
    detached.above_bytes = 100.0;
    detached.protocol = models::Protocol::detached;
    models::Segment rendezvous = eager;
    rendezvous.above_bytes = 1000.0;
    rendezvous.protocol = models::Protocol::rendezvous;
    rendezvous.latency_s = rendezvous_latency;
    models::Network result = network_of({eager, detached, rendezvous}, 1000.0);
    result.iprobe_s = 1e-4;
    return result;
}

} // namespace lepaute::tests
