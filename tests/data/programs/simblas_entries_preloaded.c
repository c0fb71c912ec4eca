
#include <stdio.h>
double cblas_ddot(int, const double*, int, const double*, int);
int main(void) {
    const double x[2] = {2, 3};
    printf("%g\n", cblas_ddot(2, x, 1, x, 1));
    return 0;
}
