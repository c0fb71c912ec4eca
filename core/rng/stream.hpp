#pragma once
// Draws by the hundred million: the noise of kernel calls. A stream is a key; its draws are pure functions of
// (key, index), as those of philox.hpp are, but cost about two nanoseconds.

#include "rng/philox.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace lepaute::rng {

/// A normal mode of a mixture; `cumulative`: its weight and those of the modes before it, 1 for the last one.
struct Mode {
    double cumulative = 1.0;
    double mean = 0.0;
    double deviation = 1.0;
};

class Stream {
public:
    /// Bounds of what is drawn: no normal variate is so far from 0 (the tail is drawn from 53 bits), no centred
    /// half-normal one less.
    static constexpr double most_deviations = 16.0;
    static constexpr double least_centred_half_normal = -1.33;

    Stream() = default;
    /// The stream of `at`; at.index is ignored.
    explicit Stream(const Coordinates& at) noexcept;

    /// 64 random bits: SplitMix64 (Steele, Lea & Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014)
    /// at position `index` of the sequence that starts at the key.
    [[nodiscard]] std::uint64_t bits(std::uint64_t index) const noexcept {
        return mix(key_ + (index + 1) * 0x9E3779B97F4A7C15U);
    }
    /// |Z| of a standard normal Z.
    [[nodiscard]] double half_normal(std::uint64_t index) const noexcept { return ziggurat(bits(index)); }
    /// A standard normal variate.
    [[nodiscard]] double normal(std::uint64_t index) const noexcept {
        const std::uint64_t random = bits(index);
        const double magnitude = ziggurat(random);
        return (random & sign_bit) != 0 ? -magnitude : magnitude;
    }
    /// (|Z| - sqrt(2/pi)) / sqrt(1 - 2/pi): mean 0, standard deviation 1 (see centred_half_normal of philox.hpp).
    [[nodiscard]] double centred_half_normal(std::uint64_t index) const noexcept {
        return (half_normal(index) - mean_of_absolute) * inverse_deviation_of_absolute;
    }
    /// A variate of the mixture: the mode is chosen by a hash of the draw's own bits, so that a mixture takes one index
    /// of the stream as every other draw does. Without modes a standard normal variate.
    [[nodiscard]] double mixture(std::uint64_t index, std::span<const Mode> modes) const noexcept;

private:
    static constexpr double mean_of_absolute = 0.79788456080286535588;              // sqrt(2/pi)
    static constexpr double inverse_deviation_of_absolute = 1.65889711806909450905; // 1 / sqrt(1 - 2/pi)
    static constexpr std::uint64_t sign_bit = 0x80;
    static constexpr unsigned layer_bits = 7;
    static constexpr std::size_t layers = std::size_t{1} << layer_bits;

    /// The ziggurat of Marsaglia & Tsang (Journal of Statistical Software 5(8), 2000), 128 layers: `edge` are the right
    /// ends of the layers, the density at them is `density`; a point left of the next edge needs no density.
    struct Layers {
        std::array<double, layers + 1> edge;
        std::array<double, layers> inside; // edge[i + 1] / edge[i]
        std::array<double, layers + 1> density;
    };
    static const Layers table_;

    [[nodiscard]] static constexpr std::uint64_t mix(std::uint64_t z) noexcept {
        z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
        z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
        return z ^ (z >> 31U);
    }
    /// Uniform in [0, 1), 53 bits, from the bits that choose neither layer nor sign.
    [[nodiscard]] static double fraction(std::uint64_t random) noexcept {
        return static_cast<double>(static_cast<std::int64_t>(random >> 11U)) * 0x1p-53;
    }
    [[nodiscard]] static double ziggurat(std::uint64_t random) noexcept {
        const std::size_t layer = random & (layers - 1);
        const double u = fraction(random);
        const Layers& t = table_;
        if (u < t.inside[layer]) [[likely]] {
            return u * t.edge[layer];
        }
        return outside(random);
    }
    [[nodiscard]] static double outside(std::uint64_t random) noexcept;

    std::uint64_t key_ = 0;
};

} // namespace lepaute::rng
