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

// ln(1 + slope d) and 1 / (1 + slope d), both to about ten units in the last place however small slope d is.
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

// e^(factor v). Powers between `least` and `largest` are normal numbers, those below `nothing` are 0.
template <class T>
void exponentials(const T* values, Index n, T factor, T* out) {
    constexpr bool wide = sizeof(T) == 8;
    const auto nothing = splat(T(wide ? -746 : -104)), least = splat(T(wide ? -708 : -87));
    const auto largest = splat(T(wide ? 709 : 88)), factors = splat(factor);
    for_each_number<T>(
        n,
        [&](Index i) {
            const auto a = factors * load(values + i);
            return ((a < nothing) | (least <= a)) & (a <= largest);
        },
        [&](Index i) {
            const auto a = factors * load(values + i);
            store(out + i, only_where(least <= a, exp(max(least, a))));
        },
        [&](Index i) { out[i] = std::exp(factor * values[i]); });
}

}  // namespace tkmeans::TKM_SET
