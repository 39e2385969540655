// Sparse rows and dense centres: one pass over a block, row by row. Compiled once per instruction set.
//
// What a row has with all clusters lies side by side, in whole packs, in double precision whatever the rows are.
#include <cmath>

#include "elementary.hpp"
#include "pairs.hpp"

namespace tkmeans::TKM_SET {

namespace {

constexpr Index size = Pack<double>::size;
constexpr int packs_at_once = 4;  // of clusters, whose sums stay in registers
constexpr double nobody = -1e30;  // log2 of the weight of the clusters that fill up the last pack

// The E-step of one row (eqn:tau, eqn:u_nk).
template <class In>
struct SparseStep {
    SparseStep(const SparseBlock<In>& block_, const Model& model_)
        : block(block_), model(model_), width(round_up(model.clusters, size)), d2(width), inverse(width),
          log_base(width), f(width), value(model.features), turned(model.features * model.clusters + size), squares(width),
          log2_weight(width) {
        for (Index k = 0; k < width; ++k) log2_weight[k] = k < model.clusters ? model.log_weights[k] / ln2 : nobody;
        for (Index k = 0; k < model.clusters; ++k)
            for (Index j = 0; j < model.features; ++j) {
                const double c = turned[j * model.clusters + k] = model.centers[k * model.features + j];
                squares[k] += c * c;
            }
    }

    // Squared distances of a row.
    void measure(Index row) {
        column = block.column + block.first[row];
        entries = block.first[row + 1] - block.first[row];
        double square = 0;
        for (Index e = 0; e < entries; ++e) {
            const double x = double(block.value[block.first[row] + e]) * block.inverse_unit, limit = horizon<In>;
            value[e] = x > limit ? limit : x < -limit ? -limit : x;
            square += value[e] * value[e];
        }
        even_runs(width / size, packs_at_once, [&](Index pack, Index count) {
            with_count<packs_at_once>(count, [&](auto c) { multiply<decltype(c)::value>(pack * size); });
        });
        for (Index k = 0; k < width; k += size) {
            const auto both = splat(square) + load(&squares[k]), product = load(&d2[k]);
            const auto rough = both - (product + product), close = splat(close_share<double>) * both;
            store(&d2[k], max(rough, splat(0.0)));
            for (Index l = k; any(rough < close) && l < least(k + size, model.clusters); ++l)
                if (rough[int(l - k)] < close[int(l - k)]) d2[l] = exact_distance(l);
        }
    }

    // The products with some packs of centres, in the place of their distances.
    template <int Packs>
    void multiply(Index k) {
        Pack<double> sum[Packs];
        TKM_UNROLL
        for (int v = 0; v < Packs; ++v) sum[v] = splat(0.0);
        for (Index e = 0; e < entries; ++e) {
            const double* c = &turned[column[e] * model.clusters + k];
            TKM_UNROLL
            for (int v = 0; v < Packs; ++v) sum[v] = sum[v] + splat(value[e]) * load(c + v * size);
        }
        TKM_UNROLL
        for (int v = 0; v < Packs; ++v) store(&d2[k + v * size], sum[v]);
    }

    // By differences, over all features: for a row that lies on a centre.
    double exact_distance(Index k) const {
        double sum = 0;
        for (Index j = 0, e = 0; j < model.features; ++j) {
            const double x = e < entries && column[e] == j ? value[e++] : 0.0;
            const double away = x - turned[j * model.clusters + k];
            sum += away * away;
        }
        return sum;
    }

    // Shares f relative to 2^top and their total; 1/base and log2(base).
    void weigh() {
        const auto slope = splat(model.slope), farthest = splat(farthest_base<double> / model.slope);
        top = 2 * nobody;
        for (Index k = 0; k < width; k += size) {
            const auto d = min(load(&d2[k]), farthest), base = base_of(d, slope);
            const auto r = reduce(base);
            const auto lost = (slope * d - (base - splat(1.0))) * r.inverse * splat(1 / ln2);  // by rounding base
            const auto log2_base = r.exponent + Float<double>::log_series(r.s) + lost;
            store(&d2[k], d);
            store(&inverse[k], r.inverse);
            store(&log_base[k], log2_base);
            store(&f[k], load(&log2_weight[k]) - splat(model.exponent[0]) * log2_base);
        }
        for (Index k = 0; k < model.clusters; ++k) top = f[k] > top ? f[k] : top;
        total = f_log_f = 0;
        for (Index k = 0; k < width; k += size) {
            const auto log_f = load(&f[k]) - splat(top);
            const auto share = only_where(splat(nobody / 2) < log_f, exp2(log_f));  // 0 for those that fill up
            store(&f[k], share);
            total += sum(share);
            f_log_f += sum(share * max(log_f, splat(nobody)));
        }
        log_density = ln2 * (top + ::log2(total)) + model.log_norm[0];
    }

