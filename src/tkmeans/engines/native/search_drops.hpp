// The way down in search.hpp: what dropping a centre costs once its neighbours were refitted, and the descent.
#pragma once
#include <algorithm>

#include "search_rows.hpp"

namespace tkmeans::TKM_SET {

constexpr std::size_t max_receivers = 4;   // centres that are refitted when a neighbour is dropped
constexpr int refit_steps = 2;             // robust means in such a refit
constexpr double scale_drift = 1.2;        // all prices are computed anew when the scale has grown this much
constexpr double noticeable_move = 0.01;   // of p * alpha: a centre that moved less leaves its neighbours' prices alone
constexpr double noticeable_share = 1.02;  // seen_from_others() below it, in clusters of 100 and more, changes no price

// Drops the centre with the lowest price until `target` are left, and further, down to `floor`, while a drop lowers
// the cost (then centres sit where they are not needed, and others may be missing).
template <int P>
void SearchState<P>::descend(Index target, Index floor) {
    assert(floor > 0);
    Prices prices{std::vector<double>(clusters()), {}};
    drop_.dropped = -1;
    bool reprice = true;
    Index check_scale_at = clusters() * 15 / 16;
    while (clusters() > floor) {
        if (clusters() <= check_scale_at) {
            const double grown = next_nu_alpha();
            check_scale_at = clusters() * 15 / 16;
            reprice = grown > scale_drift * nu_alpha_;
            if (reprice) {
                set_nu_alpha(grown);
                refine(1);
            }
        }
        list_members();
        inlier_masses(masses_);
        if (reprice) {
            reprice = false;
            for (Index k = 0; k < clusters(); ++k) prices.price[k] = price_of_dropping(k);
            prices.stale.assign(clusters(), 0);
        }
        const Index k = cheapest(prices);
        if (clusters() <= target && !(prices.price[k] < 0)) break;
        if (drop_.dropped != k) price_of_dropping(k);  // once more: carrying it out takes up what the pricing has left
        carry_out_drop(k, prices);
    }
}

// A price that may have changed is computed again only when it is the lowest: dropping a centre makes its
// neighbours dearer, hardly ever cheaper.
template <int P>
Index SearchState<P>::cheapest(Prices& prices) {
    for (;;) {
        const Index k = std::min_element(prices.price.begin(), prices.price.end()) - prices.price.begin();
        if (!prices.stale[k]) return k;
        prices.price[k] = price_of_dropping(k);
        prices.stale[k] = 0;
    }
}

// The rise of the cost after the centre's rows went to their second-nearest centres and the receivers, which got most
// of them, were refitted; on the rows of these centres alone. Needs list_members() and masses_.
template <int P>
double SearchState<P>::price_of_dropping(Index dropped) {
    poll();
    drop_.dropped = dropped;
    choose_receivers(dropped);
    gather_local_rows(dropped);
    for (int step = 0; step < refit_steps; ++step) {
        if (step > 0) assign_local_rows();
        refit_receivers();
    }
    assign_local_rows();

    mass_change_.assign(clusters(), 0.0);
    double price = 0, noise_change = 0;
    const double inflate = seen_from_others(masses_[dropped]);
    const bool noticeable = inflate > noticeable_share;
    for (const LocalRow& r : drop_.rows) as_if(r.d1, r.d2);
    if (noticeable)
        for (Index i : members(dropped)) {
            const double d1 = inflated(d_first_[i], inflate);
            as_if(d1, std::max(d1, d_second_[i]));
        }
    const double* after = losses_as_if();
    const double* before = after + drop_.rows.size();  // of the rows of the dropped centre, which come first
    for (const LocalRow& r : drop_.rows) {
        const double w = weight_[r.row];
        price += w * (*after++ - (noticeable && first_[r.row] == dropped ? *before++ : loss_[r.row]));
        if (is_noise(r.row)) noise_change -= w;
        else mass_change_[first_[r.row]] -= w;
        if (!(r.d1 < cap())) noise_change += w;
        else mass_change_[r.at >= 0 ? drop_.receivers[r.at] : r.outside] += w;
    }
    for (Index k = 0; k < clusters(); ++k)
        if (mass_change_[k] != 0) price += size_cost(masses_[k] + mass_change_[k]) - size_cost(masses_[k]);
    return price + noise_price_ * noise_change;
}

template <int P>
void SearchState<P>::choose_receivers(Index dropped) {
    std::vector<double>& received = drop_.received;
    received.assign(clusters(), 0.0);
    for (Index i : members(dropped))
        if (second_[i] >= 0 && d_second_[i] < cap()) received[second_[i]] += weight_[i];
    drop_.slot.assign(clusters(), -1);
    drop_.receivers.clear();
    drop_.refitted.clear();
    while (drop_.receivers.size() < max_receivers) {
        const Index best = std::max_element(received.begin(), received.end()) - received.begin();
        if (!(received[best] > 0)) break;
        received[best] = 0;
        drop_.slot[best] = int(drop_.receivers.size());
        drop_.receivers.push_back(best);
        drop_.refitted.insert(drop_.refitted.end(), center(best), center(best) + p());
    }
}

// As the drop leaves them before anything is refitted.
template <int P>
void SearchState<P>::gather_local_rows(Index dropped) {
    drop_.rows.clear();
    const std::vector<int>& slot = drop_.slot;
    const auto gather = [&](Index k) {
        for (Index i : members(k)) {
            const Index other = second_[i];
            const bool other_stays = other >= 0 && other != dropped && slot[other] < 0;
            const int at = k != dropped ? slot[k] : other >= 0 ? slot[other] : -1;
            drop_.rows.push_back({i, other_stays ? other : -1, other_stays ? d_second_[i] : infinity, at,
                                  k == dropped ? d_second_[i] : d_first_[i], infinity});
        }
    };
    gather(dropped);
    for (Index k : drop_.receivers) gather(k);
}

template <int P>
void SearchState<P>::refit_receivers() {
    sums_.assign(drop_.receivers.size() * p(), 0.0);
    double mass[max_receivers] = {};
    for (const LocalRow& r : drop_.rows) {
        if (r.at < 0 || !(r.d1 < cap())) continue;
        const double u = weight_[r.row] / (1 + r.d1 / nu_alpha_);
        for (Index j = 0; j < p(); ++j) sums_[r.at * p() + j] += u * row(r.row)[j];
        mass[r.at] += u;
    }
    for (std::size_t k = 0; k < drop_.receivers.size(); ++k)
        if (mass[k] > 0)
            for (Index j = 0; j < p(); ++j) drop_.refitted[k * p() + j] = sums_[k * p() + j] / mass[k];
}

template <int P>
void SearchState<P>::assign_local_rows() {
    const int count = int(drop_.receivers.size());
    double d[max_receivers];
    for (LocalRow& r : drop_.rows) {
        Index k1 = -1, k2 = -1;
        r.d1 = r.d_outside;
        r.d2 = infinity;
        if (count == 4) squared_distances<4>(row(r.row), drop_.refitted.data(), d);
        else
            for (int k = 0; k < count; ++k) squared_distances<1>(row(r.row), &drop_.refitted[k * p()], d + k);
        for (int k = 0; k < count; ++k) enter(k, d[k], k1, r.d1, k2, r.d2);
        r.at = int(k1);
    }
}

// Carries out the drop that was priced last, and finds the two nearest centres of the rows that had a centre of it
// among theirs. The last centre takes the number of the dropped one.
template <int P>
void SearchState<P>::carry_out_drop(Index dropped, Prices& prices) {
    const std::vector<Change> change = move_receivers(dropped);
    const auto concerns = [&](Index i, Change least) {
        return change[first_[i]] >= least || (second_[i] >= 0 && change[second_[i]] >= least);
    };
    for (Index i = 0; i < n_; ++i)
        if (concerns(i, Change::thorough)) prices.stale[first_[i]] = 1;
    for (Index k : drop_.receivers) prices.stale[k] = 1;

    const Index last = clusters() - 1;
    std::copy(center(last), center(last) + p(), center(dropped));
    centers_.resize(last * p());
    prices.price[dropped] = prices.price[last];
    prices.price.pop_back();
    prices.stale[dropped] = prices.stale[last];
    prices.stale.pop_back();
    std::vector<Index> concerned;
    for (Index i = 0; i < n_; ++i) {
        if (concerns(i, Change::slight)) {
            concerned.push_back(i);
        } else {
            if (first_[i] == last) first_[i] = dropped;
            if (second_[i] == last) second_[i] = dropped;
        }
    }
    find_two_nearest(concerned);
    drop_.dropped = -1;
}

// To where the refit has put them; returns what becomes of every centre.
template <int P>
std::vector<typename SearchState<P>::Change> SearchState<P>::move_receivers(Index dropped) {
    std::vector<Change> change(clusters(), Change::none);
    for (std::size_t k = 0; k < drop_.receivers.size(); ++k) {
        const Index receiver = drop_.receivers[k];
        const double* refitted = &drop_.refitted[k * p()];
        double shift;
        squared_distances<1>(center(receiver), refitted, &shift);
        change[receiver] = shift > noticeable_move * double(p()) * scale() ? Change::thorough : Change::slight;
        std::copy(refitted, refitted + p(), center(receiver));
    }
    change[dropped] = Change::thorough;
    return change;
}

// Gathered into tiles; the last one is filled up with copies.
template <int P>
void SearchState<P>::find_two_nearest(const std::vector<Index>& rows) {
    std::vector<double> tile(rows_per_tile * p());
    for (std::size_t start = 0; start < rows.size(); start += rows_per_tile) {
        const Index count = std::min(rows_per_tile, Index(rows.size() - start));
        for (Index i = 0; i < rows_per_tile; ++i)
            for (Index j = 0; j < p(); ++j) tile[j * rows_per_tile + i] = row(rows[start + std::min(i, count - 1)])[j];
        find_two_nearest(tile.data(), &rows[start], count);
    }
    for (Index i : rows) as_if(d_first_[i], d_second_[i]);
    const double* loss = losses_as_if();
    for (Index i : rows) loss_[i] = *loss++;
}

}  // namespace tkmeans::TKM_SET
