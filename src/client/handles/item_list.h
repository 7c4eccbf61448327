// Lists of documents, range by range, with a continuation that is one string; and queries, which
// the server answers for all ranges at once.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/exchange/pipeline.h"
#include "client/exchange/routing.h"
#include "orrery/options.h"
#include "orrery/response.h"

namespace orrery::client {

/// Where a list of documents goes on: pieces of the hash space, in order, each with the server's
/// own token or, when nothing of it has been read yet, without. A value.
///
///   {"V":2,"Rid":"KxEAAJE-AgA=","Continuation":[{"token":"…","range":{"min":"","max":"1F…"}},
///                                                {"token":null,"range":{"min":"1F…","max":"FF"}}]}
///
/// Other SDKs write theirs alike. Pieces stay meaningful when ranges are split or merged: of a
/// range that was split, each part goes on at the token of the whole.
struct ItemListPosition {
  struct RangePosition {
    FeedRange range;
    std::string token;  ///< empty: from the beginning
    bool operator==(const RangePosition&) const = default;
  };

  std::string container_rid;  ///< empty until the first page
  std::vector<RangePosition> pieces;

  static ItemListPosition beginning_of(const FeedRange& scope) { return {{}, {{scope, {}}}}; }
  /// Throws CosmosException (Argument) for what to_string() has not made.
  static ItemListPosition parse(std::string_view text);
  std::string to_string() const;

  /// Cuts the first piece where it lies in several ranges of `map`, and gives the range that the
  /// first one lies in then. Throws CosmosException (Argument) when `map` is of another container.
  PartitionKeyRange begin_in(const RoutingMap& map);
};

/// Documents of "dbs/x/colls/y"; `query` none: all of them.
ItemPages item_pages(std::shared_ptr<Pipeline> pipeline, std::string container,
                     std::optional<Query> query, const QueryOptions& options);

}  // namespace orrery::client
