// Functions of many numbers, each by itself: ordinary ones in packs, a run of numbers that holds another (infinite,
// not a number, beyond the reach of the packs) by the standard library.
#pragma once
#include <cmath>

#include "elementary.hpp"
#include "engine.hpp"

namespace tkmeans::TKM_SET {

// `ordinary` masks the pack that begins at an index, `in_packs` does it, `alone` does one number.
template <class T, class Ordinary, class InPacks, class Alone>
TKM_INLINE void for_each_number(Index n, Ordinary ordinary, InPacks in_packs, Alone alone) {
    constexpr Index run = 64, size = Pack<T>::size;
    for (Index first = 0; first < n; first += run) {
        if (first + run <= n) {
            auto mask = ordinary(first);
            for (Index i = first + size; i < first + run; i += size) mask = mask & ordinary(i);
            if (all(mask)) {
                for (Index i = first; i < first + run; i += size) in_packs(i);
                continue;
            }
        }
        const Index end = first + run < n ? first + run : n;
        for (Index i = first; i < end; ++i) alone(i);
    }
}

// ln(1 + slope d) and 1 / (1 + slope d), both exact to a few units in the last place however small slope d is.
template <class T>
void bases(const T* d2, Index n, T slope, T* log_base, T* inverse) {
    constexpr T largest = sizeof(T) == 8 ? T(1e300) : T(1e30);
    const auto one = splat(T(1)), slopes = splat(slope);
    for_each_number<T>(
        n,
        [&](Index i) {
            const auto base = one + slopes * load(d2 + i);
            return (one <= base) & (base <= splat(largest));
        },
        [&](Index i) {
            const auto ratio = slopes * load(d2 + i), base = one + ratio;
            const auto [s, exponent, inverse_base] = reduce(base);
            const auto lost = (ratio - (base - one)) * inverse_base;  // by rounding 1 + ratio
            store(log_base + i, (exponent + Float<T>::log_series(s)) * splat(T(ln2)) + lost);
            store(inverse + i, inverse_base);
        },
        [&](Index i) {
            const T ratio = slope * d2[i];
            log_base[i] = std::log1p(ratio);
            inverse[i] = 1 / (1 + ratio);
        });
}

// e^(shift + factor v)
template <class T>
void exponentials(const T* values, Index n, T factor, T shift, T* out) {
    constexpr T least = sizeof(T) == 8 ? T(-708) : T(-87), largest = sizeof(T) == 8 ? T(709) : T(88);
    const auto factors = splat(factor), shifts = splat(shift);
    for_each_number<T>(
        n,
        [&](Index i) {
            const auto a = shifts + factors * load(values + i);
            return (splat(least) <= a) & (a <= splat(largest));
        },
        [&](Index i) { store(out + i, exp(shifts + factors * load(values + i))); },
        [&](Index i) { out[i] = std::exp(shift + factor * values[i]); });
}

}  // namespace tkmeans::TKM_SET
