#include "mpi/engine.hpp"

#include <algorithm>
#include <stdexcept>

namespace lepaute::mpi {

namespace {

constexpr std::uint32_t network_noise_stream = 0x4E455400U;
constexpr std::uint32_t look_every = 16; // of many ranks on one link an event takes milliseconds

bool knows_fitted_sizes(const models::Network& network) {
    return std::ranges::any_of(network.classes, [&](const auto member) {
        return (network.*member).fitted_low_bytes > 0.0 || (network.*member).fitted_high_bytes < 1e300;
    });
}

/// Capacities of the links of the topology, then of the loopback link of each node.
std::vector<double> capacities(const net::Topology& topology, const models::Network& network) {
    std::vector<double> capacity;
    for (const net::Link& link : topology.links()) {
        capacity.push_back(link.capacity_Bps);
    }
    capacity.resize(capacity.size() + topology.nodes(), network.loopback_Bps);
    return capacity;
}

} // namespace

Engine::Engine(const models::Network& network, const net::Topology& topology, std::vector<std::uint32_t> node_of_rank,
               std::uint64_t seed, bool with_noise)
    : network_(network), topology_(topology), ranks_(node_of_rank.size()),
      flows_(
          capacities(topology, network), topology.nodes(),
          network.exact_sharing ? net::Sharing::exact : net::Sharing::fair,
          [this](std::uint32_t from, std::uint32_t to, std::vector<net::LinkId>& links) {
              if (from == to) {
                  links.push_back(static_cast<net::LinkId>(topology_.links().size()) + from);
              } else {
                  topology_.route(from, to, links);
              }
          },
          topology.is_plain_switch()),
      queue_(static_cast<std::uint32_t>(node_of_rank.size())), node_count_(topology.nodes()), with_noise_(with_noise),
      counts_sizes_(network.counts_all_sizes || knows_fitted_sizes(network)),
      plain_switch_(topology.is_plain_switch()) {
    if (network.ranks_on_full_node > 1.0 && !network.remote_busy.segments.empty()) {
        std::vector<double> ranks = network.ranks_on_full_nodes;
        ranks.resize(node_count_, network.ranks_on_full_node);
        load_ = NodeLoad(node_of_rank, ranks);
    }
    FramePool::of_this_thread().reset_peak();
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
        ranks_[rank].node = node_of_rank[rank];
        if (with_noise) {
            ranks_[rank].noise = rng::Stream({seed, static_cast<Rank>(rank), network_noise_stream, 0});
        }
    }
}

std::size_t Engine::state_bytes() const noexcept {
    return ranks_.size() * sizeof(RankState) + messages_.size() * sizeof(Message) + queue_.state_bytes() +
           flows_.state_bytes() + FramePool::of_this_thread().peak_bytes();
}

