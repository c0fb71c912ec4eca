#include "mpi/collectives.hpp"
#include "small_network.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <set>
#include <string>

using namespace lepaute;
using mpi::Algorithm;
using mpi::Communicator;
using mpi::Member;
using mpi::Rank;
using mpi::Task;
using tests::Engine;
using tests::first;
using enum mpi::Algorithm;
using enum mpi::Carried;
using enum mpi::Direction;

namespace {

constexpr double latency_s = 1e-3;
constexpr double send_s = 1e-5;
constexpr double receive_s = 1e-4;
constexpr double per_message_s = send_s + latency_s + receive_s;
constexpr double block = 800.0;
constexpr std::uint32_t largest = 17; // powers of two, one more, one less, and in between

/// Messages cost overheads (or none) and a latency, whatever their size.
models::Network latency_only(models::Protocol protocol = models::Protocol::eager, double noise_relative_sd = 0.0,
                             bool overheads = true) {
    models::Segment segment{0.0, protocol, latency_s, 1e300, {}, {}, {}, noise_relative_sd};
    if (overheads) {
        segment.send.intercept_s = send_s;
        segment.receive.intercept_s = receive_s;
    }
    return tests::network_of({segment}, 1e300);
}

Task broadcast(Member me, double bytes, std::uint32_t root) {
    return mpi::along_tree(me, bytes, root, binomial, from_root, whole, true);
}

using Collective = std::function<Task(Member, double bytes)>;

const std::map<std::string, Collective>& collectives() {
    static const std::map<std::string, Collective> all{
        {"broadcast", [](Member me, double bytes) { return broadcast(me, bytes, 0); }},
        {"reduce", [](Member me, double bytes) { return mpi::along_tree(me, bytes, 0, binomial, to_root); }},
        {"binomial", mpi::allreduce_binomial},
        {"recursive doubling",
         [](Member me, double bytes) { return mpi::allreduce_across_cube(me, bytes, recursive_doubling); }},
        {"ring", [](Member me, double bytes) { return mpi::allreduce_ring(me, bytes, 8.0); }},
        {"Rabenseifner", [](Member me, double bytes) { return mpi::allreduce_across_cube(me, bytes, rabenseifner); }},
        {"Rabenseifner's reduction", [](Member me, double bytes) { return mpi::reduce_rabenseifner(me, bytes, 0); }},
    };
    return all;
}

struct Outcome {
    double time_s = 0.0;
    std::uint64_t messages = 0;
    double bytes = 0.0;
    std::vector<double> clocks_s;
};

Outcome run_on(Engine& engine, const Communicator& communicator, const Collective& collective, double bytes) {
    std::vector<std::uint32_t> index_of(engine.size(), engine.size());
    for (std::uint32_t index = 0; index < communicator.size(); ++index) {
        index_of[communicator.ranks[index]] = index;
    }
    Outcome outcome;
    outcome.time_s = engine.run([&](Rank rank) -> Task {
        if (index_of[rank] < communicator.size()) {
            co_await collective({engine, communicator, index_of[rank], 5}, bytes);
        }
    });
    outcome.messages = engine.statistics().messages;
    outcome.bytes = engine.statistics().bytes;
    for (Rank rank = 0; rank < engine.size(); ++rank) {
        outcome.clocks_s.push_back(engine.clock(rank));
    }
    return outcome;
}

/// `size` ranks, each on a node of its own, of which `late` begins at 1 s.
Outcome run(const Collective& collective, std::uint32_t size, double bytes = 8.0,
            const models::Network& network = latency_only(), Rank late = mpi::any) {
    Engine engine(network, first(size), size, 1, false);
    if (late < size) {
        engine.compute(late, 1.0);
    }
    return run_on(engine, {first(size)}, collective, bytes);
}
Outcome run(const std::string& name, std::uint32_t size, double bytes = 8.0,
            const models::Network& network = latency_only(), Rank late = mpi::any) {
    return run(collectives().at(name), size, bytes, network, late);
}

double log2_floor(std::uint32_t size) { return std::bit_width(size) - 1; }

} // namespace

