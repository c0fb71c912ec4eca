#include "mpi/frame_pool.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

using lepaute::mpi::FramePool;

TEST(FramePool, GivesAFreedBlockToTheNextOfItsSize) {
    FramePool pool;
    void* first = pool.allocate(100);
    pool.release(first, 100);
    EXPECT_EQ(pool.allocate(128), first); // 65 .. 128 bytes are one size
    void* other = pool.allocate(100);     // the first is in use
    EXPECT_NE(other, first);
    void* longer = pool.allocate(129);
    pool.release(longer, 129);
    void* shorter = pool.allocate(128);
    EXPECT_NE(shorter, longer);
    pool.release(shorter, 128);
    pool.release(first, 128);
    pool.release(other, 100);
}

TEST(FramePool, CountsTheMostBytesThatLivedAtOnce) {
    FramePool pool;
    void* a = pool.allocate(64);
    void* b = pool.allocate(65);
    EXPECT_EQ(pool.peak_bytes(), 64U + 128U);
    pool.release(a, 64);
    a = pool.allocate(1);
    EXPECT_EQ(pool.peak_bytes(), 64U + 128U);
    pool.release(b, 65);
    pool.reset_peak();
    EXPECT_EQ(pool.peak_bytes(), 64U);
    pool.release(a, 1);
}

// Sizes beyond the largest list as well; each block is filled to its end and read again when it is given back.
TEST(FramePool, BlocksInUseNeverOverlap) {
    struct Block {
        unsigned char* memory;
        std::size_t bytes;
        unsigned char mark;
    };
    FramePool pool;
    std::mt19937_64 random(2);
    std::vector<Block> live;
    const auto give_back = [&](std::size_t which) {
        const Block block = live[which];
        for (std::size_t i = 0; i < block.bytes; ++i) {
            ASSERT_EQ(block.memory[i], block.mark);
        }
        pool.release(block.memory, block.bytes);
        live[which] = live.back();
        live.pop_back();
    };
    for (int change = 0; change < 3000; ++change) {
        if (!live.empty() && (random() % 5 < 2 || live.size() > 200)) {
            give_back(random() % live.size());
            continue;
        }
        const std::size_t bytes = 1 + random() % 2500;
        const Block block{static_cast<unsigned char*>(pool.allocate(bytes)), bytes,
                          static_cast<unsigned char>(random() % 256)};
        std::memset(block.memory, block.mark, bytes);
        live.push_back(block);
    }
    while (!live.empty()) {
        give_back(live.size() - 1);
    }
}

// More than the longest slab, in blocks that do not fill a slab evenly.
TEST(FramePool, HasRoomForManyBlocks) {
    FramePool pool;
    std::vector<unsigned char*> blocks;
    constexpr std::size_t bytes = 7 * 64;
    for (std::size_t i = 0; i < 30'000; ++i) {
        blocks.push_back(static_cast<unsigned char*>(pool.allocate(bytes)));
        std::memset(blocks.back(), static_cast<int>(i % 256), bytes);
    }
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        ASSERT_EQ(blocks[i][0], i % 256);
        ASSERT_EQ(blocks[i][bytes - 1], i % 256);
        pool.release(blocks[i], bytes);
    }
    EXPECT_EQ(pool.peak_bytes(), blocks.size() * bytes);
}
