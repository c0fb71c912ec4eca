// Draws by coordinates in the extension module: what Python draws repeats bit for bit, as the engine's own draws do.

#include "rng/elementary.hpp"
#include "rng/philox.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace lepaute;

namespace {

using Draw = double (*)(const rng::Coordinates&) noexcept;

std::vector<double> drawn(Draw draw, std::uint64_t seed, std::uint32_t stream, std::uint32_t units,
                          std::uint32_t each) {
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
    m.def("natural_log", &rng::natural_log, nb::arg("x"), "Of a positive, finite x; the same bits on every machine.");
    m.def("exponential", &rng::exponential, nb::arg("x"), "For |x| <= 700; the same bits on every machine.");
    m.def(
        "normals",
        [](std::uint64_t seed, std::uint32_t stream, std::uint32_t units, std::uint32_t each) {
            return drawn(&rng::normal, seed, stream, units, each);
        },
        nb::arg("seed"), nb::arg("stream"), nb::arg("units"), nb::arg("each"));
    m.def(
        "uniforms",
        [](std::uint64_t seed, std::uint32_t stream, std::uint32_t units, std::uint32_t each) {
            return drawn(&rng::uniform, seed, stream, units, each);
        },
        nb::arg("seed"), nb::arg("stream"), nb::arg("units"), nb::arg("each"));
}
