#pragma once
// Ranks that compute and exchange messages in simulated time.
//
// Each rank is a coroutine with a local clock. Computing only adds to that clock. A rank enters the event queue when it
// posts an operation; events are handled in order of date, ties in the order in which they were queued, so that a
// simulation is the same on every machine. A transfer that shares no link with others gets its arrival date at once;
// one that does gets it from net::Flows.

#include "models/network_model.hpp"
#include "mpi/task.hpp"
#include "net/flows.hpp"

#include <coroutine>
#include <cstdint>
#include <deque>
#include <functional>
#include <queue>
#include <string>
#include <vector>

namespace lepaute::mpi {

using Rank = std::uint32_t;

struct Statistics {
    std::uint64_t messages = 0;
    double bytes = 0.0;
    double waiting_s = 0.0; // over all ranks: time inside communication calls
};

class Engine {
public:
    /// node_of_rank: the node each rank sits on. seed: of the network noise.
    Engine(const models::Network& network, std::vector<std::uint32_t> node_of_rank, std::uint32_t node_count,
           std::uint64_t seed, bool with_noise);

    [[nodiscard]] std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(ranks_.size()); }
    [[nodiscard]] double clock(Rank rank) const noexcept { return ranks_[rank].clock_s; }
    void set_clock(Rank rank, double date_s) noexcept { ranks_[rank].clock_s = date_s; }
    void compute(Rank rank, double seconds) noexcept { ranks_[rank].clock_s += seconds; }
    [[nodiscard]] Statistics& statistics() noexcept { return statistics_; }
    [[nodiscard]] std::size_t state_bytes() const noexcept;
    [[nodiscard]] const models::Network& network() const noexcept { return network_; }
    [[nodiscard]] const models::NetworkClass& class_between(Rank a, Rank b) const noexcept {
        return ranks_[a].node == ranks_[b].node ? network_.loopback : network_.remote;
    }
    [[nodiscard]] const models::NetworkClass& noncontiguous_class_between(Rank a, Rank b) const noexcept {
        return ranks_[a].node == ranks_[b].node ? network_.loopback_noncontiguous : network_.remote_noncontiguous;
    }

    /// Runs one program on all ranks until all have ended; returns the latest clock.
    /// Throws std::runtime_error naming who waits for whom when they wait in vain.
    double run(const std::function<Task(Rank)>& program);

    // ---- operations, each awaited by the rank that it names -------------------------------------------------------
    struct Operation {
        enum class Kind : std::uint8_t { none, send, receive, exchange, probe, await_message, join };
        Kind kind = Kind::none;
        Rank send_to = 0;
        Rank receive_from = 0;
        std::uint32_t tag = 0;
        double send_bytes = 0.0;
        bool noncontiguous = false; // the message is a derived datatype with gaps
    };
    struct Awaiter {
        Engine& engine;
        Rank rank = 0;
        Operation operation;
        static bool await_ready() noexcept { return false; }
        void await_suspend(std::coroutine_handle<> caller) { engine.post(rank, operation, caller); }
        [[nodiscard]] bool await_resume() const noexcept { return engine.ranks_[rank].answer; }
    };
    /// MPI_Send of `bytes` bytes.
    Awaiter send(Rank rank, Rank to, std::uint32_t tag, double bytes) {
        return {*this, rank, {Operation::Kind::send, to, 0, tag, bytes, false}};
    }
    /// MPI_Send of `bytes` bytes in a derived datatype with gaps, such as columns of a matrix.
    Awaiter send_noncontiguous(Rank rank, Rank to, std::uint32_t tag, double bytes) {
        return {*this, rank, {Operation::Kind::send, to, 0, tag, bytes, true}};
    }
    /// MPI_Recv; the size is the sender's.
    Awaiter receive(Rank rank, Rank from, std::uint32_t tag) {
        return {*this, rank, {Operation::Kind::receive, 0, from, tag, 0.0, false}};
    }
    /// MPI_Irecv, MPI_Send, MPI_Wait with one partner.
    Awaiter exchange(Rank rank, Rank partner, std::uint32_t tag, double bytes) {
        return {*this, rank, {Operation::Kind::exchange, partner, partner, tag, bytes, false}};
    }
    /// MPI_Iprobe: true when the message is there.
    Awaiter probe(Rank rank, Rank from, std::uint32_t tag) {
        return {*this, rank, {Operation::Kind::probe, 0, from, tag, 0.0, false}};
    }
    /// Polling with MPI_Iprobe until the message is there.
    Awaiter await_message(Rank rank, Rank from, std::uint32_t tag) {
        return {*this, rank, {Operation::Kind::await_message, 0, from, tag, 0.0, false}};
    }

