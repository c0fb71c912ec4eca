#include "progress.hpp"

#include "announce.hpp"

#include <algorithm>
#include <dlfcn.h>
#include <unordered_set>
#include <vector>

namespace lepaute::simblas {

namespace {

std::unordered_set<MPI_Request>& ours() {
    static std::unordered_set<MPI_Request> requests;
    return requests;
}

} // namespace

void start_receives(Rank& rank, bool has_computed, bool waits) {
    if (rank.put_off.empty() || (!has_computed && !waits)) {
        return;
    }
    State& there = state();
    static const auto start = reinterpret_cast<decltype(&MPI_Start)>(dlsym(RTLD_NEXT, "MPI_Start"));
    const std::vector<Rank::PutOff> receives = std::move(rank.put_off);
    rank.put_off.clear();
    for (const Rank::PutOff& receive : receives) {
        MPI_Request request = receive.request;
        start(&request);
        if (has_computed && receive.bytes > 0.0) {
            ++there.put_off;
            there.put_off_low_bytes = std::min(there.put_off_low_bytes, receive.bytes);
            there.put_off_high_bytes = std::max(there.put_off_high_bytes, receive.bytes);
        }
    }
}

bool puts_off_receive(Rank& rank, void* buffer, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                      MPI_Request* request) {
    if (!state().request.puts_off || from == MPI_PROC_NULL || count <= 0 || comm == MPI_COMM_NULL) {
        return false;
    }
    int size = 0;
    PMPI_Type_size(type, &size);
    const double bytes = static_cast<double>(size) * count;
    const models::Segment* segment = segment_of(bytes, from == MPI_ANY_SOURCE ? -1 : world_rank(from, comm), rank);
    const bool is_large = segment != nullptr && segment->protocol == models::Protocol::rendezvous;
    if (!is_large && rank.put_off.empty()) { // behind one that is put off, none may overtake it
        return false;
    }
    static const auto prepare = reinterpret_cast<decltype(&MPI_Recv_init)>(dlsym(RTLD_NEXT, "MPI_Recv_init"));
    if (prepare(buffer, count, type, from, tag, comm, request) != MPI_SUCCESS) {
        return false;
    }
    ours().insert(*request);
    rank.put_off.push_back({*request, is_large ? bytes : 0.0});
    return true;
}

void forget_receive(MPI_Request& request) {
    if (request != MPI_REQUEST_NULL && ours().erase(request) > 0) {
        static const auto free = reinterpret_cast<decltype(&MPI_Request_free)>(dlsym(RTLD_NEXT, "MPI_Request_free"));
        free(&request);
        request = MPI_REQUEST_NULL;
    }
}

void disown_receive(MPI_Request request) { ours().erase(request); }

} // namespace lepaute::simblas
