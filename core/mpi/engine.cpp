#include "mpi/engine.hpp"

#include <algorithm>
#include <stdexcept>

namespace lepaute::mpi {

namespace {

constexpr std::uint32_t network_noise_stream = 0x4E455400U;

/// Capacities of the links of the topology, then of the loopback link of each node.
std::vector<double> capacities(const net::Topology& topology, const models::Network& network) {
    std::vector<double> capacity;
    for (const net::Link& link : topology.links()) {
        capacity.push_back(link.capacity_Bps);
    }
    capacity.resize(capacity.size() + topology.nodes(), network.loopback_Bps);
    return capacity;
}

double& part(Shares& shares, Share which) noexcept { return shares[static_cast<std::size_t>(which)]; }

} // namespace

Engine::Engine(const models::Network& network, const net::Topology& topology, std::vector<std::uint32_t> node_of_rank,
               std::uint64_t seed, bool with_noise)
    : network_(network), topology_(topology), ranks_(node_of_rank.size()),
      flows_(capacities(topology, network), topology.nodes(),
             network.exact_sharing ? net::Sharing::exact : net::Sharing::fair,
             [this](std::uint32_t from, std::uint32_t to, std::vector<net::LinkId>& links) {
                 if (from == to) {
                     links.push_back(static_cast<net::LinkId>(topology_.links().size()) + from);
                 } else {
                     topology_.route(from, to, links);
                 }
             }),
      queue_(static_cast<std::uint32_t>(node_of_rank.size())), node_count_(topology.nodes()), with_noise_(with_noise),
      plain_switch_(topology.is_plain_switch()) {
    FramePool::of_this_thread().reset_peak();
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
        ranks_[rank].node = node_of_rank[rank];
        if (with_noise) {
            noise_of_rank_.emplace_back(rng::Coordinates{seed, static_cast<Rank>(rank), network_noise_stream, 0});
        }
    }
}

Engine::Engine(const models::Network& network, std::vector<std::uint32_t> node_of_rank, std::uint32_t node_count,
               std::uint64_t seed, bool with_noise)
    : Engine(network, net::Topology::plain_switch(node_count, network.node_link_Bps), std::move(node_of_rank), seed,
             with_noise) {}

std::size_t Engine::state_bytes() const noexcept {
    return ranks_.size() * sizeof(RankState) + messages_.size() * sizeof(Message) + queue_.state_bytes() +
           flows_.state_bytes() + FramePool::of_this_thread().peak_bytes();
}

double Engine::run(const std::function<Task(Rank)>& program) {
    std::vector<Task> tasks;
    tasks.reserve(ranks_.size());
    for (Rank rank = 0; rank < size(); ++rank) {
        tasks.push_back(program(rank));
    }
    shares_at_step_.resize(trace_.on() ? ranks_.size() : 0);
    const auto resume_ready = [&] {
        std::size_t next = 0;
        while (next < ready_.size()) { // grows while we go through it
            ranks_[ready_[next++]].handle.resume();
        }
        ready_.clear();
    };
    for (const Task& task : tasks) {
        task.handle().resume();
    }
    resume_ready();
    while (queue_.next_date_s() != never || flows_.next_end_s() != never) {
        if (flows_.next_end_s() <= queue_.next_date_s()) {
            now_s_ = std::max(now_s_, flows_.next_end_s());
            const std::uint32_t id = flows_.finish_next();
            arrive(id, now_s_ + latency_s(messages_[id]));
            resume_ready();
            continue;
        }
        now_s_ = std::max(now_s_, queue_.next_date_s());
        const Rank rank = queue_.next_source();
        RankState& state = ranks_[rank];
        const Event event = std::exchange(state.event, Event::none);
        if (event == Event::send) {
            handle_send(rank);
        } else if (event == Event::probe) {
            answer_probe(rank);
        } else if (event == Event::wake) {
            ready_.push_back(rank);
        } else {
            start_flow(state.outgoing);
        }
        resume_ready();
        if (state.event == Event::none) { // else its next date has taken the place of this one
            queue_.set(rank, never);
        }
    }
    double latest_s = 0.0;
    bool all_done = true;
    for (Rank rank = 0; rank < size(); ++rank) {
        tasks[rank].rethrow();
        all_done = all_done && tasks[rank].done();
        latest_s = std::max(latest_s, ranks_[rank].clock_s);
        if (trace_.on()) {
            set_step(rank, -1);
        }
    }
    if (!all_done) {
        throw std::runtime_error(who_waits_for_whom(tasks));
    }
    return latest_s;
}

