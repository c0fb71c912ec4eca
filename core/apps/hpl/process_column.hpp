#pragma once
// The ranks of a process column while they factor a panel: local clocks that kernels and the pivot exchange of each
// column (HPL_pdmxswp) move, as a recurrence of sums and maxima. Its messages share the links of their nodes with the
// flows that are there when the exchange begins, and take from these what they carry.

#include "apps/hpl/simulation.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

namespace lepaute::hpl {

struct Program::ProcessColumn {
    using Kernel = hpl::Kernel;
    using Protocol = models::Protocol;
    using Rank = mpi::Rank;
    using Task = mpi::Task;
    static constexpr std::uint32_t pivot_tag = 0x30000000U;

    Program& program;
    const Panel& panel;
    std::uint32_t column; // process column
    Rank driver;          // the rank that does the work for all

    /// A process of the column, and its clock while the recurrence runs.
    struct Process {
        Rank rank = 0;
        std::int64_t rows = 0; // left to it; the owner's shrink as its rows are factored
        std::int64_t leading_dimension = 0;
        std::int64_t matrix_rows = 0; // of its part of the trailing matrix, before the first column of the panel
        double clock_s = 0.0;
        mpi::Shares shares_s{};
        bool traced = false;

        void spend(mpi::Share share, double seconds) noexcept { mpi::part(shares_s, share) += seconds; }
    };
    /// What a message costs between two processes, and how it is sent.
    struct Delivery {
        double send_s;
        double latency_s;
        double cables_s;
        double alone_s;
        double receive_s;
        double bytes;
        Protocol protocol;
    };
    /// One process's side of one round of the exchange: what it pays for its send, and what it receives.
    struct PivotRound {
        double send_s;
        double latency_s;
        double alone_s;    // when it shares no link
        double per_flow_s; // for each flow on its most loaded link; 0 inside a node
        double receive_s;
        double sent_bytes;
        double received_bytes;
        std::uint32_t from_node;
        std::uint32_t to_node;
    };
    std::vector<Process> processes; // by distance from the owner row

    std::vector<PivotRound> rounds;   // log2(power) x power
    std::vector<Delivery> deliveries; // what each process sends in each round
    double per_flow = 0.0;            // of the messages that cross, relative to their time alone, at most
    std::vector<double> ready_s;
    std::vector<double> transfer_s;      // of what each process receives in a round
    std::vector<std::uint32_t> order;    // of those that receive, by date
    std::vector<double> leaving_until_s; // by node: messages of a round that leave it
    std::vector<double> reaching_until_s;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> ways; // between nodes, of the messages that cross
    std::vector<std::uint32_t> nodes;                          // that these leave, and reach
    bool can_meet = false;                                     // can they slow each other?
    bool any_crosses = false;
    bool any_traced = false;
    bool all_eager = true;
    mpi::Statistics combined; // of one pivot exchange

    ProcessColumn(Program& of, const Panel& factored, std::uint32_t process_column, Rank driving)
        : program(of), panel(factored), column(process_column), driver(driving), processes(of.parameters_.p),
          ready_s(processes.size()), transfer_s(processes.size()) {
        const Shape& shape = program.shape_at(panel.start);
        for (std::uint32_t distance = 0; distance < p(); ++distance) {
            const std::uint32_t row = (panel.owner_row + distance) % p();
            Process& process = processes[distance];
            process.rank = program.rank_at(row, column);
            process.rows = shape.rows[row];
            process.leading_dimension = program.leading_dimensions_[row];
            process.matrix_rows = process.rows;
            process.clock_s = program.engine_.clock(process.rank);
            process.traced = program.engine_.traced(process.rank);
            any_traced = any_traced || process.traced;
        }
        const std::uint32_t power = std::bit_floor(p());
        for (std::uint32_t bit = 1; bit < power; bit <<= 1U) {
            for (std::uint32_t distance = 0; distance < power; ++distance) {
                const Process& partner = processes[distance ^ bit];
                // Those below 2 * bit exchange the current row as well: who has it sends two rows.
                const double sent = distance < bit ? two_rows() : one_row();
                const double received = (distance ^ bit) < bit ? two_rows() : one_row();
                const models::NetworkClass& network =
                    program.engine_.class_between(processes[distance].rank, partner.rank);
                const models::Segment& in = network.at(received);
                const bool crosses = !program.engine_.same_node(processes[distance].rank, partner.rank);
                all_eager = all_eager && in.protocol == Protocol::eager;
                const mpi::Engine::TransferTimes times =
                    program.engine_.transfer_times(in, received, partner.rank, processes[distance].rank);
                const double cables_s = program.engine_.cable_latency_s(partner.rank, processes[distance].rank, in);
                rounds.push_back({network.at(sent).send.of(sent), in.latency_s + cables_s, times.alone_s,
                                  crosses ? times.per_flow_s : 0.0, in.receive.of(received), sent, received,
                                  program.engine_.node_of(partner.rank),
                                  program.engine_.node_of(processes[distance].rank)});
                deliveries.push_back(delivery(processes[distance], partner, sent));
                any_crosses = any_crosses || crosses;
                if (crosses) {
                    ways.emplace_back(program.engine_.node_of(processes[distance].rank),
                                      program.engine_.node_of(partner.rank));
                }
                per_flow = std::max(per_flow, crosses ? times.per_flow_s / times.alone_s : 0.0);
                count(combined, processes[distance], partner, sent);
            }
        }
        note_ways();
    }

