#pragma once
// A machine as the engine sees it, and one draw of it: the layers of uncertainty of one run.

#include "models/kernel_model.hpp"
#include "models/network_model.hpp"
#include "net/topology.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace lepaute::models {

struct Machine {
    std::uint32_t nodes = 1;
    std::uint32_t cores_per_node = 1;
    std::uint32_t cpus_per_node = 1;
    bool cpu_is_core_modulo = true; // else core divided by the cores of a cpu
    /// Per kernel: empty (not modelled), one model for all cpus, or one per cpu (node-major).
    std::array<std::vector<KernelModel>, kernel_count> kernels;
    std::array<double, kernel_count> discrepancy_relative_sd{};
    std::array<double, kernel_count> crowding{}; // relative increase of durations when all cores of a node compute
    double day_common_relative_sd = 0.0;
    double day_cpu_relative_sd = 0.0;
    int day_degrees_of_freedom = 0;   // 0: known exactly
    double episode_relative_sd = 0.0; // shared by the calls of a core within an episode
    double episode_s = 0.0;           // length of an episode, in seconds of computing; 0: none
    Network network;
    std::optional<net::Topology> topology; // none: one switch, network.node_link_Bps to and from each node

    /// The topology, or the plain switch that stands for none.
    [[nodiscard]] net::Topology links_between_nodes() const {
        return topology ? *topology : net::Topology::plain_switch(nodes, network.node_link_Bps);
    }
    [[nodiscard]] std::uint32_t cpu_of_core(std::uint32_t node, std::uint32_t core) const noexcept;
};

/// Layers of uncertainty that a run draws (design, section 2: what an interval means).
struct Layers {
    bool coefficients = true;
    bool days = true;
    bool discrepancy = true;
    bool noise = true;
};

/// A machine on one day: coefficients, day effects and discrepancies drawn, a function of (machine, layers, seed).
class MachineDay {
public:
    /// node_of_rank: a node is crowded in proportion to its other cores that have a rank.
    MachineDay(const Machine& machine, const Layers& layers, std::uint64_t seed,
               const std::vector<std::uint32_t>& cpu_of_rank, const std::vector<std::uint32_t>& node_of_rank);

    [[nodiscard]] bool models(Kernel kernel) const noexcept {
        return !kernels_[static_cast<std::size_t>(kernel)].empty();
    }
    /// Do all cpus have the same model, but for a factor?
    [[nodiscard]] bool one_model(Kernel kernel) const noexcept {
        return kernels_[static_cast<std::size_t>(kernel)].size() == 1;
    }
    /// What the durations of the model are multiplied by on `rank`.
    [[nodiscard]] double factor(std::uint32_t rank, Kernel kernel) const noexcept {
        const auto index = static_cast<std::size_t>(kernel);
        const RankState& state = ranks_[rank];
        return cpu_factor_[state.cpu] * kernel_factor_[index] * (1.0 + crowding_[index] * state.crowded);
    }
    /// What calls of `kernel` with `size` cost on `rank`.
    [[nodiscard]] KernelCost cost(std::uint32_t rank, Kernel kernel, const Size& size) const noexcept {
        const std::vector<KernelModel>& models = kernels_[static_cast<std::size_t>(kernel)];
        if (models.empty()) {
            return {};
        }
        return models[models.size() == 1 ? 0 : ranks_[rank].cpu].cost(size, factor(rank, kernel), with_noise_);
    }
    /// Seconds of the next call on `rank`, of that cost; to be noted with note().
    [[nodiscard]] double draw_s(std::uint32_t rank, const KernelCost& cost) noexcept {
        RankState& state = ranks_[rank];
        const double even_s = cost.draw(state.noise, state.calls++);
        return episode_s_ > 0.0 ? through_episodes(rank, even_s) : even_s;
    }
    void note_calls(Kernel kernel, const KernelCost& cost, const Size& size, std::uint64_t calls,
                    double seconds) noexcept {
        note(use_[static_cast<std::size_t>(kernel)], cost, size, calls, seconds);
    }
    /// Seconds that `kernel` takes on `rank` for its next call.
    double duration_s(std::uint32_t rank, Kernel kernel, const Size& size) noexcept {
        const auto index = static_cast<std::size_t>(kernel);
        if (kernels_[index].empty()) {
            ++use_[index].calls;
            ++use_[index].unmodelled_calls;
            return 0.0;
        }
        const KernelCost each = cost(rank, kernel, size);
        const double seconds = draw_s(rank, each);
        note(use_[index], each, size, 1, seconds);
        return seconds;
    }
    [[nodiscard]] const std::array<KernelUse, kernel_count>& use() const noexcept { return use_; }
    [[nodiscard]] std::size_t state_bytes() const noexcept;

private:
    /// Seconds that `seconds` of computing take in the episodes that they fall into.
    double through_episodes(std::uint32_t rank, double seconds) noexcept;

    std::array<std::vector<KernelModel>, kernel_count> kernels_;
    std::array<double, kernel_count> kernel_factor_{};
    std::array<double, kernel_count> crowding_{};
    std::vector<double> cpu_factor_;
    struct RankState {
        rng::Stream noise;
        std::uint64_t calls = 0;
        std::uint32_t cpu = 0;
        double crowded = 0.0;        // share of the other cores of its node that compute
        double episode_left_s = 0.0; // of computing
        double episode_factor = 1.0;
        std::uint64_t episodes = 0;
    };
    std::vector<RankState> ranks_;
    double episode_relative_sd_;
    double episode_s_;
    std::array<KernelUse, kernel_count> use_;
    std::uint64_t seed_;
    bool with_noise_;
};

} // namespace lepaute::models
