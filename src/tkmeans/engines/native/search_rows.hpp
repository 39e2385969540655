// Rows and centres of search.hpp: distances, the two nearest centres of every row, robust means.
#pragma once
#include <algorithm>
#include <cmath>
#include <numeric>

#include "search_criterion.hpp"
#include "simd.hpp"

namespace tkmeans::TKM_SET {

constexpr Index rows_per_tile = 32;  // long enough for compilers to keep a vector loop (16 was 6x slower)
constexpr Index many_features = 32;  // of which a distance takes longer than the question whether it is needed
constexpr double more_than_rounding = 1 + 1e-6;
constexpr int points_at_once = 6;  // that rows are compared with
constexpr double clear_gap = 8.0;    // g / (1 + exp(g)) < 0.003 beyond: not worth an exponential

template <int P>
SearchState<P>::SearchState(const double* rows, const double* weights, Index n, Index features, Index clusters,
                            double dof, double noise_reach, double least_scale)
    : n_(n),
      p_(features),
      stride_((features + Pack<double>::size - 1) / Pack<double>::size * Pack<double>::size),
      x_(rows),
      weight_(weights, weights + n),
      dof_(dof),
      h_(0.5 * (dof + double(features))),
      noise_price_(std::log(double(clusters))),
      noise_reach_(noise_reach / dof),
      clear_ratio_(std::exp(clear_gap / h_)),
      least_nu_alpha_(dof * least_scale),
      cap_loss_(h_ * std::log1p(noise_reach_)),
      cap_ratio_(noise_reach_),
      first_(n, 0),
      second_(n, -1),
      d_first_(n, infinity),
      d_second_(n, infinity),
      loss_(n, cap_loss_),
      order_(n) {
    assert(n > 0 && features > 0 && (P == 0 || features == P));
    for (Index i = 0; i < n_; ++i) total_ += weight_[i];
    whole_tiles_ = (n_ + rows_per_tile - 1) / rows_per_tile * rows_per_tile;
    d_first_.resize(whole_tiles_, 0.0);
    d_second_.resize(whole_tiles_, 0.0);
    weight_.resize(whole_tiles_, 0.0);
    loss_.resize(whole_tiles_, 0.0);
    if (stride() != p()) {
        padded_.resize(n_ * stride(), 0.0);
        for (Index i = 0; i < n_; ++i) std::copy(rows + i * p(), rows + (i + 1) * p(), &padded_[i * stride()]);
        x_ = padded_.data();
    }
    tiles_.resize(whole_tiles_ * stride());
    std::vector<Index> numbers(whole_tiles_, n_ - 1);  // the last tile is filled up with copies of the last row
    std::iota(numbers.begin(), numbers.begin() + n_, 0);
    for (Index start = 0; start < whole_tiles_; start += rows_per_tile)
        to_tile(&numbers[start], &tiles_[start * stride()], rows_per_tile);
}

// Of some rows, feature-major, to be handled together.
template <int P>
void SearchState<P>::to_tile(const Index* rows, double* tile, Index width) const {
    constexpr Index lanes = Pack<double>::size;
    for (Index first = 0; first < width; first += lanes)
        for (Index j = 0; j < stride(); j += lanes) {
            if constexpr (P > 0) {
                for (Index l = 0; l < lanes; ++l)
                    for (int f = 0; f < P; ++f) tile[f * width + first + l] = row(rows[first + l])[f];
            } else {
                Pack<double> block[lanes];
                for (Index l = 0; l < lanes; ++l) block[l] = load(row(rows[first + l]) + j);
                transpose(block);
                for (Index l = 0; l < lanes; ++l) store(tile + (j + l) * width + first, block[l]);
            }
        }
}

template <int P>
void SearchState<P>::read_centers(double* out) const {
    for (Index k = 0; k < clusters(); ++k) out = std::copy_n(&centers_[k * stride()], p(), out);
}

template <int P>
void SearchState<P>::restore(const double* centers, Index clusters, double scale) {
    centers_.assign(clusters * stride(), 0.0);
    for (Index k = 0; k < clusters; ++k) std::copy_n(centers + k * p(), p(), center(k));
    cheapest_drop_ = infinity;
    set_nu_alpha(dof_ * scale);
    assign_all();
    update_losses();
}

// The distances are to the mean of the other rows: a row alone in its cluster sees the next one.
template <int P>
void SearchState<P>::read_rows(double* masses, double* nearest, Index* labels) const {
    std::copy(first_.begin(), first_.end(), labels);
    std::vector<double> mass;
    inlier_masses(mass);
    std::copy(mass.begin(), mass.end(), masses);
    for (Index i = 0; i < n_; ++i) {
        const double inflate = seen_from_others(mass[first_[i]]);
        nearest[i] = is_noise(i) ? d_first_[i] : inflate < infinity ? d_first_[i] * inflate : d_second_[i];
    }
}

// Hard EM on all rows: robust means of the assigned rows, then the scale.
template <int P>
void SearchState<P>::refine(int steps) {
    for (int s = 0; s < steps; ++s) {
        move_centers();
        assign_all();
        settle_nu_alpha();
    }
    update_losses();
}

template <int P>
void SearchState<P>::move_centers() {
    std::vector<double> sum(centers_.size(), 0.0), mass(clusters(), 0.0);
    for (Index i = 0; i < n_; ++i) {
        if (is_noise(i)) continue;
        const double u = weight_[i] / (1 + d_first_[i] / nu_alpha_);
        add(u, row(i), &sum[first_[i] * stride()]);
        mass[first_[i]] += u;
    }
    for (Index k = 0; k < clusters(); ++k)
        if (mass[k] > 0)
            for (Index j = 0; j < stride(); ++j) center(k)[j] = sum[k * stride() + j] / mass[k];
}

template <int P>
inline void SearchState<P>::add(double u, const double* x, double* sums) const {
    if constexpr (P > 0) {
        for (int j = 0; j < P; ++j) sums[j] += u * x[j];
    } else {
        for (Index j = 0; j < stride(); j += Pack<double>::size) store(sums + j, load(sums + j) + splat(u) * load(x + j));
    }
}

// Of one row to some points, together: each sum waits for its last term, and the row is read once.
template <int P>
template <int Count>
inline std::array<double, Count> SearchState<P>::squared_distances(const double* a, const double* b) const {
    std::array<double, Count> out = {};
    Pack<double> sums[Count] = {};
    for (int j = 0; j < P; ++j)
        for (int k = 0; k < Count; ++k) out[k] += (a[j] - b[k * P + j]) * (a[j] - b[k * P + j]);
    if constexpr (P == 0) {
        for (Index j = 0; j < stride(); j += Pack<double>::size) {
            TKM_UNROLL
            for (int k = 0; k < Count; ++k) {
                const Pack<double> d = load(a + j) - load(b + k * stride() + j);
                sums[k] = sums[k] + d * d;
            }
        }
        for (int k = 0; k < Count; ++k) out[k] = sum(sums[k]);
    }
    return out;
}

// Of the rows of a tile to some points, three at a time (the last one again if there are none left): each sum waits for
// its last term, and the tile is read once.
template <int P>
inline void SearchState<P>::tile_distances(const double* tile, const double* const* points, int count, double* out,
                                           Index apart) const {
    constexpr int lanes = Pack<double>::size, packs = 4;
    for (int t = 0; t < count; t += 3)
        for (int first = 0; first < rows_per_tile; first += packs * lanes) {
            const double* three[] = {points[t], points[std::min(t + 1, count - 1)], points[std::min(t + 2, count - 1)]};
            Pack<double> sums[3 * packs] = {};
            const double* column = tile + first;
            for (Index j = 0; j < p(); ++j, column += rows_per_tile) {
                TKM_UNROLL
                for (int i = 0; i < 3 * packs; ++i) {
                    const auto away = load(column + i % packs * lanes) - splat(three[i / packs][j]);
                    sums[i] = sums[i] + away * away;
                }
            }
            for (int i = 0; i < packs * std::min(3, count - t); ++i)
                store(out + (t + i / packs) * apart + first + i % packs * lanes, sums[i]);
        }
}

// Of all rows to some points, a tile at a time for all of them: rows are read from memory once. If few rows are within
// `reach`, the points are infinitely far from the others: no point is nearer to these than their nearest centre is, or
// the second, as all are farther from the first one than both distances together. With few features the distances take no
// longer than the question.
template <int P>
void SearchState<P>::distances_to(const double* const* points, int count, Reach reach) {
    std::vector<double> apart(clusters(), infinity);  // of each centre from the nearest point
    std::vector<Index> rows;
    const bool some = reach != Reach::all && stride() >= many_features && count <= points_at_once;
    for (Index k = 0; k < clusters() && some; ++k)
        for (int t = 0; t < count; ++t) apart[k] = std::min(apart[k], squared_distances<1>(center(k), points[t])[0]);
    constexpr Index lanes = Pack<double>::size;
    for (Index first = 0; first < n_ && some; first += lanes) {
        double around[lanes];
        for (Index l = 0; l < lanes; ++l) around[l] = apart[first_[std::min(first + l, n_ - 1)]];
        const auto d1 = load(&d_first_[first]), d2 = reach == Reach::nearest ? d1 : load(&d_second_[first]);
        const auto both = splat(2 * more_than_rounding) * (d1 + d2);  // no less than the square of their sum
        if (!any(load(around) < both)) continue;
        for (Index i = first; i < std::min(first + lanes, n_); ++i)
            if (around[i - first] < both[int(i - first)]) rows.push_back(i);
    }
    distances_.resize(std::max(distances_.size(), std::size_t(count * whole_tiles_)));
    if (!some || Index(rows.size()) > n_ / 2) {
        for (Index start = 0; start < n_; start += rows_per_tile)
            tile_distances(&tiles_[start * stride()], points, count, &distances_[start], whole_tiles_);
        return;
    }
    std::fill_n(distances_.begin(), count * whole_tiles_, infinity);
    for_each_tile(rows, [&](const double* tile, const Index* numbers, Index n_rows) {
        double d[points_at_once * rows_per_tile];
        tile_distances(tile, points, count, d, rows_per_tile);
        for (int t = 0; t < count; ++t)
            for (Index m = 0; m < n_rows; ++m) distances_[t * whole_tiles_ + numbers[m]] = d[t * rows_per_tile + m];
    });
}

// Calls `body` for some rows, gathered into tiles; the last one is filled up with copies.
template <int P>
template <class Body>
void SearchState<P>::for_each_tile(const std::vector<Index>& rows, Body body) const {
    std::vector<double> tile(rows_per_tile * stride());
    Index numbers[rows_per_tile];
    for (std::size_t start = 0; start < rows.size(); start += rows_per_tile) {
        const Index count = std::min(rows_per_tile, Index(rows.size() - start));
        std::fill(std::copy_n(&rows[start], count, numbers), numbers + rows_per_tile, rows[start]);
        to_tile(numbers, tile.data(), rows_per_tile);
        body(tile.data(), numbers, count);
    }
}

// Calls `body` for the rows whose d is below their limit and below the cap. Most packs of rows have none.
template <int P>
template <class Body>
inline void SearchState<P>::for_each_below(const double* d, const std::vector<double>& limit, double cap,
                                           Body body) const {
    constexpr Index lanes = Pack<double>::size;
    for (Index first = 0; first < n_; first += lanes)
        if (any(load(d + first) < min(load(&limit[first]), splat(cap))))
            for (Index i = first; i < std::min(first + lanes, n_); ++i)
                if (d[i] < limit[i] && d[i] < cap) body(i);
}

// Of the first `count` rows of a tile, which have these numbers.
template <int P>
void SearchState<P>::find_two_nearest(const double* tile, const Index* rows, Index count) {
    constexpr int packs = int(rows_per_tile) / Pack<double>::size;
    double d[points_at_once * rows_per_tile];
    const double* points[points_at_once];
    Pack<double> d1[packs], d2[packs], k1[packs], k2[packs];  // numbers of centres as doubles, of one width with the rest
    for (int i = 0; i < packs; ++i) {
        d1[i] = d2[i] = splat(infinity);
        k1[i] = k2[i] = splat(-1.0);
    }
    for (Index k = 0; k < clusters(); ++k) {
        const Index place = k % points_at_once, some = std::min(Index(points_at_once), clusters() - k);
        for (Index t = 0; t < some && place == 0; ++t) points[t] = center(k + t);
        if (place == 0) tile_distances(tile, points, int(some), d, rows_per_tile);
        TKM_UNROLL
        for (int i = 0; i < packs; ++i) {
            const auto here = load(d + place * rows_per_tile + i * Pack<double>::size), number = splat(double(k));
            k2[i] = where_less(here, d1[i], k1[i], where_less(here, d2[i], number, k2[i]));
            d2[i] = min(max(here, d1[i]), d2[i]);
            k1[i] = where_less(here, d1[i], number, k1[i]);
            d1[i] = min(here, d1[i]);
        }
    }
    for (Index i = 0; i < count; ++i) {
        const int pack = int(i) / Pack<double>::size, lane = int(i) % Pack<double>::size;
        first_[rows[i]] = Index(k1[pack][lane]);
        second_[rows[i]] = Index(k2[pack][lane]);
        d_first_[rows[i]] = d1[pack][lane];
        d_second_[rows[i]] = d2[pack][lane];
    }
}

template <int P>
void SearchState<P>::assign_all() {
    std::vector<Index> rows(n_);
    std::iota(rows.begin(), rows.end(), 0);
    for (Index start = 0; start < n_; start += rows_per_tile) {
        if (start % (64 * rows_per_tile) == 0) poll();
        find_two_nearest(&tiles_[start * stride()], &rows[start], std::min(rows_per_tile, n_ - start));
    }
}

// The distances of all rows from the new centre are known.
template <int P>
void SearchState<P>::append_center(const double* point, const double* d) {
    const Index k = clusters();
    centers_.insert(centers_.end(), point, point + stride());
    for (Index first = 0; first < n_; first += Pack<double>::size) {
        if (!any(load(d + first) < load(&d_second_[first]))) continue;
        for (Index i = first; i < std::min(first + Pack<double>::size, n_); ++i) {
            const bool nearest = d[i] < d_first_[i];
            if (d[i] < d_second_[i]) second_[i] = nearest ? first_[i] : k;
            if (nearest) first_[i] = k;
            d_second_[i] = std::min(std::max(d[i], d_first_[i]), d_second_[i]);
            d_first_[i] = std::min(d[i], d_first_[i]);
            if (d_second_[i] == infinity) second_[i] = -1;  // the very first centre has pushed none down
        }
        store(&loss_[first], row_losses(load(&d_first_[first]), load(&d_second_[first])));
    }
}

// Rows grouped by nearest centre, and the weight of each group.
template <int P>
void SearchState<P>::list_members() {
    starts_.assign(clusters() + 1, 0);
    for (Index i = 0; i < n_; ++i) ++starts_[first_[i] + 1];
    for (Index k = 0; k < clusters(); ++k) starts_[k + 1] += starts_[k];
    std::vector<Index> next(starts_.begin(), starts_.end() - 1);
    masses_.assign(clusters(), 0.0);
    for (Index i = 0; i < n_; ++i) {
        order_[next[first_[i]]++] = i;
        masses_[first_[i]] += is_noise(i) ? 0.0 : weight_[i];
    }
}

// Weight of the rows nearest to each centre, noise left out.
template <int P>
void SearchState<P>::inlier_masses(std::vector<double>& mass) const {
    mass.assign(clusters(), 0.0);
    for (Index i = 0; i < n_; ++i)
        if (!is_noise(i)) mass[first_[i]] += weight_[i];
}

}  // namespace tkmeans::TKM_SET
