#include "json/path.h"

#include <algorithm>
#include <array>

#include "base/assert.h"
#include "json/document_text.h"
#include "json/scan.h"

namespace orrery::json {
namespace {

bool shorter_or_before(std::string_view a, std::string_view b) {
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

bool is_before(const Step& a, const Step& b) {
  const auto* a_name = std::get_if<std::string>(&a);
  if (a_name == nullptr) return std::get<std::uint64_t>(a) < std::get<std::uint64_t>(b);
  return shorter_or_before(*a_name, std::get<std::string>(b));
}

/// Which children of a node were met, so that of members of the same name the first one counts, and
/// a walk ends once it has met all.
class Met {
 public:
  explicit Met(std::size_t count) : left_(count) {
    if (count > 64) more_.resize(count);
  }

  /// Whether it is the first time.
  bool meet(std::size_t child) {
    if (more_.empty()) {
      const std::uint64_t bit = std::uint64_t{1} << child;
      if ((bits_ & bit) != 0) return false;
      bits_ |= bit;
    } else {
      if (more_[child]) return false;
      more_[child] = true;
    }
    --left_;
    return true;
  }
  bool all() const { return left_ == 0; }

 private:
  std::size_t left_;
  std::uint64_t bits_ = 0;
  std::vector<bool> more_;
};

}  // namespace

std::size_t PathSet::add(std::span<const Step> path) {
  std::uint32_t at = 0;
  for (const Step& step : path) {
    const bool is_name = std::holds_alternative<std::string>(step);
    auto& children = is_name ? nodes_[at].names : nodes_[at].elements;
    const auto child = std::ranges::lower_bound(children, step, is_before, &Child::step);
    if (child != children.end() && child->step == step) {
      at = child->node;
      continue;
    }
    const auto node = static_cast<std::uint32_t>(nodes_.size());
    children.insert(
        child,
        {step, node, is_name ? MemberSearch::quoted(std::get<std::string>(step)) : std::string()});
    nodes_.emplace_back();
    at = node;
  }
  if (nodes_[at].slot == kNone) nodes_[at].slot = static_cast<std::uint32_t>(size_++);
  return nodes_[at].slot;
}

PathSet PathSet::only(std::span<const std::size_t> slots) const {
  PathSet part = *this;
  part.keep_only(0, slots);
  return part;
}

bool PathSet::keep_only(std::uint32_t node, std::span<const std::size_t> slots) {
  const auto is_of_no_use = [&](const Child& child) { return !keep_only(child.node, slots); };
  std::erase_if(nodes_[node].names, is_of_no_use);
  std::erase_if(nodes_[node].elements, is_of_no_use);
  if (std::ranges::find(slots, nodes_[node].slot) == slots.end()) nodes_[node].slot = kNone;
  return nodes_[node].slot != kNone || !nodes_[node].names.empty() ||
         !nodes_[node].elements.empty();
}

/// One reading of one document.
class PathSet::Pass {
 public:
  Pass(const PathSet& set, const Value& document, std::span<Value> found)
      : set_(set), document_(document), found_(found) {}

  void read(const Value& value, std::uint32_t node) {
    const Node& wanted = set_.nodes_[node];
    if (wanted.slot != kNone) found_[wanted.slot] = Value::referring_to(value);
    for (const Child& child : wanted.names) {
      if (!value.is_object()) break;
      read(value.member(std::get<std::string>(child.step)), child.node);
    }
    for (const Child& child : wanted.elements) {
      if (!value.is_array()) break;
      read(value.element(std::get<std::uint64_t>(child.step)), child.node);
    }
  }

