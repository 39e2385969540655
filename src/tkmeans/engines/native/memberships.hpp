// The E-step of one tile: tau and u of every pair (eqn:tau, eqn:u_nk).
//
// With y = slope * D and base = 1 + y a cluster's share of a row is
// f = pi * base^-exponent, tau = f / sum of f, and u = gain / base.
// Logarithms are binary until they leave the engine.
#pragma once
#include "elementary.hpp"
#include "pairs.hpp"

namespace tkmeans::TKM_SET {

// A `Model` in the type the tile is computed in.
template <class T>
struct Kernel {
    Kernel(const Model& model);

    const Model& model;
    T slope;
    double log_weight_max;
    Line<T> log2_weight;  // (K,) of pi / max pi
    Line<T> weight;       // (K,) pi / max pi
    T log2_weight_min;
    Line<T> exponent;  // (p + 1,)
    bool precise;      // does exponent * rounding(base) spoil the membership?
};

// Everything about the pairs of one tile.
template <class T>
struct EStep {
    EStep(Index clusters, Index capacity)
        : pairs_(clusters, 4 * capacity), y(pairs_, 0 * capacity), trust(pairs_, 1 * capacity), log_base(pairs_, 2 * capacity),
          f(pairs_, 3 * capacity), y_min(capacity), top(capacity), total(capacity), spread(capacity), exponent(capacity) {}

   private:
    // The four numbers of a cluster's pairs lie side by side: arrays of their own, a multiple of
    // 4096 bytes apart, would get in each other's way.
    Grid<T> pairs_;

