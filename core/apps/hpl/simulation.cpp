#include "apps/hpl/simulation.hpp"

#include <algorithm>
#include <bit>
#include <span>
#include <utility>

namespace lepaute::hpl {

using mpi::Rank;
using mpi::Task;

void Parameters::check() const {
    check_number("q", q, 1U, most_ranks / p);
    if (steps() > most_steps) {
        refuse("n", text_of(n) + " in blocks of " + text_of(nb), "the engine takes " + text_of(most_steps) + " blocks");
    }
    if (!pivot_rows.empty() && std::cmp_not_equal(pivot_rows.size(), n)) {
        refuse("pivot_rows", "of " + text_of(pivot_rows.size()) + " rows",
               "there is one for each of n columns, or none");
    }
    for (const std::int64_t row : pivot_rows) {
        check_number("pivot_rows", row, 0, n - 1);
    }
}

Result simulate(const Parameters& parameters, const models::Machine& machine, const models::Layers& layers,
                const std::vector<std::uint32_t>& core_of_rank, models::Seeds seeds, mpi::Trace trace,
                mpi::Progress* progress) {
    mpi::check_inputs(parameters, machine, core_of_rank.size());
    std::vector<std::uint32_t> nodes = mpi::nodes_of_ranks(machine, core_of_rank);
    models::MachineDay day(machine, kernels, layers, seeds, core_of_rank);
    mpi::Engine engine(mpi::network_of_run(machine, layers, seeds.day), mpi::links_of_run(machine, layers, seeds.day),
                       std::move(nodes), seeds.run, layers.noise);
    engine.trace() = std::move(trace);
    engine.report_to(progress);
    Program program(parameters, engine, day, seeds.day);
    Result result;
    result.time_s = engine.run([&](Rank rank) { return program.run(rank); });
    mpi::collect(result, engine, day);
    result.stage_names = stage_names;
    result.rank_sent = program.rank_sent();
    program.conclude(result);
    for (const mpi::Shares& shares : result.rank_shares_s) {
        for (std::size_t share = 1; share < mpi::share_count; ++share) {
            result.waiting_s += shares[share];
        }
    }
    for (const models::KernelUse& use : result.kernels) {
        result.computing_s += use.time_s;
    }
    return result;
}

Sample sample_of(const Parameters& parameters) {
    const auto steps = static_cast<std::int64_t>(parameters.steps());
    if (parameters.trial_steps > 0) {
        const std::int64_t head = std::max<std::int64_t>(1, parameters.depth); // with which every run begins
        return trial(steps, parameters.q, head, parameters.trial_steps);
    }
    return parameters.sampled && parameters.depth < 16 ? sampled(steps, parameters.p, parameters.q, parameters.depth)
                                                       : whole(steps);
}

Program::Program(const Parameters& parameters, mpi::Engine& engine, models::MachineDay& day, std::uint64_t seed)
    : parameters_(parameters), engine_(engine), day_(day), seed_(seed), meetings_(parameters.q),
      rank_sent_(std::size_t{parameters.p} * parameters.q), columns_to_factor_(parameters.q, 0),
      column_begins_s_(parameters.q, 0.0) {
    for (std::uint32_t row = 0; row < parameters.p; ++row) { // its rows, aligned, and no power of two
        const std::int64_t rows =
            std::max<std::int64_t>(1, local_count(parameters.n, parameters.nb, row, parameters.p));
        const std::int64_t aligned = (rows + parameters.align - 1) / parameters.align * parameters.align;
        leading_dimensions_.push_back(
            std::has_single_bit(static_cast<std::uint64_t>(aligned)) ? aligned + parameters.align : aligned);
    }
    engine.touched_with_ranks(day.state_of(0));
    engine.touched_with_ranks(std::as_bytes(std::span(rank_sent_).first(1)));
    sample_ = sample_of(parameters);
    before_leap_.count = engine.size();
    if (!sample_.spans.empty()) {
        note_spans();
    }
    // The pivot exchange of a column takes at least its rounds of the shorter messages on the faster links.
    const double row_bytes = 8.0 * static_cast<double>(parameters.nb + 4);
    const auto message_s = [&](const models::NetworkClass& network) {
        const models::Segment& segment = network.at(row_bytes);
        return segment.latency_s + row_bytes / segment.bandwidth_Bps;
    };
    const int rounds = static_cast<int>(std::bit_width(parameters.p)) - 1;
    least_column_s_ = rounds * std::min(message_s(engine.network().loopback), message_s(engine.network().remote));
}

/// Makes room for what is known when spans begin and end.
void Program::note_spans() {
    began_s_.resize(sample_.steps.size() + 1, 0.0);
    for (const Span& span : sample_.spans) {
        totals_at_.try_emplace(span.begin);
        totals_at_.try_emplace(span.end);
    }
    shares_in_.resize(sample_.spans.size(), std::vector<mpi::Shares>(engine_.size()));
}

/// All ranks have come to the tail: further windows come before it where they are worth it.
void Program::extend(double now_s) {
    std::vector<double> began_s = began_s_;
    began_s[sample_.spans[Sample::tail].begin] = now_s;
    if (uncertain(sample_, step_terms(parameters_.n, parameters_.nb, parameters_.p, parameters_.q), began_s)) {
        sample_ = extended(std::move(sample_));
        note_spans();
        // What is kept of panels is of later ones.
        shapes_ = {};
        spread_plans_ = {};
        swap_plans_ = {};
        factored_ = {};
    }
    sample_.further.clear();
}

void Program::begin_step(const Place& at, std::size_t index, std::int64_t step) {
    engine_.begin_step(at.rank, static_cast<std::int32_t>(step));
    if (!sample_.spans.empty() && index > 0 && index < sample_.steps.size()) { // all began with the run
        mark(at, index);
    }
}

/// All ranks have come between two simulated steps, and whatever was sent has been received: they go on at the
/// simulated step `index`, as far behind each other as they were, in proportion to what is left.
void Program::leap(Rank last, std::size_t index) {
    double first_s = engine_.clock(0);
    double last_s = first_s;
    double before_s = 0.0;
    for (Rank rank = 0; rank < engine_.size(); ++rank) {
        const double clock_s = engine_.clock(rank);
        first_s = std::min(first_s, clock_s);
        last_s = std::max(last_s, clock_s);
        before_s += clock_s;
    }
    if (!sample_.further.empty() && index == sample_.spans[Sample::tail].begin) {
        extend(before_s / static_cast<double>(engine_.size()) - leapt_s_);
    }
    const auto left = [&](std::int64_t step) { return static_cast<double>(parameters_.n - step * parameters_.nb); };
    const double scale = left(sample_.steps[index]) / left(sample_.steps[index - 1] + 1);
    double after_s = 0.0;
    for (Rank rank = 0; rank < engine_.size(); ++rank) { // none goes back behind what has been settled
        const double clock_s = last_s + scale * (engine_.clock(rank) - first_s);
        engine_.set_clock(rank, clock_s, {});
        after_s += clock_s;
    }
    leapt_s_ += (after_s - before_s) / static_cast<double>(engine_.size());
    if (totals_at_.contains(index)) {
        totals_at_[index] = totals();
    }
    engine_.release(last, before_leap_);
}

void Program::mark(const Place& at, std::size_t index) {
    began_s_[index] += (engine_.clock(at.rank) - leapt_s_) / static_cast<double>(engine_.size());
    if (!totals_at_.contains(index)) {
        return;
    }
    note_shares(at.rank, index);
    if (at.rank == 0 && !leaps_to(index)) { // the others are near, and so is what they have called and sent
        totals_at_[index] = totals();
    }
}

/// Adds what has passed in the spans that end at `index`.
void Program::note_shares(Rank rank, std::size_t index) {
    const mpi::Shares& now = engine_.shares_s(rank);
    for (std::size_t i = 0; i < sample_.spans.size(); ++i) {
        const Span& span = sample_.spans[i];
        const double sign = span.end == index ? 1.0 : span.begin == index ? -1.0 : 0.0;
        for (std::size_t share = 0; share < mpi::share_count && sign != 0.0; ++share) {
            shares_in_[i][rank][share] += sign * now[share];
        }
    }
}

void Program::conclude(Result& result) {
    result.simulated_steps = static_cast<std::int64_t>(sample_.steps.size());
    if (sample_.spans.empty()) {
        return;
    }
    std::vector<double> began_s = began_s_;
    began_s.back() = result.time_s - leapt_s_;
    const auto [weights, counts, changes_s] =
        extrapolated(sample_, step_terms(parameters_.n, parameters_.nb, parameters_.p, parameters_.q), began_s);
    result.sampling_changes_s = changes_s;
    result.time_s = 0.0;
    for (std::size_t i = 0; i < sample_.spans.size(); ++i) {
        result.time_s += weights[i] * (began_s[sample_.spans[i].end] - began_s[sample_.spans[i].begin]);
    }
    // Whatever else adds up, in the same way.
    totals_at_.begin()->second = {.kernels = std::vector<models::KernelUse>(result.kernels.size()), .statistics = {}};
    totals_at_.rbegin()->second = totals();
    const auto weighted = [&](const std::vector<double>& by, auto value) {
        double sum = 0.0;
        for (std::size_t i = 0; i < sample_.spans.size(); ++i) {
            const Span& span = sample_.spans[i];
            sum += by[i] * (static_cast<double>(value(totals_at_.at(span.end))) -
                            static_cast<double>(value(totals_at_.at(span.begin))));
        }
        return std::max(0.0, sum);
    };
    const auto number = [&](auto value) { return static_cast<std::uint64_t>(weighted(counts, value)); };
    result.messages = number([](const Totals& t) { return t.statistics.messages; });
    result.bytes = weighted(counts, [](const Totals& t) { return t.statistics.bytes; });
    for (std::size_t link = 0; link < models::link_class_count; ++link) {
        for (auto member : {&models::MessageUse::messages, &models::MessageUse::outside_messages}) {
            result.use[link].*member = number([&](const Totals& t) { return t.statistics.use[link].*member; });
        }
        for (auto member : {&models::MessageUse::bytes, &models::MessageUse::outside_bytes, &models::MessageUse::time_s,
                            &models::MessageUse::outside_time_s}) {
            result.use[link].*member =
                weighted(counts, [&](const Totals& t) { return t.statistics.use[link].*member; });
        }
    }
    for (std::size_t kernel = 0; kernel < result.kernels.size(); ++kernel) {
        for (auto member : {&models::KernelUse::calls, &models::KernelUse::unmodelled_calls,
                            &models::KernelUse::clipped_means, &models::KernelUse::clipped_deviations}) {
            result.kernels[kernel].*member = number([&](const Totals& t) { return t.kernels[kernel].*member; });
        }
        for (auto member : {&models::KernelUse::time_s, &models::KernelUse::extrapolated_time_s}) {
            result.kernels[kernel].*member =
                weighted(weights, [&](const Totals& t) { return t.kernels[kernel].*member; });
        }
    }
    for (Rank rank = 0; rank < engine_.size(); ++rank) {
        note_shares(rank, sample_.steps.size());
        mpi::Shares& shares = result.rank_shares_s[rank];
        shares = {};
        for (std::size_t i = 0; i < sample_.spans.size(); ++i) {
            for (std::size_t share = 0; share < mpi::share_count; ++share) {
                shares[share] += weights[i] * shares_in_[i][rank][share];
            }
        }
    }
}

Place Program::place(Rank rank) const noexcept {
    if (parameters_.pmap == Order::row) {
        return {rank, rank / parameters_.q, rank % parameters_.q};
    }
    return {rank, rank % parameters_.p, rank / parameters_.p};
}

Rank Program::rank_at(std::uint32_t row, std::uint32_t column) const noexcept {
    return parameters_.pmap == Order::row ? row * parameters_.q + column : column * parameters_.p + row;
}

const Program::Shape& Program::shape_at(std::int64_t start) {
    const std::int64_t n = parameters_.n;
    const std::int64_t nb = parameters_.nb;
    // Panels begin at multiples of nb; those beyond the matrix, all at its end, come after the last one.
    const std::int64_t step = (start + nb - 1) / nb;
    Shape& shape = shapes_.at(step);
    if (shape.step != step) {
        shape.step = step;
        shape.rows.resize(parameters_.p);
        shape.columns.resize(parameters_.q);
        shape.source_columns.resize(parameters_.q);
        const auto root = static_cast<std::uint32_t>(start / nb % parameters_.q);
        for (std::uint32_t row = 0; row < parameters_.p; ++row) {
            shape.rows[row] = local_count_from(n - start, start, nb, row, parameters_.p);
        }
        for (std::uint32_t column = 0; column < parameters_.q; ++column) {
            shape.columns[column] = local_count_from(n + 1 - start, start, nb, column, parameters_.q); // [A | b]
            shape.source_columns[column] = broadcast_source(column, root);
        }
    }
    return shape;
}

Panel Program::new_panel(const Place& at, std::int64_t start) {
    const Shape& shape = shape_at(start);
    Panel panel;
    panel.step = start / parameters_.nb;
    panel.start = start;
    panel.width = std::min(parameters_.nb, parameters_.n - start);
    panel.rows = shape.rows[at.row];
    panel.columns = shape.columns[at.column];
    panel.owner_row = static_cast<std::uint32_t>(panel.step % parameters_.p);
    panel.owner_column = static_cast<std::uint32_t>(panel.step % parameters_.q);
    panel.source_column = shape.source_columns[at.column];
    return panel;
}

void Program::kernel(Rank rank, Kernel kernel, std::int64_t m, std::int64_t n, std::int64_t k) {
    mpi::call_kernel(engine_, day_, rank, kernel,
                     {static_cast<double>(m), static_cast<double>(n), static_cast<double>(k)});
}

Program::Staged::Staged(mpi::Engine& engine, Rank rank, std::int64_t step, std::optional<Stage> stage,
                        models::Size size)
    : engine_(engine), rank_(rank), on_(engine.trace().on()), stage_(stage), size_(size) {
    if (on_) {
        step_before_ = engine.step(rank);
        engine.set_step(rank, static_cast<std::int32_t>(step));
        start_s_ = engine.clock(rank);
    }
}

Program::Staged::~Staged() {
    if (!on_) {
        return;
    }
    if (stage_) {
        mpi::trace_phase(engine_, rank_, static_cast<int>(*stage_),
                         {.start_s = start_s_, .m = size_.m, .n = size_.n, .k = size_.k});
    }
    engine_.set_step(rank_, step_before_);
}

Task Program::run(Rank rank) {
    const Place at = place(rank);
    if (day_.models(Kernel::first_touch)) {
        const std::int64_t nb = parameters_.nb;
        const std::int64_t bytes = first_touched_bytes(
            std::min(nb, parameters_.n), local_count(parameters_.n, nb, at.row, parameters_.p),
            local_count(parameters_.n, nb, at.column, parameters_.q), parameters_.p, parameters_.q, parameters_.depth);
        kernel(rank, Kernel::first_touch, 0, bytes, 0);
    }
    if (parameters_.depth == 0 || parameters_.q == 1) {
        co_await without_lookahead(at);
    } else {
        co_await with_lookahead(at);
    }
    if (parameters_.trial_steps == 0) {
        co_await solve(at);
    }
}

} // namespace lepaute::hpl
