#pragma once
// Which steps of HPL are simulated when not all are, and what they stand for.
//
// Windows of consecutive steps are simulated in full; the time of a step in between follows from a polynomial through
// the mean times of the windows (it is a smooth function of what is left of the matrix). The first and the last steps
// are counted as they are, with the beginning and the end of the program.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lepaute::hpl {

/// Time (or anything else that adds up) between the beginnings of two simulated steps, and how often it counts.
struct Span {
    std::size_t begin; // index of a simulated step; from its beginning
    std::size_t end;   // to the beginning of this one, or to the end of the run (index: number of simulated steps)
    double weight;
};

struct Sample {
    std::vector<std::int64_t> steps; // increasing
    std::vector<Span> spans;         // what the whole run is made of; all of it, once, when all steps are simulated
    /// The same with one window less, for each window but the first and the last: how much the result depends on them.
    std::vector<std::vector<Span>> alternatives;
};

struct Windows {
    std::uint32_t count = 5;
    std::int64_t warm_up = 16;  // steps that only bring the ranks into the relation that lasts
    std::int64_t measured = 32; // steps whose time is taken
};

/// All of `steps` steps.
[[nodiscard]] Sample whole(std::int64_t steps);

/// Windows at the points of Chebyshev and Lobatto over `steps` steps. Between windows `multiple` divides the number of
/// steps that are left out, so that the same process column comes next. The whole where that would not save half.
[[nodiscard]] Sample sampled(std::int64_t steps, std::int64_t multiple, const Windows& windows);

/// The first `head` of `steps` steps, at least one, and `count` others: one after the other in the middle of the run,
/// or at three places spread over it. Between them `multiple` divides the number of steps that are left out. Their mean
/// cost is about that of all.
[[nodiscard]] Sample trial(std::int64_t steps, std::int64_t multiple, std::int64_t head, std::int64_t count);

} // namespace lepaute::hpl
