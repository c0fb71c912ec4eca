#pragma once
// A machine as the engine sees it, and one draw of it: the layers of uncertainty of one run.

#include "checks.hpp"
#include "models/kernel_model.hpp"
#include "models/network_model.hpp"
#include "models/node_group.hpp"
#include "net/large_pages.hpp"
#include "net/topology.hpp"

#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace lepaute::models {

/// How much longer calls take when that share of the other cores of the socket computes, relative.
struct CrowdingPoint {
    double share = 0.0;
    double increase = 0.0;

    template <class Visit>
    static void fields(Visit visit) {
        visit("share", &CrowdingPoint::share, 1e-9, 1.0);
        visit("increase", &CrowdingPoint::increase, -1.0 + 1e-12, most_relative_sd); // at -1 a call would take no time
    }
};

/// The increase at a share: linear between (0, 0) and the points, which rise in share; constant beyond the last.
[[nodiscard]] double increase_at(std::span<const CrowdingPoint> points, double share) noexcept;

/// A kernel of a platform, with its models: one for all cpus, or one per socket or per cpu (node-major).
struct MachineKernel {
    std::string name;
    std::string model_of{};  // the kernel whose model it has, and whose errors it shares; empty: its own
    std::uint32_t group = 0; // of nodes; the first group's holds in those that have none
    bool own_errors = false; // drawn apart from those of the first group's kernel
    std::vector<KernelModel> models;
    double discrepancy_relative_sd = 0.0;   // of the logarithm
    double own_code_relative_sd = 0.0;      // the same, of what is known of code that was timed on another machine
    double extrapolation_relative_sd = 0.0; // the same, of use on other numbers of ranks than it was timed on
    bool timed = false;                     // seconds that an application says, of a node as fast as the mean
    bool as_recorded = false;               // timed on this machine: its durations have what cores differ and wander by
    std::vector<CrowdingPoint> crowding{};
    double crowding_relative_sd = 0.0; // error of durations next to idle cores; none at the last share of the table

    void check() const;
    template <class Visit>
    static void fields(Visit visit) {
        visit("name", &MachineKernel::name);
        visit("model_of", &MachineKernel::model_of);
        visit("group", &MachineKernel::group);
        visit("own_errors", &MachineKernel::own_errors);
        visit("models", &MachineKernel::models);
        visit("discrepancy_relative_sd", &MachineKernel::discrepancy_relative_sd, 0.0, most_relative_sd);
        visit("own_code_relative_sd", &MachineKernel::own_code_relative_sd);
        visit("extrapolation_relative_sd", &MachineKernel::extrapolation_relative_sd, 0.0, most_relative_sd);
        visit("timed", &MachineKernel::timed);
        visit("as_recorded", &MachineKernel::as_recorded);
        visit("crowding", &MachineKernel::crowding);
        visit("crowding_relative_sd", &MachineKernel::crowding_relative_sd, 0.0, most_relative_sd);
    }
};

struct Machine {
    static constexpr std::uint32_t most_nodes = 1U << 20U;
    static constexpr std::uint32_t most_cores_per_node = 1U << 16U;
    static constexpr std::uint64_t most_cores = 1U << 24U;
    static constexpr int most_degrees_of_freedom = 1'000'000; // so many numbers are drawn for an effect

