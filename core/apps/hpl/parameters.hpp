#pragma once
// The parameters of one HPL run, as in HPL.dat.

#include "checks.hpp"
#include "models/words.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace lepaute::hpl {

/// How a panel goes along its process row; a line of the table is all that is known of one.
struct Broadcast {
    bool modified = false;  // the next root is served first
    bool two_rings = false; // in opposite directions, or halves of the row
    bool in_pieces = false; // of the panel; all is done in the first call, without probes

    friend bool operator==(const Broadcast&, const Broadcast&) = default;
};
constexpr auto words_of(Broadcast /*type*/) noexcept {
    return std::to_array<Word<Broadcast>>({{{}, "1ring"},
                                           {{.modified = true}, "1ring-modified"},
                                           {{.two_rings = true}, "2ring"},
                                           {{.modified = true, .two_rings = true}, "2ring-modified"},
                                           {{.in_pieces = true}, "long"},
                                           {{.modified = true, .in_pieces = true}, "long-modified"}});
}

enum class Factorisation : std::uint8_t { left, crout, right };
constexpr auto words_of(Factorisation /*enum*/) noexcept {
    return words_in_order<Factorisation>("left", "crout", "right");
}

enum class Swap : std::uint8_t { binary_exchange, spread_roll, mix };
constexpr auto words_of(Swap /*enum*/) noexcept {
    return words_in_order<Swap>("binary-exchange", "spread-roll", "mix");
}

/// How ranks are laid on the grid.
enum class Order : std::uint8_t { row, column };
constexpr auto words_of(Order /*enum*/) noexcept { return words_in_order<Order>("row", "column"); }

/// Of L1 and of U.
enum class Form : std::uint8_t { transposed, not_transposed };
constexpr auto words_of(Form /*enum*/) noexcept { return words_in_order<Form>("transposed", "no-transposed"); }

/// Where pivots come from: as for a random matrix, or from the first process row that has rows left.
enum class Pivots : std::uint8_t { random, first_row };
constexpr auto words_of(Pivots /*enum*/) noexcept { return words_in_order<Pivots>("random", "first-row"); }

/// Names are those of lepaute.Hpl.
struct Parameters {
    static constexpr std::int32_t most = 0x7FFFFFFF; // HPL keeps its parameters in C's int
    static constexpr std::uint32_t most_ranks = 1U << 24U;
    static constexpr std::uint32_t most_depth = 1024; // HPL's users have 0, 1 or 2
    static constexpr std::size_t most_steps = 1U << 26U;

    std::int64_t n = 0;  // order of the matrix
    std::int64_t nb = 0; // block size
    std::uint32_t p = 1; // process rows
    std::uint32_t q = 1; // process columns
    std::uint32_t depth = 1;
    Broadcast bcast{.two_rings = true};
    Factorisation pfact = Factorisation::crout; // leaves of the recursion
    Factorisation rfact = Factorisation::right; // recursion
    std::uint32_t nbmin = 2;
    std::uint32_t ndiv = 2;
    Order pmap = Order::row;
    Swap swap = Swap::binary_exchange;
    std::optional<std::int64_t> swap_threshold{}; // mix: spread-roll for more columns than this; none: nb
    Form l1 = Form::transposed;
    Form u = Form::transposed;
    bool equil = true;      // spread-roll
    std::int64_t align = 8; // of the leading dimension, in doubles
    bool copy_l = false;    // HPL built without derived datatypes copies L in every panel
    Pivots pivots = Pivots::random;
    /// The row (from 0) that each column is pivoted with; empty: as `pivots` says.
    std::vector<std::int64_t> pivot_rows{};
    bool sampled = false; // simulate windows of steps only (sampling.hpp)
    /// Simulate the first steps and so many others, without the solve, to learn what a run costs; 0: a real run.
    std::int64_t trial_steps = 0;

    [[nodiscard]] std::size_t ranks() const noexcept { return std::size_t{p} * q; }
    /// Panels; 0 without a block size.
    [[nodiscard]] std::size_t steps() const noexcept {
        return nb > 0 ? static_cast<std::size_t>((n + nb - 1) / nb) : 0;
    }

    /// What no field says by itself.
    void check() const;
    /// All fields, by name, with the least and the most value where there are any: binding and checks go through them.
    template <class Visit>
    static void fields(Visit visit) {
        visit("n", &Parameters::n, 1, most);
        visit("nb", &Parameters::nb, 1, most);
        visit("p", &Parameters::p, 1, most_ranks);
        visit("q", &Parameters::q, 1, most_ranks);
        visit("depth", &Parameters::depth, 0, most_depth);
        visit("bcast", &Parameters::bcast);
        visit("pfact", &Parameters::pfact);
        visit("rfact", &Parameters::rfact);
        visit("nbmin", &Parameters::nbmin, 1, most);
        visit("ndiv", &Parameters::ndiv, 2, most); // the panel itself would be its only part
        visit("pmap", &Parameters::pmap);
        visit("swap", &Parameters::swap);
        visit("swap_threshold", &Parameters::swap_threshold);
        visit("l1", &Parameters::l1);
        visit("u", &Parameters::u);
        visit("equil", &Parameters::equil);
        visit("align", &Parameters::align, 1, most);
        visit("copy_l", &Parameters::copy_l);
        visit("pivots", &Parameters::pivots);
        visit("pivot_rows", &Parameters::pivot_rows);
        visit("sampled", &Parameters::sampled);
        visit("trial_steps", &Parameters::trial_steps, 0, most);
    }
};

/// Rows (or columns) of a block-cyclic distribution that process `proc` of `procs` holds among the first n.
[[nodiscard]] constexpr std::int64_t local_count(std::int64_t n, std::int64_t nb, std::int64_t proc,
                                                 std::int64_t procs) noexcept {
    const std::int64_t blocks = n / nb;
    const std::int64_t extra = blocks % procs;
    const std::int64_t full = (blocks / procs) * nb;
    return full + (proc < extra ? nb : (proc == extra ? n % nb : 0));
}

/// The same among global indices start .. start + n - 1.
[[nodiscard]] constexpr std::int64_t local_count_from(std::int64_t n, std::int64_t start, std::int64_t nb,
                                                      std::int64_t proc, std::int64_t procs) noexcept {
    return local_count(start + n, nb, proc, procs) - local_count(start, nb, proc, procs);
}

} // namespace lepaute::hpl
