// Segmentation: the best of all partitions, found as an exhaustive search finds it.

#include "fit/best_partitions.hpp"
#include "fit/log_table.hpp"
#include "fit/splits.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>

using namespace lepaute::fit;

namespace {

Series random_series(unsigned seed, std::size_t points, Objective objective, double growth = 2.0) {
    std::mt19937_64 engine(seed);
    std::uniform_real_distribution<double> uniform(0.0, 1.0);
    std::normal_distribution<double> normal;
    Series series;
    double size = 1.0;
    for (std::size_t i = 0; i < points; ++i) {
        size *= 1.01 + growth * uniform(engine);
        const double mean = size < 1e3 ? 1e-6 + 1e-9 * size : 6e-6 + 2e-10 * size;
        const double measured = mean * std::exp(0.1 * normal(engine));
        series.x.push_back(size);
        series.value.push_back(objective == Objective::logarithmic ? std::log(measured) : measured);
        series.weight.push_back(0.5 + uniform(engine));
    }
    series.first.resize(points + 1);
    std::iota(series.first.begin(), series.first.end(), 0U);
    series.sizes = series.first;
    return series;
}

/// The least cost of `segments` segments of at least `least` points, by trying all.
double exhaustive(const Series& series, const Rules& rules, std::size_t segments) {
    const std::size_t end = series.x.size();
    const std::function<double(std::size_t, std::size_t)> least = [&](std::size_t begin, std::size_t left) {
        if (left == 1) {
            return end - begin < rules.least && begin > 0
                       ? infinity
                       : best_line(series, begin, end, rules.objective, rules.shape).cost;
        }
        double best = infinity;
        for (std::size_t cut = begin + rules.least; cut < end; ++cut) {
            const double rest = least(cut, left - 1);
            best = std::min(best, best_line(series, begin, cut, rules.objective, rules.shape).cost + rest);
        }
        return best;
    };
    return least(0, segments);
}

/// The best line in the logarithm by a fine look at all ratios.
double least_by_looking(const Series& series) {
    double least = infinity;
    const auto spread = [&](const std::function<double(double)>& shape) {
        double weight = 0.0, mean = 0.0, squares = 0.0;
        for (std::size_t i = 0; i < series.x.size(); ++i) {
            const double z = series.value[i] - shape(series.x[i]);
            weight += series.weight[i];
            const double before = mean;
            mean += (z - mean) * series.weight[i] / weight;
            squares += series.weight[i] * (z - before) * (z - mean);
        }
        return squares;
    };
    for (double t = -40.0; t < 20.0; t += 0.002) {
        least = std::min(least, spread([&](double x) { return std::log1p(std::exp(t) * x); }));
    }
    return std::min({least, spread([](double) { return 0.0; }), spread([](double x) { return std::log(x); })});
}

} // namespace

class EveryObjective : public testing::TestWithParam<std::tuple<Objective, Shape, unsigned>> {};

TEST_P(EveryObjective, is_cut_as_an_exhaustive_search_cuts_it) {
    const auto [objective, shape, seed] = GetParam();
    const Series series = random_series(seed, 18, objective);
    const Rules rules{objective, shape, 3, 4};
    const std::vector<Partition> found = best_partitions({series}, rules);
    ASSERT_EQ(found.size(), 4U);
    for (std::size_t segments = 1; segments <= 4; ++segments) {
        const double slow = exhaustive(series, rules, segments);
        EXPECT_NEAR(found[segments - 1].cost, slow, 1e-9 * slow);
        EXPECT_EQ(found[segments - 1].cuts.size(), segments - 1);
    }
}

INSTANTIATE_TEST_SUITE_P(Segmentation, EveryObjective,
                         testing::Combine(testing::Values(Objective::squared, Objective::logarithmic),
                                          testing::Values(Shape::line, Shape::constant), testing::Range(1U, 7U)));

TEST(LogLine, is_as_good_as_the_best_of_thirty_thousand_ratios) {
    for (unsigned seed = 1; seed <= 40; ++seed) {
        const Series series = random_series(seed, 4 + seed, Objective::logarithmic);
        const double found = best_log_line(series, 0, series.x.size()).cost;
        const double looked = least_by_looking(series);
        EXPECT_LE(found, looked * (1.0 + 1e-9));
        EXPECT_GE(found, looked * (1.0 - 1e-4)); // the look itself is that coarse
    }
}

