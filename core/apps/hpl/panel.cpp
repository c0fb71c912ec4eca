// Panel factorisation (HPL_pdfact): the last rank of the process column to come goes through the columns of the panel
// for all, in the order of PFACT and RFACT.

#include "apps/hpl/process_column.hpp"

namespace lepaute::hpl {

using mpi::Task;

struct Program::Factorisation : Program::ProcessColumn {
    using ProcessColumn::ProcessColumn;

    /// Rows below the current one.
    [[nodiscard]] static std::int64_t below(const Process& process, std::uint32_t distance) noexcept {
        return process.rows - (owner(distance) ? 1 : 0);
    }
    void on_column_below(Kernel kernel) {
        on_all(kernel, [](const Process& process, std::uint32_t distance) { return length(below(process, distance)); });
    }
    void on_matrix_below(Kernel kernel, std::int64_t columns) {
        on_all(kernel, [columns](const Process& process, std::uint32_t distance) {
            return matrix(below(process, distance), columns);
        });
    }
    /// The owner's part of a row, `n` long.
    void copy_row(std::int64_t n) { on_owner(Kernel::dcopy, length(n, processes.front().leading_dimension)); }

    /// A leaf of `n` columns; the algorithm is PFACT.
    Task leaf(std::int64_t n) {
        on_all(Kernel::idamax, [](const Process& process, std::uint32_t) { return length(process.rows); });
        for (std::int64_t done = 0; done < n; ++done) {
            if (any_crosses) {
                program.column_begins_s_[column] = latest_s();
            }
            co_await pivot();
            --program.columns_to_factor_[column];
            leaf_column(done, n - 1 - done);
            --processes.front().rows;
        }
    }

    /// One column, `done` columns of the leaf to its left and `right` to its right.
    void leaf_column(std::int64_t done, std::int64_t right) {
        switch (program.parameters_.pfact) {
        case hpl::Factorisation::left:
            if (right > 0) {
                on_all(Kernel::dtrsv, [done](const Process&, std::uint32_t) { return length(done + 1); });
            }
            on_column_below(Kernel::dscal);
            if (right > 0) {
                on_matrix_below(Kernel::dgemv, done + 1);
                on_column_below(Kernel::idamax);
                if (transposed()) { // along a row of L1; else the copy is along a column
                    on_owner(Kernel::dcopy, length(done + 1, panel.width));
                }
            }
            break;
        case hpl::Factorisation::crout:
            if (done > 0 && right > 0) {
                on_all(Kernel::dgemv, [done, right](const Process&, std::uint32_t) { return matrix(right, done); });
                copy_row(right);
            }
            on_column_below(Kernel::dscal);
            if (right > 0) {
                on_matrix_below(Kernel::dgemv, done + 1);
                on_column_below(Kernel::idamax);
            }
            break;
        case hpl::Factorisation::right:
            on_column_below(Kernel::dscal);
            if (right > 0) {
                on_column_below(Kernel::daxpy);
                on_column_below(Kernel::idamax);
            }
            if (right > 1) {
                on_matrix_below(Kernel::dger, right - 1);
            }
            break;
        }
    }

    /// `n` columns from column `offset` of the panel; the algorithm is RFACT.
    Task recurse(std::int64_t n, std::int64_t offset) {
        const std::int64_t nbmin = program.parameters_.nbmin;
        const std::int64_t ndiv = program.parameters_.ndiv;
        if (n <= nbmin) {
            co_await leaf(n);
            co_return;
        }
        const std::int64_t block = (((n + nbmin - 1) / nbmin + ndiv - 1) / ndiv) * nbmin;
        for (std::int64_t done = 0; done < n; done += block) {
            const std::int64_t width = std::min(block, n - done);
            const std::int64_t right = n - done - width;
            before_block(done, width);
            co_await recurse(width, offset + done);
            after_block(done, width, right, offset + done);
        }
    }

    [[nodiscard]] bool transposed() const noexcept { return program.parameters_.l1 == Form::transposed; }
    /// With L1 not transposed, the triangle stands on the left, and no factor is transposed.
    [[nodiscard]] Kernel product() const noexcept { return transposed() ? Kernel::dgemm : Kernel::dgemm_nn; }
    void triangle(std::int64_t columns, std::int64_t order) {
        const models::Size size = transposed() ? matrix(columns, order, order) : matrix(order, columns, order);
        on_all(transposed() ? Kernel::dtrsm : Kernel::dtrsm_left, [=](const Process&, std::uint32_t) { return size; });
    }

    void before_block(std::int64_t done, std::int64_t width) {
        const hpl::Factorisation rfact = program.parameters_.rfact;
        if (rfact == hpl::Factorisation::right || done == 0) {
            return;
        }
        if (rfact == hpl::Factorisation::left) {
            triangle(width, done);
        }
        on_all(product(), [=](const Process& process, std::uint32_t) { return matrix(process.rows, width, done); });
    }

    void after_block(std::int64_t done, std::int64_t width, std::int64_t right, std::int64_t offset) {
        const hpl::Factorisation rfact = program.parameters_.rfact;
        if (right > 0 && rfact == hpl::Factorisation::crout && done > 0) {
            const models::Size size = transposed() ? matrix(right, width, done) : matrix(width, right, done);
            on_all(Kernel::dgemm_nn, [=](const Process&, std::uint32_t) { return size; });
        }
        if (right > 0 && rfact != hpl::Factorisation::left) {
            triangle(right, width);
        }
        if (right > 0 && rfact == hpl::Factorisation::right) {
            on_all(product(),
                   [=](const Process& process, std::uint32_t) { return matrix(process.rows, right, width); });
        }
        if (offset > 0) {
            on_owner(transposed() ? Kernel::dlatcpy : Kernel::dlacpy,
                     matrix(offset, width, transposed() ? processes.front().matrix_rows : 0));
        }
    }

    Task run() {
        on_all(Kernel::pdfact_glue,
               [&](const Process& process, std::uint32_t) { return matrix(process.rows, panel.width); });
        co_await recurse(panel.width, 0);
        for (const Process& process : processes) {
            program.engine_.set_clock(process.rank, process.clock_s, process.shares_s);
        }
    }
};

Task Program::factor(Place at, Panel& panel) {
    if (at.column != panel.owner_column || panel.width <= 0) {
        co_return;
    }
    const Staged staged(engine_, at.rank, panel.step, Stage::pdfact,
                        {static_cast<double>(panel.rows), static_cast<double>(panel.width), 0.0});
    mpi::Meeting& meeting = meetings_[at.column];
    meeting.count = parameters_.p;
    if (co_await engine_.join(at.rank, meeting)) { // the last to come
        columns_to_factor_[at.column] = panel.width;
        Factorisation work(*this, panel, at.column, at.rank);
        co_await work.run();
        note_factored(panel, at.column);
        engine_.release(at.rank, meeting);
    }
    panel.columns -= panel.width;
}

} // namespace lepaute::hpl