   public:
    const View<T> y;         // (K, rows) slope * D
    const View<T> trust;     // 1 / base, that is u / gain
    const View<T> log_base;  // log2 of base
    const View<T> f;         // share relative to 2^top
    Line<T> y_min;           // (rows,)
    Line<T> top;             // log2 of the largest share
    Line<T> total;           // sum of f over clusters
    Line<T> spread;          // sum of f log2(f)
    Line<T> exponent;        // by the row's number of observed features
};

template <class T>
Kernel<T>::Kernel(const Model& model_)
    : model(model_),
      slope(T(model.slope)),
      log_weight_max(model.log_weights[0]),
      log2_weight(model.clusters),
      weight(model.clusters),
      log2_weight_min(0),
      exponent(model.features + 1) {
    constexpr double vanishing = -2000;  // 2 to this power is 0 in either type
    for (Index k = 0; k < model.clusters; ++k)
        if (model.log_weights[k] > log_weight_max) log_weight_max = model.log_weights[k];
    for (Index k = 0; k < model.clusters; ++k) {
        const double relative = (model.log_weights[k] - log_weight_max) / ln2;
        log2_weight[k] = T(relative > vanishing ? relative : vanishing);
        weight[k] = T(::exp2(double(log2_weight[k])));
        if (log2_weight[k] < log2_weight_min) log2_weight_min = log2_weight[k];
    }
    for (Index p = 0; p <= model.features; ++p) exponent[p] = T(model.exponent[p]);
    precise = model.exponent[model.features] > (sizeof(T) == 8 ? 100 : 16);
}

// Logarithms, and the largest share of each row.
template <bool Precise, class T, class Pairs>
void take_logarithms(const Kernel<T>& kernel, const Pairs& pairs, EStep<T>& e) {
    const auto one = splat(T(1));
    for (Index k = 0; k < kernel.model.clusters; ++k) {
        const T* y_k = e.y[k];
        T *trust_k = e.trust[k], *log_base_k = e.log_base[k], *f_k = e.f[k];
        const auto log2_weight = splat(kernel.log2_weight[k]);
        for (Index q = pairs.begin(k); q < pairs.end(k); ++q) {
            const Index i = pairs.row(q);
            const auto y = load(y_k + i), base = one + y;
            const auto [log2_base, inverse] = log2_and_inverse(base);
            auto log_base = log2_base;
            if constexpr (Precise) log_base = log_base + (y - (base - one)) * inverse * splat(T(1 / ln2));  // log1p
            const auto log_f = log2_weight - load(&e.exponent[i]) * log_base;
            store(trust_k + i, inverse);
            store(log_base_k + i, log_base);
            store(f_k + i, log_f);
            store(&e.top[i], max(load(&e.top[i]), log_f));
        }
    }
}

template <class T, class Pairs>
void take_exponentials(const Kernel<T>& kernel, const Pairs& pairs, EStep<T>& e) {
    for (Index k = 0; k < kernel.model.clusters; ++k) {
        T* f_k = e.f[k];
        for (Index q = pairs.begin(k); q < pairs.end(k); ++q) {
            const Index i = pairs.row(q);
            const auto log_f = load(f_k + i) - load(&e.top[i]);
            const auto f = exp2(log_f);
            store(f_k + i, f);
            store(&e.total[i], load(&e.total[i]) + f);
            store(&e.spread[i], load(&e.spread[i]) + f * log_f);
        }
    }
}

// 2 * exponent, if it is a whole number small enough for repeated multiplication to be
// the shorter way, and no weight so small that a row's shares could all vanish; else 0.
template <class T>
int whole_halves(const Kernel<T>& kernel) {
    const double halves = 2 * kernel.model.exponent[kernel.model.features];
    const bool whole = halves == ::floor(halves) && halves <= 4096;
    return whole && kernel.log2_weight_min > (sizeof(T) == 8 ? -400 : -40) ? int(halves) : 0;
}

// f = pi (base_min / base)^exponent by multiplications; log_base and spread stay unknown.
template <int N, class T, class Pairs>
TKM_INLINE void multiply_out(T weight, int halves, const Pairs& pairs, Index q, Index k, EStep<T>& e) {
    Pack<T> ratio[N];
    TKM_UNROLL
    for (int n = 0; n < N; ++n) {
        const Index i = pairs.row(q + n);
        const auto inverse = splat(T(1)) / (splat(T(1)) + load(e.y[k] + i));
        store(e.trust[k] + i, inverse);
        ratio[n] = (splat(T(1)) + load(&e.y_min[i])) * inverse;
    }
    half_power(ratio, halves);
    TKM_UNROLL
    for (int n = 0; n < N; ++n) {
        const Index i = pairs.row(q + n);
        const auto f = splat(weight) * ratio[n];
        store(e.f[k] + i, f);
        store(&e.total[i], load(&e.total[i]) + f);
    }
}

template <class T, class Pairs>
void take_powers(const Kernel<T>& kernel, int halves, const Pairs& pairs, Index packs, EStep<T>& e) {
    for (Index k = 0; k < kernel.model.clusters; ++k) {
        Index q = pairs.begin(k);
        for (; q + 2 <= pairs.end(k); q += 2) multiply_out<2>(kernel.weight[k], halves, pairs, q, k, e);
        for (; q < pairs.end(k); ++q) multiply_out<1>(kernel.weight[k], halves, pairs, q, k, e);
    }
    for (Index v = 0; v < packs; ++v) {
        const Index i = v * Pack<T>::size;
        const auto base_min = splat(T(1)) + load(&e.y_min[i]);
        store(&e.top[i], splat(T(0)) - load(&e.exponent[i]) * log2_and_inverse(base_min).log2);
    }
}

// Shares of all pairs, not yet divided by their total. `halves` as whole_halves() says, or 0.
template <class T, class Pairs>
void weigh(const Tile<T>& tile, const Kernel<T>& kernel, int halves, const Pairs& pairs, EStep<T>& e) {
    const Index packs = tile.panels() * 2, rows = packs * Pack<T>::size;
    for (Index i = 0; i < rows; ++i) {
        e.exponent[i] = kernel.exponent[tile.n_observed(i)];
        e.top[i] = -farthest<T>;
        e.total[i] = e.spread[i] = 0;
    }
    if (halves && !tile.missing()) return take_powers(kernel, halves, pairs, packs, e);
    if (kernel.precise) take_logarithms<true>(kernel, pairs, e);
    else take_logarithms<false>(kernel, pairs, e);
    take_exponentials(kernel, pairs, e);
}

}  // namespace tkmeans::TKM_SET
