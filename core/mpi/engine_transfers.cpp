// Messages on their way: over the links they share with others, or inside a node.

#include "mpi/engine.hpp"

#include <algorithm>

namespace lepaute::mpi {

void Engine::start_transfer(std::uint32_t id, double date_s) {
    Message& message = messages_[id];
    message.started = true;
    message.start_s = date_s;
    if (message.local) {
        arrive(id, date_s + lone_transfer_s(message) * message.noise_factor + message.extra_s);
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

void Engine::become_busy(Message& message) {
    const bool same = same_node(message.from, message.to);
    const models::NetworkClass& busy = same ? network_.loopback_busy : network_.remote_busy;
    if (busy.segments.empty() || (!same && load_matters())) {
        return;
    }
    const models::Segment& segment = busy.at(message.bytes);
    const bool has_gaps = message.link_class != LinkClass::loopback && message.link_class != LinkClass::remote;
    message.link_class = same ? LinkClass::loopback_busy : LinkClass::remote_busy;
    if (!message.started && !(has_gaps && network_.noncontiguous_modelled)) {
        message.segment = &segment;
        return;
    }
    // An eager message has come already: what it costs more passes in the receive. One with gaps of its own cost gets
    // what one without them costs more.
    const models::Segment& quiet = class_between(message.from, message.to).at(message.bytes);
    const double more_s = segment.one_way_s(message.bytes) - quiet.one_way_s(message.bytes);
    message.extra_s = std::max(0.0, more_s) * message.noise_factor;
    if (message.started) {
        message.arrival_s += message.extra_s;
    }
}

/// A rendezvous between nodes takes what it does between quiet ones, and of what it takes longer between nodes whose
/// other cores all compute the share of those that compute now.
void Engine::meet_load(Message& message) {
    const double load =
        0.5 * (load_.share(ranks_[message.from].node, now_s_) + load_.share(ranks_[message.to].node, now_s_));
    if (load <= 0.0) {
        return;
    }
    const models::Segment& quiet = network_.remote.at(message.bytes);
    const models::Segment& busy = network_.remote_busy.at(message.bytes);
    message.load_latency_s = std::max(-message.segment->latency_s, load * (busy.latency_s - quiet.latency_s));
    const double busy_byte_s = 1.0 / busy.bandwidth_Bps;
    message.load_byte_s = std::max(load * busy_byte_s - 1.0 / message.segment->bandwidth_Bps,
                                   load * (busy_byte_s - 1.0 / quiet.bandwidth_Bps));
    count_size(statistics_, LinkClass::remote_busy, message.bytes);
}

double Engine::latency_s(const Message& message) const {
    const double cables_s = cable_latency_s(message.from, message.to, *message.segment);
    const double seconds = message.segment->latency_s + message.load_latency_s + cables_s;
    return seconds * message.noise_factor + message.extra_s;
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
    double most = 0.0;
    const auto pass = [&](net::LinkId link) {
        if (const std::uint32_t flows = flows_.on_link(link); flows > 0) {
            most = std::max(most, flows * network_.node_link_Bps / topology_.links()[link].capacity_Bps);
        }
    };
    if (plain_switch_) {
        pass(from);
        pass(node_count_ + to);
        return most;
    }
    std::vector<net::LinkId> links;
    topology_.route(from, to, links);
    std::ranges::for_each(links, pass);
    return most;
}

double Engine::lone_transfer_s(const Message& message) noexcept {
    return message.segment->latency_s + message.load_latency_s + message.bytes / message.segment->bandwidth_Bps +
           message.bytes * message.load_byte_s;
}

double Engine::least_transfer_s(double bytes) const noexcept {
    double least_s = never;
    for (const auto member : models::Network::classes) {
        const models::NetworkClass& network = network_.*member;
        if (!network.segments.empty()) {
            const models::Segment& segment = network.at(bytes);
            const double factor = with_noise_ ? segment.least_noise_factor() : 1.0;
            least_s = std::min(least_s, (segment.latency_s + bytes / segment.bandwidth_Bps) * factor);
        }
    }
    return least_s;
}

bool Engine::may_be_eager(double bytes) const noexcept {
    return std::ranges::any_of(models::Network::classes, [&](const auto member) {
        const models::NetworkClass& network = network_.*member;
        return !network.segments.empty() && network.at(bytes).protocol == models::Protocol::eager;
    });
}

void Engine::start_flow(std::uint32_t id) {
    Message& message = messages_[id];
    const std::uint32_t from = ranks_[message.from].node;
    const std::uint32_t to = ranks_[message.to].node;
    const bool same = from == to;
    if (!same && message.protocol == models::Protocol::rendezvous && load_matters()) {
        meet_load(message);
    }
    const double link_Bps = same ? network_.loopback_Bps : network_.node_link_Bps;
    const double quiet_Bps = message.segment->bandwidth_Bps;
    const double segment_Bps = message.load_byte_s == 0.0 ? quiet_Bps : 1.0 / (1.0 / quiet_Bps + message.load_byte_s);
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
    if (message.receive_request != no_request) {
        arrive_at_request(id, date_s);
        return;
    }
    RankState& receiver = ranks_[message.to];
    const double beyond_s = date_s - message.start_s - lone_transfer_s(message);
    receiver.receive_pending = false;
    receiver.arrival_s = date_s;
    receiver.receive_overhead_s = receive_overhead_s(message);
    receiver.received_bytes = message.bytes;
    if (receiver.send_pending || receiver.send_done_s <= date_s) { // of an exchange, the later end counts
        receiver.wait = Wait::until(date_s, receiver.clock_s, message.start_s, beyond_s);
    }
    const Rank from = message.from;
    const Rank to = message.to;
    free_messages_.push_back(id);
    if (message.send_request != no_request) {
        complete(from, message.send_request, date_s, message);
    } else if (message.sender_waits) {
        RankState& sender = ranks_[from];
        sender.send_pending = false;
        sender.send_done_s = std::max(sender.send_done_s, date_s);
        if (sender.operation.kind == Kind::send || sender.arrival_s < date_s || sender.receive_pending) {
            sender.wait = Wait::until(date_s, message.ready_s, message.start_s, beyond_s);
        }
        finish_if_complete(from);
    }
    finish_if_complete(to);
}

} // namespace lepaute::mpi
