#pragma once
// Which cores of a node compute: messages between nodes whose other cores do take longer.

#include "mpi/rank_state.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace lepaute::mpi {

/// Until when the ranks compute, node by node. Nothing is kept where it does not matter.
class NodeLoad {
public:
    NodeLoad() = default;
    NodeLoad(std::span<const std::uint32_t> node_of_rank, std::uint32_t node_count, double ranks_on_full_node)
        : others_(ranks_on_full_node - 1.0), begin_(node_count + 1), place_(node_of_rank.size()),
          until_s_(node_of_rank.size()) {
        for (const std::uint32_t node : node_of_rank) {
            ++begin_[node + 1];
        }
        for (std::size_t node = 0; node < node_count; ++node) {
            begin_[node + 1] += begin_[node];
        }
        std::vector<std::uint32_t> next = begin_;
        for (std::size_t rank = 0; rank < place_.size(); ++rank) {
            place_[rank] = next[node_of_rank[rank]]++;
        }
    }

    [[nodiscard]] bool matters() const noexcept { return !until_s_.empty(); }
    void computes_until(Rank rank, double date_s) noexcept {
        if (matters()) {
            until_s_[place_[rank]] = date_s;
        }
    }
    /// Ranks of a node that compute at `date_s`, of all its cores but the one of a message's rank.
    [[nodiscard]] double share(std::uint32_t node, double date_s) const noexcept {
        const auto first = until_s_.begin() + begin_[node];
        const auto last = until_s_.begin() + begin_[node + 1];
        const auto computing = std::count_if(first, last, [=](double until_s) { return until_s > date_s; });
        return std::min(1.0, static_cast<double>(computing) / others_);
    }

private:
    double others_ = 0.0;
    std::vector<std::uint32_t> begin_; // of a node among the places
    std::vector<std::uint32_t> place_; // of a rank
    std::vector<double> until_s_;      // by place
};

} // namespace lepaute::mpi
