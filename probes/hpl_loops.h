/* HPL's own loops, as a list: WRAP(symbol, name of the kernel, m, n, k, (parameters), (arguments)). Each file that
 * includes it has a WRAP of its own. What m, n and k are is in docs/reference/platform_file.md. */
/* NOLINTBEGIN(readability-identifier-naming,readability-avoid-const-params-in-decls): HPL's names and types */

/* k of those that walk along rows of the matrix is how many rows the trailing matrix of this process has, HPL's mp: how
 * much of it the caches hold decides what an element costs. The loops are given the leading dimension only, so that
 * whoever wraps the phases says which matrix is worked on; U has a leading dimension of its own, which is its rows. */
static struct {
    int leading_dimension, rows;
} lep_trailing;

static int lep_rows_of(int leading_dimension) {
    return leading_dimension == lep_trailing.leading_dimension ? lep_trailing.rows : leading_dimension;
}

static void lep_work_on(const HPL_T_panel *panel) {
    lep_trailing.leading_dimension = panel->lda;
    lep_trailing.rows = panel->mp;
}

WRAP(HPL_dlocswpN, dlocswp, 0, panel->jb, panel->mp, (HPL_T_panel * panel, const int ii, const int jj, double *work),
     (panel, ii, jj, work))
WRAP(HPL_dlocswpT, dlocswp, 0, panel->jb, panel->mp, (HPL_T_panel * panel, const int ii, const int jj, double *work),
     (panel, ii, jj, work))

WRAP(HPL_dlaswp00N, dlaswp00N, m, n, lep_rows_of(lda),
     (const int m, const int n, double *a, const int lda, const int *ipiv), (m, n, a, lda, ipiv))
WRAP(HPL_dlaswp10N, dlaswp10N, m, n, lda, (const int m, const int n, double *a, const int lda, const int *ipiv),
     (m, n, a, lda, ipiv))

/* The N and the T of a pair differ in how U is held alone. */
#define LEP_TO_U                                                                                                       \
    (const int m, const int n, double *a, const int lda, double *u, const int ldu, const int *from, const int *to)
WRAP(HPL_dlaswp01N, dlaswp01N, m, n, lep_rows_of(lda), LEP_TO_U, (m, n, a, lda, u, ldu, from, to))
WRAP(HPL_dlaswp01T, dlaswp01T, m, n, lep_rows_of(lda), LEP_TO_U, (m, n, a, lda, u, ldu, from, to))
#undef LEP_TO_U
WRAP(HPL_dlaswp02N, dlaswp02N, m, n, lep_rows_of(lda),
     (const int m, const int n, const double *a, const int lda, double *w0, double *w, const int ldw, const int *from,
      const int *to),
     (m, n, a, lda, w0, w, ldw, from, to))
#define LEP_W_TO_U                                                                                                     \
    (const int m, const int n, double *u, const int ldu, const double *w0, const double *w, const int ldw)
WRAP(HPL_dlaswp03N, dlaswp03N, m, n, 0, LEP_W_TO_U, (m, n, u, ldu, w0, w, ldw))
WRAP(HPL_dlaswp03T, dlaswp03T, m, n, 0, LEP_W_TO_U, (m, n, u, ldu, w0, w, ldw))
#undef LEP_W_TO_U
#define LEP_W_TO_U_TO_A                                                                                                \
    (const int m0, const int m1, const int n, double *u, const int ldu, double *a, const int lda, const double *w0,    \
     const double *w, const int ldw, const int *from, const int *to)
WRAP(HPL_dlaswp04N, dlaswp04N, m1, n, lep_rows_of(lda), LEP_W_TO_U_TO_A,
     (m0, m1, n, u, ldu, a, lda, w0, w, ldw, from, to))
WRAP(HPL_dlaswp04T, dlaswp04T, m1, n, lep_rows_of(lda), LEP_W_TO_U_TO_A,
     (m0, m1, n, u, ldu, a, lda, w0, w, ldw, from, to))
#undef LEP_W_TO_U_TO_A
#define LEP_U_TO_A                                                                                                     \
    (const int m, const int n, double *a, const int lda, const double *u, const int ldu, const int *from, const int *to)
WRAP(HPL_dlaswp05N, dlaswp05N, m, n, lep_rows_of(lda), LEP_U_TO_A, (m, n, a, lda, u, ldu, from, to))
WRAP(HPL_dlaswp05T, dlaswp05T, m, n, lep_rows_of(lda), LEP_U_TO_A, (m, n, a, lda, u, ldu, from, to))
#undef LEP_U_TO_A
#define LEP_A_WITH_U (const int m, const int n, double *a, const int lda, double *u, const int ldu, const int *from)
WRAP(HPL_dlaswp06N, dlaswp06N, m, n, lep_rows_of(lda), LEP_A_WITH_U, (m, n, a, lda, u, ldu, from))
WRAP(HPL_dlaswp06T, dlaswp06T, m, n, lep_rows_of(lda), LEP_A_WITH_U, (m, n, a, lda, u, ldu, from))
#undef LEP_A_WITH_U

WRAP(HPL_dlatcpy, dlatcpy, m, n, lep_rows_of(ldb),
     (const int m, const int n, const double *a, const int lda, double *b, const int ldb), (m, n, a, lda, b, ldb))
WRAP(HPL_dlacpy, dlacpy, m, n, 0, (const int m, const int n, const double *a, const int lda, double *b, const int ldb),
     (m, n, a, lda, b, ldb))

/* NOLINTEND(readability-identifier-naming,readability-avoid-const-params-in-decls) */
