#pragma once
// The duration of a compute kernel as a value: a polynomial mean, a noise whose standard deviation is a polynomial,
// both by pieces of the parameters (M-0 .. M-2, M', N-0 .. N-2, N' in the notation of Cornebize & Legrand).

#include "checks.hpp"
#include "models/extrapolation.hpp"
#include "models/words.hpp"
#include "rng/stream.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace lepaute::models {

/// Parameters of one call (docs/reference/platform_file.md: what m, n and k are of each kernel); unused ones are 0.
struct Size {
    double m = 0.0;
    double n = 0.0;
    double k = 0.0;

    template <class Visit>
    static void fields(Visit visit) {
        visit("m", &Size::m, 0.0, 1e300);
        visit("n", &Size::n, 0.0, 1e300);
        visit("k", &Size::k, 0.0, 1e300);
    }
};

/// Terms a polynomial may have, in this order: mnk, mn, mk, nk, nn, m, n, k, 1.
inline constexpr std::size_t term_count = 9;
using Coefficients = std::array<double, term_count>;
inline constexpr std::array<std::string_view, term_count> term_names{"mnk", "mn", "mk", "nk", "nn", "m", "n", "k", "1"};
[[nodiscard]] inline double evaluate(const Coefficients& c, const Size& size) noexcept {
    const auto& [m, n, k] = size;
    return c[0] * m * n * k + c[1] * m * n + c[2] * m * k + c[3] * n * k + c[4] * n * n + c[5] * m + c[6] * n +
           c[7] * k + c[8];
}

struct Bounds {
    Size low{0.0, 0.0, 0.0};
    Size high{1e300, 1e300, 1e300};
    [[nodiscard]] bool contains(const Size& size) const noexcept {
        return low.m <= size.m && size.m <= high.m && low.n <= size.n && size.n <= high.n && low.k <= size.k &&
               size.k <= high.k;
    }

    void check() const {
        if (!(low.m <= high.m && low.n <= high.n && low.k <= high.k)) {
            throw std::invalid_argument("low is above high, or no number; bounds are low <= high in m, n and k");
        }
    }
    template <class Visit>
    static void fields(Visit visit) {
        visit("low", &Bounds::low);
        visit("high", &Bounds::high);
    }
};

enum class Noise : std::uint8_t { none, half_normal, normal, lognormal, mixture };
constexpr auto words_of(Noise /*enum*/) noexcept {
    return words_in_order<Noise>("none", "half-normal", "normal", "lognormal", "mixture");
}

struct KernelPiece {
    Bounds where;                       // the piece holds inside
    Bounds fitted;                      // outside, the model extrapolates
    std::vector<Bounds> fitted_parts{}; // also outside of all of these, where there are any
    Coefficients mean{};                // seconds per unit of the term
    Coefficients deviation{};           // seconds per unit of the term
    Noise noise = Noise::none;
    std::vector<int> covariance_terms;    // indices of terms, in the order of the rows of covariance
    std::vector<double> covariance;       // row-major, symmetric, size covariance_terms.size() squared
    std::vector<rng::Mode> modes;         // of a mixture, whose mean is 0 and whose variance is 1
    double discrepancy_relative_sd = 0.0; // of the logarithm of a factor on all calls of the piece

    void check() const;
    template <class Visit>
    static void fields(Visit visit) {
        visit("where", &KernelPiece::where);
        visit("fitted", &KernelPiece::fitted);
        visit("fitted_parts", &KernelPiece::fitted_parts);
        visit("mean", &KernelPiece::mean);
        visit("deviation", &KernelPiece::deviation);
        visit("noise", &KernelPiece::noise);
        visit("covariance_terms", &KernelPiece::covariance_terms);
        visit("covariance", &KernelPiece::covariance);
        visit("modes", &KernelPiece::modes);
        visit("discrepancy_relative_sd", &KernelPiece::discrepancy_relative_sd, 0.0, most_relative_sd);
    }
};

/// Calls of like sizes: those whose m, n and k agree to half an octave each.
struct SizeCell {
    double time_s = 0.0;
    Size total{}; // of the sizes, each weighted by the time of its calls
    std::uint64_t key = 0;

    [[nodiscard]] Size mean() const noexcept { return {total.m / time_s, total.n / time_s, total.k / time_s}; }
};

