// The functions for clusters with shapes: arrays in, numbers filled. The arithmetic is in shapes.cpp.
#include "bindings.hpp"

namespace tkmeans {

namespace {

using Numbers = Matrix<const double>;
using Stack =
    nb::ndarray<const double, nb::c_contig, nb::device::cpu>;  // of triangles, (K, p, p), or diagonals, (K, p)

ShapeModel as_model(const Numbers& centers, const Stack& factors, const Numbers& numbers, bool noise) {
    const size_t parts = centers.shape(0), p = centers.shape(1), ndim = factors.ndim();
    require(parts >= 1 + size_t(noise) && p >= 1, "centers must have at least one row and one column");
    require(
        (ndim == 2 || ndim == 3) && factors.shape(0) == parts && factors.shape(1) == p && factors.shape(ndim - 1) == p,
        "factors must be of shape (K, p, p) or (K, p)");
    require(numbers.shape(0) == 4 && numbers.shape(1) == parts, "numbers must be of shape (4, K)");
    const double* height = numbers.data();
    return {Index(parts) - noise, Index(p), noise,          ndim == 3,          centers.data(),
            factors.data(),       height,   height + parts, height + 2 * parts, height + 3 * parts};
}

template <class In>
void bind_functions(nb::module_& m) {
    enum Length { sums, rows, pairs };
    const auto bind = [&](const char* name, auto function, Length length, const char* doc) {
        m.def(
            name,
            [=](const std::string& set, Matrix<const In> x, std::optional<Vector<const double>> weight, Numbers frame,
                Numbers centers, Stack factors, Numbers numbers, bool noise, Vector<double> out) {
                const ShapeModel model = as_model(centers, factors, numbers, noise);
                const size_t n = x.shape(0), p = centers.shape(1);
                require(x.shape(1) == p, "rows and centers must have the same number of features");
                require(frame.shape(0) == 2 && frame.shape(1) == p, "frame must be of shape (2, p)");
                require(!weight || weight->shape(0) == n, "weight must have one entry per row");
                const size_t K = size_t(model.components),
                             lengths[] = {4 + K * (3 + p + factors.size() / centers.shape(0)), 6 * n, n * K};
                require(out.shape(0) == lengths[length], "out must have the length of the result");
                const double *weights = weight ? weight->data() : nullptr, *origin = frame.data();
                nb::gil_scoped_release release;
                const Block<In, double> block{Index(n), Index(p), x.data(), weights, origin, origin + p};
                require((functions<In>(set).shapes.*function)(block, model, out.data()),
                        "rows must be complete where clusters have shapes");
            },
            "set"_a, "x"_a, "weight"_a, "frame"_a, "centers"_a, "factors"_a, "numbers"_a, "noise"_a,
            "out"_a.noconvert(), doc);
    };
    using F = ShapeFunctions<In>;
    bind("summarize_shapes", &F::summarize, sums, "Fill zeros with the sums of an E-step.");
    bind("rows_of_shapes", &F::rows, rows, "Fill the model's answers for each row, (6, n).");
    bind("memberships_of_shapes", &F::memberships, pairs, "Fill the probability of every component, (n, K).");
    bind("distances_to_shapes", &F::distances, pairs, "Fill the distance to every center in its metric, (n, K).");
}

}  // namespace

void bind_shapes(nb::module_& m) {
    bind_functions<double>(m);
    bind_functions<float>(m);
}

}  // namespace tkmeans