    [[nodiscard]] std::uint32_t p() const noexcept { return program.parameters_.p; }
    [[nodiscard]] static bool owner(std::uint32_t distance) noexcept { return distance == 0; }
    [[nodiscard]] double one_row() const noexcept { return 8.0 * static_cast<double>(panel.width + 4); }
    [[nodiscard]] double two_rows() const noexcept { return 8.0 * static_cast<double>(2 * panel.width + 4); }
    [[nodiscard]] double bare_row() const noexcept { return 8.0 * static_cast<double>(panel.width); }

    /// `kernel` on every process, of the size that `size_of(process, distance)` says; none for an empty one. Most
    /// processes have the same size: what it costs is evaluated once.
    template <typename SizeOf>
    void on_all(Kernel kernel, SizeOf size_of) {
        on_first(p(), kernel, size_of);
    }
    /// On the owner alone.
    void on_owner(Kernel kernel, const models::Size& size) {
        on_first(1, kernel, [&](const Process&, std::uint32_t) { return size; });
    }
    /// On the first `count` processes, the owner first.
    template <typename SizeOf>
    void on_first(std::uint32_t count, Kernel kernel, SizeOf size_of) {
        models::MachineDay& day = program.day_;
        const bool modelled = day.models(kernel);
        const bool one_model = day.one_model(kernel);
        models::KernelCost cost;
        double shared_factor = 1.0; // of all processes: the error outside of what the model was fitted to
        models::Size cost_size{-1.0, -1.0, -1.0};
        std::uint64_t calls = 0;
        double total_s = 0.0;
        for (std::uint32_t distance = 0; distance < count; ++distance) {
            Process& process = processes[distance];
            const models::Size size = size_of(process, distance);
            if (size.n <= 0.0) {
                continue;
            }
            if (!one_model || size.m != cost_size.m || size.n != cost_size.n || size.k != cost_size.k) {
                day.note_calls(kernel, cost, cost_size, calls, total_s); // none at first
                calls = 0;
                total_s = 0.0;
                cost_size = size;
                cost = day.shared_cost(process.rank, kernel, size);
                shared_factor = cost.factor;
            }
            if (modelled) {
                cost.factor = shared_factor * day.factor(process.rank, kernel);
            }
            ++calls;
            if (cost.is_free() && !any_traced) {
                day.pass_draws(process.rank, modelled ? 1 : 0);
                continue;
            }
            const double seconds = modelled ? day.draw_s(process.rank, cost) : 0.0;
            if (process.traced) {
                mpi::trace_kernel(program.engine_, process.rank, kernel, size, process.clock_s, seconds);
            }
            total_s += seconds;
            process.clock_s += seconds;
            process.spend(mpi::Share::compute, seconds);
        }
        day.note_calls(kernel, cost, cost_size, calls, total_s);
    }
    static models::Size matrix(std::int64_t m, std::int64_t n, std::int64_t k = 0) {
        return m > 0 ? models::Size{static_cast<double>(m), static_cast<double>(n), static_cast<double>(k)}
                     : models::Size{};
    }
    static models::Size length(std::int64_t n, std::int64_t k = 0) {
        return {0.0, static_cast<double>(n), static_cast<double>(k)};
    }

