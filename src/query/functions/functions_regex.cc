// Functions of regular expressions. RE2 finds them, in a time that grows with the text only; what
// it cannot (references to groups within a pattern, looking ahead and behind) is no valid pattern
// here.
#include <algorithm>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include <re2/re2.h>

#include "json/scan.h"
#include "query/eval/evaluate.h"
#include "query/functions/arguments.h"
#include "query/functions/functions.h"

namespace orrery::query {
namespace {

using json::Value;

constexpr std::size_t kPatternBytesMax = std::size_t{64} << 10;
/// Of what RE2 keeps of one pattern: its programs and the states that it has seen.
constexpr std::int64_t kPatternMemoryMax = std::int64_t{2} << 20;
/// Patterns that each thread keeps.
constexpr std::size_t kPatternsKeptMax = 8;

// Of one call: bytes of text that are searched, those behind a match again for the next match.
// Patterns with too many states are followed instruction by instruction for each byte, of which
// each costs several times as much. Whatever needs more is undefined.
constexpr std::size_t kWorkMax = std::size_t{1} << 30;
constexpr std::size_t kInstructionWork = 2;

// ── Patterns ─────────────────────────────────────────────────────────────────────────────────────

struct Modifiers {
  std::string flags;  ///< of those that RE2 has: i, m and s
  bool is_extended = false;
  bool has_lines() const { return flags.contains('m'); }

  /// Nothing if there is another letter.
  static std::optional<Modifiers> parse(std::string_view text) {
    Modifiers modifiers;
    for (const char letter : text) {
      if (letter == 'x') {
        modifiers.is_extended = true;
      } else if (letter == 'i' || letter == 'm' || letter == 's') {
        if (!modifiers.flags.contains(letter)) modifiers.flags += letter;
      } else {
        return std::nullopt;
      }
    }
    std::ranges::sort(modifiers.flags);
    return modifiers;
  }
};

/// An escape that means something else to RE2, or nothing. Empty where it cannot be said.
struct Escape {
  char letter;
  std::string_view alone;
  std::string_view in_class;
};

constexpr Escape kEscapes[] = {
    {'e', R"(\x{1B})", R"(\x{1B})"},
    {'h', R"([\t \x{A0}\x{1680}\x{180E}\x{2000}-\x{200A}\x{202F}\x{205F}\x{3000}])",
     R"(\t \x{A0}\x{1680}\x{180E}\x{2000}-\x{200A}\x{202F}\x{205F}\x{3000})"},
    {'H', R"([^\t \x{A0}\x{1680}\x{180E}\x{2000}-\x{200A}\x{202F}\x{205F}\x{3000}])", ""},
    {'N', R"([^\n])", ""},
    {'R', R"((?:\r\n|[\n\v\f\r\x{85}\x{2028}\x{2029}]))", ""},
    {'s', R"([\s\v])", R"(\s\v)"},
    {'S', R"([^\s\v])", R"(\x{0}-\x{8}\x{E}-\x{1F}\x{21}-\x{10FFFF})"},
    {'v', R"([\n\v\f\r\x{85}\x{2028}\x{2029}])", R"(\n\v\f\r\x{85}\x{2028}\x{2029})"},
    {'V', R"([^\n\v\f\r\x{85}\x{2028}\x{2029}])", ""},
};

struct Pattern {
  std::unique_ptr<const RE2> compiled;
  /// By the number of a group in the pattern: its number in `compiled`. The first is the whole.
  std::vector<std::size_t> groups;
  /// Groups of `compiled` that are the last newline of the text, seen by a $ that stands before it.
  /// No match has it.
  std::vector<std::size_t> newlines;

