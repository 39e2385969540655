// The robust search for starting centres: seed too many, drop the ones that are missed least, then breathe.
//
// One number is minimised throughout: the ICL of the spherical t mixture with nu = 1, estimated cluster weights and a
// noise component, in the form that needs only the two nearest centres of a row. With d1 <= d2 their squared distances,
// h = (1 + p) / 2 and l = h ln(1 + d / scale), a row of weight 1 costs
//
//     l1 + g / (1 + exp(g)),  g = l2 - l1      its expected loss over the two (what the entropy in ICL amounts to),
//     + ln(total / mass of its cluster)        the cluster's weight,
//
// or, if d1 >= cap, it is noise and costs  h ln(1 + cap / scale) + ln K,  as at the rim of a cluster of average size.
// To compare states of different scale, (p / 2) ln(scale) is added for every row and the density of the noise is held.
// Noise costs the same wherever the centres are, so no centre is worth placing on scattered outliers; the weight and the
// ambiguity term keep a dense cluster from being split while a small one goes without a centre.
//
// No random numbers are drawn here (the caller passes uniforms), there are no globals and no threads: the result is a
// function of the arguments. An integer weight acts as so many copies of the row.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "engine.hpp"

namespace tkmeans::TKM_SET {

constexpr Index kTile = 32;               // rows per tile: long enough for compilers to keep a vector loop (16 was 6x slower)
constexpr double kSeedQuantile = 0.25;    // of the nearest distances: the scale while the first seeds are placed
constexpr int kMaxReceivers = 4;          // centres that are refitted when a neighbour is dropped
constexpr int kRefitSteps = 2;            // robust means in such a refit
constexpr int kSplitDraws = 2;            // ways to split a cluster that are tried at each breath
constexpr int kSplitSteps = 3;            // robust 2-means steps in a split
constexpr double kPromise = 0.3;          // share of the cheapest drop's price that a new centre must promise
constexpr double kScaleDrift = 1.2;       // all prices are computed anew when the scale has grown this much
constexpr double kNoticeableMove = 0.01;  // of p * scale: a centre that moved less leaves its neighbours' prices alone
constexpr double kLeastScale = 1e-10;     // of the scale with one centre
constexpr double kLeastOfQuantile = 0.1;  // no cluster shape has its scale so far below the quantile
constexpr double kClearGap = 8.0;         // g / (1 + exp(g)) < 0.003 beyond: not worth an exponential

// Natural logarithm of a positive normal number to about 1e-10: the same bits on every platform, unlike std::log.
inline double quick_log(double x) {
    std::uint64_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    const std::uint64_t shifted = bits - 0x3fe6a09e00000000ull;                  // mantissa into [sqrt(1/2), sqrt(2))
    const double exponent = double(std::int64_t(shifted) >> 52);
    bits -= shifted & 0xfff0000000000000ull;
    double m;
    std::memcpy(&m, &bits, sizeof m);
    const double t = (m - 1) / (m + 1), z = t * t;
    const double series = 1 + z * (1.0 / 3 + z * (1.0 / 5 + z * (1.0 / 7 + z * (1.0 / 9 + z * (1.0 / 11)))));
    return exponent * 0.6931471805599453 + 2 * t * series;
}

// P is the number of features where it is known at compile time, else 0.
template <int P>
class SearchState {
public:
    SearchState(const double* rows, const double* row_weights, Index n_rows, Index n_features, Index n_clusters, double cap_in_scales)
        : n(n_rows), p_(n_features), x(rows), weight(row_weights), h(0.5 * (1.0 + double(n_features))),
          noise_price(std::log(double(n_clusters))), cap_in_scales_(cap_in_scales), cap_ratio(cap_in_scales), cap_loss(h * std::log1p(cap_in_scales)), clear_ratio(std::exp(kClearGap / h)),
          first(n_rows, 0), second(n_rows, -1), d_first(n_rows, infinity()), d_second(n_rows, infinity()),
          loss(n_rows, cap_loss), distances((n_rows + kTile - 1) / kTile * kTile), order(n_rows) {
        for (Index i = 0; i < n; ++i) total += weight[i];
        const Index n_tiles = Index(distances.size()) / kTile;
        tiles.resize(n_tiles * kTile * p());
        for (Index t = 0; t < n_tiles; ++t)
            for (Index j = 0; j < p(); ++j)
                for (Index i = 0; i < kTile; ++i) tiles[(t * p() + j) * kTile + i] = x[std::min(t * kTile + i, n - 1) * p() + j];
    }

