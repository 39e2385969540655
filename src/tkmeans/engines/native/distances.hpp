// Squared distances of a tile's rows to all centres.
#pragma once
#include "runs.hpp"
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

// In ordinary tiles base = 1 + slope * D stays below this, in far ones below the other: what
// follows must neither overflow nor lose its logarithm.
constexpr double ordinary_base = 1e36;
template <class T>
constexpr double farthest_base = sizeof(T) == 8 ? 1e300 : 1e36;

// The |x|^2 up to which a row is ordinary, as D <= 2 (|x|^2 + |c|^2). None is where a centre is far.
template <class T>
T ordinary_square(const Centers<T>& centers, double slope, double horizon) {
    const double limit = ordinary_base / (8 * slope);
    for (Index k = 0; k < centers.clusters; ++k)
        if (!(double(centers.squares[k]) <= limit)) return T(-1);
    return T(limit < horizon * horizon ? limit : horizon * horizon);
}

enum class By { products, observed_differences };

// Centres per block: with two packs of rows each they fill a register file of sixteen.
constexpr int block_centers = 6;

// Distances of `Count` centres and one panel of rows, `beside` which is what was observed or |x|^2: the inner loop of the
// engine. Not inlined: its sums need all registers. Returns if some pair is too close for products.
template <By by, int Count, class T>
TKM_NOINLINE bool sum_over_features(const T* x, const T* beside, const Centers<T>& centers, Index k, Ahead ahead,
                                    const View<T>& d2, Index panel) {
    constexpr int size = Pack<T>::size, depth = 2 * size;
    const T* center[Count];
    Pack<T> sum[Count][2];
    TKM_UNROLL
    for (int i = 0; i < Count; ++i) {
        center[i] = centers.c[k + i];
        sum[i][0] = sum[i][1] = splat(T(0));
    }
    Index wait = ahead.every;
    for (Index j = 0; j < centers.features; ++j) {
        const auto x0 = load(x + j * depth), x1 = load(x + j * depth + size);
        if (--wait == 0) {
            prefetch(ahead.address);
            ahead.address += line_bytes;
            wait = ahead.every;
        }
        TKM_UNROLL
        for (int i = 0; i < Count; ++i) {
            const auto cj = splat(center[i][j]);
            if constexpr (by == By::products) {
                sum[i][0] = sum[i][0] + x0 * cj;
                sum[i][1] = sum[i][1] + x1 * cj;
            } else {
                const auto d0 = (x0 - cj) * load(beside + j * depth);
                const auto d1 = (x1 - cj) * load(beside + j * depth + size);
                sum[i][0] = sum[i][0] + d0 * d0;
                sum[i][1] = sum[i][1] + d1 * d1;
            }
        }
    }
    bool close = false;
    TKM_UNROLL
    for (int i = 0; i < Count; ++i)
        for (int half = 0; half < 2; ++half) {
            auto d = sum[i][half];
            if constexpr (by == By::products) {
                const auto both = load(beside + half * size) + splat(centers.squares[k + i]);
                d = both - (d + d);
                close |= any(d < splat(close_share<T>) * both);
            }
            store(d2[k + i] + panel * depth + half * size, d);
        }
    return close;
}

// The same for all centres and rows, into d2[k][i].
template <By by, class T>
bool sum_over_features(const Tile<T>& tile, const Centers<T>& centers, const View<T>& d2) {
    bool close = false;
    const Index turns = (centers.clusters + block_centers - 1) / block_centers;
    for (Index panel = 0; panel < tile.panels(); ++panel) {
        const T* x = tile.x().panels[panel];
        const T* beside = by == By::products ? tile.squares() + panel * Tile<T>::depth : tile.observed().panels[panel];
        Index turn = 0;
        even_runs(centers.clusters, block_centers, [&](Index k, Index count) {
            const Ahead ahead = tile.ahead(panel, turn++, turns);
            with_count<block_centers>(count, [&](auto c) {
                close |= sum_over_features<by, decltype(c)::value>(x, beside, centers, k, ahead, d2, panel);
            });
        });
    }
    return close;
}

