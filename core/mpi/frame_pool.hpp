#pragma once
// Memory of coroutine frames: a simulation makes and ends millions of them, of a few sizes, on one thread.

#include <array>
#include <cstddef>
#include <new>

namespace lepaute::mpi {

/// Free lists of blocks by size, one pool a thread. What is freed is kept for the next frame of that size.
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
        for (Block*& list : free_) {
            while (list != nullptr) {
                Block* next = list->next;
                ::operator delete(list);
                list = next;
            }
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
        return ::operator new((which + 1) * granule);
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
    static constexpr std::size_t granule = 64;
    static constexpr std::size_t size_class(std::size_t bytes) noexcept { return (bytes - 1) / granule; }
    std::array<Block*, 32> free_{};
    std::size_t live_bytes_ = 0;
    std::size_t peak_bytes_ = 0;
};

} // namespace lepaute::mpi
