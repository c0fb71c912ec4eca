// What a program that was laid down must hold, and what is said of one whose ranks do not go together.

#include "apps/program/simulation.hpp"

#include <algorithm>
#include <map>

namespace lepaute::program {

using mpi::Rank;

namespace {

constexpr double most_bytes = 1e15;
constexpr double most_sd = 10.0; // of the logarithm of a measured operation
constexpr std::size_t most_named = 6;

/// Throws std::invalid_argument for a number that numbers none of `count`.
void below(std::string_view name, std::uint32_t number, std::size_t count) {
    if (number >= count) {
        refuse(name, text_of(number), "there are " + text_of(count));
    }
}

std::string peer_text(std::uint32_t peer, std::uint32_t tag) {
    const std::string rank = peer == mpi::any ? "any rank" : "rank " + text_of(peer);
    return rank + (tag == mpi::any ? ", any tag" : ", tag " + text_of(tag));
}

std::string call_text(Rank rank, const std::string& call) { return "rank " + text_of(rank) + " calls " + call; }

bool same(const Op& one, const Op& other) {
    return one.code == other.code && one.algorithm == other.algorithm && one.peer == other.peer && one.m == other.m &&
           one.n == other.n && one.k == other.k && (one.tag == 0) == (other.tag == 0);
}

} // namespace

std::string Parameters::named(const Op& op) const {
    return std::string(word_of(op.code)) + " (" + (line_of ? line_of(op.line) : lines[op.line]) + ")";
}

std::string Parameters::agreed(const Op& op) const {
    const bool has_root =
        op.code == Code::broadcast || op.code == Code::reduce || op.code == Code::gather || op.code == Code::scatter;
    std::string text(op.tag == 0 ? "" : "nonblocking ");
    text += word_of(op.code);
    text += op.code == Code::barrier ? "" : " of " + text_of(op.m) + " bytes";
    text += has_root ? ", root " + text_of(op.peer) : "";
    text += op.algorithm == Algorithm::usual ? "" : ", " + std::string(word_of(op.algorithm));
    return text + " (" + (line_of ? line_of(op.line) : lines[op.line]) + ")";
}

void Parameters::check_communicator(const std::vector<std::uint32_t>& members) const {
    check_number("communicators", members.size(), std::size_t{1}, ranks());
    for (const std::uint32_t rank : members) {
        check_number("communicators", rank, 0U, static_cast<std::uint32_t>(ranks()) - 1);
    }
    std::vector<std::uint32_t> sorted(members);
    std::ranges::sort(sorted);
    if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end()) {
        refuse("communicators", "with rank " + text_of(*twice) + " twice", "each member is in it once");
    }
}

void Parameters::check_op(const Op& op, const List& list, std::size_t members) const {
    for (const double amount : {op.m, op.n, op.k}) {
        check_number("ops", amount, 0.0, most_bytes);
    }
    if (is_collective(op.code)) {
        below("ops.peer", op.peer, members);
        check_number("ops.k", op.k, 0.0, static_cast<double>(most_requests));
        if (op.algorithm == Algorithm::measured) {
            check_number("ops.n", op.n, 0.0, most_sd);
            check_number("ops.error", op.error, 0.0, most_sd);
            check_number("ops.tag", op.tag, 0U, 0U);
            below("ops.line", op.line, lines.size());
        } else {
            check_number("ops.n", op.n > 0.0 ? op.m / op.n : 0.0, 0.0, static_cast<double>(most_requests));
        }
        if (op.tag != 0) { // step by step they block
            check_number("ops.tag", op.tag == mpi::any ? 1U : op.tag, 1U, next ? 0U : most_requests);
        }
    } else if (op.code == Code::compute) {
        below("ops.which", op.which, kernels.size());
    } else if (op.code == Code::exchange) {
        below("ops.tag", op.tag, mpi::first_collective_tag);
        if (list.bytes.size() != list.numbers.size()) {
            refuse("lists", "of " + text_of(list.bytes.size()) + " sizes", "each neighbour has one");
        }
        for (std::size_t i = 0; i < list.numbers.size(); ++i) {
            below("lists.numbers", list.numbers[i], ranks());
            check_number("lists.bytes", list.bytes[i], 0.0, most_bytes);
        }
    } else if (op.code != Code::step && op.code != Code::waitall && op.code != Code::waitany) {
        const bool receives = op.code == Code::receive || op.code == Code::irecv || op.code == Code::probe;
        if (!(receives && op.peer == mpi::any)) {
            below("ops.peer", op.peer, ranks());
        }
        if (!(receives && op.tag == mpi::any)) {
            below("ops.tag", op.tag, mpi::first_collective_tag);
        }
        check_number("ops.which", op.which, 0U, most_requests);
    }
}

