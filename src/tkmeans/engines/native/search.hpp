// The robust search for starting centres: seed too many, drop the ones that are missed least, then breathe.
//
// One number is minimised throughout: the ICL of the spherical t mixture with a given nu, estimated cluster weights and
// a noise component, in the form that needs only the two nearest centres of a row. search/criterion.py defines it and
// search/reference_search.py the steps, in Python; tests compare both with what is here. Noise costs the same wherever
// the centres are, so no centre is worth placing on scattered outliers; the weight of a cluster and the ambiguity of
// its rows keep a dense cluster from being split while a small one goes without a centre.
//
// No random numbers are drawn here (the caller passes uniforms), there are no globals and no threads: the result is a
// function of the arguments. An integer weight acts as so many copies of the row.
//
// Here is the state. Its functions are in search_criterion.hpp (losses, scale, cost), search_rows.hpp (distances, the
// two nearest centres), search_drops.hpp (the way down) and search_additions.hpp (the way up).
#pragma once
#include <algorithm>
#include <array>
#include <cassert>
#include <limits>
#include <vector>

#include "engine.hpp"
#include "simd.hpp"

namespace tkmeans::TKM_SET {

constexpr double infinity = std::numeric_limits<double>::infinity();

// P is the number of features where it is known at compile time, else 0.
template <int P>
class SearchState final : public Search {
 public:
    SearchState(const double* rows, const double* weights, Index n, Index features, Index clusters, double dof,
                double noise_reach, double least_scale);

    void seed(Index target, const double* uniforms, int trials) override;
    void refine(int steps) override;
    Index inhale(Index needed, Index at_most, const double* uniforms, int noise_draws) override;
    void descend(Index target, Index floor) override;
    void fix_noise() override;
    void restore(const double* centers, Index clusters, double scale) override;
    void read_centers(double* out) const override;
    void read_rows(double* masses, double* nearest, Index* labels) const override;
    double cost() override;
    double scale() const override { return nu_alpha_ / dof_; }
    Index clusters() const override { return Index(centers_.size()) / stride(); }

 private:
    // A centre that might be added.
    struct Candidate {
        double gain;
        Index parent;                // the centre that is split, or -1
        Index n_added;               // centres that had been added when the gain was computed
        std::vector<double> points;  // the new centre; then, of a split, the moved parent
        bool operator<(const Candidate& other) const { return gain < other.gain; }
    };

    // A row of a cluster that is split, seen from the two parts.
    struct SplitRow {
        std::array<double, 2> d;  // to the new centre and to the parent
        int part() const { return d[0] < d[1] ? 0 : 1; }
        double nearer() const { return d[part()]; }
        double farther() const { return d[1 - part()]; }
    };

    // The drop that was priced last. Receivers are the centres that get most of the dropped one's rows.
    struct Drop {
        Index dropped = -1;            // the centre, or -1 if it is dropped already
        std::vector<double> received;  // (K,) weight of the rows whose second-nearest centre this is
        std::vector<Index> receivers;
        std::vector<int> slot;         // (K,) place of a centre among the receivers, or -1
        std::vector<double> refitted;  // (receivers, stride) where they move to; infinitely far up to `max_receivers`
        Index n_rows = 0;              // of the dropped centre, which come first, and of the receivers
        std::vector<Index> rows;       // their numbers, up to whole packs; beyond the last one of weight 0
        std::vector<Index> outside;    // a nearby centre of each that is not refitted, or -1
        std::vector<double> weight, before, d_outside;  // of each; its loss before the drop
        std::vector<double> at, d1, d2;  // as it is afterwards: the receiver that holds it, or -1: the outside centre
        std::vector<double> tiles;       // the rows, a pack at a time, feature-major
    };

    // Rows whose distances are wanted: all, or those that a point may be the nearest of, or one of the two nearest.
    enum class Reach { all, nearest, two_nearest };

    // What a drop does to a centre.
    enum class Change : char { none, slight, thorough };

    // What is known of the prices of all drops.
    struct Prices {
        std::vector<double> price;
        std::vector<char> stale;  // may the price have changed?
    };

    // Rows by number, to loop over.
    struct Members {
        const Index *first, *last;
        const Index* begin() const { return first; }
        const Index* end() const { return last; }
    };

    Index p() const { return P ? P : p_; }
    Index stride() const { return P ? P : stride_; }  // of rows and centres in memory: whole packs
    const double* row(Index i) const {
        assert(0 <= i && i < n_);
        return x_ + i * stride();
    }
    double* center(Index k) {
        assert(0 <= k && k < clusters());
        return centers_.data() + k * stride();
    }
    double cap() const { return cap_ratio_ * nu_alpha_; }  // squared distance from which on a row is noise
    bool is_noise(Index i) const { return !(d_first_[i] < cap()); }
    Members members(Index k) const {  // as list_members() found them
        assert(0 <= k && k + 1 < Index(starts_.size()));
        return {order_.data() + starts_[k], order_.data() + starts_[k + 1]};
    }