// Few features: a centre stays in registers while all rows pass by.
template <int Features, class T>
void sum_of_differences(const Tile<T>& tile, const Centers<T>& centers, const View<T>& d2) {
    constexpr int size = Pack<T>::size, depth = 2 * size;
    for (Index k = 0; k < centers.clusters; ++k) {
        Pack<T> center[Features];
        TKM_UNROLL
        for (int j = 0; j < Features; ++j) center[j] = splat(centers.c[k][j]);
        T* d2_k = d2[k];
        for (Index panel = 0; panel < tile.panels(); ++panel) {
            const T* x = tile.x().panels[panel];
            TKM_UNROLL
            for (int i = 0; i < depth; i += size) {
                auto sum = splat(T(0));
                TKM_UNROLL
                for (int j = 0; j < Features; ++j) {
                    const auto difference = load(x + j * depth + i) - center[j];
                    sum = sum + difference * difference;
                }
                store(d2_k + panel * depth + i, sum);
            }
        }
    }
}

template <class T>
T exact_distance(const T* x, const T* c, Index features) {
    auto sums = splat(T(0));
    for (Index j = 0; j < features; j += Pack<T>::size) {  // both are padded with zeros
        const auto difference = load(x + j) - load(c + j);
        sums = sums + difference * difference;
    }
    return sum(sums);
}

// Pairs too close for |x|^2 + |c|^2 - 2xc are measured again by their differences.
template <class T>
void measure_close(const Tile<T>& tile, const Centers<T>& centers, const View<T>& d2) {
    constexpr int size = Pack<T>::size;
    const T* squares = tile.squares();
    for (Index k = 0; k < centers.clusters; ++k) {
        T* d2_k = d2[k];
        const auto square = splat(centers.squares[k]);
        for (Index i = 0; i < tile.packs() * size; i += size) {
            const auto close = load(d2_k + i) < splat(close_share<T>) * (load(squares + i) + square);
            if (any(close))
                for (int l = 0; l < size; ++l)
                    if (close[l]) d2_k[i + l] = exact_distance(tile.x().rows[i + l], centers.c[k], tile.features());
        }
    }
}

// d2[k][i] = |x_i - c_k|^2
template <class T>
void measure(const Tile<T>& tile, const Centers<T>& centers, const View<T>& d2) {
    if (tile.missing()) return void(sum_over_features<By::observed_differences>(tile, centers, d2));
    if (tile.features() <= few_features)
        return with_count<few_features>(tile.features(), [&](auto features) {
            sum_of_differences<decltype(features)::value>(tile, centers, d2);
        });
    if (sum_over_features<By::products>(tile, centers, d2)) measure_close(tile, centers, d2);
}

// Distances beyond `limit` become `limit`.
template <class T>
void bound(const View<T>& d2, Index clusters, Index rows, T limit) {
    for (Index k = 0; k < clusters; ++k)
        for (Index i = 0; i < rows; i += Pack<T>::size) store(d2[k] + i, min(load(d2[k] + i), splat(limit)));
}

// The least distance of each row, a panel at a time.
template <class T>
void find_nearest(const View<T>& d2, Index clusters, Index rows, T* d2_min) {
    constexpr int size = Pack<T>::size;
    for (Index i = 0; i < rows; i += 2 * size) {
        auto nearest0 = load(d2[0] + i), nearest1 = load(d2[0] + i + size);
        for (Index k = 1; k < clusters; ++k) {
            nearest0 = min(nearest0, load(d2[k] + i));
            nearest1 = min(nearest1, load(d2[k] + i + size));
        }
        store(d2_min + i, nearest0);
        store(d2_min + i + size, nearest1);
    }
}

}  // namespace tkmeans::TKM_SET