/// The time of calls by their size. Nothing is counted before it is begun.
class TimeBySize {
public:
    void begin() { cells_.resize(most); }
    void note(const Size& size, double seconds) noexcept {
        if (!cells_.empty() && seconds > 0.0) [[unlikely]] {
            add(size, seconds);
        }
    }
    /// Those without time are not used.
    [[nodiscard]] std::span<const SizeCell> cells() const noexcept { return cells_; }

private:
    static constexpr std::size_t most = 1024;
    void add(const Size& size, double seconds) noexcept;

    std::vector<SizeCell> cells_;
};

/// What happened while durations were drawn, to be told with the prediction.
struct KernelUse {
    std::uint64_t calls = 0;
    std::uint64_t unmodelled_calls = 0;
    std::uint64_t clipped_means = 0;      // evaluated durations below zero, taken as zero
    std::uint64_t clipped_deviations = 0; // evaluated standard deviations below zero, taken as zero
    double time_s = 0.0;
    double extrapolated_time_s = 0.0;      // time of calls outside the fitted ranges
    Size outside_low{1e300, 1e300, 1e300}; // extreme sizes met outside the fitted ranges
    Size outside_high{0.0, 0.0, 0.0};
    TimeBySize by_size;
};

/// What calls of one kernel and size cost on one cpu: evaluated once, drawn from as often as it is called.
struct KernelCost {
    double mean_s = 0.0;
    double deviation_s = 0.0;
    double factor = 1.0;
    Noise noise = Noise::none;
    bool modelled = false;
    bool outside = false; // of the fitted ranges
    bool clipped_mean = false;
    bool clipped_deviation = false;
    std::span<const rng::Mode> modes{}; // those of the model's piece, which must outlive the cost

    /// Takes no time, whatever is drawn?
    [[nodiscard]] bool is_free() const noexcept { return mean_s == 0.0 && deviation_s <= 0.0; }
    /// Seconds of one call, >= 0: (mean + noise) * factor. The noise is draw `index` of the stream.
    [[nodiscard]] double draw(const rng::Stream& stream, std::uint64_t index) const noexcept {
        if (deviation_s <= 0.0) {
            return mean_s * factor;
        }
        const double seconds = noise == Noise::half_normal ? mean_s + deviation_s * stream.centred_half_normal(index)
                                                           : draw_other(stream, index);
        return seconds > 0.0 ? seconds * factor : 0.0;
    }

private:
    [[nodiscard]] double draw_other(const rng::Stream& stream, std::uint64_t index) const noexcept;
};

/// The pieces of one kernel on one cpu; the first piece that contains the size holds. No pieces: not modelled.
class KernelModel {
public:
    KernelModel() = default;
    explicit KernelModel(std::vector<KernelPiece> pieces) : pieces_(std::move(pieces)) {}

    [[nodiscard]] const std::vector<KernelPiece>& pieces() const noexcept { return pieces_; }

    /// How far `size` is outside of what its piece was fitted to. Between two boxes of fitted sizes it is inside,
    /// within 10 % of one, and in a parameter that the call does not have.
    [[nodiscard]] Distance distance(const Size& size) const noexcept;

    /// The cost of calls of `size`, their durations multiplied by `factor`.
    [[nodiscard]] KernelCost cost(const Size& size, double factor, bool with_noise) const noexcept;

    /// Draws the coefficients from their fitted covariance (a piece without one is kept).
    /// Throws std::invalid_argument when a covariance is not positive semi-definite.
    void draw_coefficients(rng::Coordinates at);

    /// Multiplies the durations of each piece by a factor drawn from its discrepancy: draw `at.index` + piece.
    void draw_discrepancies(rng::Coordinates at) noexcept;

    /// Of sizes outside of what it was fitted to.
    void set_error_outside(const ExtrapolationError& error) noexcept { error_outside_ = error; }

    template <class Visit>
    static void fields(Visit visit) {
        visit("pieces", &KernelModel::pieces_);
    }

private:
    [[nodiscard]] Distance distance(const KernelPiece& own, const Size& size) const noexcept;

    std::vector<KernelPiece> pieces_;
    ExtrapolationError error_outside_;
};

/// The factor on durations that an effect of `relative_sd` times the variate `drawn` stands for: log-normal where that
/// is standard normal, with mean 1; positive whatever is drawn.
[[nodiscard]] double factor_of(double relative_sd, double drawn) noexcept;

/// Adds `calls` calls of `size` that took `seconds` in all.
void note(KernelUse& use, const KernelCost& cost, const Size& size, std::uint64_t calls, double seconds) noexcept;

} // namespace lepaute::models
