// A tile: the few rows the engine works on at a time, in the frame's coordinates.
#pragma once
#include "grid.hpp"
#include "simd.hpp"

namespace tkmeans::TKM_SET {

// Coordinates this many units away are as good as infinitely far (HORIZON of the reference).
template <class In>
constexpr In horizon = sizeof(In) == 8 ? In(1e100) : In(1e12);

// Up to this many features everything is done by panels, and by differences.
constexpr Index few_features = 8;

// Features per row of scratch memory: whole packs, and an odd number of cache lines,
// so that the same feature of neighbouring rows does not compete for one cache set.
template <class T>
constexpr Index padded(Index features) {
    constexpr Index per_line = line_bytes / Index(sizeof(T));
    return (round_up(features, per_line) / per_line | 1) * per_line;
}

// A matrix in two layouts: by panels of `depth` rows, feature after feature, to be compared
// with centres, and, unless features are few, by rows, to be added up.
template <class T>
struct TwoWays {
    static constexpr int depth = 2 * Pack<T>::size;

    void resize(Index capacity, Index features) {
        panels.resize(capacity / depth, features * depth);
        if (features > few_features) rows.resize(capacity, padded<T>(features));
    }
    T get(Index i, Index j) const { return panels[i / depth][j * depth + i % depth]; }
    void set(Index i, Index j, T value) {
        panels[i / depth][j * depth + i % depth] = value;
        if (rows.rows()) rows[i][j] = value;
    }

    Grid<T> panels;  // (capacity / depth, p * depth)
    Grid<T> rows;    // (capacity, padded p)
};

// The memory that the next tile will read, to be fetched line by line while this one is measured:
// with many features, memory is too slow to be waited for.
struct Ahead {
    const char* address;
    Index every;  // fetch a line in every so many steps
};

template <class T>
class Tile {
 public:
    static constexpr int depth = TwoWays<T>::depth;

    // Rows whose |x|^2 exceeds `far` make the tile a far one.
    Tile(Index capacity, Index features, T far)
        : capacity_(capacity),
          features_(features),
          far_square_(far),
          squares_(capacity),
          weight_(capacity),
          n_observed_(capacity) {
        assert(capacity % depth == 0);
        x_.resize(capacity, features);
    }

    // The rows from `first` on, as many as fit, filled up to whole panels with rows of weight zero.
    template <class In, class Number>
    void read(const Block<In, Number>& block, Index first);

    Index rows() const { return rows_; }
    Index panels() const { return (rows_ + depth - 1) / depth; }
    Index packs() const { return 2 * panels(); }
    Index features() const { return features_; }
    bool missing() const { return missing_; }                 // does any row lack a feature?
    bool far() const { return far_; }                         // may distances be so large that base needs a bound?
    const TwoWays<T>& x() const { return x_; }                // 0 where missing
    const TwoWays<T>& observed() const { return observed_; }  // 1 or, where missing, 0; only if missing()
    const T* squares() const { return &squares_[0]; }         // |x|^2
    const T* weights() const { return &weight_[0]; }
    Index n_observed(Index i) const { return n_observed_[i]; }

    // The part of it that a panel fetches in one of `turns` walks over its features.
    Ahead ahead(Index panel, Index turn, Index turns) const {
        const Index every = most(1, turns * line_bytes / next_bytes_);
        return {next_ + panel * features_ * next_bytes_ + turn * (features_ / every) * line_bytes,
                next_ ? every : features_ + 1};
    }

 private:
    template <class In, class Number>
    Pack<T> read_pack(const Block<In, Number>& block, const In* const* row, Index first);
    void mend(T limit);

