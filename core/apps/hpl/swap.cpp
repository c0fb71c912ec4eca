// Row swap of an update by binary exchange (HPL_pdlaswp00T): the rows that become U are spread over the process column
// while each process gives away the rows that it held. Distances are relative to the owner row.

#include "apps/hpl/update.hpp"

#include <bit>
#include <numeric>
#include <utility>
#include <vector>

namespace lepaute::hpl {

namespace {

constexpr std::uint32_t pivot_stream = 0x50495600U;

/// Which row stands where while rows are swapped: each begins at the place of its number. Most that move are those of
/// the block of `width` rows from `start` on, and as many others at most.
class RowsInPlaces {
public:
    RowsInPlaces(std::int64_t start, std::int64_t width)
        : start_(start), block_(static_cast<std::size_t>(width)),
          others_(std::bit_ceil(2 * static_cast<std::size_t>(width))) {
        std::iota(block_.begin(), block_.end(), start);
    }
    [[nodiscard]] std::int64_t& at(std::int64_t place) {
        const auto in_block = static_cast<std::size_t>(place - start_); // large for a place before the block
        if (in_block < block_.size()) {
            return block_[in_block];
        }
        const std::size_t last = others_.size() - 1;
        std::size_t slot = (static_cast<std::uint64_t>(place) * 0x9E3779B97F4A7C15U >> 32U) & last;
        while (others_[slot].place != place && others_[slot].place >= 0) {
            slot = (slot + 1) & last;
        }
        if (others_[slot].place < 0) {
            others_[slot] = {place, place};
        }
        return others_[slot].row;
    }

private:
    struct Other {
        std::int64_t place = -1;
        std::int64_t row = 0;
    };
    std::int64_t start_;
    std::vector<std::int64_t> block_;
    std::vector<Other> others_; // by the hash of the place, else the next free slot
};

} // namespace

std::uint32_t Program::swap_tag(const Panel& panel) noexcept {
    return 0x20000000U + static_cast<std::uint32_t>(panel.step);
}

/// Which process rows the rows of U come from. Unless the pivots are given, each is uniform among the rows not yet
/// factored, as it is for a random matrix. A row of the block that was swapped out and is chosen again comes from the
/// owner, not from where it was put. Made once a step: all ranks see the same.
const Program::SwapPlan& Program::swap_plan(const Panel& panel) {
    SwapPlan& plan = swap_plans_.at(panel.step);
    if (plan.step == panel.step) {
        return plan;
    }
    plan.step = panel.step;
    RowsInPlaces rows(panel.start, panel.width);
    const auto drawn = [&](std::int64_t place) {
        const double u = rng::uniform({seed_, 0, pivot_stream, static_cast<std::uint64_t>(place)});
        const std::int64_t nb = parameters_.nb;
        for (std::uint32_t row = 0; parameters_.pivots == Pivots::first_row && row < parameters_.p; ++row) {
            const std::int64_t left = local_count_from(parameters_.n - place, place, nb, row, parameters_.p);
            if (left > 0) {
                const std::int64_t local = local_count(place, nb, row, parameters_.p) +
                                           static_cast<std::int64_t>(u * static_cast<double>(left));
                return (local / nb * parameters_.p + row) * nb + local % nb;
            }
        }
        return place + static_cast<std::int64_t>(u * static_cast<double>(parameters_.n - place));
    };
    for (std::int64_t place = panel.start; place < panel.start + panel.width; ++place) {
        const std::int64_t pivot =
            parameters_.pivot_rows.empty() ? drawn(place) : parameters_.pivot_rows[static_cast<std::size_t>(place)];
        std::swap(rows.at(pivot), rows.at(place));
    }
    const std::uint32_t p = parameters_.p;
    const std::uint32_t power = std::bit_floor(p);
    std::vector<std::int64_t> held(p, 0); // by distance from the owner
    plan.owner_rows = panel.width;        // the rows of the block itself are packed, wherever they go
    for (std::int64_t place = panel.start; place < panel.start + panel.width; ++place) {
        const std::int64_t row = rows.at(place);
        const auto process = static_cast<std::uint32_t>((row / parameters_.nb) % p);
        if (process != panel.owner_row) {
            ++held[(process + p - panel.owner_row) % p];
        } else if (row >= panel.start + panel.width) {
            ++plan.owner_rows; // a row of the owner outside of the block
        }
    }
    plan.held = held;
    for (std::uint32_t d = 1; d + power < p; ++d) { // the owner has already used what it got
        held[d] += held[d + power];
    }
    const auto rounds = static_cast<std::uint32_t>(std::countr_zero(power));
    plan.rounds.resize(std::size_t{power} * rounds);
    for (std::uint32_t round = 0; round < rounds; ++round) {
        const std::uint32_t bit = 1U << round;
        for (std::uint32_t d = 0; d < power; ++d) {
            plan.rounds[d * rounds + round] = {static_cast<std::int32_t>(held[d]),
                                               static_cast<std::int32_t>(held[d ^ bit])};
        }
        for (std::uint32_t d = 0; d < power; ++d) { // both of a pair now hold the rows of both
            if ((d ^ bit) > d) {
                held[d] += held[d ^ bit];
                held[d ^ bit] = held[d];
            }
        }
    }
    return plan;
}

bool Program::Update::begin_exchange() {
    const SwapPlan& plan = program_.swap_plan(panel_);
    if (distance_ == 0) {
        swap_kernel(transposed() ? Kernel::dlaswp01T : Kernel::dlaswp01N, plan.owner_rows, panel_.rows);
    } else {
        swap_kernel(Kernel::dlaswp02N, plan.held[distance_], panel_.rows);
    }
    return poll(&Update::fold);
}

/// Processes beyond the power of two give their rows to a partner, whose U they get in the end.
bool Program::Update::fold() {
    next_ = &Update::folded;
    if (!folds()) {
        return true;
    }
    const std::vector<std::int64_t>& held = program_.swap_plan(panel_).held;
    const mpi::Rank partner = rank_of(distance_ ^ power());
    const std::int64_t rows = held[distance_ < power() ? distance_ + power() : distance_]; // of who is beyond
    if (distance_ == 0) {
        return rows > 0 ? exchange(partner, u_bytes()) : send(partner, u_bytes());
    }
    if (distance_ == power()) {
        return rows > 0 ? exchange(partner, w_bytes(rows)) : receive(partner);
    }
    if (rows == 0) {
        return true;
    }
    return distance_ > power() ? send(partner, w_bytes(rows)) : receive(partner);
}

bool Program::Update::folded() {
    if (distance_ == 0 && folds()) {
        swap_kernel(into_u(), program_.swap_plan(panel_).held[power()], 0);
    }
    if (distance_ < power()) {
        bit_ = 1;
        return poll(&Update::round);
    }
    const std::uint32_t beyond = program_.parameters_.p - power();
    bit_ = beyond > 1 ? std::bit_floor(beyond - 1) : 0;
    return poll(&Update::spread_beyond);
}

Program::SwapPlan::Round Program::Update::rows_of_round() {
    const auto rounds = static_cast<std::uint32_t>(std::countr_zero(power()));
    const auto number = static_cast<std::uint32_t>(std::countr_zero(bit_));
    return program_.swap_plan(panel_).rounds[distance_ * rounds + number];
}

bool Program::Update::round() {
    if (bit_ >= power()) {
        next_ = &Update::unfold;
        return true;
    }
    next_ = &Update::exchanged;
    const SwapPlan::Round rows = rows_of_round();
    const std::uint32_t partner = distance_ ^ bit_;
    const bool has_u = distance_ < bit_;
    const double out = has_u ? u_bytes() : w_bytes(rows.own);
    const bool receives = (!has_u && distance_ < 2 * bit_) || rows.partner > 0;
    if (out > 0.0) {
        return receives ? exchange(rank_of(partner), out) : send(rank_of(partner), out);
    }
    return !receives || receive(rank_of(partner));
}

bool Program::Update::exchanged() {
    if (distance_ < 2 * bit_) { // has or gets U
        const SwapPlan::Round rows = rows_of_round();
        if (distance_ < bit_) {
            swap_kernel(into_u(), rows.partner, 0);
        } else {
            swap_kernel(transposed() ? Kernel::dlaswp04T : Kernel::dlaswp04N, rows.own, panel_.rows);
        }
    }
    bit_ *= 2;
    return poll(&Update::round);
}

/// The first process beyond the power of two has U and spreads it among those beyond, by a binomial tree.
bool Program::Update::spread_beyond() {
    if (bit_ == 0) {
        swap_kernel(transposed() ? Kernel::dlaswp05T : Kernel::dlaswp05N, program_.swap_plan(panel_).held[distance_],
                    panel_.rows);
        next_ = &Update::unfold;
        return true;
    }
    next_ = &Update::beyond;
    const std::uint32_t own = distance_ - power();
    const std::uint32_t partner = own ^ bit_;
    if (own % bit_ != 0) {
        return true;
    }
    if ((own & bit_) != 0) {
        return receive(rank_of(power() + partner));
    }
    return partner >= program_.parameters_.p - power() || send(rank_of(power() + partner), u_bytes());
}

/// The final U for those beyond the power of two.
bool Program::Update::unfold() {
    next_ = &Update::unfolded;
    if (!folds()) {
        return true;
    }
    const mpi::Rank partner = rank_of(distance_ ^ power());
    return distance_ >= power() ? receive(partner) : send(partner, u_bytes());
}

} // namespace lepaute::hpl
