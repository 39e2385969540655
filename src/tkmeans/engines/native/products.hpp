// Sums of rows weighted per cluster: out[k] += sum over rows of weight[k][i] * x_i.
#pragma once
#include "distances.hpp"

namespace tkmeans::TKM_SET {

template <class T>
TKM_INLINE double sum_in_double(Pack<T> a) {
    double total = 0;
    for (int l = 0; l < Pack<T>::size; ++l) total += double(a[l]);
    return total;
}

template <class T>
class Products {
 public:
    Products() = default;
    Products(Index clusters, Index features) { resize(clusters, features); }
    void resize(Index clusters, Index features) {
        clusters_ = clusters;
        features_ = features;
        by_lanes_ = features <= few_features;
        sums_.resize(clusters, by_lanes_ ? features * Pack<T>::size : padded<T>(features));
    }
    bool empty() const { return clusters_ == 0; }

    void add(const TwoWays<T>& x, Index panels, const View<T>& weight);

    // The same where most weights are zero: only the others are touched.
    template <class Pairs>
    void add_few(const TwoWays<T>& x, const Pairs& pairs, const View<T>& weight);

    // Few features: where the lanes of cluster k have their sums, feature after feature.
    T* lanes(Index k) {
        assert(by_lanes_);
        return sums_[k];
    }

    // Adds everything to `out`, (K, p), and starts again from zero.
    void pour_into(double* out);

 private:
    template <int Clusters, int Packs>
    void add_block(const Grid<T>& rows, Index n, const View<T>& weight, Index k, Index j);
    template <int Clusters, int Features>
    void add_lanes(const Grid<T>& panels, Index n, const View<T>& weight, Index k, Index j);

    static constexpr int size = Pack<T>::size;
    static constexpr int depth = TwoWays<T>::depth;
    Index clusters_ = 0, features_ = 0;
    bool by_lanes_ = false;  // few features: keep one sum per lane, so that nothing is padded
    Grid<T> sums_;           // (K, padded p), or (K, p packs)
};

template <class T>
void Products<T>::add(const TwoWays<T>& x, Index panels, const View<T>& weight) {
    if (by_lanes_) {
        even_runs(features_, 3, [&](Index j, Index features) {
            even_runs(clusters_, 4, [&](Index k, Index clusters) {
                with_count<4>(clusters, [&](auto c) {
                    if (features == 1) add_lanes<decltype(c)::value, 1>(x.panels, panels, weight, k, j);
                    else if (features == 2) add_lanes<decltype(c)::value, 2>(x.panels, panels, weight, k, j);
                    else add_lanes<decltype(c)::value, 3>(x.panels, panels, weight, k, j);
                });
            });
        });
        return;
    }
    const Index packs = (features_ + size - 1) / size;
    for (Index v = 0; v < packs; v += 2)
        even_runs(clusters_, block_centers, [&](Index k, Index clusters) {
            with_count<block_centers>(clusters, [&](auto c) {
                if (v + 1 < packs) add_block<decltype(c)::value, 2>(x.rows, panels * depth, weight, k, v * size);
                else add_block<decltype(c)::value, 1>(x.rows, panels * depth, weight, k, v * size);
            });
        });
}

template <class T>
template <int Clusters, int Packs>
void Products<T>::add_block(const Grid<T>& rows, Index n, const View<T>& weight, Index k, Index j) {
    Pack<T> sum[Clusters][Packs];
    const T* weights[Clusters];
    TKM_UNROLL
    for (int c = 0; c < Clusters; ++c) {
        weights[c] = weight[k + c];
        TKM_UNROLL
        for (int v = 0; v < Packs; ++v) sum[c][v] = load(sums_[k + c] + j + v * size);
    }
    const T* x = rows[0] + j;
    for (Index i = 0; i < n; ++i, x += rows.columns()) {
        Pack<T> xi[Packs];
        TKM_UNROLL
        for (int v = 0; v < Packs; ++v) xi[v] = load(x + v * size);
        TKM_UNROLL
        for (int c = 0; c < Clusters; ++c) {
            const auto w = splat(weights[c][i]);
            TKM_UNROLL
            for (int v = 0; v < Packs; ++v) sum[c][v] = sum[c][v] + w * xi[v];
        }
    }
    TKM_UNROLL
    for (int c = 0; c < Clusters; ++c) TKM_UNROLL
    for (int v = 0; v < Packs; ++v) store(sums_[k + c] + j + v * size, sum[c][v]);
}

template <class T>
template <int Clusters, int Features>
void Products<T>::add_lanes(const Grid<T>& panels, Index n, const View<T>& weight, Index k, Index j) {
    Pack<T> sum[Clusters][Features];
    const T* weights[Clusters];
    TKM_UNROLL
    for (int c = 0; c < Clusters; ++c) {
        weights[c] = weight[k + c];
        TKM_UNROLL
        for (int f = 0; f < Features; ++f) sum[c][f] = load(sums_[k + c] + (j + f) * size);
    }
    for (Index panel = 0; panel < n; ++panel)
        for (int half = 0; half < 2; ++half) {
            const T* x = panels[panel] + j * depth + half * size;
            const Index i = panel * depth + half * size;
            Pack<T> xi[Features];
            TKM_UNROLL
            for (int f = 0; f < Features; ++f) xi[f] = load(x + f * depth);
            TKM_UNROLL
            for (int c = 0; c < Clusters; ++c) {
                const auto w = load(weights[c] + i);
                TKM_UNROLL
                for (int f = 0; f < Features; ++f) sum[c][f] = sum[c][f] + w * xi[f];
            }
        }
    TKM_UNROLL
    for (int c = 0; c < Clusters; ++c) TKM_UNROLL
    for (int f = 0; f < Features; ++f) store(sums_[k + c] + (j + f) * size, sum[c][f]);
}

template <class T>
template <class Pairs>
void Products<T>::add_few(const TwoWays<T>& x, const Pairs& pairs, const View<T>& weight) {
    assert(!by_lanes_);
    for (Index k = 0; k < clusters_; ++k) {
        T* sums = sums_[k];
        for (Index q = pairs.begin(k); q < pairs.end(k); ++q)
            for (Index i = pairs.row(q); i < pairs.row(q) + size; ++i) {
                if (weight[k][i] == 0) continue;
                const auto w = splat(weight[k][i]);
                const T* xi = x.rows[i];
                for (Index j = 0; j < features_; j += size) store(sums + j, load(sums + j) + w * load(xi + j));
            }
    }
}

template <class T>
void Products<T>::pour_into(double* out) {
    for (Index k = 0; k < clusters_; ++k)
        for (Index j = 0; j < features_; ++j)
            out[k * features_ + j] += by_lanes_ ? sum_in_double(load(sums_[k] + j * size)) : double(sums_[k][j]);
    sums_.clear();
}

}  // namespace tkmeans::TKM_SET
