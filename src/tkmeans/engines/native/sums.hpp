// The sums over rows that leave the engine (`Stats`): accumulated in the tile's own type,
// poured into double precision before their rounding shows.
#pragma once
#include "memberships.hpp"
#include "products.hpp"

namespace tkmeans::TKM_SET {

template <class T>
class Accumulator {
 public:
    Accumulator(const Kernel<T>& kernel, Index capacity, Sums& out)
        : kernel_(kernel),
          out_(out),
          clusters_(kernel.model.clusters),
          features_(kernel.model.features),
          by_cluster_(clusters_, 5 * Pack<T>::size),
          wx_(clusters_, features_),
          w_complete_(clusters_),
          weight_per_total_(capacity),
          cut_(capacity) {}

    // Adds a tile. With `trim`, memberships that do not count are left out, and if few are
    // left, so are the products with them.
    template <class Pairs>
    void add(const Tile<T>& tile, const Pairs& pairs, bool trim, EStep<T>& e);

    // Turns what was accumulated into the statistics; nothing may be added afterwards.
    void finish();

 private:
    void add_rows(const Tile<T>& tile, const EStep<T>& e);
    void adjust(const Tile<T>& tile, EStep<T>& e);
    // The sums `Wanted`: 0 those of the centres, 1 log_u as well, 2 pull as well.
    template <int Wanted, bool Trim, int Features, class Pairs>
    Index add_clusters(const Tile<T>& tile, const Pairs& pairs, EStep<T>& e);
    template <int Wanted, class Pairs>
    void add_pairs(const Tile<T>& tile, const Pairs& pairs, bool trim, EStep<T>& e);
    void flush();

    // So many rows can be added up before rounding shows; more where every lane has a sum of its own.
    Index flush_after() const {
        const Index rows = sizeof(T) == 8 ? 8192 : 512;
        return features_ <= few_features ? rows * Pack<T>::size : rows;
    }

