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
        } else if (state.operation.kind == Operation::Kind::wait) {
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
