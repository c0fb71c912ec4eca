// Messages of datatypes with gaps: an MPI library packs them, SMPI copies them in no simulated time. What packing takes
// here is timed on the first of them, so that it can be told what is missing.

#include "gaps.hpp"

#include <algorithm>
#include <climits>
#include <vector>

namespace lepaute::simblas {

namespace {

constexpr std::uint64_t timed_messages = 200;

bool has_gaps(int count, MPI_Datatype type, int size) {
    MPI_Aint low = 0;
    MPI_Aint extent = 0;
    PMPI_Type_get_true_extent(type, &low, &extent);
    if (extent != size || count == 1) {
        return extent != size;
    }
    PMPI_Type_get_extent(type, &low, &extent);
    return extent != size;
}

} // namespace

void note_gaps(const void* buffer, int count, MPI_Datatype type, MPI_Comm comm) {
    State& there = state();
    int size = 0;
    PMPI_Type_size(type, &size);
    const double bytes = static_cast<double>(size) * count;
    if (!there.request.measures || bytes <= 0.0 || bytes > INT_MAX || !has_gaps(count, type, size)) {
        return;
    }
    Gapped& gapped = there.gapped;
    ++gapped.messages;
    gapped.bytes += bytes;
    if (gapped.messages > timed_messages) {
        return;
    }
    static std::vector<char> packed;
    packed.resize(std::max(packed.size(), static_cast<std::size_t>(bytes)));
    int position = 0;
    const double before_s = cpu_s();
    PMPI_Pack(buffer, count, type, packed.data(), static_cast<int>(bytes), &position, comm);
    gapped.timed_s += cpu_s() - before_s;
    gapped.timed_bytes += bytes;
}

} // namespace lepaute::simblas