    Index n_centers() const { return Index(centers.size()) / p(); }

    // From now on noise has the density it has at the present scale (until then it moves with the scale): states with
    // different scales are comparable only against the same noise.
    void fix_noise() { noise_scale = scale; set_scale(scale); update_losses(); }

    void set_scale(double new_scale) {
        scale = std::max(new_scale, least_scale);
        const double shift = noise_scale > 0 ? 0.5 * double(p()) * std::log(noise_scale / scale) : 0.0;
        cap_loss = std::max(h * std::log1p(cap_in_scales_) + shift, h * std::log(2.0));   // never cheaper than d2 = scale
        cap_ratio = std::exp(cap_loss / h) - 1;
    }

    void set_centers(const double* new_centers, Index k, double new_scale) {
        centers.assign(new_centers, new_centers + k * p());
        set_scale(new_scale);
        assign_all();
    }

    // The first seeds: greedy k-means++ with the bounded loss. Of `trials` rows, drawn half by loss and half from the
    // noise, the one that lowers the loss most. The scale follows the seeds; group sizes and ambiguity do not count yet
    // (with few centres and a large scale they would favour far strays over the parts of one big heap).
    // Uses 1 + trials * (target - 1) uniforms.
    void seed(Index target, const double* uniforms, int trials) {
        full_cost = false;
        cumulate_losses();                           // no centre yet: every row is noise
        append_center(x + draw_row(*uniforms++, true) * p());
        if (quantile_scale() > 0) set_scale(quantile_scale());
        least_scale = kLeastScale * scale;            // many equal rows would let the scale vanish
        update_losses();
        for (double rescale_at = 1.25; n_centers() < target;) {
            if (n_centers() >= rescale_at) {
                set_scale(quantile_scale());
                update_losses();
                rescale_at = 1.25 * double(n_centers());
            }
            cumulate_losses();
            std::pair<double, Index> best{-infinity(), 0};
            for (int t = 0; t < trials; ++t) {
                const Index row = draw_row(*uniforms++, t % 2 == 1);
                const double own = std::min(weight[row], 1.0) * loss[row];   // one copy of the row itself does not count
                best = std::max(best, {gain_of_adding(x + row * p(), false) - own, row});
            }
            append_center(x + best.second * p());
        }
        full_cost = true;
        update_losses();
    }

    // Adds up to `at_most` centres that might replace others to advantage; returns how many. Candidates are a split of
    // every cluster, begun at a row drawn by what its loss exceeds the cluster's mean loss by, and the surroundings of
    // `noise_draws` noise rows; both are refitted before they are judged (in many dimensions a row is too far from its
    // own cluster to show what a centre there would gain) and must promise a good part of what the cheapest drop costs.
    // The first `needed` are added in any case. Uses kSplitDraws * n_centers() + noise_draws uniforms.
    Index inhale(Index needed, Index at_most, const double* uniforms, int noise_draws) {
        list_members();
        count_masses();
        double cheapest = infinity();
        for (Index k = 0; k < n_centers(); ++k) cheapest = std::min(cheapest, drop(k));
        const double worthwhile = cheapest > 0 ? kPromise * cheapest : cheapest;

        std::vector<Candidate> pool;
        for (Index k = 0; k < n_centers(); ++k) {
            Candidate best{-infinity(), k, 0, {}};
            for (int t = 0; t < kSplitDraws; ++t, ++uniforms)
                if (masses[k] > 0) best = std::max(best, split(k, draw_ill_fitting(k, *uniforms)));
            pool.push_back(best);
        }
        cumulate_losses();
        if (noise_mass > 0) for (int t = 0; t < noise_draws; ++t) pool.push_back(surroundings(draw_row(uniforms[t], true)));

        Index added = 0;
        while (added < at_most && !pool.empty()) {
            const auto best = std::max_element(pool.begin(), pool.end());
            if (!(best->gain > (added < needed ? -infinity() : worthwhile))) break;
            if (best->parent < 0 && best->seen != added) {         // what was added since may have taken its rows
                best->gain = gain_of_adding(best->points.data(), true);
                best->seen = added;
                continue;
            }
            if (best->parent >= 0) std::copy(best->points.begin() + p(), best->points.end(), &centers[best->parent * p()]);
            append_center(best->points.data());
            count_masses();
            pool.erase(best);
            ++added;
        }
        return added;
    }

