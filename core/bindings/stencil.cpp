// The stencil in the extension module: values in, values out, no logic.

#include "apps/stencil/simulation.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace lepaute;

void add_stencil(nb::module_& m) {
    nb::class_<stencil::Parameters>(m, "StencilParameters")
        .def(nb::init<>())
        .def_rw("grid", &stencil::Parameters::grid)
        .def_rw("cells", &stencil::Parameters::cells)
        .def_rw("iterations", &stencil::Parameters::iterations)
        .def_rw("periodic", &stencil::Parameters::periodic)
        .def_rw("halo", &stencil::Parameters::halo)
        .def_rw("value_bytes", &stencil::Parameters::value_bytes)
        .def_rw("cell_time_s", &stencil::Parameters::cell_time_s)
        .def_rw("cell_bytes", &stencil::Parameters::cell_bytes)
        .def_rw("node_memory_Bps", &stencil::Parameters::node_memory_Bps)
        .def_rw("noise_relative_sd", &stencil::Parameters::noise_relative_sd)
        .def_rw("allreduce_values", &stencil::Parameters::allreduce_values)
        .def("set_allreduce", [](stencil::Parameters& parameters, int algorithm) {
            parameters.allreduce = static_cast<stencil::Allreduce>(algorithm);
        });
    nb::class_<stencil::Result>(m, "StencilResult")
        .def_ro("time_s", &stencil::Result::time_s)
        .def_ro("messages", &stencil::Result::messages)
        .def_ro("bytes", &stencil::Result::bytes)
        .def_ro("message_use", &stencil::Result::message_use)
        .def_ro("waiting_s", &stencil::Result::waiting_s)
        .def_ro("computing_s", &stencil::Result::computing_s)
        .def_ro("engine_bytes", &stencil::Result::engine_bytes);
    m.def("simulate_stencil", &stencil::simulate, nb::arg("parameters"), nb::arg("machine"), nb::arg("layers"),
          nb::arg("core_of_rank"), nb::arg("seed"), nb::call_guard<nb::gil_scoped_release>());
}
