#pragma once
// What a message costs on one class of links, by segments of its size.

#include "checks.hpp"
#include "models/noise_mixture.hpp"
#include "models/words.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace lepaute::models {

enum class Protocol : std::uint8_t {
    eager,     // leaves before the receive is posted; the sender goes on at once
    detached,  // the sender goes on at once, the transfer waits for the receive
    rendezvous // the transfer waits for the receive, and the sender for the transfer
};
constexpr auto words_of(Protocol /*enum*/) noexcept {
    return words_in_order<Protocol>("eager", "detached", "rendezvous");
}

/// Affine cost on the CPU of a process: intercept_s + per_byte_s * size.
struct Overhead {
    double intercept_s = 0.0;
    double per_byte_s = 0.0;
    [[nodiscard]] double of(double size_bytes) const noexcept { return intercept_s + per_byte_s * size_bytes; }

    template <class Visit>
    static void fields(Visit visit) {
        visit("intercept_s", &Overhead::intercept_s, 0.0, most_seconds);
        visit("per_byte_s", &Overhead::per_byte_s, 0.0, most_seconds);
    }
};

struct Segment {
    double above_bytes = 0.0; // holds for sizes > above_bytes, up to the next segment; the first also holds 0
    Protocol protocol = Protocol::eager;
    double latency_s = 0.0; // of the whole route
    double bandwidth_Bps = 1.0;
    Overhead send;
    Overhead isend; // of MPI_Issend too; HPL's other sends block
    Overhead receive;
    double noise_relative_sd = 0.0;    // half-normal noise of the transfer: latency and bytes
    NoiseMixture noise{};              // else: of all that a message costs, overheads included
    double cable_latency_factor = 1.0; // on the latencies of cables

    /// Of a message alone, from the beginning of its send to the end of its receive.
    [[nodiscard]] double one_way_s(double size_bytes) const noexcept {
        return send.of(size_bytes) + latency_s + size_bytes / bandwidth_Bps + receive.of(size_bytes);
    }

    /// A bound of the factor that noise puts on a message.
    [[nodiscard]] double least_noise_factor() const noexcept {
        if (noise.modes.empty()) {
            return std::max(0.0, 1.0 + noise_relative_sd * rng::Stream::least_centred_half_normal);
        }
        double least = 1e300;
        for (const rng::Mode& mode : noise.modes) {
            least = std::min(least, rng::exponential(mode.mean - rng::Stream::most_deviations * mode.deviation));
        }
        return least;
    }

    template <class Visit>
    static void fields(Visit visit) {
        visit("above_bytes", &Segment::above_bytes, 0.0, 1e300);
        visit("protocol", &Segment::protocol);
        visit("latency_s", &Segment::latency_s, 0.0, most_seconds);
        visit("bandwidth_Bps", &Segment::bandwidth_Bps, least_Bps, most_Bps);
        visit("cable_latency_factor", &Segment::cable_latency_factor, 0.0, 1e300);
        visit("send", &Segment::send);
        visit("isend", &Segment::isend);
        visit("receive", &Segment::receive);
        visit("noise_relative_sd", &Segment::noise_relative_sd, 0.0, most_relative_sd);
        visit("noise", &Segment::noise);
    }
};

/// Segments in increasing order, at least one where messages are of the class.
struct NetworkClass {
    std::vector<Segment> segments;
    double fitted_low_bytes = 0.0; // outside of these sizes, the segments extrapolate
    double fitted_high_bytes = 1e300;
    // From one calibration to another, of the time of a transfer, and of the CPU time of calls.
    double discrepancy_relative_sd = 0.0;
    double overhead_relative_sd = 0.0;
    [[nodiscard]] const Segment& at(double size_bytes) const noexcept {
        std::size_t i = segments.size() - 1;
        while (i > 0 && size_bytes <= segments[i].above_bytes) {
            --i;
        }
        return segments[i];
    }

