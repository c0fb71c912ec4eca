#pragma once
// Memory of coroutine frames: a simulation makes and ends millions of them, of a few sizes, on one thread.

#include "net/large_pages.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <new>
#include <vector>

namespace lepaute::mpi {

/// Free lists of blocks by size, one pool a thread. What is freed is kept for the next frame of that size. Blocks are
/// cut from slabs, each twice as long as the one before up to the size of some large pages.
class FramePool {
public:
    static FramePool& of_this_thread() noexcept {
        static thread_local FramePool pool;
        return pool;
    }
    FramePool() = default;
    FramePool(const FramePool&) = delete;
    FramePool& operator=(const FramePool&) = delete;
    ~FramePool() {
        for (const Slab& slab : slabs_) {
            net::release_pages(slab.memory, slab.bytes);
        }
    }

    void* allocate(std::size_t bytes) {
        const std::size_t which = size_class(bytes);
        if (which >= free_.size()) {
            return ::operator new(bytes);
        }
        live_bytes_ += (which + 1) * granule;
        if (live_bytes_ > peak_bytes_) {
            peak_bytes_ = live_bytes_;
        }
        if (Block* block = free_[which]; block != nullptr) {
            free_[which] = block->next;
            return block;
        }
        return cut((which + 1) * granule);
    }
    void release(void* memory, std::size_t bytes) noexcept {
        const std::size_t which = size_class(bytes);
        if (which >= free_.size()) {
            ::operator delete(memory);
            return;
        }
        live_bytes_ -= (which + 1) * granule;
        auto* block = static_cast<Block*>(memory);
        block->next = free_[which];
        free_[which] = block;
    }
    /// The most bytes that lived at once since the last reset.
    [[nodiscard]] std::size_t peak_bytes() const noexcept { return peak_bytes_; }
    void reset_peak() noexcept { peak_bytes_ = live_bytes_; }

private:
    struct Block {
        Block* next;
    };
    struct Slab {
        std::byte* memory;
        std::size_t bytes;
    };
    static constexpr std::size_t granule = 64;
    static constexpr std::size_t first_slab_bytes = std::size_t{1} << 16U;
    static constexpr std::size_t longest_slab_bytes = 2 * net::large_page_bytes;
    static constexpr std::size_t size_class(std::size_t bytes) noexcept { return (bytes - 1) / granule; }
    /// Of the last slab, or of a new one; what is left of the old one is lost.
    void* cut(std::size_t bytes) {
        if (slabs_.empty() || slabs_.back().bytes - cut_bytes_ < bytes) {
            const std::size_t next =
                slabs_.empty() ? first_slab_bytes : std::min(longest_slab_bytes, 2 * slabs_.back().bytes);
            slabs_.reserve(slabs_.size() + 1);
            slabs_.push_back({static_cast<std::byte*>(net::allocate_pages(next)), next});
            cut_bytes_ = 0;
        }
        std::byte* const memory = slabs_.back().memory + cut_bytes_;
        cut_bytes_ += bytes;
        return memory;
    }
    std::array<Block*, 32> free_{};
    std::vector<Slab> slabs_;
    std::size_t cut_bytes_ = 0; // of the last slab
    std::size_t live_bytes_ = 0;
    std::size_t peak_bytes_ = 0;
};

} // namespace lepaute::mpi
