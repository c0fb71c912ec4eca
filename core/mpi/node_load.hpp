#pragma once
// Which cores of a node compute: messages between nodes whose other cores do take longer.

#include "mpi/rank_state.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace lepaute::mpi {

/// Until when the ranks compute, node by node. Nothing is kept where it does not matter.
class NodeLoad {
public:
    NodeLoad() = default;
    NodeLoad(std::span<const std::uint32_t> node_of_rank, std::span<const double> ranks_on_full_node)
        : until_s_(ranks_on_full_node.size()) {
        for (const double ranks : ranks_on_full_node) {
            others_.push_back(std::max(1.0, ranks - 1.0));
        }
        for (const std::uint32_t node : node_of_rank) {
            places_.emplace_back(node, until_s_[node].size());
            until_s_[node].push_back(0.0);
        }
    }

    [[nodiscard]] bool matters() const noexcept { return !places_.empty(); }
    void computes_until(Rank rank, double date_s) noexcept {
        if (matters()) {
            const auto& [node, place] = places_[rank];
            until_s_[node][place] = date_s;
        }
    }
    /// Ranks of a node that compute at `date_s`, of all its cores but the one of a message's rank.
    [[nodiscard]] double share(std::uint32_t node, double date_s) const noexcept {
        const auto computing = std::ranges::count_if(until_s_[node], [=](double until_s) { return until_s > date_s; });
        return std::min(1.0, static_cast<double>(computing) / others_[node]);
    }

private:
    std::vector<double> others_;                                // of each node
    std::vector<std::pair<std::uint32_t, std::size_t>> places_; // of each rank: node, and which of its ranks
    std::vector<std::vector<double>> until_s_;                  // of each node's ranks
};

} // namespace lepaute::mpi
