#include "api/feed/feed_filter.h"

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "api/query/query_request.h"
#include "executor/container_settings.h"
#include "json/value.h"
#include "protocol/utf8.h"
#include "protocol/wire/headers.h"
#include "protocol/wire/resource_path.h"
#include "query/eval/predicate.h"
#include "query/eval/projection.h"

namespace orrery::api {
namespace {

constexpr std::array<std::string_view, 2> kAliases = {"c", "p"};

class FeedFilter final : public feed::ItemFilter {
 public:
  FeedFilter(std::size_t alias_count, std::optional<query::Predicate> wanted,
             std::optional<query::Projection> shown)
      : alias_count_(alias_count), wanted_(std::move(wanted)), shown_(std::move(shown)) {}

  Result<Decision> decide(std::string_view current, std::string_view previous, std::string& instead,
                          WorkBudget& work) const override {
    const std::array<json::Value, 2> documents = {value_of(current.empty() ? "{}" : current),
                                                  value_of(previous)};
    const std::span<const json::Value> named(documents.data(), alias_count_);
    if (wanted_) {
      ORRERY_TRY(const bool is_wanted, wanted_->is_true_of(named, &work));
      if (!is_wanted) return Decision::Skip;
    }
    if (!shown_ || shown_->is_star()) return Decision::Keep;
    ORRERY_TRY(const bool is_made, shown_->show(instead, named, &work));
    // A projection larger than a page is not made; the item is shown whole, rather than lost.
    return is_made ? Decision::Replace : Decision::Keep;
  }

 private:
  static json::Value value_of(std::string_view text) {
    return text.empty() ? json::Value() : json::Value::of_checked(text);
  }

  const std::size_t alias_count_;
  const std::optional<query::Predicate> wanted_;
  const std::optional<query::Projection> shown_;
};

/// The text of a header; nothing when it is absent.
Result<std::optional<std::string>> decoded(const Context& context, HeaderName name) {
  if (!context.request.has_header(name)) return std::optional<std::string>();
  auto text = percent_decode(context.header(name));
  if (!text || !is_valid_utf8(*text)) {
    return Error(ErrorCode::BadRequest,
                 fmt::format("The header {} must be percent-encoded UTF-8.", name.text));
  }
  return std::optional(std::move(*text));
}

}  // namespace

Result<std::unique_ptr<const feed::ItemFilter>> feed_filter(const Context& context,
                                                            feed::Mode mode) {
  ORRERY_TRY(const auto filter, decoded(context, headers::kFeedFilter));
  ORRERY_TRY(const auto select, decoded(context, headers::kFeedSelect));
  if (!filter && !select) return std::unique_ptr<const feed::ItemFilter>();
  const std::size_t alias_count = mode == feed::Mode::AllVersions ? 2 : 1;
  const std::span<const std::string_view> aliases(kAliases.data(), alias_count);
  const query::Settings settings = executor::query_settings(context.target.container->definition);
  std::optional<query::Predicate> wanted;
  std::optional<query::Projection> shown;
  if (filter) {
    ORRERY_TRY(wanted, query::Predicate::parse(*filter, aliases, settings));
  }
  if (select) {
    ORRERY_TRY(shown, query::Projection::parse(*select, aliases, "_lsn", settings));
  }
  return std::make_unique<const FeedFilter>(alias_count, std::move(wanted), std::move(shown));
}

}  // namespace orrery::api
