// A machine and the models of its kernels and of its network.

#include "fields.hpp"
#include "models/machine_file.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>

namespace nb = nanobind;
using namespace lepaute;

namespace {

template <class Value>
nb::class_<Value> bind_struct(nb::module_& m, const char* name) {
    nb::class_<Value> bound(m, name);
    bound.def(nb::init<>());
    def_fields(bound);
    return bound;
}

void bind_kernels(nb::module_& m) {
    m.def(
        "term_names", [] { return models::term_names; }, "Terms of a polynomial, in the order of its coefficients.");
    bind_struct<models::Size>(m, "Size").def(nb::init<double, double, double>(), nb::arg("m"), nb::arg("n"),
                                             nb::arg("k"));
    bind_struct<models::Bounds>(m, "Bounds")
        .def(nb::init<models::Size, models::Size>(), nb::arg("low"), nb::arg("high"));
    nb::class_<rng::Mode>(m, "Mode").def(nb::init<double, double, double>(), nb::arg("cumulative"), nb::arg("mean"),
                                         nb::arg("deviation"));
    bind_struct<models::KernelPiece>(m, "KernelPiece");
    nb::class_<models::KernelModel>(m, "KernelModel")
        .def(nb::init<std::vector<models::KernelPiece>>(), nb::arg("pieces"))
        .def(
            "distance",
            [](const models::KernelModel& model, const models::Size& size) {
                check_all(model);
                check_all(size);
                return model.distance(size);
            },
            nb::arg("size"), "How far a call of that size is outside of what its piece was fitted to.");
    nb::class_<models::Distance>(m, "Distance", "Outside of what a model was fitted to, by parameter: m, n, k.")
        .def_ro("log", &models::Distance::log)
        .def_ro("varied", &models::Distance::varied);
    m.def("extrapolation_slope", &models::extrapolation_slope, nb::arg("matrix_product"), nb::arg("varied"),
          nb::arg("above"), "Relative standard deviation of a kernel's model per unit of distance in one parameter.");
    bind_struct<models::CrowdingPoint>(m, "CrowdingPoint")
        .def(nb::init<double, double>(), nb::arg("share"), nb::arg("increase"));
    bind_struct<models::MachineKernel>(m, "MachineKernel");
    nb::class_<models::KernelUse>(m, "KernelUse")
        .def_ro("calls", &models::KernelUse::calls)
        .def_ro("unmodelled_calls", &models::KernelUse::unmodelled_calls)
        .def_ro("clipped_means", &models::KernelUse::clipped_means)
        .def_ro("clipped_deviations", &models::KernelUse::clipped_deviations)
        .def_ro("time_s", &models::KernelUse::time_s)
        .def_ro("extrapolated_time_s", &models::KernelUse::extrapolated_time_s)
        .def_ro("outside_low", &models::KernelUse::outside_low)
        .def_ro("outside_high", &models::KernelUse::outside_high);
}

void bind_network(nb::module_& m) {
    bind_struct<models::Overhead>(m, "Overhead")
        .def(nb::init<double, double>(), nb::arg("intercept_s"), nb::arg("per_byte_s"));
    nb::class_<models::NoiseMode>(m, "NoiseMode")
        .def(nb::init<double, double, double>(), nb::arg("weight"), nb::arg("mean"), nb::arg("sd"));
    bind_struct<models::NoiseMixture>(m, "NoiseMixture")
        .def_static(
            "centred", [](const std::vector<models::NoiseMode>& modes) { return models::centred(modes); },
            nb::arg("modes"), "The mixture whose mean factor is 1.");
    bind_struct<models::Segment>(m, "Segment");
    bind_struct<models::NetworkClass>(m, "NetworkClass");
    bind_struct<models::Network>(m, "Network");
    nb::class_<models::MessageUse>(m, "MessageUse", "Messages of one class of links; times are of messages alone.")
        .def_ro("messages", &models::MessageUse::messages)
        .def_ro("outside_messages", &models::MessageUse::outside_messages)
        .def_ro("bytes", &models::MessageUse::bytes)
        .def_ro("outside_bytes", &models::MessageUse::outside_bytes)
        .def_ro("time_s", &models::MessageUse::time_s)
        .def_ro("outside_time_s", &models::MessageUse::outside_time_s)
        .def_ro("outside_low_bytes", &models::MessageUse::outside_low_bytes)
        .def_ro("outside_high_bytes", &models::MessageUse::outside_high_bytes);
}

} // namespace

void bind_models(nb::module_& m) {
    bind_kernels(m);
    bind_network(m);
    bind_struct<models::NodeGroup>(m, "NodeGroup");
    bind_struct<models::Machine>(m, "Machine")
        .def("copy", [](const models::Machine& machine) { return machine; })
        .def_rw("topology", &models::Machine::topology)
        .def("text", &models::machine_text, "The machine, but for its topology, as simblas reads it.");
    bind_struct<models::Layers>(m, "Layers");
    m.def(
        "message_factor",
        [](const std::string& link_class, double relative_sd, std::uint64_t seed) {
            check_relative_sd("relative_sd", relative_sd);
            return models::message_factor(of_word<models::LinkClass>("link_class", link_class), relative_sd, seed);
        },
        nb::arg("link_class"), nb::arg("relative_sd"), nb::arg("seed"),
        "The factor, of that standard deviation, on transfers or overheads of a class of links in the run of that "
        "seed.");
}
