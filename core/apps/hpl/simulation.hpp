#pragma once
// HPL on simulated ranks: the control flow of the real program, each kernel call and message where it makes them.

#include "apps/hpl/kernels.hpp"
#include "apps/hpl/panel_window.hpp"
#include "apps/hpl/parameters.hpp"
#include "apps/hpl/sampling.hpp"
#include "apps/hpl/spread_plan.hpp"
#include "models/machine.hpp"
#include "mpi/engine.hpp"
#include "mpi/run.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace lepaute::hpl {

/// Whose messages are counted; those that are left are the pivot exchanges.
enum class Phase : std::uint8_t { broadcast, swap, solve, count };
struct Sent {
    std::uint64_t messages = 0;
    double bytes = 0.0;
};
using SentInPhases = std::array<Sent, static_cast<std::size_t>(Phase::count)>;

/// Parts of the program that have a row of their own in a trace.
enum class Stage : std::uint8_t { pdfact, pdupdate, bcast, pdtrsv, count };
inline constexpr std::array<std::string_view, static_cast<std::size_t>(Stage::count)> stage_names{"pdfact", "pdupdate",
                                                                                                  "bcast", "pdtrsv"};

/// time_s is of the solver: factorisation and solve.
struct Result : mpi::RunResult {
    std::int64_t simulated_steps = 0;
    std::vector<double> sampling_changes_s; // of the time of a sampled run, by one window less
    std::vector<SentInPhases> rank_sent;
};

/// One run. core_of_rank: global core (node * cores_per_node + core) of each rank, one per process of the grid.
/// Throws std::invalid_argument when the sizes do not fit together, std::runtime_error on a deadlock, or when
/// `progress` is cancelled.
[[nodiscard]] Result simulate(const Parameters& parameters, const models::Machine& machine,
                              const models::Layers& layers, const std::vector<std::uint32_t>& core_of_rank,
                              models::Seeds seeds, mpi::Trace trace = {}, mpi::Progress* progress = nullptr);

/// Messages of the broadcast of one panel along a row of q processes.
[[nodiscard]] std::uint64_t broadcast_messages(Broadcast bcast, std::uint32_t q);

/// The steps that a run simulates, and what they stand for.
[[nodiscard]] Sample sample_of(const Parameters& parameters);

/// Who is where in the grid.
struct Place {
    mpi::Rank rank;
    std::uint32_t row;
    std::uint32_t column;
};

/// A panel as one rank holds it (HPL_T_panel).
struct Panel {
    std::int64_t step = 0;    // which panel
    std::int64_t start = 0;   // its first global column
    std::int64_t width = 0;   // jb
    std::int64_t rows = 0;    // mp: local rows of the trailing matrix, those of the panel included
    std::int64_t columns = 0; // nq: local columns still to update
    std::uint32_t owner_row = 0;
    std::uint32_t owner_column = 0;
    std::uint32_t source_column = 0; // whom the broadcast comes from; that of the rank itself for the root
};

/// The program; its parts stand in main_loop.cpp, panel.cpp, broadcast.cpp, swap.cpp, update.cpp and solve.cpp.
class Program {
public:
    Program(const Parameters& parameters, mpi::Engine& engine, models::MachineDay& day, std::uint64_t seed);
    [[nodiscard]] mpi::Task run(mpi::Rank rank);
    /// Makes `result`, of the simulated steps, that of the whole run.
    void conclude(Result& result);
    [[nodiscard]] std::vector<SentInPhases> rank_sent() const { return {rank_sent_.begin(), rank_sent_.end()}; }

private:
    // -- grid
    [[nodiscard]] Place place(mpi::Rank rank) const noexcept;
    [[nodiscard]] mpi::Rank rank_at(std::uint32_t row, std::uint32_t column) const noexcept;
    [[nodiscard]] Panel new_panel(const Place& at, std::int64_t start);
    /// What the panels that begin at a column have in common, by process row and column.
    struct Shape {
        std::int64_t step = -1; // as if the panel were one of the matrix
        std::vector<std::int64_t> rows;
        std::vector<std::int64_t> columns;
        std::vector<std::uint32_t> source_columns;
    };
    [[nodiscard]] const Shape& shape_at(std::int64_t start);
    void kernel(mpi::Rank rank, Kernel kernel, std::int64_t m, std::int64_t n, std::int64_t k);
    /// While it lives, what the rank does belongs to a step; at its end, the stage gets its row. Nothing where no
    /// trace is asked for.
    class Staged {
    public:
        Staged(mpi::Engine& engine, mpi::Rank rank, std::int64_t step, std::optional<Stage> stage,
               models::Size size = {});
        ~Staged();
        Staged(const Staged&) = delete;
        Staged& operator=(const Staged&) = delete;
        void forget() noexcept { stage_.reset(); } // no row

    private:
        mpi::Engine& engine_;
        mpi::Rank rank_;
        std::int32_t step_before_ = -1;
        bool on_;
        std::optional<Stage> stage_;
        models::Size size_;
        double start_s_ = 0.0;
    };

    // -- messages, counted by phase
    /// A send, or an exchange with whom it sends to.
    mpi::Operation counted(mpi::Rank rank, Phase phase, mpi::Operation operation) {
        Sent& sent = rank_sent_[rank][static_cast<std::size_t>(phase)];
        ++sent.messages;
        sent.bytes += operation.send_bytes;
        operation.receive_from = operation.send_to;
        operation.receive_tag = operation.send_tag;
        return operation;
    }

