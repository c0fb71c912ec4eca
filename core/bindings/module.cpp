// The extension module lepaute._core: values in, values out, no logic.

#include "apps/hpl/simulation.hpp"
#include "fit.hpp"
#include "models/machine_file.hpp"
#include "topology.hpp"
#include "trace.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace nb = nanobind;
using namespace lepaute;

namespace {

models::Segment segment(double above_bytes, int protocol, double latency_s, double bandwidth_Bps,
                        std::array<double, 2> send, std::array<double, 2> isend, std::array<double, 2> receive,
                        double noise_relative_sd, const std::vector<std::array<double, 3>>& modes) {
    std::vector<models::NoiseMode> noise;
    for (const auto& [weight, mean, sd] : modes) {
        noise.push_back({weight, mean, sd});
    }
    return {above_bytes,
            static_cast<models::Protocol>(protocol),
            latency_s,
            bandwidth_Bps,
            {send[0], send[1]},
            {isend[0], isend[1]},
            {receive[0], receive[1]},
            noise_relative_sd,
            models::centred(noise)};
}

models::KernelPiece piece(std::array<double, 6> where, std::array<double, 6> fitted, models::Coefficients mean,
                          models::Coefficients deviation, int noise, std::vector<int> covariance_terms,
                          std::vector<double> covariance, const std::vector<std::array<double, 3>>& modes) {
    std::vector<rng::Mode> of_mixture;
    for (const auto& [cumulative, mean, deviation] : modes) {
        of_mixture.push_back({cumulative, mean, deviation});
    }
    const auto bounds = [](const std::array<double, 6>& b) {
        return models::Bounds{{b[0], b[1], b[2]}, {b[3], b[4], b[5]}};
    };
    return {bounds(where),
            bounds(fitted),
            mean,
            deviation,
            static_cast<models::Noise>(noise),
            std::move(covariance_terms),
            std::move(covariance),
            std::move(of_mixture)};
}

std::vector<std::string> names_of(std::span<const std::string_view> names) { return {names.begin(), names.end()}; }

} // namespace

void add_draws(nb::module_& m);   // draws.cpp
void add_stencil(nb::module_& m); // stencil.cpp