    const Kernel<T>& kernel_;
    Sums& out_;
    const Index clusters_, features_;
    Grid<T> by_cluster_;  // (K, 5 packs): tau, tau u^q, tau u^q D, tau log2(base), (tau u^q)^2 D
    Products<T> wx_, observed_;
    Line<double> w_complete_;   // (K,) w over tiles with all features
    Line<T> weight_per_total_;  // (rows,) weight / total: tau = f * this
    Line<T> cut_;               // (rows,) tau below this does not count
    Index pending_ = 0;         // rows since the last flush
    bool pending_missing_ = false;
};

// Per row: its log-density and entropy, and what turns its shares into memberships.
template <class T>
void Accumulator<T>::add_rows(const Tile<T>& tile, const EStep<T>& e) {
    constexpr int size = Pack<T>::size;
    auto weight_sum = splat(T(0)), log2_density = splat(T(0)), log2_entropy = splat(T(0));
    for (Index i = 0; i < tile.panels() * Tile<T>::depth; i += size) {
        const auto weight = load(tile.weights() + i);
        const auto total = load(&e.total[i]), log2_total = log2(total), inverse_total = splat(T(1)) / total;
        weight_sum = weight_sum + weight;
        log2_density = log2_density + weight * (load(&e.top[i]) + log2_total);
        log2_entropy = log2_entropy + weight * (log2_total - load(&e.f_log_f[i]) * inverse_total);
        store(&weight_per_total_[i], weight * inverse_total);
        store(&cut_[i], weight * splat(T(negligible)));
    }
    const double rows = sum_in_double(weight_sum);
    out_.objective += ln2 * sum_in_double(log2_density) + rows * kernel_.log_weight_max;
    out_.entropy += ln2 * sum_in_double(log2_entropy);
    if (!tile.missing()) {
        out_.cells += rows * double(features_);
        out_.objective += rows * kernel_.model.log_norm[features_];
        return;
    }
    for (Index i = 0; i < tile.rows(); ++i) {
        out_.cells += double(tile.weights()[i]) * double(tile.n_observed(i));
        out_.objective += double(tile.weights()[i]) * kernel_.model.log_norm[tile.n_observed(i)];
    }
}

// 1/base becomes u^q over that of a complete row at the centre, and log2(base) takes up how E(ln u) of
// an incomplete row differs. Nothing to do for complete rows with q = 1.
template <class T>
void Accumulator<T>::adjust(const Tile<T>& tile, EStep<T>& e) {
    const Model& model = kernel_.model;
    const Index rows = tile.panels() * Tile<T>::depth;
    if (model.power == 0)
        for (Index k = 0; k < clusters_; ++k)
            for (Index i = 0; i < rows; ++i) e.relative_u[k][i] = T(1);
    if (!tile.missing()) return;
    const double gain = model.gain[features_], log_u = ::log(gain) + model.log_u_bias[features_];
    for (Index i = 0; i < rows; ++i) {
        const Index observed = tile.n_observed(i);
        const T relative_gain = model.power == 0 ? T(1) : T(model.gain[observed] / gain);
        const T shift = T((log_u - ::log(model.gain[observed]) - model.log_u_bias[observed]) / ln2);
        for (Index k = 0; k < clusters_; ++k) {
            e.relative_u[k][i] *= relative_gain;
            e.log_base[k][i] += shift;
        }
    }
}

// The sums of each cluster and, if their number is given, those of the features.
// Otherwise tau u^q replaces f. Returns how many memberships count.
template <class T>
template <int Wanted, bool Trim, int Features, class Pairs>
Index Accumulator<T>::add_clusters(const Tile<T>& tile, const Pairs& pairs, EStep<T>& e) {
    constexpr Index size = Pack<T>::size, depth = 2 * size;
    const T* x = tile.x().panels[0];
    const T *weight_per_total = &weight_per_total_[0], *cut = &cut_[0];
    Index active = 0;
    for (Index k = 0; k < clusters_; ++k) {
        if (Pairs::few && pairs.begin(k) == pairs.end(k)) continue;  // of many clusters most are far from a tile
        T *d2 = e.d2[k], *relative_u = e.relative_u[k], *log_base = e.log_base[k], *f = e.f[k];
        auto n = splat(T(0)), w = n, wd2 = n, tau_log_base = n, pull = n, counted = n;
        Pack<T> wx[Features + 1];  // one more: C++ has no empty arrays
        TKM_UNROLL
        for (int j = 0; j < Features; ++j) wx[j] = load(wx_.lanes(k) + j * size);
        for (Index q = pairs.begin(k); q < pairs.end(k); ++q) {
            const Index i = pairs.row(q);
            auto tau = load(f + i) * load(weight_per_total + i);
            if constexpr (Trim) {
                const auto counts = load(cut + i) < tau;
                tau = only_where(counts, tau);
                counted = counted + only_where(counts, splat(T(1)));
            }
            const auto tau_u = tau * load(relative_u + i);
            n = n + tau;
            w = w + tau_u;
            wd2 = wd2 + tau_u * load(d2 + i);
            if constexpr (Wanted > 0) tau_log_base = tau_log_base + tau * load(log_base + i);
            if constexpr (Wanted > 1) pull = pull + tau_u * tau_u * load(d2 + i);
            if constexpr (Features > 0) {
                const T* x_i = x + i / depth * (Features * depth) + i % depth;
                TKM_UNROLL
                for (int j = 0; j < Features; ++j) wx[j] = wx[j] + tau_u * load(x_i + j * depth);
            } else {
                store(f + i, tau_u);
            }
        }
        T* sums = by_cluster_[k];
        int at = 0;
        for (const auto& part : {n, w, wd2, tau_log_base, pull}) {
            store(sums + at, load(sums + at) + part);
            at += size;
        }
        TKM_UNROLL
        for (int j = 0; j < Features; ++j) store(wx_.lanes(k) + j * size, wx[j]);
        if constexpr (Trim) active += Index(sum(counted));
    }
    return active;
}

// All sums over pairs; those of the features apart from the others unless features are few.
template <class T>
template <int Wanted, class Pairs>
void Accumulator<T>::add_pairs(const Tile<T>& tile, const Pairs& pairs, bool trim, EStep<T>& e) {
    if constexpr (!Pairs::few)
        if (features_ <= few_features && !tile.missing())
            return with_count<few_features>(features_, [&](auto features) {
                add_clusters<Wanted, false, decltype(features)::value>(tile, pairs, e);
            });
    const Index all = clusters_ * tile.panels() * Tile<T>::depth;
    Index active = all;
    if (trim) active = add_clusters<Wanted, true, 0>(tile, pairs, e);
    else add_clusters<Wanted, false, 0>(tile, pairs, e);
    if (Pairs::few || 4 * active < all) wx_.add_few(tile.x(), pairs, e.f);
    else wx_.add(tile.x(), tile.panels(), e.f);
}

template <class T>
template <class Pairs>
void Accumulator<T>::add(const Tile<T>& tile, const Pairs& pairs, bool trim, EStep<T>& e) {
    const Index rows = tile.panels() * Tile<T>::depth;
    if (pending_ > 0 && (pending_ + rows > flush_after() || pending_missing_ != tile.missing())) flush();
    pending_ += rows;
    pending_missing_ = tile.missing();

    add_rows(tile, e);
    adjust(tile, e);
    if (out_.pull) add_pairs<2>(tile, pairs, trim, e);
    else if (kernel_.model.log_sums) add_pairs<1>(tile, pairs, trim, e);
    else add_pairs<0>(tile, pairs, trim, e);
    if (tile.missing()) {
        out_.missing = true;
        if (observed_.empty()) observed_.resize(clusters_, features_);
        observed_.add(tile.observed(), tile.panels(), e.f);
    }
}

template <class T>
void Accumulator<T>::flush() {
    constexpr int size = Pack<T>::size;
    for (Index k = 0; k < clusters_; ++k) {
        const T* sums = by_cluster_[k];
        const double w = sum_in_double(load(sums + size));
        out_.n[k] += sum_in_double(load(sums));
        out_.w[k] += w;
        out_.wd2[k] += sum_in_double(load(sums + 2 * size));
        out_.log_u[k] += sum_in_double(load(sums + 3 * size));
        if (out_.pull) out_.pull[k] += sum_in_double(load(sums + 4 * size));
        if (!pending_missing_) w_complete_[k] += w;
    }
    by_cluster_.clear();
    wx_.pour_into(out_.wx);
    if (pending_missing_) observed_.pour_into(out_.observed);
    pending_ = 0;
}

template <class T>
void Accumulator<T>::finish() {
    flush();
    const Model& model = kernel_.model;
    const double gain = model.gain[features_], gain_q = model.power == 0 ? 1.0 : gain;
    const double log_u = ::log(gain) + model.log_u_bias[features_];
    for (Index k = 0; k < clusters_; ++k) {
        for (Index j = 0; j < features_; ++j) {
            const Index kj = k * features_ + j;
            const double observed = w_complete_[k] + (out_.missing ? out_.observed[kj] : 0.0);
            out_.wx[kj] = gain_q * (out_.wx[kj] - observed * model.centers[kj]);
            if (out_.missing) out_.observed[kj] = gain_q * observed;
        }
        out_.w[k] *= gain_q;
        out_.wd2[k] *= gain_q;
        if (out_.pull) out_.pull[k] *= gain_q * gain_q;
        out_.log_u[k] = model.log_sums ? log_u * out_.n[k] - ln2 * out_.log_u[k] : 0.0;
    }
    if (!model.log_sums) out_.entropy = 0;
}

}  // namespace tkmeans::TKM_SET
