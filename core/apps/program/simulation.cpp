#include "apps/program/simulation.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace lepaute::program {

using mpi::Rank;
using mpi::Task;

namespace {

constexpr std::uint32_t first_stream = 32;

/// Of the phases of a trace: collective operations, in the order of their codes.
constexpr auto phases = std::to_array<std::string_view>(
    {"barrier", "bcast", "reduce", "allreduce", "gather", "scatter", "allgather", "alltoall", "reduce_scatter"});

/// near_first: of a reduction the smallest subtree.
mpi::Shape shape_of(const Op& op) {
    const bool is_up = op.code == Code::reduce && op.algorithm == Algorithm::near_first;
    const bool has_digits = op.algorithm == Algorithm::k_nomial;
    return {is_up ? Algorithm::binomial : op.algorithm, op.n,
            std::clamp(static_cast<Rank>(op.k), has_digits ? 2U : 1U, has_digits ? 256U : mpi::any)};
}

/// The algorithm of a collective operation.
Task of_collective(mpi::Member me, const Op& op) {
    using enum Algorithm;
    using enum mpi::Carried;
    using enum mpi::Direction;
    const Algorithm algorithm = op.algorithm;
    const double vector = std::trunc(op.m);
    switch (op.code) {
    case Code::broadcast:
        return algorithm <= rabenseifner   ? mpi::along_tree(me, vector, op.peer, binomial, from_root, whole, true)
               : algorithm == split_binary ? mpi::broadcast_split_binary(me, vector, op.peer, op.n)
                                           : mpi::broadcast_tree(me, vector, op.peer, shape_of(op));
    case Code::reduce:
        return algorithm == rabenseifner  ? mpi::reduce_rabenseifner(me, vector, op.peer)
               : algorithm < rabenseifner ? mpi::along_tree(me, vector, op.peer, binomial, to_root)
               : algorithm == linear      ? mpi::along_tree(me, op.m, op.peer, linear, to_root, whole, true)
                                          : mpi::reduce_tree(me, vector, op.peer, shape_of(op));
    case Code::allreduce:
        return algorithm == binomial ? mpi::allreduce_binomial(me, vector)
               : algorithm == ring   ? mpi::allreduce_ring(me, vector)
                                     : mpi::allreduce_across_cube(me, vector, algorithm);
    case Code::gather:
        return algorithm == linear ? mpi::along_tree(me, op.m, op.peer, linear, to_root)
               : algorithm == linear_posted || algorithm == on_request
                   ? mpi::gather_posted(me, op.m, op.peer, algorithm == on_request, op.n)
                   : mpi::along_tree(me, op.m, op.peer, binomial, to_root, subtree);
    case Code::scatter:
        return algorithm == linear ? mpi::along_tree(me, op.m, op.peer, linear, from_root)
               : algorithm == linear_posted
                   ? mpi::broadcast_tree(me, vector, op.peer, {})
                   : mpi::along_tree(me, op.m, op.peer, binomial, from_root, subtree, algorithm != near_first);
    case Code::allgather:
        return algorithm == bruck                ? mpi::allgather_bruck(me, op.m)
               : algorithm == neighbours         ? mpi::allgather_neighbours(me, op.m)
               : algorithm == pairwise           ? mpi::alltoall_pairwise(me, op.m)
               : algorithm == recursive_doubling ? mpi::allgather_recursive_doubling(me, op.m)
                                                 : mpi::allgather_ring(me, op.m);
    case Code::alltoall:
        return algorithm == bruck           ? mpi::alltoall_bruck(me, op.m)
               : algorithm == linear_posted ? mpi::alltoall_linear(me, op.m, static_cast<Rank>(op.k))
               : algorithm == exclusive_or  ? mpi::alltoall_by_exclusive_or(me, op.m)
                                            : mpi::alltoall_pairwise(me, op.m);
    case Code::reduce_scatter:
        return algorithm == ring       ? mpi::reduce_scatter_ring(me, op.m)
               : algorithm == pairwise ? mpi::alltoall_pairwise(me, op.m)
                                       : mpi::reduce_scatter_halving(me, op.m, algorithm == butterfly);
    default:
        return algorithm == linear               ? mpi::barrier_linear(me)
               : algorithm == double_ring        ? mpi::barrier_double_ring(me)
               : algorithm == binomial           ? mpi::allreduce_binomial(me, 0.0)
               : algorithm == recursive_doubling ? mpi::barrier_recursive_doubling(me)
                                                 : mpi::barrier_dissemination(me);
    }
}

/// Of each communicator with operations that do not block, one for each member.
std::vector<Agent> agents_of(const Parameters& parameters) {
    std::vector<std::uint8_t> needed(parameters.communicators.size());
    for (const Op& op : parameters.ops) {
        if (is_collective(op.code) && op.tag != 0) {
            needed[op.which] = 1;
        }
    }
    std::vector<Agent> agents;
    for (std::uint32_t number = 0; number < needed.size(); ++number) {
        const std::vector<std::uint32_t>& ranks = parameters.communicators[number];
        for (std::uint32_t index = 0; needed[number] != 0 && index < ranks.size(); ++index) {
            agents.push_back({ranks[index], number, index});
        }
    }
    return agents;
}

/// Behind the request that the operation begins; 0: it begins none.
std::uint32_t requests_end(const Op& op) {
    if (op.code == Code::isend || op.code == Code::irecv) {
        return op.which + 1;
    }
    return is_collective(op.code) && op.tag != mpi::any ? op.tag : 0;
}

} // namespace

