#pragma once
// Ranks that compute and exchange messages in simulated time.
//
// Each rank is a coroutine with a local clock. Computing only adds to that clock, and so does everything whose outcome
// is known at once: a receive whose message is on its way with a known arrival, a message between ranks of one node
// that shares no link. A rank enters the event queue only where the order of dates matters: when it posts a message
// that shares links with others, and when it asks whether a message has come that has not been posted yet. Events are
// handled in order of date, ties in the order of ranks, so that a simulation is the same on every machine.

#include "models/network_model.hpp"
#include "mpi/node_load.hpp"
#include "mpi/operation.hpp"
#include "mpi/progress.hpp"
#include "mpi/rank_state.hpp"
#include "mpi/requests.hpp"
#include "mpi/task.hpp"
#include "mpi/trace.hpp"
#include "net/event_queue.hpp"
#include "net/flows.hpp"
#include "net/large_pages.hpp"
#include "net/topology.hpp"

#include <array>
#include <coroutine>
#include <cstdint>
#include <functional>
#include <optional>
#include <queue>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace lepaute::mpi {

using models::LinkClass;

struct Statistics {
    std::uint64_t messages = 0;
    double bytes = 0.0;
    std::array<models::MessageUse, models::link_class_count> use; // by class of links, where the fitted sizes are known
};

/// Ranks that wait for each other; the text names some of them.
class Deadlock : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

class Engine {
public:
    using Kind = Operation::Kind;

    /// node_of_rank: the node each rank sits on. seed: of the network noise.
    Engine(const models::Network& network, const net::Topology& topology, std::vector<std::uint32_t> node_of_rank,
           std::uint64_t seed, bool with_noise);
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    /// Number of ranks, without agents.
    [[nodiscard]] std::uint32_t size() const noexcept {
        return static_cast<std::uint32_t>(ranks_.size() - rank_of_agent_.size());
    }
    [[nodiscard]] double clock(Rank rank) const noexcept { return ranks_[rank].clock_s; }
    /// The date up to which the order of events is settled: nothing that is still to be posted comes before it.
    [[nodiscard]] double now_s() const noexcept { return now_s_; }
    [[nodiscard]] Statistics& statistics() noexcept { return statistics_; }
    [[nodiscard]] std::size_t state_bytes() const noexcept;
    [[nodiscard]] const models::Network& network() const noexcept { return network_; }
    [[nodiscard]] bool same_node(Rank a, Rank b) const noexcept { return ranks_[a].node == ranks_[b].node; }
    [[nodiscard]] std::uint32_t node_of(Rank rank) const noexcept { return ranks_[rank].node; }
    /// Of a message of `bytes` on `segment`, latency apart: seconds alone, and seconds for each flow (itself counted)
    /// that shares the most loaded link of its way.
    struct TransferTimes {
        double alone_s;
        double per_flow_s;
    };
    [[nodiscard]] TransferTimes transfer_times(const models::Segment& segment, double bytes, Rank from, Rank to) const;
    /// What the transfer of a message of `bytes` takes at least, on any links and whatever its noise.
    [[nodiscard]] double least_transfer_s(double bytes) const noexcept;
    /// Is a message of `bytes` eager on any links?
    [[nodiscard]] bool may_be_eager(double bytes) const noexcept;
    /// What the cables between two ranks add to the latency of a segment.
    [[nodiscard]] double cable_latency_s(Rank from, Rank to, const models::Segment& segment) const {
        const double sum_s = topology_.has_latency() ? route_latency_s(ranks_[from].node, ranks_[to].node) : 0.0;
        return segment.cable_latency_factor * sum_s;
    }
    [[nodiscard]] LinkClass link_class_between(Rank a, Rank b, bool noncontiguous = false) const noexcept {
        if (noncontiguous) {
            return same_node(a, b) ? LinkClass::loopback_noncontiguous : LinkClass::remote_noncontiguous;
        }
        return same_node(a, b) ? LinkClass::loopback : LinkClass::remote;
    }
    /// Does the network say which sizes it was fitted in?
    [[nodiscard]] bool counts_sizes() const noexcept { return counts_sizes_; }
    void count_size(Statistics& in, LinkClass which, double bytes) const noexcept;
    [[nodiscard]] const models::NetworkClass& class_between(Rank a, Rank b) const noexcept {
        return same_node(a, b) ? network_.loopback : network_.remote;
    }

