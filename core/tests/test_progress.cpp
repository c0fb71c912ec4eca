// What a run tells other threads, and how it ends when they want it to.

#include "mpi/engine.hpp"
#include "small_network.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

using namespace lepaute;
using mpi::Rank;
using mpi::Task;
using tests::Engine;

namespace {

constexpr int rounds = 10'000;

/// Two ranks that do in each round what `round_of` says: of the engine, the rank, and the number of the round.
template <typename Round>
void run(mpi::Progress& progress, Round round_of) {
    Engine engine(tests::network(), {0, 1}, 2, 1, false);
    engine.report_to(&progress);
    engine.run([&](Rank rank) -> Task {
        for (int round = 0; round < rounds; ++round) {
            co_await round_of(engine, rank, round);
        }
    });
}

} // namespace

TEST(Progress, CountsTheStepsOfAllRanksAsTheyBegin) {
    mpi::Progress progress;
    std::uint64_t before = 0;
    int moves = 0;
    run(progress, [&](Engine& engine, Rank rank, int round) {
        engine.begin_step(rank, round);
        const std::uint64_t now = progress.begun_steps;
        EXPECT_GE(now, before);
        moves += now > before ? 1 : 0;
        before = now;
        return engine.send_receive(rank, 1 - rank, 7, 50.0, 1 - rank, 7);
    });
    EXPECT_GT(moves, 10); // within the run
    EXPECT_EQ(progress.begun_steps, 2U * rounds);
}

TEST(Progress, EndsTheRunWhenItIsCancelledAlsoWhileRanksOnlySendYet) {
    for (const bool receives : {true, false}) {
        mpi::Progress progress;
        int calls = 0;
        const auto call = [&](Engine& engine, Rank rank, int) {
            progress.cancelled = ++calls >= 1000;
            return receives ? engine.send_receive(rank, 1 - rank, 7, 50.0, 1 - rank, 7)
                            : engine.send(rank, 1 - rank, 7, 50.0);
        };
        EXPECT_THROW(run(progress, call), std::runtime_error);
        EXPECT_LT(calls, 1000 + 2 * 16);
    }
}
