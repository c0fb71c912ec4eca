#include "models/machine.hpp"

#include <algorithm>

// Groups of nodes that differ, and what is drawn of the kernels of one.

namespace lepaute::models {

namespace {

// Streams of draws; kernels use their own number.
constexpr std::uint32_t coefficient_stream = 0x434F4500U;
constexpr std::uint32_t discrepancy_stream = 0x44495300U;
constexpr std::uint32_t extrapolation_stream = 0x45585400U;
constexpr std::uint32_t crowding_stream = 0x43524F00U;
constexpr std::uint32_t own_code_stream = 0x4F574E00U;
constexpr unsigned group_shift = 40; // draws of other groups of nodes begin at group << shift

} // namespace

void Machine::check_groups() const {
    if (groups.empty()) {
        return;
    }
    std::uint64_t total = 0;
    for (const NodeGroup& group : groups) {
        total += group.nodes;
        if (group.cores > cores_per_node || group.cpus > cpus_per_node || group.sockets > sockets_per_node) {
            throw std::invalid_argument("groups: a node has more cores, CPUs or sockets than nodes at most have");
        }
    }
    if (total != nodes) {
        refuse("groups", "of " + text_of(total) + " nodes", "the machine has " + text_of(nodes));
    }
}

MachineDay::DayKernel MachineDay::drawn(const Machine& machine, const MachineKernel& kernel, std::uint32_t number,
                                        const Layers& layers, Seeds seeds, std::span<const double> shares) const {
    const std::size_t sockets = std::size_t{machine.nodes} * machine.sockets_per_node;
    const std::uint64_t first = kernel.own_errors ? std::uint64_t{kernel.group} << group_shift : 0;
    DayKernel today{.models = kernel.models,
                    .by_socket = kernel.models.size() == sockets && sockets != cpu_factor_.size(),
                    .as_recorded = kernel.as_recorded};
    for (const double share : shares) {
        today.crowded.push_back(1.0 + increase_at(kernel.crowding, share));
    }
    // Kernels with one model share its errors.
    const auto source = std::ranges::find(kernel_set_.names, std::string_view(kernel.model_of));
    const auto from = source == kernel_set_.names.end() ? number : source - kernel_set_.names.begin();
    const std::uint32_t stream = kernel_set_.first_stream + static_cast<std::uint32_t>(from);
    for (std::uint32_t cpu = 0; layers.coefficients && cpu < today.models.size(); ++cpu) {
        today.models[cpu].draw_coefficients({seeds.day, cpu, coefficient_stream + stream, first});
    }
    const auto factor = [&](bool on, double relative_sd, std::uint32_t layer) {
        return on ? factor_of(relative_sd, rng::normal({seeds.day, stream, layer, first})) : 1.0;
    };
    today.factor = factor(layers.discrepancy, kernel.discrepancy_relative_sd, discrepancy_stream);
    today.factor *= factor(layers.own_code, kernel.own_code_relative_sd, own_code_stream);
    today.factor *= factor(layers.extrapolation, kernel.extrapolation_relative_sd, extrapolation_stream + 1);
    if (layers.discrepancy) {
        for (KernelModel& model : today.models) { // the same factors on all cpus
            model.draw_discrepancies({seeds.day, stream, discrepancy_stream, first + 1});
        }
        if (kernel.crowding_relative_sd > 0.0) {
            const double last = kernel.crowding.empty() ? 1.0 : kernel.crowding.back().share;
            const double error = rng::normal({seeds.day, stream, crowding_stream, first});
            for (std::size_t number_of_share = 0; number_of_share < shares.size(); ++number_of_share) {
                const double away = std::max(0.0, 1.0 - shares[number_of_share] / last);
                today.crowded[number_of_share] *= factor_of(away * kernel.crowding_relative_sd, error);
            }
        }
    }
    if (layers.extrapolation) {
        const ExtrapolationError error(kernel.name, {seeds.day, stream, extrapolation_stream, first});
        for (KernelModel& model : today.models) {
            model.set_error_outside(error);
        }
    }
    return today;
}

} // namespace lepaute::models
