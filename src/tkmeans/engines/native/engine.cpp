// One pass over a block, tile by tile. Compiled once per instruction set.
#include "engine.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sums.hpp"

namespace tkmeans::TKM_SET {

namespace {

// Rows per tile: enough to pay for each tile's fixed costs, few enough for the second-level cache, no more than n.
template <class T>
Index tile_rows(Index n, const Model& model, Index of_cluster = 4) {
    const Index depth = Tile<T>::depth;
    const Index row_bytes = Index(sizeof(T)) * (of_cluster * model.clusters + 4 * model.features);
    const Index rows = (512 << 10) / row_bytes / depth * depth;
    return most(depth, least(least(128, rows), round_up(n, depth)));
}

// From so many features on, near pairs may be few enough for the search for them to pay. Where
// it finds too many again and again, the next tiles go without: 0, 1, 3, 7, then 15 of them.
constexpr Index many_features = 16;
constexpr double few_pairs = 0.6;  // of many clusters a tile has two packs, and one far row makes half of its pairs near
constexpr int most_failures = 5;

// What every pass over a block needs: the model in the type of its tiles, and one tile's memory.
template <class T>
struct Workspace {
    template <class In>
    Workspace(const Block<In>& block, const Model& model)
        : capacity(tile_rows<T>(block.rows, model)),
          kernel(model),
          centers(model),
          tile(capacity, model.features, ordinary_square(centers, model.slope, double(horizon<In>))),
          e(model.clusters, capacity) {}

    template <class In>
    void read(const Block<In>& block, Index first) {
        tile.read(block, first);
        measure(tile, centers, e.d2);
        if (tile.far())
            bound(e.d2, centers.clusters, tile.panels() * Tile<T>::depth, T(farthest_base<T> / double(kernel.slope)));
    }

