#pragma once
// Algebra of the small matrices that fits have, in a fixed order of operations: the same bits on every processor. BLAS
// and LAPACK round as the processor's kernels do, and where two models are equal the last digit would choose. Matrices
// are stored row by row. Columns of products are scaled to unit length before anything is decided by size.

#include <cstddef>
#include <span>
#include <vector>

namespace lepaute::fit {

/// A shape and its values, row by row.
struct Matrix {
    std::size_t rows = 0;
    std::size_t columns = 0;
    std::span<const double> values;

    [[nodiscard]] double operator()(std::size_t row, std::size_t column) const {
        return values[row * columns + column];
    }
};

/// a b, shape (a.rows, b.columns), for a.columns = b.rows.
std::vector<double> product(const Matrix& a, const Matrix& b);

/// a' b, shape (a.columns, b.columns), for a.rows = b.rows; sums of many rows lose no digits to their number.
std::vector<double> products(const Matrix& a, const Matrix& b);

/// x' diag(weight) x, shape (p, p), symmetric in every bit.
std::vector<double> weighted_products(const Matrix& x, std::span<const double> weight);

/// b with gram b = moment for a symmetric, positive semi-definite gram. A column that those before it explain up to
/// rounding has the coefficient 0.
std::vector<double> solution(const Matrix& gram, std::span<const double> moment);

/// b >= 0 that minimises b' gram b - 2 b' moment; with `last_free` the last coefficient may have any sign. A
/// coefficient that is 0 up to rounding is 0. Source: Lawson and Hanson (1974), Solving Least Squares Problems, chapter
/// 23; on products: Bro and De Jong (1997), Journal of Chemometrics 11, 393-401.
std::vector<double> nonnegative_solution(const Matrix& gram, std::span<const double> moment, bool last_free);

/// What least squares leave of the last column's square, from the products of all columns: shape (p + 1, p + 1). A
/// column of which those before it leave no more than the share `negligible` explains nothing.
double residual(const Matrix& sums, double negligible);

struct Eigen {
    std::vector<double> values;  // increasing
    std::vector<double> vectors; // shape (p, p): columns, in the order of the values
};

/// Of a symmetric matrix, by Jacobi's rotations.
Eigen eigen(const Matrix& symmetric);

} // namespace lepaute::fit
