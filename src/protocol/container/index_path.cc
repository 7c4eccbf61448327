#include "protocol/container/index_path.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "json/document_text.h"
#include "json/scan.h"
#include "json/value.h"

namespace orrery {
namespace {

constexpr std::string_view kElement = "[]";
constexpr std::string_view kAscending = " ASC";
constexpr std::string_view kDescending = " DESC";
constexpr std::string_view kSpatial = " SPATIAL";
constexpr std::string_view kPlanar = " PLANAR";

bool is_word_part(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool is_word(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, is_word_part);
}

/// Goes over a text from its beginning, as far as it is what is asked for.
class Taking {
 public:
  explicit Taking(std::string_view text) : text_(text) {}

  bool at_end() const { return at_ == text_.size(); }

  bool take(std::string_view wanted) {
    if (!text_.substr(at_).starts_with(wanted)) return false;
    at_ += wanted.size();
    return true;
  }

  std::optional<IndexPath> path() {
    IndexPath path;
    if (!take("/")) return std::nullopt;
    if (!begins_step()) return path;  // The root.
    do {
      auto step = this->step();
      if (!step) return std::nullopt;
      path.steps.push_back(std::move(*step));
    } while (take("/"));
    return path;
  }

 private:
  bool begins_step() const {
    return !at_end() && (text_[at_] == '"' || text_[at_] == '[' || is_word_part(text_[at_]));
  }

  std::optional<IndexPath::Step> step() {
    if (take(kElement)) return IndexPath::Step{.name = {}, .is_element = true};
    const std::size_t begin = at_;
    if (!at_end() && text_[at_] == '"') {
      at_ = json::after_string(text_, at_);
      const auto name = json::Value::parse(text_.substr(begin, at_ - begin));
      if (!name || !name->is_string()) return std::nullopt;
      std::string buffer;
      return IndexPath::Step{.name = std::string(name->as_string(buffer))};
    }
    while (!at_end() && is_word_part(text_[at_])) ++at_;
    if (at_ == begin) return std::nullopt;
    return IndexPath::Step{.name = std::string(text_.substr(begin, at_ - begin))};
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::string IndexPath::text() const {
  if (steps.empty()) return "/";
  std::string out;
  for (const Step& step : steps) {
    out.push_back('/');
    if (step.is_element) {
      out.append(kElement);
    } else if (is_word(step.name)) {
      out.append(step.name);
    } else {
      json::append_quoted(out, step.name);
    }
  }
  return out;
}

std::optional<IndexPath> IndexPath::parse(std::string_view text) {
  Taking taking(text);
  auto path = taking.path();
  if (!taking.at_end()) return std::nullopt;
  return path;
}

bool IndexPath::has_elements() const { return std::ranges::any_of(steps, &Step::is_element); }

std::string IndexSpec::text() const {
  std::string out;
  if (!is_composite()) {
    if (!parts.empty()) out = parts.front().path.text();
    if (is_spatial()) out.append(kSpatial);
    if (kind == IndexKind::PlaneCells) out.append(kPlanar);
    return out;
  }
  for (const Part& part : parts) {
    if (!out.empty()) out.push_back(',');
    out.append(part.path.text()).append(part.is_descending ? kDescending : kAscending);
  }
  return out;
}

std::optional<IndexSpec> IndexSpec::parse(std::string_view text) {
  Taking taking(text);
  auto first = taking.path();
  if (!first) return std::nullopt;
  if (taking.at_end()) return single(std::move(*first));
  if (taking.take(kSpatial)) {
    const auto kind = taking.take(kPlanar) ? IndexKind::PlaneCells : IndexKind::EarthCells;
    if (!taking.at_end()) return std::nullopt;
    return single(std::move(*first), kind);
  }
  IndexSpec spec;
  for (auto path = std::move(first);; path = taking.path()) {
    if (!path) return std::nullopt;
    const bool is_descending = taking.take(kDescending);
    if (!is_descending && !taking.take(kAscending)) return std::nullopt;
    if (path->has_elements()) return std::nullopt;
    spec.parts.push_back({std::move(*path), is_descending});
    if (taking.at_end()) break;
    if (!taking.take(",")) return std::nullopt;
  }
  if (!spec.is_composite()) return std::nullopt;
  return spec;
}

}  // namespace orrery
