
#include <cblas.h>
#include <complex.h>
#include <stdio.h>
double complex zdotc_(const int*, const void*, const int*, const void*, const int*);
float complex cdotu_(const int*, const void*, const int*, const void*, const int*);
int main(void) {
    double complex x[2] = {1, 0}, y[2] = {1, 0}, product = 0, one = 1;
    float complex v[2] = {1, 0};
    double a[4] = {1, 0, 0, 1}, c[4] = {0};
    float f[2] = {1, 0};
    const int n = 2, step = 1;
    cblas_zdotu_sub(n, x, 1, y, 1, &product);
    printf("%g %g\n", creal(product), cimag(product));
    product = zdotc_(&n, x, &step, y, &step);
    printf("%g %g\n", creal(product), cimag(product));
    const float complex single = cdotu_(&n, v, &step, v, &step);
    printf("%g %g\n", crealf(single), cimagf(single));
    printf("%g %g %d\n", (double)cblas_sdot(n, f, 1, f, 1), (double)cblas_sdsdot(n, 0.0F, f, 1, f, 1),
           (int)cblas_idamax(n, a, 1));
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, 2, 2, 2, 1.0, a, 2, a, 2, 0.0, c, 2);
    cblas_zscal(n, &one, x, 1);
    cblas_zdscal(n, 1.0, x, 1);
    cblas_dtrsm(CblasColMajor, CblasLeft, CblasLower, CblasNoTrans, CblasUnit, 2, 2, 1.0, a, 2, c, 2);
    return 0;
}
