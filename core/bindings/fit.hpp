#pragma once
#include <nanobind/nanobind.h>

void bind_fit(nanobind::module_& m);