Result simulate(const Parameters& parameters, const models::Machine& machine, const models::Layers& layers,
                const std::vector<std::uint32_t>& core_of_rank, models::Seeds seeds, mpi::Trace trace,
                mpi::Progress* progress) {
    mpi::check_inputs(parameters, machine, core_of_rank.size());
    std::vector<std::uint32_t> nodes = mpi::nodes_of_ranks(machine, core_of_rank);
    Result result;
    const auto names = std::make_shared<Result::Names>(Result::Names{parameters.kernels, {}});
    names->views.assign(names->own.begin(), names->own.end());
    result.names = names;
    result.stage_names = phases;
    models::MachineDay day(machine, {.names = result.names->views, .first_stream = first_stream}, layers, seeds,
                           core_of_rank);
    const std::vector<Agent> agents = agents_of(parameters);
    std::vector<Rank> of_agents;
    for (const Agent& agent : agents) {
        of_agents.push_back(agent.of);
        nodes.push_back(nodes[agent.of]);
    }
    mpi::Engine engine(mpi::network_of_run(machine, layers, seeds.day), mpi::links_of_run(machine, layers, seeds.day),
                       std::move(nodes), seeds.run, layers.noise);
    engine.use_agents(std::move(of_agents));
    engine.trace() = std::move(trace);
    engine.report_to(progress);
    Program program(parameters, agents, engine, day, {parameters.lines, engine, seeds, layers});
    try {
        result.time_s = engine.run([&](Rank rank) { return program.run(rank); });
    } catch (const mpi::Deadlock&) {
        throw std::runtime_error(program.deadlock());
    }
    program.check_all_received();
    mpi::collect(result, engine, day);
    mpi::add_up_shares(result);
    return result;
}

Program::Program(const Parameters& parameters, const std::vector<Agent>& agents, mpi::Engine& engine,
                 models::MachineDay& day, MeasuredCalls measured)
    : parameters_(parameters), engine_(engine), day_(day), communicators_(parameters), agents_(agents),
      jobs_(agents.size()), agents_of_(parameters.communicators.size()), measured_(std::move(measured)),
      at_(parameters.ranks()), own_requests_(parameters.ranks(), 0) {
    for (std::size_t i = 0; i < agents.size(); ++i) {
        agents_of_[agents[i].communicator].ranks.push_back(static_cast<Rank>(parameters.ranks() + i));
    }
    engine.use_requests(parameters.by_date ? mpi::Matching::by_date : mpi::Matching::by_name);
    for (Rank rank = 0; rank < parameters.ranks(); ++rank) {
        for (const std::uint32_t number : parameters.rank_code[rank].ops) {
            own_requests_[rank] = std::max(own_requests_[rank], requests_end(parameters.ops[number]));
        }
    }
}

const Op* Program::advance(Rank rank) {
    if (parameters_.next) {
        return asked(rank);
    }
    const RankCode& code = parameters_.rank_code[rank];
    At& at = at_[rank];
    for (; at.part < code.parts.size(); ++at.part, at.done = 0) {
        const auto& [first, count, times] = code.parts[at.part];
        if (at.done < std::uint64_t{count} * times) {
            return &parameters_.ops[code.ops[first + static_cast<std::size_t>(at.done++ % count)]];
        }
    }
    return nullptr;
}

const Op* Program::asked(Rank rank) {
    At& at = at_[rank];
    std::vector<Came> came;
    if (at.op != nullptr &&
        (at.op->code == Code::receive || at.op->code == Code::waitall || at.op->code == Code::waitany)) {
        for (const std::uint32_t number : engine_.requests(rank).waited) {
            const mpi::Request& request = engine_.requests(rank).of[number];
            came.push_back(
                {number, request.receives ? request.peer : mpi::any, request.tag, request.nth, request.bytes});
        }
    } else if (at.op != nullptr && at.op->code == Code::probe) {
        const mpi::Request& found = engine_.requests(rank).probed;
        came.push_back({0, found.peer, found.tag, found.nth, found.bytes});
    }
    at.own = parameters_.next(rank, std::move(came));
    for (const std::vector<std::uint32_t>& members : at.own.communicators) {
        parameters_.check_communicator(members);
        communicators_.add(members);
    }
    if (!at.own.op) {
        return nullptr;
    }
    check_asked(rank, at.own);
    own_requests_[rank] = std::max(own_requests_[rank], requests_end(*at.own.op));
    return &*at.own.op;
}