void Parameters::check() const {
    check_number("rank_code", std::size_t{ranks()}, 1, most_ranks);
    check_number("step_count", step_count, 1U, 0x7FFFFFFFU);
    for (const std::vector<std::uint32_t>& members : communicators) {
        check_communicator(members);
    }
    for (const Op& op : ops) {
        below("ops.line", op.line, lines.size());
        const bool has_list = op.code == Code::waitall || op.code == Code::waitany || op.code == Code::exchange;
        if (has_list) {
            below("ops.which", op.which, lists.size());
        }
        if (is_collective(op.code)) {
            below("ops.which", op.which, communicators.size());
        }
        check_op(op, has_list ? lists[op.which] : List{}, is_collective(op.code) ? communicators[op.which].size() : 0);
    }
    for (const RankCode& code : rank_code) {
        for (const std::uint32_t op : code.ops) {
            below("rank_code.ops", op, ops.size());
        }
        for (const auto& [first, count, times] : code.parts) {
            if (count == 0 || count > code.ops.size() || first > code.ops.size() - count || times == 0) {
                refuse("rank_code.parts", "of " + text_of(count) + " operations from " + text_of(first),
                       "there are " + text_of(code.ops.size()));
            }
        }
    }
}

Communicators::Communicators(const Parameters& program) : memberships(program.ranks()), parameters(program) {
    std::ranges::for_each(program.communicators, [this](const auto& ranks) { add(ranks); });
}

void Communicators::add(const std::vector<std::uint32_t>& ranks) {
    for (std::uint32_t index = 0; index < ranks.size(); ++index) {
        memberships[ranks[index]].push_back({static_cast<std::uint32_t>(all.size()), index});
    }
    all.push_back({ranks});
    first_calls.emplace_back();
}

Membership& Communicators::membership(Rank rank, const Op& op) {
    const auto found = std::ranges::find(memberships[rank], op.which, &Membership::communicator);
    if (found == memberships[rank].end()) {
        throw std::invalid_argument(call_text(rank, parameters.named(op)) + " of a communicator that it is not in");
    }
    return *found;
}

std::string Communicators::call(Rank rank, const Op& op) {
    const std::size_t nth = membership(rank, op).calls++;
    std::vector<std::pair<Rank, Op>>& known = first_calls[op.which];
    if (nth == known.size()) {
        known.emplace_back(rank, op);
    }
    const auto& [other, first] = known[nth];
    return same(first, op)
               ? ""
               : call_text(rank, parameters.agreed(op)) + " where " + call_text(other, parameters.agreed(first));
}

void Parameters::check_together() const {
    Communicators called(*this);
    std::vector<Rank> lowest(communicators.size(), mpi::any); // member of each, which calls first
    const auto left_out = [this](Rank rank, const Op& op, Rank other) {
        return std::invalid_argument(call_text(rank, agreed(op)) + ", which rank " + text_of(other) + " leaves out");
    };
    for (Rank rank = 0; rank < ranks(); ++rank) {
        for (const Membership& own : called.memberships[rank]) {
            lowest[own.communicator] = std::min(lowest[own.communicator], rank);
        }
        const RankCode& code = rank_code[rank];
        for (const auto& [first, count, times] : code.parts) {
            for (std::uint64_t i = 0; i < std::uint64_t{count} * times; ++i) {
                const Op& op = ops[code.ops[first + static_cast<std::size_t>(i % count)]];
                if (!is_collective(op.code)) {
                    continue;
                }
                const bool is_more = called.membership(rank, op).calls == called.first_calls[op.which].size();
                if (is_more && rank != lowest[op.which]) {
                    throw left_out(rank, op, lowest[op.which]);
                }
                if (const std::string differs = called.call(rank, op); !differs.empty()) {
                    throw std::invalid_argument(differs);
                }
            }
        }
        for (const Membership& own : called.memberships[rank]) {
            const auto& known = called.first_calls[own.communicator];
            if (own.calls < known.size()) {
                throw left_out(known[own.calls].first, known[own.calls].second, rank);
            }
        }
    }
}

