#include "apps/hpl/simulation.hpp"
#include "small_network.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <thread>
#include <vector>

using namespace lepaute;
using hpl::Kernel;
using hpl::Parameters;

namespace {

/// A machine whose every kernel takes `seconds` a call, give or take, and whose messages cost what is given.
models::Machine machine(std::uint32_t nodes, double latency_s, double bandwidth_Bps, models::Noise noise) {
    models::Machine result;
    result.nodes = nodes;
    models::KernelPiece piece;
    piece.mean[8] = 1e-6;
    piece.deviation[8] = 1e-7;
    piece.noise = noise;
    models::KernelPiece dgemm;
    dgemm.mean[0] = 1e-10;
    dgemm.deviation[0] = 1e-12;
    dgemm.noise = noise;
    for (const std::string_view name : hpl::kernel_names) {
        const models::KernelModel model({name == "dgemm" || name == "dgemm_nn" ? dgemm : piece});
        result.kernels.push_back({.name = std::string(name), .models = {model}});
    }
    const models::Segment eager{0.0, models::Protocol::eager, latency_s, bandwidth_Bps, {}, {}, {}, 0.0};
    const models::Segment rendezvous{4096.0, models::Protocol::rendezvous, latency_s, bandwidth_Bps, {}, {}, {}, 0.0};
    result.network = tests::network_of({eager, rendezvous}, bandwidth_Bps);
    return result;
}

hpl::Result simulate(const Parameters& parameters, const models::Machine& on, std::uint64_t seed = 1) {
    return hpl::simulate(parameters, on, {}, tests::first(parameters.ranks()), seed);
}

double kernel_time_s(const hpl::Result& result) {
    return std::accumulate(result.kernels.begin(), result.kernels.end(), 0.0,
                           [](double sum, const models::KernelUse& use) { return sum + use.time_s; });
}

} // namespace

TEST(Hpl, AllRanksOfAProcessColumnExtrapolateAlike) {
    models::Machine fitted_far_away = machine(1, 1e-6, 1e9, models::Noise::none);
    for (models::MachineKernel& kernel : fitted_far_away.kernels) {
        models::KernelPiece piece = kernel.models.front().pieces().front();
        piece.fitted = {{1e6, 1e6, 1e6}, {2e6, 2e6, 2e6}};
        kernel.models = {models::KernelModel({piece})};
    }
    fitted_far_away.cores_per_node = 4;
    mpi::Trace trace;
    trace.rank_wanted.assign(4, 1);
    const hpl::Result result =
        hpl::simulate({.n = 128, .nb = 32, .p = 4, .q = 1}, fitted_far_away, {}, {0, 1, 2, 3}, 1, std::move(trace));
    std::map<std::array<double, 4>, double> duration_s; // by kernel and size
    std::size_t met_again = 0;
    for (const mpi::TraceRow& row : result.trace.rows) {
        if (row.code < mpi::first_kernel_code || row.code >= mpi::first_phase_code) {
            continue;
        }
        const auto [known, is_new] =
            duration_s.try_emplace({static_cast<double>(row.code), row.m, row.n, row.k}, row.duration_s);
        met_again += is_new ? 0 : 1;
        EXPECT_EQ(known->second, row.duration_s) << row.code << " of " << row.m << " x " << row.n << " x " << row.k;
    }
    EXPECT_GT(met_again, 500U);
}

TEST(Hpl, LocalCountsAddUpToTheMatrix) {
    for (const std::int64_t n : {1, 127, 128, 129, 1000, 4096}) {
        for (std::int64_t procs = 1; procs < 9; ++procs) {
            std::int64_t sum = 0;
            for (std::int64_t proc = 0; proc < procs; ++proc) {
                sum += hpl::local_count(n, 128, proc, procs);
            }
            EXPECT_EQ(sum, n) << procs;
        }
    }
}

// One rank: the run is its kernels, one after the other.
TEST(Hpl, OneRankTakesTheSumOfItsKernels) {
    const auto result = simulate({.n = 1000, .nb = 64}, machine(1, 1.0, 1.0, models::Noise::half_normal));
    EXPECT_NEAR(result.time_s, kernel_time_s(result), 1e-12 * result.time_s);
    EXPECT_EQ(result.messages, 0U);
}

