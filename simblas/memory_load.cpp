#include "memory_load.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <linux/futex.h>
#include <memory>
#include <random>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

namespace lepaute::simblas {

namespace {

constexpr std::size_t stream_count = std::size_t{8} << 20; // doubles of each of the three arrays: 64 MiB
constexpr std::size_t chunk = std::size_t{1} << 14;
constexpr int stream_rounds = 7;
constexpr double short_s = 200e-6; // intervals below are not worth a change of the load each
constexpr double dwell_s = 3e-3;   // of the load over short intervals
constexpr double least_s = 5e-6;   // of an interval whose time is worth a comparison
constexpr double patience_s = 5e-3;
constexpr int pauses = 1 << 20;
constexpr double patience_at_start_s = 5.0;

/// Shared with the processes that make the load.
struct Shared {
    std::atomic<std::uint32_t> on{0};
    std::atomic<std::uint32_t> running{0};
    std::atomic<std::uint32_t> ready{0};
};

struct Load {
    Shared* shared = nullptr; // null: there is none
    std::uint32_t processes = 0;
    bool is_on = false;
    double since_s = 0.0;
    std::mt19937 rng{20261122}; // NOLINT(cert-msc32-c,cert-msc51-cpp): the same choices each time
};

Load& load() {
    static Load the_one;
    return the_one;
}

double wall_s() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void futex(std::atomic<std::uint32_t>& word, int what, std::uint32_t value) {
    syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), what, value, nullptr, nullptr, 0);
}

struct Stream {
    std::vector<double> a = std::vector<double>(stream_count, 1.0);
    std::vector<double> b = std::vector<double>(stream_count, 2.0);
    std::vector<double> c = std::vector<double>(stream_count, 3.0);

    /// STREAM's triad.
    void pass(std::size_t from, std::size_t to) {
        double* const x = a.data();
        const double* const y = b.data();
        const double* const z = c.data();
        for (std::size_t i = from; i < to; ++i) {
            x[i] = y[i] + 0.5 * z[i];
        }
        asm volatile("" ::"r"(x) : "memory");
    }
};

/// What each process of the load does until its parent ends.
[[noreturn]] void make_load(Shared& shared, int cpu, pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    pin(cpu);
    Stream stream;
    shared.ready.fetch_add(1);
    while (getppid() == parent) {
        while (shared.on.load() == 0) {
            futex(shared.on, FUTEX_WAIT, 0);
        }
        shared.running.fetch_add(1);
        for (std::size_t from = 0; shared.on.load(std::memory_order_relaxed) != 0; from += chunk) {
            from %= stream_count;
            stream.pass(from, from + chunk);
        }
        shared.running.fetch_sub(1);
    }
    _exit(0);
}

void wait_for(const std::atomic<std::uint32_t>& word, std::uint32_t wanted, double most_s) {
    const double from_s = wall_s();
    while (word.load() != wanted && wall_s() - from_s < most_s) {
        sched_yield();
    }
}

/// What keeps a cpu awake until its parent ends, and gives way to anything else.
[[noreturn]] void keep_awake(int cpu, pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    pin(cpu);
    const sched_param none{};
    sched_setscheduler(0, SCHED_IDLE, &none);
    while (getppid() == parent) {
        for (int i = 0; i < pauses; ++i) {
            __builtin_ia32_pause();
        }
    }
    _exit(0);
}

/// Returns when all processes have begun, or ended.
void set_load(bool on) {
    Load& it = load();
    if (it.is_on == on) {
        return;
    }
    it.shared->on.store(on ? 1 : 0);
    if (on) {
        futex(it.shared->on, FUTEX_WAKE, it.processes);
    }
    wait_for(it.shared->running, on ? it.processes : 0, patience_s);
    it.is_on = on;
    it.since_s = wall_s();
}

double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
}

/// Bytes per second of CPU time of the triad on this core.
double stream_Bps(Stream& stream) { // NOLINT(readability-identifier-naming): the unit
    const double from_s = cpu_s();
    stream.pass(0, stream_count);
    return 3.0 * sizeof(double) * stream_count / (cpu_s() - from_s);
}

} // namespace

void pin(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<std::size_t>(cpu), &set);
    sched_setaffinity(0, sizeof set, &set);
}

void keep_cpus_awake() {
    const std::vector<int>& cpus = state().request.rank_cpus;
    const pid_t self = getpid();
    for (std::size_t i = 0; cpus.size() > 1 && i < cpus.size(); ++i) {
        if (fork() == 0) {
            keep_awake(cpus[i], self);
        }
    }
}

void start_memory_load() {
    State& there = state();
    const std::vector<int>& cpus = there.request.load_cpus;
    if (cpus.size() < 2) { // the first is our own
        return;
    }
    void* memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return;
    }
    Load& it = load();
    auto* const shared = new (memory) Shared;
    const pid_t self = getpid();
    for (std::size_t i = 1; i < cpus.size(); ++i) {
        const pid_t child = fork();
        if (child == 0) {
            make_load(*shared, cpus[i], self);
        }
        it.processes += child > 0 ? 1U : 0U;
    }
    pin(cpus[0]);
    it.shared = shared;
    const auto stream = std::make_unique<Stream>();
    wait_for(shared->ready, it.processes, patience_at_start_s);
    std::array<std::vector<double>, 2> rates;
    for (int i = 0; i < 2 * stream_rounds; ++i) {
        set_load(i % 2 != 0);
        rates[static_cast<std::size_t>(i % 2)].push_back(stream_Bps(*stream));
    }
    there.stream_alone_Bps = median(rates[0]);
    there.stream_loaded_Bps = median(rates[1]);
    set_load(false);
}

void choose_load(Site& site) {
    Load& it = load();
    if (it.shared == nullptr) {
        return;
    }
    if (site.visits > 0 && site.time_s > short_s * static_cast<double>(site.visits)) {
        // In pairs of random order, so that as many intervals of a place are under load as are not.
        site.next = site.has_pair ? !site.next : (it.rng() & 1U) != 0;
        site.has_pair = !site.has_pair;
        set_load(site.next);
    } else if (wall_s() - it.since_s > dwell_s) {
        set_load((it.rng() & 1U) != 0);
        it.since_s = wall_s();
    }
}

void add_interval(Site& site, double seconds) {
    ++site.visits;
    site.time_s += seconds;
    if (seconds >= least_s) {
        LogTimes& times = load().is_on ? site.loaded : site.alone;
        ++times.count;
        times.sum += std::log(seconds);
    }
}

} // namespace lepaute::simblas