double Engine::run(const std::function<Task(Rank)>& program) {
    std::vector<Task> tasks;
    for (Rank rank = 0; rank < ranks_.size(); ++rank) { // agents too
        tasks.push_back(program(rank));
        ranks_[rank].handle = tasks[rank].handle();
        ready_.push_back(rank);
    }
    shares_at_step_.resize(trace_.on() ? ranks_.size() : 0);
    const auto resume_ready = [&] {
        std::size_t next = 0;
        while (next < ready_.size()) { // grows while we go through it
            look();
            go_on(ready_[next++]);
        }
        ready_.clear();
    };
    resume_ready();
    while (queue_.next_date_s() != never || flows_.next_end_s() != never || !delayed_.empty()) {
        look();
        if (!delayed_.empty() && delayed_.top().first <= std::min(flows_.next_end_s(), queue_.next_date_s()))
            [[unlikely]] {
            const auto [date_s, id] = delayed_.top();
            delayed_.pop();
            now_s_ = std::max(now_s_, date_s);
            start_transfer(id, date_s);
            resume_ready();
            continue;
        }
        if (flows_.next_end_s() <= queue_.next_date_s()) {
            now_s_ = std::max(now_s_, flows_.next_end_s());
            if (fetches()) {
                fetch_for_flow_end();
            }
            const std::uint32_t id = flows_.finish_next();
            if (fetches()) {
                const Message& message = messages_[id];
                fetch_program(ranks_[message.to]);
                if (message.sender_waits) {
                    fetch_program(ranks_[message.from]);
                }
            }
            arrive(id, now_s_ + latency_s(messages_[id]));
            resume_ready();
            continue;
        }
        now_s_ = std::max(now_s_, queue_.next_date_s());
        const Rank rank = queue_.next_source();
        RankState& state = ranks_[rank];
        if (fetches()) {
            fetch_program(state);
            fetch_rank(std::min(queue_.source_after_next(), static_cast<Rank>(ranks_.size() - 1)));
        }
        const Event event = std::exchange(state.event, Event::none);
        if (event == Event::receive) {
            state.event = Event::send;
            queue_.set(rank, state.clock_s);
            post_receive(rank, state.posted_s);
        } else if (event == Event::send) {
            handle_send(rank);
        } else if (event == Event::probe) {
            answer_probe(rank);
        } else if (event == Event::wake) {
            go_on(rank);
        } else if (event == Event::irecv) {
            open_receive(rank);
        } else if (event == Event::choose) {
            end_wait(rank);
        } else {
            start_flow(state.outgoing);
        }
        resume_ready();
        if (state.event == Event::none) { // else its next date has taken the place of this one
            queue_.set(rank, never);
        }
    }
    looks_ = look_every - 1;
    look();
    double latest_s = 0.0;
    bool all_done = true;
    for (const Task& task : tasks) {
        task.rethrow();
    }
    for (Rank rank = 0; rank < size(); ++rank) {
        all_done = all_done && tasks[rank].done();
        latest_s = std::max(latest_s, ranks_[rank].clock_s);
        if (trace_.on()) {
            set_step(rank, -1);
        }
    }
    if (!all_done) {
        throw Deadlock(who_waits_for_whom(tasks));
    }
    return latest_s;
}

/// An operation of the rank has ended.
void Engine::go_on(Rank rank) {
    RankState& state = ranks_[rank];
    if (state.steps != nullptr) {
        if (!state.steps->advance()) {
            return;
        }
        state.steps = nullptr;
    }
    state.handle.resume();
}

void Engine::fetch_rank(Rank rank) const noexcept {
    net::fetch(&ranks_[rank], sizeof(RankState));
    for (const std::span<const std::byte> first : companions_) {
        net::fetch(first.data() + rank * first.size(), first.size());
    }
}

void Engine::fetch_program(const RankState& state) noexcept {
    if (state.steps != nullptr) {
        net::fetch(state.steps, steps_bytes);
    } else {
        net::fetch(state.handle.address(), frame_bytes);
    }
}

/// The message has been fetched when the flow came next.
void Engine::fetch_for_flow_end() const noexcept {
    const Message& message = messages_[flows_.next_tag()];
    fetch_rank(message.to);
    if (message.sender_waits) {
        fetch_rank(message.from);
    }
    net::fetch(messages_.data() + flows_.fetch_after_next(), sizeof(Message));
}

/// It will soon be posted.
void Engine::fetch_for_send(const Message& message) const noexcept {
    const std::uint32_t from = ranks_[message.from].node;
    net::fetch(&ranks_[message.to], sizeof(RankState));
    flows_.fetch_source(from);
    if (plain_switch_) {
        flows_.fetch_link(from);
    }
}

void Engine::look() {
    if (progress_ == nullptr || ++looks_ % look_every != 0) {
        return;
    }
    progress_->begun_steps.store(begun_steps_, std::memory_order_relaxed);
    if (progress_->cancelled.load(std::memory_order_relaxed)) {
        looks_ = look_every - 1; // a rank keeps what it throws
        throw std::runtime_error("the run was cancelled");
    }
}