void Engine::set_step(Rank rank, std::int32_t step) {
    RankState& state = ranks_[rank];
    if (trace_.on()) {
        const std::size_t at = static_cast<std::size_t>(state.step + 1) * share_count; // row 0: outside of any step
        if (trace_.share_of_step_s.size() < at + share_count) {
            trace_.share_of_step_s.resize(at + share_count, 0.0);
        }
        for (std::size_t i = 0; i < share_count; ++i) {
            trace_.share_of_step_s[at + i] += state.shares_s[i] - shares_at_step_[rank][i];
        }
        shares_at_step_[rank] = state.shares_s;
    }
    state.step = step;
}

void Engine::fruitless_probe(Rank rank, Rank from, std::uint32_t tag) {
    RankState& state = ranks_[rank];
    if (trace_.on() && traced(rank)) {
        record(rank, {.code = static_cast<std::int16_t>(Call::iprobe),
                      .peer = static_cast<std::int32_t>(from),
                      .tag = tag,
                      .start_s = state.clock_s,
                      .duration_s = network_.iprobe_s});
    }
    spend(rank, Share::probe, network_.iprobe_s);
    state.progress_s = state.clock_s;
}

// ---- posting
// ---------------------------------------------------------------------------------------------------------

bool Engine::post(Rank rank, std::coroutine_handle<> caller) {
    RankState& state = ranks_[rank];
    const Operation& operation = state.operation;
    state.handle = caller;
    state.posted_s = state.clock_s;
    state.inside_post = true;
    state.send_pending = false;
    state.receive_pending = false;
    state.receive_overhead_s = 0.0;
    switch (operation.kind) {
    case Operation::Kind::send:
    case Operation::Kind::exchange:
        prepare_send(rank);
        break;
    case Operation::Kind::receive:
        post_receive(rank);
        finish_if_complete(rank);
        break;
    case Operation::Kind::probe:
        post_probe(rank);
        break;
    case Operation::Kind::await_message:
    case Operation::Kind::learn_arrival: {
        state.awaiting = true;
        const std::uint32_t found = find_unexpected(state, operation.receive_from, operation.receive_tag);
        if (found != none) {
            wake_who_asks(found);
        }
        break;
    }
    case Operation::Kind::until:
        if (operation.date_s <= now_s_) {
            state.inside_post = false;
        } else {
            state.event = Event::wake;
            queue_.set(rank, operation.date_s);
        }
        break;
    case Operation::Kind::none:
    case Operation::Kind::join:
        break;
    }
    const bool suspended = state.inside_post;
    state.inside_post = false;
    return suspended;
}

bool Engine::join(Rank rank, Meeting& meeting, std::coroutine_handle<> caller) {
    RankState& state = ranks_[rank];
    state.handle = caller;
    state.operation = {};
    state.operation.kind = Operation::Kind::join;
    if (meeting.present.size() + 1 < meeting.count) {
        meeting.present.push_back(rank);
        return false;
    }
    return true;
}

void Engine::release(Rank last, Meeting& meeting) {
    ranks_[last].progress_s = ranks_[last].clock_s;
    for (const Rank present : meeting.present) {
        RankState& other = ranks_[present];
        other.operation.kind = Operation::Kind::none;
        other.progress_s = other.clock_s;
        ready_.push_back(present);
    }
    meeting.present.clear();
}