Task Program::run(Rank rank) {
    if (rank >= parameters_.ranks()) {
        co_await run_agent(rank);
    }
    At& at = at_[rank];
    while ((at.op = advance(rank)) != nullptr) {
        engine_.look();
        const Op& op = *at.op;
        switch (op.code) {
        case Code::send:
            co_await engine_.send(rank, op.peer, op.tag, op.m);
            break;
        case Code::ssend:
            co_await engine_.send(rank, op.peer, op.tag, op.m, true);
            break;
        case Code::receive: {
            const std::array<std::uint32_t, 1> request{own_requests_[rank]};
            co_await engine_.irecv(rank, request[0], op.peer, op.tag, true);
            co_await engine_.wait_all(rank, request, mpi::Call::receive);
            break;
        }
        case Code::isend:
            co_await engine_.isend(rank, op.which, op.peer, op.tag, op.m);
            break;
        case Code::irecv:
            co_await engine_.irecv(rank, op.which, op.peer, op.tag);
            break;
        case Code::waitall: {
            const std::vector<std::uint32_t>& requests = list_of(rank, op).numbers;
            co_await engine_.wait_all(rank, requests, requests.size() == 1 ? mpi::Call::wait : mpi::Call::waitall);
            break;
        }
        case Code::waitany:
            co_await engine_.wait_any(rank, list_of(rank, op).numbers);
            break;
        case Code::probe:
            co_await engine_.await_message(rank, op.peer, op.tag);
            break;
        case Code::exchange:
            co_await exchange(rank, op);
            break;
        case Code::compute:
            mpi::call_kernel(engine_, day_, rank, models::KernelNumber(std::size_t{op.which}), {op.m, op.n, op.k});
            break;
        case Code::step:
            engine_.begin_step(rank, static_cast<std::int32_t>(at.step++));
            break;
        default:
            if (op.tag == 0) {
                co_await collective(rank, op);
            } else {
                begin_collective(rank, op);
            }
            break;
        }
    }
    at.ended = true;
}

// All MPI_Irecv, all MPI_Isend, MPI_Waitall.
Task Program::exchange(Rank rank, const Op& op) {
    const List& list = list_of(rank, op);
    const std::uint32_t first = own_requests_[rank];
    const auto count = static_cast<std::uint32_t>(list.numbers.size());
    for (std::uint32_t i = 0; i < count; ++i) {
        co_await engine_.irecv(rank, first + i, list.numbers[i], op.tag);
    }
    for (std::uint32_t i = 0; i < count; ++i) {
        co_await engine_.isend(rank, first + count + i, list.numbers[i], op.tag, list.bytes[i]);
    }
    std::vector<std::uint32_t> requests(std::size_t{2} * count);
    std::ranges::generate(requests, [number = first]() mutable { return number++; });
    co_await engine_.wait_all(rank, requests, mpi::Call::waitall);
}

void Program::begin_collective(Rank rank, const Op& op) {
    const Rank number = agents_of_[op.which].ranks[communicators_.membership(rank, op).index];
    if (op.tag != mpi::any) {
        engine_.open_request(rank, op.tag - 1, op.m);
    }
    Jobs& jobs = jobs_[number - parameters_.ranks()];
    jobs.begun.emplace_back(op, engine_.clock(rank));
    if (std::exchange(jobs.idle, false)) {
        engine_.begin_agent(number, engine_.clock(rank));
    }
}

Task Program::run_agent(Rank number) {
    const Agent& own = agents_[number - parameters_.ranks()];
    Jobs& jobs = jobs_[number - parameters_.ranks()];
    const mpi::Member me{engine_, agents_of_[own.communicator], own.index, mpi::first_collective_tag | own.communicator,
                         true};
    while (true) {
        if (jobs.begun.empty()) {
            jobs.idle = true;
            co_await engine_.be_idle(number);
        }
        const auto [op, date_s] = jobs.begun.front();
        jobs.begun.pop_front();
        const double wait_s = date_s - engine_.clock(number); // the operation before it may have ended earlier
        engine_.spend(number, mpi::Share::compute, std::max(0.0, wait_s));
        const mpi::Shares before_s = engine_.shares_s(number);
        if (me.communicator.size() > 1) {
            co_await of_collective(me, op);
        }
        if (op.tag != mpi::any) {
            const auto passed_s = [&](mpi::Share share) {
                return part(engine_.shares_s(number), share) - part(before_s, share);
            };
            engine_.end_request(own.of, op.tag - 1, engine_.clock(number), passed_s(mpi::Share::late),
                                passed_s(mpi::Share::overhead));
        }
    }
}

Task Program::collective(Rank rank, const Op& op) {
    const double start_s = engine_.clock(rank);
    const mpi::Member me{engine_,
                         communicators_.all[op.which],
                         communicators_.membership(rank, op).index,
                         mpi::first_collective_tag | op.which,
                         true,
                         own_requests_[rank]};
    if (op.algorithm == Algorithm::measured) {
        co_await measured_.call(me, op);
    } else if (me.communicator.size() > 1) {
        co_await of_collective(me, op);
    }
    mpi::trace_phase(engine_, rank, static_cast<int>(op.code) - static_cast<int>(Code::barrier),
                     {.start_s = start_s, .size_bytes = op.m});
}

} // namespace lepaute::program
