#include "models/network_model.hpp"

#include "rng/elementary.hpp"
#include "rng/philox.hpp"

#include <cmath>

namespace lepaute::models {

namespace {

constexpr std::uint32_t network_discrepancy_stream = 0x4E444953U;

void slow_down(NetworkClass& links, double factor) {
    for (Segment& segment : links.segments) {
        segment.latency_s *= factor;
        segment.bandwidth_Bps /= factor;
    }
}

} // namespace

double transfer_factor(LinkClass which, double relative_sd, std::uint64_t seed) noexcept {
    if (relative_sd <= 0.0) {
        return 1.0;
    }
    const double log_variance = rng::natural_log(1.0 + relative_sd * relative_sd);
    const double normal = rng::normal({seed, static_cast<std::uint32_t>(which), network_discrepancy_stream, 0});
    return rng::exponential(std::sqrt(log_variance) * normal - log_variance / 2.0);
}

double link_factor(const Network& network, std::uint64_t seed) noexcept {
    return transfer_factor(LinkClass::remote, network.remote.discrepancy_relative_sd, seed);
}

Network drawn(const Network& network, std::uint64_t seed) {
    Network result = network;
    const auto draw = [seed](LinkClass which, NetworkClass& links) {
        if (links.discrepancy_relative_sd > 0.0) {
            slow_down(links, transfer_factor(which, links.discrepancy_relative_sd, seed));
        }
    };
    const LinkClass inside = network.loopback_as_remote ? LinkClass::remote : LinkClass::loopback;
    result.loopback_Bps /= transfer_factor(inside, network.loopback.discrepancy_relative_sd, seed);
    result.node_link_Bps /= link_factor(network, seed);
    draw(inside, result.loopback);
    draw(LinkClass::remote, result.remote);
    draw(inside, result.loopback_noncontiguous);
    draw(LinkClass::remote, result.remote_noncontiguous);
    draw(network.loopback_as_remote ? LinkClass::remote_busy : LinkClass::loopback_busy, result.loopback_busy);
    draw(LinkClass::remote_busy, result.remote_busy);
    return result;
}

} // namespace lepaute::models
