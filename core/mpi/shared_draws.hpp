#pragma once
// What the draws that all ranks of a run share do to its computing and to its messages, without simulating it again.

#include "mpi/run.hpp"

#include <vector>

namespace lepaute::mpi {

/// How many times as long the parts of a run would take under other draws.
struct SharedEffect {
    double computing = 1.0;
    double messages_inside = 1.0; // of nodes
    double messages_between = 1.0;
};

/// A run that has ended, to be priced under the draws of other seeds: its kernels at a sample of their sizes, on ranks
/// evenly spread over those of the run, and its messages class by class, each as if it were alone. Without noise.
class SharedDraws {
public:
    /// result: of the run on `machine`, with these layers, cores and seeds.
    SharedDraws(const RunResult& result, const models::Machine& machine, const models::Layers& layers,
                std::vector<std::uint32_t> core_of_rank, models::Seeds seeds);
    /// The draws of each of `seeds` on `machine`, which may be another draw from a population, over those of the run.
    [[nodiscard]] std::vector<SharedEffect> effects(const models::Machine& machine,
                                                    std::span<const models::Seeds> seeds) const;

private:
    [[nodiscard]] SharedEffect effect(const models::Machine& machine, models::Seeds seeds) const;
    struct Call {
        models::KernelNumber kernel;
        std::uint32_t rank; // among those of `cores_`
        models::Size size;
        double time_s;    // that it stands for
        double drawn_s{}; // of one such call under the draws of the run
    };
    [[nodiscard]] std::array<double, models::link_class_count> factors(const models::Network& network,
                                                                       std::uint64_t seed) const;

    models::KernelSet kernels_;
    models::Layers layers_;
    std::vector<std::uint32_t> cores_; // of the ranks on which calls are priced
    std::vector<Call> calls_;
    std::array<double, models::link_class_count> messages_s_{}; // by class, under the draws of the run
    std::array<double, models::link_class_count> factors_{};    // that it had
};

} // namespace lepaute::mpi