// The dgemm calls of an LU factorisation do nearly all of its n^3/3 multiply-adds: with blocks small against n and
// leaves of 2 columns, the rest (dtrsm, leaves) is below 3 nb / (2 n) of them.
TEST(Hpl, DgemmDoesTheWork) {
    const std::int64_t n = 4000;
    const auto result = simulate({.n = n, .nb = 50}, machine(1, 0.0, 1e9, models::Noise::none));
    const auto time_s = [&](Kernel kernel) { return result.kernels[static_cast<std::size_t>(kernel)].time_s; };
    const double multiply_adds = (time_s(Kernel::dgemm) + time_s(Kernel::dgemm_nn)) / 1e-10;
    const double all = static_cast<double>(n) * n * n / 3.0;
    EXPECT_LT(multiply_adds, all);
    EXPECT_GT(multiply_adds, all * (1.0 - 1.5 * 50.0 / n));
}

// Counted with HPL 2.0 under Open MPI (MPI_Send calls within HPL_pdgesv and their bytes; 2ring, binary exchange).
// Counts are equal. The bytes of the swap depend on the pivots of the very matrix: within 2 %.
struct Counted {
    Parameters parameters;
    std::uint64_t sends;
    double bytes;
};
class RealProgram : public testing::TestWithParam<Counted> {};

TEST_P(RealProgram, SendsAsManyMessagesAndBytes) {
    const auto result = simulate(GetParam().parameters, machine(9, 1e-6, 1e10, models::Noise::none));
    EXPECT_EQ(result.messages, GetParam().sends);
    EXPECT_NEAR(result.bytes / GetParam().bytes, 1.0, 0.02);
}

INSTANTIATE_TEST_SUITE_P(Hpl, RealProgram,
                         testing::Values(Counted{{.n = 512, .nb = 128, .p = 3}, 2585, 6048192.0},
                                         Counted{{.n = 512, .nb = 128, .p = 5}, 5678, 12607776.0},
                                         Counted{{.n = 512, .nb = 128, .p = 7}, 8774, 18989344.0},
                                         Counted{{.n = 512, .nb = 128, .p = 4}, 4130, 9416992.0},
                                         Counted{{.n = 640, .nb = 64, .q = 4, .depth = 0}, 40, 5439728.0},
                                         Counted{{.n = 640, .nb = 64, .q = 4, .depth = 1}, 40, 5439728.0},
                                         Counted{{.n = 600, .nb = 64, .p = 2, .q = 3}, 1330, 6684176.0},
                                         Counted{{.n = 600, .nb = 64, .p = 3, .q = 2}, 3185, 8780136.0},
                                         Counted{{.n = 500, .nb = 32, .p = 3, .q = 3}, 2933, 6904680.0}));

// The count that an estimate of a run's duration is made of is that of what is sent, by every broadcast. A ring brings
// a panel to every other process column once.
TEST(Hpl, ABroadcastSendsAsManyMessagesAsAreCounted) {
    const auto on = machine(7, 1e-6, 1e10, models::Noise::none);
    const std::uint64_t panels = 10;
    const auto sent = [&](std::uint32_t q, hpl::Broadcast broadcast) {
        const auto result = simulate({.n = 640, .nb = 64, .q = q, .bcast = broadcast}, on);
        return std::accumulate(result.rank_sent.begin(), result.rank_sent.end(), std::uint64_t{0},
                               [](std::uint64_t sum, const hpl::SentInPhases& phases) {
                                   return sum + phases[static_cast<std::size_t>(hpl::Phase::broadcast)].messages;
                               });
    };
    for (const std::uint32_t q : {1U, 2U, 3U, 4U, 5U, 7U}) {
        for (const auto& [broadcast, word] : words_of(hpl::Broadcast{})) {
            EXPECT_EQ(sent(q, broadcast), panels * hpl::broadcast_messages(broadcast, q))
                << "correct broadcast_messages() in broadcast.cpp for " << word << " on " << q;
            EXPECT_TRUE(broadcast.in_pieces || hpl::broadcast_messages(broadcast, q) == q - 1) << word << " on " << q;
        }
    }
}

// Binary exchange for few columns, spread-roll for many: with a threshold out of reach the mix is the one or the other.
TEST(Hpl, TheMixedSwapIsOneOfTheTwo) {
    const auto on = machine(6, 1e-6, 1e10, models::Noise::none);
    const auto time_s = [&](hpl::Swap swap, std::int64_t threshold) {
        Parameters parameters{.n = 1000, .nb = 64, .p = 3, .q = 2};
        parameters.swap = swap;
        parameters.swap_threshold = threshold;
        return simulate(parameters, on).time_s;
    };
    EXPECT_EQ(time_s(hpl::Swap::mix, 1001), time_s(hpl::Swap::binary_exchange, 0));
    EXPECT_EQ(time_s(hpl::Swap::mix, 0), time_s(hpl::Swap::spread_roll, 0));
    EXPECT_NE(time_s(hpl::Swap::binary_exchange, 0), time_s(hpl::Swap::spread_roll, 0));
}

