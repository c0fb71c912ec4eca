#pragma once
// Folded memory: as much address space as is asked for, on one block of physical memory that all of it shares. What is
// written anywhere turns up everywhere, which does no harm to numbers that mean nothing.

#include <cstddef>
#include <utility>
#include <vector>

namespace lepaute::simblas {

/// Bytes from `first` to `last` of an allocation.
using Range = std::pair<std::size_t, std::size_t>;

/// Sets the size of the block; huge: on huge pages where the system has some. To be called once, first.
void set_folding_block(std::size_t bytes, bool huge);

/// Memory of `size` bytes, on a page of its own, of which those in `own` (in order, apart) are not shared. Null where
/// there is none, with errno.
void* map_folded(std::size_t size, const std::vector<Range>& own);

/// Gives back what map_folded() gave.
void unmap_folded(void* data);

/// An allocation of folded memory.
struct Folded {
    std::size_t size = 0;
    std::vector<Range> own;
};

/// The allocation that holds `address`, and where it begins; null where none does.
std::pair<const std::byte*, const Folded*> folded_at(const void* address);

} // namespace lepaute::simblas