    // -- sampling: what had passed when the steps began
    struct Totals {
        std::vector<models::KernelUse> kernels;
        mpi::Statistics statistics;
    };
    /// The rank comes to simulated step number `index`.
    void begin_step(const Place& at, std::size_t index, std::int64_t step);
    void mark(const Place& at, std::size_t index);
    /// Are steps left out before simulated step number `index`?
    [[nodiscard]] bool leaps_to(std::size_t index) const noexcept {
        return index > 0 && sample_.steps[index] != sample_.steps[index - 1] + 1;
    }
    void leap(mpi::Rank last, std::size_t index);
    void note_spans();
    void extend(double now_s);
    void note_shares(mpi::Rank rank, std::size_t index);
    [[nodiscard]] Totals totals() const { return {day_.use(), engine_.statistics()}; }

    // -- main loop (main_loop.cpp)
    mpi::Task without_lookahead(Place at);
    mpi::Task with_lookahead(Place at);

    // -- panel factorisation: a recurrence over the clocks of a process column (panel.cpp, process_column.hpp)
    mpi::Task factor(Place at, Panel& panel);
    struct ProcessColumn; // process_column.hpp
    struct Factorisation;
    void note_factored(const Panel& panel, std::uint32_t column);

    // -- broadcast of a panel along the process row (broadcast.cpp, update.hpp)
    class PanelBroadcast;
    /// Probes where it is known that nothing is found; false: it is not known, or there is nobody to probe.
    bool probes_in_vain(const Place& at, const Panel& panel);
    [[nodiscard]] bool cannot_have_come(const Place& at, const Panel& panel);
    /// The process begins to receive the panel.
    void note_receipt(const Place& at, const Panel& panel);
    void fruitless_probe(const Place& at, const Panel& panel);
    /// What HPL_binit does before the panel leaves.
    void begin_broadcast(const Place& at, const Panel& panel);
    [[nodiscard]] static std::int64_t panel_length(const Place& at, const Panel& panel) noexcept; // in doubles
    /// The process column that `column` probes for the panel; itself of the root, and of a panel in pieces.
    [[nodiscard]] std::uint32_t broadcast_source(std::uint32_t column, std::uint32_t root) const noexcept;
    [[nodiscard]] static std::uint32_t broadcast_tag(const Panel& panel) noexcept;

    // -- update (update.cpp, update.hpp)
    class ColumnCalls;
    class Update;
    std::int64_t update_until(const Place& at, const Panel& panel, std::int64_t columns, const Panel& incoming,
                              double visible_s);
    std::shared_ptr<const SpreadPlan> plan_of(const Panel& panel);
    [[nodiscard]] static std::uint32_t swap_tag(const Panel& panel) noexcept;
    /// Which rows move in the swap of a panel: the same for all process columns.
    struct SwapPlan {
        std::int64_t step = -1;
        std::int64_t owner_rows = 0; // rows that the owner packs or moves
        /// By distance from the owner: rows of its own that become rows of U (none counted for the owner).
        std::vector<std::int64_t> held;
        /// What a process and its partner have gathered before a round of the binary exchange.
        struct Round {
            std::int32_t own;
            std::int32_t partner;
        };
        std::vector<Round> rounds; // by distance from the owner, below the power of two, and round
    };
    const SwapPlan& swap_plan(const Panel& panel);

    // -- triangular solve (solve.cpp)
    mpi::Task solve(Place at);
    mpi::Engine::Awaiter<void> send_solving(mpi::Rank rank, mpi::Rank to, std::uint32_t tag, std::int64_t count);
    mpi::Task broadcast_solution(Place at, std::uint32_t root, std::int64_t count, std::uint32_t tag);

    std::vector<std::int64_t> leading_dimensions_; // of the local matrix, per process row
    PanelWindow<Shape> shapes_;
    Sample sample_;
    std::vector<double> began_s_;                     // per simulated step and the end: mean over ranks, less leapt_s_
    mpi::Meeting before_leap_;                        // of all ranks
    double leapt_s_ = 0.0;                            // by which leaps have moved the clocks, mean over ranks
    std::map<std::size_t, Totals> totals_at_;         // by the indices where a span begins or ends
    std::vector<std::vector<mpi::Shares>> shares_in_; // per span and rank
    Parameters parameters_;
    mpi::Engine& engine_;
    models::MachineDay& day_;
    std::uint64_t seed_;
    std::vector<mpi::Meeting> meetings_;           // one per process column
    struct alignas(64) RankSent : SentInPhases {}; // one cache line
    std::vector<RankSent, net::LargePages<RankSent>> rank_sent_;
    struct PlanOfStep {
        std::int64_t step = -1;
        std::shared_ptr<const SpreadPlan> plan;
    };
    PanelWindow<PlanOfStep> spread_plans_;
    PanelWindow<SwapPlan> swap_plans_;
    /// When each process row had factored a panel, and how it has come along the row since.
    struct Factored {
        std::int64_t step = -1;
        std::vector<double> date_s;           // before, nobody can have received it
        std::vector<double> transfer_s;       // from one process of a row to the next, at least
        std::vector<std::uint32_t> sources;   // whom each process column gets it from
        std::vector<std::uint64_t> has_begun; // bits by row and column: has it, or is receiving it
        bool eager = false;                   // it may be sent before it is received
        [[nodiscard]] bool begun(std::size_t process) const noexcept {
            return (has_begun[process / 64] >> (process % 64) & 1U) != 0;
        }
        void begin(std::size_t process) noexcept { has_begun[process / 64] |= std::uint64_t{1} << (process % 64); }
    };
    PanelWindow<Factored> factored_;
    std::vector<std::int64_t> columns_to_factor_; // per process column: of the panel that it factors, 0 if none
    std::vector<double> column_begins_s_;         // per process column: before, no process is through with that column
    double least_column_s_ = 0.0;                 // that the factorisation of one column of a panel takes
};

} // namespace lepaute::hpl
