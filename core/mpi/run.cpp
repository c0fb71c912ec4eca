#include "mpi/run.hpp"

#include <stdexcept>

namespace lepaute::mpi {

Placement placed(const models::Machine& machine, const std::vector<std::uint32_t>& core_of_rank) {
    Placement placement;
    for (const std::uint32_t core : core_of_rank) {
        const std::uint32_t node = core / machine.cores_per_node;
        if (node >= machine.nodes) {
            throw std::invalid_argument("a rank is mapped to a core that the machine does not have");
        }
        placement.nodes.push_back(node);
        placement.cpus.push_back(machine.cpu_of_core(node, core % machine.cores_per_node));
    }
    return placement;
}

void collect(RunResult& result, Engine& engine, const models::MachineDay& day) {
    result.messages = engine.statistics().messages;
    result.bytes = engine.statistics().bytes;
    result.message_use = engine.statistics().use;
    for (Rank rank = 0; rank < engine.size(); ++rank) {
        result.rank_shares_s.push_back(engine.shares_s(rank));
    }
    result.kernel_names = day.kernel_names();
    result.kernels = day.use();
    result.trace = std::move(engine.trace());
    result.engine_bytes = engine.state_bytes() + day.state_bytes();
}

void trace_kernel(Engine& engine, Rank rank, models::KernelNumber kernel, const models::Size& size,
                  double start_s, double seconds) {
    if (engine.trace().on() && engine.traced(rank)) {
        engine.record(rank, {.code = static_cast<std::int16_t>(first_kernel_code + kernel.index()),
                             .start_s = start_s,
                             .duration_s = seconds,
                             .m = size.m,
                             .n = size.n,
                             .k = size.k});
    }
}

} // namespace lepaute::mpi
