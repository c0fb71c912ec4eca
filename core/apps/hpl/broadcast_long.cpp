// The two broadcasts that cut the panel in pieces (HPL_bcast_blong, _blonM): a binomial tree scatters one piece to each
// process of the row, then neighbours swap pieces until all have all. The modified one first sends the whole panel to
// the next root, which then takes no part. All sends are synchronous; empty pieces are sent as well.

#include "apps/hpl/update.hpp"

#include <algorithm>
#include <bit>

namespace lepaute::hpl {

using mpi::Rank;
using Kind = mpi::Operation::Kind;

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

/// Who takes part stands at a distance from the root; the next root is left out of the modified broadcast.
struct Program::PanelBroadcast::Ring {
    Ring(const Program& of, const Place& place, const Panel& panel)
        : program(of), at(place), root(panel.owner_column), modified(of.parameters_.bcast.modified),
          pieces{panel_length(place, panel), modified ? of.parameters_.q - 1 : of.parameters_.q},
          column_distance((place.column + of.parameters_.q - root) % of.parameters_.q),
          distance(modified && column_distance > 0 ? column_distance - 1 : column_distance) {}
    [[nodiscard]] Rank rank_of(std::uint32_t d) const noexcept {
        return program.rank_at(at.row, (root + (modified && d > 0 ? d + 1 : d)) % program.parameters_.q);
    }

    const Program& program;
    const Place& at;
    std::uint32_t root;
    bool modified;
    Pieces pieces;
    std::uint32_t column_distance; // from the root
    std::uint32_t distance;
};

/// The whole panel to the next root of the modified broadcast.
bool Program::PanelBroadcast::first_piece() {
    const Ring ring(program_, at_, *panel_);
    const std::uint32_t q = program_.parameters_.q;
    round_ = std::bit_floor(ring.pieces.count - 1);
    next_ = Next::scatter;
    if (!ring.modified) {
        return true;
    }
    if (ring.column_distance == 1 || q == 2) {
        next_ = Next::end;
    }
    if (ring.column_distance == 0) {
        return post(program_.rank_at(at_.row, (ring.root + 1) % q), 8.0 * static_cast<double>(ring.pieces.length),
                    Kind::send);
    }
    return ring.column_distance != 1 || operation(Kind::receive, program_.rank_at(at_.row, ring.root));
}

/// One round of the binomial tree, at the distance `round_`.
bool Program::PanelBroadcast::scatter() {
    const Ring ring(program_, at_, *panel_);
    const std::uint32_t bit = round_;
    if (bit == 0) {
        next_ = Next::roll;
        return true;
    }
    round_ = bit / 2;
    const std::uint32_t partner = ring.distance ^ bit;
    if (ring.distance % bit != 0 || partner >= ring.pieces.count) {
        return true;
    }
    return (ring.distance & bit) != 0
               ? operation(Kind::receive, ring.rank_of(partner))
               : post(ring.rank_of(partner), ring.pieces.bytes(partner, partner + bit), Kind::send);
}

bool Program::PanelBroadcast::roll() {
    const Ring ring(program_, at_, *panel_);
    const std::uint32_t size = ring.pieces.count;
    const std::uint32_t k = round_;
    if (k + 1 >= size) {
        next_ = Next::end;
        return true;
    }
    ++round_;
    const bool backwards = ((ring.distance + k) & 1U) != 0;
    const std::uint32_t piece = (ring.distance + (backwards ? k / 2 : size - k / 2)) % size;
    const Rank partner = ring.rank_of((ring.distance + (backwards ? size - 1 : 1)) % size);
    return post(partner, ring.pieces.bytes(piece, piece + 1), Kind::exchange);
}

} // namespace lepaute::hpl