    void compute(Rank rank, double seconds) noexcept { spend(rank, Share::compute, seconds); }
    void spend(Rank rank, Share share, double seconds) noexcept {
        RankState& state = ranks_[rank];
        state.clock_s += seconds;
        part(state.shares_s, share) += seconds;
        if (share == Share::compute) {
            load_.computes_until(rank, state.clock_s);
        }
    }
    /// For operations that an application evaluates by itself, as a recurrence: the clock moves to `date_s`, and what
    /// passed is added as `shares`.
    void set_clock(Rank rank, double date_s, const Shares& shares) noexcept {
        RankState& state = ranks_[rank];
        state.clock_s = date_s;
        for (std::size_t i = 0; i < share_count; ++i) {
            state.shares_s[i] += shares[i];
        }
    }
    /// Up to which date MPI_Iprobe sees what has come, when it is called at `clock_s` and the rank last was inside the
    /// library at `progress_s`: it looks when its own time has passed, or (looks_first) before it makes progress.
    [[nodiscard]] double probe_sees_s(double clock_s, double progress_s) const noexcept {
        return network_.iprobe_looks_first ? progress_s : clock_s + network_.iprobe_s;
    }
    /// Would MPI_Iprobe, called now, find nothing for sure? False where only later events tell.
    [[nodiscard]] bool finds_nothing(Rank rank, Rank from, std::uint32_t tag) const noexcept {
        return look(rank, from, tag) == Probed::nothing;
    }
    /// MPI_Iprobe that is known to find nothing; spend_probe() is without its row in the trace.
    void spend_probe(Rank rank) noexcept {
        RankState& state = ranks_[rank];
        state.clock_s += network_.iprobe_s;
        part(state.shares_s, Share::probe) += network_.iprobe_s;
        state.progress_s = state.clock_s;
    }
    void fruitless_probe(Rank rank, Rank from, std::uint32_t tag);
    /// The clock of a rank that computes and probes many times in a row, to be given back with set_times().
    struct Times {
        double clock_s;
        double compute_s; // shares of the rank
        double probe_s;
        double progress_s;
        void compute(double seconds) noexcept {
            clock_s += seconds;
            compute_s += seconds;
        }
        void probe(double seconds) noexcept {
            clock_s += seconds;
            probe_s += seconds;
            progress_s = clock_s;
        }
    };
    [[nodiscard]] Times times(Rank rank) const noexcept {
        const RankState& state = ranks_[rank];
        return {state.clock_s, part(state.shares_s, Share::compute), part(state.shares_s, Share::probe),
                state.progress_s};
    }
    void set_times(Rank rank, const Times& times) noexcept {
        RankState& state = ranks_[rank];
        state.clock_s = times.clock_s;
        part(state.shares_s, Share::compute) = times.compute_s;
        part(state.shares_s, Share::probe) = times.probe_s;
        state.progress_s = times.progress_s;
        load_.computes_until(rank, times.clock_s);
    }
    /// Does the load of nodes slow the messages between them? Then what waits in learn_arrival() says how long it
    /// computes if the message does not come before.
    [[nodiscard]] bool load_matters() const noexcept { return load_.matters(); }
    void computes_until(Rank rank, double date_s) noexcept { load_.computes_until(rank, date_s); }
    [[nodiscard]] const Shares& shares_s(Rank rank) const noexcept { return ranks_[rank].shares_s; }

    [[nodiscard]] Trace& trace() noexcept { return trace_; }
    /// The step that what follows on `rank` belongs to.
    void set_step(Rank rank, std::int32_t step);
    /// The same, of a step that begins: progress counts it.
    void begin_step(Rank rank, std::int32_t step) {
        ++begun_steps_;
        set_step(rank, step);
    }
    [[nodiscard]] std::int32_t step(Rank rank) const noexcept { return ranks_[rank].step; }
    [[nodiscard]] bool traced(Rank rank) const noexcept {
        return rank < size() && trace_.wants(rank, ranks_[rank].step);
    }
    void record(Rank rank, TraceRow row) {
        row.rank = rank;
        row.step = ranks_[rank].step;
        trace_.rows.push_back(row);
    }
    /// A row for a call, where one is asked for.
    void trace_call(Rank rank, Call call, Rank peer, std::uint32_t tag, double start_s, double duration_s,
                    double bytes = 0.0, const Wait& wait = {});

