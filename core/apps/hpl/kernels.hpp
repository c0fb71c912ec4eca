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
    first_touch,   // of memory that the program has not written before; nor need it have this
    count
};

/// In the order of Kernel.
inline constexpr std::array<std::string_view, static_cast<std::size_t>(Kernel::count)> kernel_names = {
    "dgemm",     "dgemm_nn",  "dtrsm",     "dtrsm_left",  "dgemv",         "dger",       "dtrsv",     "dscal",
    "idamax",    "daxpy",     "dcopy",     "dlocswp",     "dlaswp00N",     "dlaswp01T",  "dlaswp02N", "dlaswp03T",
    "dlaswp04T", "dlaswp05T", "dlaswp06T", "dlaswp10N",   "dlatcpy",       "dlacpy",     "dlaswp01N", "dlaswp03N",
    "dlaswp04N", "dlaswp05N", "dlaswp06N", "pdfact_glue", "pdupdate_glue", "first_touch"};

inline constexpr models::KernelSet kernels{.names = kernel_names};

/// Bytes of the solver's workspaces on a rank, which the system gives out page by page when they are first written (the
/// matrix was written before the clock starts). rows, columns: of the rank's part of the matrix.
[[nodiscard]] constexpr std::int64_t first_touched_bytes(std::int64_t nb, std::int64_t rows, std::int64_t columns,
                                                         std::int64_t p, std::int64_t q, std::int64_t depth) noexcept {
    std::int64_t wide = nb + columns; // the triangle of a panel, and what BLAS packs of the update
    if (q > 1) {                      // panels that come from other process columns
        wide += (depth + 1) * rows;
    }
    if (p > 1) { // U, and the rows on their way to it
        wide += 2 * columns;
    }
    return static_cast<std::int64_t>(sizeof(double)) * nb * wide;
}

} // namespace lepaute::hpl
