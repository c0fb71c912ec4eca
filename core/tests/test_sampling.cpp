#include "apps/hpl/sampling.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

using namespace lepaute::hpl;

namespace {

using TimeOfStep = std::function<double(double)>;

/// What the spans make of a run whose steps take these times.
double integrated(const Sample& sample, const std::vector<Span>& spans, const TimeOfStep& time_of) {
    std::vector<double> began = {0.0};
    for (const std::int64_t step : sample.steps) {
        began.push_back(began.back() + time_of(static_cast<double>(step)));
    }
    double sum = 0.0;
    for (const Span& span : spans) {
        sum += span.weight * (began[span.end] - began[span.begin]);
    }
    return sum;
}

double summed(std::int64_t steps, const TimeOfStep& time_of) {
    double sum = 0.0;
    for (std::int64_t step = 0; step < steps; ++step) {
        sum += time_of(static_cast<double>(step));
    }
    return sum;
}

struct Shape {
    std::int64_t steps;
    std::int64_t multiple;
};
constexpr Shape shapes[] = {{600, 1}, {1000, 8}, {3907, 32}, {3906, 64}, {5000, 77}, {20000, 336}};

// Simulated steps follow each other, or after whole rounds of the process columns that are left out.
TEST(Sampling, ATrialKeepsTheOrderOfRootsAndHasTheStepsAskedFor) {
    for (const std::int64_t count : {1, 2, 5, 6, 30, 98, 99, 1000}) {
        for (const std::int64_t head : {1, 3}) {
            const Sample sample = trial(100, 7, head, count);
            ASSERT_EQ(static_cast<std::int64_t>(sample.steps.size()), std::min<std::int64_t>(100, head + count));
            for (std::size_t index = 0; index < sample.steps.size(); ++index) {
                const auto number = static_cast<std::int64_t>(index);
                EXPECT_EQ((sample.steps[index] - number) % 7, 0);
                EXPECT_TRUE(index == 0 || sample.steps[index] > sample.steps[index - 1]);
            }
        }
    }
}

} // namespace

TEST(Sampling, TheWholeIsEveryStepOnce) {
    const Sample sample = whole(7);
    EXPECT_EQ(sample.steps, (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6}));
    ASSERT_EQ(sample.spans.size(), 1U);
    EXPECT_EQ(sample.spans[0].begin, 0U);
    EXPECT_EQ(sample.spans[0].end, 7U);
    EXPECT_EQ(sample.spans[0].weight, 1.0);
}

TEST(Sampling, OfFewStepsTakesTheWhole) {
    for (const std::int64_t steps : {1, 10, 100, 480}) {
        const Sample sample = sampled(steps, 4, {});
        EXPECT_EQ(sample.steps.size(), static_cast<std::size_t>(steps));
        EXPECT_EQ(sample.spans.size(), 1U);
    }
    EXPECT_EQ(sampled(10000, 4, {.count = 2}).steps.size(), 10000U); // no polynomial through two windows
}

// The first and the last step are there; what is left out between two windows is a multiple of the process columns.
TEST(Sampling, WindowsKeepTheRoundOfTheProcessColumns) {
    for (const auto& [steps, multiple] : shapes) {
        const Sample sample = sampled(steps, multiple, {});
        ASSERT_LT(2 * sample.steps.size(), static_cast<std::size_t>(steps));
        EXPECT_EQ(sample.steps.front(), 0);
        EXPECT_EQ(sample.steps.back(), steps - 1);
        for (std::size_t i = 1; i < sample.steps.size(); ++i) {
            const std::int64_t left_out = sample.steps[i] - sample.steps[i - 1] - 1;
            EXPECT_GE(left_out, 0);
            EXPECT_EQ(left_out % multiple, 0);
        }
        for (const Span& span : sample.spans) {
            EXPECT_LT(span.begin, span.end);
            EXPECT_LE(span.end, sample.steps.size());
        }
    }
}

TEST(Sampling, StepsOfEqualTimeAddUpExactly) {
    for (const auto& [steps, multiple] : shapes) {
        const Sample sample = sampled(steps, multiple, {});
        const auto one = [](double) { return 1.0; };
        EXPECT_NEAR(integrated(sample, sample.spans, one), static_cast<double>(steps),
                    1e-9 * static_cast<double>(steps));
        EXPECT_EQ(sample.alternatives.size(), 3U);
        for (const std::vector<Span>& spans : sample.alternatives) {
            EXPECT_NEAR(integrated(sample, spans, one), static_cast<double>(steps), 1e-9 * static_cast<double>(steps));
        }
    }
}

// HPL's steps: a product that shrinks with the square of what is left, a panel that shrinks with it. A window measures
// a mean over its steps, which differs from the time at its centre by little; of 600 steps a window is a 20th.
TEST(Sampling, PolynomialsUpToDegreeThreeAreIntegrated) {
    for (const auto& [steps, multiple] : shapes) {
        const Sample sample = sampled(steps, multiple, {});
        for (const int degree : {1, 2, 3}) {
            const auto time_of = [&](double step) { return std::pow(1.0 - step / static_cast<double>(steps), degree); };
            const double expected = summed(steps, time_of);
            EXPECT_NEAR(integrated(sample, sample.spans, time_of) / expected, 1.0, steps < 1000 ? 2e-3 : 1e-3)
                << steps << " " << degree;
        }
    }
}

// What leaving a window out changes is small for what the windows follow, and tells of what they do not.
TEST(Sampling, AlternativesTellOfWhatTheWindowsMiss) {
    const Sample sample = sampled(4000, 1, {});
    const auto spread = [&](const TimeOfStep& time_of) {
        double most = 0.0;
        for (const std::vector<Span>& spans : sample.alternatives) {
            most = std::max(most,
                            std::fabs(integrated(sample, spans, time_of) - integrated(sample, sample.spans, time_of)));
        }
        return most / integrated(sample, sample.spans, time_of);
    };
    EXPECT_LT(spread([](double step) { return std::pow(1.0 - step / 4000.0, 2); }), 1e-3);
    EXPECT_GT(spread([](double step) { return 1.0 + 0.3 * std::sin(step / 300.0); }), 1e-2);
}
