#include "catalog/entries.h"

#include <utility>

#include "storage/keys.h"

namespace orrery::catalog {
namespace {

constexpr char kFormat = 1;

std::string value_of(const Json& json) { return std::string(1, kFormat) + json.dump(); }

std::optional<Json> json_of(std::string_view value) {
  if (value.empty() || value[0] != kFormat) return {};
  Json json = Json::parse(value.substr(1), nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object()) return {};
  return json;
}

std::optional<Rid> rid_of(std::string_view key) { return Rid::from_bytes(key.substr(1)); }

template <typename T>
void put_optional(Json& json, const char* name, const std::optional<T>& value) {
  if (value) json[name] = *value;
}
std::optional<std::int64_t> optional_number(const Json& json, const char* name) {
  if (!json.contains(name)) return {};
  return json[name].get<std::int64_t>();
}

}  // namespace

std::string database_key(const Rid& rid) { return "d" + std::string(rid.bytes()); }
std::string container_key(const Rid& rid) { return "c" + std::string(rid.bytes()); }
std::string encryption_key_key(const Rid& rid) { return "k" + std::string(rid.bytes()); }
std::string offer_key(const Rid& rid) { return "o" + std::string(rid.bytes()); }
std::string garbage_key(PartitionNumber partition) {
  return "g" + storage::partition_prefix(partition);
}
std::string last_head_key(std::string_view database_id, std::string_view container_id) {
  return "n" + std::string(database_id) + "/" + std::string(container_id);
}
std::string counters_key() { return "s"; }

std::string make_value(const Database& database) {
  return value_of({{"id", database.id}, {"version", database.version.value}, {"ts", database.ts}});
}

std::optional<Database> parse_database(std::string_view key, std::string_view value) {
  const auto rid = rid_of(key);
  const auto json = json_of(value);
  if (!rid || !json) return {};
  return Database{*rid, json->at("id"), Lsn{json->at("version")}, json->at("ts")};
}

std::string make_value(const StoredContainer& container) {
  Json ranges = Json::array();
  for (const StoredRange& range : container.ranges) {
    Json parents = Json::array();
    for (const RangeId parent : range.parents) parents.push_back(parent.value);
    ranges.push_back({{"id", range.id.value},
                      {"partition", range.partition.value},
                      {"min", range.epks.min.hex()},
                      {"max", range.epks.max.hex()},
                      {"parents", std::move(parents)},
                      {"madeIn", range.made_in},
                      {"ts", range.ts}});
  }
  return value_of({{"definition", container.definition.to_stored()},
                   {"version", container.version.value},
                   {"ts", container.ts},
                   {"mapVersion", container.map_version},
                   {"nextRange", container.next_range.value},
                   {"ranges", std::move(ranges)}});
}

std::optional<StoredContainer> parse_container(std::string_view key, std::string_view value) {
  const auto rid = rid_of(key);
  const auto json = json_of(value);
  if (!rid || !json) return {};
  StoredContainer container{*rid,
                            ContainerDefinition::from_stored(json->at("definition")),
                            Lsn{json->at("version")},
                            json->at("ts"),
                            json->at("mapVersion"),
                            {},
                            RangeId{json->value("nextRange", std::uint32_t{0})}};
  for (const Json& stored : json->at("ranges")) {
    auto min = Epk::from_hex(stored.at("min").get<std::string>());
    auto max = Epk::from_hex(stored.at("max").get<std::string>());
    if (!min || !max) return {};
    StoredRange range;
    range.id = RangeId{stored.at("id")};
    range.partition = PartitionNumber{stored.at("partition")};
    range.epks = {std::move(*min), std::move(*max)};
    for (const Json& parent : stored.at("parents")) range.parents.push_back(RangeId{parent});
    range.made_in = stored.at("madeIn");
    range.ts = stored.at("ts");
    container.ranges.push_back(std::move(range));
  }
  return container;
}

std::string make_value(const EncryptionKey& key) {
  return value_of({{"members", key.members}, {"version", key.version.value}, {"ts", key.ts}});
}

std::optional<EncryptionKey> parse_encryption_key(std::string_view key, std::string_view value) {
  const auto rid = rid_of(key);
  const auto json = json_of(value);
  if (!rid || !json) return {};
  const Json& members = json->at("members");
  return EncryptionKey{*rid, members.at("id"), members, Lsn{json->at("version")}, json->at("ts")};
}

std::string make_value(const Offer& offer) {
  Json json = {{"owner", offer.owner.text()},
               {"highestEver", offer.highest_ever},
               {"version", offer.version.value},
               {"ts", offer.ts}};
  put_optional(json, "manual", offer.throughput.manual);
  put_optional(json, "autoscaleMax", offer.throughput.autoscale_max);
  put_optional(json, "incrementPercent", offer.throughput.increment_percent);
  if (!offer.throughput.legacy_type.empty()) json["legacyType"] = offer.throughput.legacy_type;
  return value_of(json);
}

std::optional<Offer> parse_offer(std::string_view key, std::string_view value) {
  const auto rid = rid_of(key);
  const auto json = json_of(value);
  if (!rid || !json) return {};
  const auto owner = Rid::parse(json->at("owner").get<std::string>());
  if (!owner) return {};
  Offer offer{*rid, *owner, {}, json->at("highestEver"), Lsn{json->at("version")}, json->at("ts")};
  offer.throughput.manual = optional_number(*json, "manual");
  offer.throughput.autoscale_max = optional_number(*json, "autoscaleMax");
  offer.throughput.increment_percent = optional_number(*json, "incrementPercent");
  offer.throughput.legacy_type = json->value("legacyType", "");
  return offer;
}

std::string make_value(const Counters& counters) {
  return value_of({{"database", counters.database},
                   {"container", counters.container},
                   {"partition", counters.partition},
                   {"offer", counters.offer},
                   {"encryptionKey", counters.encryption_key},
                   {"version", counters.version}});
}

std::optional<Counters> parse_counters(std::string_view value) {
  const auto json = json_of(value);
  if (!json) return {};
  return Counters{json->at("database"),
                  json->at("container"),
                  json->at("partition"),
                  json->at("offer"),
                  json->value("encryptionKey", std::uint32_t{0}),  // Older stores have none.
                  json->at("version")};
}

std::string make_value(Lsn last_head) {
  Json json;
  json["head"] = last_head.value;
  return value_of(json);
}

std::optional<Lsn> parse_last_head(std::string_view value) {
  const auto json = json_of(value);
  if (!json) return {};
  return Lsn{json->at("head")};
}

}  // namespace orrery::catalog