    /// Of `bytes` bytes.
    [[nodiscard]] Delivery delivery(const Process& from, const Process& to, double bytes) const {
        const models::Segment& segment = program.engine_.class_between(from.rank, to.rank).at(bytes);
        return {segment.send.of(bytes),
                segment.latency_s,
                program.engine_.cable_latency_s(from.rank, to.rank, segment),
                bytes / segment.bandwidth_Bps,
                segment.receive.of(bytes),
                bytes,
                segment.protocol};
    }

    /// Two ranks send to each other; both clocks move to when their own message has gone and the other's is in.
    void exchange(Process& a, const Delivery& from_a, Process& b, const Delivery& from_b) {
        const double start_a = a.clock_s;
        const double start_b = b.clock_s;
        const double ready_a = start_a + from_a.send_s;
        const double ready_b = start_b + from_b.send_s;
        const double at_b = arrival_s(from_a, ready_a, start_b); // each posts its receive before it sends
        const double at_a = arrival_s(from_b, ready_b, start_a);
        const double sent_a = from_a.protocol == Protocol::rendezvous ? at_b : ready_a;
        const double sent_b = from_b.protocol == Protocol::rendezvous ? at_a : ready_b;
        const mpi::Wait waited_a = wait(a, ready_a, std::max(sent_a, at_a), ready_b, from_b.receive_s);
        const mpi::Wait waited_b = wait(b, ready_b, std::max(sent_b, at_b), ready_a, from_a.receive_s);
        trace_exchange(a, b, start_a, ready_a, from_a.bytes, from_b.bytes, waited_a);
        trace_exchange(b, a, start_b, ready_b, from_b.bytes, from_a.bytes, waited_b);
        count(program.engine_.statistics(), a, b, from_a.bytes);
        count(program.engine_.statistics(), b, a, from_b.bytes);
    }

    void send(Process& from, Process& to, double bytes) {
        const Delivery message = delivery(from, to, bytes);
        const double start_s = from.clock_s;
        const double posted_s = to.clock_s;
        const double departure_s = start_s + message.send_s;
        const double end_s = arrival_s(message, departure_s, posted_s);
        const mpi::Wait sender =
            wait(from, departure_s, message.protocol == Protocol::rendezvous ? end_s : departure_s, posted_s, 0.0);
        const mpi::Wait receiver = wait(to, posted_s, end_s, departure_s, message.receive_s);
        trace_call(from, mpi::Call::send, to, bytes, start_s, from.clock_s, sender);
        trace_call(to, mpi::Call::receive, from, bytes, posted_s, to.clock_s, receiver);
        count(program.engine_.statistics(), from, to, bytes);
    }

    /// Of a message whose sender is ready, and whose receive is posted, at those dates.
    static double arrival_s(const Delivery& message, double ready, double posted_s) {
        const double begins_s = message.protocol == Protocol::eager ? ready : std::max(ready, posted_s);
        return begins_s + message.latency_s + message.cables_s + message.alone_s;
    }

    /// A message is counted, also in its class of links.
    void count(mpi::Statistics& in, const Process& from, const Process& to, double bytes) const {
        const mpi::Engine& engine = program.engine_;
        ++in.messages;
        in.bytes += bytes;
        engine.count_size(in, engine.link_class_between(from.rank, to.rank), bytes);
    }

    /// The process had paid for its send at `ready`, waits until `end_s`, and pays for its receive; the other side was
    /// ready at `other_s`.
    static mpi::Wait wait(Process& process, double ready, double end_s, double other_s, double receive_s) {
        const mpi::Wait waited = mpi::Wait::until(end_s, ready, other_s, 0.0);
        process.spend(mpi::Share::overhead, std::max(0.0, ready - process.clock_s) + receive_s);
        waited.add_to(process.shares_s);
        process.clock_s = ready + std::max(0.0, end_s - ready) + receive_s;
        return waited;
    }

    void trace_call(const Process& process, mpi::Call call, const Process& peer, double bytes, double from_s,
                    double to_s, const mpi::Wait& waited) const {
        if (process.traced) {
            program.engine_.trace_call(process.rank, call, peer.rank, pivot_tag, from_s, to_s - from_s, bytes, waited);
        }
    }
    void trace_exchange(const Process& process, const Process& peer, double start_s, double ready, double sent_bytes,
                        double received_bytes, const mpi::Wait& waited) const {
        trace_call(process, mpi::Call::irecv, peer, received_bytes, start_s, start_s, {});
        trace_call(process, mpi::Call::send, peer, sent_bytes, start_s, ready, {});
        trace_call(process, mpi::Call::wait, peer, received_bytes, ready, process.clock_s, waited);
    }

