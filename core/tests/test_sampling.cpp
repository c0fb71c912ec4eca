#include "apps/hpl/sampling.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <vector>

using namespace lepaute::hpl;

namespace {

using TimeOfStep = std::function<double(double)>;

struct Shape {
    std::int64_t n;
    std::int64_t nb;
    std::int64_t p;
    std::int64_t q;
    [[nodiscard]] std::int64_t steps() const { return (n + nb - 1) / nb; }
    [[nodiscard]] Sample sample() const { return sampled(steps(), p, q); }
    [[nodiscard]] StepTerms terms() const { return step_terms(n, nb, p, q); }
};
const Shape shapes[] = {{600, 1, 1, 1},     {1000, 1, 4, 8},           {500'000, 128, 32, 32},
                        {3'906, 1, 64, 64}, {3'875'000, 1024, 77, 78}, {24'000'000, 512, 224, 336},
                        {60'000, 64, 13, 8}};

/// What the spans make of a run whose steps take these times, and what is said of the error.
struct Estimate {
    double time_s;
    double count;
    double changes_s; // root of the sum of squares
};
Estimate estimated(const Shape& shape, const TimeOfStep& time_of) {
    const Sample sample = shape.sample();
    std::vector<double> began = {0.0};
    for (const std::int64_t step : sample.steps) {
        began.push_back(began.back() + time_of(static_cast<double>(step)));
    }
    const Extrapolation found = extrapolated(sample, shape.terms(), began);
    Estimate result{};
    for (std::size_t i = 0; i < sample.spans.size(); ++i) {
        result.time_s += found.weights[i] * (began[sample.spans[i].end] - began[sample.spans[i].begin]);
        result.count += found.counts[i] * static_cast<double>(sample.spans[i].end - sample.spans[i].begin);
    }
    for (const double change_s : found.changes_s) {
        result.changes_s += change_s * change_s;
    }
    result.changes_s = std::sqrt(result.changes_s);
    return result;
}

double summed(std::int64_t steps, const TimeOfStep& time_of) {
    double sum = 0.0;
    for (std::int64_t step = 0; step < steps; ++step) {
        sum += time_of(static_cast<double>(step));
    }
    return sum;
}

} // namespace

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

TEST(Sampling, TheWholeIsEveryStepOnce) {
    const Sample sample = whole(7);
    EXPECT_EQ(sample.steps, (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6}));
    EXPECT_TRUE(sample.spans.empty());
}

TEST(Sampling, OfFewStepsTakesTheWhole) {
    for (const std::int64_t steps : {1, 10, 100, 240}) {
        EXPECT_EQ(sampled(steps, 4, 4).steps.size(), static_cast<std::size_t>(steps));
        EXPECT_TRUE(sampled(steps, 4, 4).spans.empty());
    }
    EXPECT_TRUE(sampled(1100, 1, 300).spans.empty()); // hardly any whole round could be left out
}

// The first and the last step are there; what is left out is a multiple of the process columns, in several places.
TEST(Sampling, LeapsKeepTheRoundOfTheProcessColumns) {
    for (const Shape& shape : shapes) {
        const Sample sample = shape.sample();
        ASSERT_FALSE(sample.spans.empty()) << shape.n;
        EXPECT_LT(2 * sample.steps.size(), static_cast<std::size_t>(shape.steps()));
        EXPECT_EQ(sample.steps.front(), 0);
        EXPECT_EQ(sample.steps.back(), shape.steps() - 1);
        int leaps = 0;
        for (std::size_t i = 1; i < sample.steps.size(); ++i) {
            const std::int64_t left_out = sample.steps[i] - sample.steps[i - 1] - 1;
            EXPECT_GE(left_out, 0);
            EXPECT_EQ(left_out % shape.q, 0);
            leaps += left_out > 0 ? 1 : 0;
        }
        EXPECT_GE(leaps, 5);
        for (const Span& span : sample.spans) {
            EXPECT_LT(span.begin, span.end);
            EXPECT_LE(span.end, sample.steps.size());
        }
    }
}

// Further windows lie between the first ones and overlap none; the ranks come to the same tail.
TEST(Sampling, FurtherWindowsComeBeforeTheTailAndKeepTheRound) {
    int split = 0;
    for (const Shape& shape : shapes) {
        const Sample few = shape.sample();
        if (few.further.empty()) {
            continue;
        }
        ++split;
        const Sample many = extended(few);
        EXPECT_TRUE(many.further.empty());
        const std::size_t added = many.steps.size() - few.steps.size();
        EXPECT_GT(added, 0U);
        EXPECT_EQ(added % static_cast<std::size_t>(shape.q), 0U);
        const Span before = few.spans[Sample::tail];
        const Span after = many.spans[Sample::tail];
        EXPECT_EQ(after.begin, before.begin + added);
        EXPECT_EQ(many.steps[after.begin], few.steps[before.begin]);
        EXPECT_EQ(many.spans.size(), few.spans.size() + few.further.size());
        EXPECT_LE(few.further.size(), few.spans.size() - Sample::first_window - 1); // one in a gap
        const Span first = few.spans[Sample::first_window];
        for (const Sample::Window& window : few.further) {
            EXPECT_GE(window.length, static_cast<std::int64_t>(first.end - first.begin));
        }
        for (std::size_t i = 1; i < many.steps.size(); ++i) {
            EXPECT_EQ((many.steps[i] - many.steps[i - 1] - 1) % shape.q, 0);
        }
        std::vector<std::int64_t> once = many.steps;
        std::ranges::sort(once);
        EXPECT_EQ(std::ranges::adjacent_find(once), once.end());
        const auto ones = std::vector<double>(many.steps.size() + 1);
        double count = 0.0;
        const Extrapolation found = extrapolated(many, shape.terms(), ones);
        for (std::size_t i = 0; i < many.spans.size(); ++i) {
            count += found.counts[i] * static_cast<double>(many.spans[i].end - many.spans[i].begin);
        }
        EXPECT_NEAR(count, static_cast<double>(shape.steps()), 1e-6);
    }
    EXPECT_GE(split, 4);
}

// Only what the windows do not follow asks for further ones.
TEST(Sampling, StallsMakeTheTimeUncertainAndTheTermsDoNot) {
    for (const Shape& shape : shapes) {
        const Sample sample = shape.sample();
        const StepTerms terms = shape.terms();
        const auto began = [&](double stall) {
            std::vector<double> dates = {0.0};
            std::int64_t count = 0;
            for (const std::int64_t step : sample.steps) {
                const bool stalls = count++ % 29 == 0;
                dates.push_back(dates.back() + terms[0][static_cast<std::size_t>(step)] * (stalls ? 1.0 + stall : 1.0));
            }
            return dates;
        };
        EXPECT_FALSE(uncertain(sample, terms, began(0.0))) << shape.n;
        EXPECT_TRUE(uncertain(sample, terms, began(2.0))) << shape.n;
    }
}

// All steps are counted once, whatever they take.
TEST(Sampling, CountsAddUpToTheNumberOfSteps) {
    for (const Shape& shape : shapes) {
        const auto steps = static_cast<double>(shape.steps());
        EXPECT_NEAR(estimated(shape, [](double) { return 1.0; }).count, steps, 1e-9 * steps);
        EXPECT_NEAR(estimated(shape, [](double step) { return 1.0 / (1.0 + step); }).count, steps, 1e-9 * steps);
    }
}

// The three terms in any mixture are known for every step, whatever the grid: stairs of block-cyclic sizes included.
TEST(Sampling, TimesMadeOfTheTermsAddUpExactly) {
    for (const Shape& shape : shapes) {
        const StepTerms terms = shape.terms();
        for (const auto& [product, rows, constant] : {std::array{1.0, 0.0, 0.0}, std::array{0.0, 1.0, 0.0},
                                                      std::array{0.0, 0.0, 1.0}, std::array{1.0, 50.0, 1e4}}) {
            const auto time_of = [&, product = product, rows = rows, constant = constant](double step) {
                const auto at = static_cast<std::size_t>(step);
                return product * terms[0][at] + rows * terms[1][at] + constant * terms[2][at];
            };
            const Estimate found = estimated(shape, time_of);
            const double expected = summed(shape.steps(), time_of);
            EXPECT_NEAR(found.time_s / expected, 1.0, 1e-9) << shape.n << " " << product << " " << rows;
            EXPECT_LT(found.changes_s, 1e-9 * expected);
        }
    }
}

// What the terms do not say is followed where it is smooth, as where products of small matrices are slower.
TEST(Sampling, SmoothDeviationsFromTheTermsAreFollowed) {
    for (const Shape& shape : shapes) {
        const StepTerms terms = shape.terms();
        const auto steps = static_cast<double>(shape.steps());
        const auto time_of = [&](double step) {
            const double left = 1.0 - step / steps;
            return terms[0][static_cast<std::size_t>(step)] * (1.0 + 0.1 / (0.1 + left) + 0.05 * left * left);
        };
        EXPECT_NEAR(estimated(shape, time_of).time_s / summed(shape.steps(), time_of), 1.0, 2e-3) << shape.n;
    }
}

TEST(Sampling, ChangesTellOfWhatTheWindowsMiss) {
    const Shape shape{4000, 1, 1, 1};
    const auto relative = [&](const TimeOfStep& time_of) {
        const Estimate found = estimated(shape, time_of);
        return found.changes_s / found.time_s;
    };
    EXPECT_LT(relative([](double step) { return std::pow(1.0 - step / 4000.0, 2); }), 1e-3);
    EXPECT_GT(relative([](double step) { return 1.0 + 0.3 * std::sin(step / 100.0); }), 1e-2);
}

TEST(Sampling, ARunThatTakesNoTimeIsOneOfNoTime) {
    EXPECT_EQ(estimated(shapes[1], [](double) { return 0.0; }).time_s, 0.0);
}
