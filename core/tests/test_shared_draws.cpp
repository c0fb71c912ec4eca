#include "apps/hpl/simulation.hpp"
#include "mpi/shared_draws.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

using namespace lepaute;

namespace {

/// Two nodes of two cores, whose kernels cost in proportion to their work and whose every error is drawn.
models::Machine machine() {
    models::Machine result;
    result.nodes = 2;
    result.cores_per_node = 2;
    result.day_common_relative_sd = 0.05;
    result.day_cpu_relative_sd = 0.02;
    std::size_t number = 0;
    for (const std::string_view name : hpl::kernels.names) {
        models::KernelPiece piece;
        piece.mean = {1e-10, 1e-10, 0.0, 0.0, 0.0, 0.0, 1e-9, 0.0, 1e-7};
        piece.fitted = {{1.0, 1.0, 0.0}, {200.0, 200.0, 200.0}};
        piece.discrepancy_relative_sd = 0.03;
        const double discrepancy = 0.02 * static_cast<double>(++number % 4);
        result.kernels.push_back({.name = std::string(name),
                                  .models = {models::KernelModel({piece})},
                                  .discrepancy_relative_sd = discrepancy});
    }
    const models::Segment eager{0.0, models::Protocol::eager, 1e-6, 1e9, {}, {}, {}, 0.0};
    for (models::NetworkClass* links : {&result.network.loopback, &result.network.remote}) {
        links->segments = {eager};
        links->discrepancy_relative_sd = 0.2;
    }
    result.network.loopback_noncontiguous = result.network.loopback;
    result.network.remote_noncontiguous = result.network.remote;
    result.network.node_link_Bps = result.network.loopback_Bps = 1e9;
    result.network.counts_all_sizes = true;
    return result;
}

const hpl::Parameters problem{.n = 600, .nb = 64, .p = 2, .q = 2};
const std::vector<std::uint32_t> cores{0, 1, 2, 3};

} // namespace

TEST(TimeBySize, KeepsAllTimeAndTheMeanSizeOfLikeCalls) {
    models::TimeBySize by_size;
    by_size.note({100.0, 100.0, 100.0}, 1.0); // not begun
    by_size.begin();
    by_size.note({100.0, 7.0, 64.0}, 1.0);
    by_size.note({120.0, 7.0, 64.0}, 3.0); // within half an octave: 96 to 128
    by_size.note({130.0, 7.0, 64.0}, 5.0);
    double time_s = 0.0;
    std::vector<double> sizes;
    for (const models::SizeCell& cell : by_size.cells()) {
        time_s += cell.time_s;
        if (cell.time_s > 0.0) {
            sizes.push_back(cell.mean().m);
        }
    }
    EXPECT_EQ(time_s, 9.0);
    std::ranges::sort(sizes);
    EXPECT_EQ(sizes, (std::vector<double>{115.0, 130.0}));
}

TEST(TimeBySize, LosesNoTimeWhenItsPlacesAreTaken) {
    models::TimeBySize by_size;
    by_size.begin();
    double all_s = 0.0;
    for (int m = 0; m < 40; ++m) {
        for (int n = 0; n < 40; ++n) {
            by_size.note({std::exp2(0.5 * m), std::exp2(0.5 * n), 1.0}, 1.0);
            all_s += 1.0;
        }
    }
    double time_s = 0.0;
    for (const models::SizeCell& cell : by_size.cells()) {
        time_s += cell.time_s;
    }
    EXPECT_EQ(time_s, all_s);
}

// What the draws of another seed do to computing, without simulating the run again: as the simulated run tells.
TEST(SharedDraws, ComputingIsThatOfTheSimulatedRun) {
    const models::Machine on = machine();
    const auto run = [&](std::uint64_t seed) { return hpl::simulate(problem, on, {.noise = false}, cores, seed); };
    const hpl::Result first = run(1);
    const mpi::SharedDraws draws(first, on, {}, cores, 1);
    std::vector<double> errors;
    std::vector<double> effects;
    for (std::uint64_t seed = 1; seed <= 40; ++seed) {
        const std::vector<models::Seeds> seeds{seed};
        const double effect = std::log(draws.effects(on, seeds).front().computing);
        effects.push_back(effect);
        errors.push_back(std::log(run(seed).computing_s / first.computing_s) - effect);
    }
    const auto sd = [](const std::vector<double>& values) {
        const double mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
        double square = 0.0;
        for (const double value : values) {
            square += (value - mean) * (value - mean);
        }
        return std::sqrt(square / static_cast<double>(values.size()));
    };
    EXPECT_EQ(effects.front(), 0.0);
    EXPECT_GT(sd(effects), 0.04);
    EXPECT_LT(sd(errors), 0.15 * sd(effects));
}

TEST(SharedDraws, MessagesHaveTheFactorsOfTheirClass) {
    const models::Machine on = machine();
    const hpl::Result first = hpl::simulate(problem, on, {}, cores, 1);
    const mpi::SharedDraws draws(first, on, {}, cores, 1);
    const std::vector<models::Seeds> seeds{2};
    const auto effect = draws.effects(on, seeds).front().messages;
    for (const models::LinkClass link : {models::LinkClass::loopback, models::LinkClass::remote}) {
        const double ratio = models::message_factor(link, 0.2, 2) / models::message_factor(link, 0.2, 1);
        EXPECT_NEAR(effect.at(static_cast<std::size_t>(link)), ratio, 1e-12);
    }
    EXPECT_EQ(effect.at(static_cast<std::size_t>(models::LinkClass::remote_busy)), 1.0); // no such messages
}
