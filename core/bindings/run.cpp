// What a run tells; its trace as NumPy arrays: a column each, copied once.

#include "mpi/run.hpp"

#include "application.hpp"
#include "arrays.hpp"
#include "mpi/shared_draws.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace nb = nanobind;
using namespace lepaute;

namespace {

constexpr std::array<const char*, static_cast<std::size_t>(mpi::Call::count)> call_names{
    "MPI_Send",   "MPI_Recv",  "MPI_Irecv",   "MPI_Wait",    "MPI_Iprobe", "MPI_Ssend",
    "MPI_Issend", "MPI_Isend", "MPI_Waitall", "MPI_Waitany", "MPI_Probe"};

enum class RowKind : std::int16_t { kernel, mpi, phase }; // as in lepaute.simulate.trace.table.KINDS

template <typename Of>
auto column(const std::vector<mpi::TraceRow>& rows, Of value_of) {
    std::vector<std::decay_t<std::invoke_result_t<Of, const mpi::TraceRow&>>> values;
    values.reserve(rows.size());
    for (const mpi::TraceRow& row : rows) {
        values.push_back(std::invoke(value_of, row));
    }
    return array_of(std::move(values), {rows.size()});
}

RowKind kind_of(const mpi::TraceRow& row) {
    return row.code >= mpi::first_phase_code    ? RowKind::phase
           : row.code >= mpi::first_kernel_code ? RowKind::kernel
                                                : RowKind::mpi;
}

/// Names of calls, kernels and phases; name_of() says which is that of a row.
std::vector<std::string> trace_names(const mpi::RunResult& result) {
    std::vector<std::string> names(call_names.begin(), call_names.end());
    names.insert(names.end(), result.kernel_set.names.begin(), result.kernel_set.names.end());
    names.insert(names.end(), result.stage_names.begin(), result.stage_names.end());
    return names;
}

std::int32_t name_of(const mpi::TraceRow& row, std::size_t kernels) {
    constexpr auto calls = static_cast<std::int32_t>(call_names.size());
    const RowKind kind = kind_of(row);
    return kind == RowKind::kernel  ? calls + row.code - mpi::first_kernel_code
           : kind == RowKind::phase ? calls + static_cast<std::int32_t>(kernels) + row.code - mpi::first_phase_code
                                    : row.code;
}

/// The rows are gone from the result afterwards.
nb::dict take_trace_columns(mpi::RunResult& result) {
    const std::vector<mpi::TraceRow> rows = std::move(result.trace.rows);
    nb::dict columns;
    columns["rank"] = column(rows, [](const mpi::TraceRow& row) { return static_cast<std::int32_t>(row.rank); });
    columns["step"] = column(rows, &mpi::TraceRow::step);
    columns["kind"] = column(rows, [](const mpi::TraceRow& row) { return static_cast<std::int16_t>(kind_of(row)); });
    columns["name"] =
        column(rows, [&](const mpi::TraceRow& row) { return name_of(row, result.kernel_set.names.size()); });
    columns["peer"] = column(rows, &mpi::TraceRow::peer);
    columns["tag"] = column(rows, &mpi::TraceRow::tag);
    columns["start_s"] = column(rows, &mpi::TraceRow::start_s);
    columns["duration_s"] = column(rows, &mpi::TraceRow::duration_s);
    columns["m"] = column(rows, &mpi::TraceRow::m);
    columns["n"] = column(rows, &mpi::TraceRow::n);
    columns["k"] = column(rows, &mpi::TraceRow::k);
    columns["size_bytes"] = column(rows, &mpi::TraceRow::size_bytes);
    columns["late_s"] = column(rows, &mpi::TraceRow::late_s);
    columns["transfer_s"] = column(rows, &mpi::TraceRow::transfer_s);
    columns["contention_s"] = column(rows, &mpi::TraceRow::contention_s);
    return columns;
}

nb::ndarray<nb::numpy, double> rank_shares(const mpi::RunResult& result) {
    std::vector<double> values;
    values.reserve(result.rank_shares_s.size() * mpi::share_count);
    for (const mpi::Shares& shares : result.rank_shares_s) {
        values.insert(values.end(), shares.begin(), shares.end());
    }
    return array_of(std::move(values), {result.rank_shares_s.size(), mpi::share_count});
}

nb::ndarray<nb::numpy, double> step_shares(const mpi::RunResult& result) {
    const std::vector<double>& values = result.trace.share_of_step_s;
    return array_of(values, {values.size() / mpi::share_count, mpi::share_count});
}

std::vector<double> total_shares(const mpi::RunResult& result) {
    std::vector<double> total(mpi::share_count, 0.0);
    for (const mpi::Shares& shares : result.rank_shares_s) {
        for (std::size_t i = 0; i < mpi::share_count; ++i) {
            total[i] += shares[i];
        }
    }
    return total;
}

using KernelUses = nb::typed<nb::dict, nb::str, models::KernelUse>;
KernelUses kernels(const mpi::RunResult& result) {
    KernelUses uses;
    for (std::size_t kernel = 0; kernel < result.kernels.size(); ++kernel) {
        uses[nb::str(result.kernel_set.names[kernel].data(), result.kernel_set.names[kernel].size())] =
            result.kernels[kernel];
    }
    return uses;
}

using MessageUses = nb::typed<nb::dict, nb::str, models::MessageUse>;
MessageUses message_use(const mpi::RunResult& result) {
    MessageUses uses;
    for (const auto& [link, word] : words_of(models::LinkClass{})) {
        uses[nb::str(word.data(), word.size())] = result.use[static_cast<std::size_t>(link)];
    }
    return uses;
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

std::vector<std::string>& registered_kernels() {
    static std::vector<std::string> names;
    return names;
}

} // namespace

void register_kernels(std::span<const std::string_view> names) {
    registered_kernels().insert(registered_kernels().end(), names.begin(), names.end());
}

mpi::Trace wanted_trace(std::size_t ranks, std::size_t steps, const Chosen& trace_ranks, const Chosen& trace_steps) {
    mpi::Trace trace;
    if (trace_ranks) {
        trace.rank_wanted = flags_of(*trace_ranks, ranks);
        if (trace_steps) {
            trace.step_wanted = flags_of(*trace_steps, steps);
        }
    }
    return trace;
}

using SeedPairs = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
std::vector<std::vector<double>> effects_of(const mpi::SharedDraws& draws, const models::Machine& machine,
                                            const SeedPairs& pairs) {
    std::vector<models::Seeds> seeds;
    for (const auto& [day, run] : pairs) {
        seeds.emplace_back(day, run);
    }
    std::vector<std::vector<double>> effects;
    for (const mpi::SharedEffect& effect : draws.effects(machine, seeds)) {
        std::vector<double>& row = effects.emplace_back(effect.messages.begin(), effect.messages.end());
        row.insert(row.begin(), effect.computing);
    }
    return effects;
}

void bind_run(nb::module_& m) {
    m.def(
        "kernel_names", [] { return registered_kernels(); }, "Of the kernels that applications call.");
    nb::class_<mpi::Progress>(m, "Progress", "How far a run has come; any thread may look, or cancel it.")
        .def(nb::init<>())
        .def_prop_ro(
            "begun_steps", [](const mpi::Progress& progress) { return progress.begun_steps.load(); },
            "Steps that ranks have begun, summed over ranks.")
        .def(
            "cancel", [](mpi::Progress& progress) { progress.cancelled = true; },
            "The run ends soon, without a result.");
    nb::class_<mpi::RunResult>(m, "RunResult")
        .def_ro("time_s", &mpi::RunResult::time_s)
        .def_ro("messages", &mpi::RunResult::messages)
        .def_ro("bytes", &mpi::RunResult::bytes)
        .def_prop_ro("message_use", &message_use, "By class of links; zero where no fitted sizes are known.")
        .def_ro("computing_s", &mpi::RunResult::computing_s)
        .def_ro("waiting_s", &mpi::RunResult::waiting_s)
        .def_ro("engine_bytes", &mpi::RunResult::engine_bytes)
        .def_prop_ro("kernels", &kernels, "By name, in the order in which the application counts them.")
        .def_prop_ro("total_shares_s", &total_shares,
                     "Over all ranks: compute, overhead, late, transfer, contention, probe.")
        .def("rank_shares_s", &rank_shares, "The same of each rank, shape (ranks, 6).")
        .def("step_shares_s", &step_shares,
             "Over all ranks of each step, shape (1 + steps, 6), outside of any step first; empty without a trace.")
        .def_prop_ro("trace_names", &trace_names, "Of calls, kernels and phases, as the column name counts them.")
        .def("take_trace_columns", &take_trace_columns,
             nb::sig("def take_trace_columns(self) -> dict[str, numpy.typing.NDArray[typing.Any]]"),
             "A row a call, once: then they are gone. kind counts kernel, mpi, phase; name counts trace_names.");
    nb::class_<mpi::SharedDraws>(m, "SharedDraws", "A run, to be priced under the draws of other seeds.")
        .def(
            "__init__",
            [](mpi::SharedDraws* place, const mpi::RunResult& result, const models::Machine& machine,
               const models::Layers& layers, const std::vector<std::uint32_t>& core_of_rank, std::uint64_t seed,
               std::uint64_t run_seed) {
                new (place) mpi::SharedDraws(result, machine, layers, core_of_rank, {seed, run_seed});
            },
            nb::arg("result"), nb::arg("machine"), nb::arg("layers"), nb::arg("core_of_rank"), nb::arg("seed"),
            nb::arg("run_seed"), nb::keep_alive<1, 2>()) // which has the names of its kernels
        .def("effects", &effects_of, nb::arg("machine"), nb::arg("seeds"), nb::call_guard<nb::gil_scoped_release>(),
             "How many times as long computing and the messages of each class of links take under the draws of each "
             "(seed, run_seed), without noise, as they took under those of the run.");
}
