#pragma once
// How wrong the model of a kernel is at sizes that it was not fitted to.

#include "rng/stream.hpp"

#include <array>
#include <cstddef>
#include <string_view>

namespace lepaute::models {

/// How far a call is outside of what its model was fitted to, by parameter (m, n, k): ln(size / nearest fitted size),
/// below 0 under the fitted sizes, above 0 over them, 0 where they surround it.
struct Distance {
    std::array<double, 3> log{};
    std::array<bool, 3> varied{}; // whether the fitted sizes differ enough in it to tell how durations depend on it
    [[nodiscard]] bool outside() const noexcept { return log[0] != 0.0 || log[1] != 0.0 || log[2] != 0.0; }
};

/// The error of a kernel's model outside: that of the exponent of each parameter, so that its standard deviation is in
/// proportion to the distance. Drawn once, for sizes below and above apart, it is common to all calls and cpus.
/// The constants come from kernels whose calls at some block sizes or matrix sizes were predicted from the others
/// (validation/extrapolation_law.py); no run of HPL is among them.
class ExtrapolationError {
public:
    ExtrapolationError() = default;
    ExtrapolationError(std::string_view kernel, rng::Coordinates at) noexcept;

    /// What a call takes longer by than its model says; log-normal with mean 1, and 1 inside. 1 unless drawn.
    [[nodiscard]] double factor(const Distance& distance) const noexcept;

private:
    std::array<std::array<double, 3>, 2> normals_{}; // below, above; by parameter
    bool matrix_product_ = false;
    bool drawn_ = false;
};

/// Relative standard deviation of the model of a kernel per unit of distance in one parameter.
[[nodiscard]] double extrapolation_slope(bool matrix_product, bool varied, bool above) noexcept;

} // namespace lepaute::models
