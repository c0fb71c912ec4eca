// Folding: large allocations of all ranks share one block of physical memory, since what is in them is never computed.
// SMPI's own shared malloc does the same, but touches every page at once, which takes as long as it saves. Allocations
// come here in two ways: through SMPI's compiler wrappers, which rename malloc in C sources, and through the linker
// (--wrap), for what they do not reach (Fortran, C++, libraries).

#include "folded_memory.hpp"
#include "state.hpp"

#include <smpi/smpi.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <new>
#include <string>
#include <unordered_map>
#include <utility>

extern "C" {
void* smpi_shared_malloc_intercept(std::size_t size, const char* file, int line);
void* smpi_shared_calloc_intercept(std::size_t count, std::size_t size, const char* file, int line);
void* smpi_shared_realloc_intercept(void* data, std::size_t size, const char* file, int line);
void smpi_shared_free(void* data);
}

namespace lepaute::simblas {

namespace {

constexpr std::size_t page_bytes = 4096; // a folded allocation begins on a page

/// What the program was given -> where the memory begins.
std::unordered_map<void*, void*>& folded() {
    static std::unordered_map<void*, void*> allocations;
    return allocations;
}

bool is_folded(void* data) {
    return reinterpret_cast<std::uintptr_t>(data) % page_bytes == 0 && folded().contains(data);
}

/// Where an allocation is made: the file and line that SMPI's wrapper knows, or else the function that returns to `to`.
struct Place {
    const char* file = nullptr;
    int line = 0;
    void* to = nullptr;

    [[nodiscard]] bool is(const std::string& name) const {
        if (file != nullptr) {
            const char* slash = std::strrchr(file, '/');
            const std::string base = slash == nullptr ? file : slash + 1;
            return name == base || name == base + ':' + std::to_string(line);
        }
        Dl_info found{};
        return dladdr(to, &found) != 0 && found.dli_sname != nullptr && name == found.dli_sname;
    }
};

std::size_t place_in(long offset, std::size_t size) {
    const auto whole = static_cast<long>(size);
    return static_cast<std::size_t>(std::clamp(offset < 0 ? whole + 1 + offset : offset, 0L, whole));
}

/// What is said of the next allocation: memory wanted before its first byte, and the bytes that stay private.
struct Wish {
    std::size_t before = 0;
    std::size_t first = 0;
    std::size_t last = 0;
};

void* fold(std::size_t size, const Wish& wish) {
    State& there = state();
    const std::size_t before = (wish.before + page_bytes - 1) / page_bytes * page_bytes;
    const std::size_t whole = before + size;
    std::vector<Range> own;
    if (wish.first < wish.last) {
        own.emplace_back(before + wish.first, before + wish.last);
    }
    void* data = map_folded(whole, own);
    if (data == nullptr) {
        return nullptr;
    }
    void* given = static_cast<char*>(data) + before;
    folded().emplace(given, data);
    ++there.folded;
    there.folded_bytes += static_cast<double>(whole);
    return given;
}

/// Was it the program itself that asked SMPI for shared memory?
bool is_smpis_own(void* data) {
    std::vector<Range> own;
    std::size_t offset = 0;
    return reinterpret_cast<std::uintptr_t>(data) % page_bytes == 0 && smpi_is_shared(data, own, &offset) != 0;
}

bool is_large(std::size_t size) {
    const std::size_t least = state().request.fold_bytes;
    return least > 0 && size >= least;
}

/// Folded memory where that is wanted, else null.
void* try_to_fold(std::size_t size, const Place& place) {
    Rank* rank = is_large(size) ? current_rank() : nullptr;
    if (rank == nullptr) {
        return nullptr;
    }
    Wish wish{std::exchange(rank->memory_before, 0), std::exchange(rank->private_from, 0),
              std::exchange(rank->private_to, 0)};
    wish.last = std::min(wish.last, size);
    for (const Request::Private& kept : state().request.keep_private) {
        if (place.is(kept.where)) {
            wish = {0, place_in(kept.from, size), place_in(kept.to, size)};
        }
    }
    return wish.first == 0 && wish.last == size ? nullptr : fold(size, wish);
}

/// The program may not look at what it was given, and crash: then this is the reason (failures.py looks for it).
void* told(void* data, std::size_t size) {
    static bool once = false;
    if (data == nullptr && size > 0 && !std::exchange(once, true)) {
        std::fprintf(stderr, "simblas: an allocation of %zu bytes failed\n", size);
    }
    return data;
}

void* allocate(std::size_t size, const Place& place) {
    void* data = try_to_fold(size, place);
    return data != nullptr ? data : told(std::malloc(size), size);
}

void* allocate_zeroed(std::size_t count, std::size_t size, const Place& place) {
    std::size_t bytes = 0;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return nullptr;
    }
    void* data = try_to_fold(bytes, place);
    return data != nullptr ? data : told(std::calloc(count, size), bytes);
}

void release(void* data) {
    if (is_folded(data)) {
        const auto found = folded().find(data);
        void* base = found->second;
        folded().erase(found);
        unmap_folded(base);
    } else {
        std::free(data);
    }
}

/// The private bytes of a folded allocation, as far as they fit into `size` bytes at `to`.
void copy_private(const void* data, void* to, std::size_t size) {
    const auto [begin, memory] = folded_at(data);
    const auto* given = static_cast<const std::byte*>(data);
    const auto before = static_cast<std::size_t>(given - begin);
    for (const auto& [first, last] : memory->own) {
        const std::size_t from = first - before;
        const std::size_t until = std::min(last - before, size);
        if (from < until) {
            std::memcpy(static_cast<std::byte*>(to) + from, given + from, until - from);
        }
    }
}

void* change_size(void* data, std::size_t size, const Place& place) {
    const bool was_folded = is_folded(data);
    if (!was_folded && (data != nullptr || !is_large(size))) {
        return told(std::realloc(data, size), size); // what is private stays so: its content may matter
    }
    void* larger = allocate(size, place);
    if (larger != nullptr && was_folded) {
        copy_private(data, larger, size); // the rest means nothing
        release(data);
    }
    return larger;
}

} // namespace

} // namespace lepaute::simblas

