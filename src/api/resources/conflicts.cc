// The conflict feed. Writes conflict where several regions take them; here one does, so the feed of
// every container is empty, for good.
#include <fmt/format.h>

#include "api/feed/feed_scope.h"
#include "api/handlers.h"
#include "api/reply.h"
#include "api/resources/resource_list.h"
#include "api/target.h"

namespace orrery::api::conflicts {

Result<http::Response> list(Services&, Context& context) {
  ORRERY_TRY(check_consistency(context));
  const auto& container = context.target.container;
  ORRERY_TRY(const auto scope, feed_scope(context, *container));
  std::vector<std::pair<const catalog::Range*, Lsn>> heads;
  for (const catalog::Range* range : scope.ranges) {
    ORRERY_TRY(check_session(context, *range));
    heads.emplace_back(range, range->partition->head());
  }
  context.charge = kMetadataRead;
  ORRERY_TRY(auto response,
             list_page(
                 context, container->rid_text, "Conflicts",
                 [](std::string_view, std::size_t) { return std::vector<const ListedResource*>(); },
                 [](const ListedResource& conflict) { return conflict.text; },
                 [](const ListedResource& conflict) { return conflict.rid; }));
  add_container_paths(response, *container);
  add_head_headers(response, context, heads);
  return response;
}

Result<http::Response> find(Services&, Context& context) {
  return Error(
      ErrorCode::NotFound,
      fmt::format("Resource Not Found. There is no conflict '{}': an account of one region "
                  "has none.",
                  context.path.names[2]));
}

}  // namespace orrery::api::conflicts
