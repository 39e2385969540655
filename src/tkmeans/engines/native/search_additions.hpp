// The way up in search.hpp: the first seeds, and the centres that are added at a breath.
#pragma once
#include <algorithm>
#include <utility>

#include "search_rows.hpp"

namespace tkmeans::TKM_SET {

constexpr double least_share_of_scale = 1e-10;  // of the scale with one centre: many equal rows would let it vanish
constexpr double rescale_growth = 1.25;         // the scale is computed anew when there are so many times more seeds
constexpr int split_steps = 3;                  // robust 2-means steps in a split
constexpr double mean_shift_width = 0.05;       // of cap: how far from a noise row its heap is looked for
constexpr double promise = 0.3;                 // share of the cheapest drop's price that a new centre must promise

// The first seeds: greedy k-means++ with the bounded loss. Of `trials` rows, drawn half by loss and half from the
// noise, the one that lowers the loss most. The scale follows the seeds; group sizes and ambiguity do not count yet
// (with few centres and a large scale they would favour far strays over the parts of one big heap).
// Uses 1 + trials * (target - 1) uniforms.
template <int P>
void SearchState<P>::seed(Index target, const double* uniforms, int trials) {
    full_cost_ = false;
    cumulate_losses();  // no centre yet: every row is noise
    std::vector<Index> drawn(trials);
    std::vector<const double*> points(trials, row(draw_row(*uniforms++, true)));
    distances_to(points.data(), 1);
    append_center(points[0], distances_.data());
    if (quantile_nu_alpha() > 0) set_nu_alpha(quantile_nu_alpha());
    least_nu_alpha_ = std::max(least_share_of_scale * nu_alpha_, least_nu_alpha_);
    update_losses();
    for (double rescale_at = rescale_growth; clusters() < target;) {
        poll();
        if (double(clusters()) >= rescale_at) {
            set_nu_alpha(quantile_nu_alpha());
            update_losses();
            rescale_at = rescale_growth * double(clusters());
        }
        cumulate_losses();
        for (int t = 0; t < trials; ++t) points[t] = row(drawn[t] = draw_row(*uniforms++, t % 2 == 1));
        distances_to(points.data(), trials, Reach::nearest);
        std::pair<double, Index> best{-infinity, 0};
        int winner = 0;
        for (int t = 0; t < trials; ++t) {
            const Index i = drawn[t];
            const double own = std::min(weight_[i], 1.0) * loss_[i];  // one copy of the row itself does not count
            const std::pair<double, Index> here{gain_of_adding(&distances_[t * whole_tiles_], false) - own, i};
            if (best < here) winner = t;
            best = std::max(best, here);
        }
        append_center(points[winner], &distances_[winner * whole_tiles_]);
    }
    full_cost_ = true;
    if (stride() >= many_features) assign_all();  // some rows know the nearest seed alone
    update_losses();
}

// Adds up to `at_most` centres that might replace others to advantage; returns how many. They must promise a good part
// of what the cheapest drop costs, but the first `needed` are added in any case.
// Uses split_draws * clusters() + noise_draws uniforms.
template <int P>
Index SearchState<P>::inhale(Index needed, Index at_most, const double* uniforms, int noise_draws) {
    list_members();
    if (cheapest_drop_ == infinity)  // else it is what the way down ended with
        for (Index k = 0; k < clusters(); ++k) cheapest_drop_ = std::min(cheapest_drop_, price_of_dropping(k));
    const double worthwhile = cheapest_drop_ > 0 ? promise * cheapest_drop_ : cheapest_drop_;
    std::vector<Candidate> pool = candidates(uniforms, noise_draws);
    Index added = 0;
    while (added < at_most && !pool.empty()) {
        poll();
        const auto best = std::max_element(pool.begin(), pool.end());
        if (!(best->gain > (added < needed ? -infinity : worthwhile))) break;
        const double* point = best->points.data();
        distances_to(&point, 1);
        if (best->parent < 0 && best->n_added != added) {  // what was added since may have taken its rows
            best->gain = gain_of_adding(distances_.data(), true);
            best->n_added = added;
            continue;
        }
        if (best->parent >= 0) std::copy(best->points.begin() + stride(), best->points.end(), center(best->parent));
        append_center(point, distances_.data());
        inlier_masses(masses_);
        pool.erase(best);
        ++added;
    }
    return added;
}

// A split of every cluster, begun at a row drawn by what its loss exceeds the cluster's mean loss by, and the
// surroundings of `noise_draws` noise rows; both are refitted before they are judged (in many dimensions a row is too
// far from its own cluster to show what a centre there would gain).
template <int P>
std::vector<typename SearchState<P>::Candidate> SearchState<P>::candidates(const double* uniforms, int noise_draws) {
    std::vector<Candidate> pool;
    for (Index k = 0; k < clusters(); ++k) {
        Candidate best{-infinity, k, 0, {}};
        for (int t = 0; t < split_draws; ++t, ++uniforms)
            if (masses_[k] > 0) best = std::max(best, split(k, draw_ill_fitting(k, *uniforms), t % 2 == 1));
        pool.push_back(best);
    }
    cumulate_losses();
    if (noise_until_.back() > 0) {
        const std::size_t first = pool.size();
        for (int t = 0; t < noise_draws; ++t) pool.push_back(candidate_at(draw_row(uniforms[t], true), -1));
        surroundings(pool, first);
    }
    return pool;
}

// Loss of the rows near a centre and weight of the noise rows, each cumulated over tiles.
template <int P>
void SearchState<P>::cumulate_losses() {
    near_until_.clear();
    noise_until_.clear();
    double near = 0, noise = 0;
    for (Index start = 0; start < n_; start += rows_per_tile) {
        Pack<double> of_near = splat(0.0), of_noise = of_near;
        for (Index i = start; i < start + rows_per_tile; i += Pack<double>::size) {
            const auto weight = load(&weight_[i]), within = load(&d_first_[i]);
            of_near = of_near + only_where(within < splat(cap()), weight * load(&loss_[i]));
            of_noise = of_noise + only_where(splat(cap()) <= within, weight);
        }
        near_until_.push_back(near += sum(of_near));
        noise_until_.push_back(noise += sum(of_noise));
    }
}

// Half of the draws go to noise rows by weight (a whole cluster may hide among them), half to the others by loss:
// drawn by loss alone, scattered outliers would take nearly all of them.
template <int P>
Index SearchState<P>::draw_row(double uniform, bool from_noise) const {
    const bool any_noise = noise_until_.back() > 0, any_near = near_until_.back() > 0;
    const bool noisy = (from_noise && any_noise) || !any_near;
    const std::vector<double>& until = noisy ? noise_until_ : near_until_;
    const double mark = uniform * until.back();
    const Index tile = std::upper_bound(until.begin(), until.end() - 1, mark) - until.begin();
    double left = mark - (tile > 0 ? until[tile - 1] : 0.0);
    Index last = tile * rows_per_tile;
    for (Index i = last; i < std::min((tile + 1) * rows_per_tile, n_); ++i) {
        const double share = is_noise(i) != noisy ? 0.0 : noisy ? weight_[i] : weight_[i] * loss_[i];
        if (share > 0) last = i;
        if ((left -= share) < 0) break;
    }
    return last;
}

// A row of cluster k, drawn by what its loss exceeds the mean loss of the cluster by; noise is left out.
template <int P>
Index SearchState<P>::draw_ill_fitting(Index k, double uniform) const {
    const auto share = [&](Index i) { return is_noise(i) ? 0.0 : weight_[i]; };
    double sum = 0, mass = 0, excess = 0;
    for (Index i : members(k)) {
        sum += share(i) * loss_[i];
        mass += share(i);
    }
    const auto excess_of = [&](Index i) { return share(i) * std::max(loss_[i] - sum / mass, 0.0); };
    for (Index i : members(k)) excess += excess_of(i);
    double left = uniform * excess;
    Index last = *members(k).begin();
    for (Index i : members(k)) {
        const double e = excess_of(i);
        if (e > 0) last = i;
        if ((left -= e) < 0) break;
    }
    return last;
}

// How much the cost falls if a centre is added and nothing else moves. A centre that is the mean of the rows it
// captures is judged by how far they are from the mean of the others.
template <int P>
double SearchState<P>::gain_of_adding(const double* d_new, bool is_mean) {
    mass_change_.assign(clusters(), 0.0);
    double gain = 0, captured = 0, rescued = 0, inflate = 1;
    if (is_mean) {
        for_each_below(d_new, d_first_, cap(), [&](Index i) { captured += weight_[i]; });
        if (!(captured > 1)) return -infinity;
        inflate = seen_from_others(captured);
        captured = 0;
    }
    Pack<double> gains = splat(0.0);
    for (Index first = 0; first < n_; first += Pack<double>::size) {
        const auto d = splat(inflate) * load(d_new + first), d1 = load(&d_first_[first]), d2 = load(&d_second_[first]);
        if (!any(d < min(full_cost_ ? d2 : d1, splat(cap())))) continue;
        const auto fall = load(&loss_[first]) - row_losses(min(d, d1), min(max(d, d1), d2));
        gains = gains + only_where(d < splat(cap()), load(&weight_[first]) * fall);
        if (!full_cost_ || !any(d < min(d1, splat(cap())))) continue;
        for (Index i = first; i < std::min(first + Pack<double>::size, n_); ++i) {
            if (!(inflate * d_new[i] < d_first_[i] && inflate * d_new[i] < cap())) continue;
            captured += weight_[i];
            if (is_noise(i)) rescued += weight_[i];
            else mass_change_[first_[i]] += weight_[i];
        }
    }
    gain = sum(gains);
    if (!full_cost_) return gain;
    for (Index k = 0; k < clusters(); ++k)
        if (mass_change_[k] > 0) gain += size_cost(masses_[k]) - size_cost(masses_[k] - mass_change_[k]);
    return gain + noise_price_ * rescued - size_cost(captured);
}

// Without a gain as yet.
template <int P>
typename SearchState<P>::Candidate SearchState<P>::candidate_at(Index i, Index parent) const {
    return {-infinity, parent, 0, std::vector<double>(row(i), row(i) + stride())};
}

// Splits cluster k into the parent and a new centre: a few steps of robust 2-means on its rows, begun at a row and at
// the centre, which finds small parts; or at a row and its mirror image, which finds halves, and in many dimensions
// parts of any size, where all rows are nearer to the centre than to each other.
template <int P>
typename SearchState<P>::Candidate SearchState<P>::split(Index k, Index i, bool mirrored) {
    Candidate c = candidate_at(i, k);
    for (Index j = 0; j < stride(); ++j) c.points.push_back(mirrored ? 2 * center(k)[j] - row(i)[j] : center(k)[j]);
    for (int step = 0; step < split_steps; ++step)
        if (!move_parts(k, c.points)) return c;
    c.gain = gain_of_split(k, c.points);
    return c;
}

// One step of it; false if a part is empty.
template <int P>
bool SearchState<P>::move_parts(Index k, std::vector<double>& points) {
    double mass[2] = {0, 0};
    sums_.assign(2 * stride(), 0.0);
    for (Index i : members(k)) {
        const SplitRow r{squared_distances<2>(row(i), points.data())};
        if (!(r.nearer() < cap())) continue;
        const double u = weight_[i] / (1 + r.nearer() / nu_alpha_);
        add(u, row(i), &sums_[r.part() * stride()]);
        mass[r.part()] += u;
    }
    if (!(mass[0] > 0 && mass[1] > 0)) return false;
    for (int part = 0; part < 2; ++part)
        for (Index j = 0; j < stride(); ++j) points[part * stride() + j] = sums_[part * stride() + j] / mass[part];
    return true;
}

// How much the cost falls by it, on the rows of the cluster alone.
template <int P>
double SearchState<P>::gain_of_split(Index k, const std::vector<double>& points) {
    double mass[2] = {0, 0};
    split_rows_.clear();
    for (Index i : members(k)) {
        const SplitRow& r = split_rows_.emplace_back(SplitRow{squared_distances<2>(row(i), points.data())});
        if (r.nearer() < cap()) mass[r.part()] += weight_[i];
    }
    auto r = split_rows_.begin();
    for (Index i : members(k)) {
        const double d1 = inflated(r->nearer(), seen_from_others(mass[r->part()]));
        as_if(d1, std::max(d1, std::min(r->farther(), d_second_[i])));
        ++r;
    }
    double gain = 0;
    const double* after = losses_as_if();
    for (Index i : members(k)) gain += weight_[i] * (loss_[i] - *after++);
    const double noise_change = masses_[k] - mass[0] - mass[1];
    return gain + size_cost(masses_[k]) - size_cost(mass[0]) - size_cost(mass[1]) - noise_price_ * noise_change;
}

// Centres for the rows around noise rows, which the candidates from `first` on are: mean shift to the hidden heap, then
// its robust mean. A few at a time, so that a tile of rows is read once for all of them.
template <int P>
void SearchState<P>::surroundings(std::vector<Candidate>& pool, std::size_t first) {
    for (std::size_t last; first < pool.size(); first = last) {
        last = std::min(first + std::size_t(points_at_once), pool.size());
        const double* points[points_at_once];
        const int count = int(last - first);
        for (int t = 0; t < count; ++t) points[t] = pool[first + t].points.data();
        bool found[points_at_once];
        std::fill(found, found + count, true);
        for (double width : {mean_shift_width * cap(), mean_shift_width * cap(), nu_alpha_}) {
            poll();
            distances_to(points, count, Reach::nearest);
            for (int t = 0; t < count; ++t) {
                const double* d = &distances_[t * whole_tiles_];
                sums_.assign(stride(), 0.0);
                double mass = 0;
                for_each_below(d, d_first_, cap(), [&](Index i) {
                    const double r = 1 / (1 + d[i] / width), u = weight_[i] * (width > nu_alpha_ ? r * r : r);
                    add(u, row(i), sums_.data());
                    mass += u;
                });
                found[t] &= mass > 0;
                for (Index j = 0; j < p() && found[t]; ++j) pool[first + t].points[j] = sums_[j] / mass;
            }
        }
        distances_to(points, count, Reach::two_nearest);
        for (int t = 0; t < count; ++t)
            if (found[t]) pool[first + t].gain = gain_of_adding(&distances_[t * whole_tiles_], true);
    }
}

}  // namespace tkmeans::TKM_SET
