// Panel factorisation (HPL_pdfact): when the last rank of the process column has come, all columns of the panel are
// evaluated at once as a recurrence over the local clocks: kernels add to a clock, the pivot exchange of each column
// (HPL_pdmxswp) takes the later of two. The small pivot messages do not contend with other flows.

#include "apps/hpl/simulation.hpp"

#include <algorithm>
#include <bit>

namespace lepaute::hpl {

using models::Kernel;
using models::Protocol;
using mpi::Rank;
using mpi::Task;

struct Program::Factorisation {
    Program& program;
    const Panel& panel;
    std::uint32_t column;           // process column
    std::vector<std::int64_t> rows; // rows left to each process row; the owner's shrink as its rows are factored

    [[nodiscard]] std::uint32_t p() const noexcept { return program.parameters_.p; }
    [[nodiscard]] Rank rank(std::uint32_t row) const noexcept { return program.rank_at(row, column); }
    [[nodiscard]] bool owner(std::uint32_t row) const noexcept { return row == panel.owner_row; }

    void kernel(std::uint32_t row, Kernel kernel, std::int64_t m, std::int64_t n, std::int64_t k = 0) const {
        if (m > 0 && n > 0) {
            program.kernel(rank(row), kernel, m, n, k);
        }
    }
    void length_kernel(std::uint32_t row, Kernel kernel, std::int64_t n, std::int64_t k = 0) const {
        if (n > 0) {
            program.kernel(rank(row), kernel, 0, n, k);
        }
    }
    /// A kernel along a row of the matrix: its k is the leading dimension.
    void row_kernel(std::uint32_t row, Kernel kernel, std::int64_t n) const {
        length_kernel(row, kernel, n, program.leading_dimension(row));
    }

    /// Two ranks send to each other; both clocks move to when their own message has gone and the other's is in.
    void exchange(std::uint32_t row_a, double bytes_a, std::uint32_t row_b, double bytes_b) const {
        mpi::Engine& engine = program.engine_;
        const Rank a = rank(row_a);
        const Rank b = rank(row_b);
        const models::NetworkClass& network = engine.class_between(a, b);
        const double ready_a = engine.clock(a) + network.at(bytes_a).send.of(bytes_a);
        const double ready_b = engine.clock(b) + network.at(bytes_b).send.of(bytes_b);
        const auto arrives = [&](double ready_s, double posted_s, double bytes) {
            const models::Segment& segment = network.at(bytes);
            const double start_s = segment.protocol == Protocol::eager ? ready_s : std::max(ready_s, posted_s);
            return start_s + segment.latency_s + bytes / segment.bandwidth_Bps;
        };
        const double at_b = arrives(ready_a, engine.clock(b), bytes_a);
        const double at_a = arrives(ready_b, engine.clock(a), bytes_b);
        const double sent_a = network.at(bytes_a).protocol == Protocol::rendezvous ? at_b : ready_a;
        const double sent_b = network.at(bytes_b).protocol == Protocol::rendezvous ? at_a : ready_b;
        move(a, std::max(sent_a, at_a) + network.at(bytes_b).receive.of(bytes_b));
        move(b, std::max(sent_b, at_b) + network.at(bytes_a).receive.of(bytes_a));
        engine.statistics().messages += 2;
        engine.statistics().bytes += bytes_a + bytes_b;
    }

    void send(std::uint32_t row_from, std::uint32_t row_to, double bytes) const {
        mpi::Engine& engine = program.engine_;
        const Rank from = rank(row_from);
        const Rank to = rank(row_to);
        const models::Segment& segment = engine.class_between(from, to).at(bytes);
        const double ready_s = engine.clock(from) + segment.send.of(bytes);
        const double start_s = segment.protocol == Protocol::eager ? ready_s : std::max(ready_s, engine.clock(to));
        const double arrival_s = start_s + segment.latency_s + bytes / segment.bandwidth_Bps;
        move(from, segment.protocol == Protocol::rendezvous ? arrival_s : ready_s);
        move(to, std::max(engine.clock(to), arrival_s) + segment.receive.of(bytes));
        engine.statistics().messages += 1;
        engine.statistics().bytes += bytes;
    }

