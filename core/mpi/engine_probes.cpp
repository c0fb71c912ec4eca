// MPI_Iprobe and MPI_Probe: what a rank can see, when, and who is told that a message has come.

#include "mpi/engine.hpp"

#include <algorithm>

namespace lepaute::mpi {

void Engine::fruitless_probe(Rank rank, Rank from, std::uint32_t tag) {
    trace_call(rank, Call::iprobe, from, tag, ranks_[rank].clock_s, network_.iprobe_s);
    spend_probe(rank);
}

Engine::Probed Engine::look(Rank rank, Rank from, std::uint32_t tag) const noexcept {
    const RankState& state = ranks_[rank];
    const double seen_s = probe_sees_s(state.clock_s, state.progress_s);
    const std::uint32_t found = first_for(state, {from, tag});
    if (found != none) {
        const double date_s = visible_s(messages_[found]);
        return date_s <= seen_s ? Probed::found : date_s != never || seen_s <= now_s_ ? Probed::nothing : Probed::open;
    }
    // Nothing that is posted later can have come by a date that is settled, nor what its sender posts after that date.
    const double sender_s = queue_.date_s(from);
    return seen_s <= now_s_ || (sender_s != never && sender_s >= seen_s) || ranks_[from].clock_s > seen_s
               ? Probed::nothing
               : Probed::open;
}

void Engine::post_probe(Rank rank) {
    RankState& state = ranks_[rank];
    if (look(rank, state.operation.receive_from, state.operation.receive_tag) != Probed::open) {
        answer_probe(rank);
    } else {
        state.event = Event::probe;
        queue_.set(rank, probe_sees_s(state.clock_s, state.progress_s));
    }
}

void Engine::answer_probe(Rank rank) {
    RankState& state = ranks_[rank];
    const Operation& operation = state.operation;
    state.answer = look(rank, operation.receive_from, operation.receive_tag) == Probed::found;
    if (state.answer) {
        state.found_s = state.clock_s;
    }
    trace_call(rank, Call::iprobe, operation.receive_from, operation.receive_tag, state.clock_s, network_.iprobe_s);
    spend_probe(rank);
    resume(rank, state.clock_s);
}

void Engine::wake_who_asks(std::uint32_t id) {
    const Message& message = messages_[id];
    RankState& state = ranks_[message.to];
    const Unmatched wanted{state.operation.receive_from, state.operation.receive_tag};
    if (!state.awaiting || !wanted.takes(message.from, message.tag) ||
        first_for(state, wanted) != id) { // messages do not overtake each other
        return;
    }
    const double date_s = visible_s(message);
    if (date_s == never) { // still in transfer: arrive() comes back
        return;
    }
    state.awaiting = false;
    if (state.operation.kind == Kind::learn_arrival) {
        state.date_answer_s = date_s;
        end_operation(message.to);
        return;
    }
    state.found_s = state.clock_s;
    if (!requests_.empty()) {
        requests_[message.to].probed = {
            .peer = message.from, .tag = message.tag, .bytes = message.bytes, .nth = message.nth};
    }
    // Probes follow each other without a pause: the one during which the message comes finds it.
    const double seen_s = std::max(state.clock_s, date_s - network_.iprobe_s);
    const double late_s = seen_s - state.clock_s;
    part(state.shares_s, Share::late) += late_s;
    part(state.shares_s, Share::probe) += network_.iprobe_s;
    trace_call(message.to, requests_.empty() ? Call::iprobe : Call::probe, message.from, message.tag, state.clock_s,
               late_s + network_.iprobe_s, 0.0, {.late_s = late_s});
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

} // namespace lepaute::mpi
