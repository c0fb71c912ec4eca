#include "models/machine.hpp"

#include <algorithm>

namespace lepaute::models {

namespace {

// Streams of draws; kernels use their own number.
constexpr std::uint32_t coefficient_stream = 0x434F4500U;
constexpr std::uint32_t kernel_noise_stream = 0x4B45524EU;
constexpr std::uint32_t day_stream = 0x44415900U;
constexpr std::uint32_t run_stream = 0x52554E00U;
constexpr std::uint32_t cpu_day_stream = 0x43505500U;
constexpr std::uint32_t episode_stream = 0x45504900U;
constexpr std::uint32_t discrepancy_stream = 0x44495300U;
constexpr std::uint32_t extrapolation_stream = 0x45585400U;
// Of an episode: its half-normal noise, of whatever width, must not make a duration negative.
constexpr double smallest_factor = 0.05;

} // namespace

std::uint32_t Machine::cpu_of_core(std::uint32_t node, std::uint32_t core) const noexcept {
    const std::uint32_t cpu = cpu_is_core_modulo ? core % cpus_per_node : core / (cores_per_node / cpus_per_node);
    return node * cpus_per_node + cpu;
}

Machine with_timed_kernel(const Machine& machine, std::string_view name, double relative_sd) {
    const auto terms = term_names();
    const auto n = static_cast<std::size_t>(std::find(terms.begin(), terms.end(), "n") - terms.begin());
    KernelPiece piece;
    piece.mean.at(n) = 1.0;
    piece.deviation.at(n) = relative_sd;
    piece.noise = relative_sd > 0.0 ? Noise::half_normal : Noise::none;
    Machine result = machine;
    result.kernels = {{.name = std::string(name), .models = {KernelModel({piece})}}};
    return result;
}

MachineDay::MachineDay(const Machine& machine, const KernelSet& kernels, const Layers& layers, Seeds seeds,
                       const std::vector<std::uint32_t>& cpu_of_rank, const std::vector<std::uint32_t>& node_of_rank)
    : kernel_names_(kernels.names), kernels_(kernels.names.size()),
      cpu_factor_(std::size_t{machine.nodes} * machine.cpus_per_node, 1.0), ranks_(cpu_of_rank.size()),
      episode_relative_sd_(layers.noise ? machine.episode_relative_sd : 0.0),
      episode_s_(episode_relative_sd_ > 0.0 ? machine.episode_s : 0.0), use_(kernels.names.size()),
      run_seed_(seeds.run), with_noise_(layers.noise) {
    std::vector<std::uint32_t> ranks_on(machine.nodes, 0);
    for (const std::uint32_t node : node_of_rank) {
        ++ranks_on[node];
    }
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
        ranks_[rank].noise = rng::Stream({seeds.run, rank, kernel_noise_stream, 0});
        ranks_[rank].cpu = cpu_of_rank[rank];
        if (machine.cores_per_node > 1) {
            ranks_[rank].crowded = (ranks_on[node_of_rank[rank]] - 1) / static_cast<double>(machine.cores_per_node - 1);
        }
    }
    for (std::uint32_t number = 0; number < kernels_.size(); ++number) {
        const auto named = std::ranges::find(machine.kernels, kernels.names[number], &MachineKernel::name);
        if (named == machine.kernels.end()) {
            continue;
        }
        DayKernel& today = kernels_[number];
        today = {.models = named->models, .crowding = named->crowding};
        // Kernels with one model share its errors.
        const auto source = std::ranges::find(kernels.names, std::string_view(named->model_of));
        const auto from = source == kernels.names.end() ? number : source - kernels.names.begin();
        const std::uint32_t stream = kernels.first_stream + static_cast<std::uint32_t>(from);
        if (layers.coefficients) {
            for (std::uint32_t cpu = 0; cpu < today.models.size(); ++cpu) {
                today.models[cpu] =
                    today.models[cpu].with_drawn_coefficients({seeds.day, cpu, coefficient_stream + stream, 0});
            }
        }
        if (layers.discrepancy) {
            const double normal = rng::normal({seeds.day, stream, discrepancy_stream, 0});
            today.factor = factor_of(named->discrepancy_relative_sd, normal);
            for (KernelModel& model : today.models) { // the same factors on all cpus
                model = model.with_drawn_discrepancies({seeds.day, stream, discrepancy_stream, 1});
            }
        }
        if (layers.extrapolation) {
            const ExtrapolationError error(named->name, {seeds.day, stream, extrapolation_stream, 0});
            for (KernelModel& model : today.models) {
                model = model.with_error_outside(error);
            }
        }
    }
    if (layers.days) {
        const auto effect = [](double relative_sd, int freedom, const rng::Coordinates& at) {
            return relative_sd > 0.0 ? factor_of(relative_sd, rng::student(at, freedom)) : 1.0;
        };
        const double common =
            effect(machine.day_common_relative_sd, machine.day_degrees_of_freedom, {seeds.day, 0, day_stream, 0}) *
            effect(machine.day_run_relative_sd, machine.day_run_degrees_of_freedom, {seeds.run, 0, run_stream, 0});
        for (std::uint32_t cpu = 0; cpu < cpu_factor_.size(); ++cpu) {
            cpu_factor_[cpu] = common * effect(machine.day_cpu_relative_sd, machine.day_cpu_degrees_of_freedom,
                                               {seeds.day, cpu, cpu_day_stream, 0});
        }
    }
}

double MachineDay::through_episodes(std::uint32_t rank, double seconds) noexcept {
    RankState& state = ranks_[rank];
    double total_s = 0.0;
    while (seconds > 0.0) {
        if (state.episode_left_s <= 0.0) {
            const double noise = rng::centred_half_normal({run_seed_, rank, episode_stream, state.episodes++});
            state.episode_factor = std::max(smallest_factor, 1.0 + episode_relative_sd_ * noise);
            state.episode_left_s = episode_s_;
        }
        const double part_s = std::min(seconds, state.episode_left_s);
        total_s += part_s * state.episode_factor;
        state.episode_left_s -= part_s;
        seconds -= part_s;
    }
    return total_s;
}

std::size_t MachineDay::state_bytes() const noexcept {
    std::size_t bytes = cpu_factor_.size() * sizeof(double) + ranks_.size() * sizeof(RankState);
    for (const DayKernel& kernel : kernels_) {
        for (const KernelModel& model : kernel.models) {
            bytes += model.pieces().size() * sizeof(KernelPiece);
        }
    }
    return bytes;
}

} // namespace lepaute::models
