// MPI_Iprobe in a loop. Under SMPI each turn is an event, thousands of them for one late message. A rank that has
// probed in vain many times in a row sleeps here until a message that it looks for is announced, and wakes up on the
// very date at which one of its turns would have begun: what the program sees is the same, unless it would have given
// up. So a program that probes a given number of times and then goes on must not be put to sleep: a few probes say
// nothing, and where simblas knows the program (HPL's row swaps), it says by lepaute_patience() what they mean.

#include "announce.hpp"
#include "computing.hpp"
#include "gaps.hpp"
#include "progress.hpp"
#include "state.hpp"

#include <algorithm>
#include <cmath>
#include <dlfcn.h>
#include <numeric>
#include <unordered_map>

namespace lepaute::simblas {

namespace {

constexpr double margin_s = 1e-9;
constexpr double least_turn_s = 1e-6; // measured between two probes; below, the loop does nothing else

struct Probing {
    bool may_sleep = true; // until a send whose receiver is not known
    std::vector<Rank*> sleepers;
    std::unordered_map<MPI_Comm, std::vector<int>> world_ranks; // of each communicator's ranks; empty: not known
};

Probing& probing() {
    static Probing the_one;
    return the_one;
}

/// A message of `size` is posted this long after its send began. SMPI charges a rendezvous for nothing but MPI_Isend.
double overhead_s(Sending how, double size, const models::Segment& segment) {
    if (how == Sending::nonblocking) {
        return segment.isend.of(size);
    }
    const bool free = how == Sending::blocking && segment.protocol == models::Protocol::rendezvous;
    return free ? 0.0 : segment.send.of(size);
}

void wake(Rank& rank) {
    std::erase(probing().sleepers, &rank);
    rank.polling.asleep = false;
    rank.polling.wake->release();
}

/// Sleeps until a message is announced, and on to the end of the turn that is then under way. Whether that turn finds
/// the message: a further probe would cost a further turn.
bool sleep_until_announced(Rank& rank, int source, int tag, MPI_Comm comm) {
    Polling& polling = rank.polling;
    if (!polling.wake) {
        polling.wake = simgrid::s4u::Semaphore::create(0);
    }
    polling.asleep = true;
    polling.source = source;
    polling.tag = tag;
    polling.comm = comm;
    polling.seen_s = HUGE_VAL;
    const double from_s = simgrid::s4u::Engine::get_clock();
    probing().sleepers.push_back(&rank);
    polling.wake->acquire();
    const double turn_s = state().machine.network.iprobe_s;
    double to_s = simgrid::s4u::Engine::get_clock();
    if (polling.seen_s != HUGE_VAL) {
        to_s = std::max(to_s, polling.seen_s);
    }
    if (turn_s > 0.0) {
        simgrid::s4u::this_actor::sleep_until(from_s + std::ceil((to_s - from_s) / turn_s) * turn_s);
    }
    return polling.seen_s <= simgrid::s4u::Engine::get_clock();
}

/// Is a message like that still on its way? SMPI shows an eager one to a probe as soon as it is sent. One that has
/// come, while another of its source and tag is on its way, is found with that.
bool is_coming(Polling& polling, int source, int tag) {
    const double now_s = simgrid::s4u::Engine::get_clock();
    std::erase_if(polling.coming, [now_s](const Polling::Coming& each) { return each.arrival_s <= now_s; });
    return std::ranges::any_of(polling.coming,
                               [=](const Polling::Coming& each) { return each.source == source && each.tag == tag; });
}

} // namespace

const models::Segment* segment_of(double size, int from, const Rank& to) {
    const State& there = state();
    const std::uint32_t cores = there.machine.cores_per_node;
    const auto& placed = there.request.core_of_rank;
    const bool inside = from >= 0 && placed[static_cast<std::size_t>(from)] / cores == placed[to.number] / cores;
    const models::NetworkClass& links = inside ? there.machine.network.loopback : there.machine.network.remote;
    return links.segments.empty() ? nullptr : &links.at(size);
}

int world_rank(int rank, MPI_Comm comm) {
    if (comm == MPI_COMM_WORLD) {
        return rank;
    }
    auto& known = probing().world_ranks;
    auto found = known.find(comm);
    if (found == known.end()) {
        std::vector<int> numbers;
        int is_inter = 0;
        PMPI_Comm_test_inter(comm, &is_inter);
        if (is_inter == 0) {
            int size = 0;
            PMPI_Comm_size(comm, &size);
            MPI_Group group = MPI_GROUP_NULL;
            MPI_Group world = MPI_GROUP_NULL;
            PMPI_Comm_group(comm, &group);
            PMPI_Comm_group(MPI_COMM_WORLD, &world);
            std::vector<int> own(static_cast<std::size_t>(size));
            std::iota(own.begin(), own.end(), 0);
            numbers.resize(own.size());
            PMPI_Group_translate_ranks(group, size, own.data(), world, numbers.data());
            PMPI_Group_free(&group);
            PMPI_Group_free(&world);
        }
        found = known.emplace(comm, std::move(numbers)).first;
    }
    const auto& numbers = found->second;
    return rank >= 0 && static_cast<std::size_t>(rank) < numbers.size() ? numbers[static_cast<std::size_t>(rank)] : -1;
}

void announce(const void* caller, Sending how, const void* buffer, int count, MPI_Datatype type, int to, int tag,
              MPI_Comm comm) {
    Rank* rank = current_rank();
    if (rank == nullptr) {
        return;
    }
    rank->polling.failures = 0;
    pass(*rank, caller);
    start_receives(*rank, false, how != Sending::nonblocking);
    if (to == MPI_PROC_NULL) {
        return;
    }
    State& there = state();
    ++there.messages;
    note_gaps(buffer, count, type, comm);
    const int receiver = world_rank(to, comm);
    if (receiver < 0 || static_cast<std::size_t>(receiver) >= there.ranks.size()) {
        announce_anything(caller);
        return;
    }
    int size = 0;
    PMPI_Type_size(type, &size);
    Rank& waiting = there.ranks[static_cast<std::size_t>(receiver)];
    Polling& polling = waiting.polling;
    const double bytes = static_cast<double>(size) * count;
    const int sender = static_cast<int>(rank->number);
    double seen_s = simgrid::s4u::Engine::get_clock();
    if (const models::Segment* segment = segment_of(bytes, sender, waiting)) {
        seen_s += overhead_s(how, bytes, *segment);
        if (segment->protocol == models::Protocol::eager && how != Sending::synchronous) {
            seen_s += segment->latency_s + bytes / segment->bandwidth_Bps; // when nothing slows it
            polling.coming.push_back({sender, tag, seen_s});
        }
    }
    polling.until_s = std::max(polling.until_s, seen_s + margin_s);
    const bool from_here = polling.source == MPI_ANY_SOURCE || polling.source == sender;
    if (polling.asleep && from_here && (polling.tag == MPI_ANY_TAG || polling.tag == tag)) {
        if (comm == polling.comm) {
            polling.seen_s = seen_s;
            polling.announced = {};
            PMPI_Comm_rank(comm, &polling.announced.MPI_SOURCE);
            polling.announced.MPI_TAG = tag;
            polling.announced.count = size * count;
        }
        wake(waiting);
    }
}

void announce_anything(const void* caller) {
    if (Rank* rank = current_rank()) {
        rank->polling.failures = 0;
        pass(*rank, caller);
        start_receives(*rank, false, true); // the program's own persistent receives must not overtake them
    }
    probing().may_sleep = false;
    while (!probing().sleepers.empty()) {
        wake(*probing().sleepers.back());
    }
}

void forget_communicator(MPI_Comm comm) { probing().world_ranks.erase(comm); }

} // namespace lepaute::simblas

