// Nonblocking operations, and probes of programs that have them: MPI_Isend, MPI_Irecv, the waits, MPI_Probe.

#include "mpi/engine.hpp"
#include "rng/philox.hpp"
#include "small_network.hpp"

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

using namespace lepaute;
using mpi::any;
using mpi::Call;
using mpi::Matching;
using mpi::Rank;
using mpi::Task;
using tests::eager_latency;
using tests::Engine;
using tests::network;
using tests::rendezvous_latency;

namespace {

/// Each rank on a node of its own.
struct EngineOf : Engine {
    EngineOf(Rank ranks, Matching matching) : Engine(tests::network(), tests::first(ranks), ranks, 1, false) {
        use_requests(matching);
    }
};

} // namespace

// A rendezvous message begins when both are ready, at 1 s, while its sender computes until 3 s: the transfer of 5 s is
// over at 6 s, and the sender has waited 3 s of it.
TEST(Requests, ATransferPassesWhileBothSidesCompute) {
    EngineOf engine(2, Matching::by_name);
    engine.run([&](Rank rank) -> Task {
        const std::array<std::uint32_t, 1> request{0};
        if (rank == 0) {
            co_await engine.isend(0, 0, 1, 7, 5000.0);
            engine.compute(0, 3.0);
        } else {
            engine.compute(1, 1.0);
            co_await engine.irecv(1, 0, 0, 7);
            engine.compute(1, 8.0);
        }
        co_await engine.wait_all(rank, request, Call::wait);
    });
    EXPECT_NEAR(engine.clock(0), 1.0 + rendezvous_latency + 5.0, 2e-3);
    EXPECT_NEAR(engine.clock(1), 9.0, 1e-2);
}

// An eager send is over at once; its receive waits for the arrival.
TEST(Requests, AnEagerSendIsOverBeforeItsReceive) {
    EngineOf engine(2, Matching::by_name);
    engine.run([&](Rank rank) -> Task {
        const std::array<std::uint32_t, 1> request{0};
        if (rank == 0) {
            co_await engine.isend(0, 0, 1, 7, 50.0);
            co_await engine.wait_all(0, request, Call::wait);
            EXPECT_LT(engine.clock(0), 2e-3);
        } else {
            co_await engine.irecv(1, 0, 0, 7);
            EXPECT_EQ(engine.clock(1), 0.0);
            co_await engine.wait_all(1, request, Call::wait);
        }
    });
    EXPECT_NEAR(engine.clock(1), eager_latency + 0.05, 5e-3);
}

// Rank 0 waits for any of two: that which ends first is given, and the other one stays.
TEST(Requests, WaitAnyEndsWithTheFirstAndLeavesTheOthers) {
    EngineOf engine(3, Matching::by_date);
    engine.run([&](Rank rank) -> Task {
        if (rank > 0) {
            engine.compute(rank, rank == 1 ? 2.0 : 1.0);
            co_await engine.send(rank, 0, 7, 50.0);
            co_return;
        }
        const std::array<std::uint32_t, 2> both{0, 1};
        co_await engine.irecv(0, 0, 1, 7);
        co_await engine.irecv(0, 1, 2, any);
        co_await engine.wait_any(0, both);
        EXPECT_EQ(engine.requests(0).waited, std::vector<std::uint32_t>{1});
        EXPECT_LT(engine.clock(0), 1.1);
        co_await engine.wait_any(0, both); // the one that is over is none any more
        EXPECT_EQ(engine.requests(0).waited, std::vector<std::uint32_t>{0});
        co_await engine.wait_any(0, both);
        EXPECT_TRUE(engine.requests(0).waited.empty());
    });
    EXPECT_NEAR(engine.clock(0), 2.0, 0.1);
}

// A number that was waited for may be used again, and a wait passes over numbers that were never used.
TEST(Requests, NumbersAreFreeAgainAfterTheirWait) {
    EngineOf engine(2, Matching::by_name);
    engine.run([&](Rank rank) -> Task {
        const std::array<std::uint32_t, 2> requests{0, 9};
        for (std::uint32_t tag = 0; tag < 3; ++tag) {
            if (rank == 0) {
                co_await engine.isend(0, 0, 1, tag, 10.0 + tag);
            } else {
                co_await engine.irecv(1, 0, 0, tag);
            }
            co_await engine.wait_all(rank, requests, Call::waitall);
            EXPECT_EQ(engine.requests(rank).waited, std::vector<std::uint32_t>{0});
            EXPECT_EQ(engine.requests(rank).of[0].bytes, 10.0 + tag);
        }
    });
    EXPECT_FALSE(engine.unreceived());
}

// Two messages to one rank: the probe is for that posted first, whichever comes first, as is a receive from any source.
TEST(Requests, AProbeWaitsForTheMessageThatAReceiveWouldTake) {
    EngineOf engine(3, Matching::by_date);
    engine.run([&](Rank rank) -> Task {
        if (rank == 1) {
            engine.compute(1, 1.0);
            co_await engine.send(1, 0, 7, 100.0); // eager, and comes after 0.1 s
        } else if (rank == 2) {
            engine.compute(2, 1.05);
            co_await engine.send(2, 0, 8, 1.0);
        } else {
            const std::array<std::uint32_t, 1> request{0};
            co_await engine.await_message(0, any, any);
            EXPECT_EQ(engine.requests(0).probed.peer, 1U);
            EXPECT_EQ(engine.requests(0).probed.tag, 7U);
            EXPECT_EQ(engine.requests(0).probed.bytes, 100.0);
            EXPECT_NEAR(engine.clock(0), 1.1, 1e-2);
            co_await engine.await_message(0, any, 8);
            EXPECT_EQ(engine.requests(0).probed.peer, 2U);
            EXPECT_NEAR(engine.clock(0), 1.1, 1e-2); // it has come meanwhile
            for (const std::uint32_t source : {1U, 2U}) {
                co_await engine.irecv(0, 0, any, any);
                co_await engine.wait_all(0, request, Call::wait);
                EXPECT_EQ(engine.requests(0).of[0].peer, source);
            }
        }
    });
}

