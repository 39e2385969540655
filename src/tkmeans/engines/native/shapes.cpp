// One pass over a block for clusters with shapes, tile by tile. Compiled once per instruction set.
#include <cmath>

#include "shapes_sums.hpp"

namespace tkmeans::TKM_SET {

namespace {

// Calls `body(step, first)` with the distances of every tile; ends with false at a row that is not complete.
template <class In, class Body>
bool for_each_tile(const Block<In, double>& block, const ShapeModel& model, Body body) {
    ShapeEStep step(model);
    for (Index first = 0; first < block.rows; first += step.capacity) {
        step.tile.read(block, first);
        if (step.tile.missing()) return false;
        step.measure();
        body(step, first);
    }
    return true;
}

template <class In>
bool summarize(const Block<In, double>& block, const ShapeModel& model, double* out) {
    ShapeAccumulator sums(model, out);
    const bool complete = for_each_tile(block, model, [&](ShapeEStep& step, Index) {
        step.find_log_shares();
        step.find_shares();
        sums.add(step);
    });
    sums.finish();
    return complete;
}

template <class In>
bool rows(const Block<In, double>& block, const ShapeModel& model, double* values) {
    return for_each_tile(block, model, [&](ShapeEStep& step, Index first) {
        const EStep<double>& e = step.e;
        double *label = values + first, *d2 = label + block.rows, *log_density = d2 + block.rows,
               *trust = log_density + block.rows, *noise = trust + block.rows,
               *entropy = noise + block.rows;
        const Index n = step.tile.rows();
        step.find_log_shares();
        for (Index i = 0; i < n; ++i) trust[i] = -ordinary_base;  // at first, the largest log share of a row
        for (Index k = 0; k < model.components; ++k)
            for (Index i = 0; i < n; ++i) {
                label[i] = e.f[k][i] > trust[i] ? double(k) : label[i];
                trust[i] = e.f[k][i] > trust[i] ? e.f[k][i] : trust[i];
            }
        step.find_shares();
        for (Index i = 0; i < n; ++i) {
            d2[i] = e.d2[Index(label[i])][i];
            trust[i] = 0;
            for (Index k = 0; k < model.components; ++k) trust[i] += e.f[k][i] * (model.gain[k] * e.relative_u[k][i]);
            trust[i] /= e.total[i];
            log_density[i] = ln2 * e.top[i] + ::log(e.total[i]);
            noise[i] = e.f[model.components][i] / e.total[i];
            entropy[i] = ::log(e.total[i]) - ln2 * e.f_log_f[i] / e.total[i];
        }
    });
}

// Memberships, or distances.
template <class In, bool Tau>
bool pairs(const Block<In, double>& block, const ShapeModel& model, double* out) {
    return for_each_tile(block, model, [&](ShapeEStep& step, Index first) {
        const EStep<double>& e = step.e;
        if (Tau) step.find_log_shares();
        if (Tau) step.find_shares();
        for (Index i = 0; i < step.tile.rows(); ++i)
            for (Index k = 0; k < model.components; ++k)
                out[(first + i) * model.components + k] = Tau ? e.f[k][i] / e.total[i] : ::sqrt(e.d2[k][i]);
    });
}

}  // namespace

extern const ShapeFunctions<double> shapes_f64 = {summarize, rows, pairs<double, true>, pairs<double, false>};
extern const ShapeFunctions<float> shapes_f32 = {summarize, rows, pairs<float, true>, pairs<float, false>};

}  // namespace tkmeans::TKM_SET
