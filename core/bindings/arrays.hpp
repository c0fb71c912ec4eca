#pragma once
// Values of the core as NumPy arrays.

#include <nanobind/ndarray.h>

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

/// Values that Python gives, in one piece of memory.
template <typename Value, std::size_t Dimensions>
using Input = nanobind::ndarray<const Value, nanobind::ndim<Dimensions>, nanobind::c_contig, nanobind::device::cpu>;

template <typename Array>
auto span_of(const Array& array) {
    return std::span(array.data(), array.size());
}

/// A NumPy array that owns `values`.
template <typename Value>
nanobind::ndarray<nanobind::numpy, Value> array_of(std::vector<Value> values, std::vector<std::size_t> shape) {
    auto held = std::make_unique<std::vector<Value>>(std::move(values));
    Value* const data = held->data();
    const nanobind::capsule owner(held.get(), [](void* kept) noexcept {
        const std::unique_ptr<std::vector<Value>> last(static_cast<std::vector<Value>*>(kept));
    });
    static_cast<void>(held.release()); // the capsule's now
    return nanobind::ndarray<nanobind::numpy, Value>(data, shape.size(), shape.data(), owner);
}