    std::uint32_t nodes = 1;
    std::uint32_t cores_per_node = 1;
    std::uint32_t cpus_per_node = 1;
    bool cpu_is_core_modulo = true; // else core divided by the cores of a cpu
    std::uint32_t sockets_per_node = 1;
    std::vector<NodeGroup> groups{}; // of nodes that differ, each with at most as many parts; none: all as said above
    std::uint32_t threads_per_rank = 1; // that the models are for: a rank computes on its core and the next ones
    std::vector<MachineKernel> kernels;
    // Standard deviations of the logarithm of effects: of the day and of the run on all cpus, of each cpu.
    double day_common_relative_sd = 0.0;
    double day_run_relative_sd = 0.0;
    double day_cpu_relative_sd = 0.0;
    // Of Student's distribution that each is drawn from; 0: known exactly.
    int day_degrees_of_freedom = 0;
    int day_run_degrees_of_freedom = 0;
    int day_cpu_degrees_of_freedom = 0;
    double episode_relative_sd = 0.0; // shared by the calls of a core within an episode
    double episode_s = 0.0;           // length of an episode, in seconds of computing; 0: none
    // Of a core, whose durations go with exp(w), w an Ornstein-Uhlenbeck process in its seconds of computing: standard
    // deviation and correlation time, and the standard errors of their logarithms, drawn once a day.
    double wandering_relative_sd = 0.0;
    double wandering_correlation_s = 0.0;
    double wandering_relative_sd_error = 0.0;
    double wandering_correlation_error = 0.0;
    Network network;
    std::optional<net::Topology> topology; // none: one switch, network.node_link_Bps to and from each node

    /// The topology, or the plain switch that stands for none.
    [[nodiscard]] net::Topology links_between_nodes() const {
        return topology ? *topology : net::Topology::plain_switch(nodes, network.node_link_Bps);
    }
    /// The group that `node` is in: all nodes, where they are alike.
    [[nodiscard]] NodeGroup group_of(std::uint32_t node) const noexcept {
        return groups.empty() ? NodeGroup{nodes, cores_per_node, cpus_per_node, cpu_is_core_modulo, sockets_per_node}
                              : groups[group_of_node(groups, node)];
    }

    /// Numbers of nodes and cores; of what is inside, only what goes with them.
    void check() const;
    void check_groups() const;
    /// All fields but the topology, by name.
    template <class Visit>
    static void fields(Visit visit) {
        visit("nodes", &Machine::nodes, 1, most_nodes);
        visit("cores_per_node", &Machine::cores_per_node, 1, most_cores_per_node);
        visit("cpus_per_node", &Machine::cpus_per_node);
        visit("cpu_is_core_modulo", &Machine::cpu_is_core_modulo);
        visit("sockets_per_node", &Machine::sockets_per_node);
        visit("threads_per_rank", &Machine::threads_per_rank, 1, most_cores_per_node);
        visit("groups", &Machine::groups);
        visit("kernels", &Machine::kernels);
        visit("day_common_relative_sd", &Machine::day_common_relative_sd, 0.0, most_relative_sd);
        visit("day_run_relative_sd", &Machine::day_run_relative_sd, 0.0, most_relative_sd);
        visit("day_cpu_relative_sd", &Machine::day_cpu_relative_sd, 0.0, most_relative_sd);
        visit("day_degrees_of_freedom", &Machine::day_degrees_of_freedom, 0, most_degrees_of_freedom);
        visit("day_run_degrees_of_freedom", &Machine::day_run_degrees_of_freedom, 0, most_degrees_of_freedom);
        visit("day_cpu_degrees_of_freedom", &Machine::day_cpu_degrees_of_freedom, 0, most_degrees_of_freedom);
        visit("episode_relative_sd", &Machine::episode_relative_sd, 0.0, most_relative_sd);
        visit("episode_s", &Machine::episode_s);
        visit("wandering_relative_sd", &Machine::wandering_relative_sd, 0.0, most_relative_sd);
        visit("wandering_correlation_s", &Machine::wandering_correlation_s);
        visit("wandering_relative_sd_error", &Machine::wandering_relative_sd_error, 0.0, 10.0);
        visit("wandering_correlation_error", &Machine::wandering_correlation_error, 0.0, 10.0);
        visit("network", &Machine::network);
    }
};

/// The kernels that an application calls, by the names that a machine has for them. The number of a kernel is its place
/// in the list; what is drawn for it belongs to stream `first_stream` + number.
struct KernelSet {
    std::span<const std::string_view> names;
    std::uint32_t first_stream = 0; // applications need not differ: a run is of one
};

