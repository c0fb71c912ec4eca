#include "models/kernel_model.hpp"

#include "rng/elementary.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>

namespace lepaute::models {

namespace {

/// Lower-triangular L with L L' = matrix (row-major, n x n); columns of zero pivots are zero (semi-definite).
std::vector<double> cholesky(const std::vector<double>& matrix, std::size_t n) {
    std::vector<double> lower(n * n, 0.0);
    for (std::size_t j = 0; j < n; ++j) {
        double pivot = matrix[j * n + j];
        const double tolerance = 1e-9 * std::fabs(pivot);
        for (std::size_t k = 0; k < j; ++k) {
            pivot -= lower[j * n + k] * lower[j * n + k];
        }
        if (pivot < -tolerance) {
            throw std::invalid_argument("a covariance of coefficients is not positive semi-definite");
        }
        const double diagonal = pivot > tolerance ? std::sqrt(pivot) : 0.0;
        lower[j * n + j] = diagonal;
        for (std::size_t i = j + 1; i < n && diagonal > 0.0; ++i) {
            double value = matrix[i * n + j];
            for (std::size_t k = 0; k < j; ++k) {
                value -= lower[i * n + k] * lower[j * n + k];
            }
            lower[i * n + j] = value / diagonal;
        }
    }
    return lower;
}

constexpr std::array letters = {&Size::m, &Size::n, &Size::k};
// Sizes that are this many times as large tell the exponent of a parameter.
constexpr double telling_ratio = 2.0;
constexpr double unbounded = 1e300;
// A size 10 % beyond the fitted ones is as good as fitted: the largest of a random design are where chance put them.
constexpr double slack = 1.1;
constexpr double least_distance = 0.0953; // its logarithm

/// The boxes that a piece was fitted in.
std::span<const Bounds> boxes_of(const KernelPiece& piece) noexcept {
    return piece.fitted_parts.empty() ? std::span(&piece.fitted, 1) : std::span(piece.fitted_parts);
}

bool within(double low, double size, double high) noexcept {
    return size <= 0.0 || (low <= slack * size && size <= slack * high);
}

bool holds(const Bounds& box, const Size& size) noexcept {
    return std::ranges::all_of(letters,
                               [&](auto letter) { return within(box.low.*letter, size.*letter, box.high.*letter); });
}

/// Is the size between the two boxes, in every parameter: inside of both, or in the gap from one to the other?
bool between(const Bounds& one, const Bounds& other, const Size& size) noexcept {
    return std::ranges::all_of(letters, [&](auto letter) {
        const double low = one.low.*letter;
        const double high = one.high.*letter;
        return (within(low, size.*letter, high) && within(other.low.*letter, size.*letter, other.high.*letter)) ||
               within(high, size.*letter, other.low.*letter) || within(other.high.*letter, size.*letter, low);
    });
}

/// Does `other` say where it was fitted in all parameters in which `one` does?
bool as_bounded(const Bounds& one, const Bounds& other) noexcept {
    return std::ranges::all_of(
        letters, [&](auto letter) { return one.high.*letter >= unbounded || other.high.*letter < unbounded; });
}

Size clamped(Size size, const Bounds& bounds) noexcept {
    for (auto letter : letters) {
        if (size.*letter > 0.0) {
            size.*letter = std::clamp(size.*letter, bounds.low.*letter, bounds.high.*letter);
        }
    }
    return size;
}

/// By parameter: ln(size / nearest).
std::array<double, 3> logarithms(const Size& size, const Size& nearest) noexcept {
    std::array<double, 3> result{};
    for (std::size_t i = 0; i < letters.size(); ++i) {
        const auto letter = letters.at(i);
        if (size.*letter != nearest.*letter) {
            const double log = rng::natural_log(std::max(size.*letter, 1.0) / std::max(nearest.*letter, 1.0));
            result.at(i) = std::fabs(log) > least_distance ? log : 0.0;
        }
    }
    return result;
}

} // namespace

double KernelCost::draw_other(const rng::Stream& stream, std::uint64_t index) const noexcept {
    switch (noise) {
    case Noise::none:
    case Noise::half_normal: // draw() itself
        break;
    case Noise::normal:
        return mean_s + deviation_s * stream.normal(index);
    case Noise::lognormal: {
        if (mean_s <= 0.0) {
            return mean_s;
        }
        // Parameters of log X from the mean and standard deviation of X.
        const double ratio = deviation_s / mean_s;
        const double variance = rng::natural_log(1.0 + ratio * ratio);
        return mean_s * rng::exponential(std::sqrt(variance) * stream.normal(index) - 0.5 * variance);
    }
    case Noise::mixture:
        return mean_s + deviation_s * stream.mixture(index, modes);
    }
    return mean_s;
}

void KernelPiece::check() const {
    for (std::size_t term = 0; term < term_count; ++term) {
        const auto check_term = [&](const std::string& name, double value) {
            check_number(name + "[" + std::string(term_names.at(term)) + "]", value, -most_coefficient,
                         most_coefficient);
        };
        check_term("mean", mean.at(term));
        check_term("deviation", deviation.at(term));
    }
    for (const int term : covariance_terms) {
        check_number("covariance_terms", term, 0, static_cast<int>(term_count) - 1);
    }
    if (covariance.size() != covariance_terms.size() * covariance_terms.size()) {
        refuse("covariance", "of " + text_of(covariance.size()) + " numbers",
               "it has a row and a column for each of its " + text_of(covariance_terms.size()) + " terms");
    }
    for (const double value : covariance) {
        check_number("covariance", value, -most_coefficient * most_coefficient, most_coefficient * most_coefficient);
    }
    for (const rng::Mode& mode : modes) {
        check_number("modes: cumulative", mode.cumulative, 0.0, 1.0 + 1e-6);
        check_number("modes: mean", mode.mean, -most_relative_sd, most_relative_sd);
        check_relative_sd("modes: deviation", mode.deviation);
    }
}

Distance KernelModel::distance(const Size& size) const noexcept {
    const auto own =
        std::ranges::find_if(pieces_, [&](const KernelPiece& piece) { return piece.where.contains(size); });
    return own == pieces_.end() ? Distance{} : distance(*own, size);
}

Distance KernelModel::distance(const KernelPiece& own, const Size& size) const noexcept {
    Distance result;
    const std::span<const Bounds> fitted = boxes_of(own);
    if (std::ranges::any_of(fitted, [&](const Bounds& box) { return holds(box, size); })) {
        return result;
    }
    for (std::size_t i = 0; i < letters.size(); ++i) {
        const auto letter = letters.at(i);
        result.varied.at(i) = own.fitted.high.*letter >= telling_ratio * std::max(own.fitted.low.*letter, 1.0);
    }
    // Beyond what any piece was fitted to in one parameter, a call may still be between two boxes in the others.
    Bounds all = own.fitted;
    for (const KernelPiece& piece : pieces_) {
        for (auto letter : letters) {
            if (as_bounded(own.fitted, piece.fitted)) {
                all.low.*letter = std::min(all.low.*letter, piece.fitted.low.*letter);
                all.high.*letter = std::max(all.high.*letter, piece.fitted.high.*letter);
            }
        }
    }
    const Size met = clamped(size, all);
    for (const KernelPiece& piece : pieces_) {
        if (!as_bounded(own.fitted, piece.fitted)) {
            continue;
        }
        for (const Bounds& other : boxes_of(piece)) {
            if (std::ranges::any_of(fitted, [&](const Bounds& box) { return between(box, other, met); })) {
                result.log = logarithms(size, met);
                return result;
            }
        }
    }
    double least = unbounded;
    for (const Bounds& box : fitted) {
        const auto log = logarithms(size, clamped(size, box));
        const double square = log[0] * log[0] + log[1] * log[1] + log[2] * log[2];
        if (square < least) {
            least = square;
            result.log = log;
        }
    }
    return result;
}

KernelCost KernelModel::cost(const Size& size, double factor, bool with_noise) const noexcept {
    KernelCost result;
    result.factor = factor;
    for (const KernelPiece& piece : pieces_) {
        if (!piece.where.contains(size)) {
            continue;
        }
        result.modelled = true;
        result.noise = piece.noise;
        result.modes = piece.modes;
        if (!piece.fitted_parts.empty() || !piece.fitted.contains(size)) {
            const Distance far = distance(piece, size);
            result.outside = far.outside();
            result.factor *= error_outside_.factor(far);
        }
        result.mean_s = evaluate(piece.mean, size);
        result.deviation_s = with_noise && piece.noise != Noise::none ? evaluate(piece.deviation, size) : 0.0;
        result.clipped_mean = result.mean_s < 0.0;
        result.clipped_deviation = result.deviation_s < 0.0;
        result.mean_s = std::max(result.mean_s, 0.0);
        result.deviation_s = std::max(result.deviation_s, 0.0);
        return result;
    }
    return result;
}

double factor_of(double relative_sd, double drawn) noexcept {
    // A Student variate of few degrees of freedom may be in the thousands: no effect is beyond a factor of exp(3) = 20.
    constexpr double most_log = 3.0;
    const double sd = std::min(relative_sd, most_log);
    return rng::exponential(std::clamp(sd * (drawn - 0.5 * sd), -most_log, most_log));
}

void TimeBySize::add(const Size& size, double seconds) noexcept {
    // The exponent and the first bit of the mantissa; the sign is always the same.
    const auto class_of = [](double value) { return std::bit_cast<std::uint64_t>(value) >> 51U; };
    const std::uint64_t key = (class_of(size.m) << 26U | class_of(size.n) << 13U | class_of(size.k)) + 1;
    std::size_t place = (key * 0x9E3779B97F4A7C15U) >> 54U;
    for (std::size_t tried = 0; tried < most && cells_[place].key != key && cells_[place].key != 0; ++tried) {
        place = (place + 1) % most;
    }
    SizeCell& cell = cells_[place]; // of another size where all are taken
    cell.key = key;
    cell.time_s += seconds;
    cell.total.m += seconds * size.m;
    cell.total.n += seconds * size.n;
    cell.total.k += seconds * size.k;
}

void note(KernelUse& use, const KernelCost& cost, const Size& size, std::uint64_t calls, double seconds) noexcept {
    use.calls += calls;
    use.time_s += seconds;
    if (!cost.modelled) {
        use.unmodelled_calls += calls;
        return;
    }
    use.by_size.note(size, seconds);
    use.clipped_means += cost.clipped_mean ? calls : 0;
    use.clipped_deviations += cost.clipped_deviation ? calls : 0;
    if (cost.outside) {
        use.extrapolated_time_s += seconds;
        use.outside_low = {std::min(use.outside_low.m, size.m), std::min(use.outside_low.n, size.n),
                           std::min(use.outside_low.k, size.k)};
        use.outside_high = {std::max(use.outside_high.m, size.m), std::max(use.outside_high.n, size.n),
                            std::max(use.outside_high.k, size.k)};
    }
}

void KernelModel::draw_coefficients(rng::Coordinates at) {
    for (KernelPiece& piece : pieces_) {
        const std::size_t n = piece.covariance_terms.size();
        if (n == 0) {
            continue;
        }
        const std::vector<double> lower = cholesky(piece.covariance, n);
        std::vector<double> z(n);
        for (double& value : z) {
            value = rng::normal(at);
            ++at.index;
        }
        for (std::size_t i = 0; i < n; ++i) {
            double shift = 0.0;
            for (std::size_t j = 0; j <= i; ++j) {
                shift += lower[i * n + j] * z[j];
            }
            piece.mean[static_cast<std::size_t>(piece.covariance_terms[i])] += shift;
        }
    }
}

void KernelModel::draw_discrepancies(rng::Coordinates at) noexcept {
    for (KernelPiece& piece : pieces_) {
        if (piece.discrepancy_relative_sd > 0.0) {
            const double factor = factor_of(piece.discrepancy_relative_sd, rng::normal(at));
            for (std::size_t term = 0; term < term_count; ++term) {
                piece.mean.at(term) *= factor;
                piece.deviation.at(term) *= factor;
            }
        }
        ++at.index;
    }
}

} // namespace lepaute::models
