#include "models/extrapolation.hpp"

#include "rng/elementary.hpp"

#include <algorithm>

namespace lepaute::models {

namespace {

// Nothing is known of a kernel beyond a factor of e, in one parameter.
constexpr double largest_sd = 1.0;
constexpr double largest_log = 3.0;

} // namespace

double extrapolation_slope(bool matrix_product, bool varied, bool above) noexcept {
    const double others = above ? 0.31 : 0.34;
    return !matrix_product ? others : (varied ? 0.11 : (above ? 0.22 : 0.33));
}

ExtrapolationError::ExtrapolationError(std::string_view kernel, rng::Coordinates at) noexcept
    : matrix_product_(kernel.starts_with("dgemm") || kernel.starts_with("dtrsm")), drawn_(true) {
    for (auto& side : normals_) {
        for (double& normal : side) {
            normal = rng::normal(at);
            ++at.index;
        }
    }
}

double ExtrapolationError::factor(const Distance& distance) const noexcept {
    if (!drawn_ || !distance.outside()) {
        return 1.0;
    }
    double log = 0.0;
    for (std::size_t letter = 0; letter < distance.log.size(); ++letter) {
        const double far = distance.log.at(letter);
        const bool above = far > 0.0;
        const double slope = extrapolation_slope(matrix_product_, distance.varied.at(letter), above);
        const double sd = std::min(slope * (above ? far : -far), largest_sd);
        log += sd * (normals_.at(above ? 1 : 0).at(letter) - 0.5 * sd);
    }
    return rng::exponential(std::clamp(log, -largest_log, largest_log));
}

} // namespace lepaute::models
