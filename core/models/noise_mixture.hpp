#pragma once
// Noise of several modes: the logarithm of a duration over its mean is a mixture of normal distributions.

#include "rng/elementary.hpp"
#include "rng/stream.hpp"

#include <cstdint>
#include <vector>

namespace lepaute::models {

/// One of them; `mean` and `sd` are of the logarithm of the factor on a duration.
struct NoiseMode {
    double weight = 1.0;
    double mean = 0.0;
    double sd = 0.0;
};

/// No modes: no noise.
struct NoiseMixture {
    std::vector<NoiseMode> modes;

    /// A factor > 0: draw `index` of `choices` picks the mode, draw `index` of `values` the value in it. Logarithms
    /// rather than the factors themselves, so that none is below zero and the mean needs no correction for it.
    [[nodiscard]] double factor(const rng::Stream& choices, const rng::Stream& values,
                                std::uint64_t index) const noexcept {
        double left = choices.uniform(index);
        std::size_t chosen = 0;
        while (chosen + 1 < modes.size() && left >= modes[chosen].weight) {
            left -= modes[chosen].weight;
            ++chosen;
        }
        const NoiseMode& mode = modes[chosen];
        return rng::exponential(mode.mean + mode.sd * values.normal(index));
    }
};

/// The same with weights that add up to 1, and all means shifted alike so that the mean of the factor,
/// sum of weight * exp(mean + sd^2 / 2), is 1. Weights are > 0, |mean| and sd at most 20 and 3.
[[nodiscard]] NoiseMixture centred(std::vector<NoiseMode> modes) noexcept;

} // namespace lepaute::models
