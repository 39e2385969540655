// The Python class `Search`: it checks arguments and releases the GIL; the search is in search.hpp, its plan in
// search/center_search.py.
#include <chrono>
#include <cmath>
#include <memory>

#include "bindings.hpp"

namespace tkmeans {

namespace {

using Uniforms = Vector<const double>;

// Squared distances between such points are finite, in any number of dimensions: a row has a nearest centre.
constexpr double largest_coordinate = 1e140;

void require_points(const Matrix<const double>& points, const char* what, double largest = largest_coordinate) {
    const double* values = points.data();
    bool within = true;  // without a branch: NaN compares false
    for (size_t i = 0; i < points.size(); ++i) within &= std::abs(values[i]) <= largest;
    require(within, what);
}

void require_weights(const Vector<const double>& weights) {
    double total = 0;
    bool positive = true;
    for (size_t i = 0; i < weights.size(); ++i) {
        positive &= weights.data()[i] >= 0;
        total += weights.data()[i];
    }
    require(positive && total > 0 && std::isfinite(total), "weights must not be negative, and have a positive finite sum");
}

// A search together with the arrays it reads.
class BoundSearch final {
 public:
    BoundSearch(const std::string& set, Matrix<const double> rows, Vector<const double> weights, Index clusters,
                double dof, double noise_reach, double seconds, double least_scale)
        : rows_(rows), weights_(weights), begun_(Clock::now()), seconds_(seconds) {
        require(rows.shape(0) >= 1 && rows.shape(1) >= 1, "rows must have at least one row and one column");
        require(weights.shape(0) == rows.shape(0), "weights must have one entry per row");
        require(clusters >= 1, "clusters must be at least 1");
        require(dof > 0 && std::isfinite(dof), "dof must be positive and finite");
        require(noise_reach > 0 && std::isfinite(noise_reach), "noise_reach must be positive and finite");
        require(least_scale >= 0 && std::isfinite(least_scale), "least_scale must be finite and not negative");
        require_points(rows, "rows must be finite, with no coordinate beyond 1e140");
        require_weights(weights);
        search_ = engine_named(set).new_search(rows.data(), weights.data(), Index(rows.shape(0)), features(), clusters,
                                               dof, noise_reach, least_scale);
        search_->poll = [this] { look_up(); };
    }

    void seed(Index target, Uniforms uniforms, int trials) {
        require(clusters() == 0, "a search is seeded once");
        require(target >= 1 && trials >= 1, "seeding takes a target and trials of at least 1");
        require(uniforms.shape(0) >= 1 && (Index(uniforms.shape(0)) - 1) / trials >= target - 1,
                "seeding takes 1 + trials * (target - 1) uniforms");
        nb::gil_scoped_release release;
        search_->seed(target, uniforms.data(), trials);
    }

    void refine(int steps) {
        require_centers();
        nb::gil_scoped_release release;
        search_->refine(steps);
    }

    Index inhale(Index needed, Index at_most, Uniforms uniforms, int noise_draws) {
        require_centers();
        require(noise_draws >= 0, "noise_draws must not be negative");
        require(Index(uniforms.shape(0)) >= Search::split_draws * clusters() + noise_draws,
                "a breath takes 2 K + noise_draws uniforms");
        nb::gil_scoped_release release;
        return search_->inhale(needed, at_most, uniforms.data(), noise_draws);
    }

    void descend(Index target, Index floor) {
        require_centers();
        require(floor >= 1, "floor must be at least 1");
        nb::gil_scoped_release release;
        search_->descend(target, floor);
    }

    void fix_noise() { search_->fix_noise(); }

    void restore(Matrix<const double> centers, double scale) {
        require(centers.shape(0) >= 1, "centers must have at least one row");
        require(Index(centers.shape(1)) == features(), "rows and centers must have the same number of features");
        require(scale > 0 && std::isfinite(scale), "scale must be positive and finite");
        const double largest = largest_coordinate * (1 + 1e-9);  // a mean may be rounded up
        require_points(centers, "centers must be finite, with no coordinate beyond 1e140", largest);
        nb::gil_scoped_release release;
        search_->restore(centers.data(), Index(centers.shape(0)), scale);
    }

    void read_centers(Matrix<double> out) const {
        require(Index(out.shape(0)) == clusters() && Index(out.shape(1)) == features(),
                "out must have the shape of centers");
        search_->read_centers(out.data());
    }

    void read_rows(Vector<double> masses, Vector<double> nearest, Vector<Index> labels) const {
        require_centers();
        require(Index(masses.shape(0)) == clusters(), "masses must have one entry per center");
        require(nearest.shape(0) == rows_.shape(0), "nearest must have one entry per row");
        require(labels.shape(0) == rows_.shape(0), "labels must have one entry per row");
        search_->read_rows(masses.data(), nearest.data(), labels.data());
    }

    double cost() {
        require_centers();
        return search_->cost();
    }
    double scale() const { return search_->scale(); }
    Index clusters() const { return search_->clusters(); }

 private:
    Index features() const { return Index(rows_.shape(1)); }
    // Ctrl-C and the time limit, twenty times a second.
    void look_up() {
        const double passed = std::chrono::duration<double>(Clock::now() - begun_).count();
        if (passed < next_look_ && passed < seconds_) return;
        next_look_ = passed + 0.05;
        nb::gil_scoped_acquire gil;
        if (PyErr_CheckSignals() == 0 && passed < seconds_) return;
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TimeoutError, "there is no time left for the search");
        throw nb::python_error();
    }
    void require_centers() const { require(clusters() >= 1, "there are no centers yet; seed or restore comes first"); }

    using Clock = std::chrono::steady_clock;
    Matrix<const double> rows_;
    Vector<const double> weights_;
    const Clock::time_point begun_;
    const double seconds_;  // until a TimeoutError
    double next_look_ = 0.05;
    std::unique_ptr<Search> search_;
};

}  // namespace

void bind_search(nb::module_& m) {
    nb::class_<BoundSearch>(m, "Search")
        .def(nb::init<const std::string&, Matrix<const double>, Vector<const double>, Index, double, double, double,
                      double>(),
             "set"_a, "rows"_a, "weight"_a, "n_clusters"_a, "dof"_a, "noise_reach"_a, "seconds"_a, "least_scale"_a)
        .def("seed", &BoundSearch::seed, "target"_a, "uniforms"_a, "trials"_a,
             "Draw centers, each the best of some trials.")
        .def("refine", &BoundSearch::refine, "steps"_a, "Move the centers and the scale.")
        .def("inhale", &BoundSearch::inhale, "needed"_a, "at_most"_a, "uniforms"_a, "noise_draws"_a,
             "Add centers where they promise most; return how many.")
        .def("descend", &BoundSearch::descend, "target"_a, "floor"_a, "Drop the centers that are missed least.")
        .def("fix_noise", &BoundSearch::fix_noise, "Compare states from now on at the present noise level.")
        .def("restore", &BoundSearch::restore, "centers"_a, "scale"_a, "Come back to a state.")
        .def("read_centers", &BoundSearch::read_centers, "out"_a, "Fill the centers, (K, p).")
        .def("read_rows", &BoundSearch::read_rows, "masses"_a, "nearest"_a, "labels"_a,
             "Fill the weight of each cluster, and the distance and the nearest center of each row.")
        .def_prop_ro("cost", &BoundSearch::cost)
        .def_prop_ro("scale", &BoundSearch::scale)
        .def_prop_ro("clusters", &BoundSearch::clusters);
}

}  // namespace tkmeans
