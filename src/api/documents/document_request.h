// The common parts of requests on documents: the key they name, the range it lives in, and the
// document in their body.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/charge.h"
#include "api/context.h"
#include "api/services.h"
#include "base/result.h"
#include "json/document_text.h"
#include "partition/writer/transaction.h"
#include "protocol/keys/epk.h"
#include "protocol/keys/partition_key.h"

namespace orrery::api {

/// The partition key header; nothing when absent. BadRequest when it is malformed.
Result<std::optional<PartitionKey>> key_header(const Context& context);

/// The full key that a point request must name. PartitionKeyMismatch when it has another number of
/// components than the container; BadRequest when it is absent or too long.
Result<PartitionKey> required_key(const Context& context, const ContainerDefinition& definition);
/// The same of a key that was named elsewhere, if one was.
Result<PartitionKey> required_key(const ContainerDefinition& definition,
                                  std::optional<PartitionKey> named);

/// Where documents of that key live.
struct KeyPlace {
  Epk epk;
  std::string canonical;
};
KeyPlace place_of(const ContainerDefinition& definition, const PartitionKey& key);

/// Points the context at the range that owns the key. A range id in the request does not matter: a
/// full key decides alone.
const catalog::Range& route(Context& context, const Epk& epk);

/// Sets the range and the document of a target whose container is known: by name or rid, under the
/// key of the request's header. A part of resolve().
Result<> resolve_document(const Services& services, Context& context);

/// A document's text, checked against the container: what a write makes of it, and its key.
struct ParsedDocument {
  partition::NewVersion version;
  PartitionKey key;
};
/// `named` is the key that goes with the document, in a header or beside it in a batch; without one
/// the document's own counts. BadRequest; PartitionKeyMismatch when they do not agree.
Result<ParsedDocument> parse_document(const ContainerDefinition& definition, std::string_view text,
                                      const std::optional<PartitionKey>& named);

/// Request headers of writes that are valid but ask for what this server lacks, or are not valid.
Result<> check_write_headers(const Context& context);
/// Default, Include, Exclude, or nothing. BadRequest.
Result<> check_indexing_directive(std::string_view directive);

/// Prefer: return=minimal. No body is wanted in return.
bool wants_minimal(const Context& context);

/// Status and charge of a write or read in a transaction.
struct OperationStatus {
  int status;
  Charge charge;
};
OperationStatus status_of(const partition::Written& written, const ContainerDefinition& definition);

/// The rules that transactions on a container of this definition follow.
partition::Rules make_rules(const ContainerDefinition& definition);

}  // namespace orrery::api