    // Hard EM on all rows: robust means of the assigned rows, then the scale.
    void refine(int steps) {
        for (int s = 0; s < steps; ++s) {
            move_centers();
            assign_all();
            settle_scale();
        }
        update_losses();
    }

    // The scale for the present assignment, to about 1 %. The rows lose little by it, the comparison of states a lot.
    // With nu = 1 the likelihood has a pole where many centres sit on a few rows each; the quantile keeps away from it.
    void settle_scale() {
        const double least = kLeastOfQuantile * quantile_scale();
        for (int step = 0; step < 10; ++step) {
            const double before = scale;
            set_scale(std::max(next_scale(), least));
            if (std::abs(scale - before) < 0.01 * before) break;
        }
    }

    // Drops the centre with the lowest price until `target` are left, and further, down to `floor`, while a drop lowers
    // the cost (then centres sit where they are not needed, and others may be missing); visit(*this) sees every state.
    // A price that may have changed is computed again only when it is the lowest: dropping a centre makes its
    // neighbours dearer, hardly ever cheaper.
    template <class Visit>
    void descend(Index target, Index floor, Visit&& visit) {
        std::vector<double> price(n_centers());
        std::vector<char> stale;
        bool reprice = true;
        Index check_scale_at = n_centers() * 15 / 16;
        visit(*this);
        while (n_centers() > floor) {
            if (n_centers() <= check_scale_at) {
                const double grown = next_scale();
                check_scale_at = n_centers() * 15 / 16;
                reprice = grown > kScaleDrift * scale;
                if (reprice) { set_scale(grown); refine(1); }
            }
            list_members();
            count_masses();
            if (reprice) {
                reprice = false;
                for (Index k = 0; k < n_centers(); ++k) price[k] = drop(k);
                stale.assign(n_centers(), 0);
            }
            Index cheapest;
            while (stale[cheapest = std::min_element(price.begin(), price.end()) - price.begin()]) {
                price[cheapest] = drop(cheapest);
                stale[cheapest] = 0;
            }
            if (n_centers() <= target && !(price[cheapest] < 0)) break;
            drop(cheapest);
            apply_drop(cheapest, price, stale);
            visit(*this);
        }
    }

    // Weight of the rows nearest to each centre, noise left out.
    void inlier_masses(std::vector<double>& mass) const {
        mass.assign(n_centers(), 0.0);
        for (Index i = 0; i < n; ++i) if (d_first[i] < cap()) mass[first[i]] += weight[i];
    }

    // The cost in nats with the scale's own term, comparable between any two states (up to the constant of the t
    // density). Here a row's distance is the one to the mean of the *other* rows of its cluster, so that a centre on a
    // single stray, or many centres in many dimensions, gain nothing from the rows they were fitted to.
    double cost() const {
        std::vector<double> mass, inflate;
        inlier_masses(mass);
        for (double m : mass) inflate.push_back(seen_from_others(m));
        double sum = 0, noise = 0;
        for (Index i = 0; i < n; ++i) {
            const double d1 = d_first[i] < cap() && inflate[first[i]] < infinity() ? d_first[i] * inflate[first[i]] : infinity();
            if (d1 < cap()) sum += weight[i] * (row_loss(d1, std::max(d1, d_second[i])) + quick_log(total / mass[first[i]]));
            else noise += weight[i];
        }
        return sum + noise * (cap_loss + noise_price) + 0.5 * double(p()) * total * std::log(scale);
    }

    // One parameter-expanded EM step for the scale (nu = 1) from the rows that are not noise.
    double next_scale() const {
        std::vector<double> inflate;
        inlier_masses(inflate);
        for (double& m : inflate) m = m > 1.5 ? seen_from_others(m) : 0.0;
        double wd = 0, w = 0;
        for (Index i = 0; i < n; ++i) {
            const double d2 = d_first[i] * inflate[first[i]];
            if (!(d_first[i] < cap()) || d2 <= 0) continue;
            const double u = weight[i] / (1 + d2 / scale);
            w += u;
            wd += u * d2;
        }
        return wd > 0 ? wd / (double(p()) * w) : scale;
    }

    double cap() const { return cap_ratio * scale; }
    Index p() const { return P ? P : p_; }

