// The trace of a run as NumPy arrays: a column each, copied once.

#include "trace.hpp"

#include "apps/hpl/simulation.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <stdexcept>
#include <string>

namespace nb = nanobind;
using namespace lepaute;

namespace {

constexpr std::array<const char*, static_cast<std::size_t>(mpi::Call::count)> call_names{
    "MPI_Send", "MPI_Recv", "MPI_Irecv", "MPI_Wait", "MPI_Iprobe", "MPI_Ssend", "MPI_Issend"};

enum class RowKind : std::int16_t { kernel, mpi, phase }; // as in lepaute.trace.table.KINDS

/// A NumPy array that owns `values`.
template <typename Value>
nb::ndarray<nb::numpy, Value> array_of(std::vector<Value> values, std::vector<std::size_t> shape) {
    auto held = std::make_unique<std::vector<Value>>(std::move(values));
    Value* const data = held->data();
    const nb::capsule owner(held.get(), [](void* kept) noexcept {
        const std::unique_ptr<std::vector<Value>> last(static_cast<std::vector<Value>*>(kept));
    });
    static_cast<void>(held.release()); // the capsule's now
    return nb::ndarray<nb::numpy, Value>(data, shape.size(), shape.data(), owner);
}

template <typename Of>
auto column(const std::vector<mpi::TraceRow>& rows, Of value_of) {
    std::vector<decltype(value_of(rows.front()))> values;
    values.reserve(rows.size());
    for (const mpi::TraceRow& row : rows) {
        values.push_back(value_of(row));
    }
    return array_of(std::move(values), {rows.size()});
}

RowKind kind_of(const mpi::TraceRow& row) {
    if (row.code >= mpi::first_phase_code) {
        return RowKind::phase;
    }
    return row.code >= mpi::first_kernel_code ? RowKind::kernel : RowKind::mpi;
}

/// Names of all codes: calls, kernels, phases; name_of() says which.
std::vector<std::string> trace_names() {
    std::vector<std::string> names(call_names.begin(), call_names.end());
    names.insert(names.end(), models::kernel_names().begin(), models::kernel_names().end());
    names.insert(names.end(), hpl::stage_names().begin(), hpl::stage_names().end());
    return names;
}

std::int32_t name_of(const mpi::TraceRow& row) {
    constexpr auto calls = static_cast<std::int32_t>(call_names.size());
    switch (kind_of(row)) {
    case RowKind::mpi:
        return row.code;
    case RowKind::kernel:
        return calls + row.code - mpi::first_kernel_code;
    default:
        return calls + static_cast<std::int32_t>(models::kernel_count) + row.code - mpi::first_phase_code;
    }
}

/// The rows are gone from the result afterwards.
nb::dict take_trace_columns(hpl::Result& result) {
    const std::vector<mpi::TraceRow> rows = std::move(result.trace.rows);
    nb::dict columns;
    columns["rank"] = column(rows, [](const mpi::TraceRow& row) { return static_cast<std::int32_t>(row.rank); });
    columns["step"] = column(rows, [](const mpi::TraceRow& row) { return row.step; });
    columns["kind"] = column(rows, [](const mpi::TraceRow& row) { return static_cast<std::int16_t>(kind_of(row)); });
    columns["name"] = column(rows, &name_of);
    columns["peer"] = column(rows, [](const mpi::TraceRow& row) { return row.peer; });
    columns["tag"] = column(rows, [](const mpi::TraceRow& row) { return row.tag; });
    const auto number = [&](const char* name, double mpi::TraceRow::*value) {
        columns[name] = column(rows, [value](const mpi::TraceRow& row) { return row.*value; });
    };
    number("start_s", &mpi::TraceRow::start_s);
    number("duration_s", &mpi::TraceRow::duration_s);
    number("m", &mpi::TraceRow::m);
    number("n", &mpi::TraceRow::n);
    number("k", &mpi::TraceRow::k);
    number("size_bytes", &mpi::TraceRow::size_bytes);
    number("late_s", &mpi::TraceRow::late_s);
    number("transfer_s", &mpi::TraceRow::transfer_s);
    number("contention_s", &mpi::TraceRow::contention_s);
    return columns;
}

nb::ndarray<nb::numpy, double> rank_shares(const hpl::Result& result) {
    std::vector<double> values;
    values.reserve(result.rank_shares_s.size() * mpi::share_count);
    for (const mpi::Shares& shares : result.rank_shares_s) {
        values.insert(values.end(), shares.begin(), shares.end());
    }
    return array_of(std::move(values), {result.rank_shares_s.size(), mpi::share_count});
}

std::vector<double> total_shares(const hpl::Result& result) {
    std::vector<double> total(mpi::share_count, 0.0);
    for (const mpi::Shares& shares : result.rank_shares_s) {
        for (std::size_t i = 0; i < mpi::share_count; ++i) {
            total[i] += shares[i];
        }
    }
    return total;
}

/// Flags of the numbers chosen among `count`; throws std::invalid_argument for one beyond.
std::vector<std::uint8_t> flags_of(const std::vector<std::uint32_t>& chosen, std::size_t count) {
    std::vector<std::uint8_t> flags(count, 0);
    for (const std::uint32_t number : chosen) {
        if (number >= count) {
            throw std::invalid_argument("a rank or step to trace is none of the run's");
        }
        flags[number] = 1;
    }
    return flags;
}

} // namespace

mpi::Trace wanted_trace(const hpl::Parameters& parameters, const std::optional<std::vector<std::uint32_t>>& ranks,
                        const std::optional<std::vector<std::uint32_t>>& steps) {
    mpi::Trace trace;
    if (ranks) {
        trace.rank_wanted = flags_of(*ranks, std::size_t{parameters.p} * parameters.q);
        if (steps) {
            const std::int64_t nb = parameters.nb;
            trace.step_wanted = flags_of(*steps, static_cast<std::size_t>((parameters.n + nb - 1) / nb));
        }
    }
    return trace;
}

void bind_trace(nb::module_& m, nb::class_<hpl::Result>& result) {
    m.def("trace_names", &trace_names);
    result.def("take_trace_columns", &take_trace_columns)
        .def_prop_ro("total_shares_s", &total_shares)
        .def("rank_shares_s", &rank_shares)
        .def("step_shares_s", [](const hpl::Result& one) {
            const std::vector<double>& values = one.trace.share_of_step_s;
            return array_of(values, {values.size() / mpi::share_count, mpi::share_count});
        });
}