    // Adds the row, times the weight of each cluster in f, to the sums of all clusters, (p, K) and a pack.
    void add_to(Line<double>& wx, double cut) const {
        Index active = 0;
        for (Index k = 0; k < model.clusters; ++k) active += f[k] > cut;
        const bool few = 4 * active < width;  // the others would change no sum
        for (Index k = 0; few && k < model.clusters; ++k)
            for (Index e = 0; f[k] > cut && e < entries; ++e) wx[column[e] * model.clusters + k] += f[k] * value[e];
        for (Index e = 0; !few && e < entries; ++e) {
            double* sums = &wx[column[e] * model.clusters];  // what lies beyond its own clusters gets zeros
            for (Index k = 0; k < width; k += size) store(sums + k, load(sums + k) + splat(value[e]) * load(&f[k]));
        }
    }

    const SparseBlock<In>& block;
    const Model& model;
    const Index width;                      // clusters, rounded up to whole packs
    Line<double> d2, inverse, log_base, f;  // (width,)
    double top = 0, total = 0, f_log_f = 0, log_density = 0;
    const std::int32_t* column = nullptr;  // of the row's entries
    Index entries = 0;
    Line<double> value;                 // (p,) the row's entries in the frame's unit
    Line<double> turned;                // (p, K) the centres, and a pack
    Line<double> squares, log2_weight;  // (width,) |c|^2
};

// Objective and entropy; then n, w, wd2 and log_u of each cluster; then wx, (K, p).
template <class In>
void summarize(const SparseBlock<In>& block, const Model& model, double* out) {
    SparseStep<In> step(block, model);
    const Index K = model.clusters, p = model.features;
    Line<double> wx(p * K + size);
    double *n = out + 2, *w = n + K, *wd2 = w + K, *log_u = wd2 + K, *sums = log_u + K;
    for (Index i = 0; i < block.rows; ++i) {
        const double weight = block.weight ? double(block.weight[i]) : 1.0;
        if (weight == 0) continue;
        step.measure(i);
        step.weigh();
        out[0] += weight * step.log_density;
        out[1] += weight * ln2 * (::log2(step.total) - step.f_log_f / step.total);
        for (Index k = 0; k < K; ++k) {
            const double tau = step.f[k] * (weight / step.total);
            step.f[k] = model.power ? tau * step.inverse[k] : tau;
            n[k] += tau;
            w[k] += step.f[k];
            wd2[k] += step.f[k] * step.d2[k];
            log_u[k] += tau * step.log_base[k];
        }
        step.add_to(wx, weight * negligible);
    }
    const double gain = model.power ? model.gain[0] : 1.0;
    for (Index k = 0; k < K; ++k) {
        for (Index j = 0; j < p; ++j) sums[k * p + j] = gain * (wx[j * K + k] - w[k] * model.centers[k * p + j]);
        w[k] *= gain;
        wd2[k] *= gain;
        log_u[k] = (::log(model.gain[0]) + model.log_u_bias[0]) * n[k] - ln2 * log_u[k];
    }
}

// Labels, squared distances to the nearest centre, log-densities and trusts, (4, n).
template <class In>
void rows(const SparseBlock<In>& block, const Model& model, double* out) {
    SparseStep<In> step(block, model);
    for (Index i = 0; i < block.rows; ++i) {
        step.measure(i);
        step.weigh();
        Index label = 0, nearest = 0;
        double trust = 0;
        for (Index k = 0; k < model.clusters; ++k) {
            label = step.f[k] > step.f[label] ? k : label;
            nearest = step.d2[k] < step.d2[nearest] ? k : nearest;
            trust += step.f[k] * step.inverse[k];
        }
        const double numbers[] = {double(label), step.d2[nearest], step.log_density, trust / step.total * model.gain[0]};
        for (int field = 0; field < 4; ++field) out[field * block.rows + i] = numbers[field];
    }
}

// Memberships, or distances, (n, K).
template <class In, bool Tau>
void pairs(const SparseBlock<In>& block, const Model& model, double* out) {
    SparseStep<In> step(block, model);
    for (Index i = 0; i < block.rows; ++i) {
        step.measure(i);
        if (Tau) step.weigh();
        for (Index k = 0; k < model.clusters; ++k) *out++ = Tau ? step.f[k] / step.total : ::sqrt(step.d2[k]);
    }
}

}  // namespace

extern const SparseFunctions<double> sparse_f64 = {summarize, rows, pairs<double, true>, pairs<double, false>};
extern const SparseFunctions<float> sparse_f32 = {summarize, rows, pairs<float, true>, pairs<float, false>};

}  // namespace tkmeans::TKM_SET