    void move(Rank to_move, double date_s) const {
        mpi::Engine& engine = program.engine_;
        engine.statistics().waiting_s += date_s - engine.clock(to_move);
        engine.set_clock(to_move, date_s);
    }

    /// HPL_pdmxswp and HPL_dlocswp: finds the pivot row of a column over the process column, and swaps it in.
    void pivot() const {
        const std::int64_t width = panel.width;
        for (std::uint32_t row = 0; row < p(); ++row) {
            if (rows[row] > 0) {
                row_kernel(row, Kernel::dcopy, width);
                if (owner(row)) {
                    row_kernel(row, Kernel::dcopy, width);
                }
            }
        }
        if (p() > 1) {
            combine();
        }
        for (std::uint32_t row = 0; row < p(); ++row) {
            row_kernel(row, Kernel::dlocswp, width);
        }
    }

    /// The bidirectional exchange, distances relative to the owner; ranks beyond the power of two fold in and out.
    void combine() const {
        const auto row_at = [&](std::uint32_t distance) { return (panel.owner_row + distance) % p(); };
        const double one_row = 8.0 * static_cast<double>(panel.width + 4);
        const double two_rows = 8.0 * static_cast<double>(2 * panel.width + 4);
        const double bare_row = 8.0 * static_cast<double>(panel.width);
        const std::uint32_t power = std::bit_floor(p());
        for (std::uint32_t d = power; d < p(); ++d) {
            if (d == power) {
                exchange(row_at(d), one_row, row_at(0), bare_row);
            } else {
                send(row_at(d), row_at(d - power), one_row);
            }
        }
        for (std::uint32_t bit = 1; bit < power; bit <<= 1U) {
            for (std::uint32_t d = 0; d < power; ++d) {
                const std::uint32_t partner = d ^ bit;
                if (d < partner) {
                    // Those below 2 * bit exchange the current row as well: who has it sends two rows.
                    exchange(row_at(d), d < bit ? two_rows : one_row, row_at(partner), one_row);
                }
            }
        }
        // Beyond the power of two, the current row is spread by a binomial tree; then the result comes from the others.
        const std::uint32_t beyond = p() - power;
        for (std::uint32_t bit = beyond > 1 ? std::bit_floor(beyond - 1) : 0; bit > 0; bit >>= 1U) {
            for (std::uint32_t d = 0; d < beyond; d += 2 * bit) {
                if (d + bit < beyond) {
                    send(row_at(power + d), row_at(power + d + bit), bare_row);
                }
            }
        }
        for (std::uint32_t d = power; d < p(); ++d) {
            send(row_at(d - power), row_at(d), one_row);
        }
    }

    void local_maximum(std::uint32_t row, std::int64_t length) const { length_kernel(row, Kernel::idamax, length); }
    [[nodiscard]] std::int64_t below(std::uint32_t row) const noexcept { return rows[row] - (owner(row) ? 1 : 0); }

    /// A leaf of `n` columns; the algorithm is PFACT.
    void leaf(std::int64_t n) {
        for (std::uint32_t row = 0; row < p(); ++row) {
            local_maximum(row, rows[row]);
        }
        for (std::int64_t done = 0; done < n; ++done) {
            pivot();
            const std::int64_t right = n - 1 - done; // columns of the leaf to the right of this one
            for (std::uint32_t row = 0; row < p(); ++row) {
                leaf_column(row, done, right);
            }
            --rows[panel.owner_row];
        }
    }

