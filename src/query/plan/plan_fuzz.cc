// Whatever somebody asks a plan of: it is refused with a reason, or what the plan tells the client
// to send to the ranges is a query that they take.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/assert.h"
#include "query/plan/plan.h"
#include "query/plan/prepared.h"

namespace {

using namespace orrery;

/// As clients do it: with any filter, and any numbers.
std::string filled(std::string text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kPlaceholders = {{
      {"{documentdb-formattableorderbyquery-filter}", "true"},
      {"{documentdb-formattablehybridsearchquery-totaldocumentcount}", "10"},
      {"{documentdb-formattablehybridsearchquery-totalwordcount-", "100"},
      {"{documentdb-formattablehybridsearchquery-hitcountsarray-", "[1]"},
  }};
  for (const auto& [placeholder, value] : kPlaceholders) {
    for (std::size_t at = 0; (at = text.find(placeholder, at)) != std::string::npos;) {
      std::size_t end = at + placeholder.size();
      if (!placeholder.ends_with('}')) {
        end = text.find_first_not_of("0123456789", end);
        if (end == std::string::npos) break;
        if (text[end++] != '}') {  // Somebody's string looks like one.
          at = end;
          continue;
        }
      }
      text.replace(at, end - at, value);
    }
  }
  return text;
}

void check_text(const json::Value& text) {
  std::string buffer;
  const std::string query = filled(std::string(text.as_string(buffer)));
  if (query.empty()) return;
  const auto prepared = query::PreparedQuery::prepare(query, {}, {});
  if (prepared) return;
  // It is a little deeper, and a little longer, than what the client asked for.
  const std::string& reason = prepared.error().message();
  ORRERY_ASSERT(reason.contains("nested deeper") || reason.contains("exceeded the maximum limit"));
}

void check_plan(const std::string& plan) {
  const auto value = json::Value::parse(plan);
  ORRERY_ASSERT(value.has_value());
  ORRERY_ASSERT(value->member("queryRanges").size() > 0);
  check_text(value->member("queryInfo").member("rewrittenQuery"));
  const json::Value rank = value->member("hybridSearchQueryInfo");
  check_text(rank.member("globalStatisticsQuery"));
  const json::Value components = rank.member("componentQueryInfos");
  for (json::Reader reader(components); reader.next();) {
    check_text(reader.value().member("rewrittenQuery"));
  }
}

void check(const Error& error) {
  ORRERY_ASSERT(error.code() == ErrorCode::BadRequest);
  ORRERY_ASSERT(!error.message().empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const query::Parameters parameters;
  const query::Settings settings;
  const PartitionKeyDefinition definitions[] = {
      {.paths = {{"pk"}}, .version = 1},
      {.paths = {{"a"}, {"b"}}, .kind = KeyKind::MultiHash, .version = 2},
  };
  constexpr std::string_view kSomeFeatures =
      "Aggregate,Distinct,GroupBy,OrderBy,Top,OffsetAndLimit,HybridSearch,NonValueAggregate";
  for (const PartitionKeyDefinition& definition : definitions) {
    for (const auto features : {std::optional<std::string_view>(), std::optional(kSomeFeatures)}) {
      const auto plan = query::make_plan({text, parameters, settings, definition, features});
      if (plan) {
        check_plan(*plan);
      } else {
        check(plan.error());
      }
    }
    const auto first_chance =
        query::make_first_chance_plan({text, parameters, settings, definition, std::nullopt});
    if (!first_chance) {
      check(first_chance.error());
    } else if (*first_chance) {
      check_plan(**first_chance);
    }
  }
  return 0;
}
