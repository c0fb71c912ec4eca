// SMPI_SAMPLE_LOCAL and SMPI_SAMPLE_GLOBAL: a loop ends once enough of its iterations were timed, and each counts as
// their mean, in the program's own code and in BLAS. SMPI times them by a clock that stands still here (clocks.cpp).

#include "charge.h"
#include "computing.hpp"
#include "kernels.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

using namespace lepaute;
using namespace lepaute::simblas;

namespace {

/// Of one loop, and of one rank where the samples are local.
struct Samples {
    int count = 0;
    double sum_s = 0.0;
    double squares_s2 = 0.0;
    double own_s = 0.0; // of the sum, what the program computed itself

    /// SMPI's rule: a threshold bounds the relative standard error of the mean; none where it is negative.
    [[nodiscard]] bool suffice(int iterations, double threshold) const {
        const double mean_s = sum_s / count;
        const double variance_s2 = squares_s2 / count - mean_s * mean_s;
        return count >= iterations ||
               (threshold >= 0.0 && count >= 2 && !(std::sqrt(variance_s2 / count) / mean_s >= threshold));
    }
};

Samples& samples_of(const Rank& rank, bool global, const char* file, const char* tag) {
    static std::map<std::pair<std::string, long>, Samples> all;
    return all[{std::string(file) + ":" + tag, global ? -1L : static_cast<long>(rank.number)}];
}

/// The loop ends: of its `iterations`, those that were not timed are charged.
void end_loop(Rank& rank, const Samples& samples, int iterations) {
    const double rest_s = samples.sum_s / samples.count * iterations - rank.sampled.sum_s;
    log_call(rank, static_cast<int>(hpl::kernel_names.size()) + lepaute_routine_count, std::max(0.0, rest_s), {});
    rank.pending_s += rest_s;
    state().charged_s += samples.own_s / samples.count * iterations - rank.sampled.own_s;
    rank.sampled = {};
    restart_clock(rank);
}

} // namespace

extern "C" {

int smpi_sample_cond(int global, const char* file, const char* tag, int iterations, double threshold, int count) {
    Rank* rank = current_rank();
    if (rank == nullptr) {
        return 1;
    }
    account(*rank);
    const Samples& samples = samples_of(*rank, global != 0, file, tag);
    if (samples.count > 0 && samples.suffice(iterations, threshold)) {
        end_loop(*rank, samples, count);
        return 0;
    }
    rank->sampled.inside = true;
    rank->sampled.from_s = rank->pending_s;
    rank->sampled.own_from_s = state().charged_s;
    restart_clock(*rank);
    return 1;
}

void smpi_sample_iter(int global, const char* file, const char* tag) {
    Rank* rank = current_rank();
    if (rank == nullptr) {
        return;
    }
    account(*rank);
    Samples& samples = samples_of(*rank, global != 0, file, tag);
    Rank::Sampled& sampled = rank->sampled;
    const double seconds = rank->pending_s - sampled.from_s;
    const double own_s = state().charged_s - sampled.own_from_s;
    ++samples.count;
    samples.sum_s += seconds;
    samples.squares_s2 += seconds * seconds;
    samples.own_s += own_s;
    sampled.sum_s += seconds;
    sampled.own_s += own_s;
    sampled.inside = false;
    restart_clock(*rank);
}

int smpi_sample_exit(int global, const char* file, const char* tag, int count) {
    Rank* rank = current_rank();
    if (rank != nullptr && count > 0) {
        end_loop(*rank, samples_of(*rank, global != 0, file, tag), count);
    }
    return 0;
}

} // extern "C"
