// Sums of rows weighted per cluster: out[k] += sum over rows of weight[k][i] * x_i.
#pragma once
#include <vector>

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
    template <bool Lanes, int MostClusters, int MostPacks>
    void add_blocks(Index packs, const TwoWays<T>& x, Index panels, const View<T>& weight);
    template <bool Lanes, int Clusters, int Packs>
    void add_block(const TwoWays<T>& x, Index panels, const View<T>& weight, Index k, Index j);

    static constexpr int size = Pack<T>::size;
    static constexpr int depth = TwoWays<T>::depth;
    Index clusters_ = 0, features_ = 0;
    bool by_lanes_ = false;  // few features: keep one sum per lane, so that nothing is padded
    Grid<T> sums_;           // (K, padded p), or (K, p packs)
};

template <class T>
void Products<T>::add(const TwoWays<T>& x, Index panels, const View<T>& weight) {
    if (by_lanes_) add_blocks<true, 4, 3>(features_, x, panels, weight);
    else add_blocks<false, block_centers, 2>((features_ + size - 1) / size, x, panels, weight);
}

// All sums: of so many packs for each cluster, some of both at a time.
template <class T>
template <bool Lanes, int MostClusters, int MostPacks>
void Products<T>::add_blocks(Index packs, const TwoWays<T>& x, Index panels, const View<T>& weight) {
    even_runs(packs, MostPacks, [&](Index j, Index n_packs) {
        even_runs(clusters_, MostClusters, [&](Index k, Index clusters) {
            with_count<MostPacks>(n_packs, [&](auto v) {
                with_count<MostClusters>(clusters, [&](auto c) {
                    add_block<Lanes, decltype(c)::value, decltype(v)::value>(x, panels, weight, k, j);
                });
            });
        });
    });
}

// The packs from j on of the clusters from k on. A step is one row or, by lanes, as many as a pack has.
template <class T>
template <bool Lanes, int Clusters, int Packs>
void Products<T>::add_block(const TwoWays<T>& x, Index panels, const View<T>& weight, Index k, Index j) {
    constexpr int step = Lanes ? size : 1, apart = Lanes ? depth : size;
    Pack<T> sum[Clusters][Packs];
    const T* weights[Clusters];
    TKM_UNROLL
    for (int c = 0; c < Clusters; ++c) {
        weights[c] = weight[k + c];
        TKM_UNROLL
        for (int v = 0; v < Packs; ++v) sum[c][v] = load(sums_[k + c] + (j + v) * size);
    }
    for (Index i = 0; i < panels * depth; i += step) {
        const T* from = (Lanes ? x.panels[i / depth] + i % depth : x.rows[i]) + j * apart;
        Pack<T> xi[Packs];
        TKM_UNROLL
        for (int v = 0; v < Packs; ++v) xi[v] = load(from + v * apart);
        TKM_UNROLL
        for (int c = 0; c < Clusters; ++c) {
            const auto w = Lanes ? load(weights[c] + i) : splat(weights[c][i]);
            TKM_UNROLL
            for (int v = 0; v < Packs; ++v) sum[c][v] = sum[c][v] + w * xi[v];
        }
    }
    TKM_UNROLL
    for (int c = 0; c < Clusters; ++c) TKM_UNROLL
    for (int v = 0; v < Packs; ++v) store(sums_[k + c] + (j + v) * size, sum[c][v]);
}

template <class T>
template <class Pairs>
void Products<T>::add_few(const TwoWays<T>& x, const Pairs& pairs, const View<T>& weight) {
    assert(!by_lanes_);
    constexpr int at_once = 4;  // packs of sums that stay in registers
    std::vector<int> rows(x.rows.rows() + 1);
    for (Index k = 0; k < clusters_; ++k) {
        Index count = 0;
        for (Index q = pairs.begin(k); q < pairs.end(k); ++q)
            for (Index i = pairs.row(q); i < pairs.row(q) + size; ++i) {
                rows[count] = int(i);  // kept only if it counts
                count += weight[k][i] != 0;
            }
        if (count == 0) continue;
        even_runs((features_ + size - 1) / size, at_once, [&](Index first, Index packs) {
            with_count<at_once>(packs, [&](auto n) {
                Pack<T> sum[decltype(n)::value];
                T* sums = sums_[k] + first * size;
                TKM_UNROLL
                for (int v = 0; v < decltype(n)::value; ++v) sum[v] = load(sums + v * size);
                for (Index m = 0; m < count; ++m) {
                    const auto w = splat(weight[k][rows[m]]);
                    const T* xi = x.rows[rows[m]] + first * size;
                    TKM_UNROLL
                    for (int v = 0; v < decltype(n)::value; ++v) sum[v] = sum[v] + w * load(xi + v * size);
                }
                TKM_UNROLL
                for (int v = 0; v < decltype(n)::value; ++v) store(sums + v * size, sum[v]);
            });
        });
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
