#include "fit/algebra.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

namespace lepaute::fit {

namespace {

/// Rows that are added up before their sum is added to the others'.
constexpr std::size_t block = 64;
/// What is left of a square of unit length when rounding is all that is left.
constexpr double least_pivot = 1e-13;
/// A gradient, or a coefficient, that is so small beside the terms that it is the sum of, is 0.
constexpr double nothing = 1e-10;
constexpr int most_sweeps = 60;

std::vector<double> lengths(const Matrix& gram) {
    std::vector<double> result(gram.rows);
    for (std::size_t i = 0; i < gram.rows; ++i) {
        result[i] = std::sqrt(std::max(gram(i, i), std::numeric_limits<double>::min()));
    }
    return result;
}

/// Gram of columns of unit length, and their products with the target.
struct Scaled {
    std::size_t size;
    std::vector<double> length, gram, moment;

    Scaled(const Matrix& from, std::span<const double> products)
        : size(from.rows), length(lengths(from)), gram(size * size), moment(size) {
        for (std::size_t i = 0; i < size; ++i) {
            for (std::size_t j = 0; j < size; ++j) {
                gram[i * size + j] = from(i, j) / length[i] / length[j];
            }
            moment[i] = products[i] / length[i];
        }
    }

    [[nodiscard]] double at(std::size_t i, std::size_t j) const { return gram[i * size + j]; }
};

/// Cholesky's factor of the columns before the last, and below it the last column in its terms. A column whose pivot is
/// not `enough(pivot, column)` is passed over.
struct Factor {
    std::size_t size; // the last column included
    std::vector<double> values = std::vector<double>(size * size, 0.0);
    std::vector<bool> known = std::vector<bool>(size, false);
    double left = 0.0; // of the last column's square

    template <class At, class Enough>
    Factor(std::size_t columns, const At& at, const Enough& enough) : size(columns) {
        for (std::size_t i = 0; i < size; ++i) {
            double pivot = at(i, i);
            for (std::size_t j = 0; j < i; ++j) {
                if (!known[j]) {
                    continue;
                }
                double sum = at(i, j);
                for (std::size_t k = 0; k < j; ++k) {
                    sum -= (*this)(i, k) * (*this)(j, k);
                }
                const double element = sum / (*this)(j, j);
                values[i * size + j] = element;
                pivot -= element * element;
            }
            if (i + 1 == size) {
                left = pivot;
            } else if (enough(pivot, i)) {
                known[i] = true;
                values[i * size + i] = std::sqrt(pivot);
            }
        }
    }

    [[nodiscard]] double operator()(std::size_t i, std::size_t j) const { return values[i * size + j]; }
};

/// The least squares coefficients of some of the columns, 0 for the others.
std::vector<double> solved(const Scaled& of, const std::vector<std::size_t>& chosen) {
    const std::size_t count = chosen.size();
    const auto at = [&](std::size_t i, std::size_t j) {
        return i < count ? of.at(chosen[i], chosen[j]) : j < count ? of.moment[chosen[j]] : 0.0;
    };
    const Factor factor(count + 1, at, [](double pivot, std::size_t) { return pivot > least_pivot; });
    std::vector<double> result(of.size, 0.0);
    for (std::size_t i = count; i-- > 0;) {
        if (!factor.known[i]) {
            continue;
        }
        double rest = factor(count, i);
        for (std::size_t j = i + 1; j < count; ++j) {
            rest -= factor(j, i) * result[chosen[j]];
        }
        result[chosen[i]] = rest / factor(i, i);
    }
    return result;
}

/// The sum of what `add(row, sum)` adds for each row.
template <class Add>
std::vector<double> sum_of_rows(std::size_t rows, std::size_t size, const Add& add) {
    std::vector<double> result(size, 0.0), part(size);
    for (std::size_t begin = 0; begin < rows; begin += block) {
        std::fill(part.begin(), part.end(), 0.0);
        for (std::size_t row = begin; row < std::min(begin + block, rows); ++row) {
            add(row, part);
        }
        std::transform(result.begin(), result.end(), part.begin(), result.begin(), std::plus<>());
    }
    return result;
}

std::vector<double> unscaled(std::vector<double> coefficients, const std::vector<double>& length) {
    for (std::size_t i = 0; i < coefficients.size(); ++i) {
        coefficients[i] /= length[i];
    }
    return coefficients;
}

/// Lawson and Hanson's search: columns enter by their gradient, and leave where a step would make them negative.
class ActiveSet {
public:
    ActiveSet(const Scaled& problem, bool last_free)
        : of_(problem), bounded_(problem.size, true), inside_(problem.size, false), refused_(problem.size, false),
          coefficients_(problem.size, 0.0) {
        if (last_free && of_.size > 0) {
            bounded_.back() = false;
            inside_.back() = true;
            step();
        }
    }

