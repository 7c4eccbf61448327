#include "cli/query/query_explain.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "cli/terminal/terminal_text.h"
#include "json/value.h"
#include "protocol/wire/resource_path.h"

namespace orrery::cli {
namespace {

constexpr std::string_view kStream = "stream";
constexpr std::string_view kOrdered = "ordered";
constexpr std::string_view kScan = "scan";
constexpr std::string_view kIndex = "index";
constexpr std::string_view kOrderedIndex = "ordered index";
constexpr std::string_view kVectorIndex = "vector index";
constexpr std::string_view kNothing = "nothing";

std::string explained(const json::Value& value) {
  std::string text = value.string_or_empty();
  defuse(text);
  return text;
}

std::uint64_t count_of(const json::Value& value) {
  if (!value.is_number()) return 0;
  const auto number = value.as_number();
  return number.is_integer && number.integer > 0 ? static_cast<std::uint64_t>(number.integer) : 0;
}

std::vector<std::string> texts_of(const json::Value& list) {
  std::vector<std::string> texts;
  for (json::Reader reader(list); reader.next();) {
    if (auto text = explained(reader.value()); !text.empty()) texts.push_back(std::move(text));
  }
  return texts;
}

void add_once(std::vector<std::string>& list, const std::string& text) {
  if (std::ranges::find(list, text) == list.end()) list.push_back(text);
}

/// 1,234,567
std::string grouped(std::uint64_t count) {
  std::string digits = std::to_string(count);
  for (std::size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return digits;
}

std::string counted_in_groups(std::uint64_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", grouped(count), count == 1 ? one : many);
}

/// "a", "a and b", "a, b and c".
std::string listed(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " and " : ", ";
    text += words[i];
  }
  return text;
}

/// The parts between commas, except commas in quoted names: one, or those of a composite index.
std::vector<std::string> parts_of(std::string_view index) {
  std::vector<std::string> parts(1);
  bool is_quoted = false;
  bool is_escaped = false;
  for (const char letter : index) {
    if (letter == ',' && !is_quoted) {
      parts.emplace_back();
      continue;
    }
    parts.back() += letter;
    if (letter == '"' && !is_escaped) is_quoted = !is_quoted;
    is_escaped = is_quoted && letter == '\\' && !is_escaped;
  }
  return parts;
}

bool is_composite(std::string_view index) { return parts_of(index).size() > 1; }

/// "/a", or "(/a ASC, /b DESC)".
std::string index_text(const std::string& index) {
  const auto parts = parts_of(index);
  if (parts.size() == 1) return index;
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "(" : ", ") + part;
  return text + ")";
}

/// "the index on /a", "the indexes on /a and /b".
std::string index_words(const std::vector<std::string>& indexes) {
  std::vector<std::string> texts;
  texts.reserve(indexes.size());
  for (const std::string& index : indexes) texts.push_back(index_text(index));
  if (texts.empty()) return "an index";
  return fmt::format("the {} on {}", texts.size() == 1 ? "index" : "indexes", listed(texts));
}

/// Of the ranges of a page: but for those where nothing was read.
bool are_read_alike(const json::Value& ranges) {
  std::optional<std::pair<std::string, std::vector<std::string>>> first;
  for (json::Reader reader(ranges); reader.next();) {
    const json::Value range = reader.value();
    std::pair way(explained(range.member("way")), texts_of(range.member("indexes")));
    if (way.first == kNothing) continue;
    if (!first) {
      first = std::move(way);
    } else if (way != *first) {
      return false;
    }
  }
  return true;
}

std::string capitalized(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 32);
  return text;
}

}  // namespace

void QueryExplanation::add_page(std::string_view explain_header, std::string_view metrics_header,
                                std::uint64_t rows) {
  ++pages_;
  if (const auto json = percent_decode(explain_header); json && !json->empty()) {
    add_explanation(*json, rows);
  }
  add_metrics(metrics_header);
}

