
#include "kernel_trace.hpp"
int main(int, char **argv) {
    lepaute::simblas::KernelTrace trace;
    if (!trace.open(argv[1], {"dgemm", "dtrsm_left"}))
        return 1;
    for (int i = 0; i < 40000; i++)
        trace.record(i % 3, i % 2, i * 0.5, 0.25, i, i + 1, i + 2);
    return 0;
}
