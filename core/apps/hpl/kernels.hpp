#pragma once
// The kernels that HPL calls. Their numbers choose the streams of draws: a new one goes to the end.

#include "models/machine.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lepaute::hpl {

enum class Kernel : std::uint8_t {
    dgemm,      // the second matrix transposed
    dgemm_nn,   // not transposed
    dtrsm,      // the triangle on the right
    dtrsm_left, // on the left
    dgemv,
    dger,
    dtrsv,
    dscal,
    idamax,
    daxpy,
    dcopy,
    dlocswp,
    dlaswp00N,
    dlaswp01T,
    dlaswp02N,
    dlaswp03T,
    dlaswp04T,
    dlaswp05T,
    dlaswp06T,
    dlaswp10N,
    dlatcpy,
    dlacpy,
    dlaswp01N, // those of U not transposed
    dlaswp03N,
    dlaswp04N,
    dlaswp05N,
    dlaswp06N,
    pdfact_glue,
    pdupdate_glue, // what the program does between the kernels; a platform need not have them
    count
};

/// In the order of Kernel.
inline constexpr std::array<std::string_view, static_cast<std::size_t>(Kernel::count)> kernel_names = {
    "dgemm",     "dgemm_nn",  "dtrsm",     "dtrsm_left",  "dgemv",        "dger",      "dtrsv",     "dscal",
    "idamax",    "daxpy",     "dcopy",     "dlocswp",     "dlaswp00N",    "dlaswp01T", "dlaswp02N", "dlaswp03T",
    "dlaswp04T", "dlaswp05T", "dlaswp06T", "dlaswp10N",   "dlatcpy",      "dlacpy",    "dlaswp01N", "dlaswp03N",
    "dlaswp04N", "dlaswp05N", "dlaswp06N", "pdfact_glue", "pdupdate_glue"};

inline constexpr models::KernelSet kernels{.names = kernel_names};

} // namespace lepaute::hpl