    // search_criterion.hpp
    Pack<double> row_losses(Pack<double> d1, Pack<double> d2) const;
    const double* losses_as_if();
    void as_if(double d1, double d2) {
        d1_.push_back(d1);
        d2_.push_back(d2);
    }
    double size_cost(double mass) const;
    void set_nu_alpha(double new_nu_alpha);
    void settle_nu_alpha();
    double next_nu_alpha() const;
    double quantile_nu_alpha() const;
    void update_losses();

    // search_rows.hpp
    template <int Count>
    std::array<double, Count> squared_distances(const double* a, const double* b) const;
    void tile_distances(const double* tile, const double* const* points, int count, double* out, Index apart) const;
    void add(double u, const double* x, double* sums) const;
    void to_tile(const Index* rows, double* tile, Index width) const;
    void distances_to(const double* const* points, int count, Reach reach = Reach::all);
    template <class Body>
    void for_each_tile(const std::vector<Index>& rows, Body body) const;
    template <class Body>
    void for_each_below(const double* d, const std::vector<double>& limit, double cap, Body body) const;
    void find_two_nearest(const double* tile, const Index* rows, Index count);
    void assign_all();
    void append_center(const double* point, const double* d);
    void move_centers();
    void list_members();
    void inlier_masses(std::vector<double>& mass) const;

    // search_drops.hpp
    double price_of_dropping(Index dropped);
    void choose_receivers(Index dropped);
    void gather_local_rows(Index dropped);
    void refit_receivers(bool fresh);
    void assign_local_rows();
    Index cheapest(Prices& prices);
    void carry_out_drop(Index dropped, Prices& prices);
    std::vector<Change> move_receivers(Index dropped);
    void find_two_nearest(const std::vector<Index>& rows);

    // search_additions.hpp
    void cumulate_losses();
    Index draw_row(double uniform, bool from_noise) const;
    Index draw_ill_fitting(Index k, double uniform) const;
    double gain_of_adding(const double* d_new, bool is_mean);
    Candidate candidate_at(Index row, Index parent) const;
    Candidate split(Index k, Index row, bool mirrored);
    bool move_parts(Index k, std::vector<double>& points);
    double gain_of_split(Index k, const std::vector<double>& points);
    void surroundings(std::vector<Candidate>& pool, std::size_t first);
    std::vector<Candidate> candidates(const double* uniforms, int noise_draws);

    // The arguments.
    const Index n_, p_, stride_;
    const double* x_;             // (n, stride)
    std::vector<double> padded_;  // the same, unless rows are whole packs as they come
    std::vector<double> weight_;  // (n,), up to whole tiles; 0 beyond the last row
    double total_ = 0;            // of the weights

    // The criterion.
    const double dof_, h_;
    const double noise_price_;  // ln K
    const double noise_reach_;  // cap / nu_alpha, until the noise is held
    const double clear_ratio_;  // of the two (1 + d / nu_alpha): beyond it a row is not ambiguous
    double nu_alpha_ = 1;       // nu times the scale
    double cheapest_drop_ = infinity;  // at the end of the way down; infinite if it is not known
    double least_nu_alpha_;
    double noise_nu_alpha_ = 0;    // the one at which the density of the noise is held, or 0
    double cap_loss_, cap_ratio_;  // loss of a noise row and cap / nu_alpha, at the present scale
    bool full_cost_ = true;        // false while the first seeds are placed: l1 alone counts

    // The centres, and what every row has of them.
    std::vector<double> centers_;             // (K, stride)
    std::vector<Index> first_, second_;       // (n,) nearest and second-nearest centre, or -1
    std::vector<double> d_first_, d_second_;  // their squared distances, up to whole tiles; 0 beyond the last row
    std::vector<double> loss_;                // (n,), up to whole tiles
    std::vector<double> masses_;              // (K,) weight of the rows nearest to each centre, noise left out
    std::vector<Index> order_, starts_;       // rows grouped by nearest centre, and where each group starts

    // The rows, a tile at a time, feature-major: "one point against all rows" vectorises in this layout.
    std::vector<double> tiles_;

    // Scratch, kept to be allocated once.
    Index whole_tiles_ = 0;                         // n, up to whole tiles
    std::vector<double> distances_;                 // of all rows to some points, up to whole tiles each
    std::vector<double> near_until_, noise_until_;  // (tiles,) cumulated, to draw from
    std::vector<double> mass_change_;               // (K,)
    std::vector<double> d1_, d2_, losses_;          // of rows as they would be
    std::vector<SplitRow> split_rows_;
    std::vector<double> sums_;
    Drop drop_;
};

}  // namespace tkmeans::TKM_SET
