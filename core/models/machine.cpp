#include "models/machine.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

namespace lepaute::models {

namespace {

// Streams of draws; kernels use their own number.
constexpr std::uint32_t kernel_noise_stream = 0x4B45524EU;
constexpr std::uint32_t day_stream = 0x44415900U;
constexpr std::uint32_t run_stream = 0x52554E00U;
constexpr std::uint32_t cpu_day_stream = 0x43505500U;
constexpr std::uint32_t episode_stream = 0x45504900U;
constexpr std::uint32_t wandering_stream = 0x57414E00U;
constexpr std::uint32_t wandering_error_stream = 0x57414F00U;
// Of an episode: its half-normal noise, of whatever width, must not make a duration negative.
constexpr double smallest_factor = 0.05;
// A wandering is constant for a third of its correlation time: the variance of the mean of a long run is then
// coth(1/6) / 6 = 1.009 times that of the continuous process.
constexpr double steps_of_correlation = 3.0;
constexpr double shortest_step_s = 1e-3;
// A call that goes through more episodes than that takes the mean of the rest: nothing of them can be seen.
constexpr std::uint64_t most_episodes_of_call = 1U << 24U;
constexpr double shortest_episode_s = 1e-9;
constexpr double longest_exponent = 700.0; // of rng::exponential

} // namespace

void MachineKernel::check() const {
    if (std::ranges::adjacent_find(crowding, std::not_fn(std::less{}), &CrowdingPoint::share) != crowding.end()) {
        throw std::invalid_argument("crowding is not in increasing order of share");
    }
}

void Machine::check() const {
    if (std::uint64_t{nodes} * cores_per_node > most_cores) {
        refuse("cores_per_node", text_of(cores_per_node),
               text_of(nodes) + " nodes have at most " + text_of(most_cores) + " cores together");
    }
    group_of(0).check_parts("cpus_per_node", "sockets_per_node");
    check_groups();
    for (const MachineKernel& kernel : kernels) {
        const std::size_t models = kernel.models.size();
        if (models > 1 && models != std::size_t{nodes} * cpus_per_node &&
            models != std::size_t{nodes} * sockets_per_node) {
            refuse("kernels: " + kernel.name + ".models", "of " + text_of(models) + " models",
                   "there is one, or one for each CPU or socket of all nodes");
        }
    }
    check_number("episode_s", episode_s, episode_s == 0.0 ? 0.0 : shortest_episode_s, most_seconds);
    check_number("wandering_correlation_s", wandering_correlation_s,
                 wandering_relative_sd > 0.0 ? shortest_episode_s : 0.0, most_seconds);
    if (topology && topology->nodes() < nodes) {
        refuse("topology", "of " + text_of(topology->nodes()) + " nodes",
               "the machine has " + text_of(nodes) + ", and all are joined by it");
    }
}

double increase_at(std::span<const CrowdingPoint> points, double share) noexcept {
    CrowdingPoint below;
    for (const CrowdingPoint& point : points) {
        if (share <= point.share) {
            const double part = (share - below.share) / (point.share - below.share);
            return below.increase + (point.increase - below.increase) * part;
        }
        below = point;
    }
    return below.increase;
}

Machine with_timed_kernel(const Machine& machine, std::string_view name, double relative_sd) {
    const auto n = static_cast<std::size_t>(std::ranges::find(term_names, "n") - term_names.begin());
    KernelPiece piece;
    piece.mean.at(n) = 1.0;
    piece.deviation.at(n) = relative_sd;
    piece.noise = relative_sd > 0.0 ? Noise::half_normal : Noise::none;
    Machine result = machine;
    result.kernels = {{.name = std::string(name), .models = {KernelModel({piece})}, .timed = true}};
    return result;
}

MachineDay::MachineDay(const Machine& machine, const KernelSet& kernels, const Layers& layers, Seeds seeds,
                       const std::vector<std::uint32_t>& core_of_rank)
    : kernel_set_(kernels), differs_(!machine.groups.empty()),
      kernels_(kernels.names.size() * std::max<std::size_t>(1, machine.groups.size())),
      cpu_factor_(std::size_t{machine.nodes} * machine.cpus_per_node, 1.0), ranks_(core_of_rank.size()),
      episode_relative_sd_(layers.noise ? machine.episode_relative_sd : 0.0),
      episode_s_(episode_relative_sd_ > 0.0 ? machine.episode_s : 0.0), use_(kernels.names.size()),
      evaluated_(evaluated_count), run_seed_(seeds.run), with_noise_(layers.noise) {
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
        ranks_[rank].noise = rng::Stream({seeds.run, rank, kernel_noise_stream, 0});
    }
    for (KernelUse& use : std::span(use_).first(machine.network.counts_all_sizes ? use_.size() : 0)) {
        use.by_size.begin();
    }
    const std::vector<double> shares = place_ranks(machine, core_of_rank);
    for (std::size_t place = 0; place < kernels_.size(); ++place) {
        const auto number = static_cast<std::uint32_t>(place % kernels.names.size());
        const std::size_t group = place / kernels.names.size();
        const auto find = [&](std::size_t of_group) {
            return std::ranges::find_if(machine.kernels, [&](const MachineKernel& kernel) {
                return kernel.name == kernels.names[number] && kernel.group == of_group;
            });
        };
        auto named = find(group);
        named = named == machine.kernels.end() ? find(0) : named;
        if (named == machine.kernels.end()) {
            continue;
        }
        kernels_[place] = drawn(machine, *named, number, layers, seeds, shares);
        if (differs_ && named->timed && !named->as_recorded) {
            kernels_[place].factor *= machine.groups[group].slowness;
        }
    }
    if (layers.noise && machine.wandering_relative_sd > 0.0) {
        const auto drawn = [&](double value, double error, std::uint64_t number) {
            return value * rng::exponential(error * rng::normal({seeds.day, 0, wandering_error_stream, number}));
        };
        episode_relative_sd_ = drawn(machine.wandering_relative_sd, machine.wandering_relative_sd_error, 0);
        const double correlation_s = drawn(machine.wandering_correlation_s, machine.wandering_correlation_error, 1);
        episode_s_ = std::max(correlation_s / steps_of_correlation, shortest_step_s);
        persistence_ = rng::exponential(-std::min(episode_s_ / correlation_s, longest_exponent));
        levels_.resize(ranks_.size());
    }
    if (layers.days) {
        const auto effect = [](double relative_sd, int freedom, const rng::Coordinates& at) {
            return relative_sd > 0.0 ? factor_of(relative_sd, rng::student(at, freedom)) : 1.0;
        };
        common_factor_ =
            effect(machine.day_common_relative_sd, machine.day_degrees_of_freedom, {seeds.day, 0, day_stream, 0}) *
            effect(machine.day_run_relative_sd, machine.day_run_degrees_of_freedom, {seeds.run, 0, run_stream, 0});
        for (std::uint32_t cpu = 0; cpu < cpu_factor_.size(); ++cpu) {
            cpu_factor_[cpu] = common_factor_ * effect(machine.day_cpu_relative_sd, machine.day_cpu_degrees_of_freedom,
                                                       {seeds.day, cpu, cpu_day_stream, 0});
        }
    }
}

