// The two broadcasts that cut the panel in pieces (HPL_bcast_blong, _blonM): a binomial tree scatters one piece to each
// process of the row, then neighbours swap pieces until all have all. The modified one first sends the whole panel to
// the next root, which then takes no part. All sends are synchronous; empty pieces are sent as well.

#include "apps/hpl/simulation.hpp"

#include <algorithm>
#include <bit>

namespace lepaute::hpl {

using mpi::Rank;
using mpi::Task;

namespace {

/// The panel cut into as many pieces as take part; the last takes what is left over.
struct Pieces {
    std::int64_t length; // of the panel, in doubles
    std::uint32_t count;

    [[nodiscard]] std::int64_t each() const noexcept { return std::max<std::int64_t>(length / count, 1); }
    /// Bytes of the pieces begin .. end - 1.
    [[nodiscard]] double bytes(std::uint32_t begin, std::uint32_t end) const noexcept {
        const std::int64_t last = end >= count ? length : std::min(length, end * each());
        return 8.0 * static_cast<double>(std::max<std::int64_t>(0, last - begin * each()));
    }
};

} // namespace

Task Program::broadcast_long(Place at, const Panel& panel) {
    const std::uint32_t q = parameters_.q;
    const std::uint32_t root = panel.owner_column;
    const bool modified = is_modified(parameters_.bcast);
    const std::uint32_t column_distance = (at.column + q - root) % q;
    const std::int64_t length = panel_length(at, panel);
    const auto tag = broadcast_tag(panel);
    const bool noncontiguous = column_distance == 0 && !parameters_.copy_l;
    const auto message = [&](Rank to, double bytes) {
        return Message{.phase = Phase::broadcast,
                       .to = to,
                       .tag = tag,
                       .bytes = bytes,
                       .noncontiguous = noncontiguous,
                       .synchronous = true};
    };

    if (modified) {
        if (column_distance == 0) {
            const Rank next = rank_at(at.row, (root + 1) % q);
            co_await send(at.rank, message(next, 8.0 * static_cast<double>(length)));
        } else if (column_distance == 1) {
            co_await engine_.receive(at.rank, rank_at(at.row, root), tag);
        }
        if (column_distance == 1 || q == 2) {
            co_return;
        }
    }
    // Who takes part stands at a distance from the root; the next root is left out of the modified one.
    const Pieces pieces{length, modified ? q - 1 : q};
    const std::uint32_t size = pieces.count;
    const std::uint32_t distance = modified && column_distance > 0 ? column_distance - 1 : column_distance;
    const auto rank_of = [&](std::uint32_t d) { return rank_at(at.row, (root + (modified && d > 0 ? d + 1 : d)) % q); };

    for (std::uint32_t bit = std::bit_floor(size - 1); bit > 0; bit >>= 1U) {
        const std::uint32_t partner = distance ^ bit;
        if (distance % bit != 0 || partner >= size) {
            continue;
        }
        if ((distance & bit) != 0) {
            co_await engine_.receive(at.rank, rank_of(partner), tag);
        } else {
            co_await send(at.rank, message(rank_of(partner), pieces.bytes(partner, partner + bit)));
        }
    }
    const Rank previous = rank_of((distance + size - 1) % size);
    const Rank next = rank_of((distance + 1) % size);
    for (std::uint32_t k = 0; k + 1 < size; ++k) {
        const bool backwards = ((distance + k) & 1U) != 0;
        const std::uint32_t piece = (distance + (backwards ? k / 2 : size - k / 2)) % size;
        co_await exchange(at.rank, message(backwards ? previous : next, pieces.bytes(piece, piece + 1)));
    }
}

} // namespace lepaute::hpl