// Built without derived datatypes, HPL copies L on the ranks that factored it, once a panel.
TEST(Hpl, CopiesLWherePanelsAreNotSentFromTheMatrix) {
    const auto on = machine(6, 1e-6, 1e10, models::Noise::none);
    Parameters parameters{.n = 640, .nb = 64, .p = 2, .q = 3};
    const auto copies = [&] {
        return simulate(parameters, on).kernels[static_cast<std::size_t>(Kernel::dlacpy)].calls;
    };
    EXPECT_EQ(copies(), 0U);
    parameters.copy_l = true;
    EXPECT_EQ(copies(), 10U * 2U - 3U); // below the last two diagonal blocks, not every rank has rows
}

// Whatever the rows are for: all are somewhere, in order, and after levelling the shares differ by at most one.
TEST(Hpl, SpreadPlansLoseNoRowAndLevelOut) {
    for (std::uint32_t size = 2; size < 12; ++size) {
        for (std::uint64_t seed = 0; seed < 50; ++seed) {
            std::vector<std::int64_t> rows;
            for (std::uint32_t i = 0; i < size; ++i) {
                rows.push_back(static_cast<std::int64_t>(rng::uniform({seed, i, 0, size}) * 10.0));
            }
            const std::int64_t total = std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
            const std::uint32_t owner = static_cast<std::uint32_t>(seed) % size;
            const hpl::SpreadPlan plan = hpl::spread_plan(rows, owner, true);
            EXPECT_EQ(plan.row_at.front(), owner);
            for (std::uint32_t at = 0; at < size; ++at) {
                const std::uint32_t row = plan.row_at[at];
                EXPECT_EQ(plan.position[row], at);
                EXPECT_EQ(plan.from_owner.first[at + 1] - plan.from_owner.first[at], rows[(row + size - owner) % size]);
                if (!plan.levelling.empty()) {
                    EXPECT_GE(plan.rows_at(at), total / size);
                    EXPECT_LE(plan.rows_at(at), total / size + 1);
                }
            }
            EXPECT_EQ(plan.rolled.back(), total);
            for (const auto& steps : {plan.steps_from_owner, plan.steps_of_levelling}) { // who sends has a receiver
                std::int64_t sent = 0;
                std::int64_t received = 0;
                for (const std::vector<hpl::SpreadStep>& own : steps) {
                    for (const hpl::SpreadStep& step : own) {
                        EXPECT_GT(step.probes, 0U);
                        (step.receives ? received : sent) += step.rows;
                    }
                }
                EXPECT_EQ(sent, received);
            }
            for (const hpl::Spread& spread : plan.levelling) {
                EXPECT_EQ(spread.first.front(), plan.from_owner.first[spread.source]);
                EXPECT_EQ(spread.first.back(), plan.from_owner.first[spread.source + 1]);
            }
        }
    }
}

// The algorithms of the panel, the forms of L1 and U, the swaps and the broadcasts, with rows drawn at random.
TEST(Hpl, EveryAlgorithmEndsOnEveryGrid) {
    const auto on = machine(12, 1e-5, 1e9, models::Noise::half_normal);
    const auto broadcasts = words_of(hpl::Broadcast{});
    for (const auto& [p, q] :
         {std::pair{1U, 1U}, {1U, 4U}, {4U, 1U}, {2U, 3U}, {3U, 2U}, {3U, 4U}, {5U, 2U}, {2U, 6U}, {11U, 1U}}) {
        for (int choice = 0; choice < 18 * 4; ++choice) {
            Parameters parameters{.n = 333, .nb = 32, .p = p, .q = q, .depth = static_cast<std::uint32_t>(choice % 4)};
            parameters.bcast = broadcasts[static_cast<std::size_t>(choice) % broadcasts.size()].value;
            parameters.pfact = parameters.rfact = static_cast<hpl::Factorisation>(choice / 4 % 3);
            parameters.pmap = choice % 2 == 0 ? hpl::Order::row : hpl::Order::column;
            parameters.swap = static_cast<hpl::Swap>(choice / 6 % 3);
            parameters.swap_threshold = 100;
            parameters.u = choice % 5 != 0 ? hpl::Form::transposed : hpl::Form::not_transposed;
            parameters.l1 = choice % 7 != 0 ? hpl::Form::transposed : hpl::Form::not_transposed;
            parameters.equil = choice % 2 == 0;
            EXPECT_GT(simulate(parameters, on).time_s, 0.0) << choice;
        }
    }
}

