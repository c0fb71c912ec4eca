#pragma once
// What the engine keeps of each rank, and of each message on its way.

#include "models/network_model.hpp"
#include "mpi/operation.hpp"
#include "mpi/requests.hpp"
#include "mpi/trace.hpp"
#include "net/event_queue.hpp"
#include "rng/stream.hpp"

#include <algorithm>
#include <array>
#include <coroutine>
#include <cstdint>

namespace lepaute::mpi {

using Shares = std::array<double, share_count>;
[[nodiscard]] inline double& part(Shares& shares, Share which) noexcept {
    return shares[static_cast<std::size_t>(which)];
}
[[nodiscard]] inline double part(const Shares& shares, Share which) noexcept {
    return shares[static_cast<std::size_t>(which)];
}

inline constexpr std::uint32_t no_message = 0xFFFFFFFFU;

/// A wait by its causes.
struct Wait {
    double late_s = 0.0;
    double transfer_s = 0.0;
    double contention_s = 0.0;

    /// Of a wait from `from_s` until a transfer was over: until that began the other side was late; what it took beyond
    /// its time alone it lost to contention (or noise).
    static Wait until(double end_s, double from_s, double start_s, double beyond_s) noexcept {
        const double wait_s = std::max(0.0, end_s - from_s);
        const double late_s = std::clamp(start_s - from_s, 0.0, wait_s);
        const double contention_s = std::clamp(beyond_s, 0.0, wait_s - late_s);
        return {late_s, wait_s - late_s - contention_s, contention_s};
    }
    void add(const Wait& other, double sign = 1.0) noexcept {
        late_s += sign * other.late_s;
        transfer_s += sign * other.transfer_s;
        contention_s += sign * other.contention_s;
    }
    void add_to(Shares& shares) const noexcept {
        part(shares, Share::late) += late_s;
        part(shares, Share::transfer) += transfer_s;
        part(shares, Share::contention) += contention_s;
    }
};

/// What the date of a rank in the queue stands for.
enum class Event : std::uint8_t { none, receive, send, probe, start_transfer, wake, irecv, choose };

struct alignas(64) RankState { // a multiple of a cache line: an event touches most of it
    double clock_s = 0.0;
    std::coroutine_handle<> handle;
    Steps* steps = nullptr; // gone through before the coroutine goes on
    Operation operation;
    std::uint32_t node = 0;
    Event event = Event::none;
    bool inside_post = false;  // the operation may end before its rank is suspended
    bool send_pending = false; // the sender waits for the transfer
    bool receive_pending = false;
    bool receive_unmatched = false; // no message has been found for the pending receive yet
    bool awaiting = false;          // asks for a message whose date is not known
    bool answer = false;
    std::uint32_t outgoing = no_message; // the message to post, or to transfer
    std::uint32_t unexpected =
        no_message; // the first of the messages sent to it and not yet matched, in order of posting
    std::int32_t step = -1;
    double date_answer_s = 0.0;
    double posted_s = 0.0; // when the pending operation began
    double receive_posted_s = 0.0;
    double send_done_s = 0.0;
    double arrival_s = 0.0;
    double receive_overhead_s = 0.0;
    double progress_s = 0.0; // when the rank last was inside the library
    double left_s = 0.0;     // when it last was there for more than a probe
    // When it began to ask without a pause for the message that a probe has found.
    double found_s = net::EventQueue::never;
    Wait wait; // of the pending operation
    double received_bytes = 0.0;
    std::uint64_t noise_index = 0;
    rng::Stream noise; // of its messages
    Shares shares_s{};
};

struct alignas(128) Message { // one pair of cache lines
    Rank from = 0;
    Rank to = 0;
    std::uint32_t tag = 0;
    std::uint32_t next = no_message; // of the same receiver's unexpected ones
    bool local = false;              // shares no link: its arrival follows from its start
    models::LinkClass link_class = models::LinkClass::remote;
    bool matched = false;
    bool started = false;
    bool arrival_known = false;
    bool sender_waits = false;
    models::Protocol protocol = models::Protocol::eager;
    double bytes = 0.0;
    const models::Segment* segment = nullptr;
    std::uint32_t send_request = no_request; // of its sender that ends with the transfer
    std::uint32_t receive_request = no_request;
    std::uint32_t nth = 0; // of those of its sender that requests receive
    double ready_s = 0.0;  // the sender has paid its overhead
    double start_s = 0.0;  // of the transfer
    double noise_factor = 1.0;
    double extra_s = 0.0;        // of the transfer, on top of its segment
    double load_latency_s = 0.0; // what cores that compute when the transfer begins add, and to the time of a byte
    double load_byte_s = 0.0;
    double arrival_s = 0.0; // valid when known
};

} // namespace lepaute::mpi