std::vector<double> MachineDay::place_ranks(const Machine& machine, const std::vector<std::uint32_t>& core_of_rank) {
    std::vector<std::uint32_t> busy(std::size_t{machine.nodes} * machine.sockets_per_node, 0);
    // Sockets of the cores that a rank computes on, one by one.
    const auto visit_sockets = [&](std::uint32_t first, auto visit) {
        const std::uint32_t node = first / machine.cores_per_node;
        const std::uint32_t from = first % machine.cores_per_node;
        const NodeGroup group = machine.group_of(node);
        const std::uint32_t end = std::min(from + machine.threads_per_rank, group.cores);
        for (std::uint32_t core = from; core < end; ++core) {
            visit(node * machine.sockets_per_node + group.socket_of_core(core));
        }
    };
    for (const std::uint32_t core : core_of_rank) {
        visit_sockets(core, [&](std::uint32_t socket) { ++busy[socket]; });
    }
    std::vector<double> shares;
    std::vector<std::uint32_t> own;
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
        const std::uint32_t node = core_of_rank[rank] / machine.cores_per_node;
        const std::uint32_t core = core_of_rank[rank] % machine.cores_per_node;
        RankState& state = ranks_[rank];
        const NodeGroup group = machine.group_of(node);
        if (core >= group.cores) {
            throw std::invalid_argument("a rank is mapped to a core that its node does not have");
        }
        state.cpu = node * machine.cpus_per_node + group.cpu_of_core(core);
        state.socket = node * machine.sockets_per_node + group.socket_of_core(core);
        if (differs_) {
            const std::size_t before = group_of_node(machine.groups, node) * kernel_set_.names.size();
            state.first_kernel = static_cast<std::uint32_t>(before);
        }
        own.clear();
        visit_sockets(core_of_rank[rank], [&](std::uint32_t socket) { own.push_back(socket); });
        const auto threads = static_cast<std::uint32_t>(own.size());
        std::ranges::sort(own);
        own.erase(std::ranges::unique(own).begin(), own.end());
        const std::uint32_t others = static_cast<std::uint32_t>(own.size()) * (group.cores / group.sockets) - threads;
        std::uint32_t computing = 0;
        for (const std::uint32_t socket : own) {
            computing += busy[socket];
        }
        const double share = others == 0 ? 0.0 : std::min(1.0, (computing - threads) / static_cast<double>(others));
        const auto found = std::ranges::find(shares, share);
        state.crowd = static_cast<std::uint32_t>(found - shares.begin());
        if (found == shares.end()) {
            shares.push_back(share);
        }
    }
    return shares;
}

double MachineDay::next_factor(std::uint32_t rank, std::uint64_t episode) noexcept {
    if (levels_.empty()) {
        const double noise = rng::centred_half_normal({run_seed_, rank, episode_stream, episode});
        return std::max(smallest_factor, 1.0 + episode_relative_sd_ * noise);
    }
    const double change = rng::normal({run_seed_, rank, wandering_stream, episode});
    double& level = levels_[rank];
    level = episode == 0 ? change : persistence_ * level + std::sqrt(1.0 - persistence_ * persistence_) * change;
    return factor_of(episode_relative_sd_, level);
}

double MachineDay::through_episodes(std::uint32_t rank, double seconds) noexcept {
    RankState& state = ranks_[rank];
    double total_s = 0.0;
    const std::uint64_t last = state.episodes + most_episodes_of_call;
    while (seconds > 0.0) {
        if (state.episodes == last) {
            return total_s + seconds;
        }
        if (state.episode_left_s <= 0.0) {
            state.episode_factor = next_factor(rank, state.episodes++);
            state.episode_left_s = episode_s_;
        }
        const double part_s = std::min(seconds, state.episode_left_s);
        total_s += part_s * state.episode_factor;
        state.episode_left_s -= part_s;
        seconds -= part_s;
    }
    return total_s;
}

std::size_t MachineDay::state_bytes() const noexcept {
    std::size_t bytes = (cpu_factor_.size() + levels_.size()) * sizeof(double) + ranks_.size() * sizeof(RankState);
    for (const DayKernel& kernel : kernels_) {
        for (const KernelModel& model : kernel.models) {
            bytes += model.pieces().size() * sizeof(KernelPiece);
        }
    }
    return bytes;
}

} // namespace lepaute::models
