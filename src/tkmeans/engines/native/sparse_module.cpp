// The functions for sparse rows: arrays in, numbers filled. The arithmetic is in sparse.cpp.
#include "bindings.hpp"

namespace tkmeans {

namespace {

// Memory is safe whatever a caller hands over.
template <class In>
void check(const SparseBlock<In>& block, Index features, Index entries) {
    const Index* first = block.first;
    require(first[0] >= 0 && first[block.rows] <= entries, "rows must lie within the values");
    for (Index i = 0; i < block.rows; ++i) {
        require(first[i] <= first[i + 1] && first[i + 1] <= entries, "rows must lie one after another");
        Index before = -1;
        for (Index e = first[i]; e < first[i + 1]; before = block.column[e++])
            require(before < block.column[e] && block.column[e] < features, "columns must ascend, within the centers");
    }
}

template <class In>
void bind_function(nb::module_& m, const char* name, typename SparseFunctions<In>::Fill SparseFunctions<In>::*function,
                   size_t sums, size_t per_row, bool pairs, const char* doc) {
    m.def(
        name,
        [=](const std::string& set, Vector<const In> value, Vector<const std::int32_t> column,
            Vector<const std::int64_t> first, std::optional<Vector<const In>> weight, double inverse_unit,
            Matrix<const double> centers, Vector<const double> log_weights, Vector<const double> numbers, bool power,
            Vector<double> out) {
            const size_t n = first.shape(0) - 1, K = centers.shape(0), p = centers.shape(1);
            require(first.shape(0) >= 1 && K >= 1 && p >= 1, "there must be a center, a column and one first entry");
            require(value.shape(0) == column.shape(0), "values and columns must be as many");
            require(!weight || weight->shape(0) == n, "weight must have one entry per row");
            require(log_weights.shape(0) == K && numbers.shape(0) == 5, "a weight per center, and five numbers");
            require(out.shape(0) == sums * (2 + K * (4 + p)) + n * per_row + pairs * n * K,
                    "out must have the length of the result");
            const double* number = numbers.data();
            const Model model{Index(K),   Index(p),   centers.data(), log_weights.data(), number + 1, number + 2,
                              number + 3, number + 4, number[0],      power,              true};
            const SparseBlock<In> block{Index(n),     value.data(),  column.data(),
                                        first.data(), weight ? weight->data() : nullptr, inverse_unit};
            nb::gil_scoped_release release;
            check(block, Index(p), Index(value.shape(0)));
            (functions<In>(set).sparse.*function)(block, model, out.data());
        },
        "set"_a, "value"_a, "column"_a, "first"_a, "weight"_a, "inverse_unit"_a, "centers"_a, "log_weights"_a,
        "numbers"_a, "power"_a, "out"_a.noconvert(), doc);
}

template <class In>
void bind_functions(nb::module_& m) {
    using F = SparseFunctions<In>;
    bind_function<In>(m, "summarize_sparse", &F::summarize, 1, 0, false, "Fill zeros with the sums of an E-step.");
    bind_function<In>(m, "rows_of_sparse", &F::rows, 0, 4, false, "Fill the model's answers for each row, (4, n).");
    bind_function<In>(m, "memberships_of_sparse", &F::memberships, 0, 0, true, "Fill the probabilities, (n, K).");
    bind_function<In>(m, "distances_of_sparse", &F::distances, 0, 0, true, "Fill the distances, (n, K).");
}

}  // namespace

void bind_sparse(nb::module_& m) {
    bind_functions<double>(m);
    bind_functions<float>(m);
}

}  // namespace tkmeans
