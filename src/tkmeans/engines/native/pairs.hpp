// Which (cluster, rows) pairs of a tile are worth a look. Loops over pairs take one of these.
#pragma once
#include "distances.hpp"

namespace tkmeans::TKM_SET {

// Memberships below this do not change a sum in double precision.
constexpr double negligible = 1e-16;

// Every pack of rows with every cluster.
template <class T>
struct AllPairs {
    Index begin(Index) const { return 0; }
    Index end(Index) const { return packs; }
    Index row(Index q) const { return q * Pack<T>::size; }

    Index packs;
};

// The packs of rows that have at least one row near enough to the cluster. With many features
// and clusters that stand apart these are few.
template <class T>
class NearPairs {
   public:
    NearPairs(Index clusters, Index capacity) : first_(clusters + 1), row_(clusters * capacity / Pack<T>::size + 1), reach_(clusters) {}

    // tau_k <= (pi_k / pi_nearest) * (base_min / base_k)^exponent is negligible once base_k
    // exceeds base_min times this factor.
    void set_reach(const T* log2_weights, T exponent);

    // Finds them; returns their share of all. Sets `f` to zero, where the others' shall remain.
    double find(const View<T>& y, const T* y_min, const View<T>& f, Index packs);

    Index begin(Index k) const { return first_[k]; }
    Index end(Index k) const { return first_[k + 1]; }
    Index row(Index q) const { return row_[q]; }

   private:
    Line<Index> first_;
    Line<int> row_;
    Line<T> reach_;
};

template <class T>
void NearPairs<T>::set_reach(const T* log2_weights, T exponent) {
    const Index clusters = reach_.size();
    T least_weight = log2_weights[0];
    for (Index k = 1; k < clusters; ++k)
        if (log2_weights[k] < least_weight) least_weight = log2_weights[k];
    for (Index k = 0; k < clusters; ++k) {
        const double reach = ::exp2((double(log2_weights[k] - least_weight) - ::log2(negligible)) / double(exponent));
        reach_[k] = reach < double(farthest<T>) ? T(reach) : farthest<T>;
    }
}

template <class T>
double NearPairs<T>::find(const View<T>& y, const T* y_min, const View<T>& f, Index packs) {
    const Index clusters = reach_.size();
    const auto one = splat(T(1));
    Index count = 0;
    for (Index k = 0; k < clusters; ++k) {
        first_[k] = count;
        const auto reach = splat(reach_[k]);
        const T* y_k = y[k];
        T* f_k = f[k];
        for (Index v = 0; v < packs; ++v) {
            const Index i = v * Pack<T>::size;
            row_[count] = int(i);
            store(f_k + i, splat(T(0)));
            count += any(load(y_k + i) < (load(y_min + i) + one) * reach);
        }
    }
    first_[clusters] = count;
    return double(count) / double(clusters * packs);
}

}  // namespace tkmeans::TKM_SET
