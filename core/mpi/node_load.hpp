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
        for (std::vector<double>& of_node : until_s_) {
            of_node.resize((of_node.size() + 1) / 2 * 2); // share() takes two at a time
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
        const std::vector<double>& until_s = until_s_[node];
        using Dates [[gnu::vector_size(16)]] = double;
        using Counts [[gnu::vector_size(16)]] = std::int64_t;
        Counts computing{};
        for (std::size_t i = 0; i < until_s.size(); i += 2) {
            computing += Dates{until_s[i], until_s[i + 1]} > date_s; // -1 where it is
        }
        return std::min(1.0, static_cast<double>(-computing[0] - computing[1]) / others_[node]);
    }

private:
    std::vector<double> others_;                                // of each node
    std::vector<std::pair<std::uint32_t, std::size_t>> places_; // of each rank: node, and which of its ranks
    std::vector<std::vector<double>> until_s_;                  // of each node's ranks
};

} // namespace lepaute::mpi
