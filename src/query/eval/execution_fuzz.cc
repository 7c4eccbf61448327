// Whatever query runs over some documents: it is refused with a reason, or it has rows that are
// JSON, and page by page it has the same ones.
#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/assert.h"
#include "query/eval/execution.h"
#include "query/plan/access.h"

namespace {

using namespace orrery;
using query::Execution;
using query::PreparedQuery;

constexpr std::array<std::string_view, 5> kDocuments = {
    R"({"id":"1","a":1,"s":"Sirius","t":["x","y",1],"o":{"b":true,"n":null}})",
    R"({"id":"2","a":-2.5e3,"s":"","t":[],"p":{"type":"Point","coordinates":[20.5,30]}})",
    R"({"id":"3","a":9223372036854775807,"t":[{"a":1},{"a":[2,[3]]}],"d":"2026-11-16T08:00:00.0000000Z"})",
    R"({"id":"4","a":"1","s":"S\u00e3o \"q\"","v":[0.5,-1,2]})",
    R"({"id":"5"})",
};
constexpr int kPagesMax = 2000;

/// Nothing where the query is refused.
std::optional<std::string> rows_of(const query::PreparedQueryPtr& prepared,
                                   std::uint32_t page_size) {
  query::PageLimits limits;
  limits.rows_max = page_size;
  limits.memory_max = 1 << 20;
  const bool is_stream = prepared->shape() == PreparedQuery::Shape::Stream && !prepared->inner();
  RowPosition position;
  DocumentNumber after;
  std::string all;
  for (int page = 0; page < kPagesMax; ++page) {
    Execution execution(prepared, limits, position);
    execution.begin_slice(after);
    DocumentNumber last = after;
    bool is_done = false;
    for (std::size_t i = 0; i < kDocuments.size() && !is_done && prepared->reads_documents(); ++i) {
      const DocumentNumber number{i + 1};
      if (is_stream && number <= after) {
        if (execution.wants_remembering()) execution.remember(kDocuments[i], number);
        continue;
      }
      is_done = execution.take(kDocuments[i], number) == Execution::Next::PageDone;
      if (!is_done) last = number;
    }
    const auto finished = execution.finish();
    if (!finished) {
      ORRERY_ASSERT(!finished.error().message().empty());
      return std::nullopt;
    }
    ORRERY_ASSERT(execution.count() <= page_size);
    if (!all.empty() && execution.count() > 0) all += ',';
    all += execution.rows();
    position = execution.position();
    after = is_stream ? last : execution.last_number();
    if (execution.is_over() || (is_stream && !is_done)) return all;
  }
  return std::nullopt;
}

/// Of what is another one each time nothing can be said.
bool is_repeatable(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::toupper(c); });
  return !text.contains("RAND") && !text.contains("NEWID");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto prepared = PreparedQuery::prepare(text, {}, {});
  if (!prepared) {
    ORRERY_ASSERT(prepared.error().code() == ErrorCode::BadRequest);
    ORRERY_ASSERT(!prepared.error().message().empty());
    return 0;
  }
  static_cast<void>(query::access_of(**prepared));
  if ((*prepared)->shape() == PreparedQuery::Shape::Ranked) return 0;
  const auto whole = rows_of(*prepared, 1000);
  if (!whole) return 0;
  ORRERY_ASSERT(json::Value::parse("[" + *whole + "]").has_value());
  if (!is_repeatable(text)) return 0;
  const auto paged = rows_of(*prepared, 1);
  ORRERY_ASSERT(!paged || *paged == *whole);
  return 0;
}
