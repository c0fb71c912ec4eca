// Update of the trailing matrix by a panel (HPL_pdupdate): row swap, triangular solve, matrix product. While another
// panel is on its way, NB columns are updated at a time, with a probe in between.

#include "apps/hpl/simulation.hpp"

#include <algorithm>
#include <array>
#include <span>

namespace lepaute::hpl {

using models::Kernel;
using mpi::Task;

Task Program::update(Place at, Panel& panel, std::int64_t limit, const Panel* incoming, bool& incoming_done) {
    const std::int64_t columns = limit < 0 ? panel.columns : std::min(limit, panel.columns);
    if (columns <= 0 || panel.width <= 0) {
        if (incoming != nullptr) {
            co_await finish_broadcast(at, *incoming, incoming_done);
        }
        co_return;
    }
    const bool owner = at.row == panel.owner_row;
    const std::int64_t below = panel.rows - (owner ? panel.width : 0);
    const Staged staged(engine_, at.rank, panel.step, Stage::pdupdate,
                        {static_cast<double>(below), static_cast<double>(columns), static_cast<double>(panel.width)});
    kernel(at.rank, Kernel::pdupdate_glue, panel.width, columns, 0);
    if (incoming != nullptr) {
        co_await poll_broadcast(at, *incoming, incoming_done);
    }
    const bool one_row = parameters_.p == 1;
    const bool rolls = parameters_.swap == Swap::spread_roll ||
                       (parameters_.swap == Swap::mix && columns > parameters_.swap_threshold);
    if (!one_row && rolls) {
        co_await swap_spread_roll(at, panel, columns, incoming, incoming_done);
    } else if (!one_row) {
        co_await swap_binary_exchange(at, panel, columns, incoming, incoming_done);
    }
    const bool u_transposed = !one_row && parameters_.u_transposed;
    struct Call {
        Kernel kernel;
        models::Size size;
        models::KernelCost cost;
    };
    struct Calls {
        std::array<Call, 4> each;
        std::size_t count = 0;
    };
    // What `count` columns take, evaluated once for all blocks of that many columns.
    const auto calls_for = [&](std::int64_t count) {
        Calls calls;
        const auto add = [&](Kernel kernel, std::int64_t m, std::int64_t n, std::int64_t k) {
            const models::Size size{static_cast<double>(m), static_cast<double>(n), static_cast<double>(k)};
            calls.each[calls.count++] = {kernel, size, day_.cost(at.rank, kernel, size)};
        };
        if (one_row) {
            add(Kernel::dlaswp00N, panel.width, count, leading_dimension(at.row));
        }
        if (u_transposed) {
            add(Kernel::dtrsm, count, panel.width, panel.width);
        } else {
            add(Kernel::dtrsm_left, panel.width, count, panel.width);
        }
        if (below > 0) {
            add(u_transposed ? Kernel::dgemm : Kernel::dgemm_nn, below, count, panel.width);
        }
        if (!one_row && owner && u_transposed) {
            add(Kernel::dlatcpy, panel.width, count, leading_dimension(at.row));
        } else if (!one_row && owner) {
            add(Kernel::dlacpy, panel.width, count, 0);
        }
        return calls;
    };
    const auto compute = [&](const Calls& calls) {
        for (const Call& call : std::span(calls.each).first(calls.count)) {
            const double seconds = call.cost.modelled ? day_.draw_s(at.rank, call.cost) : 0.0;
            day_.note_calls(call.kernel, call.cost, call.size, 1, seconds);
            trace_kernel(at.rank, call.kernel, call.size, engine_.clock(at.rank), seconds);
            engine_.compute(at.rank, seconds);
        }
    };
    std::int64_t updated = 0;
    if (incoming != nullptr && !incoming_done) {
        // The real program updates a block of columns, probes, updates the next. Nothing that it does meanwhile
        // concerns others: so we learn first when the panel comes, and then count the blocks until that date.
        const mpi::Rank source = rank_at(at.row, incoming->source_column);
        const auto tag = broadcast_tag(*incoming);
        const double visible_s = co_await engine_.learn_arrival(at.rank, source, tag);
        double last_probe_s = -1.0;
        const Calls block = calls_for(std::min(parameters_.nb, columns));
        while (updated < columns && !incoming_done) {
            const std::int64_t count = std::min(parameters_.nb, columns - updated);
            compute(count == parameters_.nb || updated == 0 ? block : calls_for(count));
            updated += count;
            const double now_s = engine_.clock(at.rank);
            if (updated == columns) { // nothing left to do meanwhile
                co_await finish_broadcast(at, *incoming, incoming_done);
            } else if (visible_s <= engine_.probe_sees_s(now_s, last_probe_s)) {
                co_await take_broadcast(at, *incoming, incoming_done);
            } else {
                fruitless_probe(at, *incoming);
                last_probe_s = engine_.clock(at.rank);
            }
        }
    }
    if (updated < columns) {
        compute(calls_for(columns - updated));
    }
    panel.columns -= columns;
}

} // namespace lepaute::hpl
