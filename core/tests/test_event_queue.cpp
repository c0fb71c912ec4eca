#include "net/event_queue.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <queue>
#include <random>
#include <utility>
#include <vector>

using lepaute::net::EventQueue;

TEST(EventQueue, IsEmptyAtFirst) {
    for (const std::uint32_t sources : {0U, 1U, 2U, 3U, 8U, 1000U}) {
        EXPECT_EQ(EventQueue(sources).next_date_s(), EventQueue::never);
    }
}

TEST(EventQueue, GivesTheEarliestDateAndOfEqualOnesTheLowestSource) {
    for (const std::uint32_t sources : {1U, 2U, 3U, 5U, 8U, 13U}) {
        EventQueue queue(sources);
        for (std::uint32_t source = sources; source-- > 0;) { // the last to be set is the lowest
            queue.set(source, 2.0);
        }
        EXPECT_EQ(queue.next_source(), 0U);
        queue.set(sources - 1, 1.0);
        EXPECT_EQ(queue.next_source(), sources - 1);
        EXPECT_EQ(queue.next_date_s(), 1.0);
        for (std::uint32_t source = 0; source < sources; ++source) { // the first to be set is the lowest
            queue.set(source, 0.0);
        }
        for (std::uint32_t source = 0; source < sources; ++source) {
            EXPECT_EQ(queue.next_source(), source);
            queue.set(source, EventQueue::never);
            EXPECT_EQ(queue.date_s(source), EventQueue::never);
        }
        EXPECT_EQ(queue.next_date_s(), EventQueue::never);
    }
}

// Dates drawn from few values, so that many are equal or differ in their last bits; one in four changes takes the event
// away.
TEST(EventQueue, AgreesWithAHeapOnRandomSequences) {
    std::mt19937_64 random(1);
    for (const std::uint32_t sources : {1U, 2U, 7U, 32U, 100U}) {
        EventQueue queue(sources);
        std::vector<double> date_s(sources, EventQueue::never);
        using Entry = std::pair<double, std::uint32_t>;
        std::priority_queue<Entry, std::vector<Entry>, std::greater<>> heap;
        for (int change = 0; change < 5000; ++change) {
            const auto source = static_cast<std::uint32_t>(random() % sources);
            const double later = random() % 2 == 0 ? 0.1 : std::numeric_limits<double>::epsilon();
            date_s[source] = random() % 4 == 0 ? EventQueue::never : 1.0 + later * static_cast<double>(random() % 20);
            queue.set(source, date_s[source]);
            heap.emplace(date_s[source], source);
            while (date_s[heap.top().second] != heap.top().first) { // overtaken by a later change
                heap.pop();
            }
            ASSERT_EQ(queue.date_s(source), date_s[source]);
            ASSERT_EQ(queue.next_date_s(), heap.top().first);
            if (heap.top().first != EventQueue::never) {
                ASSERT_EQ(queue.next_source(), heap.top().second);
            }
            double second_s = EventQueue::never;
            for (std::uint32_t other = 0; other < sources; ++other) {
                second_s = other == queue.next_source() ? second_s : std::min(second_s, date_s[other]);
            }
            ASSERT_EQ(queue.next_date_without_s(queue.next_source()), second_s);
            ASSERT_EQ(queue.next_date_without_s(source), source == queue.next_source() ? second_s : heap.top().first);
            if (second_s != EventQueue::never) {
                ASSERT_EQ(queue.date_s(queue.source_after_next()), second_s);
            }
        }
    }
}
