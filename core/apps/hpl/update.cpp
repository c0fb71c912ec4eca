// Update of the trailing matrix by a panel (HPL_pdupdateTT): row swap, triangular solve, matrix product. While another
// panel is on its way, NB columns are updated at a time, with a probe in between.

#include "apps/hpl/simulation.hpp"

#include <algorithm>

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
    kernel(at.rank, Kernel::pdupdate_glue, panel.width, columns, 0);
    if (incoming != nullptr) {
        co_await poll_broadcast(at, *incoming, incoming_done);
    }
    const bool one_row = parameters_.p == 1;
    const bool owner = at.row == panel.owner_row;
    const std::int64_t below = panel.rows - (owner ? panel.width : 0);
    if (!one_row) {
        co_await swap_binary_exchange(at, panel, columns, incoming, incoming_done);
    }
    std::int64_t updated = 0;
    while (updated < columns) {
        const bool probing = incoming != nullptr && !incoming_done;
        const std::int64_t count = probing ? std::min(parameters_.nb, columns - updated) : columns - updated;
        if (one_row) {
            kernel(at.rank, Kernel::dlaswp00N, panel.width, count, leading_dimension(at.row));
            kernel(at.rank, Kernel::dtrsm_left, panel.width, count, panel.width);
        } else {
            kernel(at.rank, Kernel::dtrsm, count, panel.width, panel.width);
        }
        if (below > 0) {
            kernel(at.rank, one_row ? Kernel::dgemm_nn : Kernel::dgemm, below, count, panel.width);
        }
        if (!one_row && owner) {
            kernel(at.rank, Kernel::dlatcpy, panel.width, count, leading_dimension(at.row));
        }
        updated += count;
        if (probing) {
            if (updated < columns) {
                co_await poll_broadcast(at, *incoming, incoming_done);
            } else { // nothing left to do meanwhile
                co_await finish_broadcast(at, *incoming, incoming_done);
            }
        }
    }
    panel.columns -= columns;
}

} // namespace lepaute::hpl