  /// Reads the value that begins at `at`. The position after it, or 0 if nobody needed it; with
  /// `must_end` it is always told.
  std::size_t read_text(std::string_view text, std::size_t at, std::uint32_t node, bool must_end,
                        std::size_t level) {
    const Node& wanted = set_.nodes_[node];
    // The document itself ends where its text does.
    const bool is_whole = level == 0;
    must_end = must_end || (wanted.slot != kNone && !is_whole);
    std::size_t end = 0;
    if (level < kNestingMax) {
      if (text[at] == '{' && !wanted.names.empty()) {
        end = read_object(text, at, wanted, must_end, level);
      } else if (text[at] == '[' && !wanted.elements.empty()) {
        end = read_array(text, at, wanted, must_end, level);
      }
    }
    if (must_end && end == 0) end = after_value(text, at);
    if (wanted.slot != kNone) {
      found_[wanted.slot] =
          is_whole ? Value::referring_to(document_) : Value::of_checked(text.substr(at, end - at));
    }
    return end;
  }

 private:
  static constexpr std::size_t kSearchesMax = 3;

  std::size_t read_object(std::string_view text, std::size_t at, const Node& wanted, bool must_end,
                          std::size_t level) {
    // Each search begins at the first member: of many one walk is quicker.
    if (!must_end && wanted.names.size() <= kSearchesMax &&
        search_object(text, at, wanted, level)) {
      return 0;
    }
    Met met(wanted.names.size());
    Walk walk(text, at);
    while (walk.next()) {
      const std::string_view name = walk.plain_name(buffer_);
      const auto child = find_name(wanted.names, name);
      if (child == wanted.names.size() || !met.meet(child)) continue;
      walk.end =
          read_text(text, walk.begin, wanted.names[child].node, must_end || !met.all(), level + 1);
      if (met.all()) return must_end ? after_brackets(text, walk.end, 1) : 0;
    }
    return walk.after();
  }

  /// False if a walk has to find what is wanted.
  bool search_object(std::string_view text, std::size_t at, const Node& wanted, std::size_t level) {
    std::array<std::size_t, kSearchesMax> places;
    for (std::size_t i = 0; i < wanted.names.size(); ++i) {
      const std::string& quoted = wanted.names[i].quoted;
      if (quoted.empty()) return false;
      places[i] = MemberSearch::find(text, at, quoted);
      if (places[i] == MemberSearch::kUnknown) return false;
    }
    for (std::size_t i = 0; i < wanted.names.size(); ++i) {
      if (places[i] == MemberSearch::kNone) continue;
      read_text(text, places[i], wanted.names[i].node, false, level + 1);
    }
    return true;
  }

  std::size_t read_array(std::string_view text, std::size_t at, const Node& wanted, bool must_end,
                         std::size_t level) {
    Walk walk(text, at);
    auto child = wanted.elements.begin();
    for (std::uint64_t index = 0; walk.next(); ++index) {
      if (std::get<std::uint64_t>(child->step) != index) continue;
      const bool is_last = child + 1 == wanted.elements.end();
      walk.end = read_text(text, walk.begin, child->node, must_end || !is_last, level + 1);
      if (is_last) return must_end ? after_brackets(text, walk.end, 1) : 0;
      ++child;
    }
    return walk.after();
  }

  static std::size_t find_name(const std::vector<Child>& names, std::string_view name) {
    constexpr std::size_t kFew = 8;
    const auto name_of = [](const Child& child) -> const std::string& {
      return *std::get_if<std::string>(&child.step);
    };
    if (names.size() <= kFew) {
      for (std::size_t i = 0; i < names.size(); ++i) {
        if (name_of(names[i]) == name) return i;
      }
      return names.size();
    }
    const auto found = std::ranges::lower_bound(names, name, shorter_or_before, name_of);
    if (found == names.end() || name_of(*found) != name) return names.size();
    return static_cast<std::size_t>(found - names.begin());
  }

  const PathSet& set_;
  const Value& document_;
  std::span<Value> found_;
  std::string buffer_;
};

void PathSet::read(const Value& document, std::span<Value> found) const {
  ORRERY_ASSERT(found.size() == size_);
  for (Value& value : found) value = Value();
  if (size_ == 0) return;
  Pass pass(*this, document, found);
  if (const auto text = document.text()) {
    pass.read_text(*text, 0, 0, false, 0);
  } else {
    pass.read(document, 0);
  }
}

}  // namespace orrery::json
