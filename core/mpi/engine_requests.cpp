// MPI_Isend, MPI_Irecv and the waits for them.

#include "mpi/engine.hpp"

#include <algorithm>

namespace lepaute::mpi {

void Engine::post_isend(Rank rank, Message& message) {
    RankState& sender = ranks_[rank];
    sender.send_pending = false;
    const std::uint32_t number = sender.operation.request;
    Request& request = requests_[rank].at(number);
    request = {.state = message.sender_waits ? Request::State::open : Request::State::done,
               .peer = message.to,
               .tag = message.tag,
               .posted_s = sender.posted_s,
               .done_s = sender.clock_s,
               .start_s = sender.clock_s,
               .bytes = message.bytes};
    if (message.sender_waits) {
        message.send_request = number;
    }
}

void Engine::post_irecv(Rank rank) {
    RankState& state = ranks_[rank];
    // With a source, the messages that a receive may take are in the order of their sender, whatever their dates.
    if (state.operation.receive_from == any && state.clock_s > now_s_) {
        state.event = Event::irecv;
        queue_.set(rank, state.clock_s);
    } else {
        open_receive(rank);
    }
}

void Engine::open_receive(Rank rank) {
    RankState& state = ranks_[rank];
    RankRequests& requests = requests_[rank];
    const std::uint32_t number = state.operation.request;
    Request& request = requests.at(number);
    request = {.state = Request::State::open,
               .receives = true,
               .peer = state.operation.receive_from,
               .tag = state.operation.receive_tag,
               .posted_s = state.clock_s};
    if (state.operation.two_calls) {
        trace_call(rank, Call::irecv, request.peer, request.tag, state.clock_s, 0.0);
    }
    const Unmatched receive{request.peer, request.tag, number};
    const std::uint32_t found = take_unexpected(state, receive);
    if (found != none) {
        match_request(found, number);
    } else {
        requests.unmatched.push_back(receive);
    }
    state.found_s = never;
    resume(rank, state.clock_s);
}

/// Gives a message that has been posted to the first receive that takes it.
void Engine::offer(std::uint32_t id) {
    const Message& message = messages_[id];
    RankRequests& requests = requests_[message.to];
    const auto receive = std::ranges::find_if(
        requests.unmatched, [&](const Unmatched& one) { return one.takes(message.from, message.tag); });
    if (receive == requests.unmatched.end()) {
        add_unexpected(ranks_[message.to], id);
        wake_who_asks(id);
        return;
    }
    const std::uint32_t number = receive->request;
    requests.unmatched.erase(receive);
    match_request(id, number);
}

void Engine::match_request(std::uint32_t id, std::uint32_t number) {
    Message& message = messages_[id];
    Request& request = requests_[message.to].of[number];
    request.peer = message.from;
    request.tag = message.tag;
    request.nth = message.nth;
    message.matched = true;
    message.receive_request = number;
    count_size(statistics_, message.link_class, message.bytes);
    if (!message.started) {
        const double date_s = std::max(message.ready_s, request.posted_s);
        if (date_s > now_s_ && !message.local) {
            delayed_.emplace(date_s, id);
        } else {
            start_transfer(id, date_s);
        }
    } else if (message.arrival_known) {
        arrive(id, message.arrival_s);
    }
}

void Engine::arrive_at_request(std::uint32_t id, double date_s) {
    const Message message = messages_[id];
    free_messages_.push_back(id);
    requests_[message.to].of[message.receive_request].overhead_s = receive_overhead_s(message);
    complete(message.to, message.receive_request, date_s, message);
    if (message.send_request != no_request) {
        complete(message.from, message.send_request, date_s, message);
    } else if (message.sender_waits) { // in MPI_Send
        RankState& sender = ranks_[message.from];
        sender.wait =
            Wait::until(date_s, message.ready_s, message.start_s, date_s - message.start_s - lone_transfer_s(message));
        sender.send_pending = false;
        sender.send_done_s = std::max(sender.send_done_s, date_s);
        finish_if_complete(message.from);
    }
}

void Engine::complete(Rank rank, std::uint32_t number, double date_s, const Message& message) {
    RankRequests& requests = requests_[rank];
    Request& request = requests.of[number];
    request.state = Request::State::done;
    request.done_s = date_s;
    request.start_s = message.start_s;
    request.lone_s = lone_transfer_s(message);
    request.bytes = message.bytes;
    tell_wait(rank, request, date_s);
}

/// That a request has ended, the wait that the rank is in, if it is for that.
void Engine::tell_wait(Rank rank, const Request& request, double date_s) {
    if (!request.waited_for) {
        return;
    }
    RankRequests& requests = requests_[rank];
    if (!requests.for_any) {
        if (--requests.left == 0) {
            end_wait(rank);
        }
        return;
    }
    RankState& state = ranks_[rank];
    const double chosen_s = std::max(date_s, now_s_);
    if (state.event != Event::choose || chosen_s < queue_.date_s(rank)) {
        state.event = Event::choose; // until then another one may end before it
        queue_.set(rank, chosen_s);
    }
}

Engine::Awaiter<void> Engine::wait(Rank rank, std::span<const std::uint32_t> requests, Call call, bool for_any) {
    RankRequests& own = requests_[rank];
    own.waited.assign(requests.begin(), requests.end());
    own.call = call;
    own.for_any = for_any;
    return operation<void>(rank, {.kind = Kind::wait});
}

void Engine::post_wait(Rank rank) {
    RankRequests& requests = requests_[rank];
    std::erase_if(requests.waited, [&](std::uint32_t number) {
        return number >= requests.of.size() || requests.of[number].state == Request::State::none;
    });
    requests.left = 0;
    for (const std::uint32_t number : requests.waited) {
        Request& request = requests.of[number];
        request.waited_for = true;
        requests.left += request.state == Request::State::open ? 1 : 0;
    }
    if (requests.left == 0 && (!requests.for_any || requests.waited.empty())) {
        end_wait(rank);
    } else if (requests.for_any && requests.left < requests.waited.size()) {
        const double first_s = requests.of[first_ended(rank)].done_s;
        if (first_s <= now_s_) {
            end_wait(rank);
        } else {
            ranks_[rank].event = Event::choose;
            queue_.set(rank, first_s);
        }
    }
}

std::uint32_t Engine::first_ended(Rank rank) const {
    const RankRequests& requests = requests_[rank];
    std::uint32_t first = no_request;
    for (const std::uint32_t number : requests.waited) {
        const Request& request = requests.of[number];
        if (request.state == Request::State::done &&
            (first == no_request || request.done_s < requests.of[first].done_s)) {
            first = number;
        }
    }
    return first;
}

/// What the wait for a request that has ended takes.
void Engine::pay(Rank rank, Request& request, Wait& waited) {
    RankState& state = ranks_[rank];
    if (request.of_agent) {
        const double took_s = request.done_s - request.posted_s;
        request.overhead_s *= took_s > 0.0 ? std::clamp((state.posted_s - request.posted_s) / took_s, 0.0, 1.0) : 1.0;
    }
    if (request.done_s > state.clock_s) {
        waited.add(Wait::until(request.done_s, state.clock_s, request.start_s,
                               request.done_s - request.start_s - request.lone_s));
        state.clock_s = request.done_s;
    }
    spend(rank, Share::overhead, request.overhead_s);
    request.state = Request::State::none;
}

void Engine::end_wait(Rank rank) {
    RankRequests& requests = requests_[rank];
    RankState& state = ranks_[rank];
    for (const std::uint32_t number : requests.waited) {
        requests.of[number].waited_for = false;
    }
    if (requests.for_any) {
        requests.waited.assign(requests.waited.empty() ? 0U : 1U, first_ended(rank));
    } else { // as a library's progress: each when it has come
        std::ranges::sort(requests.waited, [&](std::uint32_t one, std::uint32_t other) {
            const double a_s = requests.of[one].done_s;
            const double b_s = requests.of[other].done_s;
            return a_s < b_s || (a_s == b_s && one < other);
        });
    }
    Wait waited;
    for (const std::uint32_t number : requests.waited) {
        pay(rank, requests.of[number], waited);
    }
    waited.add_to(state.shares_s);
    if (trace_.on() && traced(rank)) {
        double received_bytes = 0.0;
        for (const std::uint32_t number : requests.waited) {
            received_bytes += requests.of[number].receives ? requests.of[number].bytes : 0.0;
        }
        const bool for_one = requests.waited.size() == 1;
        const Request one = for_one ? requests.of[requests.waited.front()] : Request{};
        trace_call(rank, requests.call, one.peer, one.tag, state.posted_s, state.clock_s - state.posted_s,
                   for_one ? one.bytes : received_bytes, waited);
    }
    resume(rank, state.clock_s);
}

// ---- what a library does for a rank beside what that does itself: collective operations that do not block

void Engine::begin_agent(Rank agent, double date_s) {
    RankState& state = ranks_[agent];
    state.clock_s = std::max(state.clock_s, date_s);
    state.operation.kind = Kind::none;
    ready_.push_back(agent);
}

void Engine::open_request(Rank rank, std::uint32_t number, double bytes) {
    requests_[rank].at(number) = {.state = Request::State::open, .posted_s = ranks_[rank].clock_s, .bytes = bytes};
}

void Engine::end_request(Rank rank, std::uint32_t number, double date_s, double late_s, double overhead_s) {
    Request& request = requests_[rank].of[number];
    request.state = Request::State::done;
    request.done_s = date_s;
    request.start_s = std::min(date_s, request.posted_s + late_s); // as if all of the lateness came first
    request.lone_s = date_s - request.start_s;
    request.overhead_s = overhead_s;
    request.of_agent = true;
    tell_wait(rank, request, date_s);
}

std::optional<Engine::Unreceived> Engine::unreceived() const {
    for (const RankState& state : ranks_) {
        if (state.unexpected != none) {
            const Message& message = messages_[state.unexpected];
            return Unreceived{message.from, message.to, message.tag, message.bytes};
        }
    }
    return std::nullopt;
}

} // namespace lepaute::mpi