namespace {

/// An algorithm, its messages, and the bytes of all of them together in those of a block, or of a vector.
struct Expected {
    std::string name;
    std::function<Task(Member)> run;
    double messages;
    double blocks;
};

// Rabenseifner's: each of T corners of the cube exchanges a half, a quarter, ... and back: (T - 1) / T vectors each
// way. The r members that sit out give a whole vector, and get one back. A gather is T - 1 messages, which bring T
// log2(T) / 2 shares.
std::vector<Expected> of_libraries(std::uint32_t size, std::uint32_t root) {
    const double others = size - 1.0;
    const double all = size * others;
    const double levels = log2_floor(size);
    const double cube = std::bit_floor(size);
    const double folded = size - cube;
    const double exchanged = cube * levels + 2.0 * folded;
    const double passed_on = root < 2.0 * folded && root % 2 != 0 ? 1.0 : 0.0;
    std::vector<Expected> expected{
        {"broadcast", [=](Member me) { return broadcast(me, block, root); }, others, others},
        {"reduce", [=](Member me) { return mpi::along_tree(me, block, root, binomial, to_root); }, others, others},
        {"binomial", [](Member me) { return mpi::allreduce_binomial(me, block); }, 2.0 * others, 2.0 * others},
        {"recursive doubling", [](Member me) { return mpi::allreduce_across_cube(me, block, recursive_doubling); },
         exchanged, exchanged},
        {"around the ring", [](Member me) { return mpi::allreduce_ring(me, block, 8.0); }, 2.0 * all, 2.0 * others},
        {"Rabenseifner", [](Member me) { return mpi::allreduce_across_cube(me, block, rabenseifner); },
         2.0 * (cube * levels + folded), 2.0 * (cube - 1.0 + folded)},
        {"Rabenseifner's reduction", [=](Member me) { return mpi::reduce_rabenseifner(me, block, root); },
         exchanged - folded + cube - 1.0 + passed_on, cube - 1.0 + folded + levels / 2.0 + passed_on},
        {"split", [=](Member me) { return mpi::broadcast_split_binary(me, block, root, 0.0); }, 2.0 * others, others},
        {"scatter", [=](Member me) { return mpi::along_tree(me, block, root, linear, from_root); }, others, others},
        {"asked", [=](Member me) { return mpi::gather_posted(me, block, root, true, 100.0); }, 3.0 * others, others},
        {"exclusive or", [](Member me) { return mpi::alltoall_by_exclusive_or(me, block); }, all, all},
        {"ring", [](Member me) { return mpi::reduce_scatter_ring(me, block); }, all, all},
        {"neighbours", [](Member me) { return mpi::allgather_neighbours(me, block); },
         size % 2 == 0 ? (all + size) / 2.0 : all, all},
        {"doubling barrier", mpi::barrier_recursive_doubling, exchanged, 0.0},
        {"in halves", [](Member me) { return mpi::allreduce_across_cube(me, block, rabenseifner_halves); },
         2.0 * (cube * levels + 2.0 * folded), 2.0 * (cube - 1.0) + 2.5 * folded},
        {"linear barrier", mpi::barrier_linear, 2.0 * others, 0.0},
        {"double ring", mpi::barrier_double_ring, 2.0 * size, 0.0},
    };
    for (const Algorithm tree : {linear, chains, binary, near_first, binomial, k_nomial, in_order_binary}) {
        const mpi::Shape shape{tree, 300.0, 3};
        const double to_root = tree == in_order_binary && root + 1 != size ? 1.0 : 0.0;
        expected.push_back({"tree " + std::string(word_of(tree)),
                            [=](Member me) { return mpi::reduce_tree(me, block, root, shape); }, 3.0 * others + to_root,
                            others + to_root});
        const std::uint32_t top = tree == in_order_binary ? size - 1 : root;
        expected.push_back(
            {"down", [=](Member me) { return mpi::broadcast_tree(me, block, top, shape); }, 3.0 * others, others});
    }
    for (const std::uint32_t at_once : {0U, 1U, 3U}) {
        expected.push_back({"posted", [=](Member me) { return mpi::alltoall_linear(me, block, at_once); }, all, all});
    }
    expected.push_back({"gather", [=](Member me) { return mpi::gather_posted(me, block, root); }, others, others});
    for (const bool last_first : {false, true}) {
        expected.push_back(
            {"in turn", [=](Member me) { return mpi::along_tree(me, block, root, linear, to_root, whole, last_first); },
             others, others});
    }
    if (std::has_single_bit(size)) {
        expected.push_back(
            {"doubling", [](Member me) { return mpi::allgather_recursive_doubling(me, block); }, exchanged, all});
        expected.push_back(
            {"halving", [](Member me) { return mpi::reduce_scatter_halving(me, block, false); }, exchanged, all});
    }
    return expected;
}

} // namespace

