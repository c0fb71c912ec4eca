#pragma once
// The next event among many sources, each of which has at most one: a winner tree (Knuth, The Art of Computer
// Programming, vol. 3, section 5.4.1). There are no stale entries, and an update costs log2(sources) comparisons.

#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

namespace lepaute::net {

class EventQueue {
public:
    static constexpr double never = std::numeric_limits<double>::infinity();

    explicit EventQueue(std::uint32_t sources)
        : leaves_(std::bit_ceil(sources < 2 ? 2U : sources)), nodes_(std::size_t{2} * leaves_) {
        for (std::uint32_t leaf = 0; leaf < leaves_; ++leaf) {
            nodes_[leaves_ + leaf] = {never, leaf};
        }
        for (std::uint32_t node = leaves_ - 1; node > 0; --node) {
            nodes_[node] = nodes_[2 * std::size_t{node}];
        }
    }

    /// The date of the next event of `source`; `never` takes it away.
    void set(std::uint32_t source, double date_s) noexcept {
        std::uint32_t at = leaves_ + source;
        Node current{date_s, source};
        nodes_[at] = current;
        while (at > 1) {
            const Node& sibling = nodes_[at ^ 1U];
            const bool on_the_right = (at & 1U) != 0; // of equal dates, the lower source comes first
            if (sibling.date_s < current.date_s || (sibling.date_s == current.date_s && on_the_right)) {
                current = sibling;
            }
            at >>= 1U;
            Node& parent = nodes_[at];
            if (parent.source == current.source && parent.date_s == current.date_s) {
                return;
            }
            parent = current;
        }
    }
    [[nodiscard]] double date_s(std::uint32_t source) const noexcept { return nodes_[leaves_ + source].date_s; }
    [[nodiscard]] double next_date_s() const noexcept { return nodes_[1].date_s; }
    [[nodiscard]] std::uint32_t next_source() const noexcept { return nodes_[1].source; }
    [[nodiscard]] std::size_t state_bytes() const noexcept { return nodes_.size() * sizeof(Node); }

private:
    struct Node {
        double date_s;
        std::uint32_t source;
    };
    std::uint32_t leaves_;
    std::vector<Node> nodes_; // nodes_[1] is the winner, nodes_[leaves_ + source] a source's own
};

} // namespace lepaute::net