// With free messages, look-ahead can only help; with slow ones it hides the broadcast.
TEST(Hpl, LookAheadHidesTheBroadcast) {
    const auto on = machine(4, 1e-3, 1e8, models::Noise::none);
    const double without = simulate({.n = 2000, .nb = 100, .q = 4, .depth = 0}, on).time_s;
    const double with = simulate({.n = 2000, .nb = 100, .q = 4, .depth = 1}, on).time_s;
    EXPECT_LT(with, without);
}

// Only the cores of a rank's own socket crowd it, as many as its ranks have threads, by the table between its points.
TEST(Hpl, CrowdingIsThatOfTheRanksSocketAndCountsThreads) {
    models::Machine on = machine(1, 0.0, 1e12, models::Noise::none);
    on.cores_per_node = 8; // two sockets: 0 to 3 and 4 to 7
    on.cpus_per_node = 1;
    on.sockets_per_node = 2;
    models::Machine crowded = on;
    for (models::MachineKernel& kernel : crowded.kernels) {
        kernel.crowding = {{1.0 / 3.0, 0.2}, {1.0, 0.3}};
    }
    const Parameters two{.n = 1000, .nb = 64, .q = 2};
    const auto ratio = [&](const std::vector<std::uint32_t>& cores, std::uint32_t threads) {
        crowded.threads_per_rank = threads;
        return hpl::simulate(two, crowded, {}, cores, 1).time_s / hpl::simulate(two, on, {}, cores, 1).time_s;
    };
    EXPECT_NEAR(ratio({0, 4}, 1), 1.0, 1e-12);    // one a socket
    EXPECT_NEAR(ratio({0, 3}, 1), 1.2, 1e-3);     // one of three others
    EXPECT_NEAR(ratio({0, 2}, 2), 1.3, 1e-3);     // two threads each: both others
    EXPECT_NEAR(ratio({0, 4}, 4), 1.0, 1e-12);    // each has a socket to itself
    crowded.cpus_per_node = on.cpus_per_node = 2; // sockets dealt out in turn: even cores and odd ones
    EXPECT_NEAR(ratio({0, 1}, 1), 1.0, 1e-12);
    EXPECT_NEAR(ratio({0, 4}, 1), 1.2, 1e-3);
}

// The error of crowding is that of a rank alone, and none where all cores compute.
TEST(Hpl, ErrorOfCrowdingIsDrawnWhereOtherCoresAreIdle) {
    models::Machine on = machine(1, 0.0, 1e12, models::Noise::none);
    on.cores_per_node = 2;
    models::Machine uncertain = on;
    for (models::MachineKernel& kernel : uncertain.kernels) {
        kernel.crowding_relative_sd = 0.1;
    }
    const Parameters one{.n = 1000, .nb = 64};
    EXPECT_NE(simulate(one, uncertain).time_s, simulate(one, on).time_s);
    const Parameters two{.n = 1000, .nb = 64, .q = 2};
    EXPECT_EQ(simulate(two, uncertain).time_s, simulate(two, on).time_s);
}

// The relative standard deviation of `count` runs of these parameters.
double spread_of_runs(const Parameters& parameters, const models::Machine& on, std::uint64_t count) {
    std::vector<double> times;
    for (std::uint64_t seed = 0; seed < count; ++seed) {
        times.push_back(simulate(parameters, on, seed).time_s);
    }
    const double mean = std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(count);
    double squares = 0.0;
    for (const double time : times) {
        squares += (time / mean - 1.0) * (time / mean - 1.0);
    }
    return std::sqrt(squares / static_cast<double>(count - 1));
}

// A run of T seconds on one rank is the mean of T / episode episodes: its relative deviation is that of an episode over
// the square root of their number. 60 runs: bounds at four standard errors of a standard deviation, 4 / sqrt(120).
TEST(Hpl, EpisodesSpreadRunsByTheSquareRootOfTheirNumber) {
    models::Machine on = machine(1, 0.0, 1e9, models::Noise::none);
    on.episode_relative_sd = 0.05;
    const Parameters parameters{.n = 2000, .nb = 100};
    on.episode_s = simulate(parameters, machine(1, 0.0, 1e9, models::Noise::none)).time_s / 4.0;
    EXPECT_NEAR(spread_of_runs(parameters, on, 60) / (0.05 / 2.0), 1.0, 0.37);
}

