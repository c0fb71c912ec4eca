#include "rng/elementary.hpp"
#include "rng/philox.hpp"

#include <gtest/gtest.h>

#include <cmath>

using namespace lepaute::rng;

// Known answers of Philox4x32-10, from the Random123 distribution's kat_vectors.
TEST(Philox, GivesThePublishedAnswers) {
    EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
              (std::array<std::uint32_t, 4>{0x6627e8d5U, 0xe169c58dU, 0xbc57ac4cU, 0x9b00dbd8U}));
    EXPECT_EQ(philox4x32({0xffffffffU, 0xffffffffU, 0xffffffffU, 0xffffffffU}, {0xffffffffU, 0xffffffffU}),
              (std::array<std::uint32_t, 4>{0x408f276dU, 0x41c83b0eU, 0xa20bc7c6U, 0x6d5451fdU}));
    EXPECT_EQ(philox4x32({0x243f6a88U, 0x85a308d3U, 0x13198a2eU, 0x03707344U}, {0xa4093822U, 0x299f31d0U}),
              (std::array<std::uint32_t, 4>{0xd16cfe09U, 0x94fdccebU, 0x5001e420U, 0x24126ea1U}));
}

TEST(Elementary, LogarithmAgreesWithTheLibrary) {
    for (double x = 1e-300; x < 1e300; x *= 3.7) {
        EXPECT_NEAR(natural_log(x), std::log(x), 2e-15 * std::max(1.0, std::fabs(std::log(x)))) << x;
    }
    EXPECT_EQ(natural_log(1.0), 0.0);
}

TEST(Elementary, ExponentialAgreesWithTheLibrary) {
    for (double x = -600.0; x < 600.0; x += 0.37) {
        EXPECT_NEAR(exponential(x) / std::exp(x), 1.0, 1e-14) << x;
    }
}

TEST(Elementary, NormalQuantileInvertsTheNormalDistribution) {
    for (double p = 1e-12; p < 1.0; p = p < 0.01 ? p * 1.9 : p + 0.0071) {
        const double back = 0.5 * std::erfc(-normal_quantile(p) / std::sqrt(2.0));
        EXPECT_NEAR(back / p, 1.0, 1e-12) << p;
    }
    EXPECT_EQ(normal_quantile(0.5), 0.0);
}

TEST(Draws, DependOnTheirCoordinatesAlone) {
    const Coordinates at{7, 3, 2, 41};
    EXPECT_EQ(uniform(at), uniform(at));
    EXPECT_NE(uniform(at), uniform({8, 3, 2, 41}));
    EXPECT_NE(uniform(at), uniform({7, 4, 2, 41}));
    EXPECT_NE(uniform(at), uniform({7, 3, 1, 41}));
    EXPECT_NE(uniform(at), uniform({7, 3, 2, 42}));
}

// Mean 0 and standard deviation 1 by construction; 5 standard errors of 200,000 draws. The variance of the squared
// variate is its fourth moment less 1; 3.87 is the kurtosis of the half-normal.
TEST(Draws, HalfNormalHasMeanZeroAndDeviationOneAndIsBoundedBelow) {
    constexpr int n = 200000;
    double sum = 0.0;
    double squares = 0.0;
    double least = 0.0;
    for (std::uint64_t i = 0; i < n; ++i) {
        const double x = centred_half_normal({1, 0, 0, i});
        sum += x;
        squares += x * x;
        least = std::min(least, x);
    }
    EXPECT_NEAR(sum / n, 0.0, 5.0 / std::sqrt(n));
    EXPECT_NEAR(squares / n, 1.0, 5.0 * std::sqrt(2.87 / n));
    EXPECT_GE(least, -1.323597); // sqrt(2/pi) / sqrt(1 - 2/pi)
    EXPECT_LT(least, -1.32);
}

// Student's t with 4 degrees of freedom exceeds 2.776 in absolute value in 5 % of draws.
TEST(Draws, StudentHasItsTail) {
    constexpr int n = 20000;
    int beyond = 0;
    for (std::uint64_t seed = 0; seed < n; ++seed) {
        beyond += std::fabs(student({seed, 0, 9, 0}, 4)) > 2.776445 ? 1 : 0;
    }
    EXPECT_NEAR(beyond, 0.05 * n, 5.0 * std::sqrt(0.05 * 0.95 * n));
}