  std::size_t group_max() const { return groups.size() - 1; }
};

/// Writes a pattern in the dialect of RE2: without comments and, if it is extended, without white
/// space; (?<name>…) as (?P<name>…); $ and \Z so that they match before a newline at the end.
class PatternTranslator {
 public:
  /// `has_newline`: the pattern is for texts that end in one.
  PatternTranslator(std::string_view pattern, const Modifiers& modifiers, bool has_newline)
      : pattern_(pattern),
        is_extended_(modifiers.is_extended),
        has_lines_(modifiers.has_lines()),
        has_newline_(has_newline) {}

  /// Nothing for what RE2 would understand otherwise. Sets the groups of `known`.
  std::optional<std::string> translate(Pattern& known) {
    known.groups = {0};
    while (at_ < pattern_.size()) {
      const char c = pattern_[at_];
      if (c == '\\') {
        if (!take_escape()) return std::nullopt;
      } else if (c == '[') {
        if (!take_class()) return std::nullopt;
      } else if (rest().starts_with("(?#")) {
        skip_behind(')');
      } else if (is_named_group()) {
        out_ += "(?P<";
        at_ += 3;
        known.groups.push_back(++group_);
      } else if (c == '(') {
        if (!rest().starts_with("(?") || rest().starts_with("(?P<")) {
          known.groups.push_back(++group_);
        }
        copy(1);
      } else if (c == '$' && !has_lines_) {
        take_end("$", 1);
      } else if (is_extended_ && (json::is_space(c) || c == '\v' || c == '\f')) {
        ++at_;
      } else if (is_extended_ && c == '#') {
        skip_behind('\n');
      } else {
        copy(1);
      }
    }
    known.newlines = std::move(newlines_);
    return std::move(out_);
  }

 private:
  std::string_view rest() const { return pattern_.substr(at_); }

  void copy(std::size_t count) {
    const std::string_view copied = rest().substr(0, count);
    out_ += copied;
    at_ += copied.size();
  }

  void skip_behind(char end) {
    const std::size_t found = pattern_.find(end, at_);
    at_ = found == std::string_view::npos ? pattern_.size() : found + 1;
  }

  bool is_named_group() const {
    return rest().starts_with("(?<") && !rest().starts_with("(?<=") && !rest().starts_with("(?<!");
  }

  /// RE2 cannot look ahead: it takes the newline, in a group that tells of it.
  void take_end(std::string_view end, std::size_t size) {
    at_ += size;
    if (!has_newline_) {
      out_ += end;
      return;
    }
    out_.append("(?:").append(end).append(R"(|(\n)\z))");
    newlines_.push_back(++group_);
  }

  bool take_escape() {
    const char letter = rest().size() > 1 ? rest()[1] : '\0';
    // One byte, which may be a part of a character.
    if (letter == 'C') return false;
    if (letter == 'Q') {
      // Quoted text is copied: it is no pattern.
      const std::size_t end = pattern_.find("\\E", at_);
      copy(end == std::string_view::npos ? end : end + 2 - at_);
      return true;
    }
    if (letter == 'Z' && !is_in_class_) {
      take_end(R"(\z)", 2);
      return true;
    }
    const auto* other = std::ranges::find(kEscapes, letter, &Escape::letter);
    if (other == std::end(kEscapes)) {
      copy(2);
      return true;
    }
    const std::string_view written = is_in_class_ ? other->in_class : other->alone;
    if (written.empty()) return false;
    out_ += written;
    at_ += 2;
    return true;
  }

  /// […], where the first character may be a ] and white space counts.
  bool take_class() {
    is_in_class_ = true;
    copy(rest().starts_with("[^") ? 2 : 1);
    if (rest().starts_with(']')) copy(1);
    while (at_ < pattern_.size() && pattern_[at_] != ']') {
      if (pattern_[at_] == '\\') {
        if (!take_escape()) return false;
      } else if (rest().starts_with("[:")) {
        const std::size_t end = pattern_.find(":]", at_);
        copy(end == std::string_view::npos ? 1 : end + 2 - at_);
      } else {
        copy(1);
      }
    }
    copy(1);
    is_in_class_ = false;
    return true;
  }

