// What a call of BLAS, LAPACK or of a kernel of the program's own costs: the platform's model where it has one, else
// the operations over the rate of dgemm.

#include "charge.h"

#include "kernels.hpp"
#include "state.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

namespace lepaute::simblas {

namespace {

std::vector<std::optional<models::KernelNumber>> kernels_of_routines() {
    std::vector<std::optional<models::KernelNumber>> kernels;
    const auto& names = hpl::kernel_names;
    for (int routine = 0; routine < lepaute_routine_count; ++routine) {
        const auto* const at = std::ranges::find(names, std::string_view(lepaute_routines[routine].kernel));
        kernels.emplace_back();
        if (at != names.end()) {
            kernels.back().emplace(static_cast<std::size_t>(at - names.begin()));
        }
    }
    return kernels;
}

/// Floating-point operations per second of the cpu of `rank` in dgemm, without noise; 0 where dgemm has no model.
double rate_flops(const State& there, const Rank& rank) {
    const models::Size& size = there.request.reference;
    const models::KernelCost cost = there.day->cost(rank.number, hpl::Kernel::dgemm, size);
    const double seconds = cost.mean_s * cost.factor;
    return seconds > 0.0 ? 2.0 * size.m * size.n * size.k / seconds : 0.0;
}

} // namespace

void charge_kernel(models::KernelNumber kernel, const models::Size& size) {
    if (Rank* rank = current_rank()) {
        charge_kernel(*rank, kernel, size);
    }
}

void charge_kernel(Rank& rank, models::KernelNumber kernel, const models::Size& size) {
    const double seconds = state().day->duration_s(rank.number, kernel, size);
    log_call(rank, static_cast<int>(kernel.index()), seconds, size);
    rank.pending_s += seconds;
}

} // namespace lepaute::simblas

using namespace lepaute;
using namespace lepaute::simblas;

extern "C" void lepaute_charge(int routine, double m, double n, double k, double flops) {
    Rank* rank = current_rank();
    if (rank == nullptr) {
        return;
    }
    const NotOwn ours(*rank);
    static const std::vector<std::optional<models::KernelNumber>> kernels = kernels_of_routines();
    State& there = state();
    const std::optional<models::KernelNumber> kernel = kernels[static_cast<std::size_t>(routine)];
    if (kernel && there.day->models(*kernel)) {
        charge_kernel(*rank, *kernel, {m, n, k});
        return;
    }
    there.fallback.resize(static_cast<std::size_t>(lepaute_routine_count));
    FallbackUse& use = there.fallback[static_cast<std::size_t>(routine)];
    ++use.calls;
    const double rate = flops > 0.0 ? rate_flops(there, *rank) : 0.0;
    if (rate <= 0.0) {
        ++use.unmodelled_calls;
        return;
    }
    const double seconds = flops / rate;
    use.time_s += seconds;
    log_call(*rank, static_cast<int>(hpl::kernel_names.size()) + routine, seconds, {m, n, k});
    rank->pending_s += seconds;
}

/// The first: a pivot that every program accepts.
extern "C" int lepaute_index(int /*routine*/, int /*n*/) { return 0; }
