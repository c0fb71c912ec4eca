#include "apps/program/simulation.hpp"

#include "application.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace lepaute;

void bind_program(nb::module_& m) {
    nb::class_<program::Op> op(m, "ProgramOp");
    op.def(
        "__init__",
        [](program::Op* place, std::string_view code, std::string_view algorithm, std::uint32_t peer, std::uint32_t tag,
           std::uint32_t which, double size_m, double size_n, double size_k, std::uint32_t line, double error) {
            new (place) program::Op{.code = of_word<program::Code>("code", code),
                                    .algorithm = of_word<program::Algorithm>("algorithm", algorithm),
                                    .peer = peer,
                                    .tag = tag,
                                    .which = which,
                                    .m = size_m,
                                    .n = size_n,
                                    .k = size_k,
                                    .line = line,
                                    .error = error};
        },
        nb::arg("code"), nb::arg("algorithm"), nb::arg("peer"), nb::arg("tag"), nb::arg("which"), nb::arg("m"),
        nb::arg("n"), nb::arg("k"), nb::arg("line"), nb::arg("error") = 0.0);
    nb::class_<program::RankCode> code(m, "ProgramRankCode");
    code.def(nb::init<std::vector<std::uint32_t>, std::vector<std::array<std::uint32_t, 3>>>(), nb::arg("ops"),
             nb::arg("parts"))
        .def_ro("ops", &program::RankCode::ops)
        .def_ro("parts", &program::RankCode::parts);
    nb::class_<program::List> list(m, "ProgramList");
    list.def(nb::init<std::vector<std::uint32_t>, std::vector<double>>(), nb::arg("numbers"), nb::arg("bytes"));
    nb::class_<program::Came>(m, "ProgramCame")
        .def_ro("request", &program::Came::request)
        .def_ro("source", &program::Came::source)
        .def_ro("tag", &program::Came::tag)
        .def_ro("nth", &program::Came::nth)
        .def_ro("bytes", &program::Came::bytes);
    nb::class_<program::Next>(m, "ProgramNext")
        .def(nb::init<>())
        .def(nb::init<program::Op, program::List, std::vector<std::vector<std::uint32_t>>>(), nb::arg("op"),
             nb::arg("list"), nb::arg("communicators"));
    nb::class_<program::Result, mpi::RunResult>(m, "ProgramResult");
    m.attr("PROGRAM_ANY") = mpi::any;
    m.def(
        "check_program",
        [](const program::Parameters& parameters) {
            check_all(parameters);
            parameters.check_together();
        },
        nb::arg("parameters"), nb::call_guard<nb::gil_scoped_release>(),
        "Raises ValueError where the members of a communicator do not call the same collective operations.");
    def_application(m, "ProgramParameters", "simulate_program", {}, &program::simulate);
    auto parameters = nb::borrow<nb::class_<program::Parameters>>(m.attr("ProgramParameters"));
    parameters.def_rw("next", &program::Parameters::next).def_rw("line_of", &program::Parameters::line_of);
}
