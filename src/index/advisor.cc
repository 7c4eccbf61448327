#include "index/advisor.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace orrery::index {

Advisor::Advice Advisor::observe(const Observation& observation) {
  Advice advice;
  // A container that is small is read faster than an index is kept.
  if (observation.documents < limits_.documents_min || observation.helpful.empty()) return advice;
  // A query whose rows are a good part of what it reads has no use for an index.
  if (observation.documents_read < observation.rows * limits_.documents_per_row_min) return advice;

  const UnixSeconds now = clock_.unix_seconds();
  const std::lock_guard lock(mutex_);
  Container& container = container_of(observation, now);
  for (const IndexSpec& spec : observation.helpful) {
    const auto [place, is_new] = container.wishes.try_emplace(spec);
    Wish& wish = place->second;
    wish.is_read_only = observation.is_read_only && (is_new || wish.is_read_only);
    wish.seen_at = now;
    wish.documents_read += observation.documents_read;
    const bool is_too_much = observation.documents_read >= limits_.documents_min ||
                             wish.documents_read >= limits_.documents_sum_min;
    const bool was_told = wish.told_at != 0 && now < wish.told_at + limits_.patience.count();
    const auto worth = static_cast<double>(wish.documents_read);
    if (!is_too_much || was_told ||
        !grant(container, observation, spec, worth, limits_.indexes_max, now, advice)) {
      continue;
    }
    wish.documents_read = 0;
    wish.told_at = now;
  }
  forget_surplus(container);
  return advice;
}

Advisor::Advice Advisor::request(const Observation& observation, std::size_t indexes_max) {
  const UnixSeconds now = clock_.unix_seconds();
  const std::lock_guard lock(mutex_);
  Container& container = container_of(observation, now);
  Advice advice;
  for (const IndexSpec& spec : observation.helpful) {
    if (container.indexes.contains(spec.text())) {
      advice.build.push_back(spec);  // It is on its way.
    } else {
      grant(container, observation, spec, 0, indexes_max, now, advice);
    }
  }
  return advice;
}

void Advisor::used(std::string_view container, std::span<const std::string> indexes,
                   std::uint64_t documents_saved) {
  const UnixSeconds now = clock_.unix_seconds();
  const std::lock_guard lock(mutex_);
  const auto known = containers_.find(container);
  // Where nobody wants another index there is nothing to choose from.
  if (known == containers_.end()) return;
  for (const std::string& text : indexes) {
    const auto found = known->second.indexes.find(text);
    if (found == known->second.indexes.end()) continue;
    Index& index = found->second;
    index.saved = worth_of(index, now) + static_cast<double>(documents_saved);
    index.used_at = now;
  }
}

/// With what is there as it is now.
Advisor::Container& Advisor::container_of(const Observation& observation, UnixSeconds now) {
  forget_old(now);
  Container& container = containers_[std::string(observation.container)];
  container.seen_at = now;
  for (const std::string& text : observation.automatic) {
    container.indexes.try_emplace(text, Index{.saved = 0, .used_at = now, .since = now});
  }
  // An index that was asked for a while ago and is not there will not come.
  std::erase_if(container.indexes, [&](const auto& entry) {
    return entry.second.since + limits_.patience.count() <= now &&
           std::ranges::find(observation.automatic, entry.first) == observation.automatic.end();
  });
  while (containers_.size() > limits_.containers_max) {
    containers_.erase(std::ranges::min_element(
        containers_, {}, [](const auto& entry) { return entry.second.seen_at; }));
  }
  return container;
}

/// Adds the index to the advice, if there is room for it, or can be made.
bool Advisor::grant(Container& container, const Observation& observation, const IndexSpec& spec,
                    double worth, std::size_t indexes_max, UnixSeconds now, Advice& advice) const {
  const auto of_read_only = static_cast<std::size_t>(std::ranges::count_if(
      container.indexes, [](const auto& entry) { return entry.second.is_read_only; }));
  const bool has_share = !observation.is_read_only || of_read_only < limits_.read_only_max;
  const std::size_t count = observation.indexes + advice.build.size() - advice.drop.size();
  if (!has_share || count >= indexes_max) {
    const auto victim = find_victim(container, observation.is_read_only, !has_share, worth, now);
    if (victim == container.indexes.end()) return false;
    advice.drop.push_back(victim->first);
    container.indexes.erase(victim);
    container.dropped_at = now;
  }
  advice.build.push_back(spec);
  container.indexes.insert_or_assign(
      spec.text(),
      Index{
          .saved = worth, .used_at = now, .since = now, .is_read_only = observation.is_read_only});
  return true;
}

/// The one that is worth least, of those that may give way; `of_read_only`: it must be one of
/// those.
Advisor::Indexes::iterator Advisor::find_victim(Container& container, bool for_read_only,
                                                bool of_read_only, double worth,
                                                UnixSeconds now) const {
  auto victim = container.indexes.end();
  if (container.dropped_at != 0 && now < container.dropped_at + limits_.age_min.count()) {
    return victim;
  }
  for (auto each = container.indexes.begin(); each != container.indexes.end(); ++each) {
    const Index& index = each->second;
    if (index.since + limits_.age_min.count() > now || (of_read_only && !index.is_read_only)) {
      continue;
    }
    const bool is_idle = index.used_at + limits_.idle_min.count() <= now &&
                         worth_of(index, now) * limits_.advantage_min <= worth;
    const bool is_lesser = index.is_read_only && !for_read_only;
    if (!is_idle && !is_lesser) continue;
    if (victim == container.indexes.end() || worth_of(index, now) < worth_of(victim->second, now)) {
      victim = each;
    }
  }
  return victim;
}

double Advisor::worth_of(const Index& index, UnixSeconds now) const {
  const auto half_lives =
      static_cast<double>(now - index.used_at) / static_cast<double>(limits_.half_life.count());
  return index.saved * std::exp2(-std::max(half_lives, 0.0));
}

/// Read-only keys do not make us forget what others want.
void Advisor::forget_surplus(Container& container) {
  while (container.wishes.size() > limits_.wishes_max) {
    container.wishes.erase(std::ranges::min_element(container.wishes, {}, [](const auto& entry) {
      return std::pair(!entry.second.is_read_only, entry.second.seen_at);
    }));
  }
}

void Advisor::forget(std::string_view container) {
  const std::lock_guard lock(mutex_);
  if (const auto found = containers_.find(container); found != containers_.end()) {
    containers_.erase(found);
  }
}

void Advisor::forget_old(UnixSeconds now) {
  const auto is_old = [&](const auto& entry) {
    return entry.second.seen_at + limits_.memory.count() <= now;
  };
  std::erase_if(containers_, is_old);
  for (auto& [name, container] : containers_) std::erase_if(container.wishes, is_old);
}

}  // namespace orrery::index
