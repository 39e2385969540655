// Which (cluster, rows) pairs of a tile are worth a look. Loops over pairs take one of these.
#pragma once
#include "distances.hpp"

namespace tkmeans::TKM_SET {

// Memberships below this are left out: beside those of rows that a centre is near to, they change no sum in double
// precision.
constexpr double negligible = 1e-16;

template <class T>
TKM_INLINE Pack<T> base_of(Pack<T> d2, Pack<T> slope) {
    return slope * d2 + splat(T(1));
}

// Every pack of rows with every cluster.
template <class T>
struct AllPairs {
    static constexpr bool few = false;

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
    static constexpr bool few = true;

    // tau_k <= (pi_k / pi_nearest) * (base_min / base_k)^exponent is negligible once base_k
    // exceeds base_min times `reach`.
    NearPairs(Index clusters, Index capacity, const T* log2_weights, T least_weight, T exponent)
        : first_(clusters + 1), row_(clusters * capacity / Pack<T>::size + 1), reach_(clusters) {
        for (Index k = 0; k < clusters; ++k) {
            const double excess = double(log2_weights[k] - least_weight) - ::log2(negligible);
            const double reach = ::exp2(excess / double(exponent));
            reach_[k] = T(reach < ordinary_base ? reach : ordinary_base);
        }
    }

    // Finds them; returns their share of all.
    double find(const View<T>& d2, const T* d2_min, T slope, Index packs);

    Index begin(Index k) const { return first_[k]; }
    Index end(Index k) const { return first_[k + 1]; }
    Index row(Index q) const { return row_[q]; }

 private:
    Line<Index> first_;
    Line<int> row_;
    Line<T> reach_;
};

template <class T>
double NearPairs<T>::find(const View<T>& d2, const T* d2_min, T slope, Index packs) {
    const Index clusters = reach_.size();
    const auto slopes = splat(slope);
    int* row = &row_[0];
    Index count = 0;
    for (Index k = 0; k < clusters; ++k) {
        first_[k] = count;
        const auto reach = splat(reach_[k]);
        const T* d2_k = d2[k];
        for (Index v = 0; v < packs; ++v) {
            const Index i = v * Pack<T>::size;
            row[count] = int(i);  // kept only if it counts
            count += any(base_of(load(d2_k + i), slopes) < base_of(load(d2_min + i), slopes) * reach);
        }
    }
    first_[clusters] = count;
    return double(count) / double(clusters * packs);
}

}  // namespace tkmeans::TKM_SET
