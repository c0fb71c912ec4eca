#pragma once
// HPL on simulated ranks: the control flow of the real program, each kernel call and message where it makes them.

#include "apps/hpl/parameters.hpp"
#include "models/machine.hpp"
#include "mpi/engine.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace lepaute::hpl {

struct Result {
    double time_s = 0.0; // of the solver: factorisation and solve, maximum over ranks
    std::uint64_t messages = 0;
    double bytes = 0.0;
    double waiting_s = 0.0; // over all ranks, inside communication calls
    std::array<models::KernelUse, models::kernel_count> kernels;
    std::size_t engine_bytes = 0;
};

/// One run. core_of_rank: global core (node * cores_per_node + core) of each rank, one per process of the grid.
/// Throws std::invalid_argument when the sizes do not fit together, std::runtime_error on a deadlock.
[[nodiscard]] Result simulate(const Parameters& parameters, const models::Machine& machine,
                              const models::Layers& layers, const std::vector<std::uint32_t>& core_of_rank,
                              std::uint64_t seed);

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
};

/// The program; its parts stand in panel.cpp, broadcast.cpp, swap.cpp, update.cpp and solve.cpp.
class Program {
public:
    Program(const Parameters& parameters, mpi::Engine& engine, models::MachineDay& day, std::uint64_t seed);
    [[nodiscard]] mpi::Task run(mpi::Rank rank);

private:
    // -- grid
    [[nodiscard]] Place place(mpi::Rank rank) const noexcept;
    [[nodiscard]] mpi::Rank rank_at(std::uint32_t row, std::uint32_t column) const noexcept;
    /// HPL's leading dimension of the local matrix: its rows, up to a multiple of 8 that is no power of two.
    [[nodiscard]] std::int64_t leading_dimension(std::uint32_t row) const noexcept;
    [[nodiscard]] Panel new_panel(const Place& at, std::int64_t start) const noexcept;
    void kernel(mpi::Rank rank, models::Kernel kernel, std::int64_t m, std::int64_t n, std::int64_t k);

    // -- main loop
    mpi::Task without_lookahead(Place at);
    mpi::Task with_lookahead(Place at);

    // -- panel factorisation: a recurrence over the clocks of a process column (panel.cpp)
    mpi::Task factor(Place at, Panel& panel);
    struct Factorisation;

    // -- broadcast of a panel along the process row (broadcast.cpp); false: has not come yet
    mpi::Task poll_broadcast(const Place& at, const Panel& panel, bool& done);
    mpi::Task finish_broadcast(const Place& at, const Panel& panel, bool& done);

    // -- update (update.cpp): of the first `limit` local columns (all when negative); `incoming` is probed for
    mpi::Task update(Place at, Panel& panel, std::int64_t limit, const Panel* incoming, bool& incoming_done);
    mpi::Task swap_binary_exchange(Place at, const Panel& panel, std::int64_t columns, const Panel* incoming,
                                   bool& incoming_done);
    struct SwapRows {
        std::vector<std::int64_t> sent; // per process row: its rows that become rows of U (none counted for the owner)
        std::int64_t owner_rows = 0;    // rows that the owner packs or moves
    };
    const SwapRows& swap_rows(const Panel& panel);

    // -- triangular solve (solve.cpp)
    mpi::Task solve(Place at);
    mpi::Task broadcast_solution(Place at, std::uint32_t root, std::int64_t count, std::uint32_t tag);

    Parameters parameters_;
    mpi::Engine& engine_;
    models::MachineDay& day_;
    std::uint64_t seed_;
    std::vector<mpi::Engine::Meeting> meetings_; // one per process column
    std::vector<SwapRows> swap_rows_;            // one per step, filled when first asked for
};

} // namespace lepaute::hpl
