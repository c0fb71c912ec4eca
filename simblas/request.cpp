#include "request.hpp"

#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <sstream>
#include <stdexcept>

namespace lepaute::simblas {

namespace {

using Line = std::istringstream;

std::string rest_of(Line& line) {
    std::string text;
    std::getline(line >> std::ws, text);
    return text;
}

/// The layers that are off, by name.
void read_without(Line& line, models::Layers& layers) {
    for (std::string name; line >> name;) {
        bool known = false;
        models::Layers::fields([&](const char* layer, auto field) {
            if (name == layer) {
                layers.*field = false;
                known = true;
            }
        });
        if (!known) {
            throw std::invalid_argument("has an unknown layer '" + name + "'");
        }
    }
    line.clear(); // it ends where there is no further name
}

template <typename Number>
void read_numbers(Line& line, std::vector<Number>& to) {
    to.assign(std::istream_iterator<Number>(line), std::istream_iterator<Number>());
    line.clear(); // it ends where there is no further number
}

using Keys = std::map<std::string, std::function<void(Line&, Request&)>>;

const Keys& keys() {
    static const Keys known = {
        {"seed", [](Line& line, Request& to) { line >> to.seeds.day >> to.seeds.run; }},
        {"without", [](Line& line, Request& to) { read_without(line, to.layers); }},
        {"cores", [](Line& line, Request& to) { read_numbers(line, to.core_of_rank); }},
        {"reference", [](Line& line, Request& to) { line >> to.reference.m >> to.reference.n >> to.reference.k; }},
        {"wtime", [](Line& line, Request& to) { line >> to.wtime_s; }},
        {"fold", [](Line& line, Request& to) { line >> to.fold_bytes >> to.fold_block_bytes >> to.fold_huge; }},
        {"private",
         [](Line& line, Request& to) {
             Request::Private kept;
             line >> kept.from >> kept.to;
             kept.where = rest_of(line);
             to.keep_private.push_back(std::move(kept));
         }},
        {"report", [](Line& line, Request& to) { to.report = rest_of(line); }},
        {"progress", [](Line& line, Request& to) { to.progress = rest_of(line); }},
        {"kernel_log", [](Line& line, Request& to) { to.kernel_log = rest_of(line); }},
        {"measures", [](Line& line, Request& to) { line >> to.measures >> to.charges; }},
        {"host_flops", [](Line& line, Request& to) { line >> to.host_flops; }},
        {"slowdown", [](Line& line, Request& to) { line >> to.slowdown; }},
        {"slowdown_from",
         [](Line& line, Request& to) {
             std::string place;
             line >> place;
             line >> to.slowdowns[place];
         }},
        {"puts_off", [](Line& line, Request& to) { line >> to.puts_off; }},
        {"rank_cpus", [](Line& line, Request& to) { read_numbers(line, to.rank_cpus); }},
        {"load_cpus", [](Line& line, Request& to) { read_numbers(line, to.load_cpus); }},
        {"sleeping_probes", [](Line& line, Request& to) { line >> to.sleeping_probes; }},
        {"own_factors", [](Line& line, Request& to) { line >> to.own_factors; }},
    };
    return known;
}

} // namespace

void read_request(const std::string& path, Request& request, models::Machine& machine) {
    std::ifstream file(path);
    if (!file) {
        throw std::invalid_argument("cannot be read");
    }
    for (std::string text; std::getline(file, text);) {
        Line line(text);
        std::string key;
        line >> key;
        if (key == "machine") {
            const std::string rest{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
            machine = models::machine_of_text(rest);
            return;
        }
        const auto found = keys().find(key);
        if (found == keys().end()) {
            throw std::invalid_argument("has an unknown key '" + key + "'");
        }
        found->second(line, request);
        if (line.fail()) {
            throw std::invalid_argument("has a bad line '" + text + "'");
        }
    }
    throw std::invalid_argument("ends before the machine");
}

} // namespace lepaute::simblas
