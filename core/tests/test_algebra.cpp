// Small dense algebra: what is known in closed form.

#include "fit/algebra.hpp"

#include <gtest/gtest.h>

using namespace lepaute::fit;

TEST(Algebra, ProductsOfRowsAndColumns) {
    const std::vector<double> values{1.0, 2.0, 3.0, 4.0, 5.0, 6.0};
    const Matrix x{3, 2, values};
    EXPECT_EQ(products(x, x), (std::vector<double>{35.0, 44.0, 44.0, 56.0}));
    EXPECT_EQ(weighted_products(x, std::vector<double>{1.0, 0.0, 2.0}), (std::vector<double>{51.0, 62.0, 62.0, 76.0}));
    EXPECT_EQ(product(x, Matrix{2, 1, std::vector<double>{1.0, -1.0}}), (std::vector<double>{-1.0, -1.0, -1.0}));
}

TEST(Algebra, ACoefficientThatWouldBeNegativeIsZeroAndTheOtherIsFittedAlone) {
    const std::vector<double> gram{2.0, 1.0, 1.0, 2.0}, moment{4.0, 1.0}; // free: 7/3 and -2/3
    const Matrix matrix{2, 2, gram};
    EXPECT_NEAR(solution(matrix, moment)[1], -2.0 / 3.0, 1e-15);
    EXPECT_EQ(nonnegative_solution(matrix, moment, false)[1], 0.0);
    EXPECT_NEAR(nonnegative_solution(matrix, moment, false)[0], 2.0, 1e-15);
    EXPECT_NEAR(nonnegative_solution(matrix, moment, true)[1], -2.0 / 3.0, 1e-15);
}

TEST(Algebra, AColumnThatAnotherExplainsHasNoCoefficient) {
    const std::vector<double> gram{4.0, 8.0, 8.0, 16.0}, moment{4.0, 8.0};
    EXPECT_EQ(solution({2, 2, gram}, moment), (std::vector<double>{1.0, 0.0}));
    EXPECT_EQ(nonnegative_solution({2, 2, gram}, moment, false), (std::vector<double>{1.0, 0.0}));
    const std::vector<double> sums{4.0, 8.0, 4.0, 8.0, 16.0, 8.0, 4.0, 8.0, 5.0};
    EXPECT_EQ(residual({3, 3, sums}, 1e-6), 1.0);
}

TEST(Algebra, EigenvaluesIncrease) {
    const std::vector<double> values{2.0, 1.0, 0.0, 1.0, 2.0, 0.0, 0.0, 0.0, -4.0};
    const Eigen found = eigen({3, 3, values});
    EXPECT_NEAR(found.values[0], -4.0, 1e-15);
    EXPECT_NEAR(found.values[1], 1.0, 1e-15);
    EXPECT_NEAR(found.values[2], 3.0, 1e-15);
    EXPECT_NEAR(found.vectors[2] * found.vectors[5], 0.5, 1e-15); // (1, 1, 0) / sqrt(2)
}