TEST(LogTable, never_bounds_a_segment_above_its_cost) {
    for (unsigned seed = 1; seed <= 10; ++seed) {
        const Series series = random_series(seed, 30, Objective::logarithmic);
        LogTable table(series, Shape::line, 2);
        for (std::size_t low = 0; low < 30; ++low) {
            for (std::size_t high = low + 2; high <= 30; ++high) {
                const double bound = table.bound(low, high);
                const double cost = best_log_line(series, low, high).cost;
                EXPECT_LE(bound, cost * (1.0 + 1e-9) + 1e-15) << low << ".." << high;
                EXPECT_NEAR(table.refine(low, high), cost, 1e-8 * cost + 1e-15) << low << ".." << high;
            }
        }
    }
}

TEST(LogLine, that_rises_from_nothing_goes_through_the_origin) {
    Series series;
    for (double x : {1.0, 10.0, 100.0, 1000.0}) {
        series.x.push_back(x);
        series.value.push_back(std::log(3e-9 * x));
        series.weight.push_back(1.0);
    }
    series.first = {0, 4};
    const Line line = best_line(series, 0, 4, Objective::logarithmic, Shape::line);
    EXPECT_EQ(line.intercept, 0.0);
    EXPECT_NEAR(line.slope, 3e-9, 1e-20);
}

TEST(LogLine, that_falls_is_a_constant_since_no_slope_is_negative) {
    Series series{{1.0, 2.0, 3.0}, {std::log(3.0), std::log(2.0), std::log(1.0)}, {1.0, 1.0, 1.0}, {0, 3}, {0, 3}, 1.0};
    const Line line = best_line(series, 0, 3, Objective::logarithmic, Shape::line);
    EXPECT_EQ(line.slope, 0.0);
    EXPECT_NEAR(line.intercept, std::cbrt(6.0), 1e-12);
}

TEST(LogLine, keeps_a_size_of_zero) {
    Series series{
        {0.0, 1e3, 1e6}, {std::log(1e-6), std::log(2e-6), std::log(1.001e-3)}, {1.0, 1.0, 1.0}, {0, 3}, {0, 3}, 1.0};
    const Line line = best_line(series, 0, 3, Objective::logarithmic, Shape::line);
    EXPECT_NEAR(line.intercept, 1e-6, 1e-12);
    EXPECT_NEAR(line.slope, 1e-9, 1e-15);
}

TEST(SeveralSeries, are_cut_where_their_sum_is_least) {
    const Series one = random_series(3, 16, Objective::squared);
    Series other = random_series(4, 16, Objective::squared);
    other.scale = 2.5;
    const Rules rules{Objective::squared, Shape::line, 3, 2};
    const std::vector<Partition> found = best_partitions({one, other}, rules);
    double slow = infinity;
    for (std::size_t cut = 3; cut <= 13; ++cut) {
        double sum = 0.0;
        for (const Series* series : std::array<const Series*, 2>{&one, &other}) {
            sum += series->scale * (best_line(*series, 0, cut, Objective::squared, Shape::line).cost +
                                    best_line(*series, cut, 16, Objective::squared, Shape::line).cost);
        }
        slow = std::min(slow, sum);
    }
    EXPECT_NEAR(found[1].cost, slow, 1e-9 * slow);
}

TEST(SplitCosts, are_nearly_those_of_both_sides) {
    for (const Objective objective : {Objective::squared, Objective::logarithmic}) {
        const Series series = random_series(9, 40, objective);
        const Rules rules{objective, Shape::line, 4, 2};
        const std::vector<double> costs = split_costs(series, 2, 38, rules);
        for (std::size_t cut = 3; cut < 38; ++cut) {
            const double both = best_line(series, 2, cut, objective, Shape::line).cost +
                                best_line(series, cut, 38, objective, Shape::line).cost;
            if (cut < 6 || cut > 34) {
                EXPECT_EQ(costs[cut - 3], infinity);
            } else {
                EXPECT_GE(costs[cut - 3], both * (1.0 - 1e-9)) << cut;
                EXPECT_LE(costs[cut - 3], both * 1.01)
                    << cut; // another minimum near that of the neighbour may be followed
            }
        }
    }
}

TEST(BestLogCut, is_the_best_of_those_between_or_nearly_as_good) {
    const Series series = random_series(5, 400, Objective::logarithmic, 0.1);
    const std::size_t cut = best_log_cut(series, 0, 400, 150, 170);
    const auto cost = [&](std::size_t at) {
        return best_log_line(series, 0, at).cost + best_log_line(series, at, 400).cost;
    };
    double least = infinity;
    for (std::size_t at = 150; at <= 170; ++at) {
        least = std::min(least, cost(at));
    }
    EXPECT_LE(cost(cut), least * 1.001);
}
