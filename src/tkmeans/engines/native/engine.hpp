// What crosses the border between the Python module and the engine: plain pointers and numbers.
//
// The engine is compiled once per instruction set, each time in a namespace of its own;
// this header is the only one that all of them share with the module.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>

namespace tkmeans {

using Index = std::int64_t;

// `Params` and `Kernel` of stats.py. Tables have p + 1 entries, by number of observed features.
struct Model {
    Index clusters, features;
    const double* centers;      // (K, p)
    const double* log_weights;  // (K,)
    const double* exponent;
    const double* log_norm;
    const double* gain;
    const double* log_u_bias;
    double slope;
    int power;      // q, 0 or 1
    bool log_sums;  // are log_u and entropy wanted?
};

// `Block` of stats.py. Rows enter the frame in the type of the data or, if clusters have shapes, in double precision.
template <class In, class Number = In>
struct Block {
    Index rows, features;
    const In* x;                 // (n, p)
    const Number* weight;        // (n,), or null
    const Number* origin;        // (p,)
    const Number* inverse_unit;  // (p,)
};

// `Stats` of stats.py. The arrays are zero on entry.
struct Sums {
    double *n, *w, *wd2, *log_u, *wx;
    double* pull;      // (K,) sum of (tau u^q)^2 |x - mu|^2, or null
    double* observed;  // (K, p); filled only if a row has a missing feature
    bool missing;
    double cells, objective, entropy;
};

// `Rows` of stats.py; log_density and trust may be null.
template <class In>
struct RowValues {
    std::int64_t* label;
    In *d2, *log_density, *trust;
};

// `ShapeKernel` of shape_stats.py. The noise, if there is any, comes after the components.
struct ShapeModel {
    Index components, features;
    bool noise, full;                                // is there noise? Are factors triangles, or diagonals?
    const double* centers;                           // (K, p)
    const double* factors;                           // (K, p, p), or (K, p)
    const double *height, *exponent, *slope, *gain;  // (K,) of the noise: ln in its ellipsoid, and beyond
};

// The functions for clusters with shapes fill numbers in, and return whether rows are complete, as they must be. The
// sums are zero on entry: noise, that beyond, log-likelihood and entropy, then n, w, log_u, wx and scatter of each component.
template <class In>
struct ShapeFunctions {
    using Fill = bool (*)(const Block<In, double>&, const ShapeModel&, double* out);
    Fill summarize, rows, memberships, distances;  // the last three (6, n), (n, K) and (n, K)
};

// Rows without their zeros; columns ascend. They have all features, so a `Model` has one entry in each of its tables.
template <class In>
struct SparseBlock {
    Index rows;
    const In* value;             // (entries,)
    const std::int32_t* column;  // (entries,)
    const Index* first;          // (n + 1,) the first entry of each row
    const In* weight;            // (n,), or null
    double inverse_unit;         // the frame, whose origin is zero
};

template <class In>
struct SparseFunctions {
    using Fill = void (*)(const SparseBlock<In>&, const Model&, double* out);
    Fill summarize, rows, memberships, distances;  // the first has zeros to fill, see sparse.cpp
};

// The functions of one instruction set, for one type of data.
template <class In>
struct Functions {
    // Unless `skip_far` is false, pairs whose membership cannot reach 1e-16 may be left out. `wide` computes in double.
    void (*summarize)(const Block<In>&, const Model&, bool skip_far, bool wide, Sums&);
    void (*rows)(const Block<In>&, const Model&, const RowValues<In>&);
    void (*memberships)(const Block<In>&, const Model&, In* tau);     // (n, K)
    void (*distances)(const Block<In>&, const Model&, In* distance);  // (n, K)
    const ShapeFunctions<In>& shapes;
    const SparseFunctions<In>& sparse;
};

// The search for starting centres, whose state lives here and whose plan is in search/center_search.py.
class Search {
 public:
    static constexpr int split_draws = 2;  // ways to split a cluster that are tried at each breath

    std::function<void()> poll = [] {};  // called now and then; if it throws, the search is of no more use

    virtual ~Search() = default;
    virtual void seed(Index target, const double* uniforms, int trials) = 0;
    virtual void refine(int steps) = 0;
    virtual Index inhale(Index needed, Index at_most, const double* uniforms, int noise_draws) = 0;
    virtual void descend(Index target, Index floor) = 0;
    virtual void fix_noise() = 0;
    virtual void restore(const double* centers, Index clusters, double scale) = 0;
    virtual void read_centers(double* out) const = 0;                   // (K, p)
    virtual void read_rows(double* masses, double* nearest, Index* labels) const = 0;  // (K,), (n,), (n,)
    virtual double cost() = 0;
    virtual double scale() const = 0;
    virtual Index clusters() const = 0;
};

// Rows, (n, p), and their weights must outlive the search.
using NewSearch = std::unique_ptr<Search> (*)(const double* rows, const double* weights, Index n, Index features,
                                              Index clusters, double dof, double noise_reach, double least_scale);

struct Engine {
    Functions<double> f64;
    Functions<float> f32;
    NewSearch new_search;
};

}  // namespace tkmeans
