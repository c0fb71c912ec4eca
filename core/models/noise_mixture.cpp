#include "models/noise_mixture.hpp"

namespace lepaute::models {

NoiseMixture centred(std::span<const NoiseMode> modes) {
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
