#include "api/documents/document_request.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "api/target.h"
#include "base/assert.h"
#include "base/header_name.h"
#include "protocol/wire/headers.h"

namespace orrery::api {
namespace {

Error key_mismatch(std::string_view detail) {
  return Error(
      ErrorCode::PartitionKeyMismatch,
      fmt::format("Partition key provided either doesn't correspond to definition in the "
                  "collection or doesn't match partition key field values specified in the "
                  "document. {}",
                  detail));
}

Result<> check_components(const ContainerDefinition& definition, const PartitionKey& key) {
  const std::size_t paths = definition.partition_key().paths.size();
  if (key.size() != paths) {
    return key_mismatch(
        fmt::format("The key in x-ms-documentdb-partitionkey has {} component(s), the "
                    "container has {} path(s).",
                    key.size(), paths));
  }
  return check_key_size(key);
}

/// On a container without a key any of these names the one key that there is.
bool names_no_key(const PartitionKey& key) {
  return key.empty() || (key.size() == 1 && std::holds_alternative<Undefined>(key.components()[0]));
}

KeyComponent component_of(const json::Scalar& value) {
  if (std::holds_alternative<json::NullValue>(value)) return Null{};
  if (const auto* boolean = std::get_if<bool>(&value)) return *boolean;
  if (const auto* number = std::get_if<double>(&value)) return *number;
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return Undefined{};
}

/// The key that a document's header and body both name. A level that the body lacks is `{}` in the
/// header: null is a value, and another key.
Result<PartitionKey> agreed_key(const ContainerDefinition& definition, PartitionKey in_body,
                                const std::optional<PartitionKey>& in_header) {
  if (!in_header) return in_body;
  ORRERY_TRY(check_components(definition, *in_header));
  if (*in_header == in_body) return in_body;
  return key_mismatch(
      fmt::format("The header says {}, the document {}, where {{}} is a value that "
                  "is missing.",
                  in_header->to_json(), in_body.to_json()));
}

/// A unique key's values as bytes; a missing value counts as null.
std::string unique_tuple(const json::DocumentText& document, std::size_t first, std::size_t count) {
  std::vector<KeyComponent> values;
  for (std::size_t i = 0; i < count; ++i) {
    KeyComponent value = component_of(document.wanted(first + i));
    if (std::holds_alternative<Undefined>(value)) value = Null{};
    values.push_back(std::move(value));
  }
  std::string bytes;
  PartitionKey(std::move(values)).append_canonical(bytes);
  return bytes;
}

std::vector<json::MemberPath> wanted_paths(const ContainerDefinition& definition) {
  std::vector<json::MemberPath> paths = definition.partition_key().paths;
  for (const auto& unique_key : definition.unique_keys()) {
    paths.insert(paths.end(), unique_key.begin(), unique_key.end());
  }
  return paths;
}

std::vector<std::string> unique_values(const json::DocumentText& document,
                                       const ContainerDefinition& definition) {
  std::vector<std::string> values;
  std::size_t at = definition.partition_key().paths.size();
  for (const auto& unique_key : definition.unique_keys()) {
    values.push_back(unique_tuple(document, at, unique_key.size()));
    at += unique_key.size();
  }
  return values;
}

std::uint32_t indexed_leaves(const json::DocumentText& document,
                             const ContainerDefinition& definition) {
  if (definition.indexes_everything()) return static_cast<std::uint32_t>(document.leaf_count());
  std::uint32_t count = 0;
  std::vector<std::string_view> leaf;
  document.for_each_leaf([&](std::span<const std::string_view> path) {
    leaf.assign(path.begin(), path.end());
    if (definition.indexes(leaf)) ++count;
  });
  return count;
}

}  // namespace

Result<std::optional<PartitionKey>> key_header(const Context& context) {
  const auto header = context.header(headers::kPartitionKey);
  if (header.empty()) return std::optional<PartitionKey>();
  ORRERY_TRY(auto key, PartitionKey::parse(header));
  return std::optional(std::move(key));
}

Result<PartitionKey> required_key(const Context& context, const ContainerDefinition& definition) {
  ORRERY_TRY(auto key, key_header(context));
  return required_key(definition, std::move(key));
}

Result<PartitionKey> required_key(const ContainerDefinition& definition,
                                  std::optional<PartitionKey> key) {
  if (definition.partition_key().paths.empty()) {
    if (key && !names_no_key(*key)) {
      return key_mismatch("The container has no partition key: send [] or nothing.");
    }
    return PartitionKey();
  }
  if (!key) {
    return Error(
        ErrorCode::BadRequest,
        "PartitionKey value must be supplied for this operation: send it as a JSON array in "
        "x-ms-documentdb-partitionkey, as in [\"value\"].");
  }
  if (key->empty()) {
    return key_mismatch(
        "The key [] names no document of a partitioned container: for documents "
        "without the property send [{}].");
  }
  ORRERY_TRY(check_components(definition, *key));
  return std::move(*key);
}

KeyPlace place_of(const ContainerDefinition& definition, const PartitionKey& key) {
  KeyPlace place;
  place.epk = effective_partition_key(definition.partition_key(), key);
  key.append_canonical(place.canonical);
  return place;
}

const catalog::Range& route(Context& context, const Epk& epk) {
  context.target.range = &context.target.container->ranges.owner_of(epk);
  return *context.target.range;
}

Result<> resolve_document(const Services& services, Context& context) {
  const auto& container = *context.target.container;
  ORRERY_TRY(const auto key, required_key(context, container.definition));
  KeyPlace place = place_of(container.definition, key);
  route(context, place.epk);
  const std::string& name = context.path.names[2];
  partition::DocumentAddress& address = context.target.document.emplace();
  address.key = {std::move(place.epk.bytes), std::move(place.canonical), {}};
  if (!is_rid_path(services, context.path)) {
    address.key.id = name;
    return {};
  }
  const auto rid = Rid::parse(name);
  if (!rid || rid->kind() != RidKind::Document || rid->container_rid() != container.rid) {
    return Error(ErrorCode::NotFound,
                 fmt::format("Resource Not Found. There is no document with the rid '{}' under "
                             "this partition key.",
                             name));
  }
  address.number = DocumentNumber{rid->counter()};
  return {};
}

Result<ParsedDocument> parse_document(const ContainerDefinition& definition, std::string_view text,
                                      const std::optional<PartitionKey>& named) {
  const auto paths = wanted_paths(definition);
  ORRERY_TRY(const auto document, json::DocumentText::parse(text, paths));
  ParsedDocument parsed;
  partition::NewVersion& version = parsed.version;
  ORRERY_TRY(version.new_id, document.id());
  const json::TtlMember ttl = document.ttl();
  if (ttl.kind == json::TtlMember::Kind::Invalid) {
    return Error(ErrorCode::BadRequest,
                 "The input ttl is invalid: a document's 'ttl' must be -1 or a whole number from 1 "
                 "to 2147483647, also where the container has no defaultTtl.");
  }
  // Kept also while TTL is off: it counts from the moment it is switched on.
  if (ttl.kind == json::TtlMember::Kind::Valid) version.own_ttl = ttl.seconds;

  const std::size_t levels = definition.partition_key().paths.size();
  if (levels == 0) {
    ORRERY_TRY(parsed.key, required_key(definition, named));
  } else {
    std::vector<KeyComponent> components;
    components.reserve(levels);
    for (std::size_t level = 0; level < levels; ++level) {
      components.push_back(component_of(document.wanted(level)));
    }
    PartitionKey in_body(std::move(components));
    ORRERY_TRY(check_key_size(in_body));
    ORRERY_TRY(parsed.key, agreed_key(definition, std::move(in_body), named));
  }
  version.unique_values = unique_values(document, definition);
  version.indexed_leaves = indexed_leaves(document, definition);
  version.open_text = document.open_text();
  version.system_places = document.system_places();
  return parsed;
}

Result<> check_write_headers(const Context& context) {
  for (const HeaderName name : {headers::kPreTriggerInclude, headers::kPostTriggerInclude}) {
    if (!context.header(name).empty()) {
      return Error(
          ErrorCode::NotImplemented,
          fmt::format("Triggers are not implemented yet: nothing was written. Leave out the "
                      "header {}.",
                      name.text));
    }
  }
  return check_indexing_directive(context.header(headers::kIndexingDirective));
}

Result<> check_indexing_directive(std::string_view directive) {
  if (directive.empty()) return {};
  for (const auto known : {"Default", "Include", "Exclude"}) {
    if (equal_ignoring_case(directive, known)) return {};
  }
  return Error(ErrorCode::BadRequest,
               fmt::format("x-ms-indexing-directive must be Default, Include or Exclude, not '{}'.",
                           directive));
}

bool wants_minimal(const Context& context) {
  std::string_view list = context.header(headers::kPrefer);
  while (!list.empty()) {
    auto preference = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), preference.size() + 1));
    preference = preference.substr(0, preference.find(';'));  // Parameters of it mean nothing here.
    while (preference.starts_with(' ')) preference.remove_prefix(1);
    while (preference.ends_with(' ')) preference.remove_suffix(1);
    if (equal_ignoring_case(preference, "return=minimal")) return true;
  }
  return false;
}