    const Index n;

private:
    const Index p_;
    const double* const x;
    const double* const weight;
    const double h, noise_price, cap_in_scales_;
    double cap_ratio, cap_loss;                   // at the present scale
    const double clear_ratio;
    double total = 0, noise_scale = 0, least_scale = 0;
    bool full_cost = true;

public:
    double scale = 1;
    std::vector<double> centers;                  // (K, p)
    std::vector<Index> first, second;             // nearest and second-nearest centre of every row
    std::vector<double> d_first, d_second, loss;  // their squared distances, and the row's loss

private:
    static constexpr double infinity() { return std::numeric_limits<double>::infinity(); }
    double size_cost(double mass) const { return mass > 0 ? mass * std::log(total / mass) : 0.0; }

    double row_loss(double d1, double d2) const {
        if (!(d1 < cap())) return cap_loss;
        const double a = 1 + d1 / scale, b = 1 + d2 / scale, l1 = h * quick_log(a);
        if (!full_cost || !(b < clear_ratio * a)) return l1;
        const double g = h * quick_log(b / a);
        return l1 + g / (1 + std::exp(g));
    }

    // ---- distances ------------------------------------------------------------------------------------------------
    double squared_distance(const double* a, const double* b) const {
        if (P > 0) {
            double sum = 0;
            for (int j = 0; j < P; ++j) sum += (a[j] - b[j]) * (a[j] - b[j]);
            return sum;
        }
        double part[4] = {};               // four chains, since the compiler may not reorder one sum
        Index j = 0;
        for (; j + 4 <= p(); j += 4)
            for (int q = 0; q < 4; ++q) part[q] += (a[j + q] - b[j + q]) * (a[j + q] - b[j + q]);
        for (; j < p(); ++j) part[0] += (a[j] - b[j]) * (a[j] - b[j]);
        return (part[0] + part[1]) + (part[2] + part[3]);
    }

    void tile_distances(Index start, const double* point, double* out) const {
        const double* column = &tiles[start * p()];
        if (P > 0) {
            for (Index i = 0; i < kTile; ++i) {
                double sum = 0;
                for (int j = 0; j < P; ++j) sum += (column[j * kTile + i] - point[j]) * (column[j * kTile + i] - point[j]);
                out[i] = sum;
            }
            return;
        }
        double sum[kTile] = {};
        for (Index j = 0; j < p(); ++j, column += kTile) {
            const double c = point[j];
            for (Index i = 0; i < kTile; ++i) sum[i] += (column[i] - c) * (column[i] - c);
        }
        std::copy(sum, sum + kTile, out);
    }

    void distances_to(const double* point, double* out) const {
        for (Index start = 0; start < n; start += kTile) tile_distances(start, point, out + start);
    }

    // ---- rows and their two nearest centres -----------------------------------------------------------------------
    static void enter(Index k, double d, Index& k1, double& d1, Index& k2, double& d2) {
        const bool nearest = d < d1, near = d < d2;
        k2 = nearest ? k1 : near ? k : k2;
        d2 = nearest ? d1 : near ? d : d2;
        k1 = nearest ? k : k1;
        d1 = nearest ? d : d1;
    }

    void assign_all() {
        double tile[kTile], d1[kTile], d2[kTile];
        Index k1[kTile], k2[kTile];
        for (Index start = 0; start < n; start += kTile) {
            for (Index i = 0; i < kTile; ++i) { d1[i] = d2[i] = infinity(); k1[i] = k2[i] = -1; }
            for (Index k = 0; k < n_centers(); ++k) {
                tile_distances(start, &centers[k * p()], tile);
                for (Index i = 0; i < kTile; ++i) enter(k, tile[i], k1[i], d1[i], k2[i], d2[i]);
            }
            const Index count = std::min(kTile, n - start);
            std::copy(k1, k1 + count, &first[start]);
            std::copy(k2, k2 + count, &second[start]);
            std::copy(d1, d1 + count, &d_first[start]);
            std::copy(d2, d2 + count, &d_second[start]);
        }
        update_losses();
    }

    void update_losses() { for (Index i = 0; i < n; ++i) loss[i] = row_loss(d_first[i], d_second[i]); }

    void append_center(const double* point) {
        const Index k = n_centers();
        distances_to(point, distances.data());
        centers.insert(centers.end(), point, point + p());
        for (Index i = 0; i < n; ++i) {
            if (!(distances[i] < d_second[i])) continue;
            enter(k, distances[i], first[i], d_first[i], second[i], d_second[i]);
            if (d_second[i] == infinity()) second[i] = -1;
            loss[i] = row_loss(d_first[i], d_second[i]);
        }
    }