    std::vector<double> least() {
        // Each entry lowers the objective, so that no set comes twice; the limit is for what rounding might do.
        for (std::size_t left = 30 * (of_.size + 1); left > 0; --left) {
            const std::size_t next = steepest();
            if (next == of_.size) {
                break;
            }
            inside_[next] = true;
            step();
            if (coefficients_[next] == 0.0) {
                refused_[next] = true; // its gradient was rounding
            } else {
                std::fill(refused_.begin(), refused_.end(), false);
            }
        }
        return coefficients_;
    }

private:
    /// The column outside whose gradient is largest; their number where none is above rounding.
    [[nodiscard]] std::size_t steepest() const {
        std::size_t best = of_.size;
        double largest = 0.0;
        for (std::size_t i = 0; i < of_.size; ++i) {
            if (inside_[i] || refused_[i]) {
                continue;
            }
            double gradient = of_.moment[i], scale = std::abs(of_.moment[i]);
            for (std::size_t j = 0; j < of_.size; ++j) {
                const double term = of_.at(i, j) * coefficients_[j];
                gradient -= term;
                scale = std::max(scale, std::abs(term));
            }
            if (gradient > nothing * scale && gradient > largest) {
                largest = gradient;
                best = i;
            }
        }
        return best;
    }

    /// To the least squares coefficients of the columns inside, as far as none becomes negative.
    void step() {
        while (true) {
            std::vector<std::size_t> chosen;
            for (std::size_t i = 0; i < of_.size; ++i) {
                if (inside_[i]) {
                    chosen.push_back(i);
                }
            }
            const std::vector<double> target = solved(of_, chosen);
            double largest = 0.0;
            for (const double value : target) {
                largest = std::max(largest, std::abs(value));
            }
            std::vector<std::size_t> falling = chosen;
            std::erase_if(falling, [&](std::size_t i) { return !(bounded_[i] && target[i] <= nothing * largest); });
            if (falling.empty()) {
                coefficients_ = target;
                return;
            }
            double share = 1.0;
            for (const std::size_t i : falling) {
                const double way = coefficients_[i] - target[i];
                share = std::min(share, way > 0.0 ? coefficients_[i] / way : 0.0);
            }
            for (const std::size_t i : chosen) {
                coefficients_[i] += share * (target[i] - coefficients_[i]);
            }
            const auto stays = [&](std::size_t i) { return !(coefficients_[i] <= nothing * largest); };
            if (!std::ranges::all_of(falling, stays)) { // else rounding: the one that limits the step is not quite 0
                std::erase_if(falling, stays);
            }
            for (const std::size_t i : falling) {
                coefficients_[i] = 0.0;
                inside_[i] = false;
            }
        }
    }

