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
        if (reprice) {
            reprice = false;
            for (Index k = 0; k < clusters(); ++k) prices.price[k] = price_of_dropping(k);
            prices.stale.assign(clusters(), 0);
        }
        const Index k = cheapest(prices);
        if (clusters() <= target && !(prices.price[k] < 0)) {
            cheapest_drop_ = prices.price[k];
            return;
        }
        if (drop_.dropped != k) price_of_dropping(k);  // once more: carrying it out takes up what the pricing has left
        carry_out_drop(k, prices);
    }
    cheapest_drop_ = infinity;
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
// of them, were refitted; on the rows of these centres alone. Needs list_members().
template <int P>
double SearchState<P>::price_of_dropping(Index dropped) {
    poll();
    drop_.dropped = dropped;
    choose_receivers(dropped);
    gather_local_rows(dropped);
    for (int step = 0; step < refit_steps; ++step) {
        refit_receivers(step == 0);
        assign_local_rows();
    }

    const double inflate = seen_from_others(masses_[dropped]);
    if (inflate > noticeable_share) {
        for (Index i : members(dropped)) {
            const double d1 = inflated(d_first_[i], inflate);
            as_if(d1, std::max(d1, d_second_[i]));
        }
        std::copy_n(losses_as_if(), starts_[dropped + 1] - starts_[dropped], drop_.before.begin());
    }
    auto rise = splat(0.0);
    for (Index m = 0; m < drop_.n_rows; m += Pack<double>::size) {
        const auto after = row_losses(load(&drop_.d1[m]), load(&drop_.d2[m]));
        rise = rise + load(&drop_.weight[m]) * (after - load(&drop_.before[m]));
    }
    mass_change_.assign(clusters(), 0.0);
    double price = sum(rise), noise_change = 0;
    for (Index m = 0; m < drop_.n_rows; ++m) {
        const Index i = drop_.rows[m], at = Index(drop_.at[m]);
        const double w = weight_[i];
        if (is_noise(i)) noise_change -= w;
        else mass_change_[first_[i]] -= w;
        if (!(drop_.d1[m] < cap())) noise_change += w;
        else mass_change_[at >= 0 ? drop_.receivers[at] : drop_.outside[m]] += w;
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
        drop_.refitted.insert(drop_.refitted.end(), center(best), center(best) + stride());
    }
    drop_.refitted.resize(max_receivers * stride(), infinity);
}

// As the drop leaves them before anything is refitted.
template <int P>
void SearchState<P>::gather_local_rows(Index dropped) {
    constexpr Index lanes = Pack<double>::size;
    const std::vector<int>& slot = drop_.slot;
    Index m = starts_[dropped + 1] - starts_[dropped];
    for (Index k : drop_.receivers) m += starts_[k + 1] - starts_[k];
    const Index whole = (m + lanes - 1) / lanes * lanes;
    for (std::vector<Index>* numbers : {&drop_.rows, &drop_.outside}) numbers->resize(whole);
    for (std::vector<double>* values : {&drop_.weight, &drop_.before, &drop_.d_outside, &drop_.at, &drop_.d1, &drop_.d2})
        values->resize(whole);
    drop_.tiles.resize(whole * stride());
    drop_.n_rows = m;
    m = 0;
    const auto gather = [&](Index k) {
        for (Index i : members(k)) {
            const Index other = second_[i];
            const bool other_stays = other >= 0 && other != dropped && slot[other] < 0;
            drop_.rows[m] = i;
            drop_.weight[m] = weight_[i];
            drop_.before[m] = loss_[i];
            drop_.outside[m] = other_stays ? other : -1;
            drop_.d_outside[m] = other_stays ? d_second_[i] : infinity;
            drop_.at[m] = k != dropped ? slot[k] : other >= 0 ? slot[other] : -1;
            drop_.d1[m++] = k == dropped ? d_second_[i] : d_first_[i];
        }
    };
    gather(dropped);
    for (Index k : drop_.receivers) gather(k);
    for (; m < whole; ++m) {
        drop_.rows[m] = drop_.rows[m - 1];
        drop_.weight[m] = drop_.before[m] = drop_.d1[m] = 0;
        drop_.at[m] = -1;
        drop_.d_outside[m] = infinity;
    }
}