    /// When the first message of the exchange sets out.
    [[nodiscard]] double earliest_s() const noexcept {
        double date_s = net::EventQueue::never;
        for (std::uint32_t d = 0; d < std::bit_floor(p()); ++d) {
            date_s = std::min(date_s, processes[d].clock_s + rounds[d].send_s);
        }
        return date_s;
    }
    [[nodiscard]] double latest_s() const noexcept {
        return std::ranges::max_element(processes, {}, &Process::clock_s)->clock_s;
    }

    /// Each way once. Messages meet where several processes of a node send over its link at once.
    void note_ways() {
        std::ranges::sort(ways);
        const auto repeated = std::ranges::unique(ways);
        ways.erase(repeated.begin(), repeated.end());
        std::vector<std::uint32_t> of_processes;
        for (std::uint32_t distance = 0; distance < std::bit_floor(p()); ++distance) {
            of_processes.push_back(program.engine_.node_of(processes[distance].rank));
        }
        const auto senders = [&](std::uint32_t node) {
            return static_cast<double>(std::ranges::count(of_processes, node));
        };
        can_meet = std::ranges::any_of(ways, [&](const auto& way) { return per_flow * senders(way.first) > 1.0; });
        for (const auto& way : ways) { // sorted by the first; who sends to another node gets from it
            if (nodes.empty() || nodes.back() != way.first) {
                nodes.push_back(way.first);
            }
        }
        leaving_until_s.resize(nodes.size());
        reaching_until_s.resize(nodes.size());
        order.resize(of_processes.size());
        std::iota(order.begin(), order.end(), 0U);
    }
    [[nodiscard]] std::size_t place_of(std::uint32_t node) const noexcept {
        return static_cast<std::size_t>(std::ranges::lower_bound(nodes, node) - nodes.begin());
    }

    /// Do messages of the exchange that begins now meet any on their links?
    [[nodiscard]] bool meets_others() const {
        const mpi::Engine& engine = program.engine_;
        if (can_meet || engine.plain_switch()) {
            return can_meet || std::ranges::any_of(nodes, [&](std::uint32_t node) {
                       return engine.flows_leaving(node) + engine.flows_reaching(node) > 0;
                   });
        }
        return std::ranges::any_of(ways,
                                   [&](const auto& way) { return engine.flows_on_way(way.first, way.second) > 0.0; });
    }

    /// HPL_pdmxswp and HPL_dlocswp: finds the pivot row of a column over the process column, and swaps it in.
    Task pivot() {
        const std::int64_t width = panel.width;
        on_all(Kernel::dcopy, [&](const Process& process, std::uint32_t) {
            return process.rows > 0 ? length(width, process.leading_dimension) : models::Size{};
        });
        on_owner(Kernel::dcopy, length(width, processes.front().leading_dimension)); // the current row
        if (p() > 1) {
            fold();
            if (any_crosses && all_eager) {
                co_await program.engine_.until(driver, earliest_s());
            }
            exchange_rounds();
            count_messages();
            unfold();
        }
        on_all(Kernel::dlocswp,
               [&](const Process& process, std::uint32_t) { return length(width, process.matrix_rows); });
    }

    /// The bidirectional exchange, distances relative to the owner; ranks beyond the power of two fold in and out.
    void fold() {
        const std::uint32_t power = std::bit_floor(p());
        for (std::uint32_t d = power; d < p(); ++d) {
            if (d == power) {
                exchange(processes[d], delivery(processes[d], processes[0], one_row()), processes[0],
                         delivery(processes[0], processes[d], bare_row()));
            } else {
                send(processes[d], processes[d - power], one_row());
            }
        }
    }