    void count_masses() {
        inlier_masses(masses);
        noise_mass = total;
        for (double m : masses) noise_mass -= m;
    }

    void list_members() {
        starts.assign(n_centers() + 1, 0);
        for (Index i = 0; i < n; ++i) ++starts[first[i] + 1];
        for (Index k = 0; k < n_centers(); ++k) starts[k + 1] += starts[k];
        std::vector<Index> next(starts.begin(), starts.end() - 1);
        for (Index i = 0; i < n; ++i) order[next[first[i]]++] = i;
    }

    // ---- seeds ----------------------------------------------------------------------------------------------------
    struct Candidate {
        double gain;
        Index parent;                      // the centre that is split, or -1
        Index seen;                        // centres that had been added when the gain was computed
        std::vector<double> points;        // the new centre; then, of a split, the moved parent
        bool operator<(const Candidate& other) const { return gain < other.gain; }
    };

    // Splits cluster k into the parent and a new centre: a few steps of robust 2-means on its rows.
    Candidate split(Index k, Index row) {
        Candidate c{-infinity(), k, 0, std::vector<double>(x + row * p(), x + row * p() + p())};
        c.points.insert(c.points.end(), &centers[k * p()], &centers[k * p()] + p());
        double mass[2], inlier_mass[2] = {0, 0};
        for (int step = 0; step < kSplitSteps; ++step) {
            sums.assign(2 * p(), 0.0);
            mass[0] = mass[1] = 0;
            for (Index m = starts[k]; m < starts[k + 1]; ++m) {
                const double* xi = x + order[m] * p();
                const double d_new = squared_distance(xi, &c.points[0]), d_old = squared_distance(xi, &c.points[p()]);
                const double d1 = std::min(d_new, d_old);
                if (!(d1 < cap())) continue;
                const int at = d_new < d_old ? 0 : 1;
                const double u = weight[order[m]] / (1 + d1 / scale);
                for (Index j = 0; j < p(); ++j) sums[at * p() + j] += u * xi[j];
                mass[at] += u;
            }
            if (!(mass[0] > 0 && mass[1] > 0)) return c;
            for (int at = 0; at < 2; ++at) for (Index j = 0; j < p(); ++j) c.points[at * p() + j] = sums[at * p() + j] / mass[at];
        }
        pairs.clear();
        for (Index m = starts[k]; m < starts[k + 1]; ++m) {
            const double* xi = x + order[m] * p();
            pairs.emplace_back(squared_distance(xi, &c.points[0]), squared_distance(xi, &c.points[p()]));
            const auto& d = pairs.back();
            if (std::min(d.first, d.second) < cap()) inlier_mass[d.first < d.second ? 0 : 1] += weight[order[m]];
        }
        double gain = 0;
        for (Index m = starts[k]; m < starts[k + 1]; ++m) {
            const Index i = order[m];
            const auto& d = pairs[m - starts[k]];
            const int at = d.first < d.second ? 0 : 1;
            const double others = seen_from_others(inlier_mass[at]);
            const double d1 = others < infinity() ? std::min(d.first, d.second) * others : others;
            gain += weight[i] * (loss[i] - row_loss(d1, std::max(d1, std::min(std::max(d.first, d.second), d_second[i]))));
        }
        const double noise_change = masses[k] - inlier_mass[0] - inlier_mass[1];
        c.gain = gain + size_cost(masses[k]) - size_cost(inlier_mass[0]) - size_cost(inlier_mass[1]) - noise_price * noise_change;
        return c;
    }

    // A centre for the rows around a noise row.
    Candidate surroundings(Index row) {
        Candidate c{-infinity(), -1, 0, std::vector<double>(x + row * p(), x + row * p() + p())};
        for (double width : {0.05 * cap(), 0.05 * cap(), scale}) {    // mean shift to the hidden heap, then its robust mean
            distances_to(c.points.data(), distances.data());
            sums.assign(p(), 0.0);
            double mass = 0;
            for (Index i = 0; i < n; ++i) {
                if (!(distances[i] < d_first[i] && distances[i] < cap())) continue;
                const double r = 1 / (1 + distances[i] / width), u = weight[i] * (width > scale ? r * r : r);
                for (Index j = 0; j < p(); ++j) sums[j] += u * x[i * p() + j];
                mass += u;
            }
            if (!(mass > 0)) return c;
            for (Index j = 0; j < p(); ++j) c.points[j] = sums[j] / mass;
        }
        c.gain = gain_of_adding(c.points.data(), true);
        return c;
    }