bool Engine::post(Rank rank) {
    look();
    RankState& state = ranks_[rank];
    const Operation& operation = state.operation;
    if (rank >= size() && network_.progress_in_calls) {
        state.clock_s = std::max(state.clock_s, ranks_[rank_of_agent_[rank - size()]].posted_s);
    }
    state.posted_s = state.clock_s;
    state.inside_post = true;
    state.send_pending = false;
    state.receive_pending = false;
    state.receive_overhead_s = 0.0;
    switch (operation.kind) {
    case Kind::send:
    case Kind::exchange:
    case Kind::isend:
        prepare_send(rank);
        break;
    case Kind::irecv:
        post_irecv(rank);
        break;
    case Kind::wait:
        post_wait(rank);
        break;
    case Kind::receive:
        post_receive(rank, state.clock_s);
        finish_if_complete(rank);
        break;
    case Kind::probe:
        post_probe(rank);
        break;
    case Kind::await_message:
    case Kind::learn_arrival: {
        state.awaiting = true;
        const std::uint32_t found = first_for(state, {operation.receive_from, operation.receive_tag});
        if (found != none) {
            wake_who_asks(found);
        }
        break;
    }
    default:
        break;
    }
    const bool suspended = state.inside_post;
    state.inside_post = false;
    return suspended;
}

