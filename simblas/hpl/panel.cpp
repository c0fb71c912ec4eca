// Memory of a panel: nothing is computed, so only its pivots need memory of their own.

extern "C" {
#include <hpl.h>

void lepaute_fold_next(size_t before, size_t from, size_t to);

// NOLINTBEGIN(readability-identifier-naming,readability-avoid-const-params-in-decls): the linker's names
void __real_HPL_pdpanel_init(HPL_T_grid* grid, HPL_T_palg* algorithm, const int m, const int n, const int width,
                             HPL_T_pmat* matrix, const int row, const int column, const int tag, HPL_T_panel* panel);
void __wrap_HPL_pdpanel_init(HPL_T_grid* grid, HPL_T_palg* algorithm, const int m, const int n, const int width,
                             HPL_T_pmat* matrix, const int row, const int column, const int tag, HPL_T_panel* panel);
int __real_HPL_packL(HPL_T_panel* panel, const int index, const int length, const int buffer);
int __wrap_HPL_packL(HPL_T_panel* panel, const int index, const int length, const int buffer);
}

namespace {

/// Rows of L2, the part of the panel below its first block, that this process holds.
size_t rows_below(const HPL_T_grid* grid, int m, int width, const HPL_T_pmat* matrix, int row) {
    const int local = HPL_numrocI(m, row, matrix->nb, matrix->nb, grid->myrow, 0, grid->nprow);
    const bool owner = row / matrix->nb % grid->nprow == grid->myrow;
    const int below = owner ? local - width : local;
    return below > 0 ? static_cast<size_t>(below) : 0;
}

} // namespace

extern "C" {

/// The workspace holds L2 (except where the matrix itself has it), L1, the pivots and U. A process that has the panel's
/// L2 in the matrix gets that much memory before the workspace: the broadcast then is one piece everywhere.
void __wrap_HPL_pdpanel_init(HPL_T_grid* grid, HPL_T_palg* algorithm, const int m, const int n, const int width,
                             HPL_T_pmat* matrix, const int row, const int column, const int tag, HPL_T_panel* panel) {
    const size_t l2 = rows_below(grid, m, width, matrix, row) * static_cast<size_t>(width) * sizeof(double);
    const size_t l1 = static_cast<size_t>(width) * static_cast<size_t>(width) * sizeof(double);
#ifdef HPL_COPY_L
    const bool reuses = grid->npcol == 1;
#else
    const bool reuses = grid->npcol == 1 || column / matrix->nb % grid->npcol == grid->mycol;
#endif
    const size_t pivots = (static_cast<size_t>(width) + 1 + static_cast<size_t>(algorithm->align)) * sizeof(double);
    const size_t from = l1 + (reuses ? 0 : l2);
    lepaute_fold_next(reuses ? l2 : 0, from, from + pivots);
    __real_HPL_pdpanel_init(grid, algorithm, m, n, width, matrix, row, column, tag, panel);
    lepaute_fold_next(0, 0, 0); // a small workspace is not folded, and then nothing was taken
}

/// The whole panel is sent as one piece that ends where the pivots end: as many bytes as the pieces of A have together.
int __wrap_HPL_packL(HPL_T_panel* panel, const int index, const int length, const int buffer) {
    if (index != 0 || length != panel->len) {
        return __real_HPL_packL(panel, index, length, buffer);
    }
    panel->buffers[buffer] = reinterpret_cast<void***>(panel->DINFO + 1 - length);
    panel->counts[buffer] = 1;
    const int error = MPI_Type_contiguous(length, MPI_DOUBLE, &panel->dtypes[buffer]);
    return error == MPI_SUCCESS ? MPI_Type_commit(&panel->dtypes[buffer]) : error;
}
// NOLINTEND(readability-identifier-naming,readability-avoid-const-params-in-decls)

} // extern "C"
