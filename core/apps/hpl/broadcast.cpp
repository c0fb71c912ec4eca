// Broadcast of a panel along its process row, by rings (HPL_bcast_1ring, _1rinM, _2ring, _2rinM). Every call either
// sends (the root), finds the panel there, receives and forwards it, or finds nothing and says so.

#include "apps/hpl/update.hpp"

#include <algorithm>
#include <array>

namespace lepaute::hpl {

using Kind = mpi::Operation::Kind;

namespace {

constexpr std::uint32_t nobody = 0xFFFFFFFFU;
constexpr std::size_t most_receivers = 3; // from one process

/// Whom a process column receives from, and whom it sends to in order.
struct Route {
    std::uint32_t from = nobody;
    std::array<std::uint32_t, most_receivers> to{nobody, nobody, nobody};
};

Route route(Broadcast bcast, std::uint32_t column, std::uint32_t root, std::uint32_t q) {
    const auto around = [q](std::uint32_t beyond) { return beyond < q ? beyond : beyond - q; };
    const std::uint32_t next = around(column + 1);
    const std::uint32_t previous = around(column + q - 1);
    const std::uint32_t before_previous = around(previous + q - 1);
    const std::uint32_t middle = around(root + (q + 1) / 2);
    const bool modified = bcast.modified;
    const bool two_rings = bcast.two_rings;
    Route result;
    if (column == root) {
        std::size_t count = 0;
        result.to[count++] = next;
        if (modified && q > 2 && !(two_rings && around(next + 1) == middle)) {
            result.to[count++] = around(next + 1);
        }
        if (two_rings && q > 2) {
            result.to[count++] = middle;
        }
        return result;
    }
    const bool from_root =
        previous == root || (two_rings && column == middle) || (modified && q > 2 && before_previous == root);
    result.from = from_root ? root : previous;
    const bool forwards = next != root && !(two_rings && next == middle) && !(modified && previous == root);
    if (forwards) {
        result.to[0] = next;
    }
    return result;
}

} // namespace

std::uint64_t broadcast_messages(Broadcast bcast, std::uint32_t q) {
    if (bcast.in_pieces) { // a tree scatters them (the next root of the modified one has the panel); all but one roll
        const std::uint64_t pieces = bcast.modified ? q - 1 : q;
        return q - 1 + pieces * (pieces - 1);
    }
    std::uint64_t messages = 0;
    for (std::uint32_t column = 0; q > 1 && column < q; ++column) {
        messages +=
            most_receivers - static_cast<std::size_t>(std::ranges::count(route(bcast, column, 0, q).to, nobody));
    }
    return messages;
}

std::uint32_t Program::broadcast_tag(const Panel& panel) noexcept {
    return 0x10000000U + static_cast<std::uint32_t>(panel.step);
}

std::uint32_t Program::broadcast_source(std::uint32_t column, std::uint32_t root) const noexcept {
    const std::uint32_t from = route(parameters_.bcast, column, root, parameters_.q).from;
    return parameters_.bcast.in_pieces || from == nobody ? column : from;
}

std::int64_t Program::panel_length(const Place& at, const Panel& panel) noexcept {
    const std::int64_t below = panel.rows - (at.row == panel.owner_row ? panel.width : 0);
    return below * panel.width + panel.width * panel.width + panel.width + 1; // L2, L1, pivots, status
}

void Program::begin_broadcast(const Place& at, const Panel& panel) {
    const std::int64_t below = panel.rows - (at.row == panel.owner_row ? panel.width : 0);
    if (parameters_.copy_l && parameters_.q > 1 && at.column == panel.owner_column && below > 0 && panel.width > 0) {
        kernel(at.rank, Kernel::dlacpy, below, panel.width, 0);
    }
}

bool Program::probes_in_vain(const Place& at, const Panel& panel) {
    if (panel.source_column == at.column ||
        !(cannot_have_come(at, panel) ||
          engine_.finds_nothing(at.rank, rank_at(at.row, panel.source_column), broadcast_tag(panel)))) {
        return false;
    }
    fruitless_probe(at, panel);
    return true;
}

void Program::note_factored(const Panel& panel, std::uint32_t column) {
    Factored& factored = factored_.at(panel.step);
    factored.step = panel.step;
    factored.date_s.resize(parameters_.p);
    factored.transfer_s.resize(parameters_.p);
    factored.sources = shape_at(panel.start).source_columns;
    factored.has_begun.assign((engine_.size() + 63) / 64, 0);
    factored.eager = false;
    for (std::uint32_t row = 0; row < parameters_.p; ++row) {
        const Place root{rank_at(row, column), row, column};
        Panel of_row = panel;
        of_row.rows = shape_at(panel.start).rows[row];
        const double bytes = 8.0 * static_cast<double>(panel_length(root, of_row));
        constexpr double rounding = 1.0 - 1e-9;
        factored.date_s[row] = engine_.clock(root.rank);
        factored.transfer_s[row] = rounding * engine_.least_transfer_s(bytes);
        factored.eager = factored.eager || engine_.may_be_eager(bytes);
        factored.begin(std::size_t{row} * parameters_.q + column);
    }
}

/// Is it known that the panel comes too late for a probe now?
bool Program::cannot_have_come(const Place& at, const Panel& panel) {
    // A probe that looks first sees what had come before it: the end of its own time is a later bound.
    const double date_s = engine_.clock(at.rank) + engine_.network().iprobe_s;
    const Factored& factored = factored_.at(panel.step);
    if (factored.step != panel.step) {
        // A panel that is not factored yet will not be for as long as the columns that are left take at least. All
        // processes take part in each of them.
        const std::int64_t begun = columns_to_factor_[panel.owner_column]; // this panel, or one before
        const auto left = static_cast<double>(begun > 0 ? begun - 1 : panel.width);
        const double from_s = std::max({engine_.now_s(), column_begins_s_[panel.owner_column],
                                        engine_.clock(rank_at(at.row, panel.owner_column))});
        return factored.step < panel.step && date_s <= from_s + least_column_s_ * left;
    }
    if (date_s <= factored.date_s[at.row]) {
        return true;
    }
    // It has to be transferred to each process on its way that has not begun to receive it. The first of them may only
    // have to take an eager message.
    const std::size_t first = std::size_t{at.row} * parameters_.q;
    double earliest_s = engine_.now_s() - (factored.eager ? factored.transfer_s[at.row] : 0.0);
    for (std::uint32_t column = panel.source_column; !factored.begun(first + column);
         column = factored.sources[column]) {
        earliest_s += factored.transfer_s[at.row];
        if (date_s < earliest_s) {
            return true;
        }
    }
    return false;
}

void Program::note_receipt(const Place& at, const Panel& panel) {
    Factored& factored = factored_.at(panel.step);
    if (factored.step == panel.step) {
        factored.begin(std::size_t{at.row} * parameters_.q + at.column);
    }
}

void Program::fruitless_probe(const Place& at, const Panel& panel) {
    if (!engine_.trace().on()) [[likely]] {
        engine_.spend_probe(at.rank);
        return;
    }
    const Staged staged(engine_, at.rank, panel.step, std::nullopt);
    engine_.fruitless_probe(at.rank, rank_at(at.row, panel.source_column), broadcast_tag(panel));
}

bool Program::PanelBroadcast::operation(Kind kind, mpi::Rank from) {
    return program_.engine_.begin(at_.rank,
                                  {.kind = kind, .receive_from = from, .receive_tag = broadcast_tag(*panel_)});
}

/// What comes first, where no probe or the last of them has been made.
void Program::PanelBroadcast::take() {
    if (done_ || program_.parameters_.q <= 1) {
        next_ = Next::end;
        return;
    }
    stage(Stage::bcast);
    if (program_.parameters_.bcast.in_pieces) {
        next_ = Next::first_piece;
    } else if (panel_->source_column == at_.column) {
        next_ = Next::send;
    } else {
        next_ = waits_ ? Next::receive : Next::probed;
    }
    round_ = 0;
}

bool Program::PanelBroadcast::advance() {
    const mpi::Engine& engine = program_.engine_;
    const auto of_source = [&](Kind kind) { return operation(kind, program_.rank_at(at_.row, panel_->source_column)); };
    bool ended = true; // the operation
    while (ended) {
        switch (next_) {
        case Next::wait: // the real program polls in a loop; nothing happens until the panel comes
            stage(std::nullopt);
            next_ = Next::take;
            ended = of_source(Kind::await_message);
            break;
        case Next::take:
            staged_.reset();
            take();
            ended = next_ != Next::probed || of_source(Kind::probe);
            break;
        case Next::probed:
            if (!engine.answer(at_.rank)) {
                if (staged_ != nullptr) {
                    staged_->forget();
                    staged_.reset();
                }
                return true;
            }
            [[fallthrough]];
        case Next::receive:
            next_ = Next::send;
            program_.note_receipt(at_, *panel_);
            ended = of_source(Kind::receive);
            break;
        case Next::send:
            ended = send_on();
            break;
        case Next::first_piece:
            ended = first_piece();
            break;
        case Next::scatter:
            ended = scatter();
            break;
        case Next::roll:
            ended = roll();
            break;
        case Next::end:
            done_ = true;
            staged_.reset();
            return true;
        }
    }
    return false;
}

/// To the next of those that get the panel from this rank.
bool Program::PanelBroadcast::send_on() {
    const Parameters& parameters = program_.parameters_;
    const std::uint32_t to = route(parameters.bcast, at_.column, panel_->owner_column, parameters.q).to[round_];
    if (to == nobody) {
        next_ = Next::end;
        return true;
    }
    if (++round_ == most_receivers || at_.column != panel_->owner_column) {
        next_ = Next::end;
    }
    return post(program_.rank_at(at_.row, to), 8.0 * static_cast<double>(panel_length(at_, *panel_)), Kind::send);
}

/// The root sends the panel out of the matrix, by a derived datatype; who forwards it has it in one piece.
bool Program::PanelBroadcast::post(mpi::Rank to, double bytes, Kind kind) {
    const Parameters& parameters = program_.parameters_;
    return program_.engine_.begin(
        at_.rank, program_.counted(at_.rank, Phase::broadcast,
                                   {.kind = kind,
                                    .noncontiguous = at_.column == panel_->owner_column && !parameters.copy_l,
                                    .synchronous = parameters.bcast.in_pieces,
                                    .send_to = to,
                                    .send_tag = broadcast_tag(*panel_),
                                    .send_bytes = bytes}));
}

} // namespace lepaute::hpl
