#include "models/network_model.hpp"

#include "rng/philox.hpp"

#include <cmath>

namespace lepaute::models {

namespace {

constexpr std::uint32_t network_discrepancy_stream = 0x4E444953U;

/// Messages with gaps differ from the others in how they are packed, not in what the link does that day.
LinkClass without_gaps(LinkClass which) noexcept {
    switch (which) {
    case LinkClass::loopback_noncontiguous:
        return LinkClass::loopback;
    case LinkClass::remote_noncontiguous:
        return LinkClass::remote;
    default:
        return which;
    }
}

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
    const double log_variance = std::log1p(relative_sd * relative_sd);
    const double normal =
        rng::normal({seed, static_cast<std::uint32_t>(without_gaps(which)), network_discrepancy_stream, 0});
    return std::exp(std::sqrt(log_variance) * normal - log_variance / 2.0);
}

Network drawn(const Network& network, std::uint64_t seed) {
    Network result = network;
    const auto draw = [seed](LinkClass which, NetworkClass& links) {
        if (links.discrepancy_relative_sd > 0.0) {
            slow_down(links, transfer_factor(which, links.discrepancy_relative_sd, seed));
        }
    };
    draw(LinkClass::loopback, result.loopback);
    draw(LinkClass::remote, result.remote);
    draw(LinkClass::loopback_noncontiguous, result.loopback_noncontiguous);
    draw(LinkClass::remote_noncontiguous, result.remote_noncontiguous);
    draw(LinkClass::loopback_busy, result.loopback_busy);
    draw(LinkClass::remote_busy, result.remote_busy);
    return result;
}

} // namespace lepaute::models
