#pragma once
// A 3D stencil on simulated ranks: each iteration exchanges the faces of a rank's box of cells with its six neighbours,
// sweeps over the cells, and reduces the norm of the residual over all ranks.

#include "checks.hpp"
#include "models/machine.hpp"
#include "models/words.hpp"
#include "mpi/run.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace lepaute::stencil {

enum class Allreduce : std::uint8_t { none, binomial, recursive_doubling, ring };
constexpr auto words_of(Allreduce /*enum*/) noexcept {
    return words_in_order<Allreduce>("none", "binomial", "recursive-doubling", "ring");
}

/// Names are those of lepaute.Stencil.
struct Parameters {
    static constexpr std::int64_t most = 0x7FFFFFFF;
    static constexpr std::uint32_t most_ranks = 1U << 24U;
    static constexpr std::uint64_t most_values = std::uint64_t{1} << 50U; // whose bytes a double counts exactly

    std::array<std::uint32_t, 3> grid{1, 1, 1}; // processes along x, y, z; ranks in the order of MPI_Cart_create
    std::array<std::int64_t, 3> cells{1, 1, 1}; // of the whole box
    std::int64_t iterations = 1;
    bool periodic = true;
    std::int64_t halo = 1;                   // layers of cells that a neighbour needs
    double value_bytes = 8.0;                // sent for each cell of a face
    double cell_time_s = 0.0;                // to compute a cell
    double cell_bytes = 0.0;                 // to and from memory for a cell
    std::optional<double> node_memory_Bps{}; // shared evenly by the ranks of a node; none: memory costs nothing
    double noise_relative_sd = 0.0;
    Allreduce allreduce = Allreduce::recursive_doubling;
    std::uint64_t allreduce_values = 1; // of 8 bytes

    [[nodiscard]] std::size_t ranks() const noexcept { return std::size_t{grid[0]} * grid[1] * grid[2]; }
    [[nodiscard]] std::size_t steps() const noexcept { return static_cast<std::size_t>(iterations); }

    void check() const;
    template <class Visit>
    static void fields(Visit visit) {
        visit("grid", &Parameters::grid);
        visit("cells", &Parameters::cells);
        visit("iterations", &Parameters::iterations, 1, most);
        visit("periodic", &Parameters::periodic);
        visit("halo", &Parameters::halo, 1, most);
        visit("value_bytes", &Parameters::value_bytes, 0.0, 1e15);
        visit("cell_time_s", &Parameters::cell_time_s, 0.0, most_seconds);
        visit("cell_bytes", &Parameters::cell_bytes, 0.0, 1e15);
        visit("node_memory_Bps", &Parameters::node_memory_Bps);
        visit("noise_relative_sd", &Parameters::noise_relative_sd, 0.0, most_relative_sd);
        visit("allreduce", &Parameters::allreduce);
        visit("allreduce_values", &Parameters::allreduce_values, 0, most_values);
    }
};

enum class Kernel : std::uint8_t { sweep, count };
inline constexpr std::array<std::string_view, static_cast<std::size_t>(Kernel::count)> kernel_names{"sweep"};

/// One run. core_of_rank: global core (node * cores_per_node + core) of each rank of the grid. The models of kernels in
/// `machine` are not used; its days and episodes are. Steps of a trace are iterations.
/// Throws std::invalid_argument when the sizes do not fit together, std::runtime_error on a deadlock, or when
/// `progress` is cancelled.
[[nodiscard]] mpi::RunResult simulate(const Parameters& parameters, const models::Machine& machine,
                                      const models::Layers& layers, const std::vector<std::uint32_t>& core_of_rank,
                                      models::Seeds seeds, mpi::Trace trace = {}, mpi::Progress* progress = nullptr);

/// The cells along one dimension of the process at `position` of `processes`: even shares, the first ones one more.
[[nodiscard]] std::int64_t local_cells(std::int64_t cells, std::uint32_t processes, std::uint32_t position) noexcept;

} // namespace lepaute::stencil
