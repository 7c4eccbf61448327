// Lease: who processes a range, and how far; and its document, as each of the originals writes it.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "orrery/options.h"
#include "orrery/processor.h"
#include "processor/hosting/runtime.h"
#include "processor/leases/lease_store.h"

namespace orrery::processor {

/// Keys of `properties` that are ours. All of it works when a foreign host drops them.
inline constexpr std::string_view kEpochProperty = "orrery.epoch";
inline constexpr std::string_view kWantedByProperty = "orrery.wanted-by";
/// How busy the observer is, of hosts that share by weight.
inline constexpr std::string_view kCostProperty = "orrery.cost";
/// How many splits and merges lie between a lease and those that bootstrap made.
inline constexpr std::string_view kGenerationProperty = "orrery.generation";

struct Lease {
  std::string id;
  std::string token;  ///< the range id, or "{min}-{max}" of a part of the hash space
  std::optional<client::FeedRange> range;  ///< always known of the latter
  std::string owner;                       ///< empty: nobody
  /// The position: an etag, also where the document holds it in another form. nullopt: none yet.
  std::optional<std::string> position;
  /// Java only, while there is no position: where its lease says that reading begins.
  std::optional<WallTime> start_time;
  std::map<std::string, std::string> properties;
  std::optional<WallTime> timestamp;  ///< by the clock of the last writer
  UnixSeconds ts = 0;                 ///< by the clock of the store
  UnixSeconds store_now = 0;          ///< that clock when this was read; 0: not known
  std::string etag;
  LeaseFormat format = LeaseFormat::Net3;
  /// nullopt: the document does not tell (a Java lease without a position).
  std::optional<client::ChangeFeedMode> mode = client::ChangeFeedMode::LatestVersion;
  std::string container_rid;  ///< of the monitored one; in the positions of JavaEpk
  std::string text;           ///< the document as it was read: what is unknown in it is kept

  bool is_epk() const { return token.find('-') != std::string::npos; }
  /// properties["orrery.epoch"]; when it is missing, one made of `ts`, which rises all the same.
  std::uint64_t epoch() const;
  /// properties["orrery.generation"], or 0.
  std::uint64_t generation() const;
  /// properties["orrery.wanted-by"], or empty.
  std::string wanted_by() const;
};

/// BadRequest with a message that says what is wrong with the document, and where a format is mixed
/// up with another, what to do about it.
Result<Lease> parse_lease(const StoredDocument& document);

/// The document of `lease`: its text with what has changed in it, everything else byte for byte;
/// for a new one (no text) all of it, with explicit nulls as .NET writes them. Writes what
/// `owner`, `position`, `timestamp` and `properties` say, and `range` where the document lacks it
/// and its format has it.
std::string write_lease(const Lease& lease);

/// Which format the leases of a store have, and new ones shall have. Net2 and Net3 may stand side
/// by side (that is Net3 then); everything else must be of one kind. `wanted` is what the user
/// asked for. BadRequest with a message that says what is mixed, or not what was asked for.
Result<LeaseFormat> store_format(std::span<const Lease> leases, LeaseFormat wanted);

/// BadRequest when a lease was made for the other mode: switching is not allowed.
Result<> check_mode(std::span<const Lease> leases, client::ChangeFeedMode mode);

/// Of leases with one id (a container keyed by /partitionKey, filled by hosts that draw the key at
/// random) the one with the highest position; `doubles` are the others.
struct DistinctLeases {
  std::vector<Lease> leases;
  std::vector<Lease> doubles;
};
DistinctLeases distinct_leases(std::vector<Lease> leases);

/// A position without the quotes that it has as an etag.
std::string_view plain_position(std::string_view etag);
/// The LSN in an etag of the change feed: `"123"`, with or without quotes. nullopt: another kind of
/// etag, which can't be compared.
std::optional<std::uint64_t> position_lsn(std::string_view etag);
/// Which of two positions is further; none at all is behind every other. Unordered when they can't
/// be compared.
std::partial_ordering compare_positions(const std::optional<std::string>& a,
                                        const std::optional<std::string>& b);
/// The one that is not further than the other; of two that can't be compared, `a`.
std::optional<std::string> lowest_position(const std::optional<std::string>& a,
                                           const std::optional<std::string>& b);

/// "2018-05-03T10:11:12.1234567Z": 0 to 9 digits of a fraction, `Z` or an offset. nullopt when it
/// is none.
std::optional<WallTime> parse_timestamp(std::string_view text);
/// With so many digits of a fraction: .NET writes 7, Java 3.
std::string format_timestamp(WallTime time, int fraction_digits);

/// Hosts' names: .NET and Java compare them without regard to case where they look for their own.
bool same_host(std::string_view a, std::string_view b);

/// The ids of a group's documents.
struct LeaseIds {
  std::string group;  ///< {prefix}{host}_{database}_{container}

  /// `database` and `container` are rids, or for JavaPk names.
  static LeaseIds make(std::string_view prefix, std::string_view feed_host,
                       std::string_view database, std::string_view container);

  std::string marker() const { return group + ".info"; }
  std::string lock() const { return group + ".lock"; }
  std::string control() const { return group + ".control"; }
  std::string member_prefix() const { return group + ".member."; }
  std::string member(std::string_view host) const { return member_prefix() + std::string(host); }
  std::string lease_prefix() const { return group + ".."; }
  std::string lease(std::string_view token) const { return lease_prefix() + std::string(token); }

  friend bool operator==(const LeaseIds&, const LeaseIds&) = default;
};

/// "{min}-{max}", the token of a lease of a part of the hash space.
std::string epk_token(const client::FeedRange& range);

/// A lease that is not in the store yet. For a whole range `token` is its id; for a part of one it
/// is empty and becomes epk_token(range). In JavaEpk every lease is one of a part; what would be a
/// part in Net2 is written as Net3 does it. JavaPk has none: BadRequest.
Result<Lease> new_lease(const LeaseIds& ids, LeaseFormat format, std::string token,
                        std::optional<client::FeedRange> range, std::optional<std::string> position,
                        client::ChangeFeedMode mode, std::string container_rid);

}  // namespace orrery::processor