void Engine::prepare_send(Rank rank) {
    RankState& sender = ranks_[rank];
    const Operation& operation = sender.operation;
    const std::uint32_t id = new_message();
    Message& message = messages_[id];
    message.from = rank;
    message.to = operation.send_to;
    message.tag = operation.send_tag;
    message.bytes = operation.send_bytes;
    const bool same = same_node(rank, message.to);
    const models::NetworkClass& network =
        operation.noncontiguous ? noncontiguous_class_between(rank, message.to) : class_between(rank, message.to);
    message.local = same && !network_.loopback_shared;
    message.segment = &network.at(message.bytes);
    message.protocol = operation.synchronous ? models::Protocol::rendezvous : message.segment->protocol;
    message.sender_waits = message.protocol == models::Protocol::rendezvous;
    if (with_noise_ && message.segment->noise_relative_sd > 0.0) {
        const double noise = noise_of_rank_[rank].centred_half_normal(sender.noise_index++);
        message.noise_factor = std::max(0.0, 1.0 + message.segment->noise_relative_sd * noise);
    }
    ++statistics_.messages;
    statistics_.bytes += message.bytes;
    spend(rank, Share::overhead, message.segment->send.of(message.bytes));
    sender.outgoing = id;
    if (message.local) {
        handle_send(rank); // the order of dates does not matter
    } else {
        sender.event = Event::send;
        queue_.set(rank, sender.clock_s);
    }
}

void Engine::handle_send(Rank rank) {
    RankState& sender = ranks_[rank];
    const std::uint32_t id = sender.outgoing;
    messages_[id].ready_s = sender.clock_s;
    sender.send_done_s = sender.clock_s;
    sender.send_pending = messages_[id].sender_waits;
    if (sender.operation.kind == Operation::Kind::exchange) {
        post_receive(rank);
    }
    const Message& message = messages_[id];
    RankState& receiver = ranks_[message.to];
    if (message.protocol == models::Protocol::eager) {
        start_transfer(id, message.ready_s);
    }
    if (receiver.receive_unmatched && receiver.operation.receive_from == rank &&
        receiver.operation.receive_tag == message.tag) {
        match(id, receiver.receive_posted_s);
    } else {
        receiver.unexpected.push_back(id);
        wake_who_asks(id);
    }
    finish_if_complete(rank);
}

void Engine::post_receive(Rank rank) {
    RankState& state = ranks_[rank];
    state.receive_pending = true;
    state.receive_unmatched = true;
    state.receive_posted_s = state.clock_s;
    const std::uint32_t found = find_unexpected(state, state.operation.receive_from, state.operation.receive_tag);
    if (found != none) {
        state.unexpected.erase(std::find(state.unexpected.begin(), state.unexpected.end(), found));
        match(found, state.receive_posted_s);
    }
}

void Engine::match(std::uint32_t id, double posted_s) {
    Message& message = messages_[id];
    message.matched = true;
    ranks_[message.to].receive_unmatched = false;
    if (!message.started) {
        start_transfer(id, std::max(message.ready_s, posted_s));
    } else if (message.arrival_known) {
        arrive(id, message.arrival_s);
    }
}

// ---- transfers
// -------------------------------------------------------------------------------------------------------

void Engine::start_transfer(std::uint32_t id, double date_s) {
    Message& message = messages_[id];
    message.started = true;
    message.start_s = date_s;
    if (message.local) {
        arrive(id, date_s + lone_transfer_s(message) * message.noise_factor);
    } else if (date_s > now_s_ && message.protocol != models::Protocol::eager) {
        // The receiver is ahead of the others: the flow starts when they have come to the date of its receive.
        RankState& receiver = ranks_[message.to];
        receiver.outgoing = id;
        receiver.event = Event::start_transfer;
        queue_.set(message.to, date_s);
    } else {
        start_flow(id);
    }
}

double Engine::latency_s(const Message& message) const {
    double seconds = message.segment->latency_s;
    if (topology_.has_latency()) { // what the cables add to the fitted latency of the route
        seconds += route_latency_s(ranks_[message.from].node, ranks_[message.to].node);
    }
    return seconds * message.noise_factor;
}

double Engine::route_latency_s(std::uint32_t from, std::uint32_t to) const {
    if (from == to) {
        return 0.0;
    }
    std::vector<net::LinkId> links;
    topology_.route(from, to, links);
    return topology_.latency_s(links);
}

double Engine::flows_on_way(std::uint32_t from, std::uint32_t to) const {
    std::vector<net::LinkId> links;
    topology_.route(from, to, links);
    double most = 0.0;
    for (const net::LinkId link : links) {
        most = std::max(most, flows_.on_link(link) * network_.node_link_Bps / topology_.links()[link].capacity_Bps);
    }
    return most;
}

double Engine::lone_transfer_s(const Message& message) noexcept {
    return message.segment->latency_s + message.bytes / message.segment->bandwidth_Bps;
}