    // The squared distance of a row to the mean of m rows, itself among them, times this is the one to the mean of the
    // others: a centre on a single stray, or on a few in many dimensions, gains nothing.
    static double seen_from_others(double m) { return m > 1 ? m / (m - 1) * (m / (m - 1)) : infinity(); }

    // Loss of the rows near a centre and weight of the noise rows, each cumulated.
    void cumulate_losses() {
        double near = 0, noise = 0;
        near_until.resize(n);
        noise_until.resize(n);
        for (Index i = 0; i < n; ++i) {
            if (d_first[i] < cap()) near += weight[i] * loss[i]; else noise += weight[i];
            near_until[i] = near;
            noise_until[i] = noise;
        }
    }

    // Half of the draws go to noise rows by weight (a whole cluster may hide among them), half to the others by loss:
    // drawn by loss alone, scattered outliers would take nearly all of them.
    Index draw_row(double uniform, bool from_noise) const {
        const std::vector<double>& until = (from_noise && noise_until.back() > 0) || !(near_until.back() > 0) ? noise_until : near_until;
        const auto found = std::upper_bound(until.begin(), until.end(), uniform * until.back());
        return std::min(Index(found - until.begin()), n - 1);
    }

    // A row of cluster k, drawn by what its loss exceeds the mean loss of the cluster by; noise is left out.
    Index draw_ill_fitting(Index k, double uniform) const {
        double sum = 0, mass = 0, excess = 0;
        auto share = [&](Index i) { return d_first[i] < cap() ? weight[i] : 0.0; };
        for (Index m = starts[k]; m < starts[k + 1]; ++m) { sum += share(order[m]) * loss[order[m]]; mass += share(order[m]); }
        auto excess_of = [&](Index i) { return share(i) * std::max(loss[i] - sum / mass, 0.0); };
        for (Index m = starts[k]; m < starts[k + 1]; ++m) excess += excess_of(order[m]);
        double left = uniform * excess;
        Index last = order[starts[k]];
        for (Index m = starts[k]; m < starts[k + 1]; ++m) {
            const double e = excess_of(order[m]);
            if (e > 0) last = order[m];
            if ((left -= e) < 0) break;
        }
        return last;
    }

    // A low quantile of the nearest distances per feature, so that neither strays nor clusters without a centre reach
    // it; read off a histogram with eight bins per power of two. 0 if every row sits on a centre.
    double quantile_scale() const {
        std::vector<double> mass(8 * 2048, 0.0);
        double wanted = 0, below = 0;
        for (Index i = 0; i < n; ++i) {
            if (!(d_first[i] > 0)) continue;
            std::uint64_t bits;
            std::memcpy(&bits, &d_first[i], sizeof bits);
            mass[bits >> 49] += weight[i];
            wanted += kSeedQuantile * weight[i];
        }
        if (!(wanted > 0)) return 0;
        std::uint64_t bin = 0;
        while ((below += mass[bin]) < wanted) ++bin;
        const std::uint64_t bits = bin << 49;
        double quantile;
        std::memcpy(&quantile, &bits, sizeof quantile);
        return quantile / double(p());
    }

    // How much the cost falls if a centre is added and nothing else moves.
    double gain_of_adding(const double* point, bool is_mean) {
        distances_to(point, distances.data());
        double* d_new = distances.data();
        mass_change.assign(n_centers(), 0.0);
        double gain = 0, captured = 0, rescued = 0;
        if (is_mean) {
            for (Index i = 0; i < n; ++i) if (d_new[i] < d_first[i] && d_new[i] < cap()) captured += weight[i];
            if (!(captured > 1)) return -infinity();
            const double inflate = seen_from_others(captured);
            for (Index i = 0; i < n; ++i) d_new[i] *= inflate;
            captured = 0;
        }
        for (Index i = 0; i < n; ++i) {
            const bool nearer = d_new[i] < d_first[i];
            if (!((nearer || (full_cost && d_new[i] < d_second[i] && d_new[i] < clear_ratio * (d_first[i] + scale))) && d_new[i] < cap())) continue;
            gain += weight[i] * (loss[i] - (nearer ? row_loss(d_new[i], d_first[i]) : row_loss(d_first[i], d_new[i])));
            if (!nearer) continue;
            captured += weight[i];
            if (d_first[i] < cap()) mass_change[first[i]] += weight[i];
            else rescued += weight[i];
        }
        if (!full_cost) return gain;
        for (Index k = 0; k < n_centers(); ++k)
            if (mass_change[k] > 0) gain += size_cost(masses[k]) - size_cost(masses[k] - mass_change[k]);
        return gain + noise_price * rescued - size_cost(captured);
    }