NB_MODULE(_core, m) {
    m.doc() = "The C++ core of Lepaute.";
    m.def("kernel_names", [] { return names_of(models::kernel_names()); });
    m.def("term_names", [] { return names_of(models::term_names()); });

    bind_topology(m);
    bind_fit(m);
    nb::class_<models::Segment>(m, "Segment")
        .def_static("make", &segment, nb::arg("above_bytes"), nb::arg("protocol"), nb::arg("latency_s"),
                    nb::arg("bandwidth_Bps"), nb::arg("send"), nb::arg("isend"), nb::arg("receive"),
                    nb::arg("noise_relative_sd"), nb::arg("modes"));
    nb::class_<models::KernelPiece>(m, "KernelPiece")
        .def_static("make", &piece, nb::arg("where"), nb::arg("fitted"), nb::arg("mean"), nb::arg("deviation"),
                    nb::arg("noise"), nb::arg("covariance_terms"), nb::arg("covariance"),
                    nb::arg("modes") = std::vector<std::array<double, 3>>{});
    nb::class_<models::KernelModel>(m, "KernelModel").def(nb::init<std::vector<models::KernelPiece>>());
    nb::class_<models::Machine>(m, "Machine")
        .def(nb::init<>())
        .def_rw("nodes", &models::Machine::nodes)
        .def_rw("cores_per_node", &models::Machine::cores_per_node)
        .def_rw("cpus_per_node", &models::Machine::cpus_per_node)
        .def_rw("cpu_is_core_modulo", &models::Machine::cpu_is_core_modulo)
        .def_rw("day_common_relative_sd", &models::Machine::day_common_relative_sd)
        .def_rw("day_cpu_relative_sd", &models::Machine::day_cpu_relative_sd)
        .def_rw("day_degrees_of_freedom", &models::Machine::day_degrees_of_freedom)
        .def_rw("episode_relative_sd", &models::Machine::episode_relative_sd)
        .def_rw("episode_s", &models::Machine::episode_s)
        .def("set_kernel",
             [](models::Machine& machine, std::size_t kernel, std::vector<models::KernelModel> per_cpu,
                double discrepancy, double crowding) {
                 machine.kernels.at(kernel) = std::move(per_cpu);
                 machine.discrepancy_relative_sd.at(kernel) = discrepancy;
                 machine.crowding.at(kernel) = crowding;
             })
        .def("set_fitted_sizes", // of loopback, remote, and the same noncontiguous: lowest and highest, in bytes
             [](models::Machine& machine, const std::array<std::array<double, 2>, models::link_class_count>& sizes) {
                 models::Network& network = machine.network;
                 std::size_t at = 0;
                 for (models::NetworkClass* links : {&network.loopback, &network.remote,
                                                     &network.loopback_noncontiguous, &network.remote_noncontiguous}) {
                     links->fitted_low_bytes = sizes[at][0];
                     links->fitted_high_bytes = sizes[at][1];
                     ++at;
                 }
             })
        .def("text", &models::machine_text)
        .def("set_topology",
             [](models::Machine& machine, const net::Topology& topology) { machine.topology = topology; })
        .def("set_network",
             [](models::Machine& machine, std::vector<models::Segment> loopback, std::vector<models::Segment> remote,
                std::vector<models::Segment> loopback_noncontiguous, std::vector<models::Segment> remote_noncontiguous,
                bool scale, bool exact_sharing, double node_link_Bps, double loopback_Bps, bool loopback_shared,
                double iprobe_s, bool iprobe_looks_first) {
                 machine.network = {{std::move(loopback)},
                                    {std::move(remote)},
                                    {std::move(loopback_noncontiguous)},
                                    {std::move(remote_noncontiguous)},
                                    scale ? models::FlowFactor::scale : models::FlowFactor::bound,
                                    exact_sharing,
                                    node_link_Bps,
                                    loopback_Bps,
                                    loopback_shared,
                                    iprobe_s,
                                    iprobe_looks_first};
             });

    nb::class_<models::Layers>(m, "Layers")
        .def(nb::init<>())
        .def_rw("coefficients", &models::Layers::coefficients)
        .def_rw("days", &models::Layers::days)
        .def_rw("discrepancy", &models::Layers::discrepancy)
        .def_rw("noise", &models::Layers::noise);

    nb::class_<models::Size>(m, "Size")
        .def_ro("m", &models::Size::m)
        .def_ro("n", &models::Size::n)
        .def_ro("k", &models::Size::k);
    nb::class_<models::KernelUse>(m, "KernelUse")
        .def_ro("calls", &models::KernelUse::calls)
        .def_ro("unmodelled_calls", &models::KernelUse::unmodelled_calls)
        .def_ro("clipped_means", &models::KernelUse::clipped_means)
        .def_ro("clipped_deviations", &models::KernelUse::clipped_deviations)
        .def_ro("time_s", &models::KernelUse::time_s)
        .def_ro("extrapolated_time_s", &models::KernelUse::extrapolated_time_s)
        .def_ro("outside_low", &models::KernelUse::outside_low)
        .def_ro("outside_high", &models::KernelUse::outside_high);
    nb::class_<models::MessageUse>(m, "MessageUse")
        .def_ro("messages", &models::MessageUse::messages)
        .def_ro("outside_messages", &models::MessageUse::outside_messages)
        .def_ro("bytes", &models::MessageUse::bytes)
        .def_ro("outside_bytes", &models::MessageUse::outside_bytes)
        .def_ro("time_s", &models::MessageUse::time_s)
        .def_ro("outside_time_s", &models::MessageUse::outside_time_s)
        .def_ro("outside_low_bytes", &models::MessageUse::outside_low_bytes)
        .def_ro("outside_high_bytes", &models::MessageUse::outside_high_bytes);
    nb::class_<hpl::Result> result(m, "HplResult");
    bind_trace(m, result);
    result.def_ro("time_s", &hpl::Result::time_s)
        .def_ro("simulated_steps", &hpl::Result::simulated_steps)
        .def_ro("sampling_error_s", &hpl::Result::sampling_error_s)
        .def_ro("messages", &hpl::Result::messages)
        .def_ro("bytes", &hpl::Result::bytes)
        .def_ro("message_use", &hpl::Result::message_use)
        .def_ro("waiting_s", &hpl::Result::waiting_s)
        .def_ro("engine_bytes", &hpl::Result::engine_bytes)
        .def_prop_ro("rank_sent",
                     [](const hpl::Result& result) { // rank x phase x (messages, bytes)
                         std::vector<std::vector<std::array<double, 2>>> all;
                         for (const hpl::SentInPhases& phases : result.rank_sent) {
                             auto& rank = all.emplace_back();
                             for (const hpl::Sent& sent : phases) {
                                 rank.push_back({static_cast<double>(sent.messages), sent.bytes});
                             }
                         }
                         return all;
                     })
        .def_prop_ro("kernels", [](const hpl::Result& result) {
            return std::vector<models::KernelUse>(result.kernels.begin(), result.kernels.end());
        });
    nb::class_<hpl::Parameters>(m, "HplParameters")
        .def(nb::init<>())
        .def_rw("n", &hpl::Parameters::n)
        .def_rw("nb", &hpl::Parameters::nb)
        .def_rw("p", &hpl::Parameters::p)
        .def_rw("q", &hpl::Parameters::q)
        .def_rw("depth", &hpl::Parameters::depth)
        .def_rw("nbmin", &hpl::Parameters::nbmin)
        .def_rw("ndiv", &hpl::Parameters::ndiv)
        .def_rw("row_major", &hpl::Parameters::row_major)
        .def_rw("swap_threshold", &hpl::Parameters::swap_threshold)
        .def_rw("l1_transposed", &hpl::Parameters::l1_transposed)
        .def_rw("u_transposed", &hpl::Parameters::u_transposed)
        .def_rw("equilibrate", &hpl::Parameters::equilibrate)
        .def_rw("alignment", &hpl::Parameters::alignment)
        .def_rw("copy_l", &hpl::Parameters::copy_l)
        .def_rw("pivots", &hpl::Parameters::pivots)
        .def_rw("sampled", &hpl::Parameters::sampled)
        .def_prop_rw(
            "windows",
            [](const hpl::Parameters& p) {
                return std::array<std::int64_t, 3>{p.windows.count, p.windows.warm_up, p.windows.measured};
            },
            [](hpl::Parameters& p, std::array<std::int64_t, 3> windows) {
                p.windows = {static_cast<std::uint32_t>(windows[0]), windows[1], windows[2]};
            })
        .def_rw("first_row_pivots", &hpl::Parameters::first_row_pivots)
        .def("set_algorithms", [](hpl::Parameters& p, int broadcast, int pfact, int rfact, int swap) {
            p.broadcast = static_cast<hpl::Broadcast>(broadcast);
            p.pfact = static_cast<hpl::Factorisation>(pfact);
            p.rfact = static_cast<hpl::Factorisation>(rfact);
            p.swap = static_cast<hpl::Swap>(swap);
        });
    m.def(
        "simulate_hpl",
        [](const hpl::Parameters& parameters, const models::Machine& machine, const models::Layers& layers,
           const std::vector<std::uint32_t>& core_of_rank, std::uint64_t seed,
           const std::optional<std::vector<std::uint32_t>>& trace_ranks,
           const std::optional<std::vector<std::uint32_t>>& trace_steps) {
            return hpl::simulate(parameters, machine, layers, core_of_rank, seed,
                                 wanted_trace(parameters, trace_ranks, trace_steps));
        },
        nb::arg("parameters"), nb::arg("machine"), nb::arg("layers"), nb::arg("core_of_rank"), nb::arg("seed"),
        nb::arg("trace_ranks") = nb::none(), nb::arg("trace_steps") = nb::none(),
        nb::call_guard<nb::gil_scoped_release>());
    add_draws(m);
    add_stencil(m);
}
