#include "mpi/collectives.hpp"

#include <bit>

namespace lepaute::mpi {

namespace {

/// Members of a hypercube of the largest power of two. Of each two below `folded` the even (or odd) one gives its
/// vector to the other, and sits the rounds out.
struct Cube {
    explicit Cube(const Member& member, bool odd_sit_out = false)
        : me(member), size(std::bit_floor(member.communicator.size())), folded(2 * (member.communicator.size() - size)),
          sits_out(member.index < folded && (member.index % 2 != 0) == odd_sit_out),
          stands_in(member.index < folded && !sits_out), stay(odd_sit_out ? 0 : 1), pair(member.index ^ 1U),
          corner(corner_of(member.index)) {}
    [[nodiscard]] std::uint32_t corner_of(std::uint32_t index) const {
        return index < folded ? index / 2 : index - folded / 2;
    }
    [[nodiscard]] std::uint32_t index_of(std::uint32_t other) const {
        return other < folded / 2 ? 2 * other + stay : other + folded / 2;
    }
    /// Members for which `count` corners from `first` on stand.
    [[nodiscard]] double members(std::uint32_t first, std::uint32_t count) const {
        return count + (std::min(first + count, folded / 2) - std::min(first, folded / 2));
    }

    /// An exchange of `bytes` with the member at the corner that differs in this bit.
    [[nodiscard]] auto across(std::uint32_t bit, double bytes) const {
        return exchange(me, with(index_of(corner ^ bit), bytes));
    }

    const Member& me;
    std::uint32_t size;
    std::uint32_t folded;
    bool sits_out;
    bool stands_in;
    std::uint32_t stay; // of two members
    std::uint32_t pair;
    std::uint32_t corner;
};

/// Of two members the one that sits out gives its vector, or gets the sum `back`.
Task fold(const Cube& cube, double bytes, bool back = false) {
    if (back ? cube.stands_in : cube.sits_out) {
        co_await send(cube.me, cube.pair, bytes);
    } else if (cube.sits_out || cube.stands_in) {
        co_await receive(cube.me, cube.pair);
    }
}

bool has_shares(Algorithm algorithm) {
    return algorithm == Algorithm::rabenseifner || algorithm == Algorithm::rabenseifner_halves;
}

/// Each corner of the cube has the sum, or its share of it.
Task sum_across(const Cube& cube, double bytes, Algorithm algorithm) {
    const bool in_halves = algorithm == Algorithm::rabenseifner_halves;
    const double given = in_halves ? std::ceil(bytes / 2) : bytes;
    if (in_halves && (cube.sits_out || cube.stands_in)) {
        co_await exchange(cube.me, with(cube.pair, given));
    }
    co_await fold(cube, given);
    for (std::uint32_t distance = 1; !cube.sits_out && distance < cube.size; distance *= 2) {
        co_await cube.across(distance, has_shares(algorithm) ? std::ceil(bytes / (2 * distance)) : bytes);
    }
}

} // namespace

Task allreduce_binomial(Member me, double bytes) {
    co_await along_tree(me, bytes, 0, Algorithm::binomial, Direction::to_root);
    co_await along_tree(me, bytes, 0, Algorithm::binomial, Direction::from_root, Carried::whole, true);
}

Task allreduce_across_cube(Member me, double bytes, Algorithm algorithm) {
    const Cube cube(me, algorithm == Algorithm::rabenseifner_halves);
    co_await sum_across(cube, bytes, algorithm);
    const std::uint32_t farthest = has_shares(algorithm) && !cube.sits_out ? cube.size / 2 : 0;
    for (std::uint32_t distance = farthest; distance > 0; distance /= 2) {
        co_await cube.across(distance, std::ceil(bytes / (2 * distance)));
    }
    co_await fold(cube, bytes, true);
}

Task reduce_rabenseifner(Member me, double bytes, std::uint32_t root) {
    const Cube cube(me, true);
    co_await sum_across(cube, bytes, Algorithm::rabenseifner);
    const std::uint32_t goal = cube.corner_of(root);
    for (std::uint32_t distance = cube.size / 2; !cube.sits_out && distance > 0; distance /= 2) {
        const std::uint32_t partner = cube.index_of(cube.corner ^ distance);
        if (((cube.corner ^ goal) & distance) != 0) {
            co_await send(me, partner, std::ceil(bytes / (2 * distance)));
            co_return;
        }
        co_await receive(me, partner);
    }
    const bool root_sits_out = root < cube.folded && root % 2 != 0;
    if (root_sits_out && (me.index == root || !cube.sits_out)) {
        co_await fold(cube, bytes, true);
    }
}

Task reduce_scatter_halving(Member me, double bytes, bool near_first) {
    me.by_isend = me.by_isend && near_first;
    const Cube cube(me);
    std::uint32_t first = 0; // corner whose blocks are still to be summed here: at last its own, or the mirrored
    co_await fold(cube, me.communicator.size() * bytes);
    for (std::uint32_t distance = 1; distance < cube.size; distance *= 2) {
        const std::uint32_t left = cube.size / (2 * distance); // corners
        const std::uint32_t bit = near_first ? distance : left;
        const bool upper = (cube.corner & bit) != 0;
        if (!cube.sits_out) {
            co_await cube.across(bit, cube.members(upper ? first : first + left, left) * bytes);
        }
        first += upper ? left : 0;
    }
    if (cube.sits_out) {
        co_await receive(me, cube.index_of(first));
        co_return;
    }
    if (first < cube.folded / 2) {
        co_await send(me, 2 * first, bytes);
    }
    if (first != cube.corner) {
        co_await exchange(me, with(cube.index_of(first), bytes));
    }
}

} // namespace lepaute::mpi
