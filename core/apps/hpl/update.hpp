#pragma once
// What a rank does in an update and in the broadcast of a panel, as steps that the engine goes through from one
// operation to the next: a round of a swap touches a few cache lines, and no coroutine frames.

#include "apps/hpl/simulation.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <optional>

namespace lepaute::hpl {

/// The part of a rank in the broadcast of a panel (broadcast.cpp).
class Program::PanelBroadcast final : public mpi::Steps {
public:
    /// With probes when must_poll() asks for them; null: there is no panel.
    PanelBroadcast(Program& program, const Place& at, const Panel* panel) : program_(program), at_(at) {
        if (panel != nullptr) {
            panel_ = *panel;
        }
    }
    /// Until the rank has the panel.
    PanelBroadcast(Program& program, const Place& at, const Panel& panel) : PanelBroadcast(program, at, &panel) {
        finish();
    }

    /// One probe for the panel, if there is one; most find nothing, which mostly is known without asking the engine.
    /// True where it is not: then advance() probes, and takes the panel if it is there.
    [[nodiscard]] bool must_poll() {
        if (!panel_ || done_ || program_.probes_in_vain(at_, *panel_)) {
            return false;
        }
        begin(false);
        return true;
    }
    /// advance() will probe until the panel has come.
    void finish() { begin(!done_ && panel_->source_column != at_.column); }
    bool advance() override;

    [[nodiscard]] const std::optional<Panel>& panel() const noexcept { return panel_; }
    /// Is there a panel that has not come yet?
    [[nodiscard]] bool expected() const noexcept { return panel_ && !done_; }

private:
    enum class Next : std::uint8_t { wait, take, probed, receive, send, first_piece, scatter, roll, end };

    void begin(bool waits) noexcept {
        waits_ = waits;
        next_ = waits ? Next::wait : Next::take;
    }
    void take();
    void stage(std::optional<Stage> stage) {
        if (program_.engine_.trace().on()) [[unlikely]] {
            staged_ = std::make_unique<Staged>(program_.engine_, at_.rank, panel_->step, stage);
        }
    }
    bool operation(mpi::Operation::Kind kind, mpi::Rank from);
    bool send_on();
    bool post(mpi::Rank to, double bytes, mpi::Operation::Kind kind);
    // broadcast_long.cpp
    bool first_piece();
    bool scatter();
    bool roll();
    struct Ring; // who takes part, in what pieces

    Program& program_;
    Place at_;
    Next next_ = Next::end;
    bool waits_ = false;
    bool done_ = false; // the rank has got the panel, or sent it as the root
    std::uint32_t round_ = 0;
    std::optional<Panel> panel_;     // a copy: in the cache lines of the steps
    std::unique_ptr<Staged> staged_; // null without a trace
};

/// The update of a rank by a panel (update.cpp): row swap, triangular solve, matrix product.
class Program::Update final : public mpi::Steps {
public:
    /// Of the first `limit` local columns (all when negative); `incoming`: a panel to probe for meanwhile, may be null.
    Update(Program& program, const Place& at, Panel& panel, std::int64_t limit, const Panel* incoming)
        : program_(program), panel_(panel), columns_left_(panel.columns),
          columns_(limit < 0 ? panel.columns : std::min(limit, panel.columns)), at_(at),
          incoming_(program, at, incoming) {}
    bool advance() override;

private:
    /// What the rank does next; true: that has ended already.
    using Step = bool (Update::*)();
    bool begin();
    bool broadcast(); // of the incoming panel; then after_
    /// A probe for the incoming panel, then `next`.
    bool poll(Step next) {
        next_ = next;
        if (incoming_.must_poll()) {
            after_ = next;
            next_ = &Update::broadcast;
        }
        return true;
    }
    bool learn_arrival();
    bool update_until_arrival();
    bool update_rest();

