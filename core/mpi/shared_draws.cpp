#include "mpi/shared_draws.hpp"

#include <algorithm>
#include <functional>

namespace lepaute::mpi {

namespace {

/// Ranks on which calls are priced: few are enough for what is common to all CPUs, and these for the mean of the rest.
constexpr std::size_t most_ranks = 64;
/// Of all kernels and sizes, those that take longest.
constexpr std::size_t most_calls = 512;

models::Layers without_noise(models::Layers layers) {
    layers.noise = false;
    return layers;
}

/// The kernels of `machine`, or the one of an application that says itself what its computing costs.
models::Machine with_kernels(const models::Machine& machine, const models::KernelSet& kernels) {
    const bool own = kernels.names.size() == 1 &&
                     std::ranges::find(machine.kernels, kernels.names.front(), &models::MachineKernel::name) ==
                         machine.kernels.end();
    return own ? models::with_timed_kernel(machine, kernels.names.front(), 0.0) : machine;
}

} // namespace

SharedDraws::SharedDraws(const RunResult& result, const models::Machine& machine, const models::Layers& layers,
                         std::vector<std::uint32_t> core_of_rank, models::Seeds seeds)
    : kernels_(result.kernel_set), layers_(without_noise(layers)), cores_(std::move(core_of_rank)) {
    check_machine(machine);
    if (cores_.size() != result.rank_shares_s.size()) {
        refuse("core_of_rank", "of " + text_of(cores_.size()) + " cores",
               "the run has " + text_of(result.rank_shares_s.size()) + " ranks");
    }
    for (std::size_t number = 0; number < result.kernels.size(); ++number) {
        for (const models::SizeCell& cell : result.kernels[number].by_size.cells()) {
            if (cell.time_s > 0.0) {
                calls_.push_back({.kernel = models::KernelNumber(number), .size = cell.mean(), .time_s = cell.time_s});
            }
        }
    }
    std::ranges::stable_sort(calls_, std::greater{}, &Call::time_s);
    calls_.erase(calls_.begin() + static_cast<std::ptrdiff_t>(std::min(calls_.size(), most_calls)), calls_.end());
    const std::size_t ranks = cores_.size();
    const std::size_t priced = std::min(ranks, most_ranks);
    for (std::size_t i = 0; i < calls_.size(); ++i) {
        calls_[i].rank = static_cast<std::uint32_t>((i % priced) * ranks / priced);
    }
    const models::MachineDay day(with_kernels(machine, kernels_), kernels_, layers_, seeds, cores_);
    for (Call& call : calls_) {
        const models::KernelCost cost = day.cost(call.rank, call.kernel, call.size);
        call.drawn_s = cost.mean_s * cost.factor;
    }
    for (std::size_t which = 0; which < models::link_class_count; ++which) {
        const models::MessageUse& use = result.use.at(which);
        has_messages_.at(which) = use.messages > 0;
        mean_bytes_.at(which) = use.messages > 0 ? use.bytes / static_cast<double>(use.messages) : 0.0;
    }
    factors_ = factors(machine, seeds.day);
}

std::vector<SharedEffect> SharedDraws::effects(const models::Machine& machine,
                                               std::span<const models::Seeds> seeds) const {
    check_machine(machine);
    const models::Machine known = with_kernels(machine, kernels_);
    std::vector<SharedEffect> result;
    for (const models::Seeds& of : seeds) {
        result.push_back(effect(known, of));
    }
    return result;
}

/// Throws std::invalid_argument for a machine that is none, or has no such cores.
void SharedDraws::check_machine(const models::Machine& machine) const {
    check_in("machine", [&] { check_all(machine); });
    static_cast<void>(nodes_of_ranks(machine, cores_));
}

SharedEffect SharedDraws::effect(const models::Machine& machine, models::Seeds seeds) const {
    SharedEffect result;
    const models::MachineDay day(machine, kernels_, layers_, seeds, cores_);
    double before_s = 0.0;
    double after_s = 0.0;
    for (const Call& call : calls_) {
        const models::KernelCost cost = day.cost(call.rank, call.kernel, call.size);
        before_s += call.time_s;
        after_s += call.drawn_s > 0.0 ? call.time_s * (cost.mean_s * cost.factor / call.drawn_s) : call.time_s;
    }
    if (before_s > 0.0) {
        result.computing = after_s / before_s;
    }
    const auto drawn = factors(machine, seeds.day);
    for (std::size_t which = 0; which < models::link_class_count; ++which) {
        result.messages.at(which) = has_messages_.at(which) ? drawn.at(which) / factors_.at(which) : 1.0;
    }
    return result;
}

std::array<double, models::link_class_count> SharedDraws::factors(const models::Machine& machine,
                                                                  std::uint64_t seed) const {
    std::array<double, models::link_class_count> result{};
    result.fill(1.0);
    const models::Network& network = machine.network;
    const models::Network drawn = network_of_run(machine, layers_, seed);
    for (std::size_t which = 0; which < models::link_class_count; ++which) {
        const auto link = static_cast<models::LinkClass>(which);
        const double bytes = mean_bytes_.at(which);
        if (!network.of(link).segments.empty()) {
            const double before_s = network.of(link).at(bytes).one_way_s(bytes);
            result.at(which) = before_s > 0.0 ? drawn.of(link).at(bytes).one_way_s(bytes) / before_s : 1.0;
        }
    }
    return result;
}

} // namespace lepaute::mpi
