#pragma once
#include "apps/hpl/simulation.hpp"

#include <nanobind/nanobind.h>

#include <optional>
#include <vector>

/// What is to be traced: nothing without ranks; all steps without steps.
lepaute::mpi::Trace wanted_trace(const lepaute::hpl::Parameters& parameters,
                                 const std::optional<std::vector<std::uint32_t>>& ranks,
                                 const std::optional<std::vector<std::uint32_t>>& steps);
void bind_trace(nanobind::module_& m, nanobind::class_<lepaute::hpl::Result>& result);
