// What the parts of the Python module share: arrays, checks, and the choice of an engine.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <stdexcept>
#include <string>

#include "engine.hpp"

namespace tkmeans {

namespace nb = nanobind;
using namespace nb::literals;

template <class T>
using Matrix = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Vector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// What does not hold becomes a ValueError.
inline void require(bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(what);
}

const Engine& engine_named(const std::string& instruction_set);

template <class In>
const Functions<In>& functions(const std::string& instruction_set) {
    if constexpr (sizeof(In) == 8) return engine_named(instruction_set).f64;
    else return engine_named(instruction_set).f32;
}

void bind_search(nb::module_& m);
void bind_shapes(nb::module_& m);
void bind_sparse(nb::module_& m);

}  // namespace tkmeans