void Engine::release(Rank last, Meeting& meeting) {
    ranks_[last].progress_s = ranks_[last].clock_s;
    ranks_[last].left_s = ranks_[last].clock_s;
    for (const Rank present : meeting.present) {
        RankState& other = ranks_[present];
        other.operation.kind = Kind::none;
        other.progress_s = other.clock_s;
        other.left_s = other.clock_s;
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
    message.local = same_node(rank, message.to) && !network_.loopback_shared;
    message.link_class = link_class_between(rank, message.to, operation.noncontiguous);
    message.segment = &network_.of(message.link_class).at(message.bytes);
    message.protocol = operation.synchronous ? models::Protocol::rendezvous : message.segment->protocol;
    message.sender_waits = message.protocol == models::Protocol::rendezvous;
    if (with_noise_ && !message.segment->noise.modes.empty()) {
        message.noise_factor = message.segment->noise.factor(sender.noise, sender.noise_index++);
    } else if (with_noise_ && message.segment->noise_relative_sd > 0.0) {
        const double noise = sender.noise.centred_half_normal(sender.noise_index++);
        message.noise_factor = std::max(0.0, 1.0 + message.segment->noise_relative_sd * noise);
    }
    ++statistics_.messages;
    statistics_.bytes += message.bytes;
    if (is_for_requests(message)) {
        message.nth = requests_[rank].sent++;
    }
    // A synchronous exchange is MPI_Issend, MPI_Recv, MPI_Wait; the usual one sends by MPI_Send, or by MPI_Isend.
    const bool exchanges_at_once = operation.kind == Kind::exchange && (operation.synchronous || operation.two_calls);
    const bool sends_at_once = exchanges_at_once || operation.kind == Kind::isend || rank >= size();
    const models::Overhead& overhead = sends_at_once ? message.segment->isend : message.segment->send;
    spend(rank, Share::overhead, overhead.of(message.bytes) * overhead_factor(message));
    sender.outgoing = id;
    sender.send_done_s = sender.clock_s;
    if (fetches()) {
        fetch_for_send(message);
    }
    if (message.local && !by_date_) {
        handle_send(rank); // the order of dates does not matter
    } else if (receives_apart(sender, message)) {
        sender.event = Event::receive;
        queue_.set(rank, sender.posted_s);
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
    const bool is_isend = sender.operation.kind == Kind::isend;
    if (is_isend) {
        post_isend(rank, messages_[id]);
    } else {
        sender.send_pending = messages_[id].sender_waits;
    }
    if (sender.operation.kind == Kind::exchange && !receives_apart(sender, messages_[id])) {
        post_receive(rank, sender.operation.synchronous ? sender.clock_s : sender.posted_s);
    }
    const Message& message = messages_[id];
    RankState& receiver = ranks_[message.to];
    if (message.protocol == models::Protocol::eager) {
        start_transfer(id, message.ready_s);
    }
    if (!is_for_requests(message) && receiver.receive_unmatched && receiver.operation.receive_from == rank &&
        receiver.operation.receive_tag == message.tag) {
        match(id, receiver.receive_posted_s);
    } else if (!requests_.empty()) { // also of a collective operation that posts its receives
        offer(id);
    } else {
        add_unexpected(receiver, id);
        wake_who_asks(id);
    }
    if (is_isend) {
        trace_call(rank, Call::isend, sender.operation.send_to, sender.operation.send_tag, sender.posted_s,
                   sender.clock_s - sender.posted_s, sender.operation.send_bytes);
        resume(rank, sender.clock_s);
    } else {
        finish_if_complete(rank);
    }
}

void Engine::post_receive(Rank rank, double posted_s) {
    RankState& state = ranks_[rank];
    state.receive_pending = true;
    state.receive_unmatched = true;
    state.receive_posted_s = posted_s;
    const std::uint32_t found = take_unexpected(state, {state.operation.receive_from, state.operation.receive_tag});
    if (found != none) {
        match(found, state.receive_posted_s);
    }
    state.found_s = never;
}

void Engine::count_size(Statistics& in, LinkClass which, double bytes) const noexcept {
    if (counts_sizes_) {
        const models::NetworkClass& links = network_.of(which);
        in.use[static_cast<std::size_t>(which)].note(links, links.at(bytes), bytes);
    }
}

void Engine::match(std::uint32_t id, double posted_s) {
    Message& message = messages_[id];
    message.matched = true;
    count_size(statistics_, message.link_class, message.bytes);
    ranks_[message.to].receive_unmatched = false;
    if (!message.started) {
        start_transfer(id, std::max(message.ready_s, posted_s));
    } else if (message.arrival_known) {
        arrive(id, message.arrival_s);
    }
}

void Engine::finish_if_complete(Rank rank) {
    RankState& state = ranks_[rank];
    const Kind kind = state.operation.kind;
    if (state.send_pending || state.receive_pending || state.event != Event::none ||
        (kind != Kind::send && kind != Kind::receive && kind != Kind::exchange)) {
        return;
    }
    double date_s = kind == Kind::receive ? state.clock_s : state.send_done_s;
    if (kind != Kind::send) {
        date_s = std::max(date_s, state.arrival_s);
    }
    if (date_s > state.clock_s) {
        state.wait.add_to(state.shares_s);
    }
    part(state.shares_s, Share::overhead) += state.receive_overhead_s;
    if (trace_.on() && traced(rank)) {
        trace_operation(state, rank, date_s);
    }
    resume(rank, date_s + state.receive_overhead_s);
}

std::uint32_t Engine::first_for(const RankState& state, const Unmatched& wanted) const noexcept {
    std::uint32_t id = state.unexpected;
    while (id != none && !wanted.takes(messages_[id].from, messages_[id].tag)) {
        id = messages_[id].next;
    }
    return id;
}

void Engine::add_unexpected(RankState& state, std::uint32_t id) noexcept {
    std::uint32_t* place = &state.unexpected;
    while (*place != none) {
        place = &messages_[*place].next;
    }
    *place = id;
    messages_[id].next = none;
}

std::uint32_t Engine::take_unexpected(RankState& receiver, const Unmatched& wanted) noexcept {
    std::uint32_t* place = &receiver.unexpected;
    while (*place != none && !wanted.takes(messages_[*place].from, messages_[*place].tag)) {
        place = &messages_[*place].next;
    }
    const std::uint32_t id = *place;
    if (id != none) {
        Message& message = messages_[id];
        *place = message.next;
        if (receiver.found_s != never && message.ready_s > receiver.left_s && message.ready_s < receiver.found_s) {
            become_busy(message);
        }
    }
    return id;
}

std::uint32_t Engine::new_message() {
    if (free_messages_.empty()) {
        messages_.emplace_back();
        return static_cast<std::uint32_t>(messages_.size() - 1);
    }
    const std::uint32_t id = free_messages_.back();
    free_messages_.pop_back();
    static const Message fresh; // copied faster than one made on the stack
    messages_[id] = fresh;
    return id;
}

void Engine::resume(Rank rank, double date_s) {
    RankState& state = ranks_[rank];
    state.clock_s = date_s;
    state.progress_s = date_s;
    if (state.operation.kind != Kind::probe && state.operation.kind != Kind::await_message) {
        state.left_s = date_s;
    }
    end_operation(rank);
}

void Engine::end_operation(Rank rank) {
    RankState& state = ranks_[rank];
    state.operation.kind = Kind::none;
    if (state.inside_post) {
        state.inside_post = false;
    } else {
        ready_.push_back(rank);
    }
}

} // namespace lepaute::mpi