using namespace lepaute::simblas;

/// SMPI asks this before it copies a message, and then copies only what is not shared.
int smpi_is_shared(const void* address, std::vector<std::pair<std::size_t, std::size_t>>& own, std::size_t* offset) {
    if (const auto [begin, memory] = folded_at(address); memory != nullptr) {
        own = memory->own;
        *offset = static_cast<std::size_t>(static_cast<const std::byte*>(address) - begin);
        return 1;
    }
    using Real = int (*)(const void*, std::vector<std::pair<std::size_t, std::size_t>>&, std::size_t*);
    static const auto real =
        reinterpret_cast<Real>(dlsym(RTLD_NEXT, "_Z14smpi_is_sharedPKvRSt6vectorISt4pairImmESaIS3_EEPm"));
    return real(address, own, offset);
}

extern "C" {

/// The next allocation of the calling rank that is folded keeps its bytes from `from` to `to` private, and has as much
/// as `before` bytes of folded memory in front of it.
void lepaute_fold_next(std::size_t before, std::size_t from, std::size_t to) {
    if (Rank* rank = current_rank()) {
        rank->memory_before = before;
        rank->private_from = from;
        rank->private_to = to;
    }
}

void* smpi_shared_malloc_intercept(std::size_t size, const char* file, int line) {
    return allocate(size, {file, line});
}
void* smpi_shared_calloc_intercept(std::size_t count, std::size_t size, const char* file, int line) {
    return allocate_zeroed(count, size, {file, line});
}
void* smpi_shared_realloc_intercept(void* data, std::size_t size, const char* file, int line) {
    return change_size(data, size, {file, line});
}

// NOLINTBEGIN(readability-identifier-naming): the linker's names
void* __wrap_malloc(std::size_t size) { return allocate(size, {nullptr, 0, __builtin_return_address(0)}); }
void* __wrap_calloc(std::size_t count, std::size_t size) {
    return allocate_zeroed(count, size, {nullptr, 0, __builtin_return_address(0)});
}
void* __wrap_realloc(void* data, std::size_t size) {
    return change_size(data, size, {nullptr, 0, __builtin_return_address(0)});
}
int __wrap_posix_memalign(void** data, std::size_t alignment, std::size_t size) {
    *data = alignment <= page_bytes ? try_to_fold(size, {nullptr, 0, __builtin_return_address(0)}) : nullptr;
    return *data != nullptr ? 0 : posix_memalign(data, alignment, size);
}
void* __wrap_aligned_alloc(std::size_t alignment, std::size_t size) {
    void* data = alignment <= page_bytes ? try_to_fold(size, {nullptr, 0, __builtin_return_address(0)}) : nullptr;
    return data != nullptr ? data : std::aligned_alloc(alignment, size);
}
void smpi_shared_free(void* data) {
    if (data == nullptr || is_folded(data) || !is_smpis_own(data)) {
        release(data);
    } else {
        static const auto real = reinterpret_cast<void (*)(void*)>(dlsym(RTLD_NEXT, "smpi_shared_free"));
        real(data);
    }
}
void __wrap_free(void* data) { release(data); }

// operator new and delete of C++, by the names that the linker knows
void* __wrap__Znwm(std::size_t size) {
    void* data = try_to_fold(size, {nullptr, 0, __builtin_return_address(0)});
    return data != nullptr ? data : ::operator new(size);
}
void* __wrap__Znam(std::size_t size) {
    void* data = try_to_fold(size, {nullptr, 0, __builtin_return_address(0)});
    return data != nullptr ? data : ::operator new[](size);
}
void __wrap__ZdlPv(void* data) { is_folded(data) ? release(data) : ::operator delete(data); }
void __wrap__ZdlPvm(void* data, std::size_t /*size*/) { __wrap__ZdlPv(data); }
void __wrap__ZdaPv(void* data) { is_folded(data) ? release(data) : ::operator delete[](data); }
void __wrap__ZdaPvm(void* data, std::size_t /*size*/) { __wrap__ZdaPv(data); }
// NOLINTEND(readability-identifier-naming)

} // extern "C"