using namespace lepaute::simblas;

namespace {

/// SMPI's MPI_ entry, which heeds the error handler.
int smpi_iprobe(int from, int tag, MPI_Comm comm, int* flag, MPI_Status* status) {
    static const auto entry = reinterpret_cast<decltype(&MPI_Iprobe)>(dlsym(RTLD_NEXT, "MPI_Iprobe"));
    return entry(from, tag, comm, flag, status);
}

} // namespace

/// The rank that runs now sleeps after this many probes in vain, from now on.
extern "C" void lepaute_patience(int probes) {
    if (Rank* rank = current_rank()) {
        rank->polling.failures = 0;
        rank->polling.patience = probes;
    }
}

extern "C" int MPI_Iprobe(int from, int tag, MPI_Comm comm, int* flag, MPI_Status* status) {
    Rank* rank = current_rank();
    if (rank == nullptr) {
        return smpi_iprobe(from, tag, comm, flag, status);
    }
    Polling& polling = rank->polling;
    const Polling::Probe probe{from, tag, comm};
    begin_call(*rank, __builtin_return_address(0), least_turn_s);
    if (rank->pending_s > 0.0 || probe != polling.last) { // a loop that looks for several messages gets no sleep
        polling.failures = 0;
        polling.last = probe;
        pass(*rank, __builtin_return_address(0));
    }
    start_receives(*rank, false, true); // a probe does not see what an earlier receive takes
    if (probing().may_sleep && state().request.sleeping_probes && polling.failures >= polling.patience &&
        simgrid::s4u::Engine::get_clock() > polling.until_s) {
        const int source = from == MPI_ANY_SOURCE ? from : world_rank(from, comm);
        if ((source >= 0 || from == MPI_ANY_SOURCE) && sleep_until_announced(*rank, source, tag, comm)) {
            polling.failures = 0;
            *flag = 1;
            if (status != MPI_STATUS_IGNORE) {
                *status = polling.announced;
            }
            return MPI_SUCCESS;
        }
    }
    ++state().probes;
    MPI_Status found{};
    const int result = smpi_iprobe(from, tag, comm, flag, &found);
    if (*flag != 0 && is_coming(polling, world_rank(found.MPI_SOURCE, comm), found.MPI_TAG)) {
        *flag = 0;
    }
    if (*flag != 0 && status != MPI_STATUS_IGNORE) {
        *status = found;
    }
    polling.failures = *flag != 0 ? 0 : polling.failures + 1;
    return result;
}
