// The search of search.hpp behind the interface of engine.hpp.
#include "search.hpp"

#include "engine.hpp"

namespace tkmeans::TKM_SET {

namespace {

template <int P>
class SearchOf final : public Search {
public:
    SearchOf(const double* rows, const double* weights, Index n, Index features, Index clusters, double noise_reach)
        : state(rows, weights, n, features, clusters, noise_reach) {}

    void seed(Index target, const double* uniforms, int trials) override { state.seed(target, uniforms, trials); }
    void refine(int steps) override { state.refine(steps); }
    Index inhale(Index needed, Index at_most, const double* uniforms, int noise_draws) override {
        return state.inhale(needed, at_most, uniforms, noise_draws);
    }
    void descend(Index target, Index floor, double* costs) override {
        state.descend(target, floor, [costs](const SearchState<P>& now) {
            if (costs) costs[now.n_centers() - 1] = now.cost();
        });
    }
    void fix_noise() override { state.fix_noise(); }
    void restore(const double* centers, Index clusters, double scale) override { state.set_centers(centers, clusters, scale); }
    void read_centers(double* out) const override { std::copy(state.centers.begin(), state.centers.end(), out); }
    void read_rows(double* masses, double* nearest) const override {
        std::vector<double> near;
        state.inlier_masses(near);
        std::copy(near.begin(), near.end(), masses);
        std::copy(state.d_first.begin(), state.d_first.end(), nearest);
    }
    double cost() const override { return state.cost(); }
    double scale() const override { return state.scale; }
    Index clusters() const override { return state.n_centers(); }

private:
    SearchState<P> state;
};

}  // namespace

// Loops over two or three features are unrolled only if their number is known when compiling.
std::unique_ptr<Search> new_search(const double* rows, const double* weights, Index n, Index features, Index clusters, double noise_reach) {
    switch (features) {
        case 1: return std::make_unique<SearchOf<1>>(rows, weights, n, features, clusters, noise_reach);
        case 2: return std::make_unique<SearchOf<2>>(rows, weights, n, features, clusters, noise_reach);
        case 3: return std::make_unique<SearchOf<3>>(rows, weights, n, features, clusters, noise_reach);
        default: return std::make_unique<SearchOf<0>>(rows, weights, n, features, clusters, noise_reach);
    }
}

}  // namespace tkmeans::TKM_SET
