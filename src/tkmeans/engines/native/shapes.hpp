// The E-step of clusters with shapes over one tile: tau and u of every pair. engines/shapes.py is the definition.
//
// It is the differences from a centre that are whitened. The shorter way, white rows minus a white centre, loses the
// digits of clusters that are thin and far from zero.
#pragma once
#include "memberships.hpp"

namespace tkmeans::TKM_SET {

// D beyond this is held there: with any nu above 1e-20, base is a normal number.
constexpr double farthest_distance = 1e280;

// Rows of a matrix per block: with two packs of columns each they fill a register file of sixteen.
constexpr int block_axes = 6;

// sums[a] = the sum over n rows of entries[a * apart] times two packs of columns.
template <int Axes>
TKM_INLINE void sum_products(Pack<double> (&sums)[Axes][2], const double* columns, Index columns_step,
                             const double* entries, Index entries_step, Index apart, Index n) {
    TKM_UNROLL
    for (int a = 0; a < Axes; ++a) sums[a][0] = sums[a][1] = splat(0.0);
    for (Index r = 0; r < n; ++r, columns += columns_step, entries += entries_step) {
        const auto column0 = load(columns), column1 = load(columns + Pack<double>::size);
        TKM_UNROLL
        for (int a = 0; a < Axes; ++a) {
            const auto entry = splat(entries[a * apart]);
            sums[a][0] = sums[a][0] + entry * column0;
            sums[a][1] = sums[a][1] + entry * column1;
        }
    }
}

// One tile at a time, and all that is known of its pairs. The noise comes after the components.
class ShapeEStep {
    static constexpr int size = Pack<double>::size, depth = 2 * size;

 public:
    ShapeEStep(const ShapeModel& model)
        : capacity(rows_per_tile(model)),
          tile(capacity, model.features, horizon<double> * horizon<double>),
          e(model.components + 1, capacity),
          model_(model),
          parts_(model.components + model.noise),
          away_(model.features * depth) {}

    // Enough to pay for each tile's fixed costs, few enough for the second-level cache.
    static Index rows_per_tile(const ShapeModel& model) {
        const Index row_bytes = Index(sizeof(double)) * (4 * (model.components + 1) + 3 * model.features);
        return most(depth, least(128, (256 << 10) / row_bytes / depth * depth));
    }
    Index rows() const { return tile.panels() * depth; }  // with those that fill the last panel

    // D of all pairs.
    void measure() {
        for (Index k = 0; k < parts_; ++k)
            for (Index panel = 0; panel < tile.panels(); ++panel)
                measure_panel(tile.x().panels[panel], k, e.d2[k] + panel * depth);
    }

    // f becomes the log2 of the shares, top the largest of a row; then f becomes the shares relative to 2^top.
    void find_log_shares() {
        bound(e.d2, parts_, rows(), farthest_distance);
        for (Index i = 0; i < rows(); ++i) {
            e.top[i] = -ordinary_base;
            e.total[i] = e.f_log_f[i] = 0;
        }
        for (Index k = 0; k < model_.components; ++k) {
            for (Index i = 0; i < rows(); ++i) e.exponent[i] = model_.exponent[k];
            take_logarithms<true>(model_.slope[k], log2_height(k), AllPairs<double>{tile.packs()}, k, e);
        }
        const Index noise = model_.components;
        for (Index i = 0; i < rows() && model_.noise; i += size) {
            const auto one = splat(1.0), p = splat(double(model_.features)), r2 = load(e.d2[noise] + i);
            const auto log_r = splat(0.5) * log2(max(r2, one)), rim = splat(model_.exponent[noise] / ln2);
            const auto falling = rim - p * log_r - splat(2.0) * log2(one + splat(ln2) * log_r);
            const auto log_f = only_where(r2 <= one, splat(log2_height(noise))) + only_where(one < r2, falling);
            store(e.f[noise] + i, log_f);
            store(&e.top[i], max(load(&e.top[i]), log_f));
        }
    }
    void find_shares() { take_exponentials(parts_, AllPairs<double>{tile.packs()}, e); }

    const Index capacity;
    Tile<double> tile;
    EStep<double> e;

 private:
    // The log2 of weight times density at the centre. Without weight, no distance makes up for it.
    double log2_height(Index k) const { return model_.height[k] > -1e15 ? model_.height[k] / ln2 : -1e15; }

    void measure_panel(const double* x, Index k, double* d2) {
        const Index p = model_.features;
        const double *center = model_.centers + k * p, *factor = model_.factors + k * (model_.full ? p * p : p);
        const bool box = model_.gain[k] < 0, full = model_.full && !box;  // of the noise: flat in a box, see NoiseKernel
        auto sum0 = splat(0.0), sum1 = sum0;
        for (Index j = 0; j < p; ++j) {
            const auto c = splat(center[j]), scale = splat(full ? 1.0 : factor[model_.full ? j * (p + 1) : j]);
            const auto away0 = (load(x + j * depth) - c) * scale, away1 = (load(x + j * depth + size) - c) * scale;
            store(&away_[j * depth], away0);
            store(&away_[j * depth + size], away1);
            sum0 = box ? max(sum0, away0 * away0) : sum0 + away0 * away0;
            sum1 = box ? max(sum1, away1 * away1) : sum1 + away1 * away1;
        }
        store(d2, full ? splat(0.0) : sum0);
        store(d2 + size, full ? splat(0.0) : sum1);
        if (full)
            even_runs(p, block_axes, [&](Index axis, Index count) {
                with_count<block_axes>(count, [&](auto c) { add_white_squares<decltype(c)::value>(factor, axis, d2); });
            });
    }

    // Adds the squares of `Count` white features, from `axis` on, to one panel's D. The factor is zero above its
    // diagonal. Not inlined: its sums need all registers.
    template <int Count>
    TKM_NOINLINE void add_white_squares(const double* factor, Index axis, double* d2) const {
        const Index p = model_.features;
        Pack<double> white[Count][2];
        sum_products(white, &away_[0], depth, factor + axis * p, 1, p, axis + Count);
        for (int half = 0; half < 2; ++half) {
            auto sum = load(d2 + half * size);
            TKM_UNROLL
            for (int c = 0; c < Count; ++c) sum = sum + white[c][half] * white[c][half];
            store(d2 + half * size, sum);
        }
    }

    const ShapeModel& model_;
    const Index parts_;
    Line<double> away_;  // (p, depth) one panel's differences from a centre
};

}  // namespace tkmeans::TKM_SET
