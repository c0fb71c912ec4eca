#include "charge.h"
#include "kernel_trace.hpp"
#include "kernels.hpp"

#include <cstdio>
#include <cstdlib>

namespace lepaute::simblas {

namespace {

KernelTrace& trace() {
    static KernelTrace the_trace; // ended, and so whole, when the process ends
    return the_trace;
}

bool begin() {
    const std::string& path = state().request.kernel_log;
    if (path.empty()) {
        return false;
    }
    std::vector<std::string> names(hpl::kernel_names.begin(), hpl::kernel_names.end());
    names.reserve(names.size() + static_cast<std::size_t>(lepaute_routine_count));
    for (int routine = 0; routine < lepaute_routine_count; ++routine) {
        names.emplace_back(lepaute_routines[routine].name);
    }
    names.emplace_back("computing"); // of the program itself
    if (!trace().open(path, names)) {
        std::perror(path.c_str());
        std::exit(2);
    }
    return true;
}

} // namespace

void log_call(const Rank& rank, int code, double seconds, const models::Size& size) {
    static const bool wanted = begin();
    if (wanted) {
        trace().record(static_cast<int>(rank.number), code, now_s(rank), seconds, size.m, size.n, size.k);
    }
}

} // namespace lepaute::simblas
