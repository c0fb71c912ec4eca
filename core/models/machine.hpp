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
    MachineDay(const Machine& machine, const Layers& layers, std::uint64_t seed, std::vector<std::uint32_t> cpu_of_rank,
               const std::vector<std::uint32_t>& node_of_rank);

    /// Seconds that `kernel` takes on `rank` for its next call.
    double duration_s(std::uint32_t rank, Kernel kernel, const Size& size);
    [[nodiscard]] const std::array<KernelUse, kernel_count>& use() const noexcept { return use_; }
    [[nodiscard]] std::size_t state_bytes() const noexcept;

private:
    /// Seconds that `seconds` of computing take in the episodes that they fall into.
    double through_episodes(std::uint32_t rank, double seconds) noexcept;

    std::array<std::vector<KernelModel>, kernel_count> kernels_;
    std::array<double, kernel_count> kernel_factor_{};
    std::array<double, kernel_count> crowding_{};
    std::vector<double> crowded_of_rank_; // share of the other cores of its node that compute
    std::vector<double> cpu_factor_;
    std::vector<std::uint32_t> cpu_of_rank_;
    std::vector<std::uint64_t> calls_of_rank_;
    struct Episode {
        double left_s = 0.0; // of computing
        double factor = 1.0;
        std::uint64_t number = 0;
    };
    std::vector<Episode> episode_of_rank_;
    double episode_relative_sd_;
    double episode_s_;
    std::array<KernelUse, kernel_count> use_;
    std::uint64_t seed_;
    bool with_noise_;
};

} // namespace lepaute::models