// The mean of an Ornstein-Uhlenbeck process over x correlation times has the variance 2/x (1 - (1 - exp(-x)) / x) of
// the process: nearly all of it in a run that is short, and 2/x in a long one. 200 runs: four standard errors are 0.2.
TEST(Hpl, AWanderingCoreSpreadsShortRunsAndIsAveragedByLongOnes) {
    models::Machine on = machine(1, 0.0, 1e9, models::Noise::none);
    const Parameters parameters{.n = 2000, .nb = 100};
    const double time_s = simulate(parameters, on).time_s;
    on.wandering_relative_sd = 0.05;
    for (const double x : {0.1, 1.0, 30.0}) {
        on.wandering_correlation_s = time_s / x;
        const double expected = 0.05 * std::sqrt(2.0 / x * (1.0 - (1.0 - std::exp(-x)) / x));
        EXPECT_NEAR(spread_of_runs(parameters, on, 200) / expected, 1.0, 0.2) << x;
    }
    on.wandering_correlation_s =
        time_s * 1e3;                     // as good as constant: a factor whose standard deviation is drawn as well
    on.wandering_relative_sd_error = 0.5; // the mean square of exp(0.5 z) is exp(0.5)
    EXPECT_NEAR(spread_of_runs(parameters, on, 400) / (0.05 * std::exp(0.25)), 1.0, 0.3);
}

TEST(Hpl, RefusesAGridWithoutCores) {
    EXPECT_THROW(
        (void)hpl::simulate({.n = 100, .nb = 10, .p = 2}, machine(1, 0.0, 1e9, models::Noise::none), {}, {0}, 1),
        std::invalid_argument);
}

TEST(Hpl, ASeedRepeatsOnSeveralThreadsAndAnotherDiffers) {
    const auto on = machine(6, 1e-6, 1e10, models::Noise::half_normal);
    const Parameters parameters{.n = 1500, .nb = 64, .p = 2, .q = 3};
    std::vector<double> alone;
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
        alone.push_back(simulate(parameters, on, seed).time_s);
    }
    std::vector<double> together(4, 0.0);
    std::vector<std::thread> threads;
    for (std::uint64_t first = 0; first < 2; ++first) {
        threads.emplace_back([&, first] {
            for (std::uint64_t seed = first; seed < 4; seed += 2) {
                together[seed] = simulate(parameters, on, seed).time_s;
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(together, alone);
    EXPECT_NE(alone[0], alone[1]);
}

// Too few steps for windows: asked for or not, every step is simulated, and the result is the same to the last bit.
TEST(Hpl, OfFewStepsASampledRunIsTheFullOne) {
    const auto on = machine(6, 1e-6, 1e10, models::Noise::half_normal);
    for (const std::uint32_t depth : {0U, 1U, 2U}) {
        Parameters parameters{.n = 1500, .nb = 64, .p = 2, .q = 3, .depth = depth};
        const hpl::Result full = simulate(parameters, on);
        parameters.sampled = true;
        const hpl::Result sampled = simulate(parameters, on);
        EXPECT_EQ(sampled.time_s, full.time_s);
        EXPECT_EQ(sampled.messages, full.messages);
        EXPECT_EQ(sampled.bytes, full.bytes);
        EXPECT_EQ(sampled.simulated_steps, full.simulated_steps);
        EXPECT_TRUE(sampled.sampling_changes_s.empty());
        EXPECT_EQ(sampled.rank_shares_s, full.rank_shares_s);
    }
}

// 600 steps, of which about 128 are simulated.
TEST(Hpl, ASampledRunIsNearTheFullOne) {
    const auto on = machine(64, 1e-6, 1e10, models::Noise::half_normal);
    for (const std::uint32_t depth : {0U, 1U}) {
        Parameters parameters{.n = 9600, .nb = 16, .p = 8, .q = 8, .depth = depth};
        const hpl::Result full = simulate(parameters, on);
        parameters.sampled = true;
        const hpl::Result sampled = simulate(parameters, on);
        EXPECT_LT(sampled.simulated_steps, 140);
        EXPECT_EQ(full.simulated_steps, 600);
        EXPECT_NEAR(sampled.time_s / full.time_s, 1.0, 0.005);
        for (const double change_s : sampled.sampling_changes_s) {
            EXPECT_LT(std::fabs(change_s), 0.02 * full.time_s);
        }
        EXPECT_NEAR(static_cast<double>(sampled.messages) / static_cast<double>(full.messages), 1.0, 0.01);
        EXPECT_NEAR(sampled.bytes / full.bytes, 1.0, 0.01);
        EXPECT_NEAR(kernel_time_s(sampled) / kernel_time_s(full), 1.0, 0.01);
        EXPECT_NEAR(sampled.waiting_s / full.waiting_s, 1.0, 0.05);
    }
}