    // swap.cpp: by binary exchange
    bool begin_exchange();
    bool fold();
    bool folded();
    bool round();
    [[nodiscard]] SwapPlan::Round rows_of_round();
    bool exchanged();
    bool spread_beyond();
    bool beyond() {
        bit_ /= 2;
        return poll(&Update::spread_beyond);
    }
    bool unfold();
    bool unfolded() { return poll(&Update::learn_arrival); }
    [[nodiscard]] Kernel into_u() const noexcept { return transposed() ? Kernel::dlaswp03T : Kernel::dlaswp03N; }
    [[nodiscard]] std::uint32_t power() const noexcept { return std::bit_floor(program_.parameters_.p); }
    /// Are there processes beyond the power of two, one of which this one is, or has as its partner?
    [[nodiscard]] bool folds() const noexcept {
        return power() < program_.parameters_.p && (distance_ ^ power()) < program_.parameters_.p;
    }
    [[nodiscard]] mpi::Rank rank_of(std::uint32_t distance) const noexcept {
        const std::uint32_t row = panel_.owner_row + distance;
        return program_.rank_at(row < program_.parameters_.p ? row : row - program_.parameters_.p, at_.column);
    }
    [[nodiscard]] double u_bytes() const noexcept { return 8.0 * static_cast<double>(panel_.width * columns_); }
    [[nodiscard]] double w_bytes(std::int64_t rows) const noexcept {
        return 8.0 * static_cast<double>(rows * (columns_ + 1));
    }
    // swap_spread_roll.cpp: by spreading and rolling
    bool begin_spread();
    [[nodiscard]] const std::vector<SpreadStep>& spread_steps() const noexcept;
    bool spread();
    bool probe_in_spread();
    bool roll();
    bool rolled() {
        ++bit_;
        return poll(&Update::roll);
    }

    [[nodiscard]] bool transposed() const noexcept { return program_.parameters_.u == Form::transposed; }
    void swap_kernel(Kernel which, std::int64_t rows, std::int64_t of_rows) {
        if (rows > 0) {
            program_.kernel(at_.rank, which, rows, columns_, of_rows);
        }
    }
    bool receive(mpi::Rank from, bool two_calls = false) {
        return program_.engine_.begin(at_.rank, {.kind = mpi::Operation::Kind::receive,
                                                 .two_calls = two_calls,
                                                 .receive_from = from,
                                                 .receive_tag = swap_tag(panel_)});
    }
    bool post(mpi::Operation::Kind kind, mpi::Rank to, double bytes, bool noncontiguous = false) {
        return program_.engine_.begin(at_.rank, program_.counted(at_.rank, Phase::swap,
                                                                 {.kind = kind,
                                                                  .noncontiguous = noncontiguous,
                                                                  .send_to = to,
                                                                  .send_tag = swap_tag(panel_),
                                                                  .send_bytes = bytes}));
    }
    bool send(mpi::Rank to, double bytes, bool noncontiguous = false) {
        return post(mpi::Operation::Kind::send, to, bytes, noncontiguous);
    }
    bool exchange(mpi::Rank partner, double bytes, bool noncontiguous = false) {
        return post(mpi::Operation::Kind::exchange, partner, bytes, noncontiguous);
    }

    Program& program_;
    const Panel panel_; // a copy, as in the broadcast
    std::int64_t& columns_left_;
    std::int64_t columns_;
    Place at_;
    Step next_ = &Update::begin; // null at the end
    Step after_ = nullptr;       // the broadcast
    bool levelling_ = false;
    std::uint32_t distance_ = 0; // from the owner row
    std::uint32_t bit_ = 0;      // of the round; in a spread or roll, its number
    std::uint32_t probes_ = 0;   // in a step of a spread
    PanelBroadcast incoming_;
    std::shared_ptr<const SpreadPlan> plan_;
    std::int64_t updated_ = 0;       // columns
    std::unique_ptr<Staged> staged_; // null without a trace
};

} // namespace lepaute::hpl
