#include "catalog/offers.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

#include "catalog/entries.h"
#include "catalog/errors.h"
#include "catalog/lookup.h"
#include "catalog/rids.h"

namespace orrery::catalog {

using storage::Family;

OfferPtr Offers::find(const Rid& rid) const {
  std::shared_lock lock(mutex_);
  return find_in(tables_.offers, rid);
}

OfferPtr Offers::of(const Rid& owner) const {
  std::shared_lock lock(mutex_);
  const auto found = tables_.by_owner.find(owner);
  return found == tables_.by_owner.end() ? nullptr : tables_.offers.at(found->second);
}

std::vector<OfferPtr> Offers::list(std::string_view after, std::size_t count_max) const {
  std::shared_lock lock(mutex_);
  return list_after(tables_.offers, after, count_max, nullptr);
}

Result<OfferPtr> Offers::replace(const Rid& rid, std::string_view if_match,
                                 const Throughput& throughput) {
  auto transaction = writer_.begin();
  const auto current = find(rid);
  if (!current) return not_found("offer");
  if (!if_match.empty() && !current->etag().matches(if_match)) return precondition_failed("offer");
  Offer changed = *current;
  changed.throughput = throughput;
  changed.highest_ever = std::max(changed.highest_ever, throughput.request_units());
  changed.version = transaction.version();
  changed.ts = clock_.unix_seconds();
  transaction.batch.put(Family::Catalog, offer_key(rid), make_value(changed));
  const OfferPtr made = std::make_shared<const Offer>(std::move(changed));
  ORRERY_TRY(transaction.commit([&] { put(made); }));
  return made;
}

OfferPtr Offers::stage(Writer::Transaction& transaction, const Rid& owner,
                       const Throughput& throughput) const {
  const auto made = std::make_shared<const Offer>(
      Offer{next_offer_rid(transaction.counters), owner, throughput, throughput.request_units(),
            transaction.version(), clock_.unix_seconds()});
  transaction.batch.put(Family::Catalog, offer_key(made->rid), make_value(*made));
  return made;
}

void Offers::Tables::put(const OfferPtr& offer) {
  by_owner.insert_or_assign(offer->owner, offer->rid);
  offers.insert_or_assign(offer->rid, offer);
}

void Offers::put(const OfferPtr& offer) {
  std::unique_lock lock(mutex_);
  tables_.put(offer);
}

void Offers::erase_of(const Rid& owner) {
  std::unique_lock lock(mutex_);
  const auto found = tables_.by_owner.find(owner);
  if (found == tables_.by_owner.end()) return;
  tables_.offers.erase(found->second);
  tables_.by_owner.erase(found);
}

void Offers::load(const std::vector<OfferPtr>& offers) {
  Tables tables;
  for (const OfferPtr& offer : offers) tables.put(offer);
  std::unique_lock lock(mutex_);
  tables_ = std::move(tables);
}

}  // namespace orrery::catalog
