/* Every kernel that HPL calls, wrapped at link time (-Wl,--wrap=NAME): a clock stamp before and after the real one.
 * With HPL_CALL_CBLAS, HPL's own names of BLAS routines are macros for cblas_*, so those are the symbols to wrap. */
#include "kernel_wraps.h"

#include <hpl.h>

#include "kernel_log.h"
#include "probe_common.h"

bool lep_inside_pdfact = false;

/* `parameters` and `arguments` come in parentheses, since they hold commas. */
#define WRAP_KERNEL(symbol, kernel, m_, n_, k_, parameters, arguments)                                                 \
    void __real_##symbol parameters;                                                                                   \
    void __wrap_##symbol parameters;                                                                                   \
    void __wrap_##symbol parameters {                                                                                  \
        LEP_LOGGED(kernel, (m_), (n_), (k_), __real_##symbol arguments);                                               \
    }

typedef enum CBLAS_ORDER order;
typedef enum CBLAS_TRANSPOSE transpose;
typedef enum CBLAS_UPLO uplo;
typedef enum CBLAS_DIAG diag;
typedef enum CBLAS_SIDE side;

/* NOLINTBEGIN(readability-identifier-naming,readability-avoid-const-params-in-decls): the linker's names, HPL's types
 */

/* HPL's update is NoTrans/NoTrans and Left with one process row, NoTrans/Trans and Right with several; their speeds
 * differ by some per cent, so that each has its name. */
WRAP_KERNEL(cblas_dgemm, tb == CblasNoTrans ? LEP_dgemm_nn : LEP_dgemm, m, n, k,
            (const order layout, const transpose ta, const transpose tb, const int m, const int n, const int k,
             const double alpha, const double *a, const int lda, const double *b, const int ldb, const double beta,
             double *c, const int ldc),
            (layout, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc))

WRAP_KERNEL(cblas_dtrsm, s == CblasLeft ? LEP_dtrsm_left : LEP_dtrsm, m, n, s == CblasLeft ? m : n,
            (const order layout, const side s, const uplo u, const transpose t, const diag d, const int m, const int n,
             const double alpha, const double *a, const int lda, double *b, const int ldb),
            (layout, s, u, t, d, m, n, alpha, a, lda, b, ldb))

WRAP_KERNEL(cblas_dgemv, LEP_dgemv, m, n, 0,
            (const order layout, const transpose t, const int m, const int n, const double alpha, const double *a,
             const int lda, const double *x, const int incx, const double beta, double *y, const int incy),
            (layout, t, m, n, alpha, a, lda, x, incx, beta, y, incy))

WRAP_KERNEL(cblas_dger, LEP_dger, m, n, 0,
            (const order layout, const int m, const int n, const double alpha, const double *x, const int incx,
             const double *y, const int incy, double *a, const int lda),
            (layout, m, n, alpha, x, incx, y, incy, a, lda))

WRAP_KERNEL(cblas_dtrsv, LEP_dtrsv, 0, n, 0,
            (const order layout, const uplo u, const transpose t, const diag d, const int n, const double *a,
             const int lda, double *x, const int incx),
            (layout, u, t, d, n, a, lda, x, incx))

WRAP_KERNEL(cblas_dscal, LEP_dscal, 0, n, 0, (const int n, const double alpha, double *x, const int incx),
            (n, alpha, x, incx))

WRAP_KERNEL(cblas_daxpy, LEP_daxpy, 0, n, 0,
            (const int n, const double alpha, const double *x, const int incx, double *y, const int incy),
            (n, alpha, x, incx, y, incy))

/* The row copies of the pivot search walk through memory with stride lda, one cache line an element; copies within
 * the small work arrays do not. One name for both would be a mixture of two laws. */
void __real_cblas_dcopy(const int n, const double *x, const int incx, double *y, const int incy);
void __wrap_cblas_dcopy(const int n, const double *x, const int incx, double *y, const int incy);
void __wrap_cblas_dcopy(const int n, const double *x, const int incx, double *y, const int incy) {
    if (!lep_inside_pdfact)
        __real_cblas_dcopy(n, x, incx, y, incy);
    else
        LEP_LOGGED(incx == 1 && incy == 1 ? LEP_dcopy_contiguous : LEP_dcopy, 0, n, incx,
                   __real_cblas_dcopy(n, x, incx, y, incy));
}

int __real_cblas_idamax(const int n, const double *x, const int incx);
int __wrap_cblas_idamax(const int n, const double *x, const int incx);
int __wrap_cblas_idamax(const int n, const double *x, const int incx) {
    int index;
    LEP_LOGGED(LEP_idamax, 0, n, 0, index = __real_cblas_idamax(n, x, incx));
    return index;
}

#define WRAP(symbol, kernel, m_, n_, k_, parameters, arguments)                                                        \
    WRAP_KERNEL(symbol, LEP_##kernel, m_, n_, k_, parameters, arguments)
#include "hpl_loops.h"

void lep_panel_is(const HPL_T_panel *panel) {
    lep_work_on(panel);
}

/* NOLINTEND(readability-identifier-naming,readability-avoid-const-params-in-decls) */
