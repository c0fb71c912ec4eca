// The extension module lepaute._core: values in, values out, no logic.

#include "applications.hpp" // by CMake: each folder of core/apps, bound by bind_<name>() of its binding.cpp

#include <nanobind/nanobind.h>

namespace nb = nanobind;

void bind_topology(nb::module_& m);
void bind_models(nb::module_& m);
void bind_run(nb::module_& m);
void bind_draws(nb::module_& m);
void bind_fit(nb::module_& m);
void bind_algebra(nb::module_& m);
void bind_change_evidence(nb::module_& m);
#define DECLARE(name) void bind_##name(nb::module_& m);
LEPAUTE_APPLICATIONS(DECLARE)

NB_MODULE(_core, m) {
    m.doc() = "The C++ core of Lepaute.";
    bind_topology(m);
    bind_models(m);
    bind_run(m);
    bind_draws(m);
    bind_fit(m);
    bind_algebra(m);
    bind_change_evidence(m);
#define BIND(name) bind_##name(m);
    LEPAUTE_APPLICATIONS(BIND)
}