  std::string_view pattern_;
  bool is_extended_;
  bool has_lines_;
  bool has_newline_;
  std::size_t at_ = 0;
  bool is_in_class_ = false;
  std::string out_;
  std::size_t group_ = 0;  ///< the last one that was written
  std::vector<std::size_t> newlines_;
};

/// Nothing if it is none.
std::optional<Pattern> compile(std::string_view pattern, const Modifiers& modifiers,
                               bool has_newline) {
  Pattern result;
  const auto translated = PatternTranslator(pattern, modifiers, has_newline).translate(result);
  if (!translated) return std::nullopt;
  RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(kPatternMemoryMax);
  const std::string flags = modifiers.flags.empty() ? "" : "(?" + modifiers.flags + ")";
  result.compiled = std::make_unique<const RE2>(flags + *translated, options);
  if (!result.compiled->ok()) return std::nullopt;
  // A pattern with other groups than we counted was misread.
  const auto groups = static_cast<std::size_t>(result.compiled->NumberOfCapturingGroups());
  if (groups != result.group_max() + result.newlines.size()) return std::nullopt;
  return result;
}

/// The patterns that a thread used last: queries ask for the same ones row by row.
class PatternCache {
 public:
  /// Null if it is no pattern. Lives until the next call.
  const Pattern* find(std::string_view pattern, std::string_view modifier_text,
                      std::string_view searched) {
    const auto modifiers = Modifiers::parse(modifier_text);
    if (!modifiers || pattern.size() > kPatternBytesMax) return nullptr;
    const bool has_newline =
        searched.ends_with('\n') && (pattern.contains('$') || pattern.contains("\\Z"));
    const auto found = std::ranges::find_if(kept_, [&](const Kept& kept) {
      return kept.pattern == pattern && kept.flags == modifiers->flags &&
             kept.is_extended == modifiers->is_extended && kept.has_newline == has_newline;
    });
    if (found != kept_.end()) {
      kept_.splice(kept_.begin(), kept_, found);
    } else {
      if (kept_.size() == kPatternsKeptMax) kept_.pop_back();
      kept_.push_front({std::string(pattern), modifiers->flags, modifiers->is_extended, has_newline,
                        compile(pattern, *modifiers, has_newline)});
    }
    const auto& first = kept_.front().compiled;
    return first ? &*first : nullptr;
  }

 private:
  struct Kept {
    std::string pattern;
    std::string flags;
    bool is_extended;
    bool has_newline;
    std::optional<Pattern> compiled;
  };
  std::list<Kept> kept_;  ///< the last used one first
};

/// The pattern as it is for a text like `searched`.
const Pattern* find_pattern(std::string_view pattern, std::string_view modifiers,
                            std::string_view searched) {
  thread_local PatternCache cache;
  return cache.find(pattern, modifiers, searched);
}

// ── Searching ────────────────────────────────────────────────────────────────────────────────────

/// Whether RE2 has met more states than it may keep, in this thread.
thread_local bool has_too_many_states = false;

/// RE2 tells nobody else that it goes on in its slow way.
void watch_states() {
  static const bool is_set = [] {
    re2::hooks::SetDFASearchFailureHook(
        [](const re2::hooks::DFASearchFailure&) { has_too_many_states = true; });
    return true;
  }();
  static_cast<void>(is_set);
}

bool is_inside_character(std::string_view text, std::size_t at) {
  return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;
}

/// Goes over the matches in a text, from left to right.
class Search {
 public:
  /// `groups`: of them the matches tell, besides the whole. All must outlive it.
  Search(const Pattern& pattern, std::string_view text, WorkBudget* budget, std::size_t groups = 0)
      : pattern_(pattern),
        budget_(budget),
        re2_(*pattern.compiled),
        groups_(groups),
        // Null is for groups that have no part in a match: an empty text is somewhere, too.
        text_(text.data() == nullptr ? std::string_view("") : text),
        found_(1 + (pattern.newlines.empty() ? groups : groups_in_all())) {
    watch_states();
    has_too_many_states = false;
    is_beyond_ = text_.size() * instructions() > kWorkMax;
  }

