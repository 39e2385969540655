// The sums over rows that leave the engine for clusters with shapes (`ShapeStats`). A tile's own sums come first, so
// that rounding does not grow with the number of rows.
#pragma once
#include "shapes.hpp"

namespace tkmeans::TKM_SET {

class ShapeAccumulator {
    static constexpr int size = Pack<double>::size, depth = 2 * size;

 public:
    ShapeAccumulator(const ShapeModel& model, double* out)
        : model_(model),
          out_(out),
          p_(model.features),
          width_(round_up(p_, depth) + line_bytes / Index(sizeof(double))),  // a line more, see padded()
          weight_per_total_(ShapeEStep::rows_per_tile(model)),
          centers_(model.components, width_),
          wx_(model.components, width_),
          scatter_(model.components * (model.full ? p_ : 1), width_),
          near_(weight_per_total_.size()),
          away_(weight_per_total_.size(), width_) {
        for (Index k = 0; k < model.components; ++k)
            for (Index j = 0; j < p_; ++j) centers_[k][j] = model.centers[k * p_ + j];
    }

    // Adds a tile whose shares are known; tau u replaces f.
    void add(ShapeEStep& step) {
        add_rows(step);
        for (Index k = 0; k < model_.components; ++k) {
            add_component(step, k);
            if (p_ > few_features) add_near_rows(step, k);
            else
                with_count<few_features>(p_, [&](auto features) {
                    if (model_.full) add_panels<decltype(features)::value, true>(step, k);
                    else add_panels<decltype(features)::value, false>(step, k);
                });
        }
    }

    // Turns what was accumulated into the statistics; nothing may be added afterwards.
    void finish() {
        for (Index k = 0; k < model_.components; ++k) {
            const double gain = model_.gain[k];
            double *sums = sums_of(k), *wx = sums + 3, *scatter = wx + p_;
            sums[1] *= gain;
            sums[2] *= -ln2;
            for (Index i = 0; i < p_; ++i) {
                wx[i] = gain * wx_[k][i];
                if (!model_.full) scatter[i] = gain * scatter_[k][i];
                for (Index j = 0; j < p_ && model_.full; ++j)
                    scatter[i * p_ + j] = gain * scatter_row(k, most(i, j))[least(i, j)];
            }
        }
    }

 private:
    // Per row: its log-density, entropy and noise, and what turns its shares into memberships.
    void add_rows(const ShapeEStep& step) {
        const EStep<double>& e = step.e;
        auto log2_density = splat(0.0), log2_entropy = log2_density, noise = log2_density, beyond = log2_density;
        for (Index i = 0; i < step.rows(); i += size) {
            const auto weight = load(step.tile.weights() + i);
            const auto total = load(&e.total[i]), log2_total = log2(total), inverse_total = splat(1.0) / total;
            log2_density = log2_density + weight * (load(&e.top[i]) + log2_total);
            log2_entropy = log2_entropy + weight * (log2_total - load(&e.f_log_f[i]) * inverse_total);
            const auto own = weight * inverse_total * load(e.f[model_.components] + i);  // zero if there is no noise
            noise = noise + own;
            beyond = beyond + only_where(splat(1.0) < load(e.d2[model_.components] + i), own);
            store(&weight_per_total_[i], weight * inverse_total);
        }
        out_[0] += sum(noise);
        out_[1] += sum(beyond);
        out_[2] += ln2 * sum(log2_density);
        out_[3] += ln2 * sum(log2_entropy);
    }

    // The sums of a component in which features have no part. Negligible memberships are left out.
    void add_component(ShapeEStep& step, Index k) {
        double* f = step.e.f[k];
        auto n = splat(0.0), w = n, tau_log_base = n;
        for (Index i = 0; i < step.rows(); i += size) {
            const auto all = load(f + i) * load(&weight_per_total_[i]);
            const auto tau = only_where(load(step.tile.weights() + i) * splat(negligible) < all, all);
            const auto tau_u = tau * load(step.e.relative_u[k] + i);
            n = n + tau;
            w = w + tau_u;
            tau_log_base = tau_log_base + tau * load(step.e.log_base[k] + i);
            store(f + i, tau_u);
        }
        sums_of(k)[0] += sum(n);
        sums_of(k)[1] += sum(w);
        sums_of(k)[2] += sum(tau_log_base);
    }

