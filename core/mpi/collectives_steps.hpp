#pragma once
// What the algorithms of collective operations are made of: members, messages between them by their indices, and trees.

#include "models/words.hpp"
#include "mpi/engine.hpp"
#include "mpi/task.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

namespace lepaute::mpi {

/// The ranks that take part, in order; a member's index is its place in the list.
struct Communicator {
    std::vector<Rank> ranks;
    [[nodiscard]] std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(ranks.size()); }
};

/// One member's side of a collective; engine and communicator outlive the operation. Operations of one communicator
/// may follow each other with the same tag: messages between two ranks stay in order.
struct Member {
    Engine& engine;
    const Communicator& communicator;
    std::uint32_t index = 0;
    std::uint32_t tag = 0;
    bool by_isend = false; // what it sends while it receives
    /// Of its rank: numbers from here on are free. Algorithms that post more than one message at once need them, and an
    /// engine with requests.
    std::uint32_t first_request = 0;
};
inline Rank own_rank(const Member& me) { return me.communicator.ranks[me.index]; }

inline Rank rank_of(const Member& me, std::uint32_t index) { return me.communicator.ranks[index]; }
inline auto send(const Member& me, std::uint32_t to, double bytes) {
    return me.engine.send(own_rank(me), rank_of(me, to), me.tag, bytes);
}
inline auto receive(const Member& me, std::uint32_t from) {
    return me.engine.receive(own_rank(me), rank_of(me, from), me.tag);
}

/// In a round a member sends, receives, or does both at once; any: nobody.
struct Exchange {
    std::uint32_t to = any;
    double bytes = 0.0;
    std::uint32_t from = any;
};
inline Exchange with(std::uint32_t partner, double bytes) { return {partner, bytes, partner}; }
inline auto exchange(const Member& me, const Exchange& what) {
    return me.engine.send_receive(own_rank(me), rank_of(me, what.to), me.tag, what.bytes, rank_of(me, what.from),
                                  me.tag, me.by_isend);
}

/// Goes through the rounds that `round` gives for their numbers.
template <class Round>
Task in_rounds(Member me, std::uint32_t count, Round round) {
    for (std::uint32_t number = 0; number < count; ++number) {
        const Exchange what = round(number);
        if (what.to != any && what.from != any) {
            co_await exchange(me, what);
        } else if (what.to != any) {
            co_await send(me, what.to, what.bytes);
        } else if (what.from != any) {
            co_await receive(me, what.from);
        }
    }
}

/// Messages of a member that go on while it does something else: receives in slots, and sends, which end together.
class Posted {
public:
    Posted(const Member& me, std::uint32_t slots) : me_(me), slots_(slots) {}
    auto receive(std::uint32_t slot, std::uint32_t from) {
        return me_.engine.irecv(own_rank(me_), me_.first_request + slot, rank_of(me_, from), me_.tag);
    }
    auto send(std::uint32_t to, double bytes) {
        const std::uint32_t request = me_.first_request + slots_ + sent_++;
        return me_.engine.isend(own_rank(me_), request, rank_of(me_, to), me_.tag, bytes);
    }
    auto wait(std::uint32_t slot) { return wait_for(slot, slot + 1, Call::wait); }
    auto wait_sent() { return wait_for(slots_, slots_ + std::exchange(sent_, 0), Call::waitall); }
    auto wait_all() { return wait_for(0, slots_ + std::exchange(sent_, 0), Call::waitall); }

private:
    Engine::Awaiter<void> wait_for(std::uint32_t first, std::uint32_t end, Call call) {
        waited_.clear();
        for (std::uint32_t number = first; number < end; ++number) {
            waited_.push_back(me_.first_request + number);
        }
        return me_.engine.wait_all(own_rank(me_), waited_, call);
    }

    const Member& me_;
    std::uint32_t slots_;
    std::uint32_t sent_ = 0;
    std::vector<std::uint32_t> waited_;
};

/// Trees number the members from the root on. chains: as many as the fan-out; binary: level by level; near_first: a
/// member's parent lacks the highest bit of its number; binomial: the lowest; k_nomial: so many children a digit;
/// in_order_binary: binary, of which the last member is the root.
enum class Algorithm : std::uint8_t {
    usual,
    binomial,
    recursive_doubling,
    ring,
    bruck,
    pairwise,
    dissemination,
    rabenseifner,
    linear,
    linear_posted,
    on_request,
    chains,
    binary,
    split_binary,
    in_order_binary,
    near_first,
    k_nomial,
    neighbours,
    halving,
    butterfly,
    rabenseifner_halves,
    exclusive_or,
    double_ring,
    measured // of no messages: what it takes is told
};
constexpr auto words_of(Algorithm /*enum*/) noexcept {
    return words_in_order<Algorithm>("usual", "binomial", "recursive-doubling", "ring", "bruck", "pairwise",
                                     "dissemination", "rabenseifner", "linear", "linear-posted", "on-request", "chains",
                                     "binary", "split-binary", "in-order-binary", "near-first", "k-nomial",
                                     "neighbours", "halving", "butterfly", "rabenseifner-halves", "exclusive-or",
                                     "double-ring", "measured");
}

struct Shape {
    Algorithm tree = Algorithm::linear;
    double segment_bytes = 0.0; // 0: all at once
    std::uint32_t fan_out = 1;
};

/// A member's place in a tree, by indices; the root is its own parent.
struct Node {
    std::uint32_t parent = 0;
    std::vector<std::uint32_t> children;
};
[[nodiscard]] Node node_of(const Member& me, const Shape& shape, std::uint32_t root);

} // namespace lepaute::mpi
