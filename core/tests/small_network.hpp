#pragma once
// Networks of round numbers, and messages over them, for tests of the engine.

#include "models/network_model.hpp"
#include "mpi/engine.hpp"

#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

namespace lepaute::tests {

/// The first ranks, nodes, cores or links, in order.
inline std::vector<std::uint32_t> first(std::size_t count) {
    std::vector<std::uint32_t> numbers(count);
    std::iota(numbers.begin(), numbers.end(), 0U);
    return numbers;
}

inline constexpr double eager_latency = 1e-3;
inline constexpr double rendezvous_latency = 2e-3;

/// The same segments in all classes of links, and links of one bandwidth.
inline models::Network network_of(std::vector<models::Segment> segments, double link_Bps) {
    models::Network result;
    result.loopback.segments = std::move(segments);
    result.remote = result.loopback_noncontiguous = result.remote_noncontiguous = result.loopback;
    result.node_link_Bps = result.loopback_Bps = link_Bps;
    return result;
}

/// Up to 100 bytes as it is, up to 1000 detached, rendezvous above.
inline std::vector<models::Segment> by_size(const models::Segment& eager) {
    std::vector<models::Segment> segments(3, eager);
    segments[1].above_bytes = 100.0;
    segments[1].protocol = models::Protocol::detached;
    segments[2].above_bytes = 1000.0;
    segments[2].protocol = models::Protocol::rendezvous;
    return segments;
}

/// 1000 bytes/s; overheads 1 and 2 ms; link 1000 bytes/s.
inline models::Network network() {
    std::vector<models::Segment> segments =
        by_size({0.0, models::Protocol::eager, eager_latency, 1000.0, {1e-3, 0.0}, {}, {2e-3, 0.0}, 0.0});
    segments.back().latency_s = rendezvous_latency;
    models::Network result = network_of(std::move(segments), 1000.0);
    result.iprobe_s = 1e-4;
    return result;
}

/// On a plain switch whose links have the bandwidth that the network names.
struct Engine : mpi::Engine {
    Engine(const models::Network& network, std::vector<std::uint32_t> node_of_rank, std::uint32_t nodes,
           std::uint64_t seed, bool with_noise)
        : mpi::Engine(network, net::Topology::plain_switch(nodes, network.node_link_Bps), std::move(node_of_rank), seed,
                      with_noise) {}
};

/// Each of the first ranks (by default half of all) sends a message to the rank so many further as half of all, which
/// computes before. The time of the run.
inline double send_to_other_half(mpi::Engine& engine, mpi::Operation send, double receivers_compute_s = 0.0,
                                 std::optional<mpi::Rank> senders = std::nullopt) {
    const mpi::Rank half = engine.size() / 2;
    send.kind = mpi::Operation::Kind::send;
    return engine.run([&](mpi::Rank rank) -> mpi::Task {
        if (rank % half >= senders.value_or(half)) {
            co_return;
        }
        if (rank < half) {
            send.send_to = rank + half;
            co_await engine.operation<void>(rank, send);
        } else {
            engine.compute(rank, receivers_compute_s);
            co_await engine.receive(rank, rank - half, send.send_tag);
        }
    });
}

} // namespace lepaute::tests
