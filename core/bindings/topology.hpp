#pragma once
// Bindings of net::Topology, in a file of their own; called by the module.

#include <nanobind/nanobind.h>

void bind_topology(nanobind::module_& m);
