#pragma once
// The rounds of a pivot exchange on a process column that has several processes on a node: they send over one link, and
// who is ahead sends its message of the next round while others still wait for theirs of this one.

#include "apps/hpl/shared_link.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <utility>
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

/// All messages are eager. Processes are those of a power of two; in round r, process d exchanges with d ^ 2^r.
class PivotRounds {
public:
    /// node_of: of each process
    explicit PivotRounds(std::span<const std::uint32_t> node_of) : turns_(node_of.size()) {
        std::vector<std::uint32_t> count;
        std::vector<std::uint32_t> nodes;
        for (const std::uint32_t node : node_of) {
            const auto found = std::ranges::find(nodes, node);
            link_of_.push_back(static_cast<std::uint32_t>(found - nodes.begin()));
            if (found == nodes.end()) {
                nodes.push_back(node);
                count.push_back(0);
            }
            most_on_node_ = std::max(most_on_node_, ++count[link_of_.back()]);
        }
        links_.resize(nodes.size());
        ends_s_.resize(nodes.size());
    }

    /// Can messages of the exchange slow each other? per_flow: of any of them, relative to its time alone; others:
    /// flows that are on its link besides.
    [[nodiscard]] bool can_meet(double per_flow, double others) const noexcept {
        return links_.size() > 1 && most_on_node_ > 1 && per_flow * (most_on_node_ + others) > 1.0;
    }

    /// One exchange. rounds: by round and process. leaving, reaching: other flows on the links of each process's node.
    /// clock_s(process): a reference to its clock, which moves; done(process, round, wait) is told of each round.
    template <typename ClockOf, typename Done>
    void run(std::span<const PivotRound> rounds, std::span<const double> leaving, std::span<const double> reaching,
             ClockOf clock_s, Done done) {
        const auto processes = static_cast<std::uint32_t>(link_of_.size());
        const auto count = static_cast<std::uint32_t>(rounds.size() / processes);
        clear(rounds, leaving, reaching);
        const auto begin = [&](std::uint32_t process, std::uint32_t round) {
            Turn& turn = turns_[process];
            turn = {.round = round, .start_s = clock_s(process)};
            if (round < count) {
                turn.ready_s = turn.start_s + rounds[round * processes + process].send_s;
                starts_.emplace_back(turn.ready_s, process);
                std::ranges::push_heap(starts_, std::greater<>{});
            }
        };
        /// Ends the round of a process that has sent, where its message is known to come.
        const auto try_to_end = [&](std::uint32_t process) {
            const Turn turn = turns_[process];
            const std::uint32_t at = turn.round * processes + process;
            if (!turn.has_sent || coming_[at].date_s < 0.0) {
                return;
            }
            const double end_s = std::max(turn.ready_s, coming_[at].date_s);
            clock_s(process) = end_s + rounds[at].receive_s;
            done(process, turn.round,
                 PivotWait{turn.start_s, turn.ready_s, coming_[at].sent_s, end_s,
                           coming_[at].date_s - coming_[at].sent_s - rounds[at].latency_s - rounds[at].alone_s});
            begin(process, turn.round + 1);
        };
        const auto arrive = [&](std::uint32_t at, double date_s) {
            coming_[at].date_s = date_s;
            if (turns_[at % processes].round == at / processes) {
                try_to_end(at % processes);
            }
        };
        for (std::uint32_t process = 0; process < processes; ++process) {
            begin(process, 0);
        }
        while (true) {
            const double start_s = starts_.empty() ? std::numeric_limits<double>::infinity() : starts_.front().first;
            std::size_t next = links_.size();
            double date_s = start_s;
            for (std::size_t i = 0; i < links_.size(); ++i) {
                if (ends_s_[i] < date_s) {
                    date_s = ends_s_[i];
                    next = i;
                }
            }
            if (next == links_.size()) {
                if (starts_.empty()) {
                    break;
                }
                const std::uint32_t process = take_start();
                Turn& turn = turns_[process];
                turn.has_sent = true;
                const std::uint32_t to = process ^ (1U << turn.round);
                const std::uint32_t at = turn.round * processes + to;
                coming_[at].sent_s = turn.ready_s;
                if (link_of_[process] == link_of_[to]) {
                    arrive(at, turn.ready_s + rounds[at].latency_s + rounds[at].alone_s);
                } else {
                    SharedLink& link = links_[link_of_[process]];
                    link.begin(turn.ready_s, rounds[at].alone_s, at);
                    ends_s_[link_of_[process]] = link.next_end_s();
                }
                try_to_end(process);
            } else {
                const std::uint32_t at = links_[next].end_next();
                ends_s_[next] = links_[next].next_end_s();
                arrive(at, date_s + rounds[at].latency_s);
            }
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

    void clear(std::span<const PivotRound> rounds, std::span<const double> leaving, std::span<const double> reaching) {
        const auto processes = static_cast<std::uint32_t>(link_of_.size());
        coming_.assign(rounds.size(), {});
        others_.assign(links_.size(), 0.0);
        double per_flow = 1.0; // the same for all messages that leave a node, up to their sizes' segments
        for (std::uint32_t at = 0; at < rounds.size(); ++at) {
            const std::uint32_t to = at % processes;
            const std::uint32_t from = to ^ (1U << (at / processes));
            if (link_of_[from] != link_of_[to]) {
                others_[link_of_[from]] = std::max({others_[link_of_[from]], leaving[from], reaching[to]});
                per_flow = rounds[at].per_flow_s / rounds[at].alone_s;
            }
        }
        for (std::size_t i = 0; i < links_.size(); ++i) {
            links_[i].clear(per_flow, others_[i]);
            ends_s_[i] = std::numeric_limits<double>::infinity();
        }
    }

    std::uint32_t take_start() {
        const std::uint32_t process = starts_.front().second;
        std::ranges::pop_heap(starts_, std::greater<>{});
        starts_.pop_back();
        return process;
    }

    std::uint32_t most_on_node_ = 0;
    std::vector<std::uint32_t> link_of_; // of each process: that of its node
    std::vector<SharedLink> links_;
    std::vector<double> ends_s_; // of the next message on each link
    std::vector<double> others_;
    std::vector<Turn> turns_;
    std::vector<Coming> coming_;                           // by round and receiver
    std::vector<std::pair<double, std::uint32_t>> starts_; // (date, process) of sends, the first in front
};

} // namespace lepaute::hpl