/// `machine` with one kernel in the place of its own, for an application that says itself what its computing costs: it
/// takes n seconds, with noise of relative_sd * n seconds. It is not crowded: its time is said for a busy node.
[[nodiscard]] Machine with_timed_kernel(const Machine& machine, std::string_view name, double relative_sd);

/// Number of a kernel in the set of its application, which counts them by an enum.
class KernelNumber {
public:
    template <class Enum>
        requires std::is_enum_v<Enum>
    constexpr KernelNumber(Enum kernel) noexcept // NOLINT(google-explicit-constructor): the enum is the number
        : index_(static_cast<std::size_t>(kernel)) {}
    constexpr explicit KernelNumber(std::size_t index) noexcept : index_(index) {}
    [[nodiscard]] constexpr std::size_t index() const noexcept { return index_; }

private:
    std::size_t index_;
};

/// Layers of uncertainty that a run draws (design, section 2: what an interval means).
struct Layers {
    bool coefficients = true;
    bool days = true;
    bool discrepancy = true;
    bool noise = true;
    bool network = true;
    bool overheads = true;
    bool collectives = true; // drawn where programs are emulated
    bool extrapolation = true;
    bool own_code = true;

    /// All layers by name: the binding goes through them, and simblas, which is told those that are on.
    template <class Visit>
    static void fields(Visit visit) {
        visit("coefficients", &Layers::coefficients);
        visit("days", &Layers::days);
        visit("discrepancy", &Layers::discrepancy);
        visit("noise", &Layers::noise);
        visit("network", &Layers::network);
        visit("overheads", &Layers::overheads);
        visit("collectives", &Layers::collectives);
        visit("extrapolation", &Layers::extrapolation);
        visit("own_code", &Layers::own_code);
    }
};

/// What decides the draws of a run. Runs with the same `day` and another `run` are runs on the same machine and day:
/// they share coefficients, discrepancies, days and the network's state, not noise and the effect of the run.
struct Seeds {
    std::uint64_t day;
    std::uint64_t run;
    constexpr Seeds(std::uint64_t both) noexcept // NOLINT(google-explicit-constructor): one seed is the usual case
        : day(both), run(both) {}
    constexpr Seeds(std::uint64_t of_day, std::uint64_t of_run) noexcept : day(of_day), run(of_run) {}
};

/// A machine on one day: coefficients, day effects and discrepancies drawn, a function of (machine, layers, seeds).
class MachineDay {
public:
    /// kernels: those that are called; one that the machine lacks is not modelled.
    /// core_of_rank: global core (node * cores_per_node + core), the first of those that a rank computes on.
    MachineDay(const Machine& machine, const KernelSet& kernels, const Layers& layers, Seeds seeds,
               const std::vector<std::uint32_t>& core_of_rank);
    MachineDay(const MachineDay&) = delete; // costs refer to its models
    MachineDay& operator=(const MachineDay&) = delete;

