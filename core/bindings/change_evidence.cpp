#include "fit/change_evidence.hpp"
#include "fit/group_medians.hpp"

#include "arrays.hpp"

#include <nanobind/stl/tuple.h>

#include <stdexcept>
#include <tuple>

namespace nb = nanobind;
using namespace lepaute;

namespace {

template <std::size_t Dimensions>
using Changed = nb::ndarray<double, nb::ndim<Dimensions>, nb::c_contig, nb::device::cpu>;

void check(bool fits) {
    if (!fits) {
        throw std::invalid_argument("the arrays are not of the same streams");
    }
}

fit::Regressions regressions_of(const Changed<3>& squares, const Changed<2>& cross, const Changed<2>& expected,
                                const Input<double, 2>& spread, const Input<double, 1>& scale,
                                const Input<double, 1>& scale_count, double fewest) {
    const std::size_t streams = scale.shape(0);
    check(squares.shape(0) == streams && squares.shape(1) == 3 && squares.shape(2) == 3);
    check(cross.shape(0) == streams && cross.shape(1) == 3);
    check(expected.shape(0) == streams && expected.shape(1) == 3);
    check(spread.shape(0) == streams && spread.shape(1) == 2 && scale_count.shape(0) == streams);
    return {span_of(squares),     span_of(cross), span_of(expected), span_of(spread), span_of(scale),
            span_of(scale_count), fewest};
}

} // namespace

void bind_change_evidence(nb::module_& m) {
    m.def(
        "likelihood_ratios",
        [](const Input<double, 1>& z, const Input<double, 1>& reduced, const Input<std::int64_t, 1>& degrees,
           const Input<double, 2>& alternatives, const Input<double, 2>& inverse_means, double heavy) {
            const std::size_t columns = alternatives.shape(0);
            check(z.shape(0) == reduced.shape(0) && z.shape(0) == degrees.shape(0) && alternatives.shape(1) == 4);
            check(inverse_means.shape(0) > 0 && inverse_means.shape(1) == columns);
            std::vector<fit::Alternative> each;
            for (std::size_t j = 0; j < columns; ++j) {
                const double* const row = alternatives.data() + 4 * j;
                each.push_back({row[0], row[1], row[2], row[3]});
            }
            return array_of(fit::likelihood_ratios(span_of(z), span_of(reduced), span_of(degrees), each,
                                                   span_of(inverse_means), heavy),
                            {z.shape(0), columns});
        },
        nb::arg("z"), nb::arg("reduced"), nb::arg("degrees"), nb::arg("alternatives"), nb::arg("inverse_means"),
        nb::arg("heavy"));
    m.def(
        "innovations",
        [](const Changed<3>& squares, const Changed<2>& cross, const Changed<2>& expected,
           const Input<double, 2>& spread, const Input<double, 1>& scale, const Input<double, 1>& scale_count,
           double fewest, const Input<double, 1>& value, const Input<bool, 1>& known, const Input<double, 1>& rho,
           const Input<double, 1>& last_value, const Input<double, 2>& shared, const Input<double, 2>& last_common) {
            const std::size_t streams = scale.shape(0);
            check(value.shape(0) == streams && known.shape(0) == streams && rho.shape(0) == streams);
            check(last_value.shape(0) == streams && shared.shape(0) == streams && shared.shape(1) == 2);
            check(last_common.shape(0) == streams && last_common.shape(1) == 2);
            const auto of = regressions_of(squares, cross, expected, spread, scale, scale_count, fewest);
            fit::Innovations found = fit::innovations(of, span_of(value), span_of(known), span_of(rho),
                                                      span_of(last_value), span_of(shared), span_of(last_common));
            return std::make_tuple(array_of(std::move(found.y), {streams}), array_of(std::move(found.x), {streams, 3}),
                                   array_of(std::move(found.error), {streams}),
                                   array_of(std::move(found.innovation), {streams}));
        },
        nb::arg("squares"), nb::arg("cross"), nb::arg("expected"), nb::arg("spread"), nb::arg("scale"),
        nb::arg("scale_count"), nb::arg("fewest"), nb::arg("value"), nb::arg("known"), nb::arg("rho"),
        nb::arg("last_value"), nb::arg("shared"), nb::arg("last_common"));
    m.def(
        "learn",
        [](const Changed<3>& squares, const Changed<2>& cross, const Changed<2>& expected,
           const Input<double, 2>& spread, const Input<double, 1>& scale, const Input<double, 1>& scale_count,
           double fewest, const Input<bool, 1>& learns, const Input<double, 1>& y, const Input<double, 2>& x,
           double memory) {
            const std::size_t streams = scale.shape(0);
            check(learns.shape(0) == streams && y.shape(0) == streams);
            check(x.shape(0) == streams && x.shape(1) == 3);
            const auto of = regressions_of(squares, cross, expected, spread, scale, scale_count, fewest);
            return array_of(fit::learn(of, span_of(learns), span_of(y), span_of(x), memory), {streams, 2});
        },
        nb::arg("squares"), nb::arg("cross"), nb::arg("expected"), nb::arg("spread"), nb::arg("scale"),
        nb::arg("scale_count"), nb::arg("fewest"), nb::arg("learns"), nb::arg("y"), nb::arg("x"), nb::arg("memory"));
    m.def(
        "group_medians",
        [](const Input<double, 2>& values, const Input<std::int64_t, 1>& group, const Input<std::int64_t, 2>& order,
           std::size_t groups, std::size_t fewest) {
            const std::size_t streams = group.shape(0);
            check(values.shape(1) == streams && (order.size() == 0 || order.size() == values.size()));
            for (std::size_t i = 0; i < streams; ++i) {
                check(group.data()[i] < static_cast<std::int64_t>(groups));
            }
            fit::GroupMedians found =
                fit::group_medians(span_of(values), span_of(group), span_of(order), groups, fewest);
            return std::make_tuple(array_of(std::move(found.whole), {values.shape(0), groups}),
                                   array_of(std::move(found.others), {values.shape(0), streams}));
        },
        nb::arg("values"), nb::arg("group"), nb::arg("order"), nb::arg("groups"), nb::arg("fewest"));
}
