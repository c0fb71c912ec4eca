// Collective operations in which each member has a block of its own, and the barrier.

#include "mpi/collectives.hpp"

#include <algorithm>
#include <bit>

namespace lepaute::mpi {

namespace {

/// The member `steps` further around the ring, and the one as many before.
Rank after(const Member& me, std::uint32_t steps) {
    return me.communicator.ranks[(me.index + steps) % me.communicator.size()];
}
Rank before(const Member& me, std::uint32_t steps) {
    const std::uint32_t size = me.communicator.size();
    return me.communicator.ranks[(me.index + size - steps % size) % size];
}

/// Sends to the member `steps` further and receives from the one as many before.
auto pass_on(const Member& me, std::uint32_t steps, double bytes) {
    return me.engine.send_receive(own_rank(me), after(me, steps), me.tag, bytes, before(me, steps), me.tag,
                                  me.by_isend);
}

/// A member's place in the binomial tree of `root`.
struct Place {
    std::uint32_t number; // the root's is 0
    std::uint32_t above;  // distance to the parent; of the root the first power of two that is not below the size
    std::uint32_t size;

    Place(const Member& me, std::uint32_t root)
        : number((me.index + me.communicator.size() - root) % me.communicator.size()),
          above(number == 0 ? std::bit_ceil(me.communicator.size()) : number & (~number + 1U)),
          size(me.communicator.size()) {}
    [[nodiscard]] bool has_child(std::uint32_t distance) const { return number + distance < size; }
    /// Members of the subtree of the child at that distance.
    [[nodiscard]] double below(std::uint32_t distance) const { return std::min(distance, size - (number + distance)); }
    /// Of the own subtree.
    [[nodiscard]] double own() const { return std::min(above, size - number); }
};

} // namespace

Task barrier_dissemination(Member me) {
    for (std::uint32_t distance = 1; distance < me.communicator.size(); distance *= 2) {
        co_await pass_on(me, distance, 0.0);
    }
}

Task gather_binomial(Member me, double bytes, std::uint32_t root) {
    const Place place(me, root);
    for (std::uint32_t distance = 1; distance < place.above; distance *= 2) {
        if (place.has_child(distance)) {
            co_await me.engine.receive(own_rank(me), after(me, distance), me.tag);
        }
    }
    if (place.number != 0) {
        co_await me.engine.send(own_rank(me), before(me, place.above), me.tag, place.own() * bytes);
    }
}

Task scatter_binomial(Member me, double bytes, std::uint32_t root) {
    const Place place(me, root);
    if (place.number != 0) {
        co_await me.engine.receive(own_rank(me), before(me, place.above), me.tag);
    }
    for (std::uint32_t distance = place.above / 2; distance > 0; distance /= 2) {
        if (place.has_child(distance)) {
            co_await me.engine.send(own_rank(me), after(me, distance), me.tag, place.below(distance) * bytes);
        }
    }
}

Task allgather_ring(Member me, double bytes) {
    for (std::uint32_t step = 1; step < me.communicator.size(); ++step) {
        co_await pass_on(me, 1, bytes);
    }
}

Task allgather_bruck(Member me, double bytes) {
    const std::uint32_t size = me.communicator.size();
    for (std::uint32_t has = 1; has < size; has *= 2) { // sends all that it has back around the ring
        const double blocks = std::min(has, size - has);
        co_await me.engine.send_receive(own_rank(me), before(me, has), me.tag, blocks * bytes, after(me, has), me.tag,
                                        me.by_isend);
    }
}

Task alltoall_pairwise(Member me, double bytes) {
    for (std::uint32_t step = 1; step < me.communicator.size(); ++step) {
        co_await pass_on(me, step, bytes);
    }
}

Task alltoall_bruck(Member me, double bytes) {
    const std::uint32_t size = me.communicator.size();
    for (std::uint32_t bit = 1; bit < size; bit *= 2) {
        const std::uint32_t whole = size / (2 * bit) * bit; // of the distances 0 to size - 1 those with the bit
        const std::uint32_t rest = size % (2 * bit);
        const double blocks = whole + (rest > bit ? rest - bit : 0);
        co_await pass_on(me, bit, blocks * bytes);
    }
}

} // namespace lepaute::mpi
