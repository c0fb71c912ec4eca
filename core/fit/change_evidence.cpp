#include "fit/change_evidence.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace lepaute::fit {

namespace {

constexpr std::size_t regressors = 3;
/// Student's t with more degrees of freedom is not asked for.
constexpr std::int64_t most_tail = 4;
/// The level of a stream of which nothing is known.
constexpr double vague = 1e-12;

using Row = std::array<double, regressors>;

/// The symmetric covariance of what is expected.
struct Covariance {
    double aa, ab, ac, bb, bc, cc;

    [[nodiscard]] Row times(const Row& v) const {
        return {aa * v[0] + ab * v[1] + ac * v[2], ab * v[0] + bb * v[1] + bc * v[2],
                ac * v[0] + bc * v[1] + cc * v[2]};
    }
};

double product(const Row& one, const Row& other) { return one[0] * other[0] + one[1] * other[1] + one[2] * other[2]; }

Row row(std::span<const double> table, std::size_t stream) {
    const auto* const at = table.data() + regressors * stream;
    return {at[0], at[1], at[2]};
}

/// The scale; as long as it rests on next to nothing, that of the common effect, which holds responses at 1.
double noise(const Regressions& of, std::size_t stream) {
    const double* const square = of.squares.data() + regressors * regressors * stream;
    double found = of.scale[stream];
    if (!(of.scale_count[stream] >= of.fewest)) {
        found = std::max(found, std::sqrt(square[4] + square[8]));
    }
    return found > 0 ? found : 1.0;
}

/// In the variance of an innovation. What is known of the responses before any value counts as their spread says.
Covariance covariance(const Regressions& of, std::size_t stream, double unit) {
    const double* const square = of.squares.data() + regressors * regressors * stream;
    const double* const spread = of.spread.data() + 2 * stream;
    // in units of the noise, so that no product of the cofactors loses the digits of another
    const double unit2 = unit * unit;
    const double a = square[0] + vague;
    const double b = square[1] / unit;
    const double c = square[2] / unit;
    const double d = square[4] / unit2 + 1 / (spread[0] * spread[0]);
    const double e = square[5] / unit2;
    const double f = square[8] / unit2 + 1 / (spread[1] * spread[1]);
    const double aa = d * f - e * e;
    const double ab = c * e - b * f;
    const double ac = b * e - c * d;
    const double scale = 1 / (a * aa + b * ab + c * ac);
    const double off = scale / unit;
    const double below = scale / unit2;
    return {aa * scale, ab * off, ac * off, (a * f - c * c) * below, (b * c - a * e) * below, (a * d - b * b) * below};
}

/// x to the power of half of so many.
double half_power(double x, std::int64_t twice) {
    switch (twice) {
    case 2:
        return x;
    case 3:
        return x * std::sqrt(x);
    case 4:
        return x * x;
    default:
        return x * x * std::sqrt(x);
    }
}

} // namespace

std::vector<double> likelihood_ratios(std::span<const double> z, std::span<const double> reduced,
                                      std::span<const std::int64_t> degrees, std::span<const Alternative> alternatives,
                                      std::span<const double> inverse_means, double heavy) {
    const std::size_t columns = alternatives.size();
    const std::size_t most = inverse_means.size() / columns;
    std::vector<double> ratios(z.size() * columns, 1.0);
    for (std::size_t i = 0; i < z.size(); ++i) {
        if (std::isnan(z[i])) {
            continue;
        }
        const std::int64_t twice = std::min(degrees[i], most_tail) + 1;
        const auto tail = static_cast<double>(twice - 1);
        const double* const inverse_mean =
            inverse_means.data() + columns * (std::min(static_cast<std::size_t>(degrees[i]), most) - 1);
        for (std::size_t j = 0; j < columns; ++j) {
            const Alternative& each = alternatives[j];
            const double from = each.sign * z[i] - each.reduced * reduced[i];
            const double usual = heavy * from;
            const double changed = heavy * (from - each.shift) / each.width;
            const double ratio = (tail + usual * usual) / (tail + changed * changed);
            ratios[i * columns + j] = half_power(ratio, twice) / each.width * inverse_mean[j];
        }
    }
    return ratios;
}

Innovations innovations(const Regressions& of, std::span<const double> value, std::span<const bool> known,
                        std::span<const double> rho, std::span<const double> last_value, std::span<const double> shared,
                        std::span<const double> last_common) {
    const std::size_t streams = value.size();
    Innovations found{std::vector<double>(streams), std::vector<double>(streams * regressors),
                      std::vector<double>(streams), std::vector<double>(streams, 0.0)};
    for (std::size_t i = 0; i < streams; ++i) {
        // a first value has none before it, and the variance of the stationary process
        const double off = known[i] ? rho[i] : 0.0;
        const double weight = known[i] ? 1.0 : std::sqrt(1 - rho[i] * rho[i]);
        const Row x = {weight * (1 - off), weight * (shared[2 * i] - off * last_common[2 * i]),
                       weight * (shared[2 * i + 1] - off * last_common[2 * i + 1])};
        std::copy(x.begin(), x.end(), found.x.data() + regressors * i);
        found.y[i] = weight * (value[i] - off * last_value[i]);
        found.error[i] = 1 + product(covariance(of, i, noise(of, i)).times(x), x);
        if (known[i]) {
            found.innovation[i] = found.y[i] - product(x, row(of.expected, i));
        }
    }
    return found;
}

std::vector<double> learn(const Regressions& of, std::span<const bool> learns, std::span<const double> y,
                          std::span<const double> x, double memory) {
    const double keep = 1 - 1 / memory;
    std::vector<double> variances(2 * y.size());
    for (std::size_t i = 0; i < y.size(); ++i) {
        double* const square = of.squares.data() + regressors * regressors * i;
        double* const cross = of.cross.data() + regressors * i;
        if (learns[i]) {
            const Row with = row(x, i);
            for (std::size_t j = 0; j < regressors; ++j) {
                for (std::size_t k = 0; k < regressors; ++k) {
                    square[regressors * j + k] = keep * square[regressors * j + k] + with[j] * with[k];
                }
                cross[j] = keep * cross[j] + with[j] * y[i];
            }
        }
        const double unit = noise(of, i);
        const Covariance left = covariance(of, i, unit);
        variances[2 * i] = left.bb * (unit * unit);
        variances[2 * i + 1] = left.cc * (unit * unit);
        if (learns[i]) {
            const double* const spread = of.spread.data() + 2 * i;
            const double first = unit / spread[0];
            const double second = unit / spread[1];
            const Row expected = left.times({cross[0], cross[1] + first * first, cross[2] + second * second});
            std::copy(expected.begin(), expected.end(), of.expected.data() + regressors * i);
        }
    }
    return variances;
}

} // namespace lepaute::fit
