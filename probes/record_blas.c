/* BLAS, C and Fortran interface, every precision: a clock stamp before and after the real one. What m, n and k of a
 * kernel are is in docs/reference/platform_file.md.
 *
 * Whole numbers passed by value are declared as long: a register or a slot of the stack holds 64 bits whichever of the
 * two sizes of integer the library was built for, and is handed on as it is. */
#include "record_inside.h"

typedef long blas_int;

enum { COLUMN_MAJOR = 102, NO_TRANSPOSE = 111, LEFT = 141 };

/* `which` chooses between two names: the two forms of dgemm and dtrsm in HPL's update differ in speed, and a copy that
 * walks through memory with a stride is another kernel than one that does not.
 * `parameters` and `arguments` come in parentheses, since they hold commas. */
#define TIMED(result, keep, give, symbol, name0, name1, which, m_, n_, k_, parameters, arguments)                      \
    LEP_EXPORT result symbol parameters;                                                                               \
    result symbol parameters {                                                                                         \
        static __typeof__(symbol) *real;                                                                               \
        static const char *const names[] = {name0, name1};                                                             \
        static int codes[2];                                                                                           \
        if (!real)                                                                                                     \
            real = (__typeof__(real))lep_next_symbol(#symbol);                                                         \
        if (lep_no_work((int)(n_)) || !lep_recording || !lep_call_begin())                                             \
            return real arguments;                                                                                     \
        int64_t start_ns = lep_starts();                                                                               \
        keep real arguments;                                                                                           \
        int64_t end_ns = lep_clock_ns();                                                                               \
        int one = (which) ? 1 : 0;                                                                                     \
        int code = lep_code(&codes[one], LEP_RECORD_KERNEL, names[one]);                                               \
        lep_write_kernel(code, start_ns, end_ns, (int)(m_), (int)(n_), (int)(k_));                                     \
        lep_kernel_ended(end_ns);                                                                                      \
        lep_call_end();                                                                                                \
        give;                                                                                                          \
    }

#define NOTHING
#define WRAP(symbol, name0, name1, which, m, n, k, parameters, arguments)                                              \
    TIMED(void, NOTHING, return, symbol, name0, name1, which, m, n, k, parameters, arguments)
#define WRAP_RESULT(result, symbol, name, n, k, parameters, arguments)                                                 \
    TIMED(result, result value =, return value, symbol, name, name, 0, 0, n, k, parameters, arguments)

/* NOLINTBEGIN(readability-identifier-naming): the names of the BLAS */

/* With the rows stored one after another, the library computes the transposed product: its second matrix is A. */
static bool second_plain(int layout, int ta, int tb) {
    return (layout == COLUMN_MAJOR ? tb : ta) == NO_TRANSPOSE;
}

#define CBLAS(x, scalar, suffix)                                                                                       \
    WRAP(cblas_##x##gemm##suffix, #x "gemm", #x "gemm_nn", second_plain(layout, ta, tb), m, n, k,                      \
         (int layout, int ta, int tb, blas_int m, blas_int n, blas_int k, scalar alpha, const void *a, blas_int lda,   \
          const void *b, blas_int ldb, scalar beta, void *c, blas_int ldc),                                            \
         (layout, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc))                                               \
    WRAP(cblas_##x##trsm##suffix, #x "trsm", #x "trsm_left", side == LEFT, m, n, side == LEFT ? m : n,                 \
         (int layout, int side, int uplo, int trans, int diag, blas_int m, blas_int n, scalar alpha, const void *a,    \
          blas_int lda, void *b, blas_int ldb),                                                                        \
         (layout, side, uplo, trans, diag, m, n, alpha, a, lda, b, ldb))                                               \
    WRAP(cblas_##x##trmm##suffix, #x "trmm", #x "trmm_left", side == LEFT, m, n, side == LEFT ? m : n,                 \
         (int layout, int side, int uplo, int trans, int diag, blas_int m, blas_int n, scalar alpha, const void *a,    \
          blas_int lda, void *b, blas_int ldb),                                                                        \
         (layout, side, uplo, trans, diag, m, n, alpha, a, lda, b, ldb))                                               \
    WRAP(cblas_##x##symm##suffix, #x "symm", #x "symm_left", side == LEFT, m, n, side == LEFT ? m : n,                 \
         (int layout, int side, int uplo, blas_int m, blas_int n, scalar alpha, const void *a, blas_int lda,           \
          const void *b, blas_int ldb, scalar beta, void *c, blas_int ldc),                                            \
         (layout, side, uplo, m, n, alpha, a, lda, b, ldb, beta, c, ldc))                                              \
    WRAP(cblas_##x##syrk##suffix, #x "syrk", "", 0, n, n, k,                                                           \
         (int layout, int uplo, int trans, blas_int n, blas_int k, scalar alpha, const void *a, blas_int lda,          \
          scalar beta, void *c, blas_int ldc),                                                                         \
         (layout, uplo, trans, n, k, alpha, a, lda, beta, c, ldc))                                                     \
    WRAP(cblas_##x##gemv##suffix, #x "gemv", "", 0, m, n, 0,                                                           \
         (int layout, int trans, blas_int m, blas_int n, scalar alpha, const void *a, blas_int lda, const void *v,     \
          blas_int incx, scalar beta, void *y, blas_int incy),                                                         \
         (layout, trans, m, n, alpha, a, lda, v, incx, beta, y, incy))                                                 \
    WRAP(cblas_##x##trsv##suffix, #x "trsv", "", 0, 0, n, 0,                                                           \
         (int layout, int uplo, int trans, int diag, blas_int n, const void *a, blas_int lda, void *v, blas_int incx), \
         (layout, uplo, trans, diag, n, a, lda, v, incx))                                                              \
    WRAP(cblas_##x##trmv##suffix, #x "trmv", "", 0, 0, n, 0,                                                           \
         (int layout, int uplo, int trans, int diag, blas_int n, const void *a, blas_int lda, void *v, blas_int incx), \
         (layout, uplo, trans, diag, n, a, lda, v, incx))                                                              \
    WRAP(cblas_##x##scal##suffix, #x "scal", "", 0, 0, n, 0, (blas_int n, scalar alpha, void *v, blas_int incx),       \
         (n, alpha, v, incx))                                                                                          \
    WRAP(cblas_##x##axpy##suffix, #x "axpy", "", 0, 0, n, 0,                                                           \
         (blas_int n, scalar alpha, const void *v, blas_int incx, void *y, blas_int incy),                             \
         (n, alpha, v, incx, y, incy))                                                                                 \
    WRAP(cblas_##x##copy##suffix, #x "copy", #x "copy_contiguous", (int)incx == 1 && (int)incy == 1, 0, n, incx,       \
         (blas_int n, const void *v, blas_int incx, void *y, blas_int incy), (n, v, incx, y, incy))                    \
    WRAP(cblas_##x##swap##suffix, #x "swap", "", 0, 0, n, incx,                                                        \
         (blas_int n, void *v, blas_int incx, void *y, blas_int incy), (n, v, incx, y, incy))                          \
    WRAP_RESULT(size_t, cblas_i##x##amax##suffix, "i" #x "amax", n, 0, (blas_int n, const void *v, blas_int incx),     \
                (n, v, incx))

#define CBLAS_REAL(x, scalar, suffix)                                                                                  \
    WRAP(cblas_##x##ger##suffix, #x "ger", "", 0, m, n, 0,                                                             \
         (int layout, blas_int m, blas_int n, scalar alpha, const void *v, blas_int incx, const void *y,               \
          blas_int incy, void *a, blas_int lda),                                                                       \
         (layout, m, n, alpha, v, incx, y, incy, a, lda))                                                              \
    WRAP(cblas_##x##symv##suffix, #x "symv", "", 0, 0, n, 0,                                                           \
         (int layout, int uplo, blas_int n, scalar alpha, const void *a, blas_int lda, const void *v, blas_int incx,   \
          scalar beta, void *y, blas_int incy),                                                                        \
         (layout, uplo, n, alpha, a, lda, v, incx, beta, y, incy))                                                     \
    WRAP_RESULT(scalar, cblas_##x##dot##suffix, #x "dot", n, 0,                                                        \
                (blas_int n, const void *v, blas_int incx, const void *y, blas_int incy), (n, v, incx, y, incy))       \
    WRAP_RESULT(scalar, cblas_##x##nrm2##suffix, #x "nrm2", n, 0, (blas_int n, const void *v, blas_int incx),          \
                (n, v, incx))                                                                                          \
    WRAP_RESULT(scalar, cblas_##x##asum##suffix, #x "asum", n, 0, (blas_int n, const void *v, blas_int incx),          \
                (n, v, incx))

/* Libraries whose integers have 64 bits give that interface, some by names of its own. */
#define CBLAS_ALL(suffix)                                                                                              \
    CBLAS(s, float, suffix)                                                                                            \
    CBLAS(d, double, suffix)                                                                                           \
    CBLAS(c, const void *, suffix)                                                                                     \
    CBLAS(z, const void *, suffix)                                                                                     \
    CBLAS_REAL(s, float, suffix)                                                                                       \
    CBLAS_REAL(d, double, suffix)

CBLAS_ALL()
CBLAS_ALL(64_)
CBLAS_ALL(_64)

/* The Fortran interface: everything by address, and the lengths of texts at the end. */
static bool letter(const char *given, char wanted) {
    return (*given & ~0x20) == wanted;
}

#define FORTRAN(x, suffix, integer)                                                                                    \
    WRAP(x##gemm##suffix, #x "gemm", #x "gemm_nn", letter(tb, 'N'), *m, *n, *k,                                        \
         (const char *ta, const char *tb, const integer *m, const integer *n, const integer *k, const void *alpha,     \
          const void *a, const integer *lda, const void *b, const integer *ldb, const void *beta, void *c,             \
          const integer *ldc, size_t l1, size_t l2),                                                                   \
         (ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, l1, l2))                                               \
    WRAP(x##trsm##suffix, #x "trsm", #x "trsm_left", letter(side, 'L'), *m, *n, letter(side, 'L') ? *m : *n,           \
         (const char *side, const char *uplo, const char *trans, const char *diag, const integer *m, const integer *n, \
          const void *alpha, const void *a, const integer *lda, void *b, const integer *ldb, size_t l1, size_t l2,     \
          size_t l3, size_t l4),                                                                                       \
         (side, uplo, trans, diag, m, n, alpha, a, lda, b, ldb, l1, l2, l3, l4))                                       \
    WRAP(x##trmm##suffix, #x "trmm", #x "trmm_left", letter(side, 'L'), *m, *n, letter(side, 'L') ? *m : *n,           \
         (const char *side, const char *uplo, const char *trans, const char *diag, const integer *m, const integer *n, \
          const void *alpha, const void *a, const integer *lda, void *b, const integer *ldb, size_t l1, size_t l2,     \
          size_t l3, size_t l4),                                                                                       \
         (side, uplo, trans, diag, m, n, alpha, a, lda, b, ldb, l1, l2, l3, l4))                                       \
    WRAP(x##symm##suffix, #x "symm", #x "symm_left", letter(side, 'L'), *m, *n, letter(side, 'L') ? *m : *n,           \
         (const char *side, const char *uplo, const integer *m, const integer *n, const void *alpha, const void *a,    \
          const integer *lda, const void *b, const integer *ldb, const void *beta, void *c, const integer *ldc,        \
          size_t l1, size_t l2),                                                                                       \
         (side, uplo, m, n, alpha, a, lda, b, ldb, beta, c, ldc, l1, l2))                                              \
    WRAP(x##syrk##suffix, #x "syrk", "", 0, *n, *n, *k,                                                                \
         (const char *uplo, const char *trans, const integer *n, const integer *k, const void *alpha, const void *a,   \
          const integer *lda, const void *beta, void *c, const integer *ldc, size_t l1, size_t l2),                    \
         (uplo, trans, n, k, alpha, a, lda, beta, c, ldc, l1, l2))                                                     \
    WRAP(x##gemv##suffix, #x "gemv", "", 0, *m, *n, 0,                                                                 \
         (const char *trans, const integer *m, const integer *n, const void *alpha, const void *a, const integer *lda, \
          const void *v, const integer *incx, const void *beta, void *y, const integer *incy, size_t l1),              \
         (trans, m, n, alpha, a, lda, v, incx, beta, y, incy, l1))                                                     \
    WRAP(x##trsv##suffix, #x "trsv", "", 0, 0, *n, 0,                                                                  \
         (const char *uplo, const char *trans, const char *diag, const integer *n, const void *a, const integer *lda,  \
          void *v, const integer *incx, size_t l1, size_t l2, size_t l3),                                              \
         (uplo, trans, diag, n, a, lda, v, incx, l1, l2, l3))                                                          \
    WRAP(x##trmv##suffix, #x "trmv", "", 0, 0, *n, 0,                                                                  \
         (const char *uplo, const char *trans, const char *diag, const integer *n, const void *a, const integer *lda,  \
          void *v, const integer *incx, size_t l1, size_t l2, size_t l3),                                              \
         (uplo, trans, diag, n, a, lda, v, incx, l1, l2, l3))                                                          \
    WRAP(x##scal##suffix, #x "scal", "", 0, 0, *n, 0,                                                                  \
         (const integer *n, const void *alpha, void *v, const integer *incx), (n, alpha, v, incx))                     \
    WRAP(x##axpy##suffix, #x "axpy", "", 0, 0, *n, 0,                                                                  \
         (const integer *n, const void *alpha, const void *v, const integer *incx, void *y, const integer *incy),      \
         (n, alpha, v, incx, y, incy))                                                                                 \
    WRAP(x##copy##suffix, #x "copy", #x "copy_contiguous", *incx == 1 && *incy == 1, 0, *n, *incx,                     \
         (const integer *n, const void *v, const integer *incx, void *y, const integer *incy), (n, v, incx, y, incy))  \
    WRAP(x##swap##suffix, #x "swap", "", 0, 0, *n, *incx,                                                              \
         (const integer *n, void *v, const integer *incx, void *y, const integer *incy), (n, v, incx, y, incy))        \
    WRAP_RESULT(size_t, i##x##amax##suffix, "i" #x "amax", *n, 0,                                                      \
                (const integer *n, const void *v, const integer *incx), (n, v, incx))

#define FORTRAN_REAL(x, suffix, integer)                                                                               \
    WRAP(x##ger##suffix, #x "ger", "", 0, *m, *n, 0,                                                                   \
         (const integer *m, const integer *n, const void *alpha, const void *v, const integer *incx, const void *y,    \
          const integer *incy, void *a, const integer *lda),                                                           \
         (m, n, alpha, v, incx, y, incy, a, lda))                                                                      \
    WRAP(x##symv##suffix, #x "symv", "", 0, 0, *n, 0,                                                                  \
         (const char *uplo, const integer *n, const void *alpha, const void *a, const integer *lda, const void *v,     \
          const integer *incx, const void *beta, void *y, const integer *incy, size_t l1),                             \
         (uplo, n, alpha, a, lda, v, incx, beta, y, incy, l1))

/* In single precision some compilers return a double: only the double functions are the same everywhere. */
#define FORTRAN_DOUBLE(suffix, integer)                                                                                \
    WRAP_RESULT(double, ddot##suffix, "ddot", *n, 0,                                                                   \
                (const integer *n, const void *v, const integer *incx, const void *y, const integer *incy),            \
                (n, v, incx, y, incy))                                                                                 \
    WRAP_RESULT(double, dnrm2##suffix, "dnrm2", *n, 0, (const integer *n, const void *v, const integer *incx),         \
                (n, v, incx))                                                                                          \
    WRAP_RESULT(double, dasum##suffix, "dasum", *n, 0, (const integer *n, const void *v, const integer *incx),         \
                (n, v, incx))

#define FORTRAN_ALL(suffix, integer)                                                                                   \
    FORTRAN(s, suffix, integer)                                                                                        \
    FORTRAN(d, suffix, integer)                                                                                        \
    FORTRAN(c, suffix, integer)                                                                                        \
    FORTRAN(z, suffix, integer)                                                                                        \
    FORTRAN_REAL(s, suffix, integer)                                                                                   \
    FORTRAN_REAL(d, suffix, integer)                                                                                   \
    FORTRAN_DOUBLE(suffix, integer)

FORTRAN_ALL(_, int)
FORTRAN_ALL(_64_, int64_t)

/* NOLINTEND(readability-identifier-naming) */