    /// The entry of rank 0 in an array of the application that is touched, and so fetched, with the rank's state.
    void touched_with_ranks(std::span<const std::byte> first) { companions_.push_back(first); }
    /// Tells how far the run has come; null: nobody. It outlives the run.
    void report_to(Progress* progress) noexcept { progress_ = progress; }
    /// In each loop that may be long. Throws std::runtime_error, also at the next look, where the run is cancelled.
    void look();
    /// Runs one program on all ranks until all have ended; returns the latest clock.
    /// Throws Deadlock naming who waits for whom when they wait in vain, and std::runtime_error when it is cancelled.
    double run(const std::function<Task(Rank)>& program);

    template <typename Answer>
    struct Awaiter {
        Engine& engine; // which holds the operation: it would be a part of every frame that awaits it
        Rank rank = 0;
        static bool await_ready() noexcept { return false; }
        bool await_suspend(std::coroutine_handle<> caller) {
            engine.ranks_[rank].handle = caller;
            return engine.post(rank);
        }
        [[nodiscard]] Answer await_resume() const noexcept {
            if constexpr (std::is_same_v<Answer, double>) {
                return engine.ranks_[rank].date_answer_s;
            } else if constexpr (std::is_same_v<Answer, bool>) {
                return engine.ranks_[rank].answer;
            }
        }
    };
    /// Any operation; those below are easier to read.
    template <typename Answer>
    Awaiter<Answer> operation(Rank rank, const Operation& what) {
        ranks_[rank].operation = what;
        return {*this, rank};
    }
    /// MPI_Send, or MPI_Ssend, of `bytes` bytes.
    Awaiter<void> send(Rank rank, Rank to, std::uint32_t tag, double bytes, bool synchronous = false) {
        return operation<void>(
            rank,
            {.kind = Kind::send, .synchronous = synchronous, .send_to = to, .send_tag = tag, .send_bytes = bytes});
    }
    /// MPI_Recv; the size is the sender's.
    Awaiter<void> receive(Rank rank, Rank from, std::uint32_t tag) {
        return operation<void>(rank, {.kind = Kind::receive, .receive_from = from, .receive_tag = tag});
    }
    /// MPI_Irecv, MPI_Send (by_isend: MPI_Isend), MPI_Wait.
    Awaiter<void> send_receive(Rank rank, Rank to, std::uint32_t send_tag, double bytes, Rank from,
                               std::uint32_t receive_tag, bool by_isend = false) {
        return operation<void>(rank, {.kind = Kind::exchange,
                                      .two_calls = by_isend,
                                      .send_to = to,
                                      .receive_from = from,
                                      .send_tag = send_tag,
                                      .receive_tag = receive_tag,
                                      .send_bytes = bytes});
    }
    /// MPI_Iprobe: true when the message is there.
    Awaiter<bool> probe(Rank rank, Rank from, std::uint32_t tag) {
        return operation<bool>(rank, {.kind = Kind::probe, .receive_from = from, .receive_tag = tag});
    }
    /// Polling with MPI_Iprobe until the message is there; with requests MPI_Probe, whose source and tag may be `any`:
    /// then it is for the message that was posted first, as a receive, and requests(rank).probed tells which.
    Awaiter<void> await_message(Rank rank, Rank from, std::uint32_t tag) {
        return operation<void>(rank, {.kind = Kind::await_message, .receive_from = from, .receive_tag = tag});
    }
    /// From which date on MPI_Iprobe finds the message. No time passes on the rank; it goes on when the date is known,
    /// and may then do at once what it did until that date.
    Awaiter<double> learn_arrival(Rank rank, Rank from, std::uint32_t tag) {
        return operation<double>(rank, {.kind = Kind::learn_arrival, .receive_from = from, .receive_tag = tag});
    }

