#pragma once
// Kernels by their name in the platform, for replacements of an application's own functions.

#include "state.hpp"

#include <string_view>

namespace lepaute::simblas {

/// The rank that runs now calls `kernel`; one without a model costs nothing and is counted.
void charge_kernel(models::Kernel kernel, const models::Size& size);
void charge_kernel(Rank& rank, models::Kernel kernel, const models::Size& size);

/// Notes a call that begins now and takes `seconds`, where a trace is asked for.
void log_kernel(const Rank& rank, std::string_view name, double seconds, const models::Size& size);

} // namespace lepaute::simblas
