// The ranks, their computing time, and the calls into SimGrid that let it pass.

#include "computing.hpp"
#include "factors.hpp"
#include "folded_memory.hpp"
#include "progress.hpp"
#include "report.hpp"
#include "request.hpp"
#include "state.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>

namespace lepaute::simblas {

namespace s4u = simgrid::s4u;

State& state() {
    static State the_state;
    return the_state;
}

namespace {

constexpr double least_computed_s = 1e-6; // less is the way from one call of MPI to the next

/// The file that says what is asked for; empty where nobody asks.
std::string asked_by() {
    const char* path = std::getenv("LEPAUTE_EMULATION");
    return path == nullptr ? "" : path;
}

void start() {
    State& there = state();
    const std::string path = asked_by();
    try {
        read_request(path, there.request, there.machine);
        const models::Machine& machine = there.machine;
        there.day = std::make_unique<models::MachineDay>(machine, hpl::kernels, there.request.layers,
                                                         there.request.seeds, there.request.core_of_rank);
        there.ranks.resize(there.request.core_of_rank.size());
    } catch (const std::exception& problem) {
        std::fprintf(stderr, "simblas: %s %s\n", path.c_str(), problem.what());
        std::exit(2);
    }
    for (std::uint32_t number = 0; number < there.ranks.size(); ++number) {
        there.ranks[number].number = number;
    }
    set_folding_block(there.request.fold_block_bytes, there.request.fold_huge);
    if (there.request.own_factors) {
        use_own_factors();
    }
    prepare_measurement();
}

/// Runs when the library is loaded, also into programs that are none of ours: then nothing is asked for.
[[gnu::constructor]] void load() {
    if (!asked_by().empty()) {
        s4u::Engine::on_platform_created_cb(start);
        s4u::Engine::on_time_advance_cb([](double) { write_progress(); }); // a large collective is one call
        s4u::Engine::on_simulation_end_cb(write_report);
    }
}

} // namespace

Rank* current_rank() {
    State& there = state();
    const auto pid = static_cast<std::size_t>(s4u::this_actor::get_pid());
    if (pid < there.rank_of_pid.size() && there.rank_of_pid[pid] != nullptr) {
        return there.rank_of_pid[pid];
    }
    if (there.ranks.empty() || s4u::this_actor::is_maestro()) {
        return nullptr;
    }
    const char* number = s4u::Actor::self()->get_property("rank"); // SMPI's
    if (number == nullptr) {
        return nullptr;
    }
    there.rank_of_pid.resize(std::max(there.rank_of_pid.size(), pid + 1), nullptr);
    return there.rank_of_pid[pid] = &there.ranks.at(std::strtoul(number, nullptr, 10));
}

void pass(Rank& rank, const void* caller) {
    if (rank.sampled.inside) {
        std::fprintf(stderr, "simblas: MPI is called within SMPI_SAMPLE_LOCAL or SMPI_SAMPLE_GLOBAL\n");
        std::exit(2);
    }
    ++state().calls;
    write_progress();
    begin_call(rank, caller);
    if (rank.pending_s <= 0.0) {
        return;
    }
    const bool has_computed = rank.pending_s > least_computed_s;
    const double seconds = rank.pending_s;
    rank.pending_s = 0.0;
    state().computing_s += seconds;
    s4u::this_actor::sleep_for(seconds);
    restart_clock(rank); // other ranks ran in this thread
    start_receives(rank, has_computed, false);
}

double now_s(const Rank& rank) { return s4u::Engine::get_clock() + rank.pending_s; }

} // namespace lepaute::simblas