Engine::TransferTimes Engine::transfer_times(const models::Segment& segment, double bytes) const noexcept {
    const double link_Bps = network_.node_link_Bps;
    const bool scaled = segment.bandwidth_Bps > link_Bps || network_.flow_factor == models::FlowFactor::scale;
    const double alone_s = bytes / segment.bandwidth_Bps;
    return {alone_s, scaled ? alone_s : bytes / link_Bps};
}

void Engine::start_flow(std::uint32_t id) {
    const Message& message = messages_[id];
    const std::uint32_t from = ranks_[message.from].node;
    const std::uint32_t to = ranks_[message.to].node;
    const bool same = from == to;
    const double link_Bps = same ? network_.loopback_Bps : network_.node_link_Bps;
    const double segment_Bps = message.segment->bandwidth_Bps;
    // A lone flow takes its fitted time. Faster than its link (or with flow_factor scale always), it loads the link
    // by bytes * link / segment bandwidth; else its segment's bandwidth bounds its rate.
    const bool scaled = segment_Bps > link_Bps || network_.flow_factor == models::FlowFactor::scale;
    const double bytes = message.bytes * message.noise_factor;
    const double work_bytes = scaled ? bytes * link_Bps / segment_Bps : bytes;
    const double cap_Bps = scaled ? link_Bps : segment_Bps;
    if (work_bytes <= 0.0) {
        arrive(id, now_s_ + latency_s(message));
        return;
    }
    flows_.start(now_s_, id, work_bytes, from, to, cap_Bps);
}

void Engine::arrive(std::uint32_t id, double date_s) {
    Message& message = messages_[id];
    message.arrival_known = true;
    message.arrival_s = date_s;
    if (!message.matched) {
        wake_who_asks(id);
        return;
    }
    RankState& receiver = ranks_[message.to];
    const double lone_s = lone_transfer_s(message);
    // Of a wait until `date_s`: until the transfer began the other side was late; a transfer that took longer than a
    // lone one lost the rest to contention (or noise).
    const auto wait_from = [&](double posted_s) {
        const double wait_s = std::max(0.0, date_s - posted_s);
        const double late_s = std::clamp(message.start_s - posted_s, 0.0, wait_s);
        const double contention_s = std::clamp(date_s - message.start_s - lone_s, 0.0, wait_s - late_s);
        return Wait{late_s, wait_s - late_s - contention_s, contention_s};
    };
    receiver.receive_pending = false;
    receiver.arrival_s = date_s;
    receiver.receive_overhead_s = message.segment->receive.of(message.bytes);
    receiver.received_bytes = message.bytes;
    if (receiver.send_pending || receiver.send_done_s <= date_s) { // of an exchange, the later end counts
        receiver.wait = wait_from(receiver.receive_posted_s);
    }
    const Rank from = message.from;
    const Rank to = message.to;
    free_messages_.push_back(id);
    if (message.sender_waits) {
        RankState& sender = ranks_[from];
        sender.send_pending = false;
        sender.send_done_s = std::max(sender.send_done_s, date_s);
        if (sender.operation.kind == Operation::Kind::send || sender.arrival_s < date_s || sender.receive_pending) {
            sender.wait = wait_from(message.ready_s);
        }
        finish_if_complete(from);
    }
    finish_if_complete(to);
}

void Engine::finish_if_complete(Rank rank) {
    RankState& state = ranks_[rank];
    const Operation::Kind kind = state.operation.kind;
    if (state.send_pending || state.receive_pending || state.event != Event::none ||
        (kind != Operation::Kind::send && kind != Operation::Kind::receive && kind != Operation::Kind::exchange)) {
        return;
    }
    double date_s = kind == Operation::Kind::receive ? state.clock_s : state.send_done_s;
    if (kind != Operation::Kind::send) {
        date_s = std::max(date_s, state.arrival_s);
    }
    if (date_s > state.clock_s) {
        part(state.shares_s, Share::late) += state.wait.late_s;
        part(state.shares_s, Share::transfer) += state.wait.transfer_s;
        part(state.shares_s, Share::contention) += state.wait.contention_s;
    }
    part(state.shares_s, Share::overhead) += state.receive_overhead_s;
    if (trace_.on() && traced(rank)) {
        trace_operation(state, rank, date_s);
    }
    resume(rank, date_s + state.receive_overhead_s);
}