    const Index capacity;
    const Kernel<T> kernel;
    const Centers<T> centers;
    Tile<T> tile;
    EStep<T> e;
};

template <class T, class In>
void summarize_in(const Block<In>& block, const Model& model, bool skip_far, Sums& out) {
    Workspace<T> work(block, model);
    Tile<T>& tile = work.tile;
    EStep<T>& e = work.e;
    const Kernel<T>& kernel = work.kernel;
    Accumulator<T> sums(kernel, work.capacity, out);
    const int halves = model.log_sums ? 0 : whole_halves(kernel);
    const bool skip = skip_far && model.features >= many_features;
    NearPairs<T> near(model.clusters, work.capacity, &kernel.log2_weight[0], kernel.log2_weight_min,
                      kernel.exponent[model.features]);
    Index wait = 0;  // tiles until the next search
    int failures = 0;  // in a row

    for (Index first = 0; first < block.rows; first += work.capacity) {
        work.read(block, first);
        const bool search = skip && !tile.missing() && !tile.far() && wait-- <= 0;
        if (search || halves) find_nearest(e.d2, model.clusters, tile.panels() * Tile<T>::depth, &e.d2_min[0]);
        if (search && near.find(e.d2, &e.d2_min[0], kernel.slope, tile.packs()) < few_pairs) {
            failures = 0;
            weigh(tile, kernel, halves, near, e);
            sums.add(tile, near, true, e);
        } else {
            if (search) wait = (Index(1) << (failures = std::min(failures + 1, most_failures)) >> 1) - 1;
            const AllPairs<T> all{tile.packs()};
            weigh(tile, kernel, halves, all, e);
            sums.add(tile, all, skip, e);
        }
    }
    sums.finish();
}

// In single precision a large exponent would magnify the rounding of base until memberships are noise.
constexpr double largest_exponent_in_single = 1000;

// Calls `body` with a number of the type for the tiles.
template <class In, class Body>
void in_type(const Model& model, bool wide, Body body) {
    if (wide || model.exponent[model.features] > largest_exponent_in_single) body(double());
    else body(In());
}

template <class In>
void summarize(const Block<In>& block, const Model& model, bool skip_far, bool wide, Sums& out) {
    in_type<In>(model, wide, [&](auto zero) { summarize_in<decltype(zero)>(block, model, skip_far, out); });
}

// Calls `body(work, first)` with the shares of every tile.
template <class T, class In, class Body>
void for_each_tile(const Block<In>& block, const Model& model, Body body) {
    Workspace<T> work(block, model);
    for (Index first = 0; first < block.rows; first += work.capacity) {
        work.read(block, first);
        weigh(work.tile, work.kernel, 0, AllPairs<T>{work.tile.packs()}, work.e);
        body(work, first);
    }
}

template <class T, class In>
void rows_in(const Block<In>& block, const Model& model, const RowValues<In>& out) {
    const Index capacity = tile_rows<T>(block.rows, model);
    Line<T> largest(capacity), label(capacity), trust(capacity);  // a label is a small integer, exact in T
    for_each_tile<T>(block, model, [&](Workspace<T>& work, Index first) {
        const Tile<T>& tile = work.tile;
        EStep<T>& e = work.e;
        find_nearest(e.d2, model.clusters, tile.panels() * Tile<T>::depth, &e.d2_min[0]);
        for (Index i = 0; i < tile.rows(); ++i) largest[i] = label[i] = trust[i] = 0;
        for (Index k = 0; k < model.clusters; ++k)
            for (Index i = 0; i < tile.rows(); ++i) {
                const T f = e.f[k][i];
                label[i] = f > largest[i] ? T(k) : label[i];
                largest[i] = f > largest[i] ? f : largest[i];
                trust[i] += f * e.relative_u[k][i];
            }
        for (Index i = 0; i < tile.rows(); ++i) {
            const Index row = first + i, observed = tile.n_observed(i);
            const double log_total = ln2 * double(e.top[i]) + ::log(double(e.total[i])) + work.kernel.log_weight_max;
            out.label[row] = std::int64_t(label[i]);
            out.d2[row] = In(e.d2_min[i]);
            out.log_density[row] = In(log_total + model.log_norm[observed]);
            out.trust[row] = In(trust[i] / e.total[i] * T(model.gain[observed]));
        }
    });
}

// The label and the least distance alone take no logarithm: f = pi base^-exponent is largest where
// base pi^(-1 / exponent) is least, and with equal weights where the distance is.
template <class T, class In>
void nearest_in(const Block<In>& block, const Model& model, const RowValues<In>& out) {
    constexpr int size = Pack<T>::size;
    const Index capacity = tile_rows<T>(block.rows, model, 1), clusters = model.clusters;
    const Kernel<T> kernel(model);
    const Centers<T> centers(model);
    Tile<T> tile(capacity, model.features, ordinary_square(centers, model.slope, double(horizon<In>)));
    Grid<T> pairs(clusters, capacity);
    const View<T> d2(pairs, 0);
    Line<T> label(capacity), d2_min(capacity), factor(clusters);
    const bool equal = kernel.log2_weight_min == 0;
    for (Index k = 0; k < clusters && !equal; ++k)
        factor[k] = T(::exp2(-kernel.log2_weight[k] / kernel.exponent[model.features]));
    for (Index first = 0; first < block.rows; first += capacity) {
        tile.read(block, first);
        measure(tile, centers, d2);
        const Index last = tile.panels() * Tile<T>::depth;
        if (tile.far()) bound(d2, clusters, last, T(farthest_base<T> / model.slope));
        if (!equal) find_nearest(d2, clusters, last, &d2_min[0]);
        for (Index i = 0; i < last; i += size) {
            auto best = splat(std::numeric_limits<T>::infinity()), number = splat(T(0));
            for (Index k = 0; k < clusters; ++k) {
                const auto d = load(d2[k] + i);
                const auto score = equal ? d : base_of(d, splat(kernel.slope)) * splat(factor[k]);
                number = max(number, only_where(score < best, splat(T(k))));  // later numbers are larger
                best = min(score, best);
            }
            store(&label[i], number);
            if (equal) store(&d2_min[i], best);
        }
        if (tile.missing() && !equal)  // an exponent for each row
            for (Index i = 0; i < tile.rows(); ++i) {
                const auto log_f = [&](Index k) {
                    const double base = 1 + double(kernel.slope) * double(d2[k][i]);
                    return double(kernel.log2_weight[k]) - double(kernel.exponent[tile.n_observed(i)]) * ::log2(base);
                };
                Index best = 0;
                for (Index k = 1; k < clusters; ++k) best = log_f(k) > log_f(best) ? k : best;
                label[i] = T(best);
            }
        for (Index i = 0; i < tile.rows(); ++i) {
            out.label[first + i] = std::int64_t(label[i]);
            out.d2[first + i] = In(d2_min[i]);
        }
    }
}

// Without log_density and trust if these are null.
template <class In>
void rows(const Block<In>& block, const Model& model, const RowValues<In>& out) {
    in_type<In>(model, false, [&](auto zero) {
        using T = decltype(zero);
        out.log_density ? rows_in<T>(block, model, out) : nearest_in<T>(block, model, out);
    });
}

template <class In>
void memberships(const Block<In>& block, const Model& model, In* tau) {
    in_type<In>(model, false, [&](auto zero) {
        for_each_tile<decltype(zero)>(block, model, [&](const auto& work, Index first) {
            for (Index i = 0; i < work.tile.rows(); ++i)
                for (Index k = 0; k < model.clusters; ++k)
                    tau[(first + i) * model.clusters + k] = In(work.e.f[k][i] / work.e.total[i]);
        });
    });
}

template <class In>
void distances(const Block<In>& block, const Model& model, In* distance) {
    const Index capacity = tile_rows<In>(block.rows, model, 1);
    const Centers<In> centers(model);
    Tile<In> tile(capacity, model.features, horizon<In> * horizon<In>);
    Grid<In> pairs(model.clusters, capacity);
    const View<In> d2(pairs, 0);
    for (Index first = 0; first < block.rows; first += capacity) {
        tile.read(block, first);
        measure(tile, centers, d2);
        for (Index k = 0; k < model.clusters; ++k)
            for (Index i = 0; i < capacity; ++i) d2[k][i] = std::sqrt(d2[k][i]);
        for (Index i = 0; i < tile.rows(); ++i)
            for (Index k = 0; k < model.clusters; ++k) distance[(first + i) * model.clusters + k] = d2[k][i];
    }
}

}  // namespace

std::unique_ptr<Search> new_search(const double* rows, const double* weights, Index n, Index features, Index clusters,
                                   double dof, double noise_reach, double least_scale);  // search.cpp
extern const ShapeFunctions<double> shapes_f64;                                          // shapes.cpp
extern const ShapeFunctions<float> shapes_f32;
extern const SparseFunctions<double> sparse_f64;  // sparse.cpp
extern const SparseFunctions<float> sparse_f32;

extern const Engine engine;
const Engine engine = {
    {summarize<double>, rows<double>, memberships<double>, distances<double>, shapes_f64, sparse_f64},
    {summarize<float>, rows<float>, memberships<float>, distances<float>, shapes_f32, sparse_f32},
    new_search,
};

}  // namespace tkmeans::TKM_SET
