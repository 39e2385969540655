// The search of search.hpp behind the interface of engine.hpp. Compiled once per instruction set.
#include "search.hpp"

#include "search_additions.hpp"
#include "search_drops.hpp"

namespace tkmeans::TKM_SET {

// Loops over two or three features are unrolled only if their number is known when compiling.
std::unique_ptr<Search> new_search(const double* rows, const double* weights, Index n, Index features, Index clusters,
                                   double dof, double noise_reach, double least_scale) {
    switch (features) {
        case 1: return std::make_unique<SearchState<1>>(rows, weights, n, features, clusters, dof, noise_reach, least_scale);
        case 2: return std::make_unique<SearchState<2>>(rows, weights, n, features, clusters, dof, noise_reach, least_scale);
        case 3: return std::make_unique<SearchState<3>>(rows, weights, n, features, clusters, dof, noise_reach, least_scale);
        default: return std::make_unique<SearchState<0>>(rows, weights, n, features, clusters, dof, noise_reach, least_scale);
    }
}

}  // namespace tkmeans::TKM_SET
