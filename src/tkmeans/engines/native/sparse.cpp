// Sparse rows and dense centres: one pass over a block, row by row. Compiled once per instruction set.
//
// What a row has with all clusters lies side by side, in whole packs, in double precision whatever the rows are.
#include <cmath>

#include "pairs.hpp"
#include "elementary.hpp"

namespace tkmeans::TKM_SET {

namespace {

constexpr Index size = Pack<double>::size;
constexpr int packs_at_once = 4;    // of clusters, whose sums stay in registers
constexpr double nobody = -1e30;    // log2 of the weight of the clusters that fill up the last pack

double largest(Pack<double> a) {
    double value = a[0];
    for (int l = 1; l < size; ++l) value = a[l] > value ? a[l] : value;
    return value;
}

double total_of(Pack<double> a) {
    double value = 0;
    for (int l = 0; l < size; ++l) value += a[l];
    return value;
}

// The E-step of one row (eqn:tau, eqn:u_nk).
template <class In>
class SparseStep {
 public:
    SparseStep(const SparseBlock<In>& block, const SparseModel& model)
        : width(round_up(model.clusters, size)),
          d2(width),
          inverse(width),
          log_base(width),
          f(width),
          block_(block),
          model_(model),
          value_(model.features),
          turned_(model.features, width),
          squares_(width),
          log2_weight_(width) {
        for (Index k = 0; k < width; ++k) log2_weight_[k] = nobody;
        for (Index k = 0; k < model.clusters; ++k) {
            log2_weight_[k] = model.log_weights[k] / ln2;
            for (Index j = 0; j < model.features; ++j) {
                const double c = model.centers[k * model.features + j];
                turned_[j][k] = c;
                squares_[k] += c * c;
            }
        }
    }

    Index entries() const { return entries_; }
    const std::int32_t* columns() const { return block_.column + first_; }
    double value(Index e) const { return value_[e]; }

    // Squared distances of a row.
    void measure(Index row) {
        first_ = block_.first[row];
        entries_ = block_.first[row + 1] - first_;
        double square = 0;
        for (Index e = 0; e < entries_; ++e) {
            const double x = double(block_.value[first_ + e]) * block_.inverse_unit, limit = double(horizon<In>);
            value_[e] = x > limit ? limit : x < -limit ? -limit : x;
            square += value_[e] * value_[e];
        }
        even_runs(width / size, packs_at_once, [&](Index pack, Index count) {
            with_count<packs_at_once>(count, [&](auto c) { multiply<decltype(c)::value>(pack * size); });
        });
        for (Index k = 0; k < width; k += size) {
            const auto both = splat(square) + load(&squares_[k]), product = load(&d2[k]);
            const auto rough = both - (product + product);
            store(&d2[k], max(rough, splat(0.0)));
            const auto close = rough < splat(close_share<double>) * both;
            if (any(close))
                for (Index l = 0; l < size && k + l < model_.clusters; ++l)
                    if (close[int(l)]) d2[k + l] = exact_distance(k + l);
        }
    }

    // Shares f relative to 2^top, their total, 1/base and log2(base).
    void weigh() {
        const auto one = splat(1.0), slope = splat(model_.slope), farthest = splat(farthest_base<double> / model_.slope);
        auto highest = splat(2 * nobody);
        for (Index k = 0; k < width; k += size) {
            const auto d = min(load(&d2[k]), farthest), base = base_of(d, slope);
            const auto r = reduce(base);
            const auto lost = (slope * d - (base - one)) * r.inverse * splat(1 / ln2);  // by rounding 1 + slope d
            const auto log2_base = r.exponent + Float<double>::log_series(r.s) + lost;
            const auto log_f = load(&log2_weight_[k]) - splat(model_.exponent) * log2_base;
            store(&d2[k], d);
            store(&inverse[k], r.inverse);
            store(&log_base[k], log2_base);
            store(&f[k], log_f);
            highest = max(highest, log_f);
        }
        top = largest(highest);
        auto sum = splat(0.0), sum_f_log_f = sum;
        for (Index k = 0; k < width; k += size) {
            const auto log_f = load(&f[k]) - splat(top), share = exp2(log_f);
            const auto counted = only_where(splat(nobody / 2) < log_f, share);  // not those that fill up
            store(&f[k], counted);
            sum = sum + counted;
            sum_f_log_f = sum_f_log_f + counted * max(log_f, splat(nobody));
        }
        total = total_of(sum);
        f_log_f = total_of(sum_f_log_f);
    }

    const Index width;                     // clusters, rounded up to whole packs
    Line<double> d2, inverse, log_base, f;  // (width,)
    double top = 0, total = 0, f_log_f = 0;

 private:
    // The products with some packs of centres, in place of their distances.
    template <int Packs>
    void multiply(Index k) {
        Pack<double> sum[Packs];
        TKM_UNROLL
        for (int v = 0; v < Packs; ++v) sum[v] = splat(0.0);
        const std::int32_t* column = columns();
        for (Index e = 0; e < entries_; ++e) {
            const auto x = splat(value_[e]);
            const double* c = turned_[column[e]] + k;
            TKM_UNROLL
            for (int v = 0; v < Packs; ++v) sum[v] = sum[v] + x * load(c + v * size);
        }
        TKM_UNROLL
        for (int v = 0; v < Packs; ++v) store(&d2[k + v * size], sum[v]);
    }

