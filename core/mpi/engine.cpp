#include "mpi/engine.hpp"

#include "rng/philox.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace lepaute::mpi {

namespace {

constexpr std::uint32_t network_noise_stream = 0x4E455400U;
constexpr double infinity = std::numeric_limits<double>::infinity();

std::vector<double> capacities(const models::Network& network, std::uint32_t nodes) {
    std::vector<double> capacity(std::size_t{3} * nodes, network.node_link_Bps); // up, down, loopback of each node
    std::fill(capacity.begin() + 2 * static_cast<std::ptrdiff_t>(nodes), capacity.end(), network.loopback_Bps);
    return capacity;
}

} // namespace

Engine::Engine(const models::Network& network, std::vector<std::uint32_t> node_of_rank, std::uint32_t node_count,
               std::uint64_t seed, bool with_noise)
    : network_(network), ranks_(node_of_rank.size()), flows_(capacities(network, node_count)), seed_(seed),
      node_count_(node_count), with_noise_(with_noise) {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
        ranks_[rank].node = node_of_rank[rank];
    }
}

std::size_t Engine::state_bytes() const noexcept {
    return ranks_.size() * sizeof(RankState) + messages_.size() * sizeof(Message) + events_.size() * sizeof(Event);
}

double Engine::run(const std::function<Task(Rank)>& program) {
    std::vector<Task> tasks;
    tasks.reserve(ranks_.size());
    for (Rank rank = 0; rank < size(); ++rank) {
        tasks.push_back(program(rank));
    }
    for (const Task& task : tasks) {
        task.handle().resume();
    }
    const auto resume_ready = [&] {
        std::size_t next = 0;
        while (next < ready_.size()) { // grows while we go through it
            ranks_[ready_[next++]].handle.resume();
        }
        ready_.clear();
    };
    resume_ready();
    while (!events_.empty() || !flows_.empty()) {
        const auto end = flows_.next_end();
        if (end && (events_.empty() || end->date_s <= events_.top().date_s)) {
            flows_.finish_next();
            arrive(end->tag, end->date_s);
        } else {
            const Event event = events_.top();
            events_.pop();
            if (event.kind == Event::Kind::post) {
                handle_post(event.subject);
            } else {
                start_flow(event.subject, event.date_s);
            }
        }
        resume_ready();
    }
    double latest_s = 0.0;
    bool all_done = true;
    for (Rank rank = 0; rank < size(); ++rank) {
        tasks[rank].rethrow();
        all_done = all_done && tasks[rank].done();
        latest_s = std::max(latest_s, ranks_[rank].clock_s);
    }
    if (!all_done) {
        throw std::runtime_error(who_waits_for_whom(tasks));
    }
    return latest_s;
}

void Engine::post(Rank rank, const Operation& operation, std::coroutine_handle<> caller) {
    RankState& state = ranks_[rank];
    state.handle = caller;
    state.operation = operation;
    state.posted_s = state.clock_s;
    push(state.clock_s, Event::Kind::post, rank);
}

void Engine::join(Rank rank, Meeting& meeting, std::coroutine_handle<> caller) {
    RankState& state = ranks_[rank];
    state.handle = caller;
    state.operation = {Operation::Kind::join, 0, 0, 0, 0.0, false};
    state.posted_s = state.clock_s;
    meeting.present.push_back(rank);
    if (meeting.present.size() < meeting.count) {
        return;
    }
    meeting.meet();
    for (const Rank present : meeting.present) {
        ranks_[present].posted_s = ranks_[present].clock_s; // what it waited for was counted where it happened
        resume(present, ranks_[present].clock_s);
    }
    meeting.present.clear();
}

void Engine::handle_post(Rank rank) {
    RankState& state = ranks_[rank];
    const double now_s = state.clock_s;
    state.send_pending = false;
    state.receive_pending = false;
    state.send_done_s = now_s;
    state.arrival_s = now_s;
    state.receive_overhead_s = 0.0;
    switch (state.operation.kind) {
    case Operation::Kind::send:
        post_send(rank, now_s);
        break;
    case Operation::Kind::receive:
        post_receive(rank, now_s);
        break;
    case Operation::Kind::exchange:
        state.send_pending = true; // the receive alone does not complete the operation
        post_receive(rank, now_s);
        post_send(rank, now_s);
        break;
    case Operation::Kind::probe: {
        const std::uint32_t found = find_unexpected(rank, state.operation.receive_from, state.operation.tag);
        const double seen_s = network_.iprobe_looks_first ? state.progress_s : now_s;
        state.answer = found != none && probe_visible_s(messages_[found]) <= seen_s;
        resume(rank, now_s + network_.iprobe_s);
        return;
    }
    case Operation::Kind::await_message: {
        state.awaiting = true;
        const std::uint32_t found = find_unexpected(rank, state.operation.receive_from, state.operation.tag);
        if (found != none) {
            wake_prober(found);
        }
        return;
    }
    case Operation::Kind::none:
    case Operation::Kind::join:
        return;
    }
    finish_if_complete(rank);
}

