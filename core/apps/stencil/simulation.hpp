#pragma once
// A 3D stencil on simulated ranks: each iteration exchanges the faces of a rank's box of cells with its six neighbours,
// sweeps over the cells, and reduces the norm of the residual over all ranks.

#include "models/machine.hpp"
#include "mpi/collectives.hpp"
#include "mpi/engine.hpp"

#include <array>
#include <cstdint>
#include <vector>

namespace lepaute::stencil {

enum class Allreduce : std::uint8_t { none, binomial, recursive_doubling, ring };

struct Parameters {
    std::array<std::uint32_t, 3> grid{1, 1, 1}; // processes along x, y, z; ranks in the order of MPI_Cart_create
    std::array<std::int64_t, 3> cells{1, 1, 1}; // of the whole box
    std::int64_t iterations = 1;
    bool periodic = true;
    std::int64_t halo = 1;        // layers of cells that a neighbour needs
    double value_bytes = 8.0;     // sent for each cell of a face
    double cell_time_s = 0.0;     // to compute a cell
    double cell_bytes = 0.0;      // to and from memory for a cell; 0: memory costs nothing
    double node_memory_Bps = 1.0; // shared evenly by the ranks of a node
    double noise_relative_sd = 0.0;
    Allreduce allreduce = Allreduce::recursive_doubling;
    std::uint64_t allreduce_values = 1; // of 8 bytes
};

struct Result {
    double time_s = 0.0; // of all iterations, maximum over ranks
    std::uint64_t messages = 0;
    double bytes = 0.0;
    std::array<models::MessageUse, models::link_class_count> message_use; // where the fitted sizes are known
    double waiting_s = 0.0;                                               // over all ranks, inside communication calls
    double computing_s = 0.0;                                             // over all ranks
    std::size_t engine_bytes = 0;
};

/// One run. core_of_rank: global core (node * cores_per_node + core) of each rank of the grid. The models of kernels in
/// `machine` are not used; its days and episodes are.
/// Throws std::invalid_argument when the sizes do not fit together, std::runtime_error on a deadlock.
[[nodiscard]] Result simulate(const Parameters& parameters, const models::Machine& machine,
                              const models::Layers& layers, const std::vector<std::uint32_t>& core_of_rank,
                              std::uint64_t seed);

/// The cells along one dimension of the process at `position` of `processes`: even shares, the first ones one more.
[[nodiscard]] std::int64_t local_cells(std::int64_t cells, std::uint32_t processes, std::uint32_t position) noexcept;

/// The program of a rank.
class Program {
public:
    Program(const Parameters& parameters, mpi::Engine& engine, models::MachineDay& day,
            std::vector<double> cell_time_of_rank_s);
    [[nodiscard]] mpi::Task run(mpi::Rank rank);

private:
    using Position = std::array<std::uint32_t, 3>;
    [[nodiscard]] Position position(mpi::Rank rank) const noexcept;
    [[nodiscard]] mpi::Rank rank_at(const Position& at) const noexcept;
    mpi::Task shift(mpi::Rank rank, std::size_t dimension, bool upwards, double bytes);
    mpi::Task reduce_residual(mpi::Rank rank);

    Parameters parameters_;
    mpi::Engine& engine_;
    models::MachineDay& day_;
    std::vector<double> cell_time_of_rank_s_;
    mpi::Communicator world_;
};

} // namespace lepaute::stencil
