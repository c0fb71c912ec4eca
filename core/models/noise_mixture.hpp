#pragma once
// Noise of several modes: the logarithm of a duration over its mean is a mixture of normal distributions.

#include "checks.hpp"
#include "rng/elementary.hpp"
#include "rng/stream.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace lepaute::models {

/// One of them; `mean` and `sd` are of the logarithm of the factor on a duration.
struct NoiseMode {
    double weight = 1.0;
    double mean = 0.0;
    double sd = 0.0;

    void check() const;
};

/// No modes: no noise.
struct NoiseMixture {
    std::vector<rng::Mode> modes;

    /// Draw `index` of the stream as a factor > 0. The mixture is one of logarithms rather than of factors, so that no
    /// factor is below zero and the mean needs no correction for it.
    [[nodiscard]] double factor(const rng::Stream& stream, std::uint64_t index) const noexcept {
        return rng::exponential(stream.mixture(index, modes));
    }

    void check() const;
    template <class Visit>
    static void fields(Visit visit) {
        visit("modes", &NoiseMixture::modes);
    }
};

/// The mixture with weights that add up to 1, and all means shifted alike so that the mean of the factor,
/// sum of weight * exp(mean + sd^2 / 2), is 1. Throws std::invalid_argument for modes that are none: weights are > 0,
/// |mean| and sd at most 20 and 3.
[[nodiscard]] NoiseMixture centred(std::span<const NoiseMode> modes);

} // namespace lepaute::models