// A rendezvous message is seen when its header has come, and is not on its way before a receive takes it.
TEST(Requests, AProbeSeesARendezvousMessageBeforeItsTransfer) {
    EngineOf engine(2, Matching::by_name);
    engine.run([&](Rank rank) -> Task {
        const std::array<std::uint32_t, 1> request{0};
        if (rank == 0) {
            co_await engine.send(0, 1, 7, 5000.0);
            co_return;
        }
        co_await engine.await_message(1, 0, 7);
        EXPECT_LT(engine.clock(1), 0.01);
        EXPECT_EQ(engine.requests(1).probed.bytes, 5000.0);
        engine.compute(1, 2.0);
        co_await engine.irecv(1, 0, 0, 7);
        co_await engine.wait_all(1, request, Call::wait);
    });
    EXPECT_NEAR(engine.clock(1), 2.0 + rendezvous_latency + 5.0, 1e-2);
}

TEST(Requests, WhatIsNeverSentOrReceivedIsTold) {
    EngineOf engine(2, Matching::by_name);
    EXPECT_THROW(engine.run([&](Rank rank) -> Task {
        if (rank == 0) {
            co_await engine.await_message(0, 1, any);
        }
    }),
                 mpi::Deadlock);
    EngineOf other(2, Matching::by_name);
    other.run([&](Rank rank) -> Task {
        if (rank == 0) {
            co_await other.isend(0, 0, 1, 3, 80.0);
        }
    });
    const auto left = other.unreceived();
    ASSERT_TRUE(left);
    EXPECT_EQ(std::make_pair(left->from, left->to), std::make_pair(0U, 1U));
    EXPECT_EQ(std::make_pair(left->tag, left->bytes), std::make_pair(3U, 80.0));
}

namespace {

struct Wanted {
    Rank source;
    std::uint32_t tag; // or any
};

/// MPI's rule, for messages of which each source sends its own in order: those of one source never overtake each other.
std::vector<double> matched(const std::vector<std::deque<std::pair<std::uint32_t, double>>>& sent,
                            const std::vector<Wanted>& receives) {
    auto left = sent;
    std::vector<double> bytes;
    for (const Wanted& receive : receives) {
        auto& queue = left[receive.source];
        const auto found = std::ranges::find_if(
            queue, [&](const auto& message) { return receive.tag == any || message.first == receive.tag; });
        bytes.push_back(found == queue.end() ? -1.0 : found->second);
        if (found != queue.end()) {
            queue.erase(found);
        }
    }
    return bytes;
}

} // namespace

// Sources with messages of two tags, eager and rendezvous, at any dates; receives in any order. A receive that nothing
// is left for ends no run: such draws are passed over.
TEST(Requests, MatchesAsASlowTwin) {
    std::size_t tried = 0;
    for (std::uint32_t seed = 0; seed < 200; ++seed) {
        std::uint64_t index = 0;
        const auto draw = [&](std::uint32_t below) {
            return static_cast<std::uint32_t>(rng::uniform({seed, 0, 0, index++}) * below);
        };
        std::vector<std::deque<std::pair<std::uint32_t, double>>> sent(4);
        std::vector<Wanted> receives;
        for (std::uint32_t i = 0; i < 9; ++i) {
            const Rank source = 1 + draw(3);
            const std::uint32_t tag = draw(2);
            sent[source].emplace_back(tag, (draw(2) == 0 ? 10.0 : 4000.0) + i);
            receives.insert(receives.begin() + draw(i + 1), {source, draw(3) == 0 ? any : tag});
        }
        const std::vector<double> twin = matched(sent, receives);
        if (std::ranges::count(twin, -1.0) > 0) {
            continue;
        }
        ++tried;
        for (const Matching matching : {Matching::by_name, Matching::by_date}) {
            Engine engine(network(), {0, 0, 1, 2}, 3, 1, false);
            engine.use_requests(matching);
            std::vector<double> bytes;
            engine.run([&](Rank rank) -> Task {
                const auto pause = [&](std::size_t at) { return rng::uniform({seed, rank, 1, at}); };
                std::vector<std::uint32_t> requests;
                for (const auto& [tag, size] : sent[rank]) {
                    engine.compute(rank, pause(requests.size()));
                    requests.push_back(static_cast<std::uint32_t>(requests.size()));
                    co_await engine.isend(rank, requests.back(), 0, tag, size);
                }
                for (std::size_t i = 0; rank == 0 && i < receives.size(); ++i) {
                    engine.compute(0, 0.3 * pause(requests.size()));
                    requests.push_back(static_cast<std::uint32_t>(requests.size()));
                    co_await engine.irecv(0, requests.back(), receives[i].source, receives[i].tag);
                }
                co_await engine.wait_all(rank, requests, Call::waitall);
                for (std::size_t i = 0; rank == 0 && i < receives.size(); ++i) {
                    bytes.push_back(engine.requests(0).of[i].bytes);
                }
            });
            EXPECT_EQ(bytes, twin) << seed;
            EXPECT_FALSE(engine.unreceived());
        }
    }
    EXPECT_GT(tried, 50U);
}
