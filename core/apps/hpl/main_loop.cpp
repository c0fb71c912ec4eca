// The main loop of a rank, over the panels.

#include "apps/hpl/update.hpp"

namespace lepaute::hpl {

mpi::Task Program::without_lookahead(Place at) {
    for (std::size_t index = 0; index < sample_.steps.size(); ++index) {
        if (leaps_to(index) && co_await engine_.join(at.rank, before_leap_)) {
            leap(at.rank, index);
        }
        Panel panel = new_panel(at, sample_.steps[index] * parameters_.nb);
        begin_step(at, index, panel.step);
        co_await factor(at, panel);
        begin_broadcast(at, panel);
        co_await engine_.steps<PanelBroadcast>(at.rank, *this, at, panel);
        co_await engine_.steps<Update>(at.rank, *this, at, panel, -1, nullptr);
    }
}

mpi::Task Program::with_lookahead(Place at) {
    const std::int64_t n = parameters_.n;
    const std::int64_t nb = parameters_.nb;
    const std::int64_t q = parameters_.q;
    const auto depth = static_cast<std::int64_t>(parameters_.depth);
    std::vector<Panel> panels; // the `depth` oldest first, the current one last
    const std::int64_t lookahead_end = std::min(depth * nb, n);
    for (std::int64_t k = 0; k < depth; ++k) { // beyond the matrix they are empty, and broadcast all the same
        panels.push_back(new_panel(at, std::min(k * nb, n)));
        panels.back().step = k;
    }
    for (std::size_t k = 0; k < panels.size(); ++k) {
        begin_step(at, k, panels[k].step);
        co_await factor(at, panels[k]);
        begin_broadcast(at, panels[k]);
        co_await engine_.steps<PanelBroadcast>(at.rank, *this, at, panels[k]);
        if (k + 1 < panels.size()) { // the columns of the panels in front of me
            const std::int64_t after = panels[k].start + panels[k].width;
            const std::int64_t width = local_count_from(lookahead_end - after, after, nb, at.column, q);
            co_await engine_.steps<Update>(at.rank, *this, at, panels[k], width, nullptr);
        }
    }
    for (auto index = static_cast<std::size_t>(depth); index < sample_.steps.size(); ++index) {
        const bool leaps = leaps_to(index);
        if (leaps && co_await engine_.join(at.rank, before_leap_)) {
            leap(at.rank, index);
        }
        const std::int64_t start = sample_.steps[index] * nb;
        if (leaps) { // the panels are now those of the steps before, ready for the columns from `start` on
            for (std::int64_t k = 0; k < depth; ++k) {
                panels[static_cast<std::size_t>(k)] = new_panel(at, start - (depth - k) * nb);
                panels[static_cast<std::size_t>(k)].columns = shape_at(start).columns[at.column];
            }
        }
        panels.push_back(new_panel(at, start));
        Panel& current = panels.back();
        begin_step(at, index, current.step);
        const std::int64_t columns = current.columns; // from its own on
        std::int64_t own = 0;
        if (at.column == current.owner_column) {
            own = current.width;
            for (std::size_t k = 0; k + 1 < panels.size(); ++k) {
                co_await engine_.steps<Update>(at.rank, *this, at, panels[k], own, nullptr);
            }
            co_await factor(at, current);
        }
        begin_broadcast(at, current);
        co_await engine_.steps<Update>(at.rank, *this, at, panels.front(), columns - own, &current);
        panels.erase(panels.begin());
    }
    for (Panel& panel : panels) { // the right-hand side
        const std::int64_t width = local_count_from(1, n, nb, at.column, q);
        co_await engine_.steps<Update>(at.rank, *this, at, panel, width, nullptr);
    }
}

} // namespace lepaute::hpl