  /// False: there is no other one, or it was too much work.
  bool next() {
    while (!is_beyond_ && at_ <= text_.size()) {
      const std::size_t work = (text_.size() - at_) * (has_too_many_states ? instructions() : 1);
      if (work > kWorkMax - work_) {
        is_beyond_ = true;
        return false;
      }
      work_ += work;
      if (budget_ != nullptr && !budget_->spend(1 + WorkBudget::steps_of(work))) return false;
      if (!re2_.Match(text_, at_, text_.size(), RE2::UNANCHORED, found_.data(),
                      static_cast<int>(found_.size()))) {
        at_ = text_.size() + 1;
        return false;
      }
      leave_newline();
      at_ = end();
      if (found_[0].empty()) at_ = after_character(at_);
      // RE2 finds what has no length between the bytes of a character, too.
      if (!is_inside_character(text_, begin())) return true;
      at_ = after_character(begin());
    }
    return false;
  }

  /// Whether it was too much work.
  bool is_beyond() const { return is_beyond_; }

  // ── The last match ──
  std::size_t begin() const { return static_cast<std::size_t>(found_[0].data() - text_.data()); }
  std::size_t end() const { return begin() + found_[0].size(); }
  /// The group, 0 the whole; nothing if it has no part in the match.
  std::optional<std::string_view> group(std::size_t number) const {
    const auto& found = found_[pattern_.groups[number]];
    if (found.data() == nullptr) return std::nullopt;
    return std::string_view(found.data(), found.size());
  }
  std::size_t groups() const { return groups_; }

 private:
  /// How much work one byte is at worst.
  std::size_t instructions() const {
    return kInstructionWork * static_cast<std::size_t>(std::max(re2_.ProgramSize(), 1));
  }

  std::size_t groups_in_all() const {
    return static_cast<std::size_t>(re2_.NumberOfCapturingGroups());
  }

  /// A newline that $ took was only to be looked at.
  void leave_newline() {
    const auto is_taken = [&](std::size_t group) { return found_[group].data() != nullptr; };
    if (std::ranges::none_of(pattern_.newlines, is_taken)) return;
    const char* const end = text_.data() + text_.size();
    for (re2::StringPiece& found : found_) {
      if (!found.empty() && found.data() + found.size() == end) found.remove_suffix(1);
    }
  }

  std::size_t after_character(std::size_t at) const {
    ++at;
    while (is_inside_character(text_, at)) ++at;
    return at;
  }

  const Pattern& pattern_;
  WorkBudget* const budget_;
  const RE2& re2_;
  std::size_t groups_;
  std::string_view text_;
  std::vector<re2::StringPiece> found_;
  std::size_t at_ = 0;  ///< where the next search begins
  std::size_t work_ = 0;
  bool is_beyond_ = false;
};

// ── Functions ────────────────────────────────────────────────────────────────────────────────────

/// (text, pattern [, modifiers])
Value regex_match(Arguments arguments) {
  const Texts texts(arguments, arguments.size());
  if (!texts) return {};
  const Pattern* pattern = find_pattern(texts[1], arguments.size() > 2 ? texts[2] : "", texts[0]);
  if (pattern == nullptr) return {};
  Search search(*pattern, texts[0], arguments.work());
  const bool is_found = search.next();
  return search.is_beyond() ? Value() : Value::boolean(is_found);
}

/// (text, pattern [, modifiers [, group]])
class Extraction {
 public:
  explicit Extraction(Arguments arguments)
      : texts_(arguments, std::min<std::size_t>(arguments.size(), 3)) {
    if (!texts_) return;
    const auto group = arguments.size() > 3 ? integer_of(*arguments[3]) : 0;
    const Pattern* pattern =
        find_pattern(texts_[1], arguments.size() > 2 ? texts_[2] : "", texts_[0]);
    if (pattern == nullptr || !group || *group < 0) return;
    group_ = static_cast<std::size_t>(*group);
    if (group_ > pattern->group_max()) return;
    search_.emplace(*pattern, texts_[0], arguments.work(), group_);
  }

