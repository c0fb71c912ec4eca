#include "models/noise_mixture.hpp"
#include "mpi/engine.hpp"
#include "small_network.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

using namespace lepaute;
using models::NoiseMode;
using mpi::Rank;
using mpi::Task;
using tests::Engine;

namespace {

const std::vector<NoiseMode> three_modes{{0.6, -0.2, 0.03}, {0.3, 0.5, 0.05}, {0.1, 1.5, 0.1}};

/// Messages of up to 100 bytes eager with overheads, above rendezvous; the noise of both is `noise`.
models::Network network(const models::NoiseMixture& noise) {
    models::Segment eager{0.0, models::Protocol::eager, 1e-3, 1e5, {1e-3, 0.0}, {}, {2e-3, 0.0}, 0.0, noise};
    models::Segment rendezvous{100.0, models::Protocol::rendezvous, 5e-3, 1e5, {}, {}, {}, 0.0, noise};
    return tests::network_of({eager, rendezvous}, 1e5);
}

/// Durations of `count` messages of `bytes`, one after the other, each from the beginning of its send to the end of its
/// receive. node_of_rank {0, 0}: inside a node; {0, 1}: over a link.
std::vector<double> durations_s(const models::Network& network, std::vector<std::uint32_t> node_of_rank, double bytes,
                                std::size_t count, std::uint64_t seed, bool with_noise = true) {
    Engine engine(network, std::move(node_of_rank), 2, seed, with_noise);
    std::vector<double> result(count);
    std::vector<double> begin_s(count);
    engine.run([&](Rank rank) -> Task {
        for (std::size_t i = 0; i < count; ++i) {
            if (rank == 0) {
                begin_s[i] = engine.clock(0);
                co_await engine.send(0, 1, 1, bytes);
                co_await engine.receive(0, 1, 2);
            } else {
                co_await engine.receive(1, 0, 1);
                result[i] = engine.clock(1) - begin_s[i];
                co_await engine.send(1, 0, 2, 0.0);
            }
        }
    });
    return result;
}

/// The modes with their own weights again.
std::vector<NoiseMode> modes_of(const models::NoiseMixture& noise) {
    std::vector<NoiseMode> result;
    double before = 0.0;
    for (const rng::Mode& mode : noise.modes) {
        result.push_back({mode.cumulative - before, mode.mean, mode.deviation});
        before = mode.cumulative;
    }
    return result;
}

double mean_of(const std::vector<double>& values) {
    double sum = 0.0;
    for (const double value : values) {
        sum += value;
    }
    return sum / static_cast<double>(values.size());
}

TEST(NoiseMixture, IsCentredSoThatTheMeanOfTheFactorIsOne) {
    const models::NoiseMixture noise = models::centred(std::vector<NoiseMode>{{3.0, 1.0, 0.5}, {1.0, 2.0, 0.1}});
    double mean = 0.0;
    for (const NoiseMode& mode : modes_of(noise)) {
        mean += mode.weight * std::exp(mode.mean + mode.sd * mode.sd / 2.0);
    }
    EXPECT_NEAR(mean, 1.0, 1e-14);
    EXPECT_DOUBLE_EQ(noise.modes[0].cumulative, 0.75);
    EXPECT_EQ(noise.modes[1].cumulative, 1.0);
    EXPECT_NEAR(noise.modes[1].mean - noise.modes[0].mean, 1.0, 1e-14); // the modes keep their distance
    EXPECT_TRUE(models::centred({}).modes.empty());
}

// The whole of a message is multiplied, so the mean of its duration is that without noise: over 20,000 messages, within
// four standard errors. With the modes of the test, one message has a standard deviation of 0.68 of its mean.
TEST(NoiseMixture, LeavesTheMeanDurationOfAMessageAsItWas) {
    const models::NoiseMixture noise = models::centred(three_modes);
    double variance = 0.0;
    for (const NoiseMode& mode : modes_of(noise)) {
        variance += mode.weight * std::exp(2.0 * mode.mean + 2.0 * mode.sd * mode.sd);
    }
    const double relative_sd = std::sqrt(variance - 1.0);
    for (const std::vector<std::uint32_t>& nodes : {std::vector<std::uint32_t>{0, 0}, {0, 1}}) {
        for (const double bytes : {50.0, 2000.0}) {
            const double expected_s = durations_s(network(noise), nodes, bytes, 1, 1, false).front();
            const double mean_s = mean_of(durations_s(network(noise), nodes, bytes, 20000, 7));
            EXPECT_NEAR(mean_s / expected_s, 1.0, 4.0 * relative_sd / std::sqrt(20000.0)) << bytes;
        }
    }
}

// The modes stand apart: between them (at factors of 1 and 2.5 of the smallest mode's centre) lies no message, and as
// many lie in each as its weight says, within four standard deviations of the binomial.
TEST(NoiseMixture, GivesTheDurationsOfMessagesTheModes) {
    const models::NoiseMixture noise = models::centred(three_modes);
    constexpr std::size_t count = 20000;
    const std::vector<double> all = durations_s(network(noise), {0, 1}, 2000.0, count, 3);
    const double alone_s = durations_s(network(noise), {0, 1}, 2000.0, 1, 1, false).front();
    for (const NoiseMode& mode : modes_of(noise)) {
        std::size_t inside = 0;
        for (const double seconds : all) {
            inside += std::fabs(std::log(seconds / alone_s) - mode.mean) < 4.5 * mode.sd ? 1 : 0;
        }
        const double expected = mode.weight * count;
        EXPECT_NEAR(static_cast<double>(inside), expected, 4.0 * std::sqrt(expected * (1.0 - mode.weight)));
    }
}

TEST(NoiseMixture, RepeatsForASeedAndDiffersForAnother) {
    const models::Network with = network(models::centred(three_modes));
    EXPECT_EQ(durations_s(with, {0, 1}, 50.0, 100, 5), durations_s(with, {0, 1}, 50.0, 100, 5));
    EXPECT_NE(durations_s(with, {0, 1}, 50.0, 100, 5), durations_s(with, {0, 1}, 50.0, 100, 6));
}

TEST(MessageUse, CountsMessagesOutsideTheFittedSizesByClassOfLinks) {
    models::Network with = network({});
    with.remote.fitted_low_bytes = 1.0;
    with.remote.fitted_high_bytes = 1000.0;
    const auto use_of = [&](std::vector<std::uint32_t> nodes) {
        Engine engine(with, std::move(nodes), 2, 1, false);
        engine.run([&](Rank rank) -> Task {
            for (const double bytes : {0.0, 1.0, 1000.0, 4000.0}) {
                if (rank == 0) {
                    co_await engine.send(0, 1, 1, bytes);
                } else {
                    co_await engine.receive(1, 0, 1);
                }
            }
        });
        return engine.statistics().use;
    };
    const auto across = use_of({0, 1})[static_cast<std::size_t>(models::LinkClass::remote)];
    EXPECT_EQ(across.messages, 4U);
    EXPECT_EQ(across.outside_messages, 2U); // of 0 and of 4000 bytes
    EXPECT_EQ(across.outside_bytes, 4000.0);
    EXPECT_NEAR(across.outside_time_s, 4e-3 + 5e-3 + 0.04, 1e-12);
    EXPECT_NEAR(across.time_s, across.outside_time_s + 4e-3 + 1e-5 + 5e-3 + 0.01, 1e-12);
    EXPECT_EQ(across.outside_low_bytes, 0.0);
    EXPECT_EQ(across.outside_high_bytes, 4000.0);
    const auto within = use_of({0, 0});
    EXPECT_EQ(within[static_cast<std::size_t>(models::LinkClass::loopback)].messages, 4U);
    EXPECT_EQ(within[static_cast<std::size_t>(models::LinkClass::loopback)].outside_messages, 0U);
}

TEST(NoiseMixture, NoTransferTakesLessThanItsBound) {
    models::Network half_normal = network({});
    for (models::NetworkClass* links : {&half_normal.loopback, &half_normal.remote}) {
        links->segments.back().noise_relative_sd = 0.3;
    }
    for (const models::Network& noisy : {network(models::centred(three_modes)), half_normal}) {
        const Engine engine(noisy, {0, 1}, 2, 1, true);
        const Engine quiet(noisy, {0, 1}, 2, 1, false);
        EXPECT_GT(engine.least_transfer_s(1000.0), 0.0);
        EXPECT_DOUBLE_EQ(quiet.least_transfer_s(1000.0), 15e-3);
        for (const std::uint32_t other : {0U, 1U}) {
            for (const double duration_s : durations_s(noisy, {0, other}, 1000.0, 5000, 7)) {
                EXPECT_GE(duration_s, engine.least_transfer_s(1000.0));
            }
        }
    }
    const Engine engine(half_normal, {0, 1}, 2, 1, true);
    EXPECT_TRUE(engine.may_be_eager(100.0));
    EXPECT_FALSE(engine.may_be_eager(101.0));
}

} // namespace
