// Squared distances of a tile's rows to all centres.
#pragma once
#include <type_traits>

#include "tile.hpp"

namespace tkmeans::TKM_SET {

template <class T>
struct Centers {
    Centers(const Model& model)
        : clusters(model.clusters), features(model.features), c(clusters, padded<T>(features)), squares(clusters) {
        for (Index k = 0; k < clusters; ++k) {
            double square = 0;
            for (Index j = 0; j < features; ++j) {
                const double value = model.centers[k * features + j];
                c[k][j] = T(value);
                square += value * value;
            }
            squares[k] = T(square);
        }
    }
    const Index clusters, features;
    Grid<T> c;        // (K, padded p)
    Line<T> squares;  // (K,) |c|^2
};

// |x|^2 + |c|^2 - 2xc has lost too many digits below this share of |x|^2 + |c|^2.
template <class T>
constexpr T close_share = sizeof(T) == 8 ? T(1e-5) : T(1e-3);

// Squared distances stay below this, so that no later product overflows.
template <class T>
constexpr T farthest = sizeof(T) == 8 ? T(1e300) : T(1e36);

enum class By { products, differences, observed_differences };

// Centres per block: with two packs of rows each they fill a register file of sixteen.
constexpr int block_centers = 6;

// Splits `total` into the fewest runs of at most `longest`, as even as possible: uneven
// ones would leave the arithmetic units waiting in the short last run.
template <class Body>
TKM_INLINE void even_runs(Index total, Index longest, Body body) {
    const Index runs = (total + longest - 1) / longest;
    for (Index r = 0; r < runs; ++r) {
        const Index begin = total * r / runs, end = total * (r + 1) / runs;
        body(begin, end - begin);
    }
}

// Runs a body with a count known at compile time, 1 to 6.
template <class Body>
TKM_INLINE void with_count(Index count, Body body) {
    switch (count) {
        case 1: return body(std::integral_constant<int, 1>{});
        case 2: return body(std::integral_constant<int, 2>{});
        case 3: return body(std::integral_constant<int, 3>{});
        case 4: return body(std::integral_constant<int, 4>{});
        case 5: return body(std::integral_constant<int, 5>{});
        default: return body(std::integral_constant<int, 6>{});
    }
}

// Sums over features for `Count` centres and one panel of rows: the inner loop of the engine.
template <By by, int Count, class T>
TKM_INLINE void sum_over_features(const T* x, const T* observed, const Grid<T>& c, Index k, Index features, Pack<T> (&sum)[Count][2]) {
    constexpr int size = Pack<T>::size;
    const T* center[Count];
    TKM_UNROLL
    for (int i = 0; i < Count; ++i) {
        center[i] = c[k + i];
        sum[i][0] = sum[i][1] = splat(T(0));
    }
    for (Index j = 0; j < features; ++j) {
        const auto x0 = load(x + j * 2 * size), x1 = load(x + j * 2 * size + size);
        TKM_UNROLL
        for (int i = 0; i < Count; ++i) {
            const auto cj = splat(center[i][j]);
            if constexpr (by == By::products) {
                sum[i][0] = sum[i][0] + x0 * cj;
                sum[i][1] = sum[i][1] + x1 * cj;
            } else {
                auto d0 = x0 - cj, d1 = x1 - cj;
                if constexpr (by == By::observed_differences) {
                    d0 = d0 * load(observed + j * 2 * size);
                    d1 = d1 * load(observed + j * 2 * size + size);
                }
                sum[i][0] = sum[i][0] + d0 * d0;
                sum[i][1] = sum[i][1] + d1 * d1;
            }
        }
    }
}

template <class T>
T exact_distance(const T* x, const T* c, Index features) {
    constexpr int size = Pack<T>::size;
    auto sum_ = splat(T(0));
    for (Index j = 0; j < features; j += size) {  // both are padded with zeros
        const auto d = load(x + j) - load(c + j);
        sum_ = sum_ + d * d;
    }
    return sum(sum_);
}

// |x|^2 + |c|^2 - 2xc; pairs too close for it are measured again by their differences.
template <class T>
TKM_INLINE Pack<T> distance_from_product(const Tile<T>& tile, const Centers<T>& centers, Index i, Index k, Pack<T> product) {
    const auto both = load(tile.squares() + i) + splat(centers.squares[k]);
    const auto d2 = both - (product + product);
    const auto close = d2 < splat(close_share<T>) * both;
    if (!any(close)) return d2;
    alignas(TKM_PACK_BYTES) T lanes[Pack<T>::size];
    store(lanes, d2);
    for (int l = 0; l < Pack<T>::size; ++l)
        if (close[l]) lanes[l] = exact_distance(tile.x().rows[i + l], centers.c[k], tile.features());
    return load(lanes);
}

template <By by, int Count, class T>
TKM_INLINE void measure_block(const Tile<T>& tile, const Centers<T>& centers, Index panel, Index k, T slope, const View<T>& y, Pack<T> (&nearest)[2]) {
    constexpr int size = Pack<T>::size;
    Pack<T> sum[Count][2];
    const T* observed = by == By::observed_differences ? tile.observed().panels[panel] : nullptr;
    sum_over_features<by, Count>(tile.x().panels[panel], observed, centers.c, k, tile.features(), sum);
    TKM_UNROLL
    for (int i = 0; i < Count; ++i)
        TKM_UNROLL
        for (int half = 0; half < 2; ++half) {
            const Index row = panel * Tile<T>::depth + half * size;
            auto d2 = sum[i][half];
            if constexpr (by == By::products) d2 = distance_from_product(tile, centers, row, k + i, d2);
            d2 = min(d2 * splat(slope), splat(farthest<T>));
            store(y[k + i] + row, d2);
            nearest[half] = min(nearest[half], d2);
        }
}

// y[k][i] = slope * |x_i - c_k|^2, and the least of them for each row.
template <By by, class T>
void measure_by(const Tile<T>& tile, const Centers<T>& centers, T slope, const View<T>& y, T* y_min) {
    constexpr int size = Pack<T>::size;
    for (Index panel = 0; panel < tile.panels(); ++panel) {
        Pack<T> nearest[2] = {splat(farthest<T>), splat(farthest<T>)};
        even_runs(centers.clusters, block_centers, [&](Index k, Index count) {
            with_count(count, [&](auto c) { measure_block<by, c>(tile, centers, panel, k, slope, y, nearest); });
        });
        store(y_min + panel * Tile<T>::depth, nearest[0]);
        store(y_min + panel * Tile<T>::depth + size, nearest[1]);
    }
}

template <class T>
void measure(const Tile<T>& tile, const Centers<T>& centers, T slope, const View<T>& y, T* y_min) {
    if (tile.missing()) return measure_by<By::observed_differences>(tile, centers, slope, y, y_min);
    if (tile.features() <= few_features) return measure_by<By::differences>(tile, centers, slope, y, y_min);
    return measure_by<By::products>(tile, centers, slope, y, y_min);
}

}  // namespace tkmeans::TKM_SET
