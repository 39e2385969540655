// Logarithm, exponential and powers of whole packs, accurate to a few units in the last place.
#pragma once
#include "simd.hpp"

namespace tkmeans::TKM_SET {

constexpr double ln2 = 0.69314718055994530942;

// How a floating-point number is laid out, and the polynomials that go with its precision.
template <class T>
struct Float;

template <>
struct Float<double> {
    static constexpr int fraction_bits = 52;
    static constexpr std::uint64_t bias = 1023;
    static constexpr std::uint64_t root_half = 0x3fe6a09e667f3bcd;     // sqrt(1/2)
    static constexpr std::uint64_t integer_bits = 0x4330000000000000;  // 2^52: its last bits count units
    static constexpr double integer = 4503599627370496.0;              // 2^52
    static constexpr double rounder = 6755399441055744.0;              // 1.5 * 2^52
    static constexpr double least_exponent = -1000;
    static constexpr double ln2_head = 0x1.62e42fefa3800p-1;   // so short that its multiples are exact
    static constexpr double ln2_tail = 0x1.ef35793c76730p-45;  // what it lacks

    // log2(m) of s = (m - 1)/(m + 1), |s| < 0.172
    static TKM_INLINE Pack<double> log_series(Pack<double> s) {
        const auto c = [](double value) { return splat(value); };
        const auto z = s * s, z2 = z * z;
        return s * (((c(0.32060793259718590) + z * c(0.2616710763030991)) + z2 * c(0.24057556100228045)) * (z2 * z2) +
               ((c(2.885390081777924) + z * c(0.9617966939287028)) +
                z2 * (c(0.5770780159654896) + z * c(0.41219855268090844))));
    }

    // 2^f, |f| <= 1/2
    static TKM_INLINE Pack<double> exp_series(Pack<double> f) {
        const auto c = [](double value) { return splat(value); };
        const auto f2 = f * f, f4 = f2 * f2;
        return ((c(1.0) + f * c(0.6931471805599511)) + f2 * (c(0.24022650695907333) + f * c(0.05550410866447271))) +
               f4 * ((c(0.009618129108570472) + f * c(0.0013333558221928121)) +
                     f2 * (c(0.00015403529287270069) + f * c(1.5252662629556823e-05))) +
               (f4 * f4) * ((c(1.3216014245642782e-06) + f * c(1.02076858752298e-07)) + f2 * c(6.9731663643324285e-09));
    }
};

template <>
struct Float<float> {
    static constexpr int fraction_bits = 23;
    static constexpr std::uint32_t bias = 127;
    static constexpr std::uint32_t root_half = 0x3f3504f3;
    static constexpr std::uint32_t integer_bits = 0x4b000000;
    static constexpr float integer = 8388608.0f;
    static constexpr float rounder = 12582912.0f;
    static constexpr float least_exponent = -120;
    static constexpr float ln2_head = 0x1.62e4p-1f;
    static constexpr float ln2_tail = 0x1.7f7d1cp-20f;

    // log2(m) of s = m - 1, -0.293 < s < 0.415
    static TKM_INLINE Pack<float> log_series(Pack<float> s) {
        const auto c = [](float value) { return splat(value); };
        const auto s2 = s * s;
        return s * (((c(1.4426949633f) + s * c(-0.7213471680f)) + s2 * (c(0.4809152725f) + s * c(-0.3607173325f))) +
                    (s2 * s2) * ((c(0.2878086965f) + s * c(-0.2386362668f)) +
                                 s2 * ((c(0.2163222167f) + s * c(-0.2093649297f)) + s2 * c(0.1268261020f))));
    }

