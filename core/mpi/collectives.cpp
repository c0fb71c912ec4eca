#include "mpi/collectives.hpp"

#include <bit>
#include <cmath>

namespace lepaute::mpi {

namespace {

Rank rank_of(const Member& me, std::uint32_t index) { return me.communicator.ranks[index]; }

/// Index relative to the root: the root is 0.
std::uint32_t relative(const Member& me, std::uint32_t root) {
    const std::uint32_t size = me.communicator.size();
    return (me.index + size - root) % size;
}

Rank at_relative(const Member& me, std::uint32_t root, std::uint32_t place) {
    return rank_of(me, (place + root) % me.communicator.size());
}

/// The distance to the parent in the binomial tree: the lowest bit of the place; for the root, the first power of two
/// that is not below the size.
std::uint32_t distance_to_parent(std::uint32_t place, std::uint32_t size) {
    return place == 0 ? std::bit_ceil(size) : place & (~place + 1U);
}

void combine(const Member& me, const Vector& vector, double bytes) {
    me.engine.compute(own_rank(me), bytes * vector.combine_s_per_byte);
}

double block_bytes(const Vector& vector, std::uint32_t block, std::uint32_t blocks) {
    const std::uint64_t elements = vector.elements / blocks + (block < vector.elements % blocks ? 1U : 0U);
    return static_cast<double>(elements) * vector.element_bytes;
}

} // namespace

Task broadcast_binomial(Member me, Vector vector, std::uint32_t root) {
    const std::uint32_t size = me.communicator.size();
    const std::uint32_t place = relative(me, root);
    const std::uint32_t above = distance_to_parent(place, size);
    if (place != 0) {
        co_await me.engine.receive(own_rank(me), at_relative(me, root, place - above), me.tag);
    }
    for (std::uint32_t below = above / 2; below > 0; below /= 2) {
        if (place + below < size) {
            co_await me.engine.send(own_rank(me), at_relative(me, root, place + below), me.tag, vector.bytes());
        }
    }
}

Task reduce_binomial(Member me, Vector vector, std::uint32_t root) {
    const std::uint32_t size = me.communicator.size();
    const std::uint32_t place = relative(me, root);
    const std::uint32_t above = distance_to_parent(place, size);
    for (std::uint32_t below = 1; below < above; below *= 2) {
        if (place + below < size) {
            co_await me.engine.receive(own_rank(me), at_relative(me, root, place + below), me.tag);
            combine(me, vector, vector.bytes());
        }
    }
    if (place != 0) {
        co_await me.engine.send(own_rank(me), at_relative(me, root, place - above), me.tag, vector.bytes());
    }
}

Task allreduce_binomial(Member me, Vector vector) {
    co_await reduce_binomial(me, vector, 0);
    co_await broadcast_binomial(me, vector, 0);
}

Task allreduce_recursive_doubling(Member me, Vector vector) {
    const std::uint32_t size = me.communicator.size();
    const std::uint32_t cube = std::bit_floor(size);
    const std::uint32_t folded = 2 * (size - cube); // members below it come in pairs, one of which sits the rounds out
    const bool in_pair = me.index < folded;
    if (in_pair && me.index % 2 == 0) {
        const Rank stand_in = rank_of(me, me.index + 1);
        co_await me.engine.send(own_rank(me), stand_in, me.tag, vector.bytes());
        co_await me.engine.receive(own_rank(me), stand_in, me.tag);
        co_return;
    }
    if (in_pair) {
        co_await me.engine.receive(own_rank(me), rank_of(me, me.index - 1), me.tag);
        combine(me, vector, vector.bytes());
    }
    const std::uint32_t corner = in_pair ? me.index / 2 : me.index - folded / 2;
    for (std::uint32_t distance = 1; distance < cube; distance *= 2) {
        const std::uint32_t other = corner ^ distance;
        const Rank partner = rank_of(me, other < folded / 2 ? 2 * other + 1 : other + folded / 2);
        co_await me.engine.send_receive(own_rank(me), partner, me.tag, vector.bytes(), partner, me.tag, me.by_isend);
        combine(me, vector, vector.bytes());
    }
    if (in_pair) {
        co_await me.engine.send(own_rank(me), rank_of(me, me.index - 1), me.tag, vector.bytes());
    }
}

namespace {

/// Members of a hypercube of the largest power of two. Each even member below `folded` gives its vector to the next one
/// and sits the rounds out.
struct Cube {
    explicit Cube(const Member& member)
        : me(member), size(std::bit_floor(member.communicator.size())), folded(2 * (member.communicator.size() - size)),
          sits_out(member.index < folded && member.index % 2 == 0), stands_in(member.index < folded && !sits_out),
          corner(corner_of(member.index)) {}
    [[nodiscard]] std::uint32_t corner_of(std::uint32_t index) const {
        return index < folded ? index / 2 : index - folded / 2;
    }
    [[nodiscard]] Rank at(std::uint32_t other) const {
        return rank_of(me, other < folded / 2 ? 2 * other + 1 : other + folded / 2);
    }

