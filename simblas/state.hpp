#pragma once
// What simblas knows while SMPI runs a program: the machine of today, and where each rank stands.
//
// SMPI runs all ranks in one thread of one process, as contexts that give way to each other only inside of SMPI. So
// plain variables do, and each entry point first asks which rank it runs for.

#include "apps/hpl/kernels.hpp"
#include "models/machine_file.hpp"

#include <simgrid/s4u.hpp>
#include <smpi/smpi.h>

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace lepaute::simblas {

/// What the launcher asks for, from the file that the variable LEPAUTE_EMULATION names: a line `key value...` each,
/// and after the line `machine` the machine itself.
struct Request {
    models::Seeds seeds = 1; // two numbers in the file
    models::Layers layers;
    std::vector<std::uint32_t> core_of_rank; // node * cores_per_node + core
    models::Size reference;                  // of the dgemm whose rate stands for what has no model; 0: none
    double wtime_s = 0.0;                    // of one call of MPI_Wtime
    std::size_t fold_bytes = 0;              // allocations of this size and more are folded; 0: none
    std::size_t fold_block_bytes = 0;
    bool fold_huge = false; // on huge pages
    struct Private {
        std::string where; // file, file:line or function that allocates
        long from = 0;     // bytes; negative: from the end
        long to = -1;
    };
    std::vector<Private> keep_private;
    std::string report;                      // file to write
    std::string progress;                    // file to append to; empty: none
    std::string kernel_log;                  // file to write; empty: none
    bool measures = false;                   // what the program computes itself is timed,
    bool charges = false;                    // and takes simulated time
    double host_flops = 0.0;                 // mean speed of the hosts; 0: all are alike
    double slowdown = 1.0;                   // of what the program computes itself, where no place says otherwise
    std::map<std::string, double> slowdowns; // by the place where it begins
    bool puts_off = false;                   // rendezvous receives wait for their rank to be in MPI
    std::vector<int> rank_cpus;  // those on which ranks compute, in turn; empty: whatever the system chooses
    std::vector<int> load_cpus;  // our own, then those that stream through memory now and then; empty: none
    bool sleeping_probes = true; // polling.cpp
    bool own_factors = false;    // factors of messages by our own callbacks, in the place of SMPI's tables
};

/// A rank that only probes sleeps until a message is announced to it (polling.cpp).
struct Polling {
    struct Probe {
        int source;
        int tag;
        MPI_Comm comm;
        bool operator==(const Probe&) const = default;
    };
    int failures = 0;  // probes in vain, with nothing in between
    int patience = 64; // probes in vain before the rank sleeps
    Probe last{0, 0, nullptr};
    bool asleep = false;
    int source = 0; // what it sleeps for: rank of the world or MPI_ANY_SOURCE,
    int tag = 0;    // tag or MPI_ANY_TAG
    MPI_Comm comm = nullptr;
    MPI_Status announced{}; // of the message that ended the sleep
    double seen_s = 0.0;    // when a probe finds it; infinite where that is not known
    double until_s = 0.0;   // probes find announced messages by then
    /// An eager message on its way, or that has come; a communicator is another on each rank.
    struct Coming {
        int source; // rank of the world
        int tag;
        double arrival_s;
    };
    std::vector<Coming> coming;
    simgrid::s4u::SemaphorePtr wake;
};

/// Logarithms of durations in seconds.
struct LogTimes {
    std::uint64_t count = 0;
    double sum = 0.0;
};

/// A place of the program where MPI returned, and what it computed from there until its next call of MPI.
struct Site {
    std::uint64_t visits = 0;
    double time_s = 0.0; // CPU time, over all ranks
    double slowdown = 1.0;
    LogTimes alone;
    LogTimes loaded; // while other cores streamed through memory
    bool next = false;
    bool has_pair = false;
};

struct Rank {
    std::uint32_t number = 0;
    double pending_s = 0.0; // computed, not yet passed
    double ended_s = -1.0;  // date of MPI_Finalize; negative before
    double region_from_s = -1.0;
    double region_s = 0.0;
    std::size_t memory_before = 0; // wishes for the next folded allocation, in bytes (folding.cpp)
    std::size_t private_from = 0;
    std::size_t private_to = 0;
    double clock_s = -1.0;  // CPU time at which its computing was last read; negative: the clock is stopped
    double not_own_s = 0.0; // passed since then in evaluating models
    bool in_call = false;   // of MPI, on the way in
    const void* caller = nullptr;
    Site* site = nullptr;
    struct PutOff {
        MPI_Request request;
        double bytes; // 0: no rendezvous
    };
    std::vector<PutOff> put_off; // receives that wait for the rank to be in MPI (progress.cpp)
    /// An iteration that is timed, and those before it in the same loop (samples.cpp).
    struct Sampled {
        bool inside = false;
        double from_s = 0.0; // pending_s, and charged_s of all ranks, where it begins
        double own_from_s = 0.0;
        double sum_s = 0.0;
        double own_s = 0.0;
    } sampled;
    Polling polling;
};

struct FallbackUse {
    std::uint64_t calls = 0;
    std::uint64_t unmodelled_calls = 0; // cost nothing: neither a model nor a rate or a count of operations
    double time_s = 0.0;
};

/// Messages sent of datatypes with gaps, and what packing the first of them took here (gaps.cpp).
struct Gapped {
    std::uint64_t messages = 0;
    double bytes = 0.0;
    double timed_s = 0.0;
    double timed_bytes = 0.0;
};

struct State {
    Request request;
    models::Machine machine;
    std::unique_ptr<models::MachineDay> day;
    std::vector<Rank> ranks;
    std::vector<Rank*> rank_of_pid;
    std::vector<FallbackUse> fallback; // by routine of the generated table
    int aborted_rank = -1;             // the first that called MPI_Abort
    int abort_code = 0;
    int exited_rank = -1; // the first that ended before it called MPI_Finalize
    int exit_code = 0;
    std::uint64_t calls = 0;    // of MPI that can wait
    std::uint64_t messages = 0; // point-to-point, sent
    std::uint64_t probes = 0;
    int thread_level = MPI_THREAD_SINGLE; // that MPI_Init_thread() asked for
    std::uint64_t threads = 0;            // that ranks have started (threads.cpp)
    Gapped gapped;
    double computing_s = 0.0; // over all ranks
    double wtime_s = 0.0;
    std::uint64_t put_off = 0; // receives during which their rank computed, and their least and largest size
    double put_off_low_bytes = HUGE_VAL;
    double put_off_high_bytes = 0.0;
    double measured_s = 0.0; // computed by the program itself, over all ranks: CPU time here,
    double charged_s = 0.0;  // and what it was charged
    double stream_alone_Bps = 0.0;
    double stream_loaded_Bps = 0.0;
    std::map<std::string, Site> sites;
    std::map<const void*, Site*> site_of_place;
    std::uint64_t folded = 0; // allocations
    double folded_bytes = 0.0;
};

/// The one state; LEPAUTE_EMULATION is read when SimGrid has built the platform.
State& state();

/// The rank that runs now; null outside of one (SimGrid itself, or a program that lepaute does not run).
Rank* current_rank();

/// Computing goes on for `seconds` on the rank that runs now.
void compute(double seconds);

/// A call of MPI begins: lets the time pass that the rank has computed.
/// `caller`: see begin_call().
void pass(Rank& rank, const void* caller);

/// Date on the rank's own clock, in seconds.
[[nodiscard]] double now_s(const Rank& rank);

/// CPU time of this thread, in seconds; not by clock_gettime(), whose clock stands still for SMPI (clocks.cpp).
[[nodiscard]] double cpu_s();

/// While it lives, what runs is no computing of the rank's own: a model is evaluated.
class NotOwn {
public:
    explicit NotOwn(Rank& rank) : rank_(rank), from_(std::chrono::steady_clock::now()) {}
    ~NotOwn() { rank_.not_own_s += std::chrono::duration<double>(std::chrono::steady_clock::now() - from_).count(); }
    NotOwn(const NotOwn&) = delete;
    NotOwn& operator=(const NotOwn&) = delete;

private:
    Rank& rank_;
    std::chrono::steady_clock::time_point from_;
};

} // namespace lepaute::simblas