void Program::check_asked(Rank rank, const Next& next) {
    const Op& op = *next.op;
    if (!is_collective(op.code)) {
        parameters_.check_op(op, next.list, 0);
        return;
    }
    below("ops.which", op.which, communicators_.all.size());
    parameters_.check_op(op, next.list, communicators_.all[op.which].size());
    if (const std::string differs = communicators_.call(rank, op); !differs.empty()) {
        throw std::runtime_error(differs);
    }
}

std::string Program::waiting(Rank rank) const {
    const Op& op = *at_[rank].op;
    std::string call = parameters_.named(op);
    if (op.code == Code::send || op.code == Code::ssend) {
        return call + " to " + peer_text(op.peer, op.tag);
    }
    if (op.code == Code::receive || op.code == Code::probe) {
        return call + " from " + peer_text(op.peer, op.tag);
    }
    if (op.code == Code::waitall || op.code == Code::waitany || op.code == Code::exchange) {
        for (const std::uint32_t number : engine_.requests(rank).waited) {
            const mpi::Request& request = engine_.requests(rank).of[number];
            if (request.state == mpi::Request::State::open) {
                const bool of_message = request.receives || request.peer != mpi::any;
                return call + " for " +
                       (!of_message ? "a collective operation"
                                    : (request.receives ? "a receive from " : "a send to ") +
                                          peer_text(request.peer, request.tag));
            }
        }
    }
    return call;
}

std::string Program::deadlock() const {
    std::map<std::string, std::vector<Rank>> ranks_of; // who waits alike
    for (Rank rank = 0; rank < at_.size(); ++rank) {
        if (!at_[rank].ended) {
            ranks_of[waiting(rank)].push_back(rank);
        }
    }
    std::map<std::vector<Rank>, std::string> in_order;
    for (const auto& [call, ranks] : ranks_of) {
        in_order.emplace(ranks, call);
    }
    std::string text = "deadlock:";
    std::size_t named = 0;
    for (const auto& [ranks, call] : in_order) {
        if (named++ == most_named) {
            return text + "; ...";
        }
        text += named == 1 ? " rank " : "; rank ";
        text += text_of(ranks.front());
        text += ranks.size() > 1 ? " and " + text_of(ranks.size() - 1) + (ranks.size() > 2 ? " others" : " other") : "";
        text += " in " + call;
    }
    return text;
}

void Program::check_all_received() const {
    if (const auto message = engine_.unreceived()) {
        std::string from = "a send";
        for (const std::uint32_t number : parameters_.rank_code[message->from].ops) {
            const Op& op = parameters_.ops[number];
            const bool sends = op.code == Code::send || op.code == Code::ssend || op.code == Code::isend;
            const bool exchanges =
                op.code == Code::exchange && std::ranges::count(parameters_.lists[op.which].numbers, message->to) > 0;
            if (((sends && op.peer == message->to) || exchanges) && op.tag == message->tag) {
                from = parameters_.named(op);
            }
        }
        throw std::runtime_error("rank " + text_of(message->to) + " never receives " + text_of(message->bytes) +
                                 " bytes from rank " + text_of(message->from) + ", tag " + text_of(message->tag) +
                                 ", of " + from);
    }
    for (Rank rank = 0; rank < at_.size(); ++rank) {
        const mpi::RankRequests& requests = engine_.requests(rank);
        if (requests.unmatched.empty()) {
            continue;
        }
        const mpi::Unmatched& receive = requests.unmatched.front();
        for (const std::uint32_t number : parameters_.rank_code[rank].ops) {
            const Op& op = parameters_.ops[number];
            if (op.code == Code::irecv && op.which == receive.request) {
                throw std::runtime_error("rank " + text_of(rank) + " never gets what it receives from " +
                                         peer_text(receive.peer, receive.tag) + " by " + parameters_.named(op));
            }
        }
    }
}

} // namespace lepaute::program