    void leaf_column(std::uint32_t row, std::int64_t done, std::int64_t right) const {
        const std::int64_t under = below(row);
        switch (program.parameters_.pfact) {
        case hpl::Factorisation::left:
            if (right > 0) {
                length_kernel(row, Kernel::dtrsv, done + 1);
            }
            length_kernel(row, Kernel::dscal, under);
            if (right > 0) {
                kernel(row, Kernel::dgemv, under, done + 1);
                local_maximum(row, under);
                if (owner(row)) {
                    row_kernel(row, Kernel::dcopy, done + 1);
                }
            }
            break;
        case hpl::Factorisation::crout:
            if (done > 0 && right > 0) {
                kernel(row, Kernel::dgemv, right, done);
                if (owner(row)) {
                    row_kernel(row, Kernel::dcopy, right);
                }
            }
            length_kernel(row, Kernel::dscal, under);
            if (right > 0) {
                kernel(row, Kernel::dgemv, under, done + 1);
                local_maximum(row, under);
            }
            break;
        case hpl::Factorisation::right:
            length_kernel(row, Kernel::dscal, under);
            if (right > 0) {
                length_kernel(row, Kernel::daxpy, under);
                local_maximum(row, under);
            }
            if (right > 1) {
                kernel(row, Kernel::dger, under, right - 1);
            }
            break;
        }
    }

    /// `n` columns from column `offset` of the panel; the algorithm is RFACT.
    void recurse(std::int64_t n, std::int64_t offset) {
        const std::int64_t nbmin = program.parameters_.nbmin;
        const std::int64_t ndiv = program.parameters_.ndiv;
        if (n <= nbmin) {
            leaf(n);
            return;
        }
        const std::int64_t block = (((n + nbmin - 1) / nbmin + ndiv - 1) / ndiv) * nbmin;
        for (std::int64_t done = 0; done < n; done += block) {
            const std::int64_t width = std::min(block, n - done);
            const std::int64_t right = n - done - width;
            before_block(done, width);
            recurse(width, offset + done);
            after_block(done, width, right, offset + done);
        }
    }

    void before_block(std::int64_t done, std::int64_t width) const {
        const hpl::Factorisation rfact = program.parameters_.rfact;
        for (std::uint32_t row = 0; row < p() && rfact != hpl::Factorisation::right && done > 0; ++row) {
            if (rfact == hpl::Factorisation::left) {
                kernel(row, Kernel::dtrsm, width, done, done);
            }
            kernel(row, Kernel::dgemm, rows[row], width, done);
        }
    }

    void after_block(std::int64_t done, std::int64_t width, std::int64_t right, std::int64_t offset) const {
        const hpl::Factorisation rfact = program.parameters_.rfact;
        for (std::uint32_t row = 0; row < p(); ++row) {
            if (right > 0 && rfact == hpl::Factorisation::crout && done > 0) {
                kernel(row, Kernel::dgemm_nn, right, width, done);
            }
            if (right > 0 && rfact != hpl::Factorisation::left) {
                kernel(row, Kernel::dtrsm, right, width, width);
            }
            if (right > 0 && rfact == hpl::Factorisation::right) {
                kernel(row, Kernel::dgemm, rows[row], right, width);
            }
            if (owner(row)) {
                kernel(row, Kernel::dlatcpy, offset, width, program.leading_dimension(row));
            }
        }
    }

    void run() {
        for (std::uint32_t row = 0; row < p(); ++row) {
            kernel(row, Kernel::pdfact_glue, rows[row], panel.width);
        }
        recurse(panel.width, 0);
    }
};

Task Program::factor(Place at, Panel& panel) {
    if (at.column != panel.owner_column) {
        co_return;
    }
    mpi::Engine::Meeting& meeting = meetings_[at.column];
    if (meeting.present.empty()) {
        meeting.count = parameters_.p;
        meeting.meet = [this, panel, column = at.column] {
            Factorisation work{*this, panel, column, std::vector<std::int64_t>(parameters_.p)};
            for (std::uint32_t row = 0; row < parameters_.p; ++row) {
                work.rows[row] =
                    local_count_from(parameters_.n - panel.start, panel.start, parameters_.nb, row, parameters_.p);
            }
            work.run();
        };
    }
    co_await engine_.join(at.rank, meeting);
    panel.columns -= panel.width;
}

} // namespace lepaute::hpl
