#include "api/resources/resource_list.h"

#include <chrono>

#include "api/query/query_request.h"
#include "base/work_budget.h"
#include "protocol/tokens/query_continuation.h"
#include "query/eval/execution.h"
#include "query/plan/prepared.h"

namespace orrery::api {
namespace {

constexpr std::uint32_t kQueryPageDefault = 1000;
/// It is done on an event loop.
constexpr std::chrono::milliseconds kTimeMax{100};

/// Ascends as the rids of one list do.
DocumentNumber number_of(const Rid& rid) {
  const std::string_view bytes = rid.bytes();
  std::uint64_t number = 0;
  for (const char byte : bytes.substr(bytes.size() - std::min<std::size_t>(bytes.size(), 8))) {
    number = number << 8 | static_cast<std::uint8_t>(byte);
  }
  return DocumentNumber{number};
}

}  // namespace

Result<http::Response> query_list(Context& context, std::string_view parent_rid,
                                  std::string_view array,
                                  const std::vector<ListedResource>& resources) {
  ORRERY_TRY(auto body, parse_query_body(context));
  ORRERY_TRY(const auto query, query::PreparedQuery::prepare(body.text, body.parameters, {}));
  if (query->shape() == query::PreparedQuery::Shape::Ranked) {
    return Error(ErrorCode::BadRequest, "ORDER BY RANK is for documents only.");
  }
  ORRERY_TRY(const auto from, query_position(context, *query));
  ORRERY_TRY(const auto size, page_size(context, kQueryPageDefault));
  query::PageLimits limits;
  limits.rows_max = size.value_or(UINT32_MAX);
  query::Execution execution(query, limits, from.rows);
  WorkBudget work({.total_time_max = kTimeMax});
  execution.work_with(&work);
  const bool is_stream = query->shape() == query::PreparedQuery::Shape::Stream && !query->inner();
  DocumentNumber last = from.at.after;
  bool has_read_all = true;
  execution.begin_slice(from.at.after);
  if (query->reads_documents()) {
    for (const ListedResource& resource : resources) {
      const DocumentNumber number = number_of(resource.rid);
      if (is_stream && number <= from.at.after) {
        if (execution.wants_remembering()) execution.remember(resource.text, number);
        continue;
      }
      if (execution.take(resource.text, number) == query::Execution::Next::PageDone) {
        has_read_all = false;
        break;
      }
      last = number;
    }
  }
  ORRERY_TRY(execution.finish());

  std::string text;
  open_feed(text, parent_rid, array);
  text += execution.rows();
  close_feed(text, execution.count());
  auto response = reply(context, 200, std::move(text));
  response.add(headers::kItemCount.text, execution.count());
  add_query_execution_info(response);
  const bool is_at_end = execution.is_over() || (is_stream && has_read_all);
  if (!is_at_end) {
    QueryPosition next{.query = query->hash(), .at = {}, .rows = execution.position()};
    next.at.after = is_stream ? last : execution.last_number();
    response.add(headers::kContinuation.text, encode_continuation(next));
  }
  return response;
}

}  // namespace orrery::api
