// Loops over blocks whose size the compiler knows.
#pragma once
#include <type_traits>

#include "engine.hpp"
#include "simd.hpp"

namespace tkmeans::TKM_SET {

// Splits `total` into the fewest runs of at most `longest`, as even as possible: uneven
// ones would leave the arithmetic units waiting in the short last run.
template <class Body>
TKM_INLINE void even_runs(Index total, Index longest, Body body) {
    const Index runs = (total + longest - 1) / longest;
    for (Index r = 0; r < runs; ++r) {
        const Index begin = total * r / runs, end = total * (r + 1) / runs;
        body(begin, end - begin);
    }
}

// Runs a body with a count known at compile time, 1 to `Most`.
template <int Most, class Body>
TKM_INLINE void with_count(Index count, Body body) {
    if constexpr (Most > 1)
        if (count < Most) return with_count<Most - 1>(count, body);
    body(std::integral_constant<int, Most>{});
}

}  // namespace tkmeans::TKM_SET
