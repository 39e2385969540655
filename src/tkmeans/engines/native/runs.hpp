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

// Runs a body with a count known at compile time, 1 to 6.
template <class Body>
TKM_INLINE void with_count(Index count, Body body) {
    switch (count) {
        case 1: return body(std::integral_constant<int, 1>{});
        case 2: return body(std::integral_constant<int, 2>{});
        case 3: return body(std::integral_constant<int, 3>{});
        case 4: return body(std::integral_constant<int, 4>{});
        case 5: return body(std::integral_constant<int, 5>{});
        default: return body(std::integral_constant<int, 6>{});
    }
}

}  // namespace tkmeans::TKM_SET
