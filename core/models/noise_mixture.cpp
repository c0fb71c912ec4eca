#include "models/noise_mixture.hpp"

#include <algorithm>

namespace lepaute::models {

namespace {

constexpr double most_mean = 20.0;
constexpr double most_sd = 3.0;
// Centred, a mean has moved by less than the range of means and half the largest variance.
constexpr double most_centred_mean = 2.0 * most_mean + 0.5 * most_sd * most_sd;

} // namespace

void NoiseMode::check() const {
    check_number("weight", weight, 1e-300, 1e300);
    check_number("mean", mean, -most_mean, most_mean);
    check_number("sd", sd, 0.0, most_sd);
}

void NoiseMixture::check() const {
    for (const rng::Mode& mode : modes) {
        check_number("modes: cumulative", mode.cumulative, 0.0, 1.0 + 1e-6);
        check_number("modes: mean", mode.mean, -most_centred_mean, most_centred_mean);
        check_number("modes: deviation", mode.deviation, 0.0, most_sd);
    }
}

NoiseMixture centred(std::span<const NoiseMode> modes) {
    std::ranges::for_each(modes, &NoiseMode::check);
    double weights = 0.0;
    double factors = 0.0;
    for (const NoiseMode& mode : modes) {
        weights += mode.weight;
        factors += mode.weight * rng::exponential(mode.mean + 0.5 * mode.sd * mode.sd);
    }
    NoiseMixture result;
    double cumulative = 0.0;
    for (const NoiseMode& mode : modes) {
        cumulative += mode.weight;
        result.modes.push_back({cumulative / weights, mode.mean - rng::natural_log(factors / weights), mode.sd});
    }
    return result;
}

} // namespace lepaute::models
