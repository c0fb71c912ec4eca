#pragma once
// A day of the evidence that levels of streams changed (lepaute/stats/change_evidence.py has the method): what each
// value of a stream differs by from its prediction, the likelihood ratios of that, and what the stream learns of it.
// Sums, products, quotients and square roots only: the same bits on every processor. Tables are stored row by row, a
// row for each stream.

#include <cstdint>
#include <span>
#include <vector>

namespace lepaute::fit {

/// What an innovation is compared with: a level of so many standard deviations more, a scatter so many times as wide.
struct Alternative {
    double sign;    ///< of the innovation: 1 or -1
    double reduced; ///< how much of what is no change is taken off the innovation: 1 or 0
    double shift;
    double width;
};

/// The density of Student's t at (heavy z - shift) / width over that at heavy z, over its mean, shape
/// (z.size(), alternatives.size()); 1 where z is NaN.
///
/// degrees   : of freedom of the scale of each; tail, 4 at most: of the densities
/// inverse_means : of the ratios, shape (most, alternatives.size()), a row for each number of degrees of freedom from 1
std::vector<double> likelihood_ratios(std::span<const double> z, std::span<const double> reduced,
                                      std::span<const std::int64_t> degrees, std::span<const Alternative> alternatives,
                                      std::span<const double> inverse_means, double heavy);

/// The regression of each stream on its level and on both parts of the common effect, shape (streams,) each, or
/// (streams, 9) squares, (streams, 3) cross and expected, (streams, 2) spread.
struct Regressions {
    std::span<double> squares;
    std::span<double> cross;
    std::span<double> expected;
    std::span<const double> spread;
    std::span<const double> scale;
    std::span<const double> scale_count;
    double fewest; ///< fewer squares of innovations say nothing of the scale
};

/// Values of a day without what the value before says of them, and what they are regressed on.
struct Innovations {
    std::vector<double> y;          ///< shape (streams,)
    std::vector<double> x;          ///< shape (streams, 3)
    std::vector<double> error;      ///< of the prediction, in variances of an innovation and with that itself
    std::vector<double> innovation; ///< 0 where there is none
};

/// value : less the origin, 0 where there is none; known : whether there is one, and one before it
/// shared, last_common : common effects of today and of the latest value, shape (streams, 2)
Innovations innovations(const Regressions& of, std::span<const double> value, std::span<const bool> known,
                        std::span<const double> rho, std::span<const double> last_value, std::span<const double> shared,
                        std::span<const double> last_common);

/// Takes in the values y of the streams that learn, with a memory of so many, and gives the posterior variance of both
/// responses, shape (streams, 2).
std::vector<double> learn(const Regressions& of, std::span<const bool> learns, std::span<const double> y,
                          std::span<const double> x, double memory);

} // namespace lepaute::fit