    void exchange_rounds() {
        const std::uint32_t power = std::bit_floor(p());
        const bool shares_links = any_crosses && all_eager && meets_others();
        std::size_t first = 0; // of the round
        for (std::uint32_t bit = 1; bit < power; bit <<= 1U, first += power) {
            if (all_eager) {
                exchange_eagerly(bit, std::span(rounds).subspan(first, power), shares_links);
                continue;
            }
            const Delivery* sent = deliveries.data() + first;
            for (std::uint32_t d = 0; d < power; ++d) {
                if (d < (d ^ bit)) {
                    exchange(processes[d], sent[d], processes[d ^ bit], sent[d ^ bit]);
                }
            }
        }
        if (shares_links) {
            program.engine_.settle_flows();
        }
    }

    void count_messages() {
        if (all_eager) {
            mpi::Statistics& statistics = program.engine_.statistics();
            statistics.messages += combined.messages;
            statistics.bytes += combined.bytes;
            for (std::size_t i = 0; program.engine_.counts_sizes() && i < models::link_class_count; ++i) {
                statistics.use[i].add(combined.use[i]);
            }
        }
    }

    /// Beyond the power of two, the current row is spread by a binomial tree; then the result comes from the others.
    void unfold() {
        const std::uint32_t power = std::bit_floor(p());
        const std::uint32_t beyond = p() - power;
        for (std::uint32_t bit = beyond > 1 ? std::bit_floor(beyond - 1) : 0; bit > 0; bit >>= 1U) {
            for (std::uint32_t d = 0; d < beyond; d += 2 * bit) {
                if (d + bit < beyond) {
                    send(processes[power + d], processes[power + d + bit], bare_row());
                }
            }
        }
        for (std::uint32_t d = power; d < p(); ++d) {
            send(processes[d - power], processes[d], one_row());
        }
    }

    /// One round of exchanges whose messages are all eager: what exchange() does, without its cases.
    void exchange_eagerly(std::uint32_t bit, std::span<const PivotRound> round, bool shares_links) {
        for (std::uint32_t d = 0; d < round.size(); ++d) {
            ready_s[d] = processes[d].clock_s + round[d].send_s;
            transfer_s[d] = round[d].alone_s;
        }
        if (shares_links) {
            share_links(bit, round);
        }
        for (std::uint32_t d = 0; d < round.size(); ++d) {
            Process& process = processes[d];
            const PivotRound& own = round[d];
            const double start_s = process.clock_s;
            const double other_s = ready_s[d ^ bit];
            const double end_s = std::max(ready_s[d], other_s + own.latency_s + transfer_s[d]);
            const mpi::Wait waited = mpi::Wait::until(end_s, ready_s[d], other_s, transfer_s[d] - own.alone_s);
            process.clock_s = end_s + own.receive_s;
            process.spend(mpi::Share::overhead, own.send_s + own.receive_s);
            waited.add_to(process.shares_s);
            trace_exchange(process, processes[d ^ bit], start_s, ready_s[d], own.sent_bytes, own.received_bytes,
                           waited);
        }
    }

    /// The transfers of a round between nodes: each has its share of the links beside the flows that are there when the
    /// exchange begins, which lose that, after those of the round that set out before it.
    void share_links(std::uint32_t bit, std::span<const PivotRound> round) {
        mpi::Engine& engine = program.engine_;
        if (can_meet) {
            std::ranges::sort(order, {}, [&](std::uint32_t d) { return std::pair(ready_s[d ^ bit], d); });
            std::ranges::fill(leaving_until_s, 0.0);
            std::ranges::fill(reaching_until_s, 0.0);
        }
        for (const std::uint32_t d : order) {
            const PivotRound& message = round[d];
            if (message.from_node == message.to_node) {
                continue;
            }
            const double flows = engine.flows_on_way(message.from_node, message.to_node);
            const double beside_s = (1.0 + flows) * message.per_flow_s;
            double wait_s = 0.0;
            if (can_meet) {
                const double start_s = ready_s[d ^ bit];
                double& leaving_s = leaving_until_s[place_of(message.from_node)];
                double& reaching_s = reaching_until_s[place_of(message.to_node)];
                wait_s = std::max({0.0, leaving_s - start_s, reaching_s - start_s});
                leaving_s = std::max(leaving_s, start_s) + message.per_flow_s;
                reaching_s = std::max(reaching_s, start_s) + message.per_flow_s;
            }
            transfer_s[d] = std::max(message.alone_s, wait_s + beside_s);
            if (flows > 0.0) {
                engine.take_from_flows(message.from_node, message.to_node, std::max(message.alone_s, beside_s));
            }
        }
    }
};

} // namespace lepaute::hpl