    // ---- nonblocking operations (engine_requests.cpp) ---------------------------------------------------------------
    /// Before the run, of a program that calls any of these. irecv() receives its messages below first_collective_tag.
    void use_requests(Matching matching) {
        requests_.resize(ranks_.size());
        by_date_ = matching == Matching::by_date;
    }
    /// MPI_Isend of `bytes` bytes.
    Awaiter<void> isend(Rank rank, std::uint32_t request, Rank to, std::uint32_t tag, double bytes) {
        return operation<void>(
            rank, {.kind = Kind::isend, .send_to = to, .send_tag = tag, .request = request, .send_bytes = bytes});
    }
    /// MPI_Irecv; source and tag may be `any`. of_recv: a part of MPI_Recv, without a row of its own in the trace.
    Awaiter<void> irecv(Rank rank, std::uint32_t request, Rank from, std::uint32_t tag, bool of_recv = false) {
        return operation<void>(
            rank,
            {.kind = Kind::irecv, .two_calls = !of_recv, .receive_from = from, .receive_tag = tag, .request = request});
    }
    /// MPI_Wait or MPI_Waitall; requests that are none are passed over. `call`: its name in a trace.
    Awaiter<void> wait_all(Rank rank, std::span<const std::uint32_t> requests, Call call) {
        return wait(rank, requests, call, false);
    }
    /// MPI_Waitany: ends with the request that ends first, of equal ones the first of the list.
    Awaiter<void> wait_any(Rank rank, std::span<const std::uint32_t> requests) {
        return wait(rank, requests, Call::waitany, true);
    }
    /// Requests of a rank by number, for who asks what it waits for.
    [[nodiscard]] const RankRequests& requests(Rank rank) const { return requests_.at(rank); }
    /// A message that nobody has received.
    struct Unreceived {
        Rank from;
        Rank to;
        std::uint32_t tag;
        double bytes;
    };
    /// The first of them after a run.
    [[nodiscard]] std::optional<Unreceived> unreceived() const;

    /// Before the run: the last ranks are agents of these, which do what a library does for a rank beside the rank
    /// (engine_requests.cpp). They sit on its node, may wait for ever, and are in no result. Where the network makes
    /// progress in calls alone, what an agent does next waits until its rank is in a call.
    void use_agents(std::vector<Rank> of) { rank_of_agent_ = std::move(of); }
    /// An agent's: until begin_agent().
    Awaiter<void> be_idle(Rank agent) { return operation<void>(agent, {.kind = Kind::join}); }
    /// An idle agent goes on, not before that date.
    void begin_agent(Rank agent, double date_s);
    /// A request of `rank` that no message ends, but end_request().
    void open_request(Rank rank, std::uint32_t number, double bytes);
    /// At a date before which late_s were spent waiting for others, and overhead_s in calls: these are the rank's own
    /// where it did something else meanwhile.
    void end_request(Rank rank, std::uint32_t number, double date_s, double late_s, double overhead_s);

    /// Begins an operation of a rank from its steps; true: it has ended already.
    bool begin(Rank rank, const Operation& what) {
        ranks_[rank].operation = what;
        return !post(rank);
    }
    /// What the last probe, and the last learn_arrival, have answered.
    [[nodiscard]] bool answer(Rank rank) const noexcept { return ranks_[rank].answer; }
    [[nodiscard]] double date_answer_s(Rank rank) const noexcept { return ranks_[rank].date_answer_s; }
    template <class What>
    struct StepsAwaiter {
        Engine& engine;
        Rank rank;
        What what;
        static bool await_ready() noexcept { return false; }
        bool await_suspend(std::coroutine_handle<> caller) {
            RankState& state = engine.ranks_[rank];
            state.handle = caller;
            state.steps = &what;
            if (what.advance()) {
                state.steps = nullptr;
            }
            return state.steps != nullptr;
        }
        static void await_resume() noexcept {}
    };
    /// Goes through the steps that `What` makes of the arguments.
    template <class What, class... Arguments>
    StepsAwaiter<What> steps(Rank rank, Arguments&&... arguments) {
        return {*this, rank, What(std::forward<Arguments>(arguments)...)};
    }

