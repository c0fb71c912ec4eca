#include "models/noise_mixture.hpp"

#include <utility>

namespace lepaute::models {

NoiseMixture centred(std::vector<NoiseMode> modes) noexcept {
    double weights = 0.0;
    for (const NoiseMode& mode : modes) {
        weights += mode.weight;
    }
    double mean = 0.0;
    for (NoiseMode& mode : modes) {
        mode.weight /= weights;
        mean += mode.weight * rng::exponential(mode.mean + 0.5 * mode.sd * mode.sd);
    }
    for (NoiseMode& mode : modes) {
        mode.mean -= rng::natural_log(mean);
    }
    return {std::move(modes)};
}

} // namespace lepaute::models
