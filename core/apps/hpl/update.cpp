// Update of the trailing matrix by a panel (HPL_pdupdate): row swap, triangular solve, matrix product. While another
// panel is on its way, NB columns are updated at a time, with a probe in between.

#include "apps/hpl/simulation.hpp"

#include <algorithm>
#include <array>
#include <span>

namespace lepaute::hpl {

using mpi::Task;

/// What `count` columns of an update take on one rank: evaluated once for all blocks of that many columns.
class Program::ColumnCalls {
public:
    ColumnCalls(Program& program, const Place& at, const Panel& panel, std::int64_t count)
        : program_(program), rank_(at.rank) {
        const Parameters& parameters = program.parameters_;
        const bool one_row = parameters.p == 1;
        const bool owner = at.row == panel.owner_row;
        const bool u_transposed = !one_row && parameters.u == Form::transposed;
        const std::int64_t below = panel.rows - (owner ? panel.width : 0);
        if (one_row) {
            add(Kernel::dlaswp00N, panel.width, count, panel.rows);
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
            add(Kernel::dlatcpy, panel.width, count, panel.rows);
        } else if (!one_row && owner) {
            add(Kernel::dlacpy, panel.width, count, 0);
        }
    }

    /// The calls of one such block.
    void compute() {
        for (Call& call : std::span(calls_).first(count_)) {
            const double seconds = call.cost.modelled ? program_.day_.draw_s(rank_, call.cost) : 0.0;
            mpi::trace_kernel(program_.engine_, rank_, call.kernel, call.size, program_.engine_.clock(rank_), seconds);
            program_.engine_.compute(rank_, seconds);
            call.total_s += seconds;
        }
        ++times_;
    }
    ColumnCalls(const ColumnCalls&) = delete;
    ColumnCalls& operator=(const ColumnCalls&) = delete;
    ~ColumnCalls() {
        for (const Call& call : std::span(calls_).first(times_ > 0 ? count_ : 0)) {
            program_.day_.note_calls(call.kernel, call.cost, call.size, times_, call.total_s);
        }
    }

private:
    struct Call {
        Kernel kernel = Kernel::dgemm;
        models::Size size;
        models::KernelCost cost;
        double total_s = 0.0;
    };
    void add(Kernel kernel, std::int64_t m, std::int64_t n, std::int64_t k) {
        const models::Size size{static_cast<double>(m), static_cast<double>(n), static_cast<double>(k)};
        calls_[count_++] = {kernel, size, program_.day_.common_cost(rank_, kernel, size)};
    }

    Program& program_;
    mpi::Rank rank_;
    std::array<Call, 4> calls_;
    std::size_t count_ = 0;
    std::uint64_t times_ = 0;
};

/// Blocks of NB columns, a probe for `incoming` after each, until it is found, which is visible from `visible_s` on, or
/// none of the `columns` are left. Returns how many have been updated. The last probe, which finds something or waits,
/// is left to the caller.
std::int64_t Program::update_until(const Place& at, const Panel& panel, std::int64_t columns, const Panel& incoming,
                                   double visible_s) {
    double last_probe_s = -1.0;
    std::int64_t updated = std::min(parameters_.nb, columns);
    ColumnCalls block(*this, at, panel, updated);
    block.compute();
    while (updated < columns && visible_s > engine_.probe_sees_s(engine_.clock(at.rank), last_probe_s)) {
        fruitless_probe(at, incoming);
        last_probe_s = engine_.clock(at.rank);
        const std::int64_t count = std::min(parameters_.nb, columns - updated);
        if (count == parameters_.nb) {
            block.compute();
        } else {
            ColumnCalls(*this, at, panel, count).compute();
        }
        updated += count;
    }
    return updated;
}

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
    if (must_poll(at, incoming, incoming_done)) {
        co_await take_broadcast(at, *incoming, incoming_done);
    }
    const bool rolls = parameters_.swap == Swap::spread_roll ||
                       (parameters_.swap == Swap::mix && columns > parameters_.swap_threshold.value_or(parameters_.nb));
    if (parameters_.p > 1 && rolls) {
        co_await swap_spread_roll(at, panel, columns, incoming, incoming_done);
    } else if (parameters_.p > 1) {
        co_await swap_binary_exchange(at, panel, columns, incoming, incoming_done);
    }
    std::int64_t updated = 0;
    if (incoming != nullptr && !incoming_done) {
        // The real program updates a block of columns, probes, updates the next. Nothing that it does meanwhile
        // concerns others: so we learn first when the panel comes, and then count the blocks until that date.
        const double visible_s =
            co_await engine_.learn_arrival(at.rank, rank_at(at.row, incoming->source_column), broadcast_tag(*incoming));
        updated = update_until(at, panel, columns, *incoming, visible_s);
        co_await finish_broadcast(at, *incoming, incoming_done);
    }
    if (updated < columns) {
        ColumnCalls(*this, at, panel, columns - updated).compute();
    }
    panel.columns -= columns;
}

} // namespace lepaute::hpl