// ---- probes
// ----------------------------------------------------------------------------------------------------------

void Engine::post_probe(Rank rank) {
    RankState& state = ranks_[rank];
    const Operation& operation = state.operation;
    const double seen_s = probe_sees_s(state.clock_s, state.progress_s);
    const std::uint32_t found = find_unexpected(state, operation.receive_from, operation.receive_tag);
    const bool date_known = found != none && visible_s(messages_[found]) != never;
    const double sender_s = queue_.date_s(operation.receive_from);
    // Nothing that is posted later can have come by a date that is settled, nor what its sender posts after that date.
    if (date_known || seen_s <= now_s_ || (found == none && sender_s != never && sender_s >= seen_s)) {
        answer_probe(rank);
    } else {
        state.event = Event::probe;
        queue_.set(rank, seen_s);
    }
}

void Engine::answer_probe(Rank rank) {
    RankState& state = ranks_[rank];
    const Operation& operation = state.operation;
    const double seen_s = probe_sees_s(state.clock_s, state.progress_s);
    const std::uint32_t found = find_unexpected(state, operation.receive_from, operation.receive_tag);
    state.answer = found != none && visible_s(messages_[found]) <= seen_s;
    if (trace_.on() && traced(rank)) {
        record(rank, {.code = static_cast<std::int16_t>(Call::iprobe),
                      .peer = static_cast<std::int32_t>(operation.receive_from),
                      .tag = operation.receive_tag,
                      .start_s = state.clock_s,
                      .duration_s = network_.iprobe_s});
    }
    part(state.shares_s, Share::probe) += network_.iprobe_s;
    resume(rank, state.clock_s + network_.iprobe_s);
}

void Engine::wake_who_asks(std::uint32_t id) {
    const Message& message = messages_[id];
    RankState& state = ranks_[message.to];
    if (!state.awaiting || state.operation.receive_from != message.from || state.operation.receive_tag != message.tag) {
        return;
    }
    if (find_unexpected(state, message.from, message.tag) != id) { // messages do not overtake each other
        return;
    }
    const double date_s = visible_s(message);
    if (date_s == never) { // still in transfer: arrive() comes back
        return;
    }
    state.awaiting = false;
    if (state.operation.kind == Operation::Kind::learn_arrival) {
        state.date_answer_s = date_s;
        state.operation.kind = Operation::Kind::none;
        if (state.inside_post) {
            state.inside_post = false;
        } else {
            ready_.push_back(message.to);
        }
        return;
    }
    // Probes follow each other without a pause: the one during which the message comes finds it.
    const double seen_s = std::max(state.clock_s, date_s - network_.iprobe_s);
    part(state.shares_s, Share::late) += seen_s - state.clock_s;
    part(state.shares_s, Share::probe) += network_.iprobe_s;
    if (trace_.on() && traced(message.to)) {
        record(message.to, {.code = static_cast<std::int16_t>(Call::iprobe),
                            .peer = static_cast<std::int32_t>(message.from),
                            .tag = message.tag,
                            .start_s = state.clock_s,
                            .duration_s = seen_s - state.clock_s + network_.iprobe_s,
                            .late_s = seen_s - state.clock_s});
    }
    resume(message.to, seen_s + network_.iprobe_s);
}

double Engine::visible_s(const Message& message) const noexcept {
    if (message.protocol == models::Protocol::eager && message.arrival_known) {
        return message.arrival_s;
    }
    if (message.protocol == models::Protocol::eager) {
        return never;
    }
    // The header of a rendezvous is itself a small message.
    return message.ready_s + class_between(message.from, message.to).segments.front().latency_s;
}

std::uint32_t Engine::find_unexpected(const RankState& state, Rank from, std::uint32_t tag) const noexcept {
    for (const std::uint32_t id : state.unexpected) {
        if (messages_[id].from == from && messages_[id].tag == tag) {
            return id;
        }
    }
    return none;
}

// ---- bookkeeping
// -----------------------------------------------------------------------------------------------------

std::uint32_t Engine::new_message() {
    if (free_messages_.empty()) {
        messages_.emplace_back();
        return static_cast<std::uint32_t>(messages_.size() - 1);
    }
    const std::uint32_t id = free_messages_.back();
    free_messages_.pop_back();
    Message& message = messages_[id]; // what every send sets is left as it was
    message.matched = false;
    message.started = false;
    message.arrival_known = false;
    message.noise_factor = 1.0;
    return id;
}

