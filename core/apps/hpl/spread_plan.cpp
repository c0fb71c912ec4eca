#include "apps/hpl/spread_plan.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace lepaute::hpl {

namespace {

/// Process rows in the order of their positions (HPL_logsort). A position is reached after as many steps of the tree as
/// it has bits, and hands rows on in the others: those with fewer bits get the processes with more rows.
std::vector<std::uint32_t> order_by_rows(std::vector<std::int64_t>& rows, std::uint32_t owner_row) {
    const auto size = static_cast<std::uint32_t>(rows.size());
    std::vector<std::uint32_t> row_at(size);
    int most_bits = 0;
    for (std::uint32_t at = 0; at < size; ++at) {
        row_at[at] = (at + owner_row) % size;
        most_bits = std::max(most_bits, std::popcount(at));
    }
    for (int bits = 1; bits <= most_bits; ++bits) {
        for (std::uint32_t early = 1; early < size; ++early) {
            if (std::popcount(early) != bits) {
                continue;
            }
            for (std::uint32_t late = 2; late < size; ++late) {
                if (bits < std::popcount(late) && rows[early] < rows[late]) {
                    std::swap(rows[early], rows[late]);
                    std::swap(row_at[early], row_at[late]);
                }
            }
        }
    }
    return row_at;
}

/// The shares of `total` rows when they are level: the first positions get one more where they do not divide.
struct Level {
    std::int64_t total;
    std::int64_t size;

    [[nodiscard]] std::int64_t first(std::int64_t at) const noexcept {
        return at * (total / size) + std::min(at, total % size);
    }
    [[nodiscard]] bool fits(std::int64_t rows) const noexcept {
        return rows == total / size || rows == (total + size - 1) / size;
    }
};

/// Adds to the steps of each position what it does in a spread.
void add_steps(const Spread& spread, std::vector<std::vector<SpreadStep>>& steps) {
    if (spread.size() <= 1) {
        return;
    }
    for (std::uint32_t distance = 0; distance < spread.size(); ++distance) {
        std::vector<SpreadStep>& own = steps[spread.position(distance)];
        for (std::uint32_t bit = std::bit_floor(spread.size() - 1); bit > 0; bit >>= 1U) {
            const std::uint32_t partner = distance ^ bit;
            const bool meets = distance % bit == 0 && partner < spread.size();
            const std::int64_t rows = meets ? spread.rows(distance, bit) : 0;
            if (rows > 0) {
                own.push_back({spread.position(partner), (distance & bit) != 0, rows, 1});
            } else if (own.empty()) {
                own.push_back({.probes = 1});
            } else {
                ++own.back().probes;
            }
        }
    }
}

/// What the owner of each position gives away so that all are level (HPL_equil), judged by what each held at first.
void level_out(SpreadPlan& plan) {
    const std::vector<std::int64_t>& held = plan.from_owner.first;
    const auto size = static_cast<std::uint32_t>(held.size() - 1);
    const Level level{held.back(), size};
    std::uint32_t good = 0;
    while (good < size && level.fits(held[good + 1] - held[good])) {
        ++good;
    }
    if (size <= 2 || good + 1 >= size) { // the real program does not look at the last
        return;
    }
    for (std::uint32_t source = 0; source < size; ++source) {
        const std::int64_t begin = held[source];
        const std::int64_t end = held[source + 1];
        const bool left = begin < level.first(source);
        const bool right = level.first(source + 1) < end;
        if (begin == end || !(left || right)) {
            continue;
        }
        std::vector<std::int64_t> first(size + 1);
        for (std::uint32_t at = 0; at <= size; ++at) {
            first[at] = std::clamp(level.first(at), begin, end);
        }
        if (left) {
            plan.levelling.push_back({source, true, first});
        }
        if (right) {
            plan.levelling.push_back({source, false, std::move(first)});
        }
    }
    for (std::uint32_t at = 0; at < size; ++at) {
        plan.rolled[at] = level.first(at);
    }
}

} // namespace

std::int64_t Spread::rows(std::uint32_t distance, std::uint32_t bit) const noexcept {
    // Who is one bit further from the source takes the rows of all that it will reach.
    const std::uint32_t begin = (distance & ~(2 * bit - 1)) + bit;
    if (left) {
        const std::uint32_t last = source - begin;
        // The real program sends the rows of one position too many.
        return first[last + 1] - first[last - std::min(last, bit)];
    }
    return first[std::min(source + begin + bit, static_cast<std::uint32_t>(first.size()) - 1)] - first[source + begin];
}

SpreadPlan spread_plan(const std::vector<std::int64_t>& rows_for, std::uint32_t owner_row, bool equilibrate) {
    std::vector<std::int64_t> rows = rows_for;
    SpreadPlan plan;
    plan.row_at = order_by_rows(rows, owner_row);
    plan.position.resize(rows.size());
    plan.rolled.assign(1, 0);
    for (std::uint32_t at = 0; at < rows.size(); ++at) {
        plan.position[plan.row_at[at]] = at;
        plan.rolled.push_back(plan.rolled.back() + rows[at]);
    }
    plan.from_owner.first = plan.rolled;
    if (equilibrate) {
        level_out(plan);
    }
    plan.steps_from_owner.resize(rows.size());
    plan.steps_of_levelling.resize(rows.size());
    add_steps(plan.from_owner, plan.steps_from_owner);
    for (const Spread& spread : plan.levelling) {
        add_steps(spread, plan.steps_of_levelling);
    }
    return plan;
}

} // namespace lepaute::hpl
