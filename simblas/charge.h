#ifndef LEPAUTE_SIMBLAS_CHARGE_H
#define LEPAUTE_SIMBLAS_CHARGE_H
/* What stands between the generated BLAS and LAPACK entries (from routines.txt) and the runtime that lets simulated
 * time pass. The entries know sizes and operation counts and nothing of time; the runtime knows time and nothing of
 * BLAS.
 *
 * C and C++ alike; all names have C linkage. Integers are 32 bits wide (LP64): a program compiled for 64-bit BLAS
 * integers (ILP64, names with the suffix 64_) is not served. */

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One row for every pair of routine and kernel: dgemm has two, ("dgemm", "dgemm_nn") and ("dgemm", "dgemm"). */
struct lepaute_routine { // NOLINT(readability-identifier-naming): as in C
    const char* name;    /* as in the standard, without underscore or prefix: "dgemm", "zheevd" */
    const char* kernel;  /* the kernel of the platform file that models it, "" where none does */
};

/* Generated. The number of a routine is its index here. */
extern const struct lepaute_routine lepaute_routines[];
extern const int lepaute_routine_count;

/* The two functions below are to be given by the runtime.
 *
 * One call of lepaute_routines[routine] by the calling rank, never for a call that has nothing to do.
 *   m, n, k  the sizes in the meaning of docs/reference/platform_file.md where the routine has a kernel, else as the
 * table says; 0 for what the routine does not have flops    real floating-point operations (a complex multiplication
 * counts 6, an addition 2); 0 for copies All are finite and >= 0, and not rounded: nothing limits them to the range of
 * int. */
void lepaute_charge(int routine, double m, double n, double k, double flops);

/* The place in 0 .. n-1 that an index function (idamax and the like) answers with; n >= 1. It is asked after the call
 * was charged. A runtime without an opinion returns 0. */
int lepaute_index(int routine, int n);

/* Copies and swaps (?copy, ?swap, ?lacpy, ?laset and their like) of operands that extend over no more than this really
 * move their data, since small buffers steer programs (HPL's pivots); larger ones do not, since large memory is folded.
 * The extent is that in memory, gaps of a stride or a leading dimension included: no call touches more of an operand.
 */
#define LEPAUTE_COPY_BYTES 65536 // NOLINT(cppcoreguidelines-macro-usage): for C too

static inline int lepaute_copies(double extent_bytes) { return extent_bytes <= LEPAUTE_COPY_BYTES; }

#ifdef __cplusplus
}
#endif

#endif