    [[nodiscard]] bool models(KernelNumber kernel) const noexcept { return !kernels_[kernel.index()].models.empty(); }
    /// Do all cpus have the same model, but for a factor?
    [[nodiscard]] bool one_model(KernelNumber kernel) const noexcept {
        return !differs_ && kernels_[kernel.index()].models.size() == 1;
    }
    /// What the durations of the model are multiplied by on `rank`.
    [[nodiscard]] double factor(std::uint32_t rank, KernelNumber kernel) const noexcept {
        const RankState& state = ranks_[rank];
        const DayKernel& today = kernels_[place(rank, kernel)];
        const double of_day = today.as_recorded ? common_factor_ : cpu_factor_[state.cpu];
        return of_day * today.factor * today.crowded[state.crowd];
    }
    /// What calls of `kernel` with `size` cost on `rank`.
    [[nodiscard]] KernelCost cost(std::uint32_t rank, KernelNumber kernel, const Size& size) const noexcept {
        const std::vector<KernelModel>& models = kernels_[place(rank, kernel)].models;
        if (models.empty()) {
            return {};
        }
        return models[model_number(rank, kernel)].cost(size, factor(rank, kernel), with_noise_);
    }
    /// The same for all ranks that have the model of `rank`, without their factors: evaluated once for sizes that they
    /// use at about the same time.
    [[nodiscard]] KernelCost shared_cost(std::uint32_t rank, KernelNumber kernel, const Size& size) noexcept {
        const std::vector<KernelModel>& models = kernels_[place(rank, kernel)].models;
        if (models.empty()) {
            return {};
        }
        const std::uint32_t model = model_number(rank, kernel);
        const std::size_t number = place(rank, kernel);
        Evaluated& known = evaluated_[hash(number, model, size) % evaluated_count];
        if (known.size.m != size.m || known.size.n != size.n || known.size.k != size.k || known.model != model ||
            known.kernel != number) {
            known = {size, model, static_cast<std::uint32_t>(number), models[model].cost(size, 1.0, with_noise_)};
        }
        return known.cost;
    }
    /// What calls of `kernel` with `size` cost on `rank`, by way of the shared cost.
    [[nodiscard]] KernelCost common_cost(std::uint32_t rank, KernelNumber kernel, const Size& size) noexcept {
        KernelCost result = shared_cost(rank, kernel, size);
        if (result.modelled) {
            result.factor *= factor(rank, kernel);
        }
        return result;
    }
    /// Seconds of the next call on `rank`, of that cost; to be noted with note().
    [[nodiscard]] double draw_s(std::uint32_t rank, const KernelCost& cost) noexcept {
        return Draws(*this, rank).next_s(cost);
    }
    /// Draws for many calls of a rank in a row, while nobody else draws for it.
    class Draws {
    public:
        Draws(MachineDay& day, std::uint32_t rank) noexcept
            : day_(day), rank_(rank), noise_(day.ranks_[rank].noise), calls_(day.ranks_[rank].calls) {}
        Draws(const Draws&) = delete;
        Draws& operator=(const Draws&) = delete;
        ~Draws() { day_.ranks_[rank_].calls = calls_; }
        [[nodiscard]] double next_s(const KernelCost& cost) noexcept {
            const double even_s = cost.draw(noise_, calls_++);
            return day_.episode_s_ > 0.0 ? day_.through_episodes(rank_, even_s) : even_s;
        }

    private:
        MachineDay& day_;
        std::uint32_t rank_;
        rng::Stream noise_;
        std::uint64_t calls_;
    };
    /// Passes over the draws of so many calls on `rank`, whose cost is free.
    void pass_draws(std::uint32_t rank, std::uint64_t calls) noexcept { ranks_[rank].calls += calls; }
    void note_calls(KernelNumber kernel, const KernelCost& cost, const Size& size, std::uint64_t calls,
                    double seconds) noexcept {
        note(use_[kernel.index()], cost, size, calls, seconds);
    }
    /// Seconds that `kernel` takes on `rank` for its next call.
    double duration_s(std::uint32_t rank, KernelNumber kernel, const Size& size) noexcept {
        if (!models(kernel)) {
            note_calls(kernel, {}, size, 1, 0.0);
            return 0.0;
        }
        const KernelCost each = common_cost(rank, kernel, size);
        const bool wanders = !kernels_[place(rank, kernel)].as_recorded;
        const double seconds = wanders ? draw_s(rank, each) : each.draw(ranks_[rank].noise, ranks_[rank].calls++);
        note_calls(kernel, each, size, 1, seconds);
        return seconds;
    }
    /// By number of the kernel.
    [[nodiscard]] const std::vector<KernelUse>& use() const noexcept { return use_; }
    [[nodiscard]] const KernelSet& kernel_set() const noexcept { return kernel_set_; }
    [[nodiscard]] std::size_t state_bytes() const noexcept;
    /// The memory that the draws of a rank touch.
    [[nodiscard]] std::span<const std::byte> state_of(std::uint32_t rank) const noexcept {
        return std::as_bytes(std::span(&ranks_[rank], 1));
    }

private:
    /// Sets where each rank is, and what else computes there; returns the shares that occur.
    [[nodiscard]] std::vector<double> place_ranks(const Machine& machine,
                                                  const std::vector<std::uint32_t>& core_of_rank);
    /// Seconds that `seconds` of computing take in the episodes that they fall into.
    double through_episodes(std::uint32_t rank, double seconds) noexcept;
    /// The factor of an episode of a rank: drawn anew, or the next value of its wandering.
    [[nodiscard]] double next_factor(std::uint32_t rank, std::uint64_t episode) noexcept;

