#include "rng/philox.hpp"

#include "rng/elementary.hpp"

#include <cmath>

namespace lepaute::rng {

namespace {

constexpr std::uint32_t multiplier_0 = 0xD2511F53U;
constexpr std::uint32_t multiplier_1 = 0xCD9E8D57U;
constexpr std::uint32_t weyl_0 = 0x9E3779B9U;
constexpr std::uint32_t weyl_1 = 0xBB67AE85U;
constexpr int rounds = 10;

} // namespace

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key) noexcept {
    for (int round = 0; round < rounds; ++round) {
        const std::uint64_t product_0 = std::uint64_t{multiplier_0} * counter[0];
        const std::uint64_t product_1 = std::uint64_t{multiplier_1} * counter[2];
        counter = {
            static_cast<std::uint32_t>(product_1 >> 32U) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(product_1),
            static_cast<std::uint32_t>(product_0 >> 32U) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(product_0)};
        key[0] += weyl_0;
        key[1] += weyl_1;
    }
    return counter;
}

double uniform(const Coordinates& at) noexcept {
    const auto block = philox4x32(
        {static_cast<std::uint32_t>(at.index), static_cast<std::uint32_t>(at.index >> 32U), at.rank, at.stream},
        {static_cast<std::uint32_t>(at.seed), static_cast<std::uint32_t>(at.seed >> 32U)});
    const std::uint64_t bits = (std::uint64_t{block[0]} << 32U | block[1]) >> 11U;
    return (static_cast<double>(bits) + 0.5) * 0x1p-53;
}

double normal(const Coordinates& at) noexcept { return normal_quantile(uniform(at)); }

double student(Coordinates at, int degrees_of_freedom) noexcept {
    at.index = 0;
    const double numerator = normal(at);
    if (degrees_of_freedom <= 0) {
        return numerator;
    }
    double chi_squared = 0.0;
    for (int i = 0; i < degrees_of_freedom; ++i) {
        ++at.index;
        const double z = normal(at);
        chi_squared += z * z;
    }
    return numerator / std::sqrt(chi_squared / degrees_of_freedom);
}

double centred_half_normal(const Coordinates& at) noexcept {
    constexpr double mean_of_absolute = 0.79788456080286535588;   // sqrt(2/pi)
    constexpr double deviation_of_absolute = 0.60281027408908340; // sqrt(1 - 2/pi)
    // |Z| has the quantile function of Z at (1 + u) / 2.
    return (normal_quantile(0.5 + 0.5 * uniform(at)) - mean_of_absolute) / deviation_of_absolute;
}

} // namespace lepaute::rng
