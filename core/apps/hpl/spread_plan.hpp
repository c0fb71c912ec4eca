#pragma once
// How the rows of U reach all processes of a column in the spread-roll swap (HPL_pdlaswp01): who holds which rows when.
// A pure function of how many rows each process is concerned with; all ranks of a step share one plan. The processes
// stand in an order of their own ("positions"; the owner of the block is at 0): those that a binomial tree reaches late
// get few rows. Rows are numbered by position, so that each position holds an interval of them.

#include <cstdint>
#include <vector>

namespace lepaute::hpl {

/// The rows that one position holds are handed to those on one side of it, by a binomial tree (HPL_spread).
struct Spread {
    std::uint32_t source = 0;        // position
    bool left = false;               // towards position 0, else towards the last
    std::vector<std::int64_t> first; // by position (and the end): the first of the rows that are for it

    [[nodiscard]] std::uint32_t size() const noexcept {
        return left ? source + 1 : static_cast<std::uint32_t>(first.size()) - 1 - source;
    }
    [[nodiscard]] std::uint32_t position(std::uint32_t distance) const noexcept {
        return left ? source - distance : source + distance;
    }
    /// Rows that go between `distance` and `distance ^ bit`, both below size().
    [[nodiscard]] std::int64_t rows(std::uint32_t distance, std::uint32_t bit) const noexcept;
};

/// What a process does in spreads: a message, where there are rows, then probes for an incoming panel.
struct SpreadStep {
    std::uint32_t partner = 0; // position
    bool receives = false;
    std::int64_t rows = 0; // 0: no message
    std::uint32_t probes = 0;
};

struct SpreadPlan {
    std::vector<std::uint32_t> row_at;   // process row, by position
    std::vector<std::uint32_t> position; // position, by process row
    Spread from_owner;                   // the rows of the block, to whom they are for
    std::vector<Spread> levelling;       // equilibration: until all positions hold as many rows, or nearly
    std::vector<std::vector<SpreadStep>> steps_from_owner;   // the same by position,
    std::vector<std::vector<SpreadStep>> steps_of_levelling; // of all spreads one after the other
    std::vector<std::int64_t> rolled; // by position (and the end): the first of the rows that it holds when they roll

    [[nodiscard]] std::int64_t rows_at(std::uint32_t at) const noexcept { return rolled[at + 1] - rolled[at]; }
};

/// rows_for: by distance from the owner row, the rows of the block that leave for that process row (for the owner: the
/// rows of U that it holds already).
[[nodiscard]] SpreadPlan spread_plan(const std::vector<std::int64_t>& rows_for, std::uint32_t owner_row,
                                     bool equilibrate);

} // namespace lepaute::hpl
