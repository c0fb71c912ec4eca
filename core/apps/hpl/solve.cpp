// Solution of the upper triangular system (HPL_pdtrsv): blocks of the solution from the last to the first, each sent up
// the process column that owns it, partial updates sent to the next column ahead of the rest.

#include "apps/hpl/simulation.hpp"

#include <algorithm>
#include <bit>

namespace lepaute::hpl {

using mpi::Rank;
using mpi::Task;

namespace {

constexpr std::uint32_t row_tag = 0x30000000U;
constexpr std::uint32_t column_tag = 0x40000000U;
constexpr std::uint32_t last_tag = 0x50000000U;

} // namespace

/// MPI_Send of `count` doubles.
mpi::Engine::Awaiter<void> Program::send_solving(Rank rank, Rank to, std::uint32_t tag, std::int64_t count) {
    return engine_.operation<void>(rank, counted(rank, Phase::solve,
                                                 {.kind = mpi::Operation::Kind::send,
                                                  .send_to = to,
                                                  .send_tag = tag,
                                                  .send_bytes = 8.0 * static_cast<double>(count)}));
}

Task Program::solve(Place at) {
    const std::int64_t nb = parameters_.nb;
    const std::uint32_t p = parameters_.p;
    engine_.set_step(at.rank, -1);
    const Staged staged(
        engine_, at.rank, -1, Stage::pdtrsv,
        {static_cast<double>(local_count(parameters_.n, nb, at.row, p)), static_cast<double>(parameters_.n), 0.0});
    const std::uint32_t q = parameters_.q;
    const std::int64_t ahead = std::max((static_cast<std::int64_t>(q) - 1) * nb, nb); // rows updated first

    const std::int64_t last = (parameters_.n - 1) / nb; // of the blocks
    const auto row_of = [p](std::int64_t block) { return static_cast<std::uint32_t>(block % p); };
    const auto column_of = [q](std::int64_t block) { return static_cast<std::uint32_t>(block % q); };
    const auto width_of = [&](std::int64_t block) { return std::min(nb, parameters_.n - block * nb); };

    // The right-hand side moves to the process column that owns the last columns of A.
    const auto rhs_column = static_cast<std::uint32_t>((parameters_.n / nb) % q);
    const std::int64_t rows = local_count(parameters_.n, nb, at.row, p);
    if (rows > 0 && column_of(last) != rhs_column) {
        if (at.column == rhs_column) {
            co_await send_solving(at.rank, rank_at(at.row, column_of(last)), row_tag, rows);
        } else if (at.column == column_of(last)) {
            co_await engine_.receive(at.rank, rank_at(at.row, rhs_column), row_tag);
        }
    }

    const auto rows_above = [&](std::int64_t block) { return local_count(block * nb, nb, at.row, p); };
    const auto rows_ahead = [&](std::int64_t block) { // those that are updated first
        const std::int64_t count = std::min(block * nb, ahead);
        return local_count_from(count, block * nb - count, nb, at.row, p);
    };
    const auto solve_block = [&](std::int64_t block) {
        if (at.column == column_of(block) && at.row == row_of(block)) {
            kernel(at.rank, Kernel::dtrsv, 0, width_of(block), 0);
        }
    };
    solve_block(last);
    // A rank has something to do where its column has the block, or had the one before.
    for (std::int64_t now = last - 1; now >= 0; --now) {
        const std::uint32_t away = (column_of(now) + q - at.column) % q;
        if (away != 0 && away != q - 1) {
            now -= away;
            if (now < 0) {
                break;
            }
        }
        const std::int64_t previous = now + 1;
        const std::uint32_t row_previous = row_of(previous);
        const auto message = static_cast<std::uint32_t>(last - now);
        const std::int64_t ahead_previous = rows_ahead(previous);
        const Rank above = rank_at((at.row + p - 1) % p, at.column);
        if (at.column == column_of(previous)) {
            if (at.row == row_previous) {
                if (p > 1) {
                    co_await send_solving(at.rank, above, column_tag + message, width_of(previous));
                }
            } else {
                co_await engine_.receive(at.rank, rank_at((at.row + 1) % p, at.column), column_tag + message);
            }
            if (ahead_previous > 0) {
                kernel(at.rank, Kernel::dgemv, ahead_previous, width_of(previous), 0);
                if (q > 1) {
                    co_await send_solving(at.rank, rank_at(at.row, column_of(now)), row_tag + message, ahead_previous);
                }
            }
            if (at.row != row_previous && at.row != (row_previous + 1) % p) {
                co_await send_solving(at.rank, above, column_tag + message, width_of(previous));
            }
        } else if (at.column == column_of(now) && ahead_previous > 0) {
            co_await engine_.receive(at.rank, rank_at(at.row, column_of(previous)), row_tag + message);
            kernel(at.rank, Kernel::daxpy, 0, ahead_previous, 0);
        }
        solve_block(now);
        if (at.column == column_of(previous) && rows_above(previous) > ahead_previous) {
            kernel(at.rank, Kernel::dgemv, rows_above(previous) - ahead_previous, width_of(previous), 0);
        }
    }
    if (at.column == column_of(0)) {
        co_await broadcast_solution(at, row_of(0), width_of(0), last_tag);
    }
}

/// HPL_broadcast down a process column, binomial.
Task Program::broadcast_solution(Place at, std::uint32_t root, std::int64_t count, std::uint32_t tag) {
    const std::uint32_t p = parameters_.p;
    const std::uint32_t distance = (at.row + p - root) % p;
    const auto rank_of = [&](std::uint32_t d) { return rank_at((root + d) % p, at.column); };
    for (std::uint32_t bit = std::bit_ceil(p) / 2; bit > 0; bit /= 2) {
        if (distance % (2 * bit) == bit) {
            co_await engine_.receive(at.rank, rank_of(distance - bit), tag);
        } else if (distance % (2 * bit) == 0 && distance + bit < p) {
            co_await send_solving(at.rank, rank_of(distance + bit), tag, count);
        }
    }
}

} // namespace lepaute::hpl
