// Pack<T>: a handful of numbers that one instruction handles together.
//
// GCC and Clang get their vector extensions, other compilers plain loops of fixed
// length. TKM_SET names the instruction set, TKM_PACK_BYTES its register's width.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>

#if defined(__AVX__) || defined(__SSE2__)
#include <immintrin.h>
#endif

#if defined(__GNUC__)
#ifndef TKM_VECTORS
#define TKM_VECTORS 1
#endif
#define TKM_INLINE inline __attribute__((always_inline))
#define TKM_NOINLINE __attribute__((noinline))
#define TKM_UNROLL _Pragma("GCC unroll 16")
#else
#define TKM_VECTORS 0
#define TKM_INLINE __forceinline
#define TKM_NOINLINE __declspec(noinline)
#define TKM_UNROLL
#endif

namespace tkmeans::TKM_SET {

template <class T>
struct Pack {
    static constexpr int size = TKM_PACK_BYTES / sizeof(T);
#if TKM_VECTORS
    typedef T Lanes __attribute__((vector_size(TKM_PACK_BYTES)));
    typedef T Loose __attribute__((vector_size(TKM_PACK_BYTES), aligned(alignof(T))));  // in memory, anywhere
    Lanes lanes;
#else
    T lanes[size];
#endif
    TKM_INLINE T operator[](int lane) const { return lanes[lane]; }
};

// The integers of a number's width: masks, and access to sign, exponent and fraction.
template <class T>
struct BitsOf;
template <>
struct BitsOf<double> {
    using type = std::uint64_t;
};
template <>
struct BitsOf<float> {
    using type = std::uint32_t;
};
template <class T>
using Bits = typename BitsOf<T>::type;

template <class T>
TKM_INLINE Pack<T> load(const T* from) {
#if TKM_VECTORS
    return {*reinterpret_cast<const typename Pack<T>::Loose*>(from)};
#else
    Pack<T> a;
    std::memcpy(a.lanes, from, sizeof a);
    return a;
#endif
}

template <class T>
TKM_INLINE void store(T* to, Pack<T> a) {
#if TKM_VECTORS
    *reinterpret_cast<typename Pack<T>::Loose*>(to) = a.lanes;
#else
    std::memcpy(to, a.lanes, sizeof a);
#endif
}

// Asks for the cache line at `address`, which need not be readable.
TKM_INLINE void prefetch(const void* address) {
#if defined(__GNUC__)
    __builtin_prefetch(address, 0, 2);
#else
    (void)address;
#endif
}

template <class To, class From>
TKM_INLINE Pack<To> reinterpret(Pack<From> a) {
    Pack<To> b;
    std::memcpy(&b, &a, sizeof b);
    return b;
}

#if TKM_VECTORS

template <class T>
TKM_INLINE Pack<T> splat(T value) {
    return {value - typename Pack<T>::Lanes{}};
}

#define TKM_BINARY(op)                                     \
    template <class T>                                     \
    TKM_INLINE Pack<T> operator op(Pack<T> a, Pack<T> b) { \
        return {a.lanes op b.lanes};                       \
    }

#define TKM_COMPARISON(op)                                            \
    template <class T>                                                \
    TKM_INLINE Pack<Bits<T>> operator op(Pack<T> a, Pack<T> b) {      \
        return {(typename Pack<Bits<T>>::Lanes)(a.lanes op b.lanes)}; \
    }

#else

template <class T>
TKM_INLINE Pack<T> splat(T value) {
    Pack<T> a;
    for (int l = 0; l < Pack<T>::size; ++l) a.lanes[l] = value;
    return a;
}

#define TKM_BINARY(op)                                                                    \
    template <class T>                                                                    \
    TKM_INLINE Pack<T> operator op(Pack<T> a, Pack<T> b) {                                \
        for (int l = 0; l < Pack<T>::size; ++l) a.lanes[l] = T(a.lanes[l] op b.lanes[l]); \
        return a;                                                                         \
    }

#define TKM_COMPARISON(op)                                                                                           \
    template <class T>                                                                                               \
    TKM_INLINE Pack<Bits<T>> operator op(Pack<T> a, Pack<T> b) {                                                     \
        Pack<Bits<T>> mask;                                                                                          \
        for (int l = 0; l < Pack<T>::size; ++l) mask.lanes[l] = Bits<T>(a.lanes[l] op b.lanes[l] ? ~Bits<T>(0) : 0); \
        return mask;                                                                                                 \
    }

#endif

TKM_BINARY(+)
TKM_BINARY(-)
TKM_BINARY(*)
TKM_BINARY(/)
TKM_BINARY(|)
TKM_BINARY(&)
TKM_BINARY(<<)
TKM_BINARY(>>)
TKM_COMPARISON(<)
TKM_COMPARISON(<=)
#undef TKM_BINARY
#undef TKM_COMPARISON

// x where a < b, y elsewhere.
template <class T>
TKM_INLINE Pack<T> where_less(Pack<T> a, Pack<T> b, Pack<T> x, Pack<T> y) {
#if TKM_VECTORS
    return {a.lanes < b.lanes ? x.lanes : y.lanes};
#else
    for (int l = 0; l < Pack<T>::size; ++l) x.lanes[l] = a.lanes[l] < b.lanes[l] ? x.lanes[l] : y.lanes[l];
    return x;
#endif
}

template <class T>
TKM_INLINE Pack<T> min(Pack<T> a, Pack<T> b) {
    return where_less(a, b, a, b);
}

template <class T>
TKM_INLINE Pack<T> max(Pack<T> a, Pack<T> b) {
    return where_less(b, a, a, b);
}

// a where the mask is set, 0 elsewhere.
template <class T>
TKM_INLINE Pack<T> only_where(Pack<Bits<T>> mask, Pack<T> a) {
    return reinterpret<T>(mask & reinterpret<Bits<T>>(a));
}

// Is any lane of a mask set?
template <class B>
TKM_INLINE bool any(Pack<B> mask) {
#if TKM_VECTORS && defined(__AVX512DQ__) && TKM_PACK_BYTES == 64
    return _mm512_movepi64_mask((__m512i)mask.lanes) != 0 ||
           (sizeof(B) == 4 && _mm512_movepi32_mask((__m512i)mask.lanes) != 0);
#elif TKM_VECTORS && defined(__AVX__) && TKM_PACK_BYTES == 32
    return _mm256_movemask_ps((__m256)mask.lanes) != 0;
#elif TKM_VECTORS && defined(__SSE2__) && TKM_PACK_BYTES == 16
    return _mm_movemask_ps((__m128)mask.lanes) != 0;
#else
    B found = 0;
    for (int l = 0; l < Pack<B>::size; ++l) found |= mask[l];
    return found != 0;
#endif
}

template <class B>
TKM_INLINE bool all(Pack<B> mask) {
    return !any(splat(B(~B(0))) - mask);
}

// Roughly 1/sqrt(a) for 1 <= a <= 1e36: at least the first 11 bits.
template <class T>
TKM_INLINE Pack<T> rough_inverse_root(Pack<T> a) {
    constexpr bool wide = sizeof(T) == 8;
    (void)wide;
#if TKM_VECTORS && defined(__AVX512F__) && TKM_PACK_BYTES == 64
    if constexpr (wide) return {_mm512_maskz_rsqrt14_pd(0xff, a.lanes)};
    else return {_mm512_maskz_rsqrt14_ps(0xffff, a.lanes)};
#elif TKM_VECTORS && defined(__AVX__) && TKM_PACK_BYTES == 32
    if constexpr (wide) return {_mm256_cvtps_pd(_mm_rsqrt_ps(_mm256_cvtpd_ps(a.lanes)))};
    else return {_mm256_rsqrt_ps(a.lanes)};
#elif TKM_VECTORS && defined(__SSE2__) && TKM_PACK_BYTES == 16
    if constexpr (wide) return {_mm_cvtps_pd(_mm_rsqrt_ps(_mm_cvtpd_ps(a.lanes)))};
    else return {_mm_rsqrt_ps(a.lanes)};
#else
    for (int l = 0; l < Pack<T>::size; ++l) a.lanes[l] = T(1 / ::sqrt(double(a.lanes[l])));
    return a;
#endif
}

#if TKM_VECTORS

// One half of a butterfly: blocks of `Step` lanes change places between two packs.
template <int Step, bool High, class T, int... L>
TKM_INLINE Pack<T> exchange(Pack<T> a, Pack<T> b, std::integer_sequence<int, L...>) {
    constexpr int size = Pack<T>::size;
    if constexpr (High) return {__builtin_shufflevector(a.lanes, b.lanes, ((L & Step) ? size + L : (L | Step))...)};
    else return {__builtin_shufflevector(a.lanes, b.lanes, ((L & Step) ? size + (L ^ Step) : L)...)};
}

template <int Step = 1, class T>
TKM_INLINE void transpose(Pack<T>* rows) {
    constexpr int size = Pack<T>::size;
    if constexpr (Step < size) {
        using Lanes = std::make_integer_sequence<int, size>;
        TKM_UNROLL
        for (int i = 0; i < size; ++i) {
            if (i & Step) continue;
            const Pack<T> a = rows[i], b = rows[i | Step];
            rows[i] = exchange<Step, false>(a, b, Lanes{});
            rows[i | Step] = exchange<Step, true>(a, b, Lanes{});
        }
        transpose<2 * Step>(rows);
    }
}

// Of all lanes: one half is added to the other until a single one is left.
template <int Step = 0, class T>
TKM_INLINE T sum(Pack<T> a) {
    constexpr int half = (Step ? Step : Pack<T>::size) / 2;
    a = a + exchange<half, true>(a, a, std::make_integer_sequence<int, Pack<T>::size>{});
    if constexpr (half > 1) return sum<half>(a);
    else return a[0];
}

#else

template <class T>
TKM_INLINE T sum(Pack<T> a) {
    T total = 0;
    for (int l = 0; l < Pack<T>::size; ++l) total += a[l];
    return total;
}

template <class T>
TKM_INLINE void transpose(Pack<T>* rows) {
    constexpr int size = Pack<T>::size;
    for (int i = 0; i < size; ++i)
        for (int j = 0; j < i; ++j) {
            const T held = rows[i].lanes[j];
            rows[i].lanes[j] = rows[j].lanes[i];
            rows[j].lanes[i] = held;
        }
}

#endif

}  // namespace tkmeans::TKM_SET
