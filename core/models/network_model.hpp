#pragma once
// What a message costs on one class of links, by segments of its size.

#include <cstdint>
#include <vector>

namespace lepaute::models {

enum class Protocol : std::uint8_t {
    eager,     // leaves before the receive is posted; the sender goes on at once
    detached,  // the sender goes on at once, the transfer waits for the receive
    rendezvous // the transfer waits for the receive, and the sender for the transfer
};

/// Affine cost on the CPU of a process: intercept_s + per_byte_s * size.
struct Overhead {
    double intercept_s = 0.0;
    double per_byte_s = 0.0;
    [[nodiscard]] double of(double size_bytes) const noexcept { return intercept_s + per_byte_s * size_bytes; }
};

struct Segment {
    double above_bytes = 0.0; // holds for sizes > above_bytes, up to the next segment; the first also holds 0
    Protocol protocol = Protocol::eager;
    double latency_s = 0.0; // of the whole route
    double bandwidth_Bps = 1.0;
    Overhead send;
    Overhead isend; // of MPI_Issend too; HPL's other sends block
    Overhead receive;
    double noise_relative_sd = 0.0; // of messages that share no link
};

/// Segments in increasing order, at least one.
struct NetworkClass {
    std::vector<Segment> segments;
    [[nodiscard]] const Segment& at(double size_bytes) const noexcept {
        std::size_t i = segments.size() - 1;
        while (i > 0 && size_bytes <= segments[i].above_bytes) {
            --i;
        }
        return segments[i];
    }
};

/// What a segment's bandwidth means when flows share a link (design: flow_factor).
enum class FlowFactor : std::uint8_t { bound, scale };

struct Network {
    NetworkClass loopback;
    NetworkClass remote;
    NetworkClass loopback_noncontiguous; // messages sent from a derived datatype with gaps
    NetworkClass remote_noncontiguous;
    FlowFactor flow_factor = FlowFactor::bound;
    bool exact_sharing = false;   // max-min fair to the last digit, or its local bound (net::Sharing)
    double node_link_Bps = 1.0;   // up and down link of each node
    double loopback_Bps = 1.0;    // nominal bandwidth inside a node
    bool loopback_shared = false; // do parallel flows inside a node slow each other?
    double iprobe_s = 0.0;
    bool iprobe_looks_first = false; // MPI_Iprobe finds only what had come at the rank's previous MPI call
};

} // namespace lepaute::models