TEST(Collectives, AlgorithmsOfLibrariesSendTheirMessagesWhetherSendersWaitOrNot) {
    for (std::uint32_t number = 0; number < 6 * (largest - 1); ++number) {
        const std::uint32_t size = 2 + number / 6;
        const std::uint32_t root = number % 3 * (size - 1) / 2;
        const models::Network network =
            latency_only(number % 2 == 0 ? models::Protocol::eager : models::Protocol::rendezvous);
        for (const Expected& expected : of_libraries(size, root)) {
            Communicator communicator;
            communicator.ranks = first(size);
            std::ranges::reverse(communicator.ranks);
            Engine engine(network, communicator.ranks, size, 1, false);
            engine.use_requests(mpi::Matching::by_name);
            engine.run([&](Rank rank) {
                return expected.run({engine, communicator, size - 1 - rank, mpi::first_collective_tag, true, 7});
            });
            EXPECT_EQ(engine.statistics().messages, expected.messages) << expected.name << " of " << size;
            EXPECT_NEAR(engine.statistics().bytes, expected.blocks * block, 1e-6) << expected.name << " of " << size;
            EXPECT_FALSE(engine.unreceived().has_value()) << expected.name << " of " << size;
        }
    }
}

// A vector shorter than the ring leaves blocks empty; their messages are sent all the same.
TEST(Collectives, RingOfAShortVectorSendsEmptyMessages) {
    const Outcome outcome = run("ring", 16, 24.0);
    EXPECT_EQ(outcome.messages, 2U * 16 * 15);
    EXPECT_DOUBLE_EQ(outcome.bytes, 2.0 * 15 * 24.0);
}

// Every step of the longest chain costs a send, a latency and a receive: log2 P of them down a tree or across the
// hypercube, 2 (P - 1) around the ring.
TEST(Collectives, TimeIsTheCriticalPathForPowersOfTwo) {
    for (const std::uint32_t size : {1U, 2U, 4U, 8U, 16U}) {
        const double levels = log2_floor(size);
        EXPECT_NEAR(run("broadcast", size).time_s, levels * per_message_s, 1e-12) << size;
        EXPECT_NEAR(run("recursive doubling", size).time_s, levels * per_message_s, 1e-12) << size;
        EXPECT_NEAR(run("ring", size).time_s, 2.0 * (size - 1) * per_message_s, 1e-12) << size;
        EXPECT_NEAR(run("binomial", size).time_s, 2.0 * levels * per_message_s, 1e-12) << size;
    }
}

// Without overheads a message is a latency, and an exchange ends a latency after the later of both has begun. Down a
// tree a member is as many hops from the root as its place has bits. Across a hypercube, corner c knows what corner d
// knew when d has begun and popcount(c xor d) hops have passed; the first r corners, which take another member along,
// begin a hop late and pass the result on in one more.
TEST(Collectives, TimeIsTheLongestChainOfLatenciesForAnySize) {
    const models::Network network = latency_only(models::Protocol::eager, 0.0, false);
    for (std::uint32_t size = 1; size <= largest; ++size) {
        int tree = 0;
        for (std::uint32_t place = 0; place < size; ++place) {
            tree = std::max(tree, std::popcount(place));
        }
        const std::uint32_t cube = std::bit_floor(size);
        const std::uint32_t folded = size - cube;
        int doubling = 0;
        for (std::uint32_t c = 0; c < cube; ++c) {
            for (std::uint32_t d = 0; d < cube; ++d) {
                doubling = std::max(doubling, (d < folded ? 1 : 0) + std::popcount(c ^ d) + (c < folded ? 1 : 0));
            }
        }
        EXPECT_NEAR(run("broadcast", size, 8.0, network).time_s, tree * latency_s, 1e-12) << size;
        EXPECT_NEAR(run("reduce", size, 8.0, network).time_s, tree * latency_s, 1e-12) << size;
        EXPECT_NEAR(run("recursive doubling", size, 8.0, network).time_s, doubling * latency_s, 1e-12) << size;
        EXPECT_NEAR(run("ring", size, 8.0, network).time_s, 2.0 * (size - 1) * latency_s, 1e-12) << size;
    }
}

// P = 6, root 0. The root sends to 4, 2 and 1, one send after the other; 4 sends to 5, 2 to 3.
TEST(Collectives, BroadcastReachesEachMemberAlongItsPathInTheTree) {
    const Outcome outcome = run("broadcast", 6);
    const double hop_s = latency_s + receive_s; // after the send
    const std::vector<double> expected{
        3.0 * send_s,                          // 0: three sends
        3.0 * send_s + hop_s,                  // 1: served last
        2.0 * send_s + hop_s + send_s,         // 2: served second, then sends to 3
        2.0 * send_s + hop_s + send_s + hop_s, // 3
        send_s + hop_s + send_s,               // 4: served first, then sends to 5
        send_s + hop_s + send_s + hop_s,       // 5
    };
    for (std::size_t rank = 0; rank < expected.size(); ++rank) {
        EXPECT_NEAR(outcome.clocks_s[rank], expected[rank], 1e-12) << rank;
    }
}

