#pragma once
// The next event among many sources, each of which has at most one: a winner tree (Knuth, The Art of Computer
// Programming, vol. 3, section 5.4.1), without stale entries; an update costs log2(sources) comparisons.

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
        : leaves_(std::bit_ceil(sources < 2 ? 2U : sources)), low_bits_(leaves_ - 1), dates_s_(leaves_, never),
          keys_(std::size_t{2} * leaves_) {
        for (std::uint32_t leaf = 0; leaf < leaves_; ++leaf) {
            keys_[leaves_ + leaf] = key_of(leaf, never);
        }
        for (std::uint32_t node = leaves_ - 1; node > 0; --node) {
            keys_[node] = keys_[2 * std::size_t{node}];
        }
    }

    /// The date of the next event of `source`; `never` takes it away.
    void set(std::uint32_t source, double date_s) noexcept {
        // The winner itself leaves all of its matches: they have to be played again up to the root.
        if (date_s != dates_s_[source]) {
            const bool may_stop = leaves_ > few && next_source() != source;
            may_stop ? replay<true>(source, date_s) : replay<false>(source, date_s);
        }
    }
    [[nodiscard]] double date_s(std::uint32_t source) const noexcept { return dates_s_[source]; }
    [[nodiscard]] double next_date_s() const noexcept { return dates_s_[next_source()]; }
    [[nodiscard]] std::uint32_t next_source() const noexcept { return source_of(keys_[1]); }
    /// The date of the next event of all others.
    [[nodiscard]] double next_date_without_s(std::uint32_t source) const noexcept {
        return dates_s_[next_source() == source ? source_after_next() : next_source()];
    }
    /// Whose event comes after the next one if nothing else is set; any number where nobody has one.
    [[nodiscard]] std::uint32_t source_after_next() const noexcept {
        std::uint64_t key = ~std::uint64_t{0};
        for (std::uint32_t at = leaves_ + next_source(); at > 1; at >>= 1U) {
            key = winner_of(key, keys_[at ^ 1U]);
        }
        return source_of(key);
    }
    /// A wish that setting the date of `source` soon should cost less.
    void fetch(std::uint32_t source) const noexcept { net::fetch(&keys_[leaves_ + source], sizeof(std::uint64_t)); }
    [[nodiscard]] std::size_t state_bytes() const noexcept {
        return dates_s_.size() * sizeof(double) + keys_.size() * sizeof(std::uint64_t);
    }

private:
    static constexpr std::uint32_t few = 64; // leaves whose whole way up costs less than a branch guessed wrong

    [[nodiscard]] std::uint32_t source_of(std::uint64_t key) const noexcept {
        return static_cast<std::uint32_t>(key) & low_bits_;
    }
    /// The bits of dates, which are not negative, are in their order; the last ones make room for the source. Events
    /// that never come are after all others, and no two of them look alike.
    [[nodiscard]] std::uint64_t key_of(std::uint32_t source, double date_s) const noexcept {
        const std::uint64_t bits = date_s == never ? std::uint64_t{1} << 63U | std::uint64_t{source} << 32U
                                                   : std::bit_cast<std::uint64_t>(date_s);
        return (bits & ~std::uint64_t{low_bits_}) | source;
    }
    [[nodiscard]] std::uint64_t winner_of(std::uint64_t one, std::uint64_t other) const noexcept {
        if ((one ^ other) <= low_bits_) [[unlikely]] { // dates that differ in their last bits, or not at all
            const double date_s = dates_s_[source_of(one)];
            const double other_s = dates_s_[source_of(other)];
            if (date_s != other_s) {
                return date_s < other_s ? one : other;
            }
        }
        return std::min(one, other); // of equal dates, the lower source comes first
    }

    /// The matches from a leaf to the root. stops: where the winner of one is another, as before, all above it stay.
    template <bool stops>
    void replay(std::uint32_t source, double date_s) noexcept {
        std::uint64_t* const keys = keys_.data();
        std::size_t at = std::size_t{leaves_} + source;
        std::uint64_t key = key_of(source, date_s);
        dates_s_[source] = date_s;
        keys[at] = key;
        while (at > 1) {
            // Mostly no branch, which would be guessed wrong half of the time.
            key = winner_of(key, keys[at ^ 1U]);
            at >>= 1U;
            if (stops && keys[at] == key && source_of(key) != source) {
                return;
            }
            keys[at] = key;
        }
    }

    std::uint32_t leaves_;
    std::uint32_t low_bits_; // of a key: the source
    std::vector<double, LargePages<double>> dates_s_;
    std::vector<std::uint64_t, LargePages<std::uint64_t>> keys_; // [1]: of the winner, [leaves_ + source]: its own
};

} // namespace lepaute::net
