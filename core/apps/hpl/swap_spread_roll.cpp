// Row swap of an update by spreading and rolling (HPL_pdlaswp01): the owner of the block hands out its rows by a
// binomial tree, each process swaps those it gets with its own, the shares are made level, and neighbours swap shares
// until all have all of U.

#include "apps/hpl/update.hpp"

#include <numeric>

namespace lepaute::hpl {

using mpi::Rank;

namespace {

double bytes_of(std::int64_t rows, std::int64_t columns) noexcept { return 8.0 * static_cast<double>(rows * columns); }

} // namespace

std::shared_ptr<const SpreadPlan> Program::plan_of(const Panel& panel) {
    PlanOfStep& slot = spread_plans_.at(panel.step);
    if (slot.step != panel.step) {
        // Each row that leaves the block makes place for one that comes.
        std::vector<std::int64_t> rows = swap_plan(panel).held;
        rows.front() = panel.width - std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
        slot = {panel.step, std::make_shared<const SpreadPlan>(spread_plan(rows, panel.owner_row, parameters_.equil))};
    }
    return slot.plan;
}

bool Program::Update::begin_spread() {
    plan_ = program_.plan_of(panel_);
    if (distance_ == 0) {
        swap_kernel(transposed() ? Kernel::dlaswp01T : Kernel::dlaswp01N, program_.swap_plan(panel_).owner_rows,
                    panel_.rows);
    }
    bit_ = 0;
    next_ = &Update::spread;
    return true;
}

const std::vector<SpreadStep>& Program::Update::spread_steps() const noexcept {
    return (levelling_ ? plan_->steps_of_levelling : plan_->steps_from_owner)[plan_->position[at_.row]];
}

bool Program::Update::spread() {
    if (bit_ == spread_steps().size()) {
        bit_ = 0;
        if (levelling_) {
            next_ = &Update::roll;
        } else {
            levelling_ = true;
            if (distance_ != 0) {
                swap_kernel(transposed() ? Kernel::dlaswp06T : Kernel::dlaswp06N,
                            program_.swap_plan(panel_).held[distance_], panel_.rows);
            }
        }
        return true;
    }
    const SpreadStep& step = spread_steps()[bit_];
    probes_ = 0;
    next_ = &Update::probe_in_spread;
    if (step.rows == 0) {
        return true;
    }
    const Rank partner = program_.rank_at(plan_->row_at[step.partner], at_.column);
    // Rows of U are columns of the transposed: in one piece.
    return step.receives ? receive(partner) : send(partner, bytes_of(step.rows, columns_), !transposed());
}

bool Program::Update::probe_in_spread() {
    if (probes_ == spread_steps()[bit_].probes) {
        ++bit_;
        next_ = &Update::spread;
        return true;
    }
    ++probes_;
    return poll(&Update::probe_in_spread);
}

bool Program::Update::roll() {
    const std::uint32_t p = program_.parameters_.p;
    const std::uint32_t k = bit_;
    if (k + 1 >= p) { // U has come in the order of the processes; its leading dimension is its own
        if (transposed()) {
            program_.kernel(at_.rank, Kernel::dlaswp10N, columns_, panel_.width, columns_);
        } else {
            program_.kernel(at_.rank, Kernel::dlaswp00N, panel_.width, columns_, panel_.width);
        }
        next_ = &Update::learn_arrival;
        return true;
    }
    next_ = &Update::rolled;
    const std::uint32_t position = plan_->position[at_.row];
    const std::uint32_t turn = k / 2;
    const auto around = [p](std::uint32_t at) { return at < p ? at : at - p; };
    const bool backwards = ((position + k) & 1U) != 0;
    const Rank partner = program_.rank_at(plan_->row_at[around(position + (backwards ? p - 1 : 1))], at_.column);
    const std::int64_t out = plan_->rows_at(around(position + (backwards ? turn : p - turn)));
    const std::int64_t in = plan_->rows_at(around(position + (backwards ? p - turn - 1 : turn + 1)));
    if (out > 0) {
        const double bytes = bytes_of(out, columns_);
        return in > 0 ? exchange(partner, bytes, !transposed()) : send(partner, bytes, !transposed());
    }
    return in == 0 || receive(partner, true);
}

} // namespace lepaute::hpl
