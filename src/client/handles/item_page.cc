#include "client/exchange/pipeline.h"

#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "client/exchange/refusal.h"
#include "json/scan.h"
#include "protocol/wire/headers.h"

namespace orrery::client {
namespace {

/// How many there will be, so that room is made once. No promise: what a header says may be
/// anything.
std::size_t expected_count(const Answer& answer, std::string_view text) {
  constexpr std::size_t kItemBytesMin = 2;
  std::size_t count = 0;
  const std::string_view header = answer.header(headers::kItemCount.text);
  std::from_chars(header.data(), header.data() + header.size(), count);
  return std::min(count, text.size() / kItemBytesMin);
}

/// The elements of the array at `begin`, whose end is left in `end`; false when it does not end as
/// an array does.
bool split(std::string_view text, std::size_t begin, std::vector<std::string_view>& items,
           std::size_t& end) {
  json::Walk walk(text, begin);
  while (walk.next()) {
    const std::string_view item = walk.value();
    if (item.empty() || item.front() == ',' || item.front() == ':' || item.front() == '}') {
      return false;
    }
    items.push_back(item);
  }
  end = walk.after();
  if (end <= begin + 1 || text[end - 1] != ']') return false;
  if (items.empty()) return true;
  // A comma before the bracket stands between nothing.
  const auto last = static_cast<std::size_t>(items.back().data() - text.data());
  return json::after_spaces(text, last + items.back().size()) == end - 1;
}

}  // namespace

ItemPage item_page(Answer answer, std::string_view member, std::string continuation) {
  auto text = std::make_shared<const std::string>(std::move(answer.body));
  std::vector<std::string_view> items;
  items.reserve(expected_count(answer, *text));
  const auto refuse = [&] {
    return failure_of(Failure::Network,
                      fmt::format("the answer is no list: it has no array '{}'", member),
                      answer.diagnostics);
  };
  const std::size_t begin = json::after_spaces(*text, 0);
  if (begin >= text->size() || (*text)[begin] != '{') throw refuse();
  bool found = false;
  std::string buffer;
  json::Walk walk(*text, begin);
  while (walk.next()) {
    if (found || walk.plain_name(buffer) != member) continue;
    if ((*text)[walk.begin] != '[' || !split(*text, walk.begin, items, walk.end)) throw refuse();
    found = true;
  }
  // The brace that ends it must be there: half an answer is none.
  const std::size_t end = walk.after();
  if (!found || end <= begin + 1 || (*text)[end - 1] != '}') throw refuse();
  return ItemPage(std::move(static_cast<ResponseInfo&>(answer)), std::move(text), std::move(items),
                  std::move(continuation));
}

}  // namespace orrery::client