    static TKM_INLINE Pack<float> exp_series(Pack<float> f) {
        const auto c = [](float value) { return splat(value); };
        const auto f2 = f * f;
        return ((c(1.0f) + f * c(0.6931472067106219f)) + f2 * (c(0.2402210735583102f) + f * c(0.055503272142058774f))) +
               (f2 * f2) * (c(0.00967603709784553f) + f * c(0.0013400432166515053f));
    }
};

// A number on its way to a logarithm: log2(a) = exponent + log_series(s).
template <class T>
struct Reduced {
    Pack<T> s, exponent;
    Pack<T> inverse;  // 1/a
};

// For normal numbers a > 0. In double precision (m - 1)/(m + 1) makes the series short and shares its
// division with 1/a; in single precision the series of m - 1 is short enough, and less work.
template <class T>
TKM_INLINE Reduced<T> reduce(Pack<T> a) {
    using F = Float<T>;
    using B = Bits<T>;
    // a = m * 2^exponent with m in [sqrt(1/2), sqrt(2))
    const auto above_root = reinterpret<B>(a) + splat(B((F::bias << F::fraction_bits) - F::root_half));
    const auto fraction_bits = splat(B(F::fraction_bits)), biased = above_root >> fraction_bits;
    const auto fraction = above_root & splat(B((B(1) << F::fraction_bits) - 1));
    const auto m = reinterpret<T>(fraction + splat(B(F::root_half)));
    const auto exponent = reinterpret<T>(biased | splat(B(F::integer_bits))) - splat(T(F::integer + T(F::bias)));
    const auto one = splat(T(1));
    if constexpr (sizeof(T) == 4) {
        return {m - one, exponent, one / a};
    } else {
        const auto power = reinterpret<T>((splat(B(2 * F::bias)) - biased) << fraction_bits);  // 2^-exponent
        const auto above = m + one;
        const auto quotient = one / (m * above);
        return {(m - one) * (m * quotient), exponent, (quotient * above) * power};
    }
}

template <class T>
TKM_INLINE Pack<T> log2(Pack<T> a) {
    const auto r = reduce(a);
    return r.exponent + Float<T>::log_series(r.s);
}

// a * 2^n, where `shifted` is n + rounder.
template <class T>
TKM_INLINE Pack<T> times_power(Pack<T> a, Pack<T> shifted) {
    using B = Bits<T>;
    return reinterpret<T>(reinterpret<B>(a) + (reinterpret<B>(shifted) << splat(B(Float<T>::fraction_bits))));
}

// 2^a for a <= 0; what would be far below the smallest normal number becomes a tiny positive one.
template <class T>
TKM_INLINE Pack<T> exp2(Pack<T> a) {
    using F = Float<T>;
    a = max(splat(T(F::least_exponent)), a);
    const auto rounder = splat(T(F::rounder));
    const auto shifted = a + rounder;
    return times_power(F::exp_series(a - (shifted - rounder)), shifted);
}

// e^a for a whose power is a normal number. The remainder of a by ln 2 takes two steps: a/ln 2 as it stands would have
// lost as many digits as a has before the point.
template <class T>
TKM_INLINE Pack<T> exp(Pack<T> a) {
    using F = Float<T>;
    const auto rounder = splat(T(F::rounder));
    const auto shifted = a * splat(T(1 / ln2)) + rounder;
    const auto whole = shifted - rounder;
    const auto rest = (a - whole * splat(T(F::ln2_head))) - whole * splat(T(F::ln2_tail));
    return times_power(F::exp_series(rest * splat(T(1 / ln2))), shifted);
}

// 1/sqrt(a) for 1 <= a <= 1e36, without a division or a square root: a rough value r and as
// many terms of 1/sqrt(1 - error) as the type is long, where error = 1 - a r^2 < 2^-10.
template <class T>
TKM_INLINE Pack<T> inverse_root(Pack<T> a) {
    const auto c = [](double value) { return splat(T(value)); };
    const auto root = rough_inverse_root(a);
    const auto error = c(1) - (a * root) * root;
    auto series = c(1.0 / 2) + error * c(3.0 / 8);
    if constexpr (sizeof(T) == 8) series = series + (error * error) * (c(5.0 / 16) + error * c(35.0 / 128));
    return root + (root * error) * series;
}

// a^n of several packs, which share the walk over the bits of n.
template <int Count, class T>
TKM_INLINE void raise(Pack<T> (&a)[Count], int n) {
    Pack<T> result[Count];
    TKM_UNROLL
    for (int i = 0; i < Count; ++i) result[i] = n & 1 ? a[i] : splat(T(1));
    while (n >>= 1) {
        TKM_UNROLL
        for (int i = 0; i < Count; ++i) a[i] = a[i] * a[i];
        if (n & 1) {
            TKM_UNROLL
            for (int i = 0; i < Count; ++i) result[i] = result[i] * a[i];
        }
    }
    TKM_UNROLL
    for (int i = 0; i < Count; ++i) a[i] = result[i];
}

}  // namespace tkmeans::TKM_SET
