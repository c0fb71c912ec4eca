// Row swap of an update by binary exchange (HPL_pdlaswp00T): the rows that become U are spread over the process column
// while each process gives away the rows that it held. Distances are relative to the owner row.

#include "apps/hpl/update.hpp"

#include <bit>
#include <unordered_map>

namespace lepaute::hpl {

namespace {

constexpr std::uint32_t pivot_stream = 0x50495600U;

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
    std::unordered_map<std::int64_t, std::int64_t> moved; // place -> the row that has been swapped to it
    const auto row_in = [&](std::int64_t place) {
        const auto found = moved.find(place);
        return found == moved.end() ? place : found->second;
    };
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
        const std::int64_t row = row_in(pivot);
        moved[pivot] = row_in(place);
        moved[place] = row;
    }
    const std::uint32_t p = parameters_.p;
    const std::uint32_t power = std::bit_floor(p);
    std::vector<std::int64_t> held(p, 0); // by distance from the owner
    plan.owner_rows = panel.width;        // the rows of the block itself are packed, wherever they go
    for (std::int64_t place = panel.start; place < panel.start + panel.width; ++place) {
        const std::int64_t row = row_in(place);
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
    for (std::uint32_t bit = 1; bit < power; bit <<= 1U) {
        plan.held.insert(plan.held.end(), held.begin(), held.end());
        for (std::uint32_t d = 0; d < power; ++d) { // both of a pair now hold the rows of both
            if ((d ^ bit) > d) {
                held[d] += held[d ^ bit];
                held[d ^ bit] = held[d];
            }
        }
    }
    return plan;
}

void Program::Update::begin_exchange() {
    const SwapPlan& plan = program_.swap_plan(panel_);
    if (distance_ == 0) {
        swap_kernel(transposed() ? Kernel::dlaswp01T : Kernel::dlaswp01N, plan.owner_rows, panel_.rows);
    } else {
        swap_kernel(Kernel::dlaswp02N, plan.held[distance_], panel_.rows);
    }
    poll(Next::fold);
}

/// Processes beyond the power of two give their rows to a partner, whose U they get in the end.
bool Program::Update::fold() {
    next_ = Next::folded;
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

void Program::Update::folded() {
    if (distance_ == 0 && folds()) {
        swap_kernel(into_u(), program_.swap_plan(panel_).held[power()], 0);
    }
    if (distance_ < power()) {
        bit_ = 1;
        stage_ = program_.parameters_.p;
        poll(Next::round);
    } else {
        const std::uint32_t beyond = program_.parameters_.p - power();
        bit_ = beyond > 1 ? std::bit_floor(beyond - 1) : 0;
        poll(Next::spread_beyond);
    }
}

bool Program::Update::round() {
    if (bit_ >= power()) {
        next_ = Next::unfold;
        return true;
    }
    next_ = Next::exchanged;
    const std::int64_t* const held = program_.swap_plan(panel_).held.data() + stage_;
    const std::uint32_t partner = distance_ ^ bit_;
    const bool has_u = distance_ < bit_;
    const double out = has_u ? u_bytes() : w_bytes(held[distance_]);
    const bool receives = (!has_u && distance_ < 2 * bit_) || held[partner] > 0;
    if (out > 0.0) {
        return receives ? exchange(rank_of(partner), out) : send(rank_of(partner), out);
    }
    return !receives || receive(rank_of(partner));
}

void Program::Update::exchanged() {
    if (distance_ < 2 * bit_) { // has or gets U
        const std::int64_t* const held = program_.swap_plan(panel_).held.data() + stage_;
        if (distance_ < bit_) {
            swap_kernel(into_u(), held[distance_ ^ bit_], 0);
        } else {
            swap_kernel(transposed() ? Kernel::dlaswp04T : Kernel::dlaswp04N, held[distance_], panel_.rows);
        }
    }
    bit_ *= 2;
    stage_ += program_.parameters_.p;
    poll(Next::round);
}

/// The first process beyond the power of two has U and spreads it among those beyond, by a binomial tree.
bool Program::Update::spread_beyond() {
    if (bit_ == 0) {
        swap_kernel(transposed() ? Kernel::dlaswp05T : Kernel::dlaswp05N, program_.swap_plan(panel_).held[distance_],
                    panel_.rows);
        next_ = Next::unfold;
        return true;
    }
    next_ = Next::beyond;
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
    next_ = Next::unfolded;
    if (!folds()) {
        return true;
    }
    const mpi::Rank partner = rank_of(distance_ ^ power());
    return distance_ >= power() ? receive(partner) : send(partner, u_bytes());
}

} // namespace lepaute::hpl
