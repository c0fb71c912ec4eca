#include "models/kernel_model.hpp"

#include "rng/elementary.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace lepaute::models {

namespace {

constexpr std::array<std::string_view, kernel_count> names = {
    "dgemm",     "dgemm_nn",  "dtrsm",     "dtrsm_left", "dgemv",     "dger",      "dtrsv",       "dscal",
    "idamax",    "daxpy",     "dcopy",     "dlocswp",    "dlaswp00N", "dlaswp01T", "dlaswp02N",   "dlaswp03T",
    "dlaswp04T", "dlaswp05T", "dlaswp06T", "dlaswp10N",  "dlatcpy",   "dlacpy",    "pdfact_glue", "pdupdate_glue"};
constexpr std::array<std::string_view, term_count> terms = {"mnk", "mn", "mk", "nk", "nn", "m", "n", "k", "1"};

/// One standardised noise variate times sigma, mean zero; lognormal needs the mean as well.
double noise_of(const KernelPiece& piece, double mean, double sigma, const rng::Coordinates& at) noexcept {
    switch (piece.noise) {
    case Noise::none:
        return 0.0;
    case Noise::half_normal:
        return sigma * rng::centred_half_normal(at);
    case Noise::normal:
        return sigma * rng::normal(at);
    case Noise::lognormal: {
        if (mean <= 0.0) {
            return 0.0;
        }
        // Parameters of log X from the mean and standard deviation of X.
        const double variance = rng::natural_log(1.0 + (sigma / mean) * (sigma / mean));
        return mean * rng::exponential(std::sqrt(variance) * rng::normal(at) - 0.5 * variance) - mean;
    }
    }
    return 0.0;
}

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

void note_outside(KernelUse& use, const Size& size, double seconds) noexcept {
    use.extrapolated_time_s += seconds;
    use.outside_low = {std::min(use.outside_low.m, size.m), std::min(use.outside_low.n, size.n),
                       std::min(use.outside_low.k, size.k)};
    use.outside_high = {std::max(use.outside_high.m, size.m), std::max(use.outside_high.n, size.n),
                        std::max(use.outside_high.k, size.k)};
}

} // namespace

std::span<const std::string_view, kernel_count> kernel_names() noexcept { return names; }

std::span<const std::string_view, term_count> term_names() noexcept { return terms; }

double evaluate(const Coefficients& coefficients, const Size& size) noexcept {
    const auto& [m, n, k] = size;
    return coefficients[0] * m * n * k + coefficients[1] * m * n + coefficients[2] * m * k + coefficients[3] * n * k +
           coefficients[4] * n * n + coefficients[5] * m + coefficients[6] * n + coefficients[7] * k + coefficients[8];
}

bool Bounds::contains(const Size& size) const noexcept {
    return low.m <= size.m && size.m <= high.m && low.n <= size.n && size.n <= high.n && low.k <= size.k &&
           size.k <= high.k;
}

double KernelModel::draw(const Size& size, double factor, bool with_noise, const rng::Coordinates& at,
                         KernelUse& use) const {
    ++use.calls;
    for (const KernelPiece& piece : pieces_) {
        if (!piece.where.contains(size)) {
            continue;
        }
        double mean = evaluate(piece.mean, size);
        double sigma = with_noise && piece.noise != Noise::none ? evaluate(piece.deviation, size) : 0.0;
        if (mean < 0.0) {
            ++use.clipped_means;
            mean = 0.0;
        }
        if (sigma < 0.0) {
            ++use.clipped_deviations;
            sigma = 0.0;
        }
        double seconds = mean;
        if (sigma > 0.0) {
            seconds = std::max(0.0, mean + noise_of(piece, mean, sigma, at));
        }
        seconds *= factor;
        use.time_s += seconds;
        if (!piece.fitted.contains(size)) {
            note_outside(use, size, seconds);
        }
        return seconds;
    }
    ++use.unmodelled_calls;
    return 0.0;
}

KernelModel KernelModel::with_drawn_coefficients(rng::Coordinates at) const {
    KernelModel drawn = *this;
    at.index = 0;
    for (KernelPiece& piece : drawn.pieces_) {
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
    return drawn;
}

} // namespace lepaute::models
