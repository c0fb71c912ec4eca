#include "fit/algebra.hpp"

#include "arrays.hpp"

#include <nanobind/stl/tuple.h>

#include <stdexcept>
#include <tuple>

namespace nb = nanobind;
using namespace lepaute;

namespace {

using Vector = Input<double, 1>;
using Table = Input<double, 2>;
using Array = nb::ndarray<nb::numpy, double>;

fit::Matrix matrix_of(const Table& table) { return {table.shape(0), table.shape(1), span_of(table)}; }

void check_shapes(bool fit) {
    if (!fit) {
        throw std::invalid_argument("the shapes of these matrices do not go together");
    }
}

Array residuals(const Input<double, 3>& sums, double negligible) {
    const std::size_t size = sums.shape(1);
    check_shapes(size > 0 && sums.shape(2) == size);
    std::vector<double> result;
    for (std::size_t i = 0; i < sums.shape(0); ++i) {
        result.push_back(fit::residual({size, size, {sums.data() + i * size * size, size * size}}, negligible));
    }
    const std::size_t count = result.size();
    return array_of(std::move(result), {count});
}

} // namespace

void bind_algebra(nb::module_& m) {
    m.def(
        "product",
        [](const Table& a, const Table& b) {
            check_shapes(a.shape(1) == b.shape(0));
            return array_of(fit::product(matrix_of(a), matrix_of(b)), {a.shape(0), b.shape(1)});
        },
        nb::arg("a"), nb::arg("b"));
    m.def(
        "products",
        [](const Table& a, const Table& b) {
            check_shapes(a.shape(0) == b.shape(0));
            return array_of(fit::products(matrix_of(a), matrix_of(b)), {a.shape(1), b.shape(1)});
        },
        nb::arg("a"), nb::arg("b"));
    m.def(
        "weighted_products",
        [](const Table& x, const Vector& weight) {
            check_shapes(x.shape(0) == weight.shape(0));
            return array_of(fit::weighted_products(matrix_of(x), span_of(weight)), {x.shape(1), x.shape(1)});
        },
        nb::arg("x"), nb::arg("weight"));
    m.def(
        "solution",
        [](const Table& gram, const Vector& moment) {
            check_shapes(gram.shape(0) == gram.shape(1) && gram.shape(0) == moment.shape(0));
            return array_of(fit::solution(matrix_of(gram), span_of(moment)), {moment.shape(0)});
        },
        nb::arg("gram"), nb::arg("moment"));
    m.def(
        "nonnegative_solution",
        [](const Table& gram, const Vector& moment, bool last_free) {
            check_shapes(gram.shape(0) == gram.shape(1) && gram.shape(0) == moment.shape(0));
            return array_of(fit::nonnegative_solution(matrix_of(gram), span_of(moment), last_free), {moment.shape(0)});
        },
        nb::arg("gram"), nb::arg("moment"), nb::arg("last_free"));
    m.def("residuals", &residuals, nb::arg("sums"), nb::arg("negligible"));
    m.def(
        "eigen",
        [](const Table& symmetric) {
            const std::size_t size = symmetric.shape(0);
            check_shapes(symmetric.shape(1) == size);
            fit::Eigen found = fit::eigen(matrix_of(symmetric));
            return std::make_tuple(array_of(std::move(found.values), {size}),
                                   array_of(std::move(found.vectors), {size, size}));
        },
        nb::arg("symmetric"));
}
