#pragma once
// Which steps of HPL are simulated when not all are, and what they stand for.
//
// Many short windows of consecutive steps are simulated. Between two of them the ranks leap over a multiple of the
// process columns: their dates keep their order, and go on in proportion to what is left of the matrix. The lag of
// ranks behind each other, which passes around the grid in waves, so goes on as if nothing had been left out.
//
// Where the windows leave the time uncertain, the ranks leap back before they come to the tail, and go through further
// windows between the first ones.
//
// What a step takes is, up to a factor that changes slowly, a sum of terms known for every step: the largest product,
// the rows of the panel, a constant. The windows only tell the factor.

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace lepaute::hpl {

/// Indices of simulated steps, from the beginning of the step `begin` to that of `end`, or to the end of the run (the
/// number of simulated steps).
struct Span {
    std::size_t begin;
    std::size_t end;
};

struct Sample {
    std::vector<std::int64_t> steps; // increasing
    /// What the run is made of: the head and the tail, which count once, and windows, which stand for what is left out.
    /// The last of the first windows is a part of the tail. None where nothing but the simulated steps counts.
    std::vector<Span> spans;
    /// Windows that may be simulated before the tail, between the first ones: their first steps and their lengths.
    struct Window {
        std::int64_t begin;
        std::int64_t length;
    };
    std::vector<Window> further;

    static constexpr std::size_t head = 0;
    static constexpr std::size_t tail = 1;
    static constexpr std::size_t first_window = 2;
};

/// All of `steps` steps.
[[nodiscard]] Sample whole(std::int64_t steps);

/// Windows over `steps` steps on a grid of p x q processes. Between windows q divides the number of steps that are left
/// out, so that the same process column comes next. The whole where that would not save half. The head has at least
/// `least_head` steps.
[[nodiscard]] Sample sampled(std::int64_t steps, std::int64_t p, std::int64_t q, std::int64_t least_head = 0);

/// The same with its further windows, which come before the tail; their spans are the last ones.
[[nodiscard]] Sample extended(Sample sample);

/// The terms that the time of a step is made of, by step.
using StepTerms = std::array<std::vector<double>, 3>;
[[nodiscard]] StepTerms step_terms(std::int64_t n, std::int64_t nb, std::int64_t p, std::int64_t q);

/// How often each span counts, for time and for whatever does not follow it (`counts`), and how much one window less
/// would change the time of the run, for each window.
struct Extrapolation {
    std::vector<double> weights;
    std::vector<double> counts;
    std::vector<double> changes_s;
};

/// began_s: when each simulated step began, and when the run ended, on a clock that stands still while ranks leap.
[[nodiscard]] Extrapolation extrapolated(const Sample& sample, const StepTerms& terms,
                                         const std::vector<double>& began_s);

/// Do the windows before the tail leave the time so uncertain that further ones are worth it? began_s: up to the
/// beginning of the tail.
[[nodiscard]] bool uncertain(const Sample& sample, const StepTerms& terms, const std::vector<double>& began_s);

/// The first `head` of `steps` steps, at least one, and `count` others: one after the other in the middle of the run,
/// or at three places spread over it. Between them `multiple` divides the number of steps that are left out. Their mean
/// cost is about that of all.
[[nodiscard]] Sample trial(std::int64_t steps, std::int64_t multiple, std::int64_t head, std::int64_t count);

} // namespace lepaute::hpl
