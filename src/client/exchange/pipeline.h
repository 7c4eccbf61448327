// Pipeline: the way of a request from a handle of the client to the server and back. Signs, chooses
// the endpoint, remembers session tokens, sends again what is worth it, and turns refusals into
// CosmosException.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/exchange/routing.h"
#include "client/transport/transport.h"
#include "orrery/client.h"

namespace orrery::client {

/// One request, as a handle describes it.
struct Call {
  std::string method = "GET";
  std::string type;  ///< as it is signed: "dbs", "colls", "docs", "pkranges", "offers"; "": account
  /// Names, not percent-encoded: what is signed. Of a list, the parent's link.
  std::string link;
  bool list = false;  ///< the path is link/type, not link
  HeaderList headers{};
  std::string body{};

  bool writes = false;  ///< goes to the write region
  /// Safe to retry although it may have been carried out (reads, upserts, deletes…). Other calls
  /// are retried only when they can't have arrived, or were refused.
  bool repeatable = true;
  /// "dbs/x/colls/y" when the call is about documents or the feed of a container: session tokens
  /// are sent and remembered for it, and a 404/1002 is tried again as sessions need it.
  std::string container{};
  /// Statuses that are answers although they are not 2xx. 304 always is.
  std::vector<int> accepted{};
};

/// An answer that was not refused.
struct Answer : ResponseInfo {
  std::string body;
};

/// Thread-safe. One per client.
class Pipeline {
 public:
  /// Throws CosmosException (Argument).
  static std::shared_ptr<Pipeline> make(std::string endpoint, const Credential& credential,
                                        ClientOptions options);
  virtual ~Pipeline() = default;

  /// Sends, again if need be, and waits for the outcome. Throws CosmosException.
  virtual Answer send(const Call& call, const RequestOptions& options) = 0;

  /// The same without a thread that waits: `done` is called once, on a thread of the pipeline, with
  /// the answer or with what send would have thrown. It must not block.
  using Done = std::function<void(Answer answer, std::exception_ptr failure)>;
  virtual void send_async(Call call, RequestOptions options, Done done) = 0;

  /// The ranges of "dbs/x/colls/y", from memory where they are known. Throws CosmosException.
  virtual RoutingMapPtr routing(const std::string& container, const RequestOptions& options) = 0;
  /// To be called when the server says that `known` is out of date (410/1002 and its like, or
  /// another container under the same name): the next routing() fetches what is newer. None:
  /// whatever is known.
  virtual void forget_routing(const std::string& container, const RoutingMapPtr& known) = 0;

  virtual const std::string& endpoint() const = 0;
  virtual const ClientOptions& options() const = 0;
};

/// The documents of a list answer (`{"_rid":…,"Documents":[…],…}`) as a page without a copy of
/// each. `member` is "Documents" or its like. Throws CosmosException when the body has no such
/// array.
ItemPage item_page(Answer answer, std::string_view member, std::string continuation);

}  // namespace orrery::client