template <int P>
void SearchState<P>::refit_receivers(bool fresh) {
    constexpr Index lanes = Pack<double>::size;
    sums_.assign(max_receivers * stride(), 0.0);
    double mass[max_receivers] = {}, u[lanes];
    for (Index first = 0; first < drop_.n_rows; first += lanes) {
        if (fresh) to_tile(&drop_.rows[first], &drop_.tiles[first * stride()], lanes);  // then they are near for the sums
        const auto d1 = load(&drop_.d1[first]);
        const auto held = (d1 < splat(cap())) & (splat(0.0) <= load(&drop_.at[first]));
        store(u, only_where(held, load(&drop_.weight[first]) / (splat(1.0) + d1 * splat(1 / nu_alpha_))));
        for (Index m = first; m < first + lanes; ++m) {
            if (!(u[m - first] > 0)) continue;
            const Index k = Index(drop_.at[m]);
            add(u[m - first], row(drop_.rows[m]), &sums_[k * stride()]);
            mass[k] += u[m - first];
        }
    }
    for (std::size_t k = 0; k < drop_.receivers.size(); ++k)
        if (mass[k] > 0)
            for (Index j = 0; j < stride(); ++j) drop_.refitted[k * stride() + j] = sums_[k * stride() + j] / mass[k];
}

// Nearest to which receiver is each row now, or to the centre outside? All receivers at a time: each sum waits for its
// last term.
template <int P>
void SearchState<P>::assign_local_rows() {
    constexpr Index lanes = Pack<double>::size;
    for (Index first = 0; first < drop_.n_rows; first += lanes) {
        Pack<double> d[max_receivers];
        for (std::size_t k = 0; k < max_receivers; ++k) d[k] = splat(0.0);
        const double* tile = &drop_.tiles[first * stride()];
        for (Index j = 0; j < p(); ++j, tile += lanes) {
            TKM_UNROLL
            for (std::size_t k = 0; k < max_receivers; ++k) {
                const auto away = load(tile) - splat(drop_.refitted[k * stride() + j]);
                d[k] = d[k] + away * away;
            }
        }
        auto d1 = load(&drop_.d_outside[first]), d2 = splat(infinity), at = splat(-1.0);
        TKM_UNROLL
        for (std::size_t k = 0; k < max_receivers; ++k) {
            at = where_less(d[k], d1, splat(double(k)), at);
            d2 = min(max(d[k], d1), d2);
            d1 = min(d[k], d1);
        }
        store(&drop_.at[first], at);
        store(&drop_.d1[first], d1);
        store(&drop_.d2[first], d2);
    }
}

// Carries out the drop that was priced last, and finds the two nearest centres of the rows that had a centre of it
// among theirs. The last centre takes the number of the dropped one.
template <int P>
void SearchState<P>::carry_out_drop(Index dropped, Prices& prices) {
    const std::vector<Change> change = move_receivers(dropped);
    const Index last = clusters() - 1;
    std::vector<Index> concerned;
    for (Index i = 0; i < n_; ++i) {
        const Change here = std::max(change[first_[i]], second_[i] < 0 ? Change::none : change[second_[i]]);
        if (here == Change::none) {
            first_[i] = first_[i] == last ? dropped : first_[i];
            second_[i] = second_[i] == last ? dropped : second_[i];
            continue;
        }
        concerned.push_back(i);
        if (here == Change::thorough) prices.stale[first_[i]] = 1;
    }
    for (Index k : drop_.receivers) prices.stale[k] = 1;
    std::copy_n(center(last), stride(), center(dropped));
    centers_.resize(last * stride());
    prices.price[dropped] = prices.price[last];
    prices.price.pop_back();
    prices.stale[dropped] = prices.stale[last];
    prices.stale.pop_back();
    find_two_nearest(concerned);
    drop_.dropped = -1;
}

// To where the refit has put them; returns what becomes of every centre.
template <int P>
std::vector<typename SearchState<P>::Change> SearchState<P>::move_receivers(Index dropped) {
    std::vector<Change> change(clusters(), Change::none);
    for (std::size_t k = 0; k < drop_.receivers.size(); ++k) {
        const Index receiver = drop_.receivers[k];
        const double* refitted = &drop_.refitted[k * stride()];
        const double shift = squared_distances<1>(center(receiver), refitted)[0];
        change[receiver] = shift > noticeable_move * double(p()) * scale() ? Change::thorough : Change::slight;
        std::copy_n(refitted, stride(), center(receiver));
    }
    change[dropped] = Change::thorough;
    return change;
}

template <int P>
void SearchState<P>::find_two_nearest(const std::vector<Index>& rows) {
    for_each_tile(rows, [&](const double* tile, const Index* some, Index count) { find_two_nearest(tile, some, count); });
    for (Index i : rows) as_if(d_first_[i], d_second_[i]);
    const double* loss = losses_as_if();
    for (Index i : rows) loss_[i] = *loss++;
}

}  // namespace tkmeans::TKM_SET
