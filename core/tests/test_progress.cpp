// What a run tells other threads, and how it ends when they want it to.

#include "mpi/engine.hpp"
#include "small_network.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

using namespace lepaute;
using mpi::Engine;
using mpi::Rank;
using mpi::Task;

namespace {

constexpr int rounds = 10'000;

/// Two ranks that exchange messages; each round is a step. `look` is called in each.
template <typename Look>
void exchange_messages(mpi::Progress& progress, Look look) {
    Engine engine(tests::network(), {0, 1}, 2, 1, false);
    engine.report_to(&progress);
    engine.run([&](Rank rank) -> Task {
        for (int round = 0; round < rounds; ++round) {
            engine.begin_step(rank, round);
            look();
            co_await engine.exchange(rank, 1 - rank, 7, 50.0);
        }
    });
}

} // namespace

TEST(Progress, CountsTheStepsOfAllRanksAsTheyBegin) {
    mpi::Progress progress;
    std::uint64_t before = 0;
    int moves = 0;
    exchange_messages(progress, [&] {
        const std::uint64_t now = progress.begun_steps;
        EXPECT_GE(now, before);
        moves += now > before ? 1 : 0;
        before = now;
    });
    EXPECT_GT(moves, 10); // within the run
    EXPECT_EQ(progress.begun_steps, 2U * rounds);
}

TEST(Progress, EndsTheRunWhenItIsCancelled) {
    mpi::Progress progress;
    int steps = 0;
    EXPECT_THROW(exchange_messages(progress, [&] { progress.cancelled = ++steps >= 100; }), std::runtime_error);
    EXPECT_LT(steps, 100 + 2 * 16);
}

// Each rank posts many requests before anything is simulated: the run ends in the middle of those of the first one.
TEST(Progress, EndsARunWhoseRanksOnlyPostRequestsYet) {
    mpi::Progress progress;
    Engine engine(tests::network(), {0, 0}, 2, 1, false);
    engine.use_requests(mpi::Matching::by_name);
    engine.report_to(&progress);
    std::uint32_t posts = 0;
    EXPECT_THROW(engine.run([&](Rank rank) -> Task {
        while (++posts < rounds) {
            progress.cancelled = posts >= 1000;
            co_await engine.irecv(rank, posts, 1 - rank, 7);
        }
    }),
                 std::runtime_error);
    EXPECT_LT(posts, 1000 + 2 * 16);
}
