#pragma once
// What the generated entries are made of: letters of the Fortran, CBLAS and LAPACKE interfaces, the charge of a call,
// and the few operands whose data really moves.

#include "charge.h"

#include <algorithm>
#include <cstddef>

namespace lepaute::simblas {

// Complex results travel as C99's complex types do: in registers, as gfortran and C agree on.
using complex_float = __complex__ float;
using complex_double = __complex__ double;

inline constexpr int row_major = 101; // of CBLAS and LAPACKE alike

/// Fortran and LAPACKE: the letter, upper case.
constexpr char letter(char given) noexcept {
    return given >= 'a' && given <= 'z' ? static_cast<char>(given - 'a' + 'A') : given;
}
constexpr char letter(const char* given) noexcept { return letter(*given); }

/// CBLAS: the letter that Fortran has for an enumerator; the numbers are those of the BLAS Technical Forum standard.
constexpr char letter(int enumerator) noexcept {
    switch (enumerator) {
    case 102: // column-major
    case 113: // conjugate transpose
        return 'C';
    case 101: // row-major
    case 114: // conjugated, not transposed
    case 142: // right
        return 'R';
    case 112: // transposed
        return 'T';
    case 121: // upper
    case 132: // unit diagonal
        return 'U';
    case 122: // lower
    case 141: // left
        return 'L';
    default: // 111 not transposed, 131 no unit diagonal
        return 'N';
    }
}

constexpr char other_side(char side) noexcept { return side == 'L' ? 'R' : 'L'; }
constexpr char other_uplo(char uplo) noexcept { return uplo == 'U' ? 'L' : uplo == 'L' ? 'U' : uplo; }

/// Counts are exact for sizes that a program uses; for tiny ones the lower terms of LAPACK's may make them negative.
inline void charge(int routine, double m, double n, double k, double flops) {
    lepaute_charge(routine, std::max(m, 0.0), std::max(n, 0.0), std::max(k, 0.0), std::max(flops, 0.0));
}

template <typename T, typename Value>
void fill(T* to, double count, Value value) {
    const auto end = static_cast<std::ptrdiff_t>(count);
    for (std::ptrdiff_t i = 0; i < end; ++i) {
        to[i] = static_cast<T>(value(static_cast<double>(i)));
    }
}

/// The elements of a vector as BLAS walks it: with a negative increment it starts at the far end.
template <typename T>
struct Walk {
    T* first;
    std::ptrdiff_t step;
    Walk(T* data, std::ptrdiff_t count, double increment) : first(data), step(static_cast<std::ptrdiff_t>(increment)) {
        if (step < 0) {
            first -= (count - 1) * step;
        }
    }
    T& operator[](std::ptrdiff_t i) const { return first[i * step]; }
};

template <typename T>
bool vector_copies(double n, double increment) {
    return lepaute_copies((1.0 + (n - 1.0) * std::max(increment, -increment)) * sizeof(T)) != 0;
}

/// Not with a negative leading dimension, which no matrix has: the columns would lie before its first element.
template <typename T>
bool matrix_copies(double m, double n, double leading_dimension) {
    return leading_dimension >= 0.0 && lepaute_copies((m + (n - 1.0) * leading_dimension) * sizeof(T)) != 0;
}

template <typename T>
void copy_vector(double n, const T* x, double incx, T* y, double incy) {
    if (!vector_copies<T>(n, incx) || !vector_copies<T>(n, incy)) {
        return;
    }
    const auto count = static_cast<std::ptrdiff_t>(n);
    const Walk<const T> from(x, count, incx);
    const Walk<T> to(y, count, incy);
    for (std::ptrdiff_t i = 0; i < count; ++i) {
        to[i] = from[i];
    }
}

template <typename T>
void swap_vectors(double n, T* x, double incx, T* y, double incy) {
    if (!vector_copies<T>(n, incx) || !vector_copies<T>(n, incy)) {
        return;
    }
    const auto count = static_cast<std::ptrdiff_t>(n);
    const Walk<T> one(x, count, incx);
    const Walk<T> other(y, count, incy);
    for (std::ptrdiff_t i = 0; i < count; ++i) {
        const T kept = one[i];
        one[i] = other[i];
        other[i] = kept;
    }
}

/// Rows first .. last - 1 of column j that belong to the part that `uplo` names: upper, lower, or all.
struct Rows {
    std::ptrdiff_t first;
    std::ptrdiff_t last;
    Rows(char uplo, std::ptrdiff_t m, std::ptrdiff_t j)
        : first(uplo == 'L' ? std::min(j, m) : 0), last(uplo == 'U' ? std::min(j + 1, m) : m) {}
};

template <typename T>
void copy_matrix(char uplo, double m, double n, const T* a, double lda, T* b, double ldb) {
    if (!matrix_copies<T>(m, n, lda) || !matrix_copies<T>(m, n, ldb)) {
        return;
    }
    for (std::ptrdiff_t j = 0; j < static_cast<std::ptrdiff_t>(n); ++j) {
        const Rows rows(uplo, static_cast<std::ptrdiff_t>(m), j);
        for (std::ptrdiff_t i = rows.first; i < rows.last; ++i) {
            b[i + j * static_cast<std::ptrdiff_t>(ldb)] = a[i + j * static_cast<std::ptrdiff_t>(lda)];
        }
    }
}

/// alpha off the diagonal and beta on it.
template <typename T>
void set_matrix(char uplo, double m, double n, T alpha, T beta, T* a, double lda) {
    if (!matrix_copies<T>(m, n, lda)) {
        return;
    }
    for (std::ptrdiff_t j = 0; j < static_cast<std::ptrdiff_t>(n); ++j) {
        const Rows rows(uplo, static_cast<std::ptrdiff_t>(m), j);
        for (std::ptrdiff_t i = rows.first; i < rows.last; ++i) {
            a[i + j * static_cast<std::ptrdiff_t>(lda)] = i == j ? beta : alpha;
        }
    }
}

} // namespace lepaute::simblas
