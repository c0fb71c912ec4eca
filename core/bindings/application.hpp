#pragma once
// What the binding of an application, core/apps/<name>/binding.cpp, is made of.

#include "fields.hpp"
#include "mpi/run.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

/// Ranks or steps of a run; none: no ranks, all steps.
using Chosen = std::optional<std::vector<std::uint32_t>>;

/// What is to be traced of a run. Throws std::invalid_argument for a rank or a step that the run does not have.
lepaute::mpi::Trace wanted_trace(std::size_t ranks, std::size_t steps, const Chosen& trace_ranks,
                                 const Chosen& trace_steps);

/// Joins the names that kernel_names() of the module returns.
void register_kernels(std::span<const std::string_view> names);

/// Adds the class of the parameters and the function that simulates one run; `kernels` are the names of those called.
template <class Parameters, class Result>
void def_application(nanobind::module_& m, const char* parameters_name, const char* simulate_name,
                     std::span<const std::string_view> kernels,
                     Result (*simulate)(const Parameters&, const lepaute::models::Machine&,
                                        const lepaute::models::Layers&, const std::vector<std::uint32_t>&,
                                        lepaute::models::Seeds, lepaute::mpi::Trace, lepaute::mpi::Progress*)) {
    namespace nb = nanobind;
    register_kernels(kernels);
    nb::class_<Parameters> parameters(m, parameters_name);
    parameters.def(nb::init<>());
    def_fields(parameters);
    m.def(
        simulate_name,
        [simulate](const Parameters& of, const lepaute::models::Machine& machine, const lepaute::models::Layers& layers,
                   const std::vector<std::uint32_t>& core_of_rank, std::uint64_t seed, const Chosen& trace_ranks,
                   const Chosen& trace_steps, std::optional<std::uint64_t> run_seed, lepaute::mpi::Progress* progress) {
            lepaute::check_all(of); // before anything is made of its numbers of ranks and steps
            return simulate(of, machine, layers, core_of_rank, {seed, run_seed.value_or(seed)},
                            wanted_trace(of.ranks(), of.steps(), trace_ranks, trace_steps), progress);
        },
        nb::arg("parameters"), nb::arg("machine"), nb::arg("layers"), nb::arg("core_of_rank"), nb::arg("seed"),
        nb::arg("trace_ranks") = nb::none(), nb::arg("trace_steps") = nb::none(), nb::arg("run_seed") = nb::none(),
        nb::arg("progress") = nb::none(), nb::call_guard<nb::gil_scoped_release>(),
        "One run; traces these ranks (none without) in these steps (all without). run_seed: another run on the "
        "machine and day of seed. progress: tells other threads how far it is; RuntimeError once it is cancelled.");
}