    struct JoinAwaiter {
        Engine& engine;
        Rank rank = 0;
        Meeting& meeting;
        bool last = false;
        static bool await_ready() noexcept { return false; }
        bool await_suspend(std::coroutine_handle<> caller) {
            engine.ranks_[rank].handle = caller;
            engine.ranks_[rank].operation = {.kind = Kind::join};
            last = meeting.present.size() + 1 >= meeting.count;
            if (!last) {
                meeting.present.push_back(rank);
            }
            return !last;
        }
        [[nodiscard]] bool await_resume() const noexcept { return last; }
    };
    /// True for the last one.
    JoinAwaiter join(Rank rank, Meeting& meeting) { return {*this, rank, meeting}; }
    void release(Rank last, Meeting& meeting);
    struct DateAwaiter {
        Engine& engine;
        Rank rank;
        double date_s;
        [[nodiscard]] bool await_ready() const noexcept { return engine.comes_to(rank, date_s); }
        void await_suspend(std::coroutine_handle<> caller) const noexcept { engine.wake_at(rank, date_s, caller); }
        static void await_resume() noexcept {}
    };
    /// Goes on when all that happens before `date_s` has been settled; the clock of the rank stays as it is.
    DateAwaiter until(Rank rank, double date_s) { return {*this, rank, date_s}; }
    /// The flows that now share links with a message between two nodes lose to it what it takes in so many seconds: for
    /// messages that an application evaluates by itself. settle_flows() is called after the last.
    void take_from_flows(std::uint32_t from, std::uint32_t to, double seconds) { flows_.take(from, to, seconds); }
    void settle_flows() { flows_.settle(); }
    /// Flows now on the most loaded link between two nodes, in units of the link of a node.
    [[nodiscard]] double flows_on_way(std::uint32_t from, std::uint32_t to) const;
    /// The same of a plain switch: flows that leave or reach a node.
    [[nodiscard]] bool plain_switch() const noexcept { return plain_switch_; }
    [[nodiscard]] std::uint32_t flows_leaving(std::uint32_t node) const noexcept { return flows_.on_link(node); }
    [[nodiscard]] std::uint32_t flows_reaching(std::uint32_t node) const noexcept {
        return flows_.on_link(node_count_ + node);
    }

private:
    static constexpr double never = net::EventQueue::never;
    static constexpr std::uint32_t none = no_message;

