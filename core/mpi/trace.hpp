#pragma once
// What ran when on which rank, kept for chosen ranks and steps only.

#include <cstdint>
#include <vector>

namespace lepaute::mpi {

/// Where the time of a rank goes.
enum class Share : std::uint8_t { compute, overhead, late, transfer, contention, probe, count };
inline constexpr std::size_t share_count = static_cast<std::size_t>(Share::count);

/// Calls that are traced; kernels have codes of the application's own, from first_kernel_code on.
enum class Call : std::int16_t {
    send,
    receive,
    irecv,
    wait,
    iprobe,
    ssend,
    issend,
    isend,
    waitall,
    waitany,
    probe,
    count
};
inline constexpr std::int16_t first_kernel_code = 100;
inline constexpr std::int16_t first_phase_code = 1000;

struct TraceRow {
    std::uint32_t rank = 0;
    std::int32_t step = -1;
    std::int16_t code = 0;  // a Call, first_kernel_code + kernel or first_phase_code + phase
    std::int32_t peer = -1; // -1: none
    std::int64_t tag = -1;  // -1: none
    double start_s = 0.0;
    double duration_s = 0.0;
    double m = 0.0;
    double n = 0.0;
    double k = 0.0;
    double size_bytes = 0.0;
    double late_s = 0.0;
    double transfer_s = 0.0;
    double contention_s = 0.0;
};

/// What is wanted, and what came. `rank_wanted` is empty when nothing is.
struct Trace {
    std::vector<std::uint8_t> rank_wanted; // per rank
    std::vector<std::uint8_t> step_wanted; // per step; empty: all
    std::vector<TraceRow> rows;
    std::vector<double> share_of_step_s; // steps x share_count, summed over ranks; grows as steps come

    [[nodiscard]] bool on() const noexcept { return !rank_wanted.empty(); }
    [[nodiscard]] bool wants(std::uint32_t rank, std::int32_t step) const noexcept {
        return on() && rank_wanted[rank] != 0 &&
               (step_wanted.empty() || (step >= 0 && static_cast<std::size_t>(step) < step_wanted.size() &&
                                        step_wanted[static_cast<std::size_t>(step)] != 0));
    }
};

} // namespace lepaute::mpi
