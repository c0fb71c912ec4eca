#include "apps/stencil/simulation.hpp"
#include "small_network.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

using namespace lepaute;
using stencil::Allreduce;
using stencil::Parameters;
using Result = mpi::RunResult;

namespace {

constexpr double latency_s = 1e-3;
constexpr double bandwidth_Bps = 1e6;
constexpr double send_s = 1e-5;
constexpr double receive_s = 1e-4;

/// Nodes of two cores; every message costs overheads, a latency and its bytes; links never bind.
models::Machine machine(models::Protocol protocol = models::Protocol::eager) {
    models::Machine result;
    result.nodes = 32;
    result.cores_per_node = 2;
    const models::Segment segment{0.0, protocol, latency_s, bandwidth_Bps, {send_s, 0.0}, {}, {receive_s, 0.0}, 0.0};
    result.network = tests::network_of({segment}, 1e12);
    return result;
}

double message_s(double bytes) { return send_s + latency_s + bytes / bandwidth_Bps + receive_s; }

Parameters box(std::array<std::uint32_t, 3> grid, std::array<std::int64_t, 3> cells) {
    Parameters parameters;
    parameters.grid = grid;
    parameters.cells = cells;
    parameters.cell_time_s = 1e-6;
    parameters.allreduce = Allreduce::none;
    return parameters;
}

Result run(const Parameters& parameters, const models::Machine& on = machine(), std::uint64_t seed = 1) {
    return stencil::simulate(parameters, on, {}, tests::first(parameters.ranks()), seed);
}

} // namespace

TEST(Stencil, CellsAreSharedEvenlyAndNoneIsLost) {
    for (std::int64_t cells = 1; cells <= 40; ++cells) {
        for (std::uint32_t processes = 1; processes <= cells; ++processes) {
            std::int64_t sum = 0;
            std::set<std::int64_t> shares;
            for (std::uint32_t at = 0; at < processes; ++at) {
                shares.insert(stencil::local_cells(cells, processes, at));
                sum += stencil::local_cells(cells, processes, at);
            }
            EXPECT_EQ(sum, cells);
            EXPECT_LE(*shares.rbegin() - *shares.begin(), 1);
        }
    }
}

// One process alone: no message, and the time of its cells.
TEST(Stencil, OneProcessOnlyComputes) {
    Parameters parameters = box({1, 1, 1}, {10, 20, 30});
    parameters.iterations = 7;
    parameters.allreduce = Allreduce::recursive_doubling;
    const Result result = run(parameters);
    EXPECT_EQ(result.messages, 0U);
    EXPECT_NEAR(result.time_s, 7 * 6000 * 1e-6, 1e-12);
    EXPECT_NEAR(result.computing_s, result.time_s, 1e-12);
    EXPECT_DOUBLE_EQ(result.waiting_s, 0.0);
}

// Across each cut of a dimension two layers go each way and iteration; a periodic box has as many cuts as processes
// along it, an open one has one less. A layer is the cross-section of the whole box.
TEST(Stencil, MessagesAndBytesAreThoseOfTheCuts) {
    for (const bool periodic : {true, false}) {
        for (const std::array<std::uint32_t, 3> grid :
             {std::array<std::uint32_t, 3>{2, 1, 1}, {3, 2, 1}, {1, 1, 5}, {2, 3, 4}, {4, 4, 3}}) {
            Parameters parameters = box(grid, {23, 17, 19});
            parameters.periodic = periodic;
            parameters.iterations = 3;
            parameters.halo = 2;
            const double volume = 23.0 * 17.0 * 19.0;
            std::uint64_t messages = 0;
            double bytes = 0.0;
            for (std::size_t dimension = 0; dimension < 3; ++dimension) {
                const std::uint32_t processes = grid[dimension];
                const std::uint32_t cuts = processes == 1 ? 0 : periodic ? processes : processes - 1;
                messages += std::uint64_t{2 * cuts} * (grid[0] * grid[1] * grid[2] / processes);
                bytes += 2.0 * cuts * volume / static_cast<double>(parameters.cells[dimension]) * 2.0 * 8.0;
            }
            const Result result = run(parameters);
            EXPECT_EQ(result.messages, 3 * messages);
            EXPECT_DOUBLE_EQ(result.bytes, 3.0 * bytes);
        }
    }
}

TEST(Stencil, AllreduceAddsItsMessages) {
    Parameters parameters = box({3, 2, 2}, {12, 12, 12}); // 12 ranks: 8 in the cube, 4 folded in
    parameters.iterations = 5;
    const std::uint64_t halo = run(parameters).messages;
    for (const auto& [algorithm, messages] : {std::pair{Allreduce::binomial, 2 * 11},
                                              {Allreduce::recursive_doubling, 8 * 3 + 2 * 4},
                                              {Allreduce::ring, 2 * 12 * 11}}) {
        parameters.allreduce = algorithm;
        EXPECT_EQ(run(parameters).messages, halo + 5U * static_cast<unsigned>(messages));
    }
}