    void move_centers() {
        std::vector<double> sum(centers.size(), 0.0), mass(n_centers(), 0.0);
        for (Index i = 0; i < n; ++i) {
            if (!(d_first[i] < cap())) continue;
            const double u = weight[i] / (1 + d_first[i] / scale);
            double* s = &sum[first[i] * p()];
            for (Index j = 0; j < p(); ++j) s[j] += u * x[i * p() + j];
            mass[first[i]] += u;
        }
        for (Index k = 0; k < n_centers(); ++k)
            if (mass[k] > 0) for (Index j = 0; j < p(); ++j) centers[k * p() + j] = sum[k * p() + j] / mass[k];
    }

    // ---- drops ----------------------------------------------------------------------------------------------------
    struct LocalRow {
        Index row;
        Index outside;               // a nearby centre that is not refitted, or -1
        double d_outside;
        int at;                      // receiver that holds the row now, or -1: the outside centre
        double d1, d2;
    };

    // The price of dropping a centre: the rise of the cost after its rows went to their second-nearest centres and
    // the centres that received most of them (receivers, refitted) were refitted, on the rows of these centres alone.
    double drop(Index dropped) {
        choose_receivers(dropped);
        gather_local_rows(dropped);
        for (int step = 0; step < kRefitSteps; ++step) {
            if (step > 0) assign_local_rows();
            refit_receivers();
        }
        assign_local_rows();

        mass_change.assign(n_centers(), 0.0);
        double price = 0, noise_change = 0;
        const double inflate = seen_from_others(masses[dropped]);
        for (const LocalRow& r : local) {
            const double w = weight[r.row];
            double before = loss[r.row];
            if (first[r.row] == dropped && inflate > 1.02) {
                const double d1 = inflate < infinity() ? d_first[r.row] * inflate : inflate;   // 0 * inf is not a number
                before = row_loss(d1, std::max(d1, d_second[r.row]));
            }
            price += w * (row_loss(r.d1, r.d2) - before);
            if (d_first[r.row] < cap()) mass_change[first[r.row]] -= w; else noise_change -= w;
            if (r.d1 < cap()) mass_change[r.at >= 0 ? receivers[r.at] : r.outside] += w; else noise_change += w;
        }
        for (Index k = 0; k < n_centers(); ++k)
            if (mass_change[k] != 0) price += size_cost(masses[k] + mass_change[k]) - size_cost(masses[k]);
        return price + noise_price * noise_change;
    }

    void choose_receivers(Index dropped) {
        received.assign(n_centers(), 0.0);
        for (Index m = starts[dropped]; m < starts[dropped + 1]; ++m) {
            const Index i = order[m];
            if (second[i] >= 0 && d_second[i] < cap()) received[second[i]] += weight[i];
        }
        slot.assign(n_centers(), -1);
        receivers.clear();
        refitted.clear();
        while (receivers.size() < kMaxReceivers) {
            const Index best = std::max_element(received.begin(), received.end()) - received.begin();
            if (!(received[best] > 0)) break;
            received[best] = 0;
            slot[best] = int(receivers.size());
            receivers.push_back(best);
            refitted.insert(refitted.end(), &centers[best * p()], &centers[best * p()] + p());
        }
    }

    void gather_local_rows(Index dropped) {
        local.clear();
        auto gather = [&](Index k) {
            for (Index m = starts[k]; m < starts[k + 1]; ++m) {
                const Index i = order[m], other = second[i];
                const bool other_stays = other >= 0 && other != dropped && slot[other] < 0;
                LocalRow r{i, other_stays ? other : -1, other_stays ? d_second[i] : infinity(), slot[k], d_first[i], infinity()};
                if (k == dropped) { r.at = other >= 0 ? slot[other] : -1; r.d1 = d_second[i]; }
                local.push_back(r);
            }
        };
        gather(dropped);
        for (Index k : receivers) gather(k);
    }

