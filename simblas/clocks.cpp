// The clock of a thread's computing, which SMPI reads twice in every MPI call. It is a call of the system, a fourth of
// the time of an emulation; nothing depends on it, since simblas measures itself (computing.cpp), and it stands still.

#include "state.hpp"

#include <ctime>
#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

double lepaute::simblas::cpu_s() {
    timespec now{};
    syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

extern "C" int clock_gettime(clockid_t clock, timespec* now) noexcept {
    if (clock == CLOCK_THREAD_CPUTIME_ID && lepaute::simblas::state().day) {
        *now = {};
        return 0;
    }
    using Real = int (*)(clockid_t, timespec*);
    static const auto real = reinterpret_cast<Real>(dlsym(RTLD_NEXT, "clock_gettime"));
    return real(clock, now);
}
