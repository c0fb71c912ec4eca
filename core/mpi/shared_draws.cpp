#include "mpi/shared_draws.hpp"

#include <algorithm>
#include <initializer_list>

namespace lepaute::mpi {

namespace {

/// Ranks on which calls are priced: few are enough for what is common to all CPUs, and these for the mean of the rest.
constexpr std::size_t most_ranks = 64;

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
    : kernels_(result.kernel_set), layers_(without_noise(layers)), cores_(std::move(core_of_rank)),
      factors_(factors(machine.network, seeds.day)) {
    const std::size_t ranks = cores_.size();
    const std::size_t priced = std::min(ranks, most_ranks);
    for (std::size_t number = 0; number < result.kernels.size(); ++number) {
        const models::KernelUse& use = result.kernels[number];
        const std::span<const models::Size> sizes = use.sample.sizes();
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            const std::size_t rank = (i % priced) * ranks / priced;
            calls_.push_back({.kernel = models::KernelNumber(number),
                              .rank = static_cast<std::uint32_t>(rank),
                              .size = sizes[i],
                              .time_s = use.time_s / static_cast<double>(sizes.size())});
        }
    }
    const models::MachineDay day(with_kernels(machine, kernels_), kernels_, layers_, seeds, cores_);
    for (Call& call : calls_) {
        const models::KernelCost cost = day.cost(call.rank, call.kernel, call.size);
        call.drawn_s = cost.mean_s * cost.factor;
    }
    for (std::size_t which = 0; which < models::link_class_count; ++which) {
        messages_s_.at(which) = result.message_use.at(which).time_s;
    }
}

std::vector<SharedEffect> SharedDraws::effects(const models::Machine& machine,
                                               std::span<const models::Seeds> seeds) const {
    const models::Machine known = with_kernels(machine, kernels_);
    std::vector<SharedEffect> result;
    for (const models::Seeds& of : seeds) {
        result.push_back(effect(known, of));
    }
    return result;
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
    const auto drawn = factors(machine.network, seeds.day);
    const auto ratio = [&](std::initializer_list<models::LinkClass> classes) {
        double before = 0.0;
        double after = 0.0;
        for (const models::LinkClass link : classes) {
            const auto which = static_cast<std::size_t>(link);
            before += messages_s_.at(which);
            after += messages_s_.at(which) * (drawn.at(which) / factors_.at(which));
        }
        return before > 0.0 ? after / before : 1.0;
    };
    using enum models::LinkClass;
    result.messages_inside = ratio({loopback, loopback_noncontiguous, loopback_busy});
    result.messages_between = ratio({remote, remote_noncontiguous, remote_busy});
    return result;
}

std::array<double, models::link_class_count> SharedDraws::factors(const models::Network& network,
                                                                  std::uint64_t seed) const {
    std::array<double, models::link_class_count> result{};
    result.fill(1.0);
    if (!layers_.network) {
        return result;
    }
    const models::Network drawn = models::drawn(network, seed);
    for (std::size_t which = 0; which < models::link_class_count; ++which) {
        const auto link = static_cast<models::LinkClass>(which);
        const auto& before = network.of(link).segments;
        if (!before.empty()) {
            result.at(which) = before.front().bandwidth_Bps / drawn.of(link).segments.front().bandwidth_Bps;
        }
    }
    return result;
}

} // namespace lepaute::mpi
