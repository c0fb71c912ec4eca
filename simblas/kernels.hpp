#pragma once
// Kernels by their name in the platform, for replacements of an application's own functions.

#include "state.hpp"

namespace lepaute::simblas {

/// The rank that runs now calls `kernel`; one without a model costs nothing and is counted.
void charge_kernel(models::KernelNumber kernel, const models::Size& size);
void charge_kernel(Rank& rank, models::KernelNumber kernel, const models::Size& size);

/// Notes a call that begins now and takes `seconds`, where a trace is asked for; `code`: a kernel, or the number
/// of kernels and a routine.
void log_call(const Rank& rank, int code, double seconds, const models::Size& size);

} // namespace lepaute::simblas
