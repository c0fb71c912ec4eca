#include "apps/stencil/simulation.hpp"

#include "application.hpp"

#include <nanobind/stl/array.h>

void bind_stencil(nanobind::module_& m) {
    def_application(m, "StencilParameters", "simulate_stencil", lepaute::stencil::kernel_names,
                    &lepaute::stencil::simulate);
}
