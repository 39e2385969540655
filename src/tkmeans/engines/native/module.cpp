// The Python module: arrays in, arrays filled. It checks shapes and releases the GIL; the
// arithmetic is in engine.cpp. Other parts of the module: search_module.cpp, shapes_module.cpp, sparse_module.cpp.
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <tuple>
#include <vector>

#include "bindings.hpp"
#include "instruction_sets.hpp"

using namespace tkmeans;

const Engine& tkmeans::engine_named(const std::string& instruction_set) {
    for (int i = 0; i < n_instruction_sets; ++i)
        if (instruction_set == instruction_sets[i].name && instruction_sets[i].runs_here())
            return *instruction_sets[i].engine;
    throw std::invalid_argument("this machine has no instruction set " + instruction_set);
}

namespace {

std::vector<std::string> available_instruction_sets() {
    std::vector<std::string> names;
    for (int i = 0; i < n_instruction_sets; ++i)
        if (instruction_sets[i].runs_here()) names.push_back(instruction_sets[i].name);
    return names;
}

// Params and Kernel, and the arrays that a Model points into.
struct ModelArrays {
    Matrix<const double> centers;
    Vector<const double> log_weights, exponent, log_norm, gain, log_u_bias;
    double slope;
    int power;
    bool log_sums;

    Model model() const {
        const size_t K = centers.shape(0), p = centers.shape(1);
        require(K >= 1 && p >= 1, "centers must have at least one row and one column");
        require(log_weights.shape(0) == K, "log_weights must have one entry per center");
        for (const auto* table : {&exponent, &log_norm, &gain, &log_u_bias})
            require(table->shape(0) == p + 1, "the kernel's tables must have one entry more than there are features");
        require(power == 0 || power == 1, "power must be 0 or 1");
        return {Index(K),        Index(p),        centers.data(), log_weights.data(),
                exponent.data(), log_norm.data(), gain.data(),    log_u_bias.data(),
                slope,           power,           log_sums};
    }
};

template <class In>
Block<In> as_block(const Matrix<const In>& x, const std::optional<Vector<const In>>& weight,
                   const Vector<const In>& origin, const Vector<const In>& inverse_unit, const Model& model) {
    require(Index(x.shape(1)) == model.features, "rows and centers must have the same number of features");
    require(Index(origin.shape(0)) == model.features && origin.shape(0) == inverse_unit.shape(0),
            "origin and inverse_unit must have one entry per feature");
    require(!weight || weight->shape(0) == x.shape(0), "weight must have one entry per row");
    return {Index(x.shape(0)), Index(x.shape(1)), x.data(), weight ? weight->data() : nullptr,
            origin.data(),     inverse_unit.data()};
}

template <class In>
void bind_functions(nb::module_& m) {
    using X = Matrix<const In>;
    using Weight = std::optional<Vector<const In>>;
    using Origin = Vector<const In>;
    // Without conversion: a copy of a result would be lost.
    const auto result = [](const char* name) { return nb::arg(name).noconvert(); };

    m.def(
        "summarize",
        [](const std::string& set, X x, Weight weight, Origin origin, Origin inverse_unit, const ModelArrays& arrays,
           bool skip_far, bool wide, Matrix<double> by_cluster, Matrix<double> observed, Matrix<double> wx) {
            const Model model = arrays.model();
            const Block<In> block = as_block<In>(x, weight, origin, inverse_unit, model);
            const size_t K = size_t(model.clusters), p = size_t(model.features), lines = by_cluster.shape(0);
            require((lines == 4 || lines == 5) && by_cluster.shape(1) == K, "there are 4 or 5 sums of each center");
            for (const auto* sums : {&observed, &wx})
                require(sums->shape(0) == K && sums->shape(1) == p, "sums must have the shape of centers");
            double *n = by_cluster.data(), *pull = lines == 5 ? n + 4 * K : nullptr;
            Sums sums{n, n + K, n + 2 * K, n + 3 * K, wx.data(), pull, observed.data(), false, 0, 0, 0};
            {
                nb::gil_scoped_release release;
                functions<In>(set).summarize(block, model, skip_far, wide, sums);
            }
            return std::make_tuple(sums.missing, sums.cells, sums.objective, sums.entropy);
        },
        "set"_a, "x"_a, "weight"_a, "origin"_a, "inverse_unit"_a, "model"_a, "skip_far"_a, "wide"_a,
        result("by_cluster"), result("observed"), result("wx"),
        "Fill arrays of zeros with the sums of an E-step; return if values are missing, cells, objective, entropy.");

    m.def(
        "rows",
        [](const std::string& set, X x, Origin origin, Origin inverse_unit, const ModelArrays& arrays,
           Vector<std::int64_t> label, Vector<In> d2, Vector<In> log_density, Vector<In> trust) {
            const Model model = arrays.model();
            const Block<In> block = as_block<In>(x, {}, origin, inverse_unit, model);
            const bool brief = log_density.shape(0) == 0 && trust.shape(0) == 0;
            require(label.shape(0) == x.shape(0) && d2.shape(0) == x.shape(0) &&
                        (brief || (log_density.shape(0) == x.shape(0) && trust.shape(0) == x.shape(0))),
                    "results must have one entry per row");
            nb::gil_scoped_release release;
            functions<In>(set).rows(block, model,
                                    {label.data(), d2.data(), brief ? nullptr : log_density.data(), trust.data()});
        },
        "set"_a, "x"_a, "origin"_a, "inverse_unit"_a, "model"_a, result("label"), result("d2"), result("log_density"),
        result("trust"), "Fill the model's answers for each row; log_density and trust may both be empty.");

    for (const bool wants_tau : {true, false})
        m.def(
            wants_tau ? "memberships" : "distances",
            [wants_tau](const std::string& set, X x, Origin origin, Origin inverse_unit, const ModelArrays& arrays,
                        Matrix<In> out) {
                const Model model = arrays.model();
                const Block<In> block = as_block<In>(x, {}, origin, inverse_unit, model);
                require(out.shape(0) == x.shape(0) && Index(out.shape(1)) == model.clusters,
                        "the result must have one row per row, one column per center");
                nb::gil_scoped_release release;
                const auto& f = functions<In>(set);
                (wants_tau ? f.memberships : f.distances)(block, model, out.data());
            },
            "set"_a, "x"_a, "origin"_a, "inverse_unit"_a, "model"_a, result("out"),
            wants_tau ? "Fill the probability of every cluster for each row, (n, K)."
                      : "Fill the Euclidean distance of each row to every center, (n, K).");
}

}  // namespace

NB_MODULE(_native, m) {
    m.doc() = "The engine in C++. `set` is the name of an instruction set; arrays that are filled come last.";
    nb::class_<ModelArrays>(m, "Model", "`Params` and `Kernel` of tkmeans.stats.")
        .def(
            "__init__",
            [](ModelArrays* self, Matrix<const double> centers, Vector<const double> log_weights,
               Vector<const double> exponent, Vector<const double> log_norm, Vector<const double> gain,
               Vector<const double> log_u_bias, double slope, int power, bool log_sums) {
                new (self)
                    ModelArrays{centers, log_weights, exponent, log_norm, gain, log_u_bias, slope, power, log_sums};
            },
            "centers"_a, "log_weights"_a, "exponent"_a, "log_norm"_a, "gain"_a, "log_u_bias"_a, "slope"_a,
            "power"_a, "log_sums"_a);
    m.def("available_instruction_sets", &available_instruction_sets,
          "The instruction sets that this machine has, the widest last.");
    bind_functions<double>(m);
    bind_functions<float>(m);
    bind_search(m);
    bind_shapes(m);
    bind_sparse(m);
}
