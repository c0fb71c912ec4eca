// HPL's own loops as their models, in the place of what HPL has under the same names.

#include "kernels.hpp"
#include "rng/philox.hpp"

extern "C" {
#include <hpl.h>

#define WRAP(symbol, kernel, m_, n_, k_, parameters, arguments)                                                        \
    void symbol parameters {                                                                                           \
        lepaute::simblas::charge_kernel(lepaute::hpl::Kernel::kernel,                                                  \
                                        {static_cast<double>(m_), static_cast<double>(n_), static_cast<double>(k_)});  \
    }
// NOLINTBEGIN(readability-identifier-naming,readability-avoid-const-params-in-decls,misc-unused-parameters): HPL's own
#include "hpl_loops.h"

/* What HPL does between its kernels, and asks for once a panel and once an update. */

void __real_HPL_pdfact(HPL_T_panel* panel);
void __wrap_HPL_pdfact(HPL_T_panel* panel);
void __wrap_HPL_pdfact(HPL_T_panel* panel) {
    lep_work_on(panel);
    if (panel->grid->mycol == panel->pcol && panel->jb > 0) {
        lepaute::simblas::charge_kernel(lepaute::hpl::Kernel::pdfact_glue,
                                        {static_cast<double>(panel->mp), static_cast<double>(panel->jb), 0.0});
    }
    __real_HPL_pdfact(panel);
}

#define UPDATE(form)                                                                                                   \
    void __real_HPL_pdupdate##form(HPL_T_panel* waiting, int* flag, HPL_T_panel* panel, const int columns);            \
    void __wrap_HPL_pdupdate##form(HPL_T_panel* waiting, int* flag, HPL_T_panel* panel, const int columns);            \
    void __wrap_HPL_pdupdate##form(HPL_T_panel* waiting, int* flag, HPL_T_panel* panel, const int columns) {           \
        lep_work_on(panel);                                                                                            \
        const int width = columns < 0 ? panel->nq : Mmin(columns, panel->nq);                                          \
        if (width > 0 && panel->jb > 0) {                                                                              \
            lepaute::simblas::charge_kernel(lepaute::hpl::Kernel::pdupdate_glue,                                       \
                                            {static_cast<double>(panel->jb), static_cast<double>(width), 0.0});        \
        }                                                                                                              \
        __real_HPL_pdupdate##form(waiting, flag, panel, columns);                                                      \
    }
UPDATE(TT)
UPDATE(TN)
UPDATE(NT)
UPDATE(NN)

} // extern "C"

namespace {

std::uint64_t pivot_seed = 1;
bool pivots_are_random = true;

constexpr std::uint32_t pivot_stream = 0x50495600U; // that of the native engine, so that the same rows move

/// One of `rows` rows, drawn for `column`.
int drawn(int column, int rows) {
    const double u = lepaute::rng::uniform({pivot_seed, 0, pivot_stream, static_cast<std::uint64_t>(column)});
    return static_cast<int>(u * static_cast<double>(rows));
}

} // namespace

extern "C" {

void lepaute_hpl_pivots(unsigned long seed, int random) {
    pivot_seed = seed;
    pivots_are_random = random != 0;
}

/// The program begins to solve, with `columns` of the matrix in this process.
void lepaute_hpl_begins(const HPL_T_grid* grid, const HPL_T_palg* algorithm, const HPL_T_pmat* matrix, int columns) {
    using lepaute::hpl::Kernel;
    if (lepaute::simblas::state().day->models(Kernel::first_touch)) {
        const std::int64_t bytes = lepaute::hpl::first_touched_bytes(Mmin(matrix->nb, matrix->n), matrix->mp, columns,
                                                                     grid->nprow, grid->npcol, algorithm->depth);
        lepaute::simblas::charge_kernel(Kernel::first_touch, {0.0, static_cast<double>(bytes), 0.0});
    }
}

/// The largest entry of a column in the rows of this process. Nothing is computed, so it is said to be where the drawn
/// pivot is, uniform among the rows not yet factored as for a random matrix: its owner claims 1, all others less. Of
/// equal claims HPL takes that of the first process row.
void HPL_dlocmax(HPL_T_panel* panel, const int n, const int ii, const int jj, double* work) {
    if (n <= 0) {
        work[0] = work[1] = work[2] = 0.0;
        work[3] = panel->grid->nprow;
        return;
    }
    lepaute::simblas::charge_kernel(lepaute::hpl::Kernel::idamax, {0.0, static_cast<double>(n), 0.0});
    const int row = panel->grid->myrow;
    const int rows = panel->grid->nprow;
    const int nb = panel->nb;
    const int column = panel->ia + jj;
    int local = pivots_are_random ? 0 : drawn(column, n);
    double claim = 0.5;
    if (pivots_are_random) {
        const int pivot = column + drawn(column, panel->pmat->n - column);
        if (pivot / nb % rows == row) {
            local = pivot / nb / rows * nb + pivot % nb - panel->ii - ii;
            claim = 1.0;
        }
    }
    const int held = panel->ii + ii + local;
    work[0] = claim;
    work[1] = local;
    work[2] = (held / nb * rows + row) * nb + held % nb;
    work[3] = row;
}

} // extern "C"
// NOLINTEND(readability-identifier-naming,readability-avoid-const-params-in-decls,misc-unused-parameters)
