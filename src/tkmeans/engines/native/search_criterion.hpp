// The criterion of search.hpp: the loss of a row, the scale, and the cost of a state.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "search.hpp"

namespace tkmeans::TKM_SET {

constexpr double low_quantile = 0.25;            // of the nearest distances: the scale while the first seeds are placed
constexpr double least_share_of_quantile = 0.1;  // no cluster shape has its scale so far below the quantile
constexpr double scale_tolerance = 0.01;
constexpr int scale_steps = 10;

// Natural logarithm of a positive normal number, inlined where std::log is a call. The series ends at t^11: the error is
// at most 2e-11, and 0 at x = 1. The last bits depend on the instruction set, since a * b + c may be fused.
inline double quick_log(double x) {
    std::uint64_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    const std::uint64_t shifted = bits - 0x3fe6a09e00000000ull;  // mantissa into [sqrt(1/2), sqrt(2))
    const double exponent = double(std::int64_t(shifted) >> 52);
    bits -= shifted & 0xfff0000000000000ull;
    double m;
    std::memcpy(&m, &bits, sizeof m);
    const double t = (m - 1) / (m + 1), z = t * t;
    const double series = 1 + z * (1.0 / 3 + z * (1.0 / 5 + z * (1.0 / 7 + z * (1.0 / 9 + z * (1.0 / 11)))));
    return exponent * 0.6931471805599453 + 2 * t * series;
}

// The squared distance of a row to the mean of m rows, itself among them, times this is the one to the mean of the
// others: a centre on a single stray, or on a few in many dimensions, gains nothing.
inline double seen_from_others(double m) { return m > 1 ? m / (m - 1) * (m / (m - 1)) : infinity; }

template <int P>
inline double SearchState<P>::row_loss(double d1, double d2) const {
    if (!(d1 < cap())) return cap_loss_;
    const double a = 1 + d1 / nu_alpha_, b = 1 + d2 / nu_alpha_, l1 = h_ * quick_log(a);
    if (!full_cost_ || !(b < clear_ratio_ * a)) return l1;
    const double g = h_ * quick_log(b / a);
    return l1 + g / (1 + std::exp(g));
}

// What the weight of a cluster costs its rows.
template <int P>
inline double SearchState<P>::size_cost(double mass) const {
    return mass > 0 ? mass * std::log(total_ / mass) : 0.0;
}

template <int P>
void SearchState<P>::update_losses() {
    for (Index i = 0; i < n_; ++i) loss_[i] = row_loss(d_first_[i], d_second_[i]);
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
    std::vector<double> mass(8 * 2048, 0.0);
    double wanted = 0, below = 0;
    for (Index i = 0; i < n_; ++i) {
        if (!(d_first_[i] > 0)) continue;
        std::uint64_t bits;
        std::memcpy(&bits, &d_first_[i], sizeof bits);
        mass[bits >> bin_shift] += weight_[i];
        wanted += low_quantile * weight_[i];
    }
    if (!(wanted > 0)) return 0;
    std::uint64_t bin = 0;
    while ((below += mass[bin]) < wanted) {
        ++bin;
        assert(bin < mass.size());
    }
    const std::uint64_t bits = bin << bin_shift;
    double quantile;
    std::memcpy(&quantile, &bits, sizeof quantile);
    return dof_ * quantile / double(p());
}

// The cost in nats with the scale's own term, comparable between any two states (up to the constant of the t
// density). Here a row's distance is the one to the mean of the *other* rows of its cluster, so that a centre on a
// single stray, or many centres in many dimensions, gain nothing from the rows they were fitted to.
template <int P>
double SearchState<P>::cost() const {
    std::vector<double> mass, inflate;
    inlier_masses(mass);
    for (double m : mass) inflate.push_back(seen_from_others(m));
    double sum = 0, noise = 0;
    for (Index i = 0; i < n_; ++i) {
        const Index k = first_[i];
        const double d1 = !is_noise(i) && inflate[k] < infinity ? d_first_[i] * inflate[k] : infinity;
        if (d1 < cap()) sum += weight_[i] * (row_loss(d1, std::max(d1, d_second_[i])) + quick_log(total_ / mass[k]));
        else noise += weight_[i];
    }
    return sum + noise * (cap_loss_ + noise_price_) + 0.5 * double(p()) * total_ * std::log(nu_alpha_);
}

}  // namespace tkmeans::TKM_SET
