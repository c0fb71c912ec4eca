#include "fit/best_partitions.hpp"
#include "fit/splits.hpp"

#include "arrays.hpp"
#include "checks.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

namespace nb = nanobind;
using namespace lepaute;

namespace {

using Doubles = Input<double, 1>;
using Edges = Input<std::uint32_t, 1>;

constexpr double most_value = 1e300;
constexpr std::size_t most_log_cells = 4096;               // of which all segments have an entry in a table
constexpr std::size_t most_places = std::size_t{1} << 28U; // of cuts, by their number

fit::Series series_of(const Doubles& x, const Doubles& value, const Doubles& weight, const Edges& first,
                      const Edges& sizes, double scale) {
    const std::size_t points = x.shape(0);
    if (points == 0 || value.shape(0) != points || weight.shape(0) != points || first.shape(0) < 2 || first(0) != 0 ||
        first(first.shape(0) - 1) != points || sizes.shape(0) != first.shape(0)) {
        throw std::invalid_argument("a series is three vectors of one length, and edges from 0 to that length");
    }
    const std::span edges = span_of(first);
    const std::span below = span_of(sizes);
    for (std::size_t cell = 0; cell + 1 < edges.size(); ++cell) {
        if (edges[cell] > edges[cell + 1] || below[cell] > below[cell + 1] ||
            (edges[cell] == edges[cell + 1] && below[cell] != below[cell + 1])) {
            throw std::invalid_argument("the edges of a series, and the sizes below them, rise together");
        }
    }
    if (!std::ranges::is_sorted(span_of(x))) {
        throw std::invalid_argument("the x of a series never fall");
    }
    for (std::size_t i = 0; i < points; ++i) {
        check_number("x", x(i), -most_value, most_value);
        check_number("value", value(i), -most_value, most_value);
        check_number("weight", weight(i), 0.0, most_value);
    }
    check_number("scale", scale, 0.0, std::numeric_limits<double>::max());
    return {{x.data(), x.data() + points},
            {value.data(), value.data() + points},
            {weight.data(), weight.data() + points},
            {first.data(), first.data() + first.shape(0)},
            {sizes.data(), sizes.data() + sizes.shape(0)},
            scale};
}

/// Throws std::invalid_argument for a series whose logarithms are none.
void check_objective(const fit::Series& series, bool logarithmic) {
    if (logarithmic) {
        check_number("x", series.x.front(), 0.0, most_value);
        check_number("cells", series.cells(), 1U, most_log_cells);
    }
}

fit::Rules rules_of(bool logarithmic, bool constant, std::uint32_t least, std::size_t most) {
    check_number("least", least, 1U, 0xFFFFFFFFU);
    return {logarithmic ? fit::Objective::logarithmic : fit::Objective::squared,
            constant ? fit::Shape::constant : fit::Shape::line, least, most};
}

std::vector<std::pair<std::vector<std::uint32_t>, double>> partitions(const std::vector<fit::Series>& series,
                                                                      bool logarithmic, bool constant,
                                                                      std::uint32_t least, std::size_t most) {
    if (series.empty() || most == 0) {
        throw std::invalid_argument("there must be a series and a number of segments");
    }
    for (const fit::Series& one : series) {
        if (one.cells() != series.front().cells()) {
            throw std::invalid_argument("series that share their cuts have the same number of cells");
        }
        check_objective(one, logarithmic);
    }
    const std::size_t cells = series.front().cells();
    most = std::min(most, cells);
    check_number("most", most, 1U, most_places / (cells + 1));
    std::vector<std::pair<std::vector<std::uint32_t>, double>> result;
    const nb::gil_scoped_release released;
    for (fit::Partition& one : fit::best_partitions(series, rules_of(logarithmic, constant, least, most))) {
        result.emplace_back(std::move(one.cuts), one.cost);
    }
    return result;
}

} // namespace

void bind_fit(nb::module_& m) {
    nb::class_<fit::Series>(m, "FitSeries")
        .def_static("make", &series_of, nb::arg("x"), nb::arg("value"), nb::arg("weight"), nb::arg("first"),
                    nb::arg("sizes"), nb::arg("scale") = 1.0);
    m.def("best_partitions", &partitions, nb::arg("series"), nb::arg("logarithmic"), nb::arg("constant"),
          nb::arg("least"), nb::arg("most"));
    m.def(
        "best_line",
        [](const fit::Series& series, std::size_t begin, std::size_t end, bool logarithmic, bool constant) {
            if (begin >= end || end > series.x.size()) {
                throw std::invalid_argument("a line needs a point");
            }
            check_objective(series, logarithmic);
            const fit::Rules rules = rules_of(logarithmic, constant, 1, 1);
            const fit::Line line = fit::best_line(series, begin, end, rules.objective, rules.shape);
            return std::make_tuple(line.intercept, line.slope, line.cost);
        },
        nb::arg("series"), nb::arg("begin"), nb::arg("end"), nb::arg("logarithmic"), nb::arg("constant"));
    m.def(
        "split_costs",
        [](const fit::Series& series, std::size_t low, std::size_t high, bool logarithmic, bool constant,
           std::uint32_t least) {
            if (low >= high || high > series.cells()) {
                throw std::invalid_argument("low < high <= number of cells");
            }
            check_objective(series, logarithmic);
            return fit::split_costs(series, low, high, rules_of(logarithmic, constant, least, 1));
        },
        nb::arg("series"), nb::arg("low"), nb::arg("high"), nb::arg("logarithmic"), nb::arg("constant"),
        nb::arg("least"));
    m.def(
        "best_log_cut",
        [](const fit::Series& series, std::size_t begin, std::size_t end, std::size_t low, std::size_t high) {
            if (begin >= low || low > high || high >= end || end > series.x.size()) {
                throw std::invalid_argument("begin < low <= high < end <= number of points");
            }
            check_number("x", series.x.front(), 0.0, most_value);
            return fit::best_log_cut(series, begin, end, low, high);
        },
        nb::arg("series"), nb::arg("begin"), nb::arg("end"), nb::arg("low"), nb::arg("high"));
}
