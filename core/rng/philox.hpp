#pragma once
// Counter-based random numbers: a draw is a pure function of (seed, rank, stream, index), so that a run does not
// depend on scheduling, on the number of threads, or on how many draws another rank made.

#include <array>
#include <cstdint>

namespace lepaute::rng {

/// Philox4x32-10 (Salmon, Moraes, Dror & Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC'11, section 3.3).
[[nodiscard]] std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                                      std::array<std::uint32_t, 2> key) noexcept;

/// What a draw belongs to. Streams separate uses that must not share numbers (kernels, pivots, days, ...).
struct Coordinates {
    std::uint64_t seed;
    std::uint32_t rank;
    std::uint32_t stream;
    std::uint64_t index;
};

/// A uniform variate in the open interval (0, 1), 53 bits.
[[nodiscard]] double uniform(const Coordinates& at) noexcept;

/// A standard normal variate, by inversion.
[[nodiscard]] double normal(const Coordinates& at) noexcept;

/// A Student variate with `degrees_of_freedom` >= 1 (a normal one when it is 0), from draws 0 .. degrees_of_freedom of
/// the stream of `at`; at.index is ignored.
[[nodiscard]] double student(Coordinates at, int degrees_of_freedom) noexcept;

/// A half-normal variate shifted and scaled to mean 0 and standard deviation 1:
/// (|Z| - sqrt(2/pi)) / sqrt(1 - 2/pi), bounded below, with a tail to the right (Cornebize & Legrand).
[[nodiscard]] double centred_half_normal(const Coordinates& at) noexcept;

} // namespace lepaute::rng
