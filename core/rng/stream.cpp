#include "rng/stream.hpp"

#include "rng/elementary.hpp"

#include <cmath>

namespace lepaute::rng {

namespace {

// Right end of the lowest layer, and area of every layer, for 128 layers under exp(-x^2 / 2) (Doornik, "An improved
// ziggurat method to generate normal random samples", 2005).
constexpr double tail_begins = 3.442619855899;
constexpr double layer_area = 9.91256303526217e-3;

double density(double x) noexcept { return exponential(-0.5 * x * x); }

} // namespace

const Stream::Layers Stream::table_ = [] {
    Layers t{};
    t.edge[0] = layer_area / density(tail_begins); // the width of the lowest layer, its tail spread out
    t.edge[1] = tail_begins;
    for (std::size_t i = 2; i < layers; ++i) {
        t.edge[i] = std::sqrt(-2.0 * natural_log(layer_area / t.edge[i - 1] + density(t.edge[i - 1])));
    }
    t.edge[layers] = 0.0;
    for (std::size_t i = 0; i < layers; ++i) {
        t.inside[i] = t.edge[i + 1] / t.edge[i];
        t.density[i] = density(t.edge[i]);
    }
    t.density[layers] = 1.0;
    return t;
}();

Stream::Stream(const Coordinates& at) noexcept {
    const auto block = philox4x32({0xFFFFFFFFU, 0xFFFFFFFFU, at.rank, at.stream},
                                  {static_cast<std::uint32_t>(at.seed), static_cast<std::uint32_t>(at.seed >> 32U)});
    key_ = std::uint64_t{block[0]} << 32U | block[1];
}

double Stream::mixture(std::uint64_t index, std::span<const Mode> modes) const noexcept {
    const double z = normal(index);
    // Another constant than that of `outside`, whose further bits start from the same ones.
    const double u = fraction(mix(bits(index) ^ 0xD1B54A32D192ED03U));
    for (const Mode& mode : modes) {
        if (u < mode.cumulative || &mode == &modes.back()) {
            return mode.mean + mode.deviation * z;
        }
    }
    return z;
}

double Stream::outside(std::uint64_t random) noexcept {
    std::uint64_t further = random; // more bits where one draw is not enough: a function of the first
    const auto next = [&] { return further = mix(further + 0x9E3779B97F4A7C15U); };
    for (;; random = next()) {
        const std::size_t layer = random & (layers - 1);
        const double u = fraction(random);
        const double x = u * table_.edge[layer];
        if (u < table_.inside[layer]) {
            return x;
        }
        while (layer == 0) { // the tail (Marsaglia, 1964)
            const double beyond = -natural_log(fraction(next()) + 0x1p-54) / tail_begins;
            const double height = -natural_log(fraction(next()) + 0x1p-54);
            if (2.0 * height >= beyond * beyond) {
                return tail_begins + beyond;
            }
        }
        const double low = table_.density[layer];
        const double high = table_.density[layer + 1];
        if (low + fraction(next()) * (high - low) < density(x)) {
            return x;
        }
    }
}

} // namespace lepaute::rng
