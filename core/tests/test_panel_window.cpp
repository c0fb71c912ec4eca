#include "apps/hpl/panel_window.hpp"

#include <gtest/gtest.h>

namespace {

using lepaute::hpl::PanelWindow;

struct Made {
    std::int64_t step = -1;
};

/// Asks for a panel as ranks do: makes what is not there.
int made(PanelWindow<Made>& window, std::int64_t step) {
    Made& value = window.at(step);
    if (value.step != step) {
        value.step = step;
        return 1;
    }
    return 0;
}

TEST(PanelWindow, MakesEachPanelOnceWhileRanksAreNear) {
    PanelWindow<Made> window;
    int count = 0;
    for (std::int64_t step = 0; step < 1000; ++step) {
        count += made(window, step) + (step > 0 ? made(window, step - 1) : 0);
    }
    EXPECT_EQ(count, 1000);
    EXPECT_EQ(window.size(), PanelWindow<Made>::least);
}

TEST(PanelWindow, GrowsForRanksThatLagAndKeepsWhatItHas) {
    PanelWindow<Made> window;
    constexpr std::int64_t lag = 300;
    int count = 0;
    for (std::int64_t step = 0; step < 3000; ++step) {
        count += made(window, step) + (step >= lag ? made(window, step - lag) : 0);
    }
    EXPECT_EQ(window.size(), 512U);
    // Those that had gone before it grew, from 64 to 512 panels, are made once more.
    EXPECT_LE(count, 3000 + 3 + static_cast<int>(lag));
}

TEST(PanelWindow, DoesNotGrowForEver) {
    PanelWindow<Made> window;
    made(window, 1 << 20);
    made(window, 0);
    EXPECT_EQ(window.size(), PanelWindow<Made>::most);
}

} // namespace
