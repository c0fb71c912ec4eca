#pragma once
// The next event among many sources, each of which has at most one: a winner tree (Knuth, The Art of Computer
// Programming, vol. 3, section 5.4.1). There are no stale entries, and an update costs log2(sources) comparisons.

#include "net/fetch.hpp"
#include "net/large_pages.hpp"

#include <algorithm>
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
            nodes_[leaves_ + leaf] = {std::bit_cast<std::uint64_t>(never), leaf};
        }
        for (std::uint32_t node = leaves_ - 1; node > 0; --node) {
            nodes_[node] = nodes_[2 * std::size_t{node}];
        }
    }

    /// The date of the next event of `source`; `never` takes it away.
    void set(std::uint32_t source, double date_s) noexcept {
        // The winner itself leaves all of its matches: they have to be played again up to the root.
        if (leaves_ > few && nodes_[1].source != source) {
            replay<true>(source, date_s);
        } else {
            replay<false>(source, date_s);
        }
    }
    [[nodiscard]] double date_s(std::uint32_t source) const noexcept {
        return std::bit_cast<double>(nodes_[leaves_ + source].bits);
    }
    [[nodiscard]] double next_date_s() const noexcept { return std::bit_cast<double>(nodes_[1].bits); }
    [[nodiscard]] std::uint32_t next_source() const noexcept { return nodes_[1].source; }
    /// The date of the next event of all others.
    [[nodiscard]] double next_date_without_s(std::uint32_t source) const noexcept {
        if (next_source() != source) {
            return next_date_s();
        }
        std::uint64_t bits = std::bit_cast<std::uint64_t>(never);
        for (std::uint32_t at = leaves_ + source; at > 1; at >>= 1U) {
            bits = std::min(bits, nodes_[at ^ 1U].bits);
        }
        return std::bit_cast<double>(bits);
    }
    /// Whose event comes after the next one if nothing else is set; any number where nobody has one.
    [[nodiscard]] std::uint32_t source_after_next() const noexcept {
        std::uint64_t bits = ~std::uint64_t{0};
        std::uint32_t source = nodes_[1].source;
        for (std::uint32_t at = leaves_ + source; at > 1; at >>= 1U) {
            const Node other = nodes_[at ^ 1U];
            const bool earlier = other.bits < bits;
            bits = earlier ? other.bits : bits;
            source = earlier ? other.source : source;
        }
        return source;
    }
    /// A wish that setting the date of `source` soon should cost less.
    void fetch(std::uint32_t source) const noexcept { net::fetch(&nodes_[leaves_ + source], sizeof(Node)); }
    [[nodiscard]] std::size_t state_bytes() const noexcept { return nodes_.size() * sizeof(Node); }

private:
    struct Node {
        std::uint64_t bits; // of the date
        std::uint32_t source;
    };
    static constexpr std::uint32_t few = 64; // leaves whose whole way up costs less than a branch guessed wrong

    /// The matches from a leaf to the root. stops: where the winner of a match is as before, all above it stay.
    template <bool stops>
    void replay(std::uint32_t source, double date_s) noexcept {
        std::uint32_t at = leaves_ + source;
        // Dates are not negative: their bits are in their order. Who wins does not depend on a comparison by a branch,
        // which would be guessed wrong half of the time.
        auto bits = std::bit_cast<std::uint64_t>(date_s);
        std::uint32_t winner = source;
        nodes_[at] = {bits, winner};
        while (at > 1) {
            const Node sibling = nodes_[at ^ 1U];
            const auto on_the_right =
                static_cast<std::uint64_t>(at & 1U); // of equal dates, the lower source comes first
            const bool loses = sibling.bits < bits + on_the_right;
            bits = loses ? sibling.bits : bits;
            winner = loses ? sibling.source : winner;
            at >>= 1U;
            if (stops && nodes_[at].bits == bits && nodes_[at].source == winner) {
                return;
            }
            nodes_[at] = {bits, winner};
        }
    }

    std::uint32_t leaves_;
    std::vector<Node, LargePages<Node>> nodes_; // nodes_[1] is the winner, nodes_[leaves_ + source] a source's own
};

} // namespace lepaute::net