    Index capacity_, features_, rows_ = 0;
    T far_square_;
    bool missing_ = false, far_ = false;
    TwoWays<T> x_, observed_;
    Line<T> squares_, weight_;
    Line<Index> n_observed_;
    const char* next_ = nullptr;  // what comes after this tile's rows, or null
    Index next_bytes_ = 1;        // of a panel and a feature
};

template <class T>
template <class In, class Number>
void Tile<T>::read(const Block<In, Number>& block, Index first) {
    constexpr int size = Pack<T>::size;
    assert(block.features == features_ && first < block.rows);
    rows_ = least(capacity_, block.rows - first);
    missing_ = far_ = false;
    const bool more = first + 2 * capacity_ <= block.rows;
    next_ = more ? reinterpret_cast<const char*>(block.x + (first + capacity_) * features_) : nullptr;
    next_bytes_ = depth * Index(sizeof(In));

    const Index last = panels() * depth;
    for (Index i = 0; i < last; ++i) n_observed_[i] = features_;
    for (Index i = 0; i < rows_; ++i) weight_[i] = block.weight ? T(block.weight[first + i]) : T(1);
    for (Index i = rows_; i < last; ++i) weight_[i] = 0;

    const auto far_square = splat(far_square_);
    bool ordinary = true;
    for (Index i = 0; i < last; i += size) {
        const In* row[size];
        for (int l = 0; l < size; ++l) row[l] = block.x + (first + least(i + l, rows_ - 1)) * features_;
        const auto squares = read_pack(block, row, i);
        store(&squares_[i], squares);
        // NaN and far coordinates show in |x|^2: ordinary rows pay for no other search.
        ordinary &= all(squares <= far_square);
    }
    if (!ordinary) mend(T(horizon<Number>));
}

// (x - origin) / unit of a feature, as the reference has it.
template <class T, class In, class Number>
TKM_INLINE T enter_one(const Block<In, Number>& block, const In* row, Index j) {
    return T((Number(row[j]) - block.origin[j]) * block.inverse_unit[j]);
}

// The same of consecutive features.
template <class T, class In, class Number>
TKM_INLINE Pack<T> enter(const Block<In, Number>& block, const In* row, Index j) {
    if constexpr (sizeof(In) == sizeof(T)) {
        return (load(row + j) - load(block.origin + j)) * load(block.inverse_unit + j);
    } else {
        alignas(TKM_PACK_BYTES) T lanes[Pack<T>::size];
        for (int l = 0; l < Pack<T>::size; ++l) lanes[l] = enter_one<T>(block, row, j + l);
        return load(lanes);
    }
}

// As many rows as a pack has lanes, returning their |x|^2: squares of numbers are read by rows and
// turned around, what is left of the features is read one by one.
template <class T>
template <class In, class Number>
Pack<T> Tile<T>::read_pack(const Block<In, Number>& block, const In* const* row, Index first) {
    constexpr int size = Pack<T>::size;
    T* panel = x_.panels[first / depth] + first % depth;
    const bool by_rows = x_.rows.rows() > 0;
    auto sum = splat(T(0));
    Index j = 0;
    for (; j + size <= features_; j += size) {
        Pack<T> x[size];
        TKM_UNROLL
        for (int l = 0; l < size; ++l) x[l] = enter<T>(block, row[l], j);
        if (by_rows) {
            TKM_UNROLL
            for (int l = 0; l < size; ++l) store(x_.rows[first + l] + j, x[l]);
        }
        transpose(x);
        TKM_UNROLL
        for (int l = 0; l < size; ++l) {
            store(panel + (j + l) * depth, x[l]);
            sum = sum + x[l] * x[l];
        }
    }
    for (; j < features_; ++j) {
        alignas(TKM_PACK_BYTES) T lanes[size];
        for (int l = 0; l < size; ++l) lanes[l] = enter_one<T>(block, row[l], j);
        if (by_rows)
            for (int l = 0; l < size; ++l) x_.rows[first + l][j] = lanes[l];
        const auto x = load(lanes);
        store(panel + j * depth, x);
        sum = sum + x * x;
    }
    return sum;
}

// Pulls far coordinates back to the horizon, notes what is missing and puts 0 in its place.
template <class T>
void Tile<T>::mend(T limit) {
    const Index last = panels() * depth;
    for (Index i = 0; i < last; ++i) {
        squares_[i] = 0;
        n_observed_[i] = 0;
        for (Index j = 0; j < features_; ++j) {
            const T x = x_.get(i, j);
            if (x > limit) x_.set(i, j, limit);
            if (x < -limit) x_.set(i, j, -limit);
            n_observed_[i] += x == x;
            if (x == x) squares_[i] += x_.get(i, j) * x_.get(i, j);
        }
        missing_ |= n_observed_[i] < features_;
        far_ |= squares_[i] > far_square_;
    }
    if (!missing_) return;
    if (!observed_.panels.rows()) observed_.resize(capacity_, features_);
    for (Index i = 0; i < last; ++i)
        for (Index j = 0; j < features_; ++j) {
            const T x = x_.get(i, j);
            observed_.set(i, j, x == x ? T(1) : T(0));
            if (x != x) x_.set(i, j, T(0));
        }
}

}  // namespace tkmeans::TKM_SET
