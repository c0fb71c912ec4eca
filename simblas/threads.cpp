// Threads that ranks start. SMPI runs all ranks in one thread, whose CPU time alone is read: what others compute is not
// seen. They are counted, so that this is told.

#include "state.hpp"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*routine)(void*),
                              void* argument) noexcept {
    using namespace lepaute::simblas;
    using Real = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
    static const auto real = reinterpret_cast<Real>(dlsym(RTLD_NEXT, "pthread_create"));
    if (state().day && syscall(SYS_gettid) == getpid() && current_rank() != nullptr) {
        ++state().threads;
    }
    return real(thread, attributes, routine, argument);
}