    const Member& me;
    std::uint32_t size;
    std::uint32_t folded;
    bool sits_out;
    bool stands_in;
    std::uint32_t corner;
};

/// Each corner of the cube is left with its share of the sum.
Task scatter_by_halves(const Cube& cube, Vector vector) {
    const Member& me = cube.me;
    if (cube.sits_out) {
        co_await me.engine.send(own_rank(me), rank_of(me, me.index + 1), me.tag, vector.bytes());
        co_return;
    }
    if (cube.stands_in) {
        co_await me.engine.receive(own_rank(me), rank_of(me, me.index - 1), me.tag);
        combine(me, vector, vector.bytes());
    }
    for (std::uint32_t distance = 1; distance < cube.size; distance *= 2) {
        const double bytes = std::ceil(vector.bytes() / (2 * distance));
        const Rank partner = cube.at(cube.corner ^ distance);
        co_await me.engine.send_receive(own_rank(me), partner, me.tag, bytes, partner, me.tag, me.by_isend);
        combine(me, vector, bytes);
    }
}

} // namespace

Task allreduce_rabenseifner(Member me, Vector vector) {
    const Cube cube(me);
    co_await scatter_by_halves(cube, vector);
    if (cube.sits_out) {
        co_await me.engine.receive(own_rank(me), rank_of(me, me.index + 1), me.tag);
        co_return;
    }
    for (std::uint32_t distance = cube.size / 2; distance > 0; distance /= 2) {
        const double bytes = std::ceil(vector.bytes() / (2 * distance));
        const Rank partner = cube.at(cube.corner ^ distance);
        co_await me.engine.send_receive(own_rank(me), partner, me.tag, bytes, partner, me.tag, me.by_isend);
    }
    if (cube.stands_in) {
        co_await me.engine.send(own_rank(me), rank_of(me, me.index - 1), me.tag, vector.bytes());
    }
}

Task reduce_rabenseifner(Member me, Vector vector, std::uint32_t root) {
    const Cube cube(me);
    co_await scatter_by_halves(cube, vector);
    const std::uint32_t goal = cube.corner_of(root);
    const bool passes_on = root < cube.folded && root % 2 == 0; // the root sits out
    if (cube.sits_out) {
        if (me.index == root) {
            co_await me.engine.receive(own_rank(me), rank_of(me, root + 1), me.tag);
        }
        co_return;
    }
    for (std::uint32_t distance = cube.size / 2; distance > 0; distance /= 2) {
        const double bytes = std::ceil(vector.bytes() / (2 * distance));
        const Rank partner = cube.at(cube.corner ^ distance);
        if (((cube.corner ^ goal) & distance) != 0) {
            co_await me.engine.send(own_rank(me), partner, me.tag, bytes);
            co_return;
        }
        co_await me.engine.receive(own_rank(me), partner, me.tag);
    }
    if (passes_on) {
        co_await me.engine.send(own_rank(me), rank_of(me, root), me.tag, vector.bytes());
    }
}

Task allreduce_ring(Member me, Vector vector) {
    const std::uint32_t size = me.communicator.size();
    const Rank next = rank_of(me, (me.index + 1) % size);
    const Rank previous = rank_of(me, (me.index + size - 1) % size);
    // Steps 0 .. P - 2 leave block index + 1 complete here, steps P - 1 .. 2P - 3 pass complete blocks on. In each step
    // a member sends what it has just received, so the block moves back by one, in both halves.
    for (std::uint32_t step = 0; step + 2 < 2 * size; ++step) {
        const std::uint32_t sent = (me.index + 2 * size - step) % size;
        const std::uint32_t received = (sent + size - 1) % size;
        co_await me.engine.send_receive(own_rank(me), next, me.tag, block_bytes(vector, sent, size), previous, me.tag,
                                        me.by_isend);
        if (step + 1 < size) {
            combine(me, vector, block_bytes(vector, received, size));
        }
    }
}

} // namespace lepaute::mpi
