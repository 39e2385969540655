// The E-step of one tile: tau and u of every pair (eqn:tau, eqn:u_nk).
//
// With base = 1 + slope * D a cluster's share of a row is f = pi * base^-exponent, tau = f / sum of f, and u = gain /
// base. Logarithms are binary until they leave the engine.
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
        : pairs_(clusters, 4 * capacity + line_bytes / Index(sizeof(T))),
          d2(pairs_, 0 * capacity),
          relative_u(pairs_, 1 * capacity),
          log_base(pairs_, 2 * capacity),
          f(pairs_, 3 * capacity),
          d2_min(capacity),
          root_min(capacity),
          top(capacity),
          total(capacity),
          f_log_f(capacity),
          exponent(capacity) {}

 private:
    // The four numbers of a cluster's pairs lie side by side, and a cache line keeps clusters off
    // a distance of 4096 bytes: at that distance they would get in each other's way.
    Grid<T> pairs_;

 public:
    const View<T> d2;          // (K, rows) D
    const View<T> relative_u;  // u / gain, that is 1 / base
    const View<T> log_base;    // log2 of base
    const View<T> f;           // share relative to 2^top
    Line<T> d2_min;            // (rows,)
    Line<T> root_min;          // square root of the least base
    Line<T> top;               // log2 of the largest share
    Line<T> total;             // sum of f over clusters
    Line<T> f_log_f;           // sum of f log2(f)
    Line<T> exponent;          // by the row's number of observed features
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
        weight[k] = relative == 0 ? T(1) : T(::exp2(double(log2_weight[k])));
        if (log2_weight[k] < log2_weight_min) log2_weight_min = log2_weight[k];
    }
    for (Index p = 0; p <= model.features; ++p) exponent[p] = T(model.exponent[p]);
    precise = model.exponent[model.features] > (sizeof(T) == 8 ? 100 : 16);
}

// Logarithms of one cluster, and the largest share of each row so far.
template <bool Precise, class T, class Pairs>
void take_logarithms(T slope_k, T log2_weight_k, const Pairs& pairs, Index k, EStep<T>& e) {
    const auto one = splat(T(1)), slope = splat(slope_k), log2_weight = splat(log2_weight_k);
    T *top = &e.top[0], *exponent = &e.exponent[0];
    T *d2_k = e.d2[k], *relative_u_k = e.relative_u[k], *log_base_k = e.log_base[k], *f_k = e.f[k];
    // In two loops, because the whole chain of operations is longer than what a processor keeps
    // in flight: it would wait for the division.
    for (Index q = pairs.begin(k); q < pairs.end(k); ++q) {
        const Index i = pairs.row(q);
        const auto d2 = load(d2_k + i), base = base_of(d2, slope);
        auto [s, log_base, inverse] = reduce(base);
        // What base has lost by rounding: without it a large exponent would magnify the loss.
        if constexpr (Precise) log_base = log_base + (slope * d2 - (base - one)) * inverse * splat(T(1 / ln2));
        store(f_k + i, s);
        store(log_base_k + i, log_base);
        store(relative_u_k + i, inverse);
    }
    for (Index q = pairs.begin(k); q < pairs.end(k); ++q) {
        const Index i = pairs.row(q);
        const auto s = load(f_k + i);
        const auto log_base = load(log_base_k + i) + Float<T>::log_series(s);
        const auto log_f = log2_weight - load(exponent + i) * log_base;
        store(log_base_k + i, log_base);
        store(f_k + i, log_f);
        store(top + i, max(load(top + i), log_f));
    }
}

template <class T, class Pairs>
void take_exponentials(Index clusters, const Pairs& pairs, EStep<T>& e) {
    T *top = &e.top[0], *total = &e.total[0], *f_log_f = &e.f_log_f[0];
    for (Index k = 0; k < clusters; ++k) {
        T* f_k = e.f[k];
        for (Index q = pairs.begin(k); q < pairs.end(k); ++q) {
            const Index i = pairs.row(q);
            const auto log_f = load(f_k + i) - load(top + i);
            const auto f = exp2(log_f);
            store(f_k + i, f);
            store(total + i, load(total + i) + f);
            store(f_log_f + i, load(f_log_f + i) + f * log_f);
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

// f = pi (base_min / base)^exponent by multiplications, for `Count` packs from q on.
template <int Count, class T, class Pairs>
TKM_INLINE void take_powers(const Kernel<T>& kernel, int halves, const Pairs& pairs, Index k, Index q, EStep<T>& e) {
    T *d2 = e.d2[k], *relative_u = e.relative_u[k], *f = e.f[k], *root_min = &e.root_min[0], *total = &e.total[0];
    Pack<T> power[Count];
    TKM_UNROLL
    for (int n = 0; n < Count; ++n) {
        const Index i = pairs.row(q + n);
        const auto root = inverse_root(base_of(load(d2 + i), splat(kernel.slope)));
        store(relative_u + i, root * root);
        power[n] = root * load(root_min + i);
    }
    raise(power, halves);
    TKM_UNROLL
    for (int n = 0; n < Count; ++n) {
        const Index i = pairs.row(q + n);
        const auto share = splat(kernel.weight[k]) * power[n];
        store(f + i, share);
        store(total + i, load(total + i) + share);
    }
}

// The same for all pairs; log_base and f_log_f stay unknown.
template <class T, class Pairs>
void take_powers(const Kernel<T>& kernel, int halves, const Pairs& pairs, Index rows, EStep<T>& e) {
    for (Index i = 0; i < rows; i += Pack<T>::size) {
        const auto base_min = base_of(load(&e.d2_min[i]), splat(kernel.slope));
        store(&e.root_min[i], base_min * inverse_root(base_min));
        store(&e.top[i], splat(T(0)) - load(&e.exponent[i]) * log2(base_min));
    }
    for (Index k = 0; k < kernel.model.clusters; ++k) {
        Index q = pairs.begin(k);
        for (; q + 4 <= pairs.end(k); q += 4) take_powers<4>(kernel, halves, pairs, k, q, e);
        for (; q < pairs.end(k); ++q) take_powers<1>(kernel, halves, pairs, k, q, e);
    }
}

// Shares of all pairs, not yet divided by their total. `halves` as from whole_halves(), or 0.
template <class T, class Pairs>
void weigh(const Tile<T>& tile, const Kernel<T>& kernel, int halves, const Pairs& pairs, EStep<T>& e) {
    const Index rows = tile.panels() * Tile<T>::depth;
    for (Index i = 0; i < rows; ++i) {
        e.exponent[i] = kernel.exponent[tile.features()];
        e.top[i] = T(-ordinary_base);
        e.total[i] = e.f_log_f[i] = 0;
    }
    if (tile.missing())
        for (Index i = 0; i < rows; ++i) e.exponent[i] = kernel.exponent[tile.n_observed(i)];
    if (halves && !tile.missing() && !tile.far()) return take_powers(kernel, halves, pairs, rows, e);
    for (Index k = 0; k < kernel.model.clusters; ++k) {
        if (pairs.begin(k) == pairs.end(k)) continue;
        if (kernel.precise) take_logarithms<true>(kernel.slope, kernel.log2_weight[k], pairs, k, e);
        else take_logarithms<false>(kernel.slope, kernel.log2_weight[k], pairs, k, e);
    }
    take_exponentials(kernel.model.clusters, pairs, e);
}

}  // namespace tkmeans::TKM_SET
