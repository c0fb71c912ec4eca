#include "report.hpp"

#include "charge.h"
#include "state.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string_view>

namespace lepaute::simblas {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds between_reports{500};
constexpr double least_share = 1e-3;
constexpr std::uint64_t signs_between_looks = 256; // at the clock

void write_kernels(std::FILE* file, const State& there) {
    const auto& names = hpl::kernel_names;
    const char* separator = "";
    for (std::size_t kernel = 0; kernel < names.size(); ++kernel) {
        const models::KernelUse& use = there.day->use()[kernel];
        if (use.calls == 0) {
            continue;
        }
        std::fprintf(file,
                     "%s\n  \"%s\": {\"calls\": %llu, \"unmodelled_calls\": %llu, \"clipped_means\": %llu, "
                     "\"time_s\": %.17g, \"extrapolated_time_s\": %.17g, \"outside_low\": [%.17g, %.17g, %.17g], "
                     "\"outside_high\": [%.17g, %.17g, %.17g]}",
                     separator, std::string(names[kernel]).c_str(), static_cast<unsigned long long>(use.calls),
                     static_cast<unsigned long long>(use.unmodelled_calls),
                     static_cast<unsigned long long>(use.clipped_means), use.time_s, use.extrapolated_time_s,
                     use.outside_low.m, use.outside_low.n, use.outside_low.k, use.outside_high.m, use.outside_high.n,
                     use.outside_high.k);
        separator = ",";
    }
}

void write_fallback(std::FILE* file, const State& there) {
    const char* separator = "";
    for (std::size_t routine = 0; routine < there.fallback.size(); ++routine) {
        const FallbackUse& use = there.fallback[routine];
        if (use.calls > 0) {
            std::fprintf(file, "%s\n  \"%s\": {\"calls\": %llu, \"unmodelled_calls\": %llu, \"time_s\": %.17g}",
                         separator, lepaute_routines[routine].name, static_cast<unsigned long long>(use.calls),
                         static_cast<unsigned long long>(use.unmodelled_calls), use.time_s);
            separator = ",";
        }
    }
}

/// Places by their share of the time: those with less than a thousandth are left out.
void write_computing(std::FILE* file, const State& there) {
    std::fprintf(file,
                 "{\"measured_s\": %.17g, \"charged_s\": %.17g, \"stream_alone_Bps\": %.17g, "
                 "\"stream_loaded_Bps\": %.17g, \"places\": {",
                 there.measured_s, there.charged_s, there.stream_alone_Bps, there.stream_loaded_Bps);
    const char* separator = "";
    for (const auto& [name, site] : there.sites) {
        if (site.time_s > least_share * there.measured_s) {
            std::fprintf(file,
                         "%s\n  \"%s\": {\"visits\": %llu, \"time_s\": %.17g, \"alone\": [%llu, %.17g], "
                         "\"loaded\": [%llu, %.17g]}",
                         separator, name.c_str(), static_cast<unsigned long long>(site.visits), site.time_s,
                         static_cast<unsigned long long>(site.alone.count), site.alone.sum,
                         static_cast<unsigned long long>(site.loaded.count), site.loaded.sum);
            separator = ",";
        }
    }
    std::fputs("}}", file);
}

} // namespace

void write_report() {
    const State& there = state();
    if (!there.day || there.request.report.empty()) {
        return;
    }
    const std::string temporary = there.request.report + ".tmp";
    std::FILE* file = std::fopen(temporary.c_str(), "w");
    if (file == nullptr) {
        std::perror(temporary.c_str());
        return;
    }
    double ended_s = 0.0;
    double region_s = 0.0;
    std::size_t finished = 0;
    for (const Rank& rank : there.ranks) {
        ended_s = std::max(ended_s, rank.ended_s);
        region_s = std::max(region_s, rank.region_s);
        finished += rank.ended_s >= 0.0 ? 1U : 0U;
    }
    std::fprintf(file,
                 "{\"time_s\": %.17g, \"finished_ranks\": %zu, \"aborted_rank\": %d, \"abort_code\": %d, "
                 "\"exited_rank\": %d, \"exit_code\": %d, \"region_s\": "
                 "%.17g, \"computing_s\": %.17g, "
                 "\"wtime_s\": %.17g, \"put_off\": [%llu, %.0f, %.0f], \"messages\": %llu, \"probes\": %llu, "
                 "\"threads\": %llu, \"gapped\": [%llu, %.0f, %.17g], "
                 "\"folded\": %llu, \"folded_bytes\": %.0f,\n"
                 " \"kernels\": {",
                 ended_s, finished, there.aborted_rank, there.abort_code, there.exited_rank, there.exit_code, region_s,
                 there.computing_s, there.wtime_s, static_cast<unsigned long long>(there.put_off),
                 there.put_off > 0 ? there.put_off_low_bytes : 0.0, there.put_off_high_bytes,
                 static_cast<unsigned long long>(there.messages), static_cast<unsigned long long>(there.probes),
                 static_cast<unsigned long long>(there.threads), static_cast<unsigned long long>(there.gapped.messages),
                 there.gapped.bytes,
                 there.gapped.timed_bytes > 0.0 ? there.gapped.timed_s / there.gapped.timed_bytes * there.gapped.bytes
                                                : 0.0,
                 static_cast<unsigned long long>(there.folded), there.folded_bytes);
    write_kernels(file, there);
    std::fputs("},\n \"fallback\": {", file);
    write_fallback(file, there);
    std::fputs("},\n \"own_computing\": ", file);
    write_computing(file, there);
    std::fputs("}\n", file);
    if (std::fclose(file) == 0) {
        std::rename(temporary.c_str(), there.request.report.c_str());
    }
}

void write_progress() {
    static std::uint64_t signs = 0;
    static Clock::time_point last = Clock::now();
    const State& there = state();
    if (++signs % signs_between_looks != 0 || there.request.progress.empty()) {
        return;
    }
    const Clock::time_point now = Clock::now();
    if (now - last < between_reports) {
        return;
    }
    last = now;
    if (std::FILE* file = std::fopen(there.request.progress.c_str(), "w")) {
        std::fprintf(file, "%.9g %llu\n", simgrid::s4u::Engine::get_clock(),
                     static_cast<unsigned long long>(there.calls));
        std::fclose(file);
    }
}

} // namespace lepaute::simblas
