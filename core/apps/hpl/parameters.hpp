#pragma once
// The parameters of one HPL run, as in HPL.dat.

#include "apps/hpl/sampling.hpp"

#include <cstdint>
#include <vector>

namespace lepaute::hpl {

enum class Broadcast : std::uint8_t { ring, ring_modified, two_ring, two_ring_modified, longer, longer_modified };
enum class Factorisation : std::uint8_t { left, crout, right };
enum class Swap : std::uint8_t { binary_exchange, spread_roll, mix };

struct Parameters {
    std::int64_t n = 0;  // order of the matrix
    std::int64_t nb = 0; // block size
    std::uint32_t p = 1; // process rows
    std::uint32_t q = 1; // process columns
    std::uint32_t depth = 1;
    Broadcast broadcast = Broadcast::two_ring;
    Factorisation pfact = Factorisation::crout; // leaves of the recursion
    Factorisation rfact = Factorisation::right; // recursion
    std::uint32_t nbmin = 2;
    std::uint32_t ndiv = 2;
    bool row_major = true;
    Swap swap = Swap::binary_exchange;
    std::int64_t swap_threshold = 0; // mix: spread-roll for more columns than this
    bool l1_transposed = true;
    bool u_transposed = true;
    bool equilibrate = true;       // spread-roll
    std::int64_t alignment = 8;    // of the leading dimension, in doubles
    bool copy_l = false;           // HPL built without derived datatypes copies L in every panel
    bool sampled = false;          // simulate windows of steps only (sampling.hpp)
    bool first_row_pivots = false; // all pivots from the first process row that has rows left
    /// The row (from 0) that each column is pivoted with; empty: drawn from the seed, as for a random matrix.
    std::vector<std::int64_t> pivots{};
    Windows windows{};
};

/// Rows (or columns) of a block-cyclic distribution that process `proc` of `procs` holds among the first n.
[[nodiscard]] constexpr std::int64_t local_count(std::int64_t n, std::int64_t nb, std::int64_t proc,
                                                 std::int64_t procs) noexcept {
    const std::int64_t blocks = n / nb;
    const std::int64_t extra = blocks % procs;
    const std::int64_t full = (blocks / procs) * nb;
    if (proc < extra) {
        return full + nb;
    }
    return proc == extra ? full + n % nb : full;
}

/// The same among global indices start .. start + n - 1.
[[nodiscard]] constexpr std::int64_t local_count_from(std::int64_t n, std::int64_t start, std::int64_t nb,
                                                      std::int64_t proc, std::int64_t procs) noexcept {
    return local_count(start + n, nb, proc, procs) - local_count(start, nb, proc, procs);
}

} // namespace lepaute::hpl