void QueryExplanation::add_explanation(std::string_view json, std::uint64_t rows_shown) {
  const auto page = json::Value::parse(json);
  if (!page || !page->is_object()) return;
  is_explained_ = true;
  shape_ = explained(page->member("shape"));
  const json::Value ranges = page->member("ranges");
  // Also counted are rows that the page only looked at to know what comes next, and the next page
  // counts them again. They come last, or, in an order, are of any range.
  const bool knows_whose = shape_ == kStream || (shape_ == kOrdered && are_read_alike(ranges));
  std::uint64_t rows_left = knows_whose ? rows_shown : UINT64_MAX;
  for (json::Reader reader(ranges); reader.next();) {
    const json::Value range = reader.value();
    const std::string way = explained(range.member("way"));
    const auto indexes = texts_of(range.member("indexes"));
    auto group = std::ranges::find_if(
        groups_, [&](const Group& each) { return each.way == way && each.indexes == indexes; });
    if (group == groups_.end()) {
      groups_.push_back({way, indexes, {}, 0, 0, 0});
      group = groups_.end() - 1;
    }
    const std::string id = explained(range.member("id"));
    add_once(group->ranges, id);
    add_once(ranges_, id);
    group->documents_read += count_of(range.member("documentsRead"));
    group->entries_read += count_of(range.member("entriesRead"));
    const std::uint64_t rows = std::min(count_of(range.member("rows")), rows_left);
    group->rows += rows;
    rows_left -= rows;
  }
  // The last page knows best what is still missing.
  helpful_ = texts_of(page->member("helpful"));
  potential_ = texts_of(page->member("potential"));
  building_ = texts_of(page->member("building"));
  ranges_left_out_ = std::max(ranges_left_out_, count_of(page->member("rangesLeftOut")));
}

void QueryExplanation::add_metrics(std::string_view text) {
  while (!text.empty()) {
    const std::string_view pair = text.substr(0, text.find(';'));
    text.remove_prefix(std::min(text.size(), pair.size() + 1));
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view digits = pair.substr(equals + 1);
    double value = 0;
    const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || stop == digits.data() || !std::isfinite(value)) continue;
    metrics_[std::string(pair.substr(0, equals))] += value;
  }
}

bool QueryExplanation::has_way(std::string_view way) const {
  return std::ranges::any_of(groups_, [&](const Group& each) { return each.way == way; });
}

std::string QueryExplanation::words_of(const Group& group) const {
  const std::string where =
      group.ranges.size() == ranges_.size()
          ? ranges_.size() == 1 ? "the only range that was asked"
                                : fmt::format("all {} ranges that were asked", ranges_.size())
          : fmt::format("{} {}", group.ranges.size() == 1 ? "range" : "ranges",
                        listed(group.ranges));
  const std::string rows =
      fmt::format("{} came of {}", counted_in_groups(group.rows, "row", "rows"),
                  group.documents_read == 1 ? "it" : "them");
  const std::string documents = counted_in_groups(group.documents_read, "document", "documents");
  if (group.way == kNothing) {
    return fmt::format("Nothing was read in {}: no document can pass the filter.", where);
  }
  if (group.way == kScan) {
    return fmt::format("No index was used in {}: {} {} read one after the other, and {}.", where,
                       documents, group.documents_read == 1 ? "was" : "were", rows);
  }
  const std::string what =
      fmt::format("{} and {} were read, and {}",
                  counted_in_groups(group.entries_read, "entry", "entries"), documents, rows);
  if (group.way == kIndex) {
    return fmt::format("{} found the documents in {}: {}.", capitalized(index_words(group.indexes)),
                       where, what);
  }
  if (group.way == kOrderedIndex) {
    return fmt::format("{} gave the documents in order in {}: {}.",
                       capitalized(index_words(group.indexes)), where, what);
  }
  if (group.way == kVectorIndex) {
    return fmt::format("{} found the most similar documents, or nearly so, in {}: {}.",
                       capitalized(index_words(group.indexes)), where, what);
  }
  return fmt::format("In {} the way was '{}': {}.", where, group.way, what);
}

