#pragma once
// What all applications have in common: where their ranks run, what they trace, and what a run tells.

#include "checks.hpp"
#include "models/machine.hpp"
#include "mpi/engine.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace lepaute::mpi {

/// One simulated run.
struct RunResult : Statistics {
    double time_s = 0.0;               // maximum over ranks
    double computing_s = 0.0;          // over all ranks
    double waiting_s = 0.0;            // over all ranks, inside communication calls
    std::vector<Shares> rank_shares_s; // per rank: where its time went
    models::KernelSet kernel_set;
    std::vector<models::KernelUse> kernels; // in the order of the set
    std::span<const std::string_view> stage_names;
    Trace trace; // what was asked for
    std::size_t engine_bytes = 0;
};

/// Checks what a run is given. Throws std::invalid_argument, in one line that begins with the field.
template <class Parameters>
void check_inputs(const Parameters& parameters, const models::Machine& machine, std::size_t cores) {
    check_all(parameters);
    check_in("machine", [&] { check_all(machine); });
    if (cores != parameters.ranks()) {
        refuse("core_of_rank", "of " + text_of(cores) + " cores",
               "there is one for each of " + text_of(parameters.ranks()) + " ranks");
    }
}

/// The node of each rank. core_of_rank: global core (node * cores_per_node + core) of each rank. Throws
/// std::invalid_argument for a core that the machine does not have.
[[nodiscard]] std::vector<std::uint32_t> nodes_of_ranks(const models::Machine& machine,
                                                        const std::vector<std::uint32_t>& core_of_rank);

/// The network of the run of that seed, its factors drawn where their layers are on.
[[nodiscard]] inline models::Network network_of_run(const models::Machine& machine, const models::Layers& layers,
                                                    std::uint64_t seed) {
    return models::drawn(machine.network, {.transfers = layers.network, .overheads = layers.overheads}, seed);
}

/// Its links between nodes.
[[nodiscard]] inline net::Topology links_of_run(const models::Machine& machine, const models::Layers& layers,
                                                std::uint64_t seed) {
    net::Topology links = machine.links_between_nodes();
    if (layers.network) {
        links.slow_down(models::link_factor(machine.network, seed));
    }
    return links;
}

/// Sets messages, shares of ranks, kernels, trace and memory of `result` from a run that has ended.
void collect(RunResult& result, Engine& engine, const models::MachineDay& day);

/// Sets the computing and waiting of `result` to the sums of the shares of its ranks, which have been collected.
void add_up_shares(RunResult& result);

/// A row of the trace for a call of `kernel`, where one is asked for.
inline void trace_kernel(Engine& engine, Rank rank, models::KernelNumber kernel, const models::Size& size,
                         double start_s, double seconds) {
    if (engine.trace().on() && engine.traced(rank)) [[unlikely]] {
        engine.record(rank, {.code = static_cast<std::int16_t>(first_kernel_code + kernel.index()),
                             .start_s = start_s,
                             .duration_s = seconds,
                             .m = size.m,
                             .n = size.n,
                             .k = size.k});
    }
}

/// The next call of `kernel` on `rank`: its time passes, and it gets its row.
inline void call_kernel(Engine& engine, models::MachineDay& day, Rank rank, models::KernelNumber kernel,
                        const models::Size& size) {
    const double seconds = day.duration_s(rank, kernel, size);
    trace_kernel(engine, rank, kernel, size, engine.clock(rank), seconds);
    engine.compute(rank, seconds);
}

/// A row for a phase that ends now, where one is asked for.
inline void trace_phase(Engine& engine, Rank rank, int phase, TraceRow row) {
    if (engine.trace().on() && engine.traced(rank)) {
        row.code = static_cast<std::int16_t>(first_phase_code + phase);
        row.duration_s = engine.clock(rank) - row.start_s;
        engine.record(rank, row);
    }
}

} // namespace lepaute::mpi