    /// Meeting of `count` ranks: the last one to come calls `meet`, which may set the clocks of all; then all go on.
    struct Meeting {
        std::uint32_t count = 0;
        std::vector<Rank> present;
        std::function<void()> meet;
    };
    struct JoinAwaiter {
        Engine& engine;
        Rank rank;
        Meeting& meeting;
        static bool await_ready() noexcept { return false; }
        void await_suspend(std::coroutine_handle<> caller) { engine.join(rank, meeting, caller); }
        static void await_resume() noexcept {}
    };
    JoinAwaiter join(Rank rank, Meeting& meeting) { return {*this, rank, meeting}; }

private:
    static constexpr std::uint32_t none = 0xFFFFFFFFU;

    struct RankState {
        double clock_s = 0.0;
        double posted_s = 0.0; // when the pending operation was posted
        std::coroutine_handle<> handle;
        Operation operation;
        std::uint32_t node = 0;
        bool answer = false;
        bool send_pending = false;
        bool receive_pending = false;
        bool awaiting = false;          // polls, at this date of the simulation, for a message that is not there
        bool receive_unmatched = false; // no message has been found for the pending receive yet
        double send_done_s = 0.0;
        double arrival_s = 0.0;
        double receive_overhead_s = 0.0;
        double progress_s = 0.0;               // when the rank last was inside the library
        std::vector<std::uint32_t> unexpected; // messages sent to this rank and not yet matched, in order of posting
    };
    struct Message {
        Rank from = 0;
        Rank to = 0;
        std::uint32_t tag = 0;
        double bytes = 0.0;
        const models::Segment* segment = nullptr;
        double ready_s = 0.0; // the sender has paid its overhead
        double matched_s = 0.0;
        double arrival_s = 0.0; // valid when arrived
        bool matched = false;
        bool started = false;
        bool arrival_known = false;
    };
    struct Event {
        double date_s;
        std::uint64_t sequence;
        enum class Kind : std::uint8_t { post, flow_start } kind;
        std::uint32_t subject;
        bool operator>(const Event& other) const noexcept {
            return date_s != other.date_s ? date_s > other.date_s : sequence > other.sequence;
        }
    };

    void post(Rank rank, const Operation& operation, std::coroutine_handle<> caller);
    void join(Rank rank, Meeting& meeting, std::coroutine_handle<> caller);
    void handle_post(Rank rank);
    void post_send(Rank rank, double date_s);
    void post_receive(Rank rank, double date_s);
    void match(std::uint32_t id, double date_s);
    void start_transfer(std::uint32_t id, double date_s);
    void start_flow(std::uint32_t id, double date_s);
    void arrive(std::uint32_t id, double date_s);
    void finish_if_complete(Rank rank);
    void wake_prober(std::uint32_t id); // if its receiver polls for it and can see it
    [[nodiscard]] double probe_visible_s(const Message& message) const noexcept; // infinity while unknown
    [[nodiscard]] std::uint32_t find_unexpected(Rank rank, Rank from, std::uint32_t tag) const noexcept;
    std::uint32_t new_message();
    void push(double date_s, Event::Kind kind, std::uint32_t subject);
    void resume(Rank rank, double date_s);
    [[nodiscard]] std::string who_waits_for_whom(const std::vector<Task>& tasks) const;

    models::Network network_;
    std::vector<RankState> ranks_;
    std::deque<Message> messages_;
    std::vector<std::uint32_t> free_messages_;
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
    net::Flows flows_;
    Statistics statistics_;
    std::uint64_t sequence_ = 0;
    std::uint64_t seed_;
    std::uint64_t noise_index_ = 0;
    std::uint32_t node_count_;
    bool with_noise_;
    std::vector<Rank> ready_; // ranks to be resumed before the next event
};

} // namespace lepaute::mpi
