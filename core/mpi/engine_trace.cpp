// What the engine tells about a run: rows of a trace, shares of steps, who waits for whom.

#include "mpi/engine.hpp"

#include <string>

namespace lepaute::mpi {

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

void Engine::trace_call(Rank rank, Call call, Rank peer, std::uint32_t tag, double start_s, double duration_s,
                        double bytes, const Wait& wait) {
    if (traced(rank)) {
        record(rank, {.code = static_cast<std::int16_t>(call),
                      .peer = static_cast<std::int32_t>(peer),
                      .tag = tag == any ? -1 : static_cast<std::int64_t>(tag),
                      .start_s = start_s,
                      .duration_s = duration_s,
                      .size_bytes = bytes,
                      .late_s = wait.late_s,
                      .transfer_s = wait.transfer_s,
                      .contention_s = wait.contention_s});
    }
}

void Engine::trace_operation(const RankState& state, Rank rank, double end_s) {
    const Operation& operation = state.operation;
    Wait wait = end_s > state.clock_s ? state.wait : Wait{};
    // What of the wait lies in its first `seconds`: the other side is late first, then the transfer begins.
    const auto take_first = [&wait](double seconds) {
        Wait taken{};
        taken.late_s = std::min(wait.late_s, seconds);
        const double moving_s = wait.transfer_s + wait.contention_s;
        const double share = moving_s > 0.0 ? std::min(1.0, (seconds - taken.late_s) / moving_s) : 0.0;
        taken.transfer_s = share * wait.transfer_s;
        taken.contention_s = share * wait.contention_s;
        wait.add(taken, -1.0);
        return taken;
    };
    const double done_s = end_s + state.receive_overhead_s;
    const double posted_s = state.posted_s;
    const auto of_send = [&](Call call, double from_s, double to_s, const Wait& waited) {
        trace_call(rank, call, operation.send_to, operation.send_tag, from_s, to_s - from_s, operation.send_bytes,
                   waited);
    };
    const auto of_receive = [&](Call call, double from_s, double to_s, const Wait& waited) {
        trace_call(rank, call, operation.receive_from, operation.receive_tag, from_s, to_s - from_s,
                   state.received_bytes, waited);
    };
    if (operation.kind == Kind::send) {
        of_send(operation.synchronous ? Call::ssend : Call::send, posted_s, end_s, wait);
    } else if (operation.kind == Kind::receive) {
        if (operation.two_calls) {
            of_receive(Call::irecv, posted_s, posted_s, {});
        }
        of_receive(operation.two_calls ? Call::wait : Call::receive, posted_s, done_s, wait);
    } else if (operation.synchronous) { // an exchange is three calls of the real program: the first does not wait
        const double called_s = state.clock_s; // with the overhead of the send paid
        const double received_s = std::max(called_s, state.arrival_s);
        const Wait first = take_first(received_s - called_s);
        const double then_s = received_s + state.receive_overhead_s;
        of_send(Call::issend, posted_s, called_s, {});
        of_receive(Call::receive, called_s, then_s, first);
        of_send(Call::wait, then_s, done_s, wait);
    } else {
        const Wait first = take_first(state.send_done_s - state.clock_s);
        of_receive(Call::irecv, posted_s, posted_s, {});
        of_send(Call::send, posted_s, state.send_done_s, first);
        of_receive(Call::wait, state.send_done_s, done_s, wait);
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
        if (state.operation.kind == Kind::join) {
            text += " waits for the others of its group";
        } else if (state.operation.kind == Kind::wait) {
            text += " waits for " + std::to_string(requests_[rank].left) + " of its requests";
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
