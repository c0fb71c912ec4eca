#include "apps/stencil/simulation.hpp"

#include "mpi/collectives.hpp"
#include "mpi/engine.hpp"

#include <algorithm>
#include <numeric>

namespace lepaute::stencil {

using mpi::Rank;
using mpi::Task;

namespace {

constexpr models::KernelSet kernels{.names = kernel_names, .first_stream = 9};
constexpr std::uint32_t allreduce_tag = 6; // 0 to 5 are the directions of the faces

/// The program of a rank.
class Program {
public:
    Program(const Parameters& parameters, mpi::Engine& engine, models::MachineDay& day,
            std::vector<double> cell_time_of_rank_s)
        : parameters_(parameters), engine_(engine), day_(day), cell_time_of_rank_s_(std::move(cell_time_of_rank_s)) {
        world_.ranks.resize(engine.size());
        std::iota(world_.ranks.begin(), world_.ranks.end(), 0U);
    }

    Task run(Rank rank) {
        const Position at = position(rank);
        std::array<double, 3> local{};
        for (std::size_t dimension = 0; dimension < 3; ++dimension) {
            local[dimension] = static_cast<double>(
                local_cells(parameters_.cells[dimension], parameters_.grid[dimension], at[dimension]));
        }
        const double cells = local[0] * local[1] * local[2];
        const double layer_bytes = static_cast<double>(parameters_.halo) * parameters_.value_bytes;
        for (std::int64_t iteration = 0; iteration < parameters_.iterations; ++iteration) {
            engine_.begin_step(rank, static_cast<std::int32_t>(iteration));
            for (std::size_t dimension = 0; dimension < 3; ++dimension) {
                if (parameters_.grid[dimension] > 1) { // alone along it, a process is its own neighbour
                    const double face_bytes = cells / local[dimension] * layer_bytes;
                    co_await shift(rank, dimension, true, face_bytes);
                    co_await shift(rank, dimension, false, face_bytes);
                }
            }
            const models::Size seconds{0.0, cells * cell_time_of_rank_s_[rank], 0.0};
            mpi::call_kernel(engine_, day_, rank, Kernel::sweep, seconds);
            co_await reduce_residual(rank);
        }
    }

private:
    using Position = std::array<std::uint32_t, 3>;

    [[nodiscard]] Position position(Rank rank) const noexcept {
        const auto& grid = parameters_.grid;
        return {rank / (grid[1] * grid[2]), rank / grid[2] % grid[1], rank % grid[2]};
    }

    [[nodiscard]] Rank rank_at(const Position& at) const noexcept {
        return (at[0] * parameters_.grid[1] + at[1]) * parameters_.grid[2] + at[2];
    }

    // All ranks send one way and receive from the other, as MPI_Sendrecv does: this cannot deadlock, periodic or not.
    Task shift(Rank rank, std::size_t dimension, bool upwards, double bytes) {
        const Position at = position(rank);
        const std::uint32_t processes = parameters_.grid[dimension];
        const auto tag = static_cast<std::uint32_t>(2 * dimension + (upwards ? 0 : 1));
        const bool at_end = at[dimension] + 1 == processes;
        const bool at_start = at[dimension] == 0;
        Position above = at;
        above[dimension] = at_end ? 0 : at[dimension] + 1;
        Position below = at;
        below[dimension] = at_start ? processes - 1 : at[dimension] - 1;
        const Rank to = rank_at(upwards ? above : below);
        const Rank from = rank_at(upwards ? below : above);
        const bool sends = parameters_.periodic || !(upwards ? at_end : at_start);
        const bool receives = parameters_.periodic || !(upwards ? at_start : at_end);
        if (sends && receives) {
            co_await engine_.send_receive(rank, to, tag, bytes, from, tag);
        } else if (sends) {
            co_await engine_.send(rank, to, tag, bytes);
        } else {
            co_await engine_.receive(rank, from, tag);
        }
    }

    Task reduce_residual(Rank rank) {
        const mpi::Member me{engine_, world_, rank, allreduce_tag};
        const double residual = static_cast<double>(parameters_.allreduce_values) * 8.0;
        switch (parameters_.allreduce) {
        case Allreduce::none:
            break;
        case Allreduce::binomial:
            co_await mpi::allreduce_binomial(me, residual);
            break;
        case Allreduce::recursive_doubling:
            co_await mpi::allreduce_across_cube(me, residual, mpi::Algorithm::recursive_doubling);
            break;
        case Allreduce::ring:
            co_await mpi::allreduce_ring(me, residual, 8.0);
            break;
        }
    }

    Parameters parameters_;
    mpi::Engine& engine_;
    models::MachineDay& day_;
    std::vector<double> cell_time_of_rank_s_;
    mpi::Communicator world_;
};

} // namespace

void Parameters::check() const {
    std::uint32_t left = most_ranks;
    for (std::size_t dimension = 0; dimension < grid.size(); ++dimension) {
        const std::uint32_t processes = grid.at(dimension);
        check_number("grid", processes, 1U, left);
        left /= processes;
        check_number("cells", cells.at(dimension), 1, most);
        if (cells.at(dimension) / processes < halo) {
            refuse("cells", text_of(cells.at(dimension)) + " over " + text_of(processes) + " processes",
                   "each needs at least as many as its halo has layers, " + text_of(halo));
        }
    }
    if (node_memory_Bps) {
        check_bandwidth("node_memory_Bps", *node_memory_Bps);
    }
}

std::int64_t local_cells(std::int64_t cells, std::uint32_t processes, std::uint32_t position) noexcept {
    return cells / processes + (position < cells % processes ? 1 : 0);
}

mpi::RunResult simulate(const Parameters& parameters, const models::Machine& machine, const models::Layers& layers,
                        const std::vector<std::uint32_t>& core_of_rank, models::Seeds seeds, mpi::Trace trace,
                        mpi::Progress* progress) {
    mpi::check_inputs(parameters, machine, core_of_rank.size());
    std::vector<std::uint32_t> nodes = mpi::nodes_of_ranks(machine, core_of_rank);
    std::vector<std::uint32_t> ranks_on(machine.nodes, 0);
    for (const std::uint32_t node : nodes) {
        ++ranks_on[node];
    }
    std::vector<double> cell_time_s;
    for (const std::uint32_t node : nodes) { // whichever is slower, the processor or the memory
        const double memory_s =
            parameters.node_memory_Bps ? parameters.cell_bytes * ranks_on[node] / *parameters.node_memory_Bps : 0.0;
        cell_time_s.push_back(std::max(parameters.cell_time_s, memory_s));
    }
    models::MachineDay day(models::with_timed_kernel(machine, kernel_names.front(), parameters.noise_relative_sd),
                           kernels, layers, seeds, core_of_rank);
    mpi::Engine engine(mpi::network_of_run(machine, layers, seeds.day), mpi::links_of_run(machine, layers, seeds.day),
                       std::move(nodes), seeds.run, layers.noise);
    engine.trace() = std::move(trace);
    engine.report_to(progress);
    Program program(parameters, engine, day, std::move(cell_time_s));
    mpi::RunResult result;
    result.time_s = engine.run([&](Rank rank) { return program.run(rank); });
    mpi::collect(result, engine, day);
    mpi::add_up_shares(result);
    return result;
}

} // namespace lepaute::stencil