    void check() const {
        if (std::ranges::adjacent_find(segments, std::not_fn(std::less{}), &Segment::above_bytes) != segments.end()) {
            throw std::invalid_argument("segments are not in increasing order of above_bytes");
        }
        check_number("fitted_high_bytes", fitted_high_bytes, fitted_low_bytes, 1e300);
    }
    template <class Visit>
    static void fields(Visit visit) {
        visit("segments", &NetworkClass::segments);
        visit("fitted_low_bytes", &NetworkClass::fitted_low_bytes, 0.0, 1e300);
        visit("fitted_high_bytes", &NetworkClass::fitted_high_bytes);
        visit("discrepancy_relative_sd", &NetworkClass::discrepancy_relative_sd, 0.0, most_relative_sd);
        visit("overhead_relative_sd", &NetworkClass::overhead_relative_sd, 0.0, most_relative_sd);
    }
};

/// Messages of one class of links, to be told with a prediction; times are those of messages alone.
struct MessageUse {
    std::uint64_t messages = 0;
    std::uint64_t outside_messages = 0; // of the fitted sizes
    double bytes = 0.0;
    double outside_bytes = 0.0;
    double time_s = 0.0;
    double outside_time_s = 0.0;
    double outside_low_bytes = 1e300; // extreme sizes met outside the fitted ones
    double outside_high_bytes = 0.0;

    void note(const NetworkClass& network, const Segment& segment, double size_bytes) noexcept {
        const double seconds = segment.one_way_s(size_bytes);
        const bool outside = size_bytes < network.fitted_low_bytes || size_bytes > network.fitted_high_bytes;
        add(outside ? MessageUse{1, 1, size_bytes, size_bytes, seconds, seconds, size_bytes, size_bytes}
                    : MessageUse{.messages = 1, .bytes = size_bytes, .time_s = seconds});
    }
    void add(const MessageUse& other) noexcept {
        messages += other.messages;
        outside_messages += other.outside_messages;
        bytes += other.bytes;
        outside_bytes += other.outside_bytes;
        time_s += other.time_s;
        outside_time_s += other.outside_time_s;
        outside_low_bytes = std::min(outside_low_bytes, other.outside_low_bytes);
        outside_high_bytes = std::max(outside_high_bytes, other.outside_high_bytes);
    }
};

/// The classes of links of a network, in this order wherever they are counted.
enum class LinkClass : std::uint8_t {
    loopback,
    remote,
    loopback_noncontiguous,
    remote_noncontiguous,
    loopback_busy,
    remote_busy,
    count
};
inline constexpr std::size_t link_class_count = static_cast<std::size_t>(LinkClass::count);
constexpr auto words_of(LinkClass /*enum*/) noexcept {
    return words_in_order<LinkClass>("loopback", "remote", "loopback_noncontiguous", "remote_noncontiguous",
                                     "loopback_busy", "remote_busy");
}

/// What a segment's bandwidth means when flows share a link (design: flow_factor).
enum class FlowFactor : std::uint8_t { bound, scale };
constexpr auto words_of(FlowFactor /*enum*/) noexcept { return words_in_order<FlowFactor>("bound", "scale"); }

struct Network {
    NetworkClass loopback;
    NetworkClass remote;
    NetworkClass loopback_noncontiguous; // messages sent from a derived datatype with gaps
    NetworkClass remote_noncontiguous;
    bool loopback_as_remote = false;     // one model, and one factor of a run, for both
    bool noncontiguous_modelled = false; // else they cost what those without gaps cost
    NetworkClass loopback_busy; // messages whose receiver computes between its probes for them; no segments: as above
    NetworkClass remote_busy;   // rendezvous messages between nodes whose other cores all compute
    double ranks_on_full_node = 1.0;
    std::vector<double> ranks_on_full_nodes{}; // of each node, where they differ; at most as many
    FlowFactor flow_factor = FlowFactor::bound;
    bool exact_sharing = false;   // max-min fair to the last digit, or its local bound (net::Sharing)
    double node_link_Bps = 1.0;   // up and down link of each node
    double loopback_Bps = 1.0;    // nominal bandwidth inside a node
    bool loopback_shared = false; // do parallel flows inside a node slow each other?
    double iprobe_s = 0.0;
    bool iprobe_looks_first = false; // MPI_Iprobe finds only what had come at the rank's previous MPI call
    bool progress_in_calls = false;  // collective operations that do not block go on only while their rank is in a call
    bool counts_all_sizes = false;   // of messages and of calls of kernels, also where no fitted sizes are known