OperationStatus status_of(const partition::Written& written,
                          const ContainerDefinition& definition) {
  using Kind = partition::Written::Kind;
  const std::size_t unique_keys = definition.unique_keys().size();
  const auto leaves = written.header.indexed_leaves;
  switch (written.kind) {
    case Kind::Created:
      return {201, create_charge(written.text_size, leaves, unique_keys)};
    case Kind::Replaced:
      return {200, replace_charge(written.text_size, leaves, unique_keys)};
    case Kind::Deleted:
      return {204, create_charge(written.text_size, leaves, unique_keys)};
    case Kind::Read:
      return {200, read_charge(written.text_size)};
    case Kind::NotModified:
      return {304, kRefused};
  }
  return {};
}

partition::Rules make_rules(const ContainerDefinition& definition) {
  partition::Rules rules;
  rules.default_ttl = definition.default_ttl();
  if (!definition.unique_keys().empty()) {
    rules.unique_values_of =
        std::make_shared<const partition::UniqueValuesOf>([definition](std::string_view text) {
          const auto document = json::DocumentText::parse(text, wanted_paths(definition));
          // It was checked when it was stored.
          ORRERY_ASSERT(document.has_value());
          return unique_values(*document, definition);
        });
  }
  return rules;
}

}  // namespace orrery::api