  /// False: the arguments make no sense.
  explicit operator bool() const { return search_.has_value(); }
  Search& search() { return *search_; }
  std::optional<std::string_view> found() const { return search_->group(group_); }

 private:
  Texts texts_;
  std::size_t group_ = 0;
  std::optional<Search> search_;
};

Value regex_extract(Arguments arguments) {
  Extraction extraction(arguments);
  if (!extraction || !extraction.search().next()) return {};
  const auto found = extraction.found();
  return found ? made(*found) : Value();
}

Value regex_extract_all(Arguments arguments) {
  Extraction extraction(arguments);
  if (!extraction) return {};
  std::vector<Value> all;
  std::size_t bytes = 0;
  while (extraction.search().next()) {
    const auto found = extraction.found();
    if (!found) continue;
    bytes += sizeof(Value) + found->size();
    if (bytes > kMadeBytesMax) return {};
    all.push_back(made(*found));
  }
  return extraction.search().is_beyond() ? Value() : Value::array(std::move(all));
}

/// $1 and ${1} are the group of that number, as far as there is one, $0 is the whole, $$ is a $.
/// False: that is too long.
bool append_replacement(std::string& out, std::string_view replacement, const Search& match) {
  while (out.size() <= kMadeBytesMax) {
    const std::size_t dollar = replacement.find('$');
    out.append(replacement.substr(0, dollar));
    if (dollar == std::string_view::npos) return out.size() <= kMadeBytesMax;
    replacement.remove_prefix(dollar + 1);
    if (replacement.starts_with('$')) {
      out += '$';
      replacement.remove_prefix(1);
      continue;
    }
    const bool is_braced = replacement.starts_with('{');
    std::size_t at = is_braced ? 1 : 0;
    const std::size_t digits = at;
    std::size_t number = 0;
    for (; at < replacement.size() && json::is_digit(replacement[at]); ++at) {
      const std::size_t longer = 10 * number + static_cast<std::size_t>(replacement[at] - '0');
      if (longer > match.groups()) break;
      number = longer;
    }
    if (at == digits || (is_braced && !replacement.substr(at).starts_with('}'))) {
      out += '$';
      continue;
    }
    out.append(match.group(number).value_or(""));
    replacement.remove_prefix(is_braced ? at + 1 : at);
  }
  return false;
}

/// (text, pattern, replacement [, modifiers])
template <bool all>
Value regex_replace(Arguments arguments) {
  const Texts texts(arguments, arguments.size());
  if (!texts) return {};
  const Pattern* pattern = find_pattern(texts[1], arguments.size() > 3 ? texts[3] : "", texts[0]);
  if (pattern == nullptr) return {};
  const std::string_view text = texts[0];
  Search search(*pattern, text, arguments.work(), pattern->group_max());
  std::string out;
  std::size_t copied = 0;
  while (search.next()) {
    out.append(text.substr(copied, search.begin() - copied));
    if (!append_replacement(out, texts[2], search)) return {};
    copied = search.end();
    if (!all) break;
  }
  if (search.is_beyond()) return {};
  out.append(text.substr(copied));
  return Value::string(std::move(out));
}

constexpr Function kRegexFunctions[] = {
    {"REGEXEXTRACT", 2, 4, regex_extract},
    {"REGEXEXTRACTALL", 2, 4, regex_extract_all},
    {"REGEXMATCH", 2, 3, regex_match},
    {"REGEXREPLACE", 3, 4, regex_replace<false>},
    {"REGEXREPLACEALL", 3, 4, regex_replace<true>},
};

}  // namespace

std::span<const Function> regex_functions() { return kRegexFunctions; }

}  // namespace orrery::query
