#pragma once
// The fields of a struct as attributes of its Python class, by the names under which the struct visits them. What
// has words is its word; another word raises ValueError with the choices.

#include "models/words.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

/// Adds all fields of `Owner`, and choices(): the words of each field that has words.
template <class Owner>
void def_fields(nanobind::class_<Owner>& bound) {
    std::map<std::string, std::vector<std::string>> choices;
    Owner::fields([&]<class Value>(const char* name, Value Owner::*field, auto... /*bounds*/) {
        if constexpr (lepaute::Worded<Value>) {
            bound.def_prop_rw(
                name, [field](const Owner& owner) { return lepaute::word_of(owner.*field); },
                [field, name](Owner& owner, std::string_view word) {
                    owner.*field = lepaute::of_word<Value>(name, word);
                });
            for (const auto& one : words_of(Value{})) {
                choices[name].emplace_back(one.word);
            }
        } else {
            bound.def_rw(name, field);
        }
    });
    if (!choices.empty()) {
        bound.def_static(
            "choices", [choices] { return choices; }, "The words of each attribute that is one of several.");
    }
}
