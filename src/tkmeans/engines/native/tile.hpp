// A tile: the few rows the engine works on at a time, in the frame's coordinates.
#pragma once
#include "grid.hpp"
#include "simd.hpp"

namespace tkmeans::TKM_SET {

// Coordinates this many units away are as good as infinitely far (HORIZON of the reference).
template <class In>
constexpr In horizon = sizeof(In) == 8 ? In(1e100) : In(1e12);

// Features per row of scratch memory: whole packs, and an odd number of cache lines,
// so that the same feature of neighbouring rows does not compete for one cache set.
template <class T>
constexpr Index padded(Index features) {
    constexpr Index per_line = line_bytes / Index(sizeof(T));
    return (round_up(features, per_line) / per_line | 1) * per_line;
}

// A matrix in two layouts: by rows, to be added up, and by panels of `depth` rows, feature
// after feature, to be compared with centres.
template <class T>
struct TwoWays {
    static constexpr int size = Pack<T>::size;
    static constexpr int depth = 2 * size;

    void resize(Index capacity, Index features) {
        rows.resize(capacity, padded<T>(features));
        panels.resize(capacity / depth, features * depth);
    }
    void fill_panel(Index panel);

    Grid<T> rows;    // (capacity, padded p)
    Grid<T> panels;  // (capacity / depth, p * depth)
};

template <class T>
void TwoWays<T>::fill_panel(Index panel) {
    const Index features = panels.columns() / depth;
    for (int half = 0; half < 2; ++half) {
        T* to = panels[panel] + half * size;
        for (Index j = 0; j < features; j += size) {
            Pack<T> square[size];
            TKM_UNROLL
            for (int i = 0; i < size; ++i) square[i] = load(rows[panel * depth + half * size + i] + j);
            transpose(square);
            const int last = int(least(size, features - j));
            for (int l = 0; l < last; ++l) store(to + (j + l) * depth, square[l]);
        }
    }
}

template <class T>
class Tile {
   public:
    static constexpr int depth = TwoWays<T>::depth;

    Tile(Index capacity, Index features)
        : capacity_(capacity), features_(features), squares_(capacity), weight_(capacity), n_observed_(capacity) {
        assert(capacity % depth == 0);
        x_.resize(capacity, features);
    }

    // The rows from `first` on, as many as fit. Rows beyond the last are zero and weigh nothing.
    template <class In>
    void read(const Block<In>& block, Index first);

    Index rows() const { return rows_; }
    Index panels() const { return (rows_ + depth - 1) / depth; }
    Index features() const { return features_; }
    bool missing() const { return missing_; }  // does any row lack a feature?
    const TwoWays<T>& x() const { return x_; }  // 0 where missing
    const TwoWays<T>& observed() const { return observed_; }  // 1 where observed, 0 where missing; only if missing()
    const T* squares() const { return &squares_[0]; }  // |x|^2
    const T* weights() const { return &weight_[0]; }
    Index n_observed(Index i) const { return n_observed_[i]; }

   private:
    void fill_panels();
    bool in_range(T limit) const;
    void mend(T limit);

    Index capacity_, features_, rows_ = 0;
    bool missing_ = false;
    TwoWays<T> x_, observed_;
    Line<T> squares_, weight_;
    Line<Index> n_observed_;
};

template <class T>
template <class In>
void Tile<T>::read(const Block<In>& block, Index first) {
    assert(block.features == features_ && first < block.rows);
    rows_ = least(capacity_, block.rows - first);
    for (Index i = 0; i < rows_; ++i) {
        const In* from = block.x + (first + i) * features_;
        T* to = x_.rows[i];
        for (Index j = 0; j < features_; ++j) to[j] = T((from[j] - block.origin[j]) * block.inverse_unit);
    }
    for (Index i = 0; i < panels() * depth; ++i) {
        const bool real = i < rows_;
        weight_[i] = real ? (block.weight ? T(block.weight[first + i]) : T(1)) : T(0);
        n_observed_[i] = features_;
        if (!real) std::memset(x_.rows[i], 0, sizeof(T) * std::size_t(features_));
    }
    missing_ = false;
    fill_panels();
    if (!in_range(T(horizon<In>))) mend(T(horizon<In>));
}

template <class T>
void Tile<T>::fill_panels() {
    constexpr int size = Pack<T>::size;
    for (Index panel = 0; panel < panels(); ++panel) {
        x_.fill_panel(panel);
        auto sum0 = splat(T(0)), sum1 = splat(T(0));
        const T* x = x_.panels[panel];
        for (Index j = 0; j < features_; ++j, x += depth) {
            const auto x0 = load(x), x1 = load(x + size);
            sum0 = sum0 + x0 * x0;
            sum1 = sum1 + x1 * x1;
        }
        store(&squares_[panel * depth], sum0);
        store(&squares_[panel * depth + size], sum1);
    }
}

// NaN and coordinates beyond the horizon show in |x|^2: no complete row pays for the search.
template <class T>
bool Tile<T>::in_range(T limit) const {
    bool within = true;
    for (Index i = 0; i < rows_; ++i) within &= squares_[i] <= limit * limit;
    return within;
}

// Pulls far coordinates back to the horizon and notes what is missing.
template <class T>
void Tile<T>::mend(T limit) {
    for (Index i = 0; i < rows_; ++i) {
        T* x = x_.rows[i];
        for (Index j = 0; j < features_; ++j) {
            if (x[j] > limit) x[j] = limit;
            if (x[j] < -limit) x[j] = -limit;
            missing_ |= x[j] != x[j];
        }
    }
    if (missing_) {
        if (observed_.rows.rows() == 0) observed_.resize(capacity_, features_);
        for (Index i = 0; i < panels() * depth; ++i) {
            T* x = x_.rows[i];
            T* observed = observed_.rows[i];
            n_observed_[i] = 0;
            for (Index j = 0; j < features_; ++j) {
                observed[j] = x[j] == x[j] ? T(1) : T(0);
                if (observed[j] == 0) x[j] = 0;
                n_observed_[i] += observed[j] != 0;
            }
        }
        for (Index panel = 0; panel < panels(); ++panel) observed_.fill_panel(panel);
    }
    fill_panels();
}

}  // namespace tkmeans::TKM_SET