void Engine::post_send(Rank rank, double date_s) {
    RankState& sender = ranks_[rank];
    const std::uint32_t id = new_message();
    Message& message = messages_[id];
    message.from = rank;
    message.to = sender.operation.send_to;
    message.tag = sender.operation.tag;
    message.bytes = sender.operation.send_bytes;
    const models::NetworkClass& network = sender.operation.noncontiguous
                                              ? noncontiguous_class_between(message.from, message.to)
                                              : class_between(message.from, message.to);
    message.segment = &network.at(message.bytes);
    message.ready_s = date_s + message.segment->send.of(message.bytes);
    ++statistics_.messages;
    statistics_.bytes += message.bytes;
    sender.send_done_s = message.ready_s;
    sender.send_pending = message.segment->protocol == models::Protocol::rendezvous;

    RankState& receiver = ranks_[message.to];
    const bool expected =
        receiver.receive_unmatched && receiver.operation.receive_from == rank && receiver.operation.tag == message.tag;
    if (expected) {
        match(id, receiver.posted_s);
        return;
    }
    receiver.unexpected.push_back(id);
    if (message.segment->protocol == models::Protocol::eager) {
        start_transfer(id, message.ready_s);
    }
    wake_prober(id);
}

void Engine::post_receive(Rank rank, double date_s) {
    RankState& state = ranks_[rank];
    state.receive_pending = true;
    state.receive_unmatched = true;
    const std::uint32_t found = find_unexpected(rank, state.operation.receive_from, state.operation.tag);
    if (found != none) {
        std::erase(state.unexpected, found);
        match(found, date_s);
    }
}

void Engine::match(std::uint32_t id, double date_s) {
    Message& message = messages_[id];
    message.matched = true;
    ranks_[message.to].receive_unmatched = false;
    message.matched_s = date_s;
    if (!message.started) {
        start_transfer(id, std::max(message.ready_s, date_s));
    } else if (message.arrival_known) {
        arrive(id, message.arrival_s);
    }
}

void Engine::start_transfer(std::uint32_t id, double date_s) {
    Message& message = messages_[id];
    message.started = true;
    const models::Segment& segment = *message.segment;
    const bool local = ranks_[message.from].node == ranks_[message.to].node;
    if (local && !network_.loopback_shared) {
        double transfer_s = segment.latency_s + message.bytes / segment.bandwidth_Bps;
        if (with_noise_ && segment.noise_relative_sd > 0.0) {
            const double noise = rng::centred_half_normal({seed_, message.from, network_noise_stream, noise_index_++});
            transfer_s *= std::max(0.0, 1.0 + segment.noise_relative_sd * noise);
        }
        arrive(id, date_s + transfer_s);
    } else {
        push(date_s + segment.latency_s, Event::Kind::flow_start, id);
    }
}

void Engine::start_flow(std::uint32_t id, double date_s) {
    const Message& message = messages_[id];
    const std::uint32_t from = ranks_[message.from].node;
    const std::uint32_t to = ranks_[message.to].node;
    const bool local = from == to;
    const double link_Bps = local ? network_.loopback_Bps : network_.node_link_Bps;
    const double segment_Bps = message.segment->bandwidth_Bps;
    // A lone flow takes its fitted time. Faster than its link (or with flow_factor scale always), it loads the link
    // by bytes * link / segment bandwidth; else its segment's bandwidth bounds its rate.
    const bool scaled = segment_Bps > link_Bps || network_.flow_factor == models::FlowFactor::scale;
    const double work_bytes = scaled ? message.bytes * link_Bps / segment_Bps : message.bytes;
    const double cap_Bps = scaled ? link_Bps : segment_Bps;
    const net::Demand demand = local ? net::Demand{2 * node_count_ + from, 2 * node_count_ + from, cap_Bps}
                                     : net::Demand{from, node_count_ + to, cap_Bps};
    if (work_bytes <= 0.0) {
        arrive(id, date_s);
    } else {
        flows_.start(date_s, id, work_bytes, demand);
    }
}

