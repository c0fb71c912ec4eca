#pragma once
// How far a run has come, for the threads that wait for it, which may also ask it to end.

#include <atomic>
#include <cstdint>

namespace lepaute::mpi {

struct Progress {
    std::atomic<std::uint64_t> begun_steps{0}; // summed over ranks; written now and then
    std::atomic<bool> cancelled{false};
};

} // namespace lepaute::mpi
