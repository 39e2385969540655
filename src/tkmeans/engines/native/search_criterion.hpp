// The criterion of search.hpp: the loss of a row, the scale, and the cost of a state.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "elementary.hpp"
#include "search.hpp"

namespace tkmeans::TKM_SET {

constexpr double low_quantile = 0.25;            // of the nearest distances: the scale while the first seeds are placed
constexpr double least_share_of_quantile = 0.1;  // no cluster shape has its scale so far below the quantile
constexpr double scale_tolerance = 0.01;
constexpr int scale_steps = 10;

// The squared distance of a row to the mean of m rows, itself among them, times this is the one to the mean of the
// others: a centre on a single stray, or on a few in many dimensions, gains nothing.
inline double seen_from_others(double m) { return m > 1 ? m / (m - 1) * (m / (m - 1)) : infinity; }
inline double inflated(double d, double by) { return by < infinity ? d * by : by; }  // 0 * inf is not a number

// Of a pack of rows. Beyond `clear_gap` they are not ambiguous.
template <int P>
TKM_INLINE Pack<double> SearchState<P>::row_losses(Pack<double> d1, Pack<double> d2) const {
    const auto c = [](double value) { return splat(value); };
    const auto a = c(1) + d1 * c(1 / nu_alpha_), b = c(1) + d2 * c(1 / nu_alpha_);
    auto loss = c(h_ * ln2) * log2(a);
    const auto ambiguous = (b < c(clear_ratio_) * a) & (d1 < c(cap()));
    if (full_cost_ && any(ambiguous)) {
        const auto g = c(h_ * ln2) * log2(b / a);
        loss = loss + only_where(ambiguous, g / (c(1) + exp(g)));
    }
    return where_less(d1, c(cap()), loss, c(cap_loss_));
}

// Of the rows that were put into scratch, which is empty then.
template <int P>
const double* SearchState<P>::losses_as_if() {
    constexpr Index lanes = Pack<double>::size;
    const Index whole = (Index(d1_.size()) + lanes - 1) / lanes * lanes;
    for (std::vector<double>* values : {&d1_, &d2_, &losses_}) values->resize(whole);
    for (Index i = 0; i < whole; i += lanes) store(&losses_[i], row_losses(load(&d1_[i]), load(&d2_[i])));
    d1_.clear();
    d2_.clear();
    return losses_.data();
}

// What the weight of a cluster costs its rows.
template <int P>
inline double SearchState<P>::size_cost(double mass) const {
    return mass > 0 ? mass * std::log(total_ / mass) : 0.0;
}

template <int P>
void SearchState<P>::update_losses() {
    for (Index i = 0; i < whole_tiles_; i += Pack<double>::size)
        store(&loss_[i], row_losses(load(&d_first_[i]), load(&d_second_[i])));
}

template <int P>
void SearchState<P>::set_nu_alpha(double new_nu_alpha) {
    nu_alpha_ = std::max(new_nu_alpha, least_nu_alpha_);
    const double shift = noise_nu_alpha_ > 0 ? 0.5 * double(p()) * std::log(noise_nu_alpha_ / nu_alpha_) : 0.0;
    cap_loss_ = std::max(h_ * std::log1p(noise_reach_) + shift, h_ * std::log(2.0));  // as at d1 = nu_alpha, or more
    cap_ratio_ = std::exp(cap_loss_ / h_) - 1;
}

// From now on noise has the density it has at the present scale (until then it moves with the scale): states with
// different scales are comparable only against the same noise.
template <int P>
void SearchState<P>::fix_noise() {
    noise_nu_alpha_ = nu_alpha_;
    set_nu_alpha(nu_alpha_);
    update_losses();
}

// The scale for the present assignment, to about 1 %. The rows lose little by it, the comparison of states a lot.
// With a small nu the likelihood has a pole where many centres sit on a few rows each; the quantile keeps away from it.
template <int P>
void SearchState<P>::settle_nu_alpha() {
    const double least = least_share_of_quantile * quantile_nu_alpha();
    for (int step = 0; step < scale_steps; ++step) {
        const double before = nu_alpha_;
        set_nu_alpha(std::max(next_nu_alpha(), least));
        if (std::abs(nu_alpha_ - before) < scale_tolerance * before) break;
    }
}

// One parameter-expanded EM step for the scale from the rows that are not noise. A cluster of one row tells
// nothing of the scale.
template <int P>
double SearchState<P>::next_nu_alpha() const {
    std::vector<double> inflate;
    inlier_masses(inflate);
    for (double& m : inflate) m = m > 1.5 ? seen_from_others(m) : 0.0;
    double wd = 0, w = 0;
    for (Index i = 0; i < n_; ++i) {
        const double d2 = d_first_[i] * inflate[first_[i]];
        if (is_noise(i) || d2 <= 0) continue;
        const double u = weight_[i] / (1 + d2 / nu_alpha_);
        w += u;
        wd += u * d2;
    }
    return wd > 0 ? dof_ * wd / (double(p()) * w) : nu_alpha_;
}

// A low quantile of the nearest distances per feature, times nu, so that neither strays nor clusters without a centre
// reach it; read off a histogram with eight bins per power of two: a bin is a number's exponent and first three bits.
// 0 if every row sits on a centre.
template <int P>
double SearchState<P>::quantile_nu_alpha() const {
    constexpr int bin_shift = 52 - 3;
    const auto bin_of = [](double d) {
        std::uint64_t bits;
        std::memcpy(&bits, &d, sizeof bits);
        return bits >> bin_shift;
    };
    double wanted = 0, below = 0, least = infinity, most = 0;
    for (Index i = 0; i < n_; ++i) {
        if (!(d_first_[i] > 0)) continue;
        least = std::min(least, d_first_[i]);
        most = std::max(most, d_first_[i]);
        wanted += low_quantile * weight_[i];
    }
    if (!(wanted > 0)) return 0;
    std::uint64_t bin = 0, first = bin_of(least);
    std::vector<double> mass(bin_of(most) - first + 1, 0.0);
    for (Index i = 0; i < n_; ++i)
        if (d_first_[i] > 0) mass[bin_of(d_first_[i]) - first] += weight_[i];
    while ((below += mass[bin]) < wanted) ++bin;
    const std::uint64_t bits = (first + bin) << bin_shift;
    double quantile;
    std::memcpy(&quantile, &bits, sizeof quantile);
    return dof_ * quantile / double(p());
}

// The cost in nats with the scale's own term, comparable between any two states (up to the constant of the t
// density). Here a row's distance is the one to the mean of the *other* rows of its cluster, so that a centre on a
// single stray, or many centres in many dimensions, gain nothing from the rows they were fitted to.
template <int P>
double SearchState<P>::cost() {
    std::vector<double> mass;
    inlier_masses(mass);
    double sum = 0;
    for (Index i = 0; i < n_; ++i) {
        const double m = mass[first_[i]];
        const double d1 = is_noise(i) ? infinity : inflated(d_first_[i], seen_from_others(m));
        as_if(d1, std::max(d1, d_second_[i]));
        sum += weight_[i] * (d1 < cap() ? std::log(total_ / m) : noise_price_);
    }
    const double* loss = losses_as_if();
    for (Index i = 0; i < n_; ++i) sum += weight_[i] * loss[i];
    return sum + 0.5 * double(p()) * total_ * std::log(nu_alpha_);
}

}  // namespace tkmeans::TKM_SET
