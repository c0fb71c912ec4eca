// Update of the trailing matrix by a panel (HPL_pdupdate): row swap, triangular solve, matrix product. While another
// panel is on its way, NB columns are updated at a time, with a probe in between.

#include "apps/hpl/update.hpp"

#include <algorithm>
#include <array>
#include <span>

namespace lepaute::hpl {

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
    [[gnu::always_inline]] void compute(mpi::Engine::Times& times, models::MachineDay::Draws& draws) {
        for (Call& call : std::span(calls_).first(count_)) {
            const double seconds = call.cost.modelled ? draws.next_s(call.cost) : 0.0;
            mpi::trace_kernel(program_.engine_, rank_, call.kernel, call.size, times.clock_s, seconds);
            times.compute(seconds);
            call.total_s += seconds;
        }
        ++times_;
    }
    /// Seconds of one such block without noise.
    [[nodiscard]] double usual_s() const noexcept {
        double seconds = 0.0;
        for (const Call& call : std::span(calls_).first(count_)) {
            seconds += call.cost.mean_s * call.cost.factor;
        }
        return seconds;
    }
    void compute() {
        mpi::Engine::Times times = program_.engine_.times(rank_);
        models::MachineDay::Draws draws(program_.day_, rank_);
        compute(times, draws);
        program_.engine_.set_times(rank_, times);
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
    mpi::Engine::Times times = engine_.times(at.rank);
    {
        models::MachineDay::Draws draws(day_, at.rank);
        block.compute(times, draws);
        while (updated < columns && visible_s > engine_.probe_sees_s(times.clock_s, last_probe_s)) {
            if (engine_.trace().on()) [[unlikely]] {
                engine_.set_times(at.rank, times);
                fruitless_probe(at, incoming);
                times = engine_.times(at.rank);
            } else {
                times.probe(engine_.network().iprobe_s);
            }
            last_probe_s = times.clock_s;
            const std::int64_t count = std::min(parameters_.nb, columns - updated);
            if (count == parameters_.nb) {
                block.compute(times, draws);
            } else {
                ColumnCalls(*this, at, panel, count).compute(times, draws);
            }
            updated += count;
        }
    }
    engine_.set_times(at.rank, times);
    return updated;
}

bool Program::Update::advance() {
    while (next_ != nullptr) {
        if (!(this->*next_)()) {
            return false;
        }
    }
    return true;
}

bool Program::Update::broadcast() {
    const bool ended = incoming_.advance();
    if (ended) {
        next_ = after_;
    }
    return ended;
}

bool Program::Update::begin() {
    if (columns_ <= 0 || panel_.width <= 0) {
        next_ = nullptr;
        if (incoming_.panel()) {
            incoming_.finish();
            next_ = &Update::broadcast;
        }
        return true;
    }
    const Parameters& parameters = program_.parameters_;
    const std::uint32_t p = parameters.p;
    distance_ = at_.row >= panel_.owner_row ? at_.row - panel_.owner_row : at_.row + p - panel_.owner_row;
    if (program_.engine_.trace().on()) [[unlikely]] {
        const std::int64_t below = panel_.rows - (distance_ == 0 ? panel_.width : 0);
        staged_ = std::make_unique<Staged>(
            program_.engine_, at_.rank, panel_.step, Stage::pdupdate,
            models::Size{static_cast<double>(below), static_cast<double>(columns_), static_cast<double>(panel_.width)});
    }
    program_.kernel(at_.rank, Kernel::pdupdate_glue, panel_.width, columns_, 0);
    const bool rolls = parameters.swap == Swap::spread_roll ||
                       (parameters.swap == Swap::mix && columns_ > parameters.swap_threshold.value_or(parameters.nb));
    return poll(p == 1 ? &Update::learn_arrival : rolls ? &Update::begin_spread : &Update::begin_exchange);
}

/// The real program updates a block of columns, probes, updates the next. Nothing that it does meanwhile concerns
/// others: so we learn first when the panel comes, and then count the blocks until that date.
bool Program::Update::learn_arrival() {
    if (!incoming_.expected()) {
        next_ = &Update::update_rest;
        return true;
    }
    next_ = &Update::update_until_arrival;
    const Panel& incoming = *incoming_.panel();
    if (program_.engine_.load_matters()) {
        const ColumnCalls all(program_, at_, panel_, columns_);
        program_.engine_.computes_until(at_.rank, program_.engine_.clock(at_.rank) + all.usual_s());
    }
    return program_.engine_.begin(at_.rank, {.kind = mpi::Operation::Kind::learn_arrival,
                                             .receive_from = program_.rank_at(at_.row, incoming.source_column),
                                             .receive_tag = broadcast_tag(incoming)});
}

bool Program::Update::update_until_arrival() {
    updated_ =
        program_.update_until(at_, panel_, columns_, *incoming_.panel(), program_.engine_.date_answer_s(at_.rank));
    incoming_.finish();
    after_ = &Update::update_rest;
    next_ = &Update::broadcast;
    return true;
}

bool Program::Update::update_rest() {
    if (updated_ < columns_) {
        ColumnCalls(program_, at_, panel_, columns_ - updated_).compute();
    }
    columns_left_ -= columns_;
    staged_.reset();
    next_ = nullptr;
    return true;
}

} // namespace lepaute::hpl
