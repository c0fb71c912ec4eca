// Row swap of an update by spreading and rolling (HPL_pdlaswp01): the owner of the block hands out its rows by a
// binomial tree, each process swaps those it gets with its own, the shares are made level, and neighbours swap shares
// until all have all of U.

#include "apps/hpl/simulation.hpp"

#include <numeric>

namespace lepaute::hpl {

using mpi::Rank;
using mpi::Task;

namespace {

double bytes_of(std::int64_t rows, std::int64_t columns) noexcept { return 8.0 * static_cast<double>(rows * columns); }

} // namespace

std::shared_ptr<const SpreadPlan> Program::plan_of(const Panel& panel) {
    PlanOfStep& slot = spread_plans_.at(panel.step);
    if (slot.step != panel.step) {
        // Each row that leaves the block makes place for one that comes.
        const std::vector<std::int64_t>& held = swap_plan(panel).held;
        std::vector<std::int64_t> rows(held.begin(), held.begin() + parameters_.p);
        rows.front() = panel.width - std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
        slot = {panel.step, std::make_shared<const SpreadPlan>(spread_plan(rows, panel.owner_row, parameters_.equil))};
    }
    return slot.plan;
}

Task Program::swap_spread_roll(Place at, const Panel& panel, std::int64_t columns, const Panel* incoming,
                               bool& incoming_done) {
    const std::shared_ptr<const SpreadPlan> plan = plan_of(panel);
    const SwapPlan& rows = swap_plan(panel);
    const std::int64_t owner_rows = rows.owner_rows;
    const std::int64_t mine = rows.held[(at.row + parameters_.p - panel.owner_row) % parameters_.p];
    const bool owner = at.row == panel.owner_row;
    const bool transposed = parameters_.u == Form::transposed;
    const auto swap_kernel = [&](Kernel which, std::int64_t count) {
        if (count > 0) {
            kernel(at.rank, which, count, columns, panel.rows);
        }
    };
    if (owner) {
        swap_kernel(transposed ? Kernel::dlaswp01T : Kernel::dlaswp01N, owner_rows);
    }
    const std::uint32_t position = plan->position[at.row];
    for (const bool levelling : {false, true}) {
        for (const SpreadStep& step : (levelling ? plan->steps_of_levelling : plan->steps_from_owner)[position]) {
            if (step.rows > 0) {
                const Rank partner = rank_at(plan->row_at[step.partner], at.column);
                if (step.receives) {
                    co_await engine_.receive(at.rank, partner, swap_tag(panel));
                } else { // Rows of U are columns of the transposed: in one piece.
                    co_await send(at.rank, {.phase = Phase::swap,
                                            .to = partner,
                                            .tag = swap_tag(panel),
                                            .bytes = bytes_of(step.rows, columns),
                                            .noncontiguous = !transposed});
                }
            }
            for (std::uint32_t probe = 0; incoming != nullptr && probe < step.probes; ++probe) {
                if (must_poll(at, incoming, incoming_done)) {
                    co_await take_broadcast(at, *incoming, incoming_done);
                }
            }
        }
        if (!levelling && !owner) {
            swap_kernel(transposed ? Kernel::dlaswp06T : Kernel::dlaswp06N, mine);
        }
    }
    co_await roll(at, panel, *plan, columns, incoming, incoming_done);
    // U has come in the order of the processes; its leading dimension is its own.
    if (transposed) {
        kernel(at.rank, Kernel::dlaswp10N, columns, panel.width, columns);
    } else {
        kernel(at.rank, Kernel::dlaswp00N, panel.width, columns, panel.width);
    }
}

Task Program::roll(Place at, const Panel& panel, const SpreadPlan& plan, std::int64_t columns, const Panel* incoming,
                   bool& incoming_done) {
    const std::uint32_t p = parameters_.p;
    const std::uint32_t position = plan.position[at.row];
    const Rank previous = rank_at(plan.row_at[(position + p - 1) % p], at.column);
    const Rank next = rank_at(plan.row_at[(position + 1) % p], at.column);
    for (std::uint32_t k = 0; k + 1 < p; ++k) {
        const std::uint32_t turn = k / 2;
        const bool backwards = ((position + k) & 1U) != 0;
        const Rank partner = backwards ? previous : next;
        const std::int64_t out = plan.rows_at((position + (backwards ? turn : p - turn)) % p);
        const std::int64_t in = plan.rows_at((position + (backwards ? p - turn - 1 : turn + 1)) % p);
        const Message message{.phase = Phase::swap,
                              .to = partner,
                              .tag = swap_tag(panel),
                              .bytes = bytes_of(out, columns),
                              .noncontiguous = parameters_.u != Form::transposed};
        if (out > 0 && in > 0) {
            co_await exchange(at.rank, message);
        } else if (out > 0) {
            co_await send(at.rank, message);
        } else if (in > 0) {
            co_await engine_.receive_in_two_calls(at.rank, partner, swap_tag(panel));
        }
        if (must_poll(at, incoming, incoming_done)) {
            co_await take_broadcast(at, *incoming, incoming_done);
        }
    }
}

} // namespace lepaute::hpl
