// Whatever a server sends as a list: it is refused, or cut into pieces of its text; and if it is
// JSON, into those that any parser finds.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/assert.h"
#include "client/exchange/pipeline.h"
#include "orrery/exception.h"

namespace {

using nlohmann::json;
using orrery::client::Answer;
using orrery::client::CosmosException;
using orrery::client::ItemPage;

/// The list in `text` if that is JSON, has one, and has it once.
struct Expected {
  bool is_json = false;
  int lists = 0;
  json document;

  explicit Expected(std::string_view text) {
    const auto count = [this](int depth, json::parse_event_t event, json& parsed) {
      if (event == json::parse_event_t::key && depth == 1 && parsed == "Documents") ++lists;
      return true;
    };
    document = json::parse(text, count, /*allow_exceptions=*/false);
    is_json = document.is_object();
  }
  bool is_list() const { return is_json && lists > 0 && document["Documents"].is_array(); }
};

void check(const ItemPage& page, std::string_view text, const Expected& expected) {
  const char* at = page.empty() ? nullptr : page[0].data();
  for (const std::string_view item : page) {
    ORRERY_ASSERT(!item.empty() && item.data() >= at);
    at = item.data() + item.size();
  }
  ORRERY_ASSERT(page.empty() || static_cast<std::size_t>(at - page[0].data()) <= text.size());
  if (!expected.is_list() || expected.lists != 1) return;
  const json& list = expected.document["Documents"];
  ORRERY_ASSERT(page.size() == list.size());
  for (std::size_t i = 0; i < list.size(); ++i) ORRERY_ASSERT(json::parse(page[i]) == list[i]);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Expected expected(text);
  Answer answer;
  answer.body = text;
  // How many a server says that there are is only a hint.
  answer.headers = {{"x-ms-item-count", std::to_string(static_cast<int>(data[0]) - 8)}};
  try {
    const ItemPage page = item_page(std::move(answer), "Documents", "next");
    ORRERY_ASSERT(!expected.is_json || expected.lists > 0);
    check(page, text, expected);
  } catch (const CosmosException& refusal) {
    ORRERY_ASSERT(refusal.failure() == orrery::client::Failure::Network);
    ORRERY_ASSERT(expected.lists != 1 || !expected.is_list());
  }
  return 0;
}
