// Row swap of an update by binary exchange (HPL_pdlaswp00T): the rows that become U are spread over the process column
// while each process gives away the rows that it held. Distances are relative to the owner row.

#include "apps/hpl/simulation.hpp"

#include <bit>
#include <unordered_map>

namespace lepaute::hpl {

using mpi::Rank;
using mpi::Task;

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

Task Program::swap_binary_exchange(Place at, const Panel& panel, std::int64_t columns, const Panel* incoming,
                                   bool& incoming_done) {
    const SwapPlan& plan = swap_plan(panel);
    const std::uint32_t p = parameters_.p;
    const std::uint32_t power = std::bit_floor(p);
    const std::uint32_t distance = (at.row + p - panel.owner_row) % p;
    const auto row_at = [&](std::uint32_t d) { return (panel.owner_row + d) % p; };
    const auto rank_of = [&](std::uint32_t d) { return rank_at(row_at(d), at.column); };
    const double u_bytes = 8.0 * static_cast<double>(panel.width * columns);
    const auto w_bytes = [&](std::int64_t count) { return 8.0 * static_cast<double>(count * (columns + 1)); };
    const auto tag = swap_tag(panel);
    const std::int64_t owner_rows = plan.owner_rows;
    const std::int64_t mine = plan.held[distance];
    const std::int64_t folded = distance < power && distance + power < p ? plan.held[distance + power] : 0;
    const bool transposed = parameters_.u == Form::transposed;
    const auto swap_kernel = [&](Kernel which, std::int64_t count) {
        const bool within_u = which == Kernel::dlaswp03T || which == Kernel::dlaswp03N;
        if (count > 0) {
            kernel(at.rank, which, count, columns, within_u ? 0 : panel.rows);
        }
    };
    const Kernel to_u = transposed ? Kernel::dlaswp01T : Kernel::dlaswp01N;
    const Kernel into_u = transposed ? Kernel::dlaswp03T : Kernel::dlaswp03N;
    const Kernel from_u_into_u = transposed ? Kernel::dlaswp04T : Kernel::dlaswp04N;
    const Kernel from_u = transposed ? Kernel::dlaswp05T : Kernel::dlaswp05N;

    swap_kernel(distance == 0 ? to_u : Kernel::dlaswp02N, distance == 0 ? owner_rows : mine);
    if (must_poll(at, incoming, incoming_done)) {
        co_await take_broadcast(at, *incoming, incoming_done);
    }

    // Processes beyond the power of two give their rows to a partner, whose U they get in the end.
    const std::uint32_t fold = distance ^ power;
    if (power < p && fold < p) {
        if (distance == 0) {
            if (folded > 0) {
                co_await exchange(at.rank, {Phase::swap, rank_of(fold), tag, u_bytes});
            } else {
                co_await send(at.rank, {Phase::swap, rank_of(fold), tag, u_bytes});
            }
            swap_kernel(into_u, folded);
        } else if (distance == power) {
            if (mine > 0) {
                co_await exchange(at.rank, {Phase::swap, rank_of(0), tag, w_bytes(mine)});
            } else {
                co_await engine_.receive(at.rank, rank_of(0), tag);
            }
        } else if (distance > power && mine > 0) {
            co_await send(at.rank, {Phase::swap, rank_of(fold), tag, w_bytes(mine)});
        } else if (distance < power && folded > 0) {
            co_await engine_.receive(at.rank, rank_of(fold), tag);
        }
    }
    if (must_poll(at, incoming, incoming_done)) {
        co_await take_broadcast(at, *incoming, incoming_done);
    }

    if (distance < power) {
        std::size_t stage = p; // where the rows held before this round stand in the plan
        for (std::uint32_t bit = 1; bit < power; bit <<= 1U, stage += p) {
            const std::uint32_t partner = distance ^ bit;
            const SwapPlan& now = swap_plan(panel); // others may have taken its place meanwhile
            const bool has_u = distance < bit;
            const bool gets_u = !has_u && distance < 2 * bit;
            const std::int64_t partner_rows = now.held[stage + partner];
            const std::int64_t my_rows = now.held[stage + distance];
            const double out = has_u ? u_bytes : w_bytes(my_rows);
            const bool receives = gets_u || partner_rows > 0;
            if (out > 0.0 && receives) {
                co_await exchange(at.rank, {Phase::swap, rank_of(partner), tag, out});
            } else if (out > 0.0) {
                co_await send(at.rank, {Phase::swap, rank_of(partner), tag, out});
            } else if (receives) {
                co_await engine_.receive(at.rank, rank_of(partner), tag);
            }
            if (has_u) {
                swap_kernel(into_u, partner_rows);
            } else if (gets_u) {
                swap_kernel(from_u_into_u, my_rows);
            }
            if (must_poll(at, incoming, incoming_done)) {
                co_await take_broadcast(at, *incoming, incoming_done);
            }
        }
    } else {
        // The first process beyond the power of two has U and spreads it among those beyond, by a binomial tree.
        const std::uint32_t beyond = p - power;
        const std::uint32_t own = distance - power;
        for (std::uint32_t bit = beyond > 1 ? std::bit_floor(beyond - 1) : 0; bit > 0; bit >>= 1U) {
            if (own % bit == 0) {
                const std::uint32_t partner = own ^ bit;
                if ((own & bit) != 0) {
                    co_await engine_.receive(at.rank, rank_of(power + partner), tag);
                } else if (partner < beyond) {
                    co_await send(at.rank, {Phase::swap, rank_of(power + partner), tag, u_bytes});
                }
            }
            if (must_poll(at, incoming, incoming_done)) {
                co_await take_broadcast(at, *incoming, incoming_done);
            }
        }
        swap_kernel(from_u, mine);
    }
    if (power < p && fold < p) { // the final U for those beyond the power of two
        if (distance >= power) {
            co_await engine_.receive(at.rank, rank_of(fold), tag);
        } else {
            co_await send(at.rank, {Phase::swap, rank_of(fold), tag, u_bytes});
        }
    }
    if (must_poll(at, incoming, incoming_done)) {
        co_await take_broadcast(at, *incoming, incoming_done);
    }
}

} // namespace lepaute::hpl