// P = 6, root 0, all begin at 0. 1, 3 and 5 send at once, and their messages are in at send + latency; 2 and 4 receive
// one, send on; 0 has received from 1 long before those of 2 and 4 come, at the same date, and takes one after the
// other.
TEST(Collectives, ReduceEndsWhenTheLastSubtreeHasBeenReceived) {
    const Outcome outcome = run("reduce", 6);
    const double inner_s = send_s + latency_s + receive_s + send_s; // 2 and 4 have sent
    EXPECT_NEAR(outcome.clocks_s[1], send_s, 1e-12);
    EXPECT_NEAR(outcome.clocks_s[2], inner_s, 1e-12);
    EXPECT_NEAR(outcome.clocks_s[4], inner_s, 1e-12);
    EXPECT_NEAR(outcome.clocks_s[0], inner_s + latency_s + 2.0 * receive_s, 1e-12);
}

// One element on three members: block 0 has it, the others are empty. It goes from member 0
// to 1 and 2, which has the sum and passes it on to 0, and 0 to 1: four messages, one after the other.
TEST(Collectives, RingPassesEachBlockFromItsFirstMemberAllTheWayRound) {
    const Outcome outcome = run("ring", 3);
    EXPECT_NEAR(outcome.time_s, 4.0 * per_message_s, 1e-12);
    EXPECT_NEAR(outcome.clocks_s[1], outcome.time_s, 1e-12); // the last to know
}

// With a root other than 0 the tree is the same, shifted.
TEST(Collectives, AnyMemberCanBeTheRoot) {
    for (std::uint32_t size = 1; size <= largest; ++size) {
        const double first_s = run("broadcast", size).time_s;
        for (std::uint32_t root = 1; root < size; ++root) {
            const Outcome outcome = run([root](Member me, double bytes) { return broadcast(me, bytes, root); }, size);
            EXPECT_NEAR(outcome.time_s, first_s, 1e-12) << size << ", root " << root;
            EXPECT_EQ(outcome.messages, size - 1);
        }
    }
}

// Ranks 7, 2 and 5 of nine, in that order: nobody else is disturbed.
TEST(Collectives, ACommunicatorIsAnyListOfRanks) {
    for (const auto& [name, collective] : collectives()) {
        Engine engine(latency_only(), first(9), 9, 1, false);
        const Communicator communicator{{7, 2, 5}};
        const Outcome outcome = run_on(engine, communicator, collective, 8.0);
        for (Rank rank = 0; rank < 9; ++rank) {
            const bool member = rank == 7 || rank == 2 || rank == 5;
            EXPECT_EQ(outcome.clocks_s[rank] > 0.0, member) << name << ", rank " << rank;
        }
        EXPECT_NEAR(outcome.time_s, run(name, 3).time_s, 1e-12) << name;
    }
}

// No rank knows the sum before the last one has begun: rank `late` begins at 1 s.
TEST(Collectives, AnAllreduceEndsNowhereBeforeItsLastMemberBegins) {
    for (const std::string name : {"binomial", "recursive doubling", "ring", "Rabenseifner"}) {
        for (std::uint32_t size = 2; size <= largest; ++size) {
            for (std::uint32_t late = 0; late < size; ++late) {
                const Outcome outcome = run(name, size, size * 8.0, latency_only(), late);
                for (Rank rank = 0; rank < size; ++rank) {
                    EXPECT_GE(outcome.clocks_s[rank], 1.0) << name << " of " << size << ", late " << late;
                }
            }
        }
    }
}

// Four ranks a node, so that messages inside a node have noise; a seed repeats, another one does not.
TEST(Collectives, ASeedRepeatsBitForBit) {
    const models::Network noisy = latency_only(models::Protocol::eager, 0.3);
    std::vector<std::uint32_t> nodes = first(13);
    std::ranges::for_each(nodes, [](std::uint32_t& node) { node /= 4; });
    for (const auto& [name, collective] : collectives()) {
        std::set<std::vector<double>> outcomes;
        for (const std::uint64_t seed : {3U, 3U, 4U}) {
            Engine engine(noisy, nodes, 4, seed, true);
            outcomes.insert(run_on(engine, {first(13)}, collective, 13 * 8.0).clocks_s);
        }
        EXPECT_EQ(outcomes.size(), 2U) << name;
    }
}