    // Few features: all rows by panels, a sum in every lane.
    template <int Features, bool Full>
    void add_panels(const ShapeEStep& step, Index k) {
        Pack<double> wx[Features] = {}, scatter[Features][Features] = {};  // its lower triangle, or its diagonal
        for (Index i = 0; i < step.rows(); i += size) {
            const double* x = step.tile.x().panels[i / depth] + i % depth;
            const auto weight = load(step.e.f[k] + i);
            Pack<double> away[Features];
            TKM_UNROLL
            for (int j = 0; j < Features; ++j) {
                away[j] = load(x + j * depth) - splat(centers_[k][j]);
                const auto weighted = weight * away[j];
                wx[j] = wx[j] + weighted;
                TKM_UNROLL
                for (int l = Full ? 0 : j; l <= j; ++l) scatter[j][l] = scatter[j][l] + weighted * away[l];
            }
        }
        for (int j = 0; j < Features; ++j) {
            wx_[k][j] += sum(wx[j]);
            for (int l = Full ? 0 : j; l <= j; ++l) scatter_row(k, j)[l] += sum(scatter[j][l]);
        }
    }

    // Many features: only the rows that count, gathered.
    void add_near_rows(const ShapeEStep& step, Index k) {
        const double* tau_u = step.e.f[k];
        Index n = 0;
        for (Index i = 0; i < step.tile.rows(); ++i) {
            near_[n] = int(i);  // kept only if it counts
            n += tau_u[i] > 0;
        }
        for (Index r = 0; r < n; ++r) {
            const double* x = step.tile.x().rows[near_[r]];
            const auto root = splat(::sqrt(tau_u[near_[r]]));
            for (Index j = 0; j < p_; j += size) {
                const auto away = root * (load(x + j) - load(centers_[k] + j));
                store(away_[r] + j, away);
                store(wx_[k] + j, load(wx_[k] + j) + root * away);
                if (!model_.full) store(scatter_[k] + j, load(scatter_[k] + j) + away * away);
            }
        }
        for (Index j = 0; j < p_ && model_.full && n > 0;
             j += depth)  // two packs of columns, what is above them left out
            even_runs(p_ - j, block_axes, [&](Index i, Index axes) {
                with_count<block_axes>(axes, [&](auto a) { add_block<decltype(a)::value>(n, k, j + i, j); });
            });
    }

    // Rows i and on, columns j and on, of the outer products of what was gathered.
    template <int Axes>
    TKM_NOINLINE void add_block(Index n, Index k, Index i, Index j) {
        Pack<double> sums[Axes][2];
        sum_products(sums, away_[0] + j, width_, away_[0] + i, width_, 1, n);
        TKM_UNROLL
        for (int a = 0; a < Axes; ++a) {
            double* to = scatter_row(k, i + a) + j;
            store(to, load(to) + sums[a][0]);
            store(to + size, load(to + size) + sums[a][1]);
        }
    }

    double* sums_of(Index k) const { return out_ + 4 + k * (3 + p_ + (model_.full ? p_ * p_ : p_)); }

    // Where component k has row i of its scatter matrix; a diagonal is all in one row.
    double* scatter_row(Index k, Index i) { return scatter_[model_.full ? k * p_ + i : k]; }

    const ShapeModel& model_;
    double* const out_;  // see engine.hpp
    const Index p_, width_;
    Line<double> weight_per_total_;        // (rows,) tau = f * this
    Grid<double> centers_, wx_, scatter_;  // (K, width), (K, width), (K p, width) or (K, width)
    Line<int> near_;                       // rows of the tile that count in a component
    Grid<double> away_;                    // (rows, width) their differences from the centre times the root of tau u
};

}  // namespace tkmeans::TKM_SET
