// Solution of the upper triangular system (HPL_pdtrsv): blocks of the solution from the last to the first, each sent up
// the process column that owns it, partial updates sent to the next column ahead of the rest.

#include "apps/hpl/simulation.hpp"

#include <algorithm>

namespace lepaute::hpl {

using mpi::Rank;
using mpi::Task;

namespace {

constexpr std::uint32_t row_tag = 0x30000000U;
constexpr std::uint32_t column_tag = 0x40000000U;
constexpr std::uint32_t last_tag = 0x50000000U;

constexpr double bytes_of(std::int64_t count) noexcept { return 8.0 * static_cast<double>(count); }

} // namespace

Task Program::solve(Place at) {
    const std::int64_t nb = parameters_.nb;
    const std::uint32_t p = parameters_.p;
    engine_.set_step(at.rank, -1);
    const Staged staged(
        engine_, at.rank, -1, Stage::pdtrsv,
        {static_cast<double>(local_count(parameters_.n, nb, at.row, p)), static_cast<double>(parameters_.n), 0.0});
    const std::uint32_t q = parameters_.q;
    const std::int64_t ahead = std::max((static_cast<std::int64_t>(q) - 1) * nb, nb); // rows updated first

    const std::int64_t blocks = (parameters_.n - 1) / nb;
    auto row_now = static_cast<std::uint32_t>(blocks % p); // who holds the diagonal block
    auto column_now = static_cast<std::uint32_t>(blocks % q);
    std::int64_t width = parameters_.n - blocks * nb;
    std::int64_t left = parameters_.n; // rows not yet solved
    std::int64_t local_rows = local_count(parameters_.n, nb, at.row, p);
    std::uint32_t message = 0;

    // The right-hand side moves to the process column that owns the last columns of A.
    const auto rhs_column = static_cast<std::uint32_t>((parameters_.n / nb) % q);
    if (local_rows > 0 && column_now != rhs_column) {
        if (at.column == rhs_column) {
            co_await send(at.rank, {Phase::solve, rank_at(at.row, column_now), row_tag, bytes_of(local_rows)});
        } else if (at.column == column_now) {
            co_await engine_.receive(at.rank, rank_at(at.row, rhs_column), row_tag);
        }
    }

    const auto rows_ahead = [&](std::int64_t above) { // local rows among the last `ahead` of the `above` first
        const std::int64_t count = std::min(std::max<std::int64_t>(above, 0), ahead);
        return local_count_from(count, std::max<std::int64_t>(0, above - count), nb, at.row, p);
    };
    const auto solve_block = [&] {
        if (at.column == column_now && at.row == row_now) {
            kernel(at.rank, Kernel::dtrsv, 0, width, 0);
        }
    };
    std::int64_t ahead_previous = rows_ahead(left - width);
    if (at.row == row_now) {
        local_rows -= width;
    }
    std::int64_t rows_previous = local_rows;
    solve_block();
    std::uint32_t row_previous = row_now;
    std::uint32_t column_previous = column_now;
    std::int64_t width_previous = width;
    left -= width;
    width = nb;

    while (left > 0) {
        row_now = (row_now + p - 1) % p;
        column_now = (column_now + q - 1) % q;
        const std::int64_t ahead_now = rows_ahead(left - width);
        if (at.row == row_now) {
            local_rows -= width;
        }
        ++message;
        const Rank above = rank_at((at.row + p - 1) % p, at.column);
        if (at.column == column_previous) {
            if (at.row == row_previous) {
                if (p > 1) {
                    co_await send(at.rank, {Phase::solve, above, column_tag + message, bytes_of(width_previous)});
                }
            } else {
                co_await engine_.receive(at.rank, rank_at((at.row + 1) % p, at.column), column_tag + message);
            }
            if (ahead_previous > 0) {
                kernel(at.rank, Kernel::dgemv, ahead_previous, width_previous, 0);
                if (q > 1) {
                    co_await send(at.rank, {Phase::solve, rank_at(at.row, column_now), row_tag + message,
                                            bytes_of(ahead_previous)});
                }
            }
            if (at.row != row_previous && at.row != (row_previous + 1) % p) {
                co_await send(at.rank, {Phase::solve, above, column_tag + message, bytes_of(width_previous)});
            }
        } else if (at.column == column_now && ahead_previous > 0) {
            co_await engine_.receive(at.rank, rank_at(at.row, column_previous), row_tag + message);
            kernel(at.rank, Kernel::daxpy, 0, ahead_previous, 0);
        }
        solve_block();
        if (at.column == column_previous && rows_previous > ahead_previous) {
            kernel(at.rank, Kernel::dgemv, rows_previous - ahead_previous, width_previous, 0);
        }
        if (at.row == row_now) {
            rows_previous -= width;
        }
        row_previous = row_now;
        column_previous = column_now;
        ahead_previous = ahead_now;
        width_previous = width;
        left -= width;
    }
    if (at.column == column_previous) {
        co_await broadcast_solution(at, row_previous, width_previous, last_tag);
    }
}

/// HPL_broadcast down a process column, binomial.
Task Program::broadcast_solution(Place at, std::uint32_t root, std::int64_t count, std::uint32_t tag) {
    const std::uint32_t p = parameters_.p;
    const std::uint32_t distance = (at.row + p - root) % p;
    const auto rank_of = [&](std::uint32_t d) { return rank_at((root + d) % p, at.column); };
    std::uint32_t bit = 1;
    while (bit < p) {
        bit <<= 1U;
    }
    for (bit >>= 1U; bit > 0; bit >>= 1U) {
        if (distance % (2 * bit) == bit) {
            co_await engine_.receive(at.rank, rank_of(distance - bit), tag);
        } else if (distance % (2 * bit) == 0 && distance + bit < p) {
            co_await send(at.rank, {Phase::solve, rank_of(distance + bit), tag, bytes_of(count)});
        }
    }
}

} // namespace lepaute::hpl