    void refit_receivers() {
        sums.assign(receivers.size() * (p() + 1), 0.0);
        for (const LocalRow& r : local) {
            if (r.at < 0 || !(r.d1 < cap())) continue;
            const double u = weight[r.row] / (1 + r.d1 / scale);
            double* s = &sums[r.at * (p() + 1)];
            for (Index j = 0; j < p(); ++j) s[j] += u * x[r.row * p() + j];
            s[p()] += u;
        }
        for (std::size_t k = 0; k < receivers.size(); ++k) {
            const double* s = &sums[k * (p() + 1)];
            if (s[p()] > 0) for (Index j = 0; j < p(); ++j) refitted[k * p() + j] = s[j] / s[p()];
        }
    }

    void assign_local_rows() {
        const int count = int(receivers.size());
        for (LocalRow& r : local) {
            Index k1 = -1, k2 = -1;
            r.d1 = r.d_outside;
            r.d2 = infinity();
            for (int k = 0; k < count; ++k) enter(k, squared_distance(x + r.row * p(), &refitted[k * p()]), k1, r.d1, k2, r.d2);
            r.at = int(k1);
        }
    }

    // Carries out the drop that was priced last. The last centre takes the number of the dropped one.
    void apply_drop(Index dropped, std::vector<double>& price, std::vector<char>& stale) {
        enum : char { kStill, kMoved, kGone };
        std::vector<char> change(n_centers(), kStill);
        for (std::size_t k = 0; k < receivers.size(); ++k) {
            double* center = &centers[receivers[k] * p()];
            const double shift = squared_distance(center, &refitted[k * p()]);
            change[receivers[k]] = shift > kNoticeableMove * double(p()) * scale ? kGone : kMoved;
            std::copy(&refitted[k * p()], &refitted[k * p()] + p(), center);
        }
        change[dropped] = kGone;
        for (Index i = 0; i < n; ++i)
            if (change[first[i]] == kGone || (second[i] >= 0 && change[second[i]] == kGone)) stale[first[i]] = 1;
        for (Index k : receivers) stale[k] = 1;

        const Index last = n_centers() - 1;
        std::copy(&centers[last * p()], &centers[last * p()] + p(), &centers[dropped * p()]);
        centers.resize(last * p());
        price[dropped] = price[last];
        price.pop_back();
        stale[dropped] = stale[last];
        stale.pop_back();

        by_feature.resize(last * p());             // one row against all centres vectorises in this layout
        for (Index k = 0; k < last; ++k) for (Index j = 0; j < p(); ++j) by_feature[j * last + k] = centers[k * p() + j];
        std::vector<double> d(last);
        for (Index i = 0; i < n; ++i) {
            if (change[first[i]] != kStill || (second[i] >= 0 && change[second[i]] != kStill)) find_two_nearest(i, d);
            else {
                if (first[i] == last) first[i] = dropped;
                if (second[i] == last) second[i] = dropped;
            }
        }
    }

    void find_two_nearest(Index i, std::vector<double>& d) {
        const Index k_count = Index(d.size());
        std::fill(d.begin(), d.end(), 0.0);
        for (Index j = 0; j < p(); ++j) {
            const double xj = x[i * p() + j];
            const double* c = &by_feature[j * k_count];
            for (Index k = 0; k < k_count; ++k) d[k] += (xj - c[k]) * (xj - c[k]);
        }
        first[i] = second[i] = -1;
        d_first[i] = d_second[i] = infinity();
        for (Index k = 0; k < k_count; ++k) enter(k, d[k], first[i], d_first[i], second[i], d_second[i]);
        loss[i] = row_loss(d_first[i], d_second[i]);
    }

    // ---- scratch --------------------------------------------------------------------------------------------------
    std::vector<double> tiles;                    // the rows, a tile at a time, feature-major: "one point against all rows"
    std::vector<double> distances, near_until, noise_until;
    std::vector<Index> order, starts;             // rows grouped by nearest centre
    std::vector<double> masses, mass_change, received, refitted, sums, by_feature;
    double noise_mass = 0;
    std::vector<Index> receivers;
    std::vector<int> slot;                        // place of a centre among the receivers, or -1
    std::vector<LocalRow> local;
    std::vector<std::pair<double, double>> pairs;
};

}  // namespace tkmeans::TKM_SET
