#pragma once
// The rounds of a pivot exchange whose messages share links: who is ahead sends its message of the next round while
// others still wait for theirs of this one. Says what sets out when; whoever runs it says when that has arrived.

#include "models/network_model.hpp"
#include "net/event_queue.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace lepaute::hpl {

/// One process's side of one round of a pivot exchange.
struct PivotRound {
    double send_s; // overhead of what it sends
    double latency_s;
    double alone_s;    // of what it receives, when it shares no link
    double per_flow_s; // for each flow on its most loaded link; 0 inside a node
    double receive_s;  // overhead of what it receives
    double sent_bytes;
    double received_bytes;
    const models::Segment* segment = nullptr; // of what it receives
};

/// What a process did in a round: it began, had paid for its send at ready_s (its partner at other_s), and had its
/// message at end_s, contention_s of it for sharing a link.
struct PivotWait {
    double start_s;
    double ready_s;
    double other_s;
    double end_s;
    double contention_s;
};

/// All messages are eager. Processes are those of a power of two; in round r, process d exchanges with d ^ 2^r. The
/// message of a round that a process receives has the number round * processes + process.
class PivotRounds {
public:
    static constexpr double never = net::EventQueue::never;

    /// A new exchange; `rounds` by round and process, and outlives it. clock_s: of each process.
    void begin(std::span<const PivotRound> rounds, std::span<const double> clock_s) {
        rounds_ = rounds;
        clock_s_.assign(clock_s.begin(), clock_s.end());
        if (turns_.size() != clock_s.size()) { // else nobody has one: the exchange before is over
            turns_.resize(clock_s.size());
            starts_ = net::EventQueue(processes());
        }
        coming_.assign(rounds.size(), {});
        for (std::uint32_t process = 0; process < processes(); ++process) {
            enter(process, 0);
        }
        left_ = rounds.size();
    }
    [[nodiscard]] bool is_over() const noexcept { return left_ == 0; }
    [[nodiscard]] double clock_s(std::uint32_t process) const noexcept { return clock_s_[process]; }
    [[nodiscard]] std::uint32_t receiver(std::uint32_t message) const noexcept { return message % processes(); }
    [[nodiscard]] std::uint32_t sender(std::uint32_t message) const noexcept {
        return receiver(message) ^ (1U << (message / processes()));
    }
    /// When the next message sets out, unless one arrives before; never where all wait.
    [[nodiscard]] double next_start_s() const noexcept { return starts_.next_date_s(); }

    /// That message sets out: its number. done(process, round, wait) is told of each round that ends.
    template <typename Done>
    std::uint32_t start_next(Done done) {
        const std::uint32_t process = starts_.next_source();
        Turn& turn = turns_[process];
        turn.has_sent = true;
        const std::uint32_t message = turn.round * processes() + (process ^ (1U << turn.round));
        coming_[message].sent_s = turn.ready_s;
        try_to_end(process, done);
        if (turn.has_sent) { // else its next date has taken the place of this one
            starts_.set(process, never);
        }
        return message;
    }

    /// A message has arrived.
    template <typename Done>
    void arrive(std::uint32_t message, double date_s, Done done) {
        coming_[message].date_s = date_s;
        if (turns_[receiver(message)].round == message / processes()) {
            try_to_end(receiver(message), done);
        }
    }

private:
    struct Turn {
        std::uint32_t round = 0;
        bool has_sent = false;
        double start_s = 0.0;
        double ready_s = 0.0;
    };
    struct Coming {
        double sent_s = 0.0;
        double date_s = -1.0; // negative: not known yet
    };

    [[nodiscard]] std::uint32_t processes() const noexcept { return static_cast<std::uint32_t>(turns_.size()); }

    void enter(std::uint32_t process, std::uint32_t round) {
        Turn& turn = turns_[process];
        turn = {.round = round, .start_s = clock_s_[process]};
        const std::size_t at = std::size_t{round} * processes() + process;
        turn.ready_s = at < rounds_.size() ? turn.start_s + rounds_[at].send_s : never;
        starts_.set(process, turn.ready_s);
    }

    /// Ends the round of a process that has sent, where its message is known to come.
    template <typename Done>
    void try_to_end(std::uint32_t process, Done done) {
        const Turn turn = turns_[process];
        const std::uint32_t at = turn.round * processes() + process;
        if (!turn.has_sent || coming_[at].date_s < 0.0) {
            return;
        }
        const double end_s = std::max(turn.ready_s, coming_[at].date_s);
        clock_s_[process] = end_s + rounds_[at].receive_s;
        --left_;
        done(process, turn.round,
             PivotWait{turn.start_s, turn.ready_s, coming_[at].sent_s, end_s,
                       coming_[at].date_s - coming_[at].sent_s - rounds_[at].latency_s - rounds_[at].alone_s});
        enter(process, turn.round + 1);
    }

    std::span<const PivotRound> rounds_;
    std::size_t left_ = 0;
    std::vector<double> clock_s_;
    std::vector<Turn> turns_;
    std::vector<Coming> coming_; // by number
    net::EventQueue starts_{1};  // when each process sends next
};

} // namespace lepaute::hpl
