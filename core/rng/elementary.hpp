#pragma once
// Logarithm, exponential and normal quantile of our own: those of the C library differ in the last bit between
// processors (it picks variants with fused multiply-add at run time), and a prediction repeats bit for bit.

namespace lepaute::rng {

/// Natural logarithm of a positive, finite, normal x; absolute error below 1e-15 (relative to max(1, |log x|)).
[[nodiscard]] double natural_log(double x) noexcept;

/// exp(x) for |x| <= 700; relative error below 1e-15.
[[nodiscard]] double exponential(double x) noexcept;

/// Quantile of the standard normal distribution at p in (0, 1); relative error about 1e-15.
/// Source: Wichura, "Algorithm AS 241: the percentage points of the normal distribution", Applied Statistics 37, 1988.
[[nodiscard]] double normal_quantile(double p) noexcept;

} // namespace lepaute::rng
