// Collective operations in which each member has a block of its own, and the barrier.

#include "mpi/collectives.hpp"

#include <algorithm>
#include <bit>

namespace lepaute::mpi {

namespace {

/// Sends to the member `steps` further around the ring and receives from the one as many before.
Exchange around(const Member& me, std::uint32_t steps, double bytes) {
    const std::uint32_t size = me.communicator.size();
    return {(me.index + steps) % size, bytes, (me.index + size - steps % size) % size};
}

std::uint32_t rounds_of_halves(const Member& me) {
    return static_cast<std::uint32_t>(std::bit_width(me.communicator.size() - 1));
}

} // namespace

Task barrier_dissemination(Member me) {
    return in_rounds(me, rounds_of_halves(me), [=](std::uint32_t round) { return around(me, 1U << round, 0.0); });
}

// Steps 0 .. P - 2 leave block index + 1 complete here, steps P - 1 .. 2P - 3 pass complete blocks on. In each step a
// member sends what it has just received, so the block moves back by one, in both halves.
Task allreduce_ring(Member me, double bytes, double element_bytes) {
    const std::uint32_t size = me.communicator.size();
    const auto elements = static_cast<std::uint64_t>(bytes / element_bytes);
    return in_rounds(me, 2 * (size - 1), [=](std::uint32_t step) {
        const std::uint32_t block = (me.index + 2 * size - step) % size;
        const std::uint64_t sent = elements / size + (block < elements % size ? 1U : 0U);
        return around(me, 1, static_cast<double>(sent) * element_bytes);
    });
}

Task allgather_ring(Member me, double bytes) {
    return in_rounds(me, me.communicator.size() - 1, [=](std::uint32_t /*round*/) { return around(me, 1, bytes); });
}

Task allgather_bruck(Member me, double bytes) {
    return in_rounds(me, rounds_of_halves(me), [=](std::uint32_t round) { // sends all that it has back around the ring
        const std::uint32_t size = me.communicator.size();
        const std::uint32_t has = 1U << round;
        return around(me, size - has, std::min(has, size - has) * bytes);
    });
}

Task allgather_recursive_doubling(Member me, double bytes) {
    const std::uint32_t size = me.communicator.size();
    if (!std::has_single_bit(size)) {
        return allgather_bruck(me, bytes);
    }
    return in_rounds(me, rounds_of_halves(me),
                     [=](std::uint32_t round) { return with(me.index ^ (1U << round), (1U << round) * bytes); });
}

Task allgather_neighbours(Member me, double bytes) {
    const std::uint32_t size = me.communicator.size();
    if (size % 2 != 0) {
        return allgather_ring(me, bytes);
    }
    return in_rounds(me, size / 2, [=](std::uint32_t round) {
        const std::uint32_t neighbour = (me.index + (me.index % 2 == round % 2 ? 1 : size - 1)) % size;
        return with(neighbour, (round == 0 ? 1 : 2) * bytes);
    });
}

Task alltoall_by_exclusive_or(Member me, double bytes) {
    const std::uint32_t size = me.communicator.size();
    if (!std::has_single_bit(size)) {
        return alltoall_pairwise(me, bytes);
    }
    return in_rounds(me, size - 1, [=](std::uint32_t round) { return with(me.index ^ (round + 1), bytes); });
}

Task reduce_scatter_ring(Member me, double bytes) {
    const std::uint32_t size = me.communicator.size();
    const std::uint32_t previous = (me.index + size - 1) % size;
    Posted posted(me, 2);
    co_await posted.receive(0, previous);
    for (std::uint32_t step = 1; step < size; ++step) {
        co_await send(me, (me.index + 1) % size, bytes);
        if (step + 1 < size) {
            co_await posted.receive(step % 2, previous);
        }
        co_await posted.wait((step - 1) % 2);
    }
}

Task barrier_recursive_doubling(Member me) {
    const std::uint32_t cube = std::bit_floor(me.communicator.size());
    const std::uint32_t beyond = me.communicator.size() - cube;
    const auto last = static_cast<std::uint32_t>(std::bit_width(cube));
    return in_rounds(me, last + 1, [=](std::uint32_t round) {
        if (round > 0 && round < last && me.index < cube) {
            return with(me.index ^ (1U << (round - 1)), 0.0);
        }
        if (me.index >= cube && round == 0) {
            return with(me.index - cube, 0.0);
        }
        const bool has_pair = me.index < beyond;
        return Exchange{has_pair && round == last ? me.index + cube : any, 0.0,
                        has_pair && round == 0 ? me.index + cube : any};
    });
}

Task barrier_linear(Member me) {
    co_await gather_posted(me, 0.0, 0);
    co_await broadcast_tree(me, 0.0, 0, {});
}

Task barrier_double_ring(Member me) {
    const std::uint32_t size = me.communicator.size();
    return in_rounds(me, 4, [=](std::uint32_t round) {
        const bool sends = (round % 2 == 0) == (me.index == 0);
        return sends ? Exchange{.to = (me.index + 1) % size} : Exchange{.from = (me.index + size - 1) % size};
    });
}

Task alltoall_pairwise(Member me, double bytes) {
    return in_rounds(me, me.communicator.size() - 1, [=](std::uint32_t round) { return around(me, round + 1, bytes); });
}

Task alltoall_bruck(Member me, double bytes) {
    return in_rounds(me, rounds_of_halves(me), [=](std::uint32_t round) {
        const std::uint32_t size = me.communicator.size();
        const std::uint32_t bit = 1U << round;
        const std::uint32_t whole = size / (2 * bit) * bit; // of the distances 0 to size - 1 those with the bit
        const std::uint32_t rest = size % (2 * bit);
        return around(me, bit, (whole + (rest > bit ? rest - bit : 0)) * bytes);
    });
}

} // namespace lepaute::mpi