void Engine::resume(Rank rank, double date_s) {
    RankState& state = ranks_[rank];
    state.clock_s = date_s;
    state.progress_s = date_s;
    state.operation.kind = Operation::Kind::none;
    if (state.inside_post) {
        state.inside_post = false;
    } else {
        ready_.push_back(rank);
    }
}

void Engine::trace_operation(const RankState& state, Rank rank, double end_s) {
    const Operation& operation = state.operation;
    Wait wait = end_s > state.clock_s ? state.wait : Wait{};
    const auto row = [&](Call call, Rank peer, std::uint32_t tag, double bytes, double from_s, double to_s,
                         const Wait& part) {
        record(rank, {.code = static_cast<std::int16_t>(call),
                      .peer = static_cast<std::int32_t>(peer),
                      .tag = tag,
                      .start_s = from_s,
                      .duration_s = to_s - from_s,
                      .size_bytes = bytes,
                      .late_s = part.late_s,
                      .transfer_s = part.transfer_s,
                      .contention_s = part.contention_s});
    };
    // What of the wait lies in its first `seconds`: the other side is late first, then the transfer begins.
    const auto take_first = [&wait](double seconds) {
        Wait taken{};
        taken.late_s = std::min(wait.late_s, seconds);
        const double moving_s = wait.transfer_s + wait.contention_s;
        const double share = moving_s > 0.0 ? std::min(1.0, (seconds - taken.late_s) / moving_s) : 0.0;
        taken.transfer_s = share * wait.transfer_s;
        taken.contention_s = share * wait.contention_s;
        wait.late_s -= taken.late_s;
        wait.transfer_s -= taken.transfer_s;
        wait.contention_s -= taken.contention_s;
        return taken;
    };
    const double done_s = end_s + state.receive_overhead_s;
    switch (operation.kind) {
    case Operation::Kind::send:
        row(operation.synchronous ? Call::ssend : Call::send, operation.send_to, operation.send_tag,
            operation.send_bytes, state.posted_s, end_s, wait);
        break;
    case Operation::Kind::receive:
        if (operation.two_calls) {
            row(Call::irecv, operation.receive_from, operation.receive_tag, state.received_bytes, state.posted_s,
                state.posted_s, {});
        }
        row(operation.two_calls ? Call::wait : Call::receive, operation.receive_from, operation.receive_tag,
            state.received_bytes, state.posted_s, done_s, wait);
        break;
    default: { // an exchange is three calls of the real program, the first of which does not wait
        const Rank source = operation.receive_from;
        const Rank target = operation.send_to;
        if (operation.synchronous) {
            const double called_s = state.clock_s; // with the overhead of the send paid
            const double received_s = std::max(called_s, state.arrival_s);
            const Wait of_receive = take_first(received_s - called_s);
            row(Call::issend, target, operation.send_tag, operation.send_bytes, state.posted_s, called_s, {});
            row(Call::receive, source, operation.receive_tag, state.received_bytes, called_s,
                received_s + state.receive_overhead_s, of_receive);
            row(Call::wait, target, operation.send_tag, operation.send_bytes, received_s + state.receive_overhead_s,
                done_s, wait);
        } else {
            const Wait of_send = take_first(state.send_done_s - state.clock_s);
            row(Call::irecv, source, operation.receive_tag, state.received_bytes, state.posted_s, state.posted_s, {});
            row(Call::send, target, operation.send_tag, operation.send_bytes, state.posted_s, state.send_done_s,
                of_send);
            row(Call::wait, source, operation.receive_tag, state.received_bytes, state.send_done_s, done_s, wait);
        }
        break;
    }
    }
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
            text += " waits for the others of its group";
        } else if (state.receive_pending || state.awaiting) {
            text += " waits for a message from rank " + std::to_string(state.operation.receive_from) + " (tag " +
                    std::to_string(state.operation.receive_tag) + ")";
        } else {
            text += " waits for rank " + std::to_string(state.operation.send_to) + " to receive (tag " +
                    std::to_string(state.operation.send_tag) + ")";
        }
    }
    return text;
}

} // namespace lepaute::mpi