    bool post(Rank rank); // true: the operation has not ended
    /// Is all that happens before `date_s` settled, or could it be settled now, as nothing else comes before?
    [[nodiscard]] bool comes_to(Rank rank, double date_s) noexcept {
        if (date_s <= now_s_) {
            return true;
        }
        if (!ready_.empty() || !delayed_.empty() || date_s >= flows_.next_end_s() ||
            date_s >= queue_.next_date_without_s(rank)) {
            return false;
        }
        now_s_ = date_s;
        return true;
    }
    void wake_at(Rank rank, double date_s, std::coroutine_handle<> caller) noexcept {
        RankState& state = ranks_[rank];
        state.handle = caller;
        state.operation.kind = Kind::until;
        state.event = Event::wake;
        queue_.set(rank, date_s);
    }
    void prepare_send(Rank rank);
    void handle_send(Rank rank);
    void post_receive(Rank rank, double posted_s);
    /// An exchange posts its receive before it spends the overhead of its send (unless that is MPI_Issend): as an event
    /// of its own, where the order of dates matters.
    [[nodiscard]] static bool receives_apart(const RankState& state, const Message& outgoing) noexcept {
        return state.operation.kind == Kind::exchange && !state.operation.synchronous && !outgoing.local &&
               state.clock_s > state.posted_s;
    }
    /// What a probe that is called now finds; open: what is still to be posted decides.
    enum class Probed : std::uint8_t { found, nothing, open };
    [[nodiscard]] Probed look(Rank rank, Rank from, std::uint32_t tag) const noexcept;
    void post_probe(Rank rank);
    void answer_probe(Rank rank);
    void match(std::uint32_t id, double posted_s);
    /// Gives the message the costs of one whose receiver computes between its probes, where the network knows them.
    void become_busy(Message& message);
    void meet_load(Message& message);
    Awaiter<void> wait(Rank rank, std::span<const std::uint32_t> requests, Call call, bool for_any);
    void post_irecv(Rank rank);
    void open_receive(Rank rank);
    void post_wait(Rank rank);
    void end_wait(Rank rank);
    /// The request of `rank` among those that its MPI_Waitany waits for that has ended first.
    [[nodiscard]] std::uint32_t first_ended(Rank rank) const;
    void pay(Rank rank, Request& request, Wait& waited);
    void post_isend(Rank rank, Message& message);
    void offer(std::uint32_t id);
    void match_request(std::uint32_t id, std::uint32_t number);
    void arrive_at_request(std::uint32_t id, double date_s);
    void complete(Rank rank, std::uint32_t number, double date_s, const Message& message);
    void tell_wait(Rank rank, const Request& request, double date_s);
    [[nodiscard]] bool is_for_requests(const Message& message) const noexcept {
        return !requests_.empty() && message.tag < first_collective_tag;
    }
    void start_transfer(std::uint32_t id, double date_s);
    void start_flow(std::uint32_t id);
    void arrive(std::uint32_t id, double date_s);
    void finish_if_complete(Rank rank);
    void wake_who_asks(std::uint32_t id);
    void resume(Rank rank, double date_s);
    void go_on(Rank rank);
    void end_operation(Rank rank);
    void trace_operation(const RankState& state, Rank rank, double end_s);
    void add_unexpected(RankState& state, std::uint32_t id) noexcept;
    /// The first message for `wanted`, or none. It becomes busy if it was posted while its receiver computed, which
    /// found it by a probe.
    std::uint32_t take_unexpected(RankState& receiver, const Unmatched& wanted) noexcept;
    [[nodiscard]] double visible_s(const Message& message) const noexcept; // for MPI_Iprobe; never: not known yet
    [[nodiscard]] std::uint32_t first_for(const RankState& state, const Unmatched& wanted) const noexcept;
    [[nodiscard]] double latency_s(const Message& message) const;
    [[nodiscard]] double route_latency_s(std::uint32_t from, std::uint32_t to) const;
    [[nodiscard]] static double lone_transfer_s(const Message& message) noexcept;
    /// On what its sender and its receiver spend: one for both, and for the transfer, where the noise is a mixture.
    [[nodiscard]] static double overhead_factor(const Message& message) noexcept {
        return message.segment->noise.modes.empty() ? 1.0 : message.noise_factor;
    }
    /// For taking an eager message out of a buffer. A synchronous one of that size waits instead.
    [[nodiscard]] static double receive_overhead_s(const Message& message) noexcept {
        const bool is_buffered = message.protocol == message.segment->protocol;
        return is_buffered ? message.segment->receive.of(message.bytes) * overhead_factor(message) : 0.0;
    }
    std::uint32_t new_message();
    /// Asks for memory that the next events touch, while there is something else to do: the state of so many ranks is
    /// in no cache. (At 75,264 ranks a tenth less time for each event; senders, flows and what goes with ranks: a
    /// twentieth more.)
    void fetch_for_flow_end() const noexcept;
    void fetch_for_send(const Message& message) const noexcept;
    void fetch_rank(Rank rank) const noexcept;
    static void fetch_program(const RankState& state) noexcept;
    [[nodiscard]] bool fetches() const noexcept { return ranks_.size() > ranks_in_caches; }
    static constexpr std::size_t ranks_in_caches = 4096;
    static constexpr std::size_t steps_bytes = 320; // of a rank that waits in its swap
    static constexpr std::size_t frame_bytes = 640; // of one that waits in its coroutine
    [[nodiscard]] std::string who_waits_for_whom(const std::vector<Task>& tasks) const;

    models::Network network_;
    net::Topology topology_;
    std::vector<RankState, net::LargePages<RankState>> ranks_;
    std::vector<Message, net::LargePages<Message>> messages_;
    std::vector<std::uint32_t> free_messages_;
    net::Flows flows_;
    net::EventQueue queue_; // of the ranks
    Statistics statistics_;
    std::uint32_t node_count_;
    bool with_noise_;
    bool counts_sizes_;
    bool plain_switch_;
    double now_s_ = 0.0;
    NodeLoad load_;
    std::vector<std::span<const std::byte>> companions_; // entries of rank 0
    std::vector<Rank> ready_;                            // ranks to be resumed before the next event
    std::vector<RankRequests> requests_;                 // empty where nobody has any
    std::vector<Rank> rank_of_agent_;                    // by agent: the last of ranks_
    bool by_date_ = false;
    using Delayed = std::pair<double, std::uint32_t>;
    /// Rendezvous messages whose receive was posted by a rank that is ahead of the others, by the date of that.
    std::priority_queue<Delayed, std::vector<Delayed>, std::greater<>> delayed_;
    Trace trace_;
    std::vector<Shares> shares_at_step_; // per rank, at its last change of step
    std::uint32_t looks_ = 0;
    std::uint64_t begun_steps_ = 0;
    Progress* progress_ = nullptr;
};

} // namespace lepaute::mpi
