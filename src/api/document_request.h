// What requests on documents have in common: the key they name, the range it lives in, and the
// document in their body.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/context.h"
#include "api/services.h"
#include "base/result.h"
#include "json/document_text.h"
#include "partition/transaction.h"
#include "protocol/epk.h"
#include "protocol/partition_key.h"

namespace orrery::api {

/// The partition key header; nothing when absent. BadRequest when it is malformed.
Result<std::optional<PartitionKey>> key_header(const Context& context);

/// The full key that a point request must name. PartitionKeyMismatch when it has another number of
/// components than the container; BadRequest when it is absent or too long.
Result<PartitionKey> required_key(const Context& context, const ContainerDefinition& definition);

/// Where documents of that key live.
struct KeyPlace {
  Epk epk;
  std::string canonical;
};
KeyPlace place_of(const ContainerDefinition& definition, const PartitionKey& key);

/// Points the context at the range that owns the key. A range id in the request does not matter: a
/// full key decides alone.
const catalog::Range& route(Context& context, const Epk& epk);

/// The document that a point request addresses by name or rid, under the key of its header.
struct PointTarget {
  storage::DocumentKey key;  ///< its id is empty when addressed by rid
  std::optional<DocumentNumber> number;
};
Result<PointTarget> point_target(const Services& services, Context& context);

/// A body, checked against the container: a Write that lacks only its kind and what it addresses.
struct Intake {
  partition::Write write;
  PartitionKey key;
};
Result<Intake> take_in_document(const Context& context, const catalog::Container& container);

/// Request headers of writes that are valid but ask for what this server lacks, or are not valid.
Result<> check_write_headers(const Context& context);

/// The rules that transactions on a container of this definition follow.
partition::Rules make_rules(const ContainerDefinition& definition);

}  // namespace orrery::api
