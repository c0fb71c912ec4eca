#include "rng/elementary.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>

namespace lepaute::rng {

namespace {

constexpr double log_2_high = 0x1.62e42fefa3800p-1; // the low bits of log 2 are in log_2_low, so that k * high is exact
constexpr double log_2_low = 0x1.ef35793c76730p-45;
constexpr double sqrt_half = 0.70710678118654752440;

/// Horner's rule, the constant coefficient first.
double polynomial(std::span<const double> coefficients, double x) noexcept {
    double value = 0.0;
    for (std::size_t i = coefficients.size(); i-- > 0;) {
        value = value * x + coefficients[i];
    }
    return value;
}

/// A ratio of polynomials; the constant coefficient of the lower one, which is left out, is 1.
double ratio(std::span<const double> numerator, std::span<const double> denominator, double x) noexcept {
    return polynomial(numerator, x) / (polynomial(denominator, x) * x + 1.0);
}

} // namespace

double natural_log(double x) noexcept {
    int exponent = 0;
    double mantissa = std::frexp(x, &exponent); // exact, in [0.5, 1)
    if (mantissa < sqrt_half) {
        mantissa *= 2.0;
        --exponent;
    }
    // log(mantissa) = 2 atanh(s), s = (mantissa - 1) / (mantissa + 1), |s| <= 0.1716: eleven terms reach 1e-17.
    const double s = (mantissa - 1.0) / (mantissa + 1.0);
    const double s_squared = s * s;
    static constexpr std::array<double, 11> inverse_odd = [] {
        std::array<double, 11> values{};
        for (std::size_t term = 0; term < values.size(); ++term) {
            values[term] = 1.0 / static_cast<double>(2 * term + 1);
        }
        return values;
    }();
    const double series = polynomial(inverse_odd, s_squared);
    return exponent * log_2_high + (2.0 * s * series + exponent * log_2_low);
}

double exponential(double x) noexcept {
    const double k = std::floor(x * 1.44269504088896340736 + 0.5);
    const double r = (x - k * log_2_high) - k * log_2_low; // |r| <= log(2)/2
    static constexpr std::array<double, 15> inverse_factorial = [] {
        std::array<double, 15> values{1.0};
        for (std::size_t term = 1; term < values.size(); ++term) {
            values[term] = values[term - 1] / static_cast<double>(term);
        }
        return values;
    }();
    const double series = polynomial(inverse_factorial, r);
    // 2^k is a normal number, and so is the result: the product is exact.
    return series * std::bit_cast<double>(static_cast<std::uint64_t>(static_cast<std::int64_t>(k) + 1023) << 52U);
}

double normal_quantile(double p) noexcept {
    static constexpr std::array<double, 8> central_numerator = {
        3.3871328727963666080e0,  1.3314166789178437745e+2, 1.9715909503065514427e+3, 1.3731693765509461125e+4,
        4.5921953931549871457e+4, 6.7265770927008700853e+4, 3.3430575583588128105e+4, 2.5090809287301226727e+3};
    static constexpr std::array<double, 7> central_denominator = {
        4.2313330701600911252e+1, 6.8718700749205790830e+2, 5.3941960214247511077e+3, 2.1213794301586595867e+4,
        3.9307895800092710610e+4, 2.8729085735721942674e+4, 5.2264952788528545610e+3};
    static constexpr std::array<double, 8> middle_numerator = {
        1.42343711074968357734e0, 4.63033784615654529590e0,  5.76949722146069140550e0,  3.64784832476320460504e0,
        1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4};
    static constexpr std::array<double, 7> middle_denominator = {
        2.05319162663775882187e0,  1.67638483018380384940e0,  6.89767334985100004550e-1, 1.48103976427480074590e-1,
        1.51986665636164571966e-2, 5.47593808499534494600e-4, 1.05075007164441684324e-9};
    static constexpr std::array<double, 8> far_numerator = {
        6.65790464350110377720e0,  5.46378491116411436990e0,  1.78482653991729133580e0,  2.96560571828504891230e-1,
        2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7};
    static constexpr std::array<double, 7> far_denominator = {
        5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2, 7.86869131145613259100e-4,
        1.84631831751005468180e-5, 1.42151175831644588870e-7, 2.04426310338993978564e-15};

    const double q = p - 0.5;
    if (std::fabs(q) <= 0.425) {
        const double r = 0.180625 - q * q;
        return q * polynomial(central_numerator, r) / (polynomial(central_denominator, r) * r + 1.0);
    }
    const double tail = q < 0.0 ? p : 1.0 - p;
    const double r = std::sqrt(-natural_log(tail));
    const double value = r <= 5.0 ? ratio(middle_numerator, middle_denominator, r - 1.6)
                                  : ratio(far_numerator, far_denominator, r - 5.0);
    return q < 0.0 ? -value : value;
}

} // namespace lepaute::rng
