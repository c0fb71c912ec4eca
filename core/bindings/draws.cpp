// Draws by coordinates in the extension module: what Python draws repeats bit for bit, as the engine's own draws do.

#include "checks.hpp"
#include "rng/elementary.hpp"
#include "rng/philox.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <limits>

namespace nb = nanobind;
using namespace lepaute;

namespace {

constexpr std::uint64_t most_draws = 1U << 28U;

template <auto draw>
std::vector<double> drawn(std::uint64_t seed, std::uint32_t stream, std::uint32_t units, std::uint32_t each) {
    check_number("each", each, 0U, static_cast<std::uint32_t>(most_draws / std::max(units, 1U)));
    std::vector<double> values;
    values.reserve(std::size_t{units} * each);
    for (std::uint32_t unit = 0; unit < units; ++unit) {
        for (std::uint32_t index = 0; index < each; ++index) {
            values.push_back(draw({seed, unit, stream, index}));
        }
    }
    return values;
}

} // namespace

void bind_draws(nb::module_& m) {
    m.def(
        "natural_log",
        [](double x) {
            check_number("x", x, std::numeric_limits<double>::denorm_min(), std::numeric_limits<double>::max());
            return rng::natural_log(x);
        },
        nb::arg("x"), "Of a positive, finite x; the same bits on every machine.");
    m.def(
        "exponential",
        [](double x) {
            check_number("x", x, -700.0, 700.0);
            return rng::exponential(x);
        },
        nb::arg("x"), "For |x| <= 700; the same bits on every machine.");
    m.def("normals", &drawn<&rng::normal>, nb::arg("seed"), nb::arg("stream"), nb::arg("units"), nb::arg("each"));
    m.def("uniforms", &drawn<&rng::uniform>, nb::arg("seed"), nb::arg("stream"), nb::arg("units"), nb::arg("each"));
}