    const Scaled& of_;
    std::vector<bool> bounded_, inside_, refused_;
    std::vector<double> coefficients_;
};

} // namespace

std::vector<double> product(const Matrix& a, const Matrix& b) {
    std::vector<double> result(a.rows * b.columns, 0.0);
    for (std::size_t i = 0; i < a.rows; ++i) {
        double* const row = result.data() + i * b.columns;
        for (std::size_t k = 0; k < a.columns; ++k) {
            const double factor = a(i, k);
            for (std::size_t j = 0; j < b.columns; ++j) {
                row[j] += factor * b(k, j);
            }
        }
    }
    return result;
}

std::vector<double> products(const Matrix& a, const Matrix& b) {
    return sum_of_rows(a.rows, a.columns * b.columns, [&](std::size_t row, std::vector<double>& sum) {
        for (std::size_t i = 0; i < a.columns; ++i) {
            const double factor = a(row, i);
            for (std::size_t j = 0; j < b.columns; ++j) {
                sum[i * b.columns + j] += factor * b(row, j);
            }
        }
    });
}

std::vector<double> weighted_products(const Matrix& x, std::span<const double> weight) {
    const std::size_t p = x.columns;
    std::vector<double> result = sum_of_rows(x.rows, p * p, [&](std::size_t row, std::vector<double>& sum) {
        for (std::size_t i = 0; i < p; ++i) {
            const double factor = weight[row] * x(row, i);
            for (std::size_t j = 0; j <= i; ++j) {
                sum[i * p + j] += factor * x(row, j);
            }
        }
    });
    for (std::size_t i = 0; i < p; ++i) {
        for (std::size_t j = 0; j < i; ++j) {
            result[j * p + i] = result[i * p + j];
        }
    }
    return result;
}

std::vector<double> solution(const Matrix& gram, std::span<const double> moment) {
    const Scaled scaled(gram, moment);
    std::vector<std::size_t> all(gram.rows);
    std::iota(all.begin(), all.end(), std::size_t{0});
    return unscaled(solved(scaled, all), scaled.length);
}

std::vector<double> nonnegative_solution(const Matrix& gram, std::span<const double> moment, bool last_free) {
    const Scaled scaled(gram, moment);
    return unscaled(ActiveSet(scaled, last_free).least(), scaled.length);
}

double residual(const Matrix& sums, double negligible) {
    const auto enough = [&](double pivot, std::size_t i) { return pivot > negligible * sums(i, i); };
    return std::max(Factor(sums.rows, sums, enough).left, 0.0);
}

Eigen eigen(const Matrix& symmetric) {
    const std::size_t p = symmetric.rows;
    std::vector<double> a(symmetric.values.begin(), symmetric.values.end()), v(p * p, 0.0);
    for (std::size_t i = 0; i < p; ++i) {
        v[i * p + i] = 1.0;
    }
    for (int sweep = 0; sweep < most_sweeps; ++sweep) {
        bool rotated = false;
        for (std::size_t i = 0; i < p; ++i) {
            for (std::size_t j = i + 1; j < p; ++j) {
                const double off = a[i * p + j];
                // Beside a product of diagonal elements, so that small eigenvalues are as exact as large ones.
                const double scale = std::sqrt(std::abs(a[i * p + i])) * std::sqrt(std::abs(a[j * p + j]));
                if (off == 0.0 || std::abs(off) <= std::numeric_limits<double>::epsilon() * scale) {
                    continue;
                }
                rotated = true;
                const double theta = (a[j * p + j] - a[i * p + i]) / (2.0 * off);
                const double root = std::abs(theta) > 1e100 ? std::abs(theta) : std::sqrt(theta * theta + 1.0);
                const double t = (theta >= 0.0 ? 1.0 : -1.0) / (std::abs(theta) + root);
                const double c = 1.0 / std::sqrt(t * t + 1.0), s = t * c;
                a[i * p + i] -= t * off;
                a[j * p + j] += t * off;
                a[i * p + j] = a[j * p + i] = 0.0;
                for (std::size_t k = 0; k < p; ++k) {
                    if (k != i && k != j) {
                        const double at_i = a[k * p + i], at_j = a[k * p + j];
                        a[k * p + i] = a[i * p + k] = c * at_i - s * at_j;
                        a[k * p + j] = a[j * p + k] = s * at_i + c * at_j;
                    }
                    const double of_i = v[k * p + i], of_j = v[k * p + j];
                    v[k * p + i] = c * of_i - s * of_j;
                    v[k * p + j] = s * of_i + c * of_j;
                }
            }
        }
        if (!rotated) {
            break;
        }
    }
    std::vector<std::size_t> order(p);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t i, std::size_t j) { return a[i * p + i] < a[j * p + j]; });
    Eigen result{std::vector<double>(p), std::vector<double>(p * p)};
    for (std::size_t at = 0; at < p; ++at) {
        result.values[at] = a[order[at] * p + order[at]];
        for (std::size_t k = 0; k < p; ++k) {
            result.vectors[k * p + at] = v[k * p + order[at]];
        }
    }
    return result;
}

} // namespace lepaute::fit
