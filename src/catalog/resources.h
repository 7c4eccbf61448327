// Resources: databases, containers, encryption keys and offers, as values. A change makes a new
// value; a request that holds the old one keeps a consistent view.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "catalog/range_map.h"
#include "partition/writer/transaction.h"
#include "protocol/container/container_definition.h"
#include "protocol/ids.h"
#include "protocol/wire/resource_body.h"

namespace orrery::catalog {

struct Database {
  Rid rid;
  std::string id;
  Lsn version;  ///< of the catalog; makes the etag
  UnixSeconds ts = 0;

  ETag etag() const { return ETag(version, ts); }
  std::string self() const { return "dbs/" + rid.text() + "/"; }
};

struct Container {
  Rid rid;
  std::string database_id;
  ContainerDefinition definition;
  Lsn version;
  UnixSeconds ts = 0;
  RangeMap ranges;

  // Derived from the above once, since every request needs them.
  std::string rid_text;
  std::string alt_content_path;  ///< dbs/d/colls/c, percent-encoded
  partition::Rules rules;
  std::int64_t session_version = 0;  ///< in session tokens: see session_version()
  /// Above the versions of `ranges` that an earlier life of the store has given out.
  std::uint64_t map_version_base = 0;

  ETag etag() const { return ETag(version, ts); }
  std::string self() const {
    return "dbs/" + rid.database_rid().text() + "/colls/" + rid_text + "/";
  }
};

/// A client encryption key. Its meaning is the client's business.
struct EncryptionKey {
  Rid rid;
  std::string id;
  Json members;  ///< of parse_encryption_key: with the id, without system properties
  Lsn version;
  UnixSeconds ts = 0;

  ETag etag() const { return ETag(version, ts); }
  std::string self() const {
    return "dbs/" + rid.database_rid().text() + "/clientencryptionkeys/" + rid.text() + "/";
  }
};

/// The throughput that a client asks for when it makes a container or a database.
struct Throughput {
  std::optional<std::int64_t> manual;             ///< RU/s
  std::optional<std::int64_t> autoscale_max;      ///< RU/s
  std::optional<std::int64_t> increment_percent;  ///< autoscale's automatic upgrade policy
  std::string legacy_type;                        ///< "S1", "S2", "S3", or empty

  /// The throughput that decides on the number of ranges.
  std::int64_t request_units() const { return autoscale_max.value_or(manual.value_or(0)); }
  bool operator==(const Throughput&) const = default;
};

struct Offer {
  Rid rid;
  Rid owner;  ///< a database or a container
  Throughput throughput;
  std::int64_t highest_ever = 0;
  Lsn version;
  UnixSeconds ts = 0;

  ETag etag() const { return ETag(version, ts); }
};

// Shared by the catalog and requests under way.
using DatabasePtr = std::shared_ptr<const Database>;
using ContainerPtr = std::shared_ptr<const Container>;
using OfferPtr = std::shared_ptr<const Offer>;
using EncryptionKeyPtr = std::shared_ptr<const EncryptionKey>;

}  // namespace orrery::catalog