    // By differences, over all features: for a row that lies on a centre.
    double exact_distance(Index k) const {
        double sum = 0;
        for (Index j = 0, e = 0; j < model_.features; ++j) {
            const bool stored = e < entries_ && columns()[e] == j;
            const double away = (stored ? value_[e] : 0.0) - turned_[j][k];
            sum += away * away;
            e += stored;
        }
        return sum;
    }

    const SparseBlock<In>& block_;
    const SparseModel& model_;
    Index first_ = 0, entries_ = 0;
    Line<double> value_;     // (entries,) of the row, in the frame's unit
    Grid<double> turned_;    // (p, width) the centres
    Line<double> squares_;   // (width,) |c|^2
    Line<double> log2_weight_;
};

// Adds the row, times the weight of each cluster in f, to the sums of all clusters, (p, width).
template <class In>
void add_row(const SparseStep<In>& step, Index clusters, double cut, Grid<double>& wx) {
    Index active = 0;
    for (Index k = 0; k < clusters; ++k) active += step.f[k] > cut;
    const std::int32_t* column = step.columns();
    if (4 * active < step.width) {  // the others would change no sum
        for (Index k = 0; k < clusters; ++k)
            if (step.f[k] > cut)
                for (Index e = 0; e < step.entries(); ++e) wx[column[e]][k] += step.f[k] * step.value(e);
        return;
    }
    for (Index e = 0; e < step.entries(); ++e) {
        double* sums = wx[column[e]];
        const auto x = splat(step.value(e));
        for (Index k = 0; k < step.width; k += size) store(sums + k, load(sums + k) + x * load(&step.f[k]));
    }
}

// Objective and entropy; then n, w, wd2 and log_u of each cluster; then wx, (K, p).
template <class In>
void summarize(const SparseBlock<In>& block, const SparseModel& model, double* out) {
    SparseStep<In> step(block, model);
    const Index K = model.clusters, p = model.features;
    Grid<double> wx(p, step.width);
    double *n = out + 2, *w = n + K, *wd2 = w + K, *log_u = wd2 + K, *sums = log_u + K;
    for (Index i = 0; i < block.rows; ++i) {
        const double weight = block.weight ? double(block.weight[i]) : 1.0;
        if (weight == 0) continue;
        step.measure(i);
        step.weigh();
        const double log2_total = ::log2(step.total);
        out[0] += weight * (ln2 * (step.top + log2_total) + model.log_norm);
        out[1] += weight * ln2 * (log2_total - step.f_log_f / step.total);
        for (Index k = 0; k < K; ++k) {
            const double tau = step.f[k] * (weight / step.total);
            const double tau_u = model.power ? tau * step.inverse[k] : tau;
            n[k] += tau;
            w[k] += tau_u;
            wd2[k] += tau_u * step.d2[k];
            log_u[k] += tau * step.log_base[k];
            step.f[k] = tau_u;
        }
        add_row(step, K, weight * negligible, wx);
    }
    const double gain = model.power ? model.gain : 1.0;
    for (Index k = 0; k < K; ++k) {
        for (Index j = 0; j < p; ++j) sums[k * p + j] = gain * (wx[j][k] - w[k] * model.centers[k * p + j]);
        w[k] *= gain;
        wd2[k] *= gain;
        log_u[k] = (::log(model.gain) + model.log_u_bias) * n[k] - ln2 * log_u[k];
    }
}

// Labels, squared distances to the nearest centre, log-densities and trusts, (4, n).
template <class In>
void rows(const SparseBlock<In>& block, const SparseModel& model, double* out) {
    SparseStep<In> step(block, model);
    const Index n = block.rows;
    for (Index i = 0; i < n; ++i) {
        step.measure(i);
        step.weigh();
        Index label = 0;
        double d2 = step.d2[0], trust = 0;
        for (Index k = 0; k < model.clusters; ++k) {
            if (step.f[k] > step.f[label]) label = k;
            if (step.d2[k] < d2) d2 = step.d2[k];
            trust += step.f[k] * step.inverse[k];
        }
        out[i] = double(label);
        out[n + i] = d2;
        out[2 * n + i] = ln2 * (step.top + ::log2(step.total)) + model.log_norm;
        out[3 * n + i] = trust / step.total * model.gain;
    }
}

// Memberships, or distances, (n, K).
template <class In, bool Tau>
void pairs(const SparseBlock<In>& block, const SparseModel& model, double* out) {
    SparseStep<In> step(block, model);
    for (Index i = 0; i < block.rows; ++i) {
        step.measure(i);
        if (Tau) step.weigh();
        for (Index k = 0; k < model.clusters; ++k)
            *out++ = Tau ? step.f[k] / step.total : ::sqrt(step.d2[k]);
    }
}

}  // namespace

extern const SparseFunctions<double> sparse_f64 = {summarize, rows, pairs<double, true>, pairs<double, false>};
extern const SparseFunctions<float> sparse_f32 = {summarize, rows, pairs<float, true>, pairs<float, false>};

}  // namespace tkmeans::TKM_SET