// 2 x 2 x 2 periodic, 8 x 6 x 4 cells: each rank has 4 x 3 x 2. All ranks do the same, so an iteration is six faces,
// one after the other (two of 6 cells, two of 8, two of 12), 24 cells, and three exchanges of 8 bytes.
TEST(Stencil, TimeOfABalancedBoxIsTheSumOfItsParts) {
    Parameters parameters = box({2, 2, 2}, {8, 6, 4});
    parameters.iterations = 10;
    parameters.allreduce = Allreduce::recursive_doubling;
    const double faces_s = 2.0 * (message_s(6 * 8.0) + message_s(8 * 8.0) + message_s(12 * 8.0));
    const double iteration_s = faces_s + 24 * 1e-6 + 3.0 * message_s(8.0);
    const Result result = run(parameters);
    EXPECT_NEAR(result.time_s, 10.0 * iteration_s, 1e-9);
    EXPECT_NEAR(result.computing_s, 8 * 10 * 24 * 1e-6, 1e-12);
    EXPECT_NEAR(result.waiting_s, 8.0 * (result.time_s - 10 * 24 * 1e-6), 1e-8);
}

// An open chain of three: the ends only send one way. The middle rank sends and receives twice an iteration; the ends
// wait for it, since they send first and receive after (upwards: 0 sends, 2 receives; downwards: the reverse).
TEST(Stencil, OpenChainWaitsForItsMiddle) {
    Parameters parameters = box({3, 1, 1}, {3, 5, 5});
    parameters.periodic = false;
    // After the upward shift: 0 at send_s, 1 and 2 at a message. Downwards, 1 sends and 2 sends then: 1 ends a message
    // later, at two, and 0 receives what 1 has sent, also at two messages; 2 goes on at one message and a send.
    const Result result = run(parameters);
    EXPECT_NEAR(result.time_s, 2.0 * message_s(25 * 8.0) + 25 * 1e-6, 1e-9);
}

// The slowest of two ranks sets the pace: 3 cells against 2 of a row of 5, with messages that cost the same for both.
TEST(Stencil, UnevenSharesMakeTheOthersWait) {
    Parameters parameters = box({2, 1, 1}, {5, 1, 1});
    parameters.cell_time_s = 1.0;
    parameters.iterations = 4;
    const Result result = run(parameters);
    EXPECT_NEAR(result.time_s, 4.0 * (3.0 + 2.0 * message_s(8.0)), 1e-9);
    EXPECT_NEAR(result.computing_s, 4.0 * 5.0, 1e-12);
}

// 16 bytes a cell from a memory of 1e6 bytes/s that two ranks of a node share: 32 us a cell; alone on its node 16 us.
TEST(Stencil, RanksOfANodeShareItsMemory) {
    Parameters parameters = box({1, 1, 1}, {10, 10, 10});
    parameters.cell_bytes = 16.0;
    parameters.node_memory_Bps = 1e6;
    EXPECT_NEAR(run(parameters).time_s, 1000 * 16e-6, 1e-9);
    parameters.grid = {2, 1, 1};
    EXPECT_NEAR(run(parameters).computing_s, 1000 * 32e-6, 1e-9);
    parameters.cell_time_s = 1e-3; // now the processor is slower
    EXPECT_NEAR(run(parameters).computing_s, 1000 * 1e-3, 1e-9);
}

TEST(Stencil, NoGridDeadlocksWhenSendersWaitForReceivers) {
    for (const bool periodic : {true, false}) {
        for (std::uint32_t p = 1; p <= 4; ++p) {
            for (std::uint32_t q = 1; q <= 3; ++q) {
                for (std::uint32_t r = 1; r <= 3; ++r) {
                    Parameters parameters = box({p, q, r}, {7, 6, 5});
                    parameters.periodic = periodic;
                    parameters.iterations = 2;
                    parameters.allreduce = Allreduce::ring;
                    EXPECT_NO_THROW(run(parameters, machine(models::Protocol::rendezvous))) << p << q << r << periodic;
                }
            }
        }
    }
}

TEST(Stencil, ASeedRepeatsAndNoiseKeepsTheMeanOfTheSweeps) {
    Parameters parameters = box({2, 2, 2}, {16, 16, 16});
    parameters.iterations = 2000;
    parameters.noise_relative_sd = 0.1;
    const Result first = run(parameters);
    EXPECT_EQ(first.time_s, run(parameters).time_s);
    EXPECT_NE(first.time_s, run(parameters, machine(), 2).time_s);
    // 16,000 draws of relative deviation 0.1: the mean is within five standard errors, 0.4 %.
    const double expected_s = 2000 * 4096 * 1e-6;
    EXPECT_NEAR(first.computing_s, expected_s, 5.0 * 0.1 / std::sqrt(16000.0) * expected_s);
}

// The day of the platform holds for any application: with a deviation of 10 % common to all CPUs, runs differ.
TEST(Stencil, DaysOfTheMachineMoveTheSweeps) {
    models::Machine moody = machine();
    moody.day_common_relative_sd = 0.1;
    const Parameters parameters = box({2, 1, 1}, {64, 64, 64});
    EXPECT_NE(run(parameters, moody, 1).computing_s, run(parameters, moody, 2).computing_s);
    EXPECT_NEAR(run(parameters, moody, 1).computing_s, 0.262144, 0.1);
}

TEST(Stencil, WhatCannotBeIsRefused) {
    EXPECT_THROW(run(box({4, 1, 1}, {3, 9, 9})), std::invalid_argument); // a process without cells
    Parameters deep = box({2, 1, 1}, {6, 6, 6});
    deep.halo = 4; // deeper than its 3 cells
    EXPECT_THROW(run(deep), std::invalid_argument);
    for (const std::vector<std::uint32_t>& cores : {std::vector<std::uint32_t>{0, 1, 2}, {0, 64}}) { // three; not there
        EXPECT_THROW((void)stencil::simulate(box({2, 1, 1}, {6, 6, 6}), machine(), {}, cores, 1),
                     std::invalid_argument);
    }
}
