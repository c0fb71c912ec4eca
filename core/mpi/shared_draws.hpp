#pragma once
// What the draws that all ranks of a run share do to its computing and to its messages, without simulating it again.

#include "mpi/run.hpp"

#include <vector>

namespace lepaute::mpi {

/// How many times as long the parts of a run would take under other draws.
struct SharedEffect {
    double computing = 1.0;
    std::array<double, models::link_class_count> messages{}; // by class of links; 1 for one without messages
};

/// A run that has ended, to be priced under the draws of other seeds: its kernels at the sizes that took its time, on
/// ranks evenly spread over those of the run, and its messages class by class. Without noise.
class SharedDraws {
public:
    /// result: of the run on `machine`, with these layers, cores and seeds; its network counts all sizes.
    SharedDraws(const RunResult& result, const models::Machine& machine, const models::Layers& layers,
                std::vector<std::uint32_t> core_of_rank, models::Seeds seeds);
    /// The draws of each of `seeds` on `machine`, which may be another draw from a population, over those of the run.
    [[nodiscard]] std::vector<SharedEffect> effects(const models::Machine& machine,
                                                    std::span<const models::Seeds> seeds) const;

private:
    void check_machine(const models::Machine& machine) const;
    [[nodiscard]] SharedEffect effect(const models::Machine& machine, models::Seeds seeds) const;
    struct Call {
        models::KernelNumber kernel;
        std::uint32_t rank = 0;
        models::Size size;
        double time_s = 0.0;  // of all such calls
        double drawn_s = 0.0; // of one such call under the draws of the run
    };
    [[nodiscard]] std::array<double, models::link_class_count> factors(const models::Machine& machine,
                                                                       std::uint64_t seed) const;

    models::KernelSet kernels_;
    models::Layers layers_;
    std::vector<std::uint32_t> cores_;
    std::vector<Call> calls_;
    std::array<bool, models::link_class_count> has_messages_{};
    std::array<double, models::link_class_count> mean_bytes_{};
    std::array<double, models::link_class_count> factors_{}; // on a message of that size of each class, in the run
};

} // namespace lepaute::mpi
