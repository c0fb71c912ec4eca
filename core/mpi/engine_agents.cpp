// What a library does for a rank beside what that does itself: collective operations that do not block.

#include "mpi/engine.hpp"

#include <algorithm>

namespace lepaute::mpi {

void Engine::begin_agent(Rank agent, double date_s) {
    RankState& state = ranks_[agent];
    state.clock_s = std::max(state.clock_s, date_s);
    state.operation.kind = Operation::Kind::none;
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

} // namespace lepaute::mpi
