/* The log of kernel calls: rows in memory while the clock runs, a file afterwards. */
#ifndef LEPAUTE_KERNEL_LOG_H
#define LEPAUTE_KERNEL_LOG_H

#include "probe_common.h"

/* Every kernel of HPL, and the whole phases whose untimed rest is HPL's own glue. The enum and the names are one
 * list, since they must agree. What m, n and k mean is in docs/reference/platform_file.md. */
#define LEP_KERNELS(X)                                                                                                 \
    X(dgemm)                                                                                                           \
    X(dgemm_nn)                                                                                                        \
    X(dtrsm)                                                                                                           \
    X(dtrsm_left)                                                                                                      \
    X(dgemv)                                                                                                           \
    X(dger)                                                                                                            \
    X(dtrsv)                                                                                                           \
    X(dscal)                                                                                                           \
    X(daxpy)                                                                                                           \
    X(dcopy)                                                                                                           \
    X(dcopy_contiguous)                                                                                                \
    X(idamax)                                                                                                          \
    X(dlocswp)                                                                                                         \
    X(dlaswp00N)                                                                                                       \
    X(dlaswp01N)                                                                                                       \
    X(dlaswp01T)                                                                                                       \
    X(dlaswp02N)                                                                                                       \
    X(dlaswp03N)                                                                                                       \
    X(dlaswp03T)                                                                                                       \
    X(dlaswp04N)                                                                                                       \
    X(dlaswp04T)                                                                                                       \
    X(dlaswp05N)                                                                                                       \
    X(dlaswp05T)                                                                                                       \
    X(dlaswp06N)                                                                                                       \
    X(dlaswp06T)                                                                                                       \
    X(dlaswp10N)                                                                                                       \
    X(dlatcpy)                                                                                                         \
    X(dlacpy)                                                                                                          \
    X(pdfact)                                                                                                          \
    X(pdupdate)                                                                                                        \
    X(pdtrsv)                                                                                                          \
    X(first_touch)

#define LEP_KERNEL_ENUM(name) LEP_##name,
typedef enum { LEP_KERNELS(LEP_KERNEL_ENUM) LEP_KERNEL_COUNT } lep_kernel;

extern const char *const lep_kernel_names[LEP_KERNEL_COUNT];

#define LEP_KERNEL_COLUMNS "design_row,kind,position,kernel,m,n,k,start_s,duration_s,rank,cpu"

typedef struct {
    int64_t start_ns, end_ns;
    int kernel, position, m, n, k;
} lep_call;

typedef struct {
    lep_call *calls;
    size_t used, room, lost; /* a full log drops calls and counts them: it never allocates while the clock runs */
    int position;
} lep_log;

extern lep_log lep_calls;

void lep_log_reserve(size_t room);

static inline void lep_log_add(lep_kernel kernel, int m, int n, int k, int64_t start_ns, int64_t end_ns) {
    if (lep_calls.used < lep_calls.room)
        lep_calls.calls[lep_calls.used++] = (lep_call){start_ns, end_ns, (int)kernel, lep_calls.position, m, n, k};
    else
        lep_calls.lost++;
}

/* Logs a call; m, n and k as they are after it. */
#define LEP_LOGGED(kernel, m, n, k, call)                                                                              \
    do {                                                                                                               \
        int64_t called_ns = lep_now_ns();                                                                              \
        call;                                                                                                          \
        int64_t returned_ns = lep_now_ns();                                                                            \
        lep_log_add(kernel, m, n, k, called_ns, returned_ns);                                                          \
    } while (0)

/* Writes the calls as rows and empties the log; `more` ends each row: cells of further columns, a comma before each.
 * Fails alone when calls were lost. */
void lep_log_write(FILE *file, const char *design_row, const char *kind, int rank, int cpu, const char *more);

#endif
