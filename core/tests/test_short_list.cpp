#include "net/short_list.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

using lepaute::net::ShortList;

namespace {

std::vector<std::uint32_t> items_of(const ShortList<3>& list) { return {list.items().begin(), list.items().end()}; }

TEST(ShortList, KeepsNumbersInOrderWhateverTheirCount) {
    ShortList<3> list;
    std::vector<std::uint32_t> expected;
    for (std::uint32_t number = 0; number < 10; ++number) {
        EXPECT_EQ(items_of(list), expected);
        list.push_back(number);
        expected.push_back(number);
    }
    EXPECT_EQ(items_of(list), expected);
}

TEST(ShortList, TheLastOneTakesThePlaceOfThatWhichGoes) {
    for (const std::size_t count : {1U, 2U, 3U, 4U, 5U}) { // in place, and on the heap
        for (std::uint32_t gone = 0; gone < count; ++gone) {
            ShortList<3> list;
            std::vector<std::uint32_t> expected;
            for (std::uint32_t number = 0; number < count; ++number) {
                list.push_back(number);
                expected.push_back(number);
            }
            list.forget(gone);
            expected[gone] = expected.back();
            expected.pop_back();
            EXPECT_EQ(items_of(list), expected);
            list.push_back(7);
            expected.push_back(7);
            EXPECT_EQ(items_of(list), expected);
        }
    }
}

} // namespace