std::string QueryExplanation::words_of_order() const {
  if (shape_ == kOrdered) {
    const bool is_in_order = std::ranges::all_of(groups_, [](const Group& each) {
      return each.way == kOrderedIndex || each.way == kNothing;
    });
    return is_in_order ? "The order comes from the index: a page reads little more than its rows.\n"
                       : "The rows are sorted: each page looks at all of these documents, so that "
                         "larger pages read less in all.\n";
  }
  if (shape_ == "grouped") return "All documents were looked at before the first row.\n";
  if (shape_ == "ranked") return "All documents were ranked before the first row.\n";
  return "";
}

std::string QueryExplanation::words_of_advice() const {
  std::string words;
  for (const std::string& index : building_) {
    words += fmt::format("The index on {} is being built; until it is ready, queries do without.\n",
                         index_text(index));
  }
  bool has_advice = !building_.empty();
  for (const std::string& index : helpful_) {
    if (std::ranges::find(building_, index) != building_.end()) continue;
    has_advice = true;
    words +=
        is_composite(index)
            ? fmt::format(
                  "The composite index on {} of the indexing policy would help; the server has "
                  "yet to build it.\n",
                  index_text(index))
            : fmt::format(
                  "An index on {} would help; the server builds it by itself once such "
                  "queries have read enough to make it worthwhile.\n",
                  index_text(index));
  }
  for (const std::string& index : potential_) {
    has_advice = true;
    words += fmt::format("{} index on {} would help, if the indexing policy listed it.\n",
                         is_composite(index) ? "A composite" : "An", index_text(index));
  }
  if (!has_advice && has_way(kScan)) {
    words += "No index that the indexing policy allows would make this query faster.\n";
  }
  return words;
}

std::string QueryExplanation::words_of_time() const {
  const auto total = metrics_.find("totalExecutionTimeInMs");
  if (total == metrics_.end()) return "";
  const auto sum_of = [&](std::initializer_list<std::string_view> names) {
    double sum = 0;
    for (const std::string_view name : names) {
      if (const auto found = metrics_.find(name); found != metrics_.end()) sum += found->second;
    }
    return sum;
  };
  return fmt::format(
      "The server took {:.2f} ms for {}: {:.2f} to understand the query, {:.2f} in indexes, {:.2f} "
      "with documents.\n",
      total->second, counted_in_groups(pages_, "page", "pages"),
      sum_of({"queryCompileTimeInMs", "queryLogicalPlanBuildTimeInMs",
              "queryPhysicalPlanBuildTimeInMs", "queryOptimizationTimeInMs"}),
      sum_of({"indexLookupTimeInMs"}), sum_of({"documentLoadTimeInMs", "VMExecutionTimeInMs"}));
}

std::string QueryExplanation::to_words() const {
  if (is_explained_) {
    std::string words;
    for (const Group& group : groups_) words += words_of(group) + "\n";
    if (ranges_left_out_ > 0) {
      words += fmt::format("There was no room to tell of {}.\n",
                           counted_in_groups(ranges_left_out_, "more range", "more ranges"));
    }
    return words + words_of_order() + words_of_advice() + words_of_time();
  }
  std::string words = "This server does not tell how it found the rows.\n";
  const auto retrieved = metrics_.find("retrievedDocumentCount");
  const auto output = metrics_.find("outputDocumentCount");
  if (retrieved != metrics_.end() && output != metrics_.end()) {
    words += fmt::format(
        "It read {} for {}.\n",
        counted_in_groups(static_cast<std::uint64_t>(retrieved->second), "document", "documents"),
        counted_in_groups(static_cast<std::uint64_t>(output->second), "row", "rows"));
  }
  return words + words_of_time();
}

}  // namespace orrery::cli
