// The entries that cost nothing and whose answers programs rely on: properties of the arithmetic, of the
// implementation, and of single numbers. They really compute.

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <limits>

namespace {

/// LAPACK's machine constants, by its own definitions: eps is the relative error of rounding, half the distance of 1 to
/// the next number.
template <typename Real>
Real machine_constant(char which) {
    using Limits = std::numeric_limits<Real>;
    const Real eps = Limits::epsilon() / 2;
    switch (std::toupper(static_cast<unsigned char>(which))) {
    case 'E':
        return eps;
    case 'S': // the least number whose reciprocal is finite
        return std::max(Limits::min(), (1 + eps) / Limits::max());
    case 'B':
        return Limits::radix;
    case 'P':
        return eps * Limits::radix;
    case 'N':
        return Limits::digits;
    case 'R': // rounding happens
        return 1;
    case 'M':
        return Limits::min_exponent;
    case 'U':
        return Limits::min();
    case 'L':
        return Limits::max_exponent;
    case 'O':
        return Limits::max();
    default:
        return 0;
    }
}

} // namespace

// Names and signatures are those of the Fortran, CBLAS and LAPACKE interfaces.
// NOLINTBEGIN(readability-identifier-naming, readability-named-parameter, *-vararg, *-dcl50-cpp, cert-err33-c)
extern "C" {

float slamch_(const char* which) { return machine_constant<float>(*which); }
double dlamch_(const char* which) { return machine_constant<double>(*which); }
float LAPACKE_slamch(char which) { return machine_constant<float>(which); }
double LAPACKE_dlamch(char which) { return machine_constant<double>(which); }

float slapy2_(const float* x, const float* y) { return std::hypot(*x, *y); }
double dlapy2_(const double* x, const double* y) { return std::hypot(*x, *y); }

float scabs1_(const float* z) { return std::fabs(z[0]) + std::fabs(z[1]); }
double dcabs1_(const double* z) { return std::fabs(z[0]) + std::fabs(z[1]); }

int lsame_(const char* one, const char* other) {
    return std::toupper(static_cast<unsigned char>(*one)) == std::toupper(static_cast<unsigned char>(*other)) ? 1 : 0;
}

/// Block sizes and crossover points: what reference LAPACK says of its routines for large matrices.
int ilaenv_(const int* question, const char*, const char*, const int*, const int*, const int*, const int*) {
    switch (*question) {
    case 1: // block size
        return 64;
    case 2: // least block size worth its cost
        return 2;
    case 3: // below, unblocked code
        return 128;
    case 10: // NaN arithmetic may be relied on
    case 11:
        return 1;
    default:
        return 0;
    }
}

/// Called by programs, not by simblas, which checks no arguments.
void xerbla_(const char* name, const int* argument, std::size_t length) {
    std::fprintf(stderr, "** argument %d of %.*s has an illegal value\n", *argument,
                 static_cast<int>(std::min<std::size_t>(length, 32)), name);
}

void cblas_xerbla(int argument, const char* name, const char* form, ...) {
    std::fprintf(stderr, "** argument %d of %s has an illegal value: ", argument, name);
    std::va_list values;
    va_start(values, form);
    std::vfprintf(stderr, form, values);
    va_end(values);
}

// The ranks of a simulation are threads of one process, and so is its BLAS: one thread each, as far as a program can
// tell.
void openblas_set_num_threads(int) {}
int openblas_get_num_threads() { return 1; }
int openblas_get_num_procs() { return 1; }

} // extern "C"
// NOLINTEND(readability-identifier-naming, readability-named-parameter, *-vararg, *-dcl50-cpp, cert-err33-c)
