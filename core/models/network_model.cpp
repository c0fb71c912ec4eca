#include "models/network_model.hpp"

#include "rng/elementary.hpp"
#include "rng/philox.hpp"

#include <cmath>

namespace lepaute::models {

namespace {

constexpr std::uint32_t network_discrepancy_stream = 0x4E444953U;

} // namespace

double message_factor(LinkClass which, double relative_sd, std::uint64_t seed) noexcept {
    if (relative_sd <= 0.0) {
        return 1.0;
    }
    const double log_variance = rng::natural_log(1.0 + relative_sd * relative_sd);
    const double normal = rng::normal({seed, static_cast<std::uint32_t>(which), network_discrepancy_stream, 0});
    return rng::exponential(std::sqrt(log_variance) * normal - log_variance / 2.0);
}

double link_factor(const Network& network, std::uint64_t seed) noexcept {
    return message_factor(LinkClass::remote, network.remote.discrepancy_relative_sd, seed);
}

Network drawn(const Network& network, NetworkLayers layers, std::uint64_t seed) {
    Network result = network;
    const auto draw = [&](LinkClass which, NetworkClass& links) {
        const double slower = layers.transfers ? message_factor(which, links.discrepancy_relative_sd, seed) : 1.0;
        const double busier = layers.overheads ? message_factor(which, links.overhead_relative_sd, seed) : 1.0;
        for (Segment& segment : links.segments) {
            segment.latency_s *= slower;
            segment.bandwidth_Bps /= slower;
            for (Overhead* overhead : {&segment.send, &segment.isend, &segment.receive}) {
                overhead->intercept_s *= busier;
                overhead->per_byte_s *= busier;
            }
        }
    };
    const LinkClass inside = network.loopback_as_remote ? LinkClass::remote : LinkClass::loopback;
    if (layers.transfers) {
        result.loopback_Bps /= message_factor(inside, network.loopback.discrepancy_relative_sd, seed);
        result.node_link_Bps /= link_factor(network, seed);
    }
    if (layers.overheads) {
        result.iprobe_s *= message_factor(inside, network.loopback.overhead_relative_sd, seed);
    }
    draw(inside, result.loopback);
    draw(LinkClass::remote, result.remote);
    draw(inside, result.loopback_noncontiguous);
    draw(LinkClass::remote, result.remote_noncontiguous);
    draw(network.loopback_as_remote ? LinkClass::remote_busy : LinkClass::loopback_busy, result.loopback_busy);
    draw(LinkClass::remote_busy, result.remote_busy);
    return result;
}

} // namespace lepaute::models
