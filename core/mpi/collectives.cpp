#include "mpi/collectives.hpp"

#include <bit>

namespace lepaute::mpi {

namespace {

void combine(const Member& me, const Vector& vector, double bytes) {
    me.engine.compute(own_rank(me), bytes * vector.combine_s_per_byte);
}

double block_bytes(const Vector& vector, std::uint32_t block, std::uint32_t blocks) {
    const std::uint64_t elements = vector.elements / blocks + (block < vector.elements % blocks ? 1U : 0U);
    return static_cast<double>(elements) * vector.element_bytes;
}

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
        const std::uint32_t partner = index_of(corner ^ bit);
        return exchange(me, {partner, bytes, partner});
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

/// Each corner of the cube is left with its share of the sum.
Task scatter_by_halves(const Cube& cube, Vector vector, bool in_halves = false) {
    const Member& me = cube.me;
    const double given = in_halves ? std::ceil(vector.bytes() / 2) : vector.bytes();
    if (in_halves && (cube.sits_out || cube.stands_in)) {
        co_await exchange(me, {cube.pair, given, cube.pair});
        combine(me, vector, given);
    }
    if (cube.sits_out) {
        co_await send(me, cube.pair, given);
        co_return;
    }
    if (cube.stands_in) {
        co_await receive(me, cube.pair);
        combine(me, vector, in_halves ? 0.0 : given);
    }
    for (std::uint32_t distance = 1; distance < cube.size; distance *= 2) {
        const double bytes = std::ceil(vector.bytes() / (2 * distance));
        co_await cube.across(distance, bytes);
        combine(me, vector, bytes);
    }
}

} // namespace

Task broadcast_binomial(Member me, Vector vector, std::uint32_t root) {
    const Node node = node_of(me, {Tree::binomial}, root);
    if (node.parent != me.index) {
        co_await receive(me, node.parent);
    }
    for (auto child = node.children.rbegin(); child != node.children.rend(); ++child) {
        co_await send(me, *child, vector.bytes());
    }
}

Task reduce_binomial(Member me, Vector vector, std::uint32_t root) {
    const Node node = node_of(me, {Tree::binomial}, root);
    for (const std::uint32_t child : node.children) {
        co_await receive(me, child);
        combine(me, vector, vector.bytes());
    }
    if (node.parent != me.index) {
        co_await send(me, node.parent, vector.bytes());
    }
}

Task allreduce_binomial(Member me, Vector vector) {
    co_await reduce_binomial(me, vector, 0);
    co_await broadcast_binomial(me, vector, 0);
}

Task allreduce_recursive_doubling(Member me, Vector vector) {
    const Cube cube(me);
    if (cube.sits_out) {
        co_await send(me, cube.pair, vector.bytes());
        co_await receive(me, cube.pair);
        co_return;
    }
    if (cube.stands_in) {
        co_await receive(me, cube.pair);
        combine(me, vector, vector.bytes());
    }
    for (std::uint32_t distance = 1; distance < cube.size; distance *= 2) {
        co_await cube.across(distance, vector.bytes());
        combine(me, vector, vector.bytes());
    }
    if (cube.stands_in) {
        co_await send(me, cube.pair, vector.bytes());
    }
}

Task allreduce_rabenseifner(Member me, Vector vector, bool in_halves) {
    const Cube cube(me, in_halves);
    co_await scatter_by_halves(cube, vector, in_halves);
    if (cube.sits_out) {
        co_await receive(me, cube.pair);
        co_return;
    }
    for (std::uint32_t distance = cube.size / 2; distance > 0; distance /= 2) {
        co_await cube.across(distance, std::ceil(vector.bytes() / (2 * distance)));
    }
    if (cube.stands_in) {
        co_await send(me, cube.pair, vector.bytes());
    }
}

Task reduce_rabenseifner(Member me, Vector vector, std::uint32_t root) {
    const Cube cube(me, true);
    co_await scatter_by_halves(cube, vector);
    const std::uint32_t goal = cube.corner_of(root);
    const bool passes_on = root < cube.folded && root % 2 != 0; // the root sits out
    if (cube.sits_out) {
        if (me.index == root) {
            co_await receive(me, cube.pair);
        }
        co_return;
    }
    for (std::uint32_t distance = cube.size / 2; distance > 0; distance /= 2) {
        const double bytes = std::ceil(vector.bytes() / (2 * distance));
        const std::uint32_t partner = cube.index_of(cube.corner ^ distance);
        if (((cube.corner ^ goal) & distance) != 0) {
            co_await send(me, partner, bytes);
            co_return;
        }
        co_await receive(me, partner);
    }
    if (passes_on) {
        co_await send(me, root, vector.bytes());
    }
}

Task reduce_scatter_halving(Member me, double bytes, bool near_first) {
    me.by_isend = me.by_isend && near_first;
    const Cube cube(me);
    std::uint32_t first = 0; // corner whose blocks are still to be summed here: at last its own, or the mirrored
    if (cube.sits_out) {
        co_await send(me, cube.pair, me.communicator.size() * bytes);
    } else if (cube.stands_in) {
        co_await receive(me, cube.pair);
    }
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
        co_await exchange(me, {cube.index_of(first), bytes, cube.index_of(first)});
    }
}

Task allreduce_ring(Member me, Vector vector) {
    const std::uint32_t size = me.communicator.size();
    const std::uint32_t next = (me.index + 1) % size;
    const std::uint32_t previous = (me.index + size - 1) % size;
    // Steps 0 .. P - 2 leave block index + 1 complete here, steps P - 1 .. 2P - 3 pass complete blocks on. In each step
    // a member sends what it has just received, so the block moves back by one, in both halves.
    for (std::uint32_t step = 0; step + 2 < 2 * size; ++step) {
        const std::uint32_t sent = (me.index + 2 * size - step) % size;
        const std::uint32_t received = (sent + size - 1) % size;
        co_await exchange(me, {next, block_bytes(vector, sent, size), previous});
        if (step + 1 < size) {
            combine(me, vector, block_bytes(vector, received, size));
        }
    }
}

} // namespace lepaute::mpi
