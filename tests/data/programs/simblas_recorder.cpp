
#include "charge.h"
#include <cstring>
struct recorded { const char* name; const char* kernel; double m, n, k, flops; };
extern "C" {
recorded calls[1000];
int call_count = 0;
int answer = 0;
int asked_of = 0;
void lepaute_charge(int routine, double m, double n, double k, double flops) {
    const lepaute_routine& row = lepaute_routines[routine];
    calls[call_count++ % 1000] = {row.name, row.kernel, m, n, k, flops};
}
int lepaute_index(int, int n) {
    asked_of = n;
    return answer;
}
}
