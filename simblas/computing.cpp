// CPU time between two calls of MPI. SMPI calls smpi_bench_end() where a call of MPI begins and smpi_bench_begin()
// where it ends; both are taken over here, and SMPI's own measurement is off.

#include "computing.hpp"

#include "charge.h"
#include "kernels.hpp"
#include "memory_load.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <dlfcn.h>

namespace lepaute::simblas {

namespace {

constexpr double stopped = -1.0;
constexpr int readings = 200;
constexpr double least_to_move_s = 100e-6;

double& cost_of_reading_s() {
    static double seconds = 0.0;
    return seconds;
}

/// Name and offset: ranks have copies of the program at addresses of their own.
std::string name_of(const void* place) {
    Dl_info info{};
    if (place == nullptr || dladdr(place, &info) == 0) {
        return "start";
    }
    const auto offset =
        static_cast<std::size_t>(static_cast<const char*>(place) - static_cast<const char*>(info.dli_fbase));
    std::array<char, 2 * sizeof offset> digits{};
    const char* end = std::to_chars(digits.data(), digits.data() + digits.size(), offset, 16).ptr;
    return {digits.data(), static_cast<std::size_t>(end - digits.data())};
}

Site* site_of(const void* place) {
    State& there = state();
    const auto known = there.site_of_place.find(place);
    if (known != there.site_of_place.end()) {
        return known->second;
    }
    const std::string name = name_of(place);
    const auto [at, is_new] = there.sites.try_emplace(name);
    if (is_new) {
        const auto& given = there.request.slowdowns;
        const auto found = given.find(name);
        at->second.slowdown = found == given.end() ? there.request.slowdown : found->second;
    }
    return there.site_of_place[place] = &at->second;
}

/// Of the rank's node relative to the mean of all, as their rates of dgemm differ.
double slowness(const Rank& /*rank*/) {
    const double mean = state().request.host_flops;
    return mean > 0.0 ? mean / simgrid::s4u::this_actor::get_host()->get_speed() : 1.0;
}

/// Each rank computes on a cpu of its own where there are enough: it finds its data in that one's caches, and not
/// those of the rank that computed before. Not for short intervals, since the change takes some microseconds.
void move_to_own_cpu(const Rank& rank) {
    const std::vector<int>& cpus = state().request.rank_cpus;
    static int current = -1;
    if (cpus.empty() || rank.site->time_s < least_to_move_s * static_cast<double>(rank.site->visits)) {
        return;
    }
    const int cpu = cpus[rank.number % cpus.size()];
    if (cpu != current) {
        pin(cpu);
        current = cpu;
    }
}

} // namespace

void begin_call(Rank& rank, const void* caller, double least_s) {
    if (state().request.measures) {
        account(rank, least_s);
        rank.in_call = true;
        rank.caller = caller;
    }
}

void account(Rank& rank, double least_s) {
    State& there = state();
    if (!there.request.measures || rank.clock_s < 0.0) {
        return;
    }
    const double now = cpu_s();
    const double seconds = now - rank.clock_s - cost_of_reading_s() - rank.not_own_s;
    rank.clock_s = now;
    rank.not_own_s = 0.0;
    if (seconds <= least_s || rank.site == nullptr) {
        return;
    }
    there.measured_s += seconds;
    add_interval(*rank.site, seconds);
    if (there.request.charges) {
        const double charged = seconds * rank.site->slowdown * slowness(rank);
        log_call(rank, static_cast<int>(hpl::kernel_names.size()) + lepaute_routine_count, charged, {});
        there.charged_s += charged;
        rank.pending_s += charged;
    }
}

void restart_clock(Rank& rank) {
    if (state().request.measures) {
        rank.clock_s = cpu_s();
    }
}

void end_call(Rank& rank) {
    if (!state().request.measures) {
        return;
    }
    rank.in_call = false;
    rank.site = site_of(rank.caller);
    choose_load(*rank.site);
    move_to_own_cpu(rank);
    rank.not_own_s = 0.0;
    rank.clock_s = cpu_s();
}

void prepare_measurement() {
    if (!state().request.measures) {
        return;
    }
    double least = HUGE_VAL;
    for (int i = 0; i < readings; ++i) {
        const double before = cpu_s();
        least = std::min(least, cpu_s() - before);
    }
    cost_of_reading_s() = least;
    start_memory_load();
    keep_cpus_awake();
}

} // namespace lepaute::simblas

using namespace lepaute::simblas;

// NOLINTBEGIN(readability-identifier-naming): SMPI's names
extern "C" void smpi_bench_end() {
    static const auto entry = reinterpret_cast<void (*)()>(dlsym(RTLD_NEXT, "smpi_bench_end"));
    if (state().request.measures) {
        if (Rank* rank = current_rank()) {
            if (!rank->in_call) { // else it was read on the way in
                account(*rank);
            }
            rank->clock_s = stopped;
        }
    }
    entry();
}

extern "C" void smpi_bench_begin() {
    static const auto entry = reinterpret_cast<void (*)()>(dlsym(RTLD_NEXT, "smpi_bench_begin"));
    entry();
    if (Rank* rank = current_rank()) {
        end_call(*rank);
    }
}
// NOLINTEND(readability-identifier-naming)
