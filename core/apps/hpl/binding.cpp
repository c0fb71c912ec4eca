#include "apps/hpl/simulation.hpp"

#include "application.hpp"

#include <nanobind/stl/array.h>

namespace nb = nanobind;
using namespace lepaute;

namespace {

/// By rank and phase: messages and bytes.
std::vector<std::vector<std::array<double, 2>>> rank_sent(const hpl::Result& result) {
    std::vector<std::vector<std::array<double, 2>>> all;
    for (const hpl::SentInPhases& phases : result.rank_sent) {
        auto& rank = all.emplace_back();
        for (const hpl::Sent& sent : phases) {
            rank.push_back({static_cast<double>(sent.messages), sent.bytes});
        }
    }
    return all;
}

} // namespace

void bind_hpl(nb::module_& m) {
    nb::class_<hpl::Result, mpi::RunResult>(m, "HplResult")
        .def_ro("simulated_steps", &hpl::Result::simulated_steps)
        .def_ro("sampling_changes_s", &hpl::Result::sampling_changes_s)
        .def_prop_ro("rank_sent", &rank_sent, "By rank and phase (broadcast, swap, solve): messages and bytes.");
    m.def(
        "hpl_broadcast",
        [](std::string_view word, std::uint32_t q) {
            const auto bcast = of_word<hpl::Broadcast>("bcast", word);
            return nb::make_tuple(hpl::broadcast_messages(bcast, q), bcast.in_pieces);
        },
        nb::arg("bcast"), nb::arg("q"), nb::sig("def hpl_broadcast(bcast: str, q: int) -> tuple[int, bool]"),
        "Messages along a row of q processes, and whether they are pieces of the panel, for which nobody probes.");
    m.def(
        "hpl_simulated_steps",
        [](const hpl::Parameters& parameters, bool further) {
            check_all(parameters);
            const hpl::Sample sample = hpl::sample_of(parameters);
            return further && !sample.further.empty() ? hpl::extended(sample).steps : sample.steps;
        },
        nb::arg("parameters"), nb::arg("further") = false,
        "The steps that a run with these parameters simulates; further: with the windows that it may go back for.");
    def_application(m, "HplParameters", "simulate_hpl", hpl::kernel_names, &hpl::simulate);
}