    static constexpr std::array classes{
        &Network::loopback,      &Network::remote,     &Network::loopback_noncontiguous, &Network::remote_noncontiguous,
        &Network::loopback_busy, &Network::remote_busy};
    [[nodiscard]] const NetworkClass& of(LinkClass which) const noexcept {
        return this->*classes[static_cast<std::size_t>(which)];
    }

    void check() const {
        check_has_segments(LinkClass::loopback);
        check_has_segments(LinkClass::remote);
        if (noncontiguous_modelled) {
            check_has_segments(LinkClass::loopback_noncontiguous);
            check_has_segments(LinkClass::remote_noncontiguous);
        }
    }
    void check_has_segments(LinkClass link) const {
        if (of(link).segments.empty()) {
            refuse(std::string(word_of(link)) + ".segments", "empty", "every size of message needs a segment");
        }
    }
    template <class Visit>
    static void fields(Visit visit) {
        visit("loopback", &Network::loopback);
        visit("remote", &Network::remote);
        visit("loopback_noncontiguous", &Network::loopback_noncontiguous);
        visit("remote_noncontiguous", &Network::remote_noncontiguous);
        visit("loopback_as_remote", &Network::loopback_as_remote);
        visit("noncontiguous_modelled", &Network::noncontiguous_modelled);
        visit("loopback_busy", &Network::loopback_busy);
        visit("remote_busy", &Network::remote_busy);
        visit("ranks_on_full_node", &Network::ranks_on_full_node);
        visit("ranks_on_full_nodes", &Network::ranks_on_full_nodes);
        visit("flow_factor", &Network::flow_factor);
        visit("exact_sharing", &Network::exact_sharing);
        visit("node_link_Bps", &Network::node_link_Bps, least_Bps, most_Bps);
        visit("loopback_Bps", &Network::loopback_Bps, least_Bps, most_Bps);
        visit("loopback_shared", &Network::loopback_shared);
        visit("iprobe_s", &Network::iprobe_s, 0.0, most_seconds);
        visit("iprobe_looks_first", &Network::iprobe_looks_first);
        visit("progress_in_calls", &Network::progress_in_calls);
        visit("counts_all_sizes", &Network::counts_all_sizes);
    }
};

/// What of a network a run draws.
struct NetworkLayers {
    bool transfers = true; // and the links between nodes
    bool overheads = true;
};
/// The network of one run: the time of the transfers of each class multiplied by a factor of mean 1, log-normal with
/// the class's relative standard deviation, and the overheads of its calls likewise with theirs. Both come from one
/// draw: a calibration in which transfers were slow is one in which calls were, so that the error of a whole message is
/// no less than either. Messages with gaps share the factors of those without, calls that move no message those of
/// messages inside a node. The links of nodes are slower by the factor of messages between nodes, so that it holds for
/// transfers that share them, too.
[[nodiscard]] Network drawn(const Network& network, NetworkLayers layers, std::uint64_t seed);
/// The factor of messages between nodes in the run of that seed.
[[nodiscard]] double link_factor(const Network& network, std::uint64_t seed) noexcept;
/// The factor, of that standard deviation, on transfers or overheads of a class of links in the run of that seed.
[[nodiscard]] double message_factor(LinkClass which, double relative_sd, std::uint64_t seed) noexcept;

} // namespace lepaute::models
