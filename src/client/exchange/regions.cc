#include "client/exchange/regions.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

namespace orrery::client {
namespace {

using Json = nlohmann::json;

/// Region names are compared without spaces and letter case: "West Europe" is "westeurope".
std::string folded(std::string_view name) {
  std::string text;
  for (const char c : name) {
    if (c != ' ') text += c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  }
  return text;
}

std::vector<Region> regions_at(const Json& account, const char* name) {
  std::vector<Region> regions;
  const auto found = account.find(name);
  if (found == account.end() || !found->is_array()) return regions;
  for (const Json& each : *found) {
    if (!each.is_object()) continue;
    const auto endpoint = each.find("databaseAccountEndpoint");
    if (endpoint == each.end() || !endpoint->is_string()) continue;
    const auto label = each.find("name");
    regions.push_back({.name = label != each.end() && label->is_string() ? label->get<std::string>()
                                                                         : std::string(),
                       .endpoint = endpoint->get<std::string>()});
  }
  return regions;
}

ConsistencyLevel consistency_of(std::string_view text) {
  if (text == "Strong") return ConsistencyLevel::Strong;
  if (text == "BoundedStaleness") return ConsistencyLevel::BoundedStaleness;
  if (text == "ConsistentPrefix") return ConsistencyLevel::ConsistentPrefix;
  if (text == "Eventual") return ConsistencyLevel::Eventual;
  return ConsistencyLevel::Session;
}

bool contains(std::span<Regions::Known* const> tried, const Regions::Known* known) {
  return std::ranges::find(tried, known) != tried.end();
}

}  // namespace

Result<AccountProperties> parse_account(std::string_view body) {
  const Json account = Json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (!account.is_object()) {
    return Error(ErrorCode::BadRequest, "the answer to GET / is no account");
  }
  AccountProperties properties;
  if (const auto id = account.find("id"); id != account.end() && id->is_string()) {
    properties.id = id->get<std::string>();
  }
  properties.writable_regions = regions_at(account, "writableLocations");
  properties.readable_regions = regions_at(account, "readableLocations");
  if (properties.writable_regions.empty() && properties.readable_regions.empty()) {
    return Error(ErrorCode::BadRequest, "the answer to GET / names no regions");
  }
  if (const auto policy = account.find("userConsistencyPolicy");
      policy != account.end() && policy->is_object()) {
    if (const auto level = policy->find("defaultConsistencyLevel");
        level != policy->end() && level->is_string()) {
      properties.consistency = consistency_of(level->get_ref<const std::string&>());
    }
  }
  return properties;
}

Regions::Regions(EndpointPtr given, std::vector<std::string> preferred)
    : preferred_(std::move(preferred)) {
  endpoints_.push_back(std::make_unique<Known>(std::move(given)));
  auto picture = std::make_shared<Picture>();
  picture->reads = picture->writes = {endpoints_.front().get()};
  picture_ = std::move(picture);
}

Regions::PicturePtr Regions::picture() const {
  const std::lock_guard lock(mutex_);
  return picture_;
}

std::optional<ConsistencyLevel> Regions::consistency() const { return picture()->consistency; }

Regions::Known* Regions::find_or_add(const EndpointPtr& endpoint) {
  for (const auto& each : endpoints_) {
    if (each->endpoint->url == endpoint->url) return each.get();
  }
  return endpoints_.emplace_back(std::make_unique<Known>(endpoint)).get();
}

std::vector<Regions::Known*> Regions::in_order(const std::vector<Region>& regions) {
  const auto rank = [this](const Region& region) {
    const auto same = [&](const std::string& name) { return folded(name) == folded(region.name); };
    return std::ranges::find_if(preferred_, same) - preferred_.begin();
  };
  std::vector<std::pair<std::ptrdiff_t, std::size_t>> order;  // Rank, and place in the list.
  order.reserve(regions.size());
  for (std::size_t i = 0; i < regions.size(); ++i) order.emplace_back(rank(regions[i]), i);
  std::ranges::sort(order);
  std::vector<Known*> result;
  for (const auto& [unused, index] : order) {
    const auto endpoint = Endpoint::parse(regions[index].endpoint);
    if (!endpoint) continue;
    Known* known = find_or_add(*endpoint);
    if (!contains(result, known)) result.push_back(known);
  }
  Known* given = endpoints_.front().get();
  if (!contains(result, given)) result.push_back(given);
  return result;
}

void Regions::update(const AccountProperties& account) {
  const std::lock_guard lock(mutex_);
  auto picture = std::make_shared<Picture>();
  picture->writes = in_order(account.writable_regions);
  picture->reads = in_order(account.readable_regions);
  picture->consistency = account.consistency;
  picture_ = std::move(picture);
  known_.store(true, std::memory_order_release);
}

bool Regions::is_avoided(const Known& known, TimePoint now) {
  if (!known.failed_.load(std::memory_order_relaxed)) return false;
  // One that never answered is not tried again while there is another: it is a name that means
  // nothing here.
  if (!known.answered_.load(std::memory_order_relaxed)) return true;
  const TimePoint failed_at{TimePoint::duration(known.failed_at_.load(std::memory_order_relaxed))};
  return now - failed_at < kAvoided;
}

Regions::Known& Regions::choose(bool writes, std::span<Known* const> tried, TimePoint now) {
  const PicturePtr current = picture();
  const auto& candidates = writes ? current->writes : current->reads;
  Known* fallback = nullptr;
  Known* again = nullptr;
  for (Known* each : candidates) {
    const bool avoided = is_avoided(*each, now);
    if (contains(tried, each)) {
      if (again == nullptr && !avoided) again = each;
      continue;
    }
    if (!avoided) return *each;
    if (fallback == nullptr) fallback = each;
  }
  if (fallback != nullptr) return *fallback;
  return again != nullptr ? *again : *candidates.front();
}

bool Regions::has_other(bool writes, std::span<Known* const> tried) const {
  const PicturePtr current = picture();
  const auto& candidates = writes ? current->writes : current->reads;
  return std::ranges::any_of(candidates, [&](Known* each) { return !contains(tried, each); });
}

bool Regions::is_write_region(const Known& known) const {
  const PicturePtr current = picture();
  return std::ranges::find(current->writes, &known) != current->writes.end();
}

std::vector<EndpointPtr> Regions::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<EndpointPtr> result;
  result.reserve(endpoints_.size());
  for (const auto& each : endpoints_) result.push_back(each->endpoint);
  return result;
}

void Regions::answered(Known& known) {
  // Nearly always nothing changes, and then nothing is written that other threads read.
  if (!known.answered_.load(std::memory_order_relaxed)) known.answered_.store(true);
  if (known.failed_.load(std::memory_order_relaxed)) known.failed_.store(false);
}

void Regions::unreachable(Known& known, TimePoint now) {
  known.failed_at_.store(now.time_since_epoch().count());
  known.failed_.store(true);
}

}  // namespace orrery::client
