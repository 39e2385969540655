// What the parts of the Python module share: arrays, checks, and the choice of an engine.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <stdexcept>
#include <string>

#include "engine.hpp"

namespace tkmeans {

template <class T>
using Matrix = nanobind::ndarray<T, nanobind::ndim<2>, nanobind::c_contig, nanobind::device::cpu>;
template <class T>
using Vector = nanobind::ndarray<T, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;

// What does not hold becomes a ValueError.
inline void require(bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(what);
}

const Engine& engine_named(const std::string& instruction_set);

void bind_search(nanobind::module_& m);
void bind_shapes(nanobind::module_& m);
void bind_sparse(nanobind::module_& m);

}  // namespace tkmeans