    /// Where the kernel of the nodes that `rank` is on stands: those of each group follow one another.
    [[nodiscard]] std::size_t place(std::uint32_t rank, KernelNumber kernel) const noexcept {
        return ranks_[rank].first_kernel + kernel.index();
    }
    /// Which of the models of `kernel` holds on `rank`.
    [[nodiscard]] std::uint32_t model_number(std::uint32_t rank, KernelNumber kernel) const noexcept {
        const DayKernel& today = kernels_[place(rank, kernel)];
        return today.models.size() == 1 ? 0 : today.by_socket ? ranks_[rank].socket : ranks_[rank].cpu;
    }
    /// The last evaluations of models, each in the place that its hash says, with a factor of 1 for the rank.
    struct Evaluated {
        Size size{-1.0, -1.0, -1.0};
        std::uint32_t model = 0;
        std::uint32_t kernel = 0;
        KernelCost cost;
    };
    static constexpr std::size_t evaluated_count = 1024;
    [[nodiscard]] static std::size_t hash(std::size_t kernel, std::uint32_t model, const Size& size) noexcept {
        std::uint64_t bits = std::bit_cast<std::uint64_t>(size.m) * 0x9E3779B97F4A7C15U;
        bits = std::rotl(bits ^ std::bit_cast<std::uint64_t>(size.n), 29) * 0xBF58476D1CE4E5B9U;
        bits = std::rotl(bits ^ std::bit_cast<std::uint64_t>(size.k), 29) * 0x94D049BB133111EBU;
        bits ^= (model * std::uint64_t{64} + kernel) * 0xD6E8FEB86659FD93U;
        return static_cast<std::size_t>(bits >> 40U);
    }

    struct DayKernel {
        std::vector<KernelModel> models;
        double factor = 1.0;
        std::vector<double> crowded{}; // factor for each share of the other cores that compute, as ranks number them
        bool by_socket = false;        // else by cpu, or one for all
        bool as_recorded = false;
    };
    KernelSet kernel_set_;
    /// Draws what is of the kernel `number` on the nodes of a group.
    [[nodiscard]] DayKernel drawn(const Machine& machine, const MachineKernel& kernel, std::uint32_t number,
                                  const Layers& layers, Seeds seeds, std::span<const double> shares) const;

    bool differs_;                   // are there groups of nodes?
    std::vector<DayKernel> kernels_; // by number; where groups differ, of each group
    std::vector<double> cpu_factor_;
    double common_factor_ = 1.0;   // of all of these
    struct alignas(64) RankState { // one cache line
        rng::Stream noise;
        std::uint64_t calls = 0;
        std::uint32_t cpu = 0;
        std::uint32_t socket = 0;
        std::uint32_t first_kernel = 0;
        std::uint32_t crowd = 0;     // number of the share of the other cores of its socket that compute
        double episode_left_s = 0.0; // of computing
        double episode_factor = 1.0;
        std::uint64_t episodes = 0;
    };
    std::vector<RankState, net::LargePages<RankState>> ranks_;
    double episode_relative_sd_;
    double episode_s_;
    // Of a wandering: the correlation of successive episodes, and the level of each rank in standard deviations.
    double persistence_ = 0.0;
    std::vector<double> levels_;
    std::vector<KernelUse> use_;
    std::vector<Evaluated> evaluated_;
    std::uint64_t run_seed_;
    bool with_noise_;
};

} // namespace lepaute::models
