#include "folded_memory.hpp"

#include <cstdint>
#include <map>
#include <sys/mman.h>
#include <unistd.h>

namespace lepaute::simblas {

namespace {

struct Block {
    std::size_t bytes = 0;
    int file = -1;
    bool huge = false;
};

Block& block() {
    static Block the_one;
    return the_one;
}

/// Allocations by the address where they begin.
std::map<const std::byte*, Folded>& allocations() {
    static std::map<const std::byte*, Folded> all;
    return all;
}

constexpr std::size_t small_page_bytes = 4096;

std::size_t page_bytes() { return block().huge ? std::size_t{2} << 20U : small_page_bytes; }

std::size_t rounded_up(std::size_t size) { return (size + page_bytes() - 1) / page_bytes() * page_bytes(); }

/// A file of memory that is nowhere but in this process.
bool open_block() {
    if (block().file < 0) {
        block().file = memfd_create("lepaute-folded", MFD_CLOEXEC | (block().huge ? MFD_HUGETLB : 0U));
        if (block().file < 0 && block().huge) {
            block().huge = false;
            block().file = memfd_create("lepaute-folded", MFD_CLOEXEC);
        }
        if (block().file >= 0 && ftruncate(block().file, static_cast<off_t>(rounded_up(block().bytes))) != 0) {
            close(block().file);
            block().file = -1;
        }
    }
    return block().file >= 0;
}

/// Puts the block over the addresses from `first` to `last`, as often as it takes; both on pages.
bool overlay(std::byte* data, std::size_t first, std::size_t last) {
    const std::size_t step = rounded_up(block().bytes);
    for (std::size_t at = first; at < last; at += step) {
        const std::size_t length = at + step < last ? step : last - at;
        if (mmap(data + at, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, block().file, 0) ==
            MAP_FAILED) {
            return false;
        }
    }
    return true;
}

/// Address space of `size` bytes whose begin suits the pages of the block.
std::byte* reserve(std::size_t size) {
    const std::size_t more = block().huge ? page_bytes() : 0;
    void* data = mmap(nullptr, size + more, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) {
        return nullptr;
    }
    auto* begin = static_cast<std::byte*>(data);
    const std::size_t off = reinterpret_cast<std::uintptr_t>(begin) % page_bytes();
    const std::size_t skipped = off == 0 ? 0 : page_bytes() - off;
    if (skipped > 0) {
        munmap(begin, skipped);
    }
    if (more > skipped) {
        munmap(begin + skipped + size, more - skipped);
    }
    return begin + skipped;
}

} // namespace

void set_folding_block(std::size_t bytes, bool huge) { block() = {bytes, -1, huge}; }

void* map_folded(std::size_t size, const std::vector<Range>& own) {
    if (!open_block()) {
        return nullptr;
    }
    const std::size_t whole = rounded_up(size);
    std::byte* data = reserve(whole);
    if (data == nullptr) {
        return nullptr;
    }
    std::size_t shared_from = 0;
    bool mapped = true;
    for (const auto& [first, last] : own) {
        const std::size_t until = first / page_bytes() * page_bytes();
        mapped = mapped && (until <= shared_from || overlay(data, shared_from, until));
        shared_from = rounded_up(last);
    }
    mapped = mapped && (whole <= shared_from || overlay(data, shared_from, whole));
    if (!mapped) {
        munmap(data, whole);
        return nullptr;
    }
    allocations().emplace(data, Folded{whole, own});
    return data;
}

void unmap_folded(void* data) {
    const auto found = allocations().find(static_cast<std::byte*>(data));
    if (found != allocations().end()) {
        munmap(data, found->second.size);
        allocations().erase(found);
    }
}

std::pair<const std::byte*, const Folded*> folded_at(const void* address) {
    const auto* at = static_cast<const std::byte*>(address);
    auto after = allocations().upper_bound(at);
    if (after == allocations().begin()) {
        return {nullptr, nullptr};
    }
    --after;
    const auto& [begin, folded] = *after;
    return at < begin + folded.size ? std::pair{begin, &folded} : std::pair<const std::byte*, const Folded*>{};
}

} // namespace lepaute::simblas
