#include "mpi/run.hpp"

#include <numeric>
#include <stdexcept>

namespace lepaute::mpi {

std::vector<std::uint32_t> nodes_of_ranks(const models::Machine& machine,
                                          const std::vector<std::uint32_t>& core_of_rank) {
    std::vector<std::uint32_t> nodes;
    for (const std::uint32_t core : core_of_rank) {
        const std::uint32_t node = core / machine.cores_per_node;
        if (node >= machine.nodes) {
            throw std::invalid_argument("a rank is mapped to a core that the machine does not have");
        }
        nodes.push_back(node);
    }
    return nodes;
}

void collect(RunResult& result, Engine& engine, const models::MachineDay& day) {
    static_cast<Statistics&>(result) = engine.statistics();
    for (Rank rank = 0; rank < engine.size(); ++rank) {
        result.rank_shares_s.push_back(engine.shares_s(rank));
    }
    result.kernel_set = day.kernel_set();
    result.kernels = day.use();
    result.trace = std::move(engine.trace());
    result.engine_bytes = engine.state_bytes() + day.state_bytes();
}

void add_up_shares(RunResult& result) {
    for (const Shares& shares_s : result.rank_shares_s) {
        const double computing_s = part(shares_s, Share::compute);
        result.computing_s += computing_s;
        result.waiting_s += std::accumulate(shares_s.begin(), shares_s.end(), -computing_s);
    }
}

} // namespace lepaute::mpi