void Engine::arrive(std::uint32_t id, double date_s) {
    Message& message = messages_[id];
    message.arrival_known = true;
    message.arrival_s = date_s;
    if (!message.matched) {
        wake_prober(id);
        return;
    }
    RankState& receiver = ranks_[message.to];
    receiver.receive_pending = false;
    receiver.arrival_s = message.arrival_s;
    receiver.receive_overhead_s = message.segment->receive.of(message.bytes);
    const Rank from = message.from;
    const Rank to = message.to;
    const bool sender_waits = message.segment->protocol == models::Protocol::rendezvous;
    free_messages_.push_back(id);
    if (sender_waits) {
        ranks_[from].send_pending = false;
        ranks_[from].send_done_s = std::max(ranks_[from].send_done_s, date_s);
        finish_if_complete(from);
    }
    finish_if_complete(to);
}

void Engine::finish_if_complete(Rank rank) {
    const RankState& state = ranks_[rank];
    const Operation::Kind kind = state.operation.kind;
    if (state.send_pending || state.receive_pending ||
        (kind != Operation::Kind::send && kind != Operation::Kind::receive && kind != Operation::Kind::exchange)) {
        return;
    }
    double date_s = state.send_done_s;
    if (kind != Operation::Kind::send) {
        date_s = std::max(date_s, state.arrival_s) + state.receive_overhead_s;
    }
    resume(rank, date_s);
}

void Engine::wake_prober(std::uint32_t id) {
    const Message& message = messages_[id];
    RankState& state = ranks_[message.to];
    const double visible_s = probe_visible_s(message);
    if (!state.awaiting || state.operation.receive_from != message.from || state.operation.tag != message.tag ||
        visible_s == infinity) { // still in transfer: arrive() comes back
        return;
    }
    state.awaiting = false;
    state.answer = true;
    resume(message.to, std::max(state.clock_s, visible_s) + network_.iprobe_s);
}

double Engine::probe_visible_s(const Message& message) const noexcept {
    if (message.segment->protocol == models::Protocol::eager) {
        if (message.arrival_known) {
            return message.arrival_s;
        }
        return infinity;
    }
    // The header of a rendezvous is itself a small message.
    return message.ready_s + class_between(message.from, message.to).segments.front().latency_s;
}

std::uint32_t Engine::find_unexpected(Rank rank, Rank from, std::uint32_t tag) const noexcept {
    for (const std::uint32_t id : ranks_[rank].unexpected) {
        if (messages_[id].from == from && messages_[id].tag == tag) {
            return id;
        }
    }
    return none;
}

std::uint32_t Engine::new_message() {
    if (free_messages_.empty()) {
        messages_.emplace_back();
        return static_cast<std::uint32_t>(messages_.size() - 1);
    }
    const std::uint32_t id = free_messages_.back();
    free_messages_.pop_back();
    messages_[id] = {};
    return id;
}

void Engine::push(double date_s, Event::Kind kind, std::uint32_t subject) {
    events_.push({date_s, sequence_++, kind, subject});
}

void Engine::resume(Rank rank, double date_s) {
    RankState& state = ranks_[rank];
    statistics_.waiting_s += date_s - state.posted_s;
    state.clock_s = date_s;
    state.progress_s = date_s;
    state.operation.kind = Operation::Kind::none;
    ready_.push_back(rank);
}

std::string Engine::who_waits_for_whom(const std::vector<Task>& tasks) const {
    std::string text = "deadlock:";
    int named = 0;
    for (Rank rank = 0; rank < size(); ++rank) {
        if (tasks[rank].done()) {
            continue;
        }
        if (++named > 8) {
            return text + " ...";
        }
        const RankState& state = ranks_[rank];
        text += named > 1 ? "; rank " : " rank ";
        text += std::to_string(rank);
        if (state.operation.kind == Operation::Kind::join) {
            text += " waits for its process column";
        } else if (state.receive_pending || state.awaiting) {
            text += " waits for a message from rank " + std::to_string(state.operation.receive_from);
        } else {
            text += " waits for rank " + std::to_string(state.operation.send_to) + " to receive";
        }
        text += " (tag " + std::to_string(state.operation.tag) + ")";
    }
    return text;
}

} // namespace lepaute::mpi
