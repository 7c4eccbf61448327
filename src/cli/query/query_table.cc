#include "cli/query/query_table.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "cli/terminal/terminal_text.h"
#include "json/value.h"

namespace orrery::cli {
namespace {

/// Of one value. Narrower where the terminal is.
constexpr std::size_t kCellColumnsMax = 60;
constexpr std::size_t kCellColumnsMin = 8;
constexpr std::string_view kGap = "  ";

constexpr std::array<std::string_view, 5> kOfTheServer = {"_rid", "_self", "_etag", "_attachments",
                                                          "_ts"};

bool is_whole_document(const json::Value& row) {
  return std::ranges::all_of(std::array{"_rid", "_self", "_etag"},
                             [&](const char* name) { return row.member(name).is_string(); });
}

std::string shown(const json::Value& value) {
  std::string text;
  if (value.is_string()) {
    std::string buffer;
    text = value.as_string(buffer);
  } else {
    value.append_to(text);
  }
  text = cut_to(text, kCellColumnsMax);
  defuse(text);
  return text;
}

void append_padded(std::string& line, std::string_view text, std::size_t width, bool to_the_right) {
  const std::size_t columns = columns_of(text);
  const std::string blanks(width > columns ? width - columns : 0, ' ');
  line.append(to_the_right ? blanks : text).append(to_the_right ? text : blanks);
}

void append_line(std::string& out, std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  out += line + "\n";
}

}  // namespace

void QueryTable::set(Row& row, const Column& column, Cell cell) {
  const auto found = std::ranges::find(columns_, column);
  const auto index = static_cast<std::size_t>(found - columns_.begin());
  if (found == columns_.end()) columns_.push_back(column);
  if (row.size() <= index) row.resize(index + 1);
  row[index] = std::move(cell);
}

void QueryTable::add(std::string_view text) {
  const json::Value value = json::Value::of_checked(text);
  Row row;
  if (!value.is_object()) {
    set(row, {"value", true}, {shown(value), value.is_number()});
  } else {
    const bool is_document = is_whole_document(value);
    std::string buffer;
    for (json::Reader reader(value); reader.next();) {
      const json::Value name = reader.name();
      std::string member(name.as_string(buffer));
      if (is_document && std::ranges::find(kOfTheServer, member) != kOfTheServer.end()) continue;
      const json::Value each = reader.value();
      defuse(member);
      set(row, {std::move(member), false}, {shown(each), each.is_number()});
    }
  }
  rows_.push_back(std::move(row));
}

std::vector<std::size_t> QueryTable::widths() const {
  std::vector<std::size_t> widths;
  widths.reserve(columns_.size());
  for (const Column& column : columns_) {
    widths.push_back(std::min(columns_of(column.name), kCellColumnsMax));
  }
  for (const Row& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], columns_of(row[i].text));
    }
  }
  if (columns_max_ == 0 || widths.empty()) return widths;
  // The widest give way first. Where even narrow ones do not fit, lines are longer than a terminal.
  const std::size_t gaps = kGap.size() * (widths.size() - 1);
  for (std::size_t cap = kCellColumnsMax; cap >= kCellColumnsMin; --cap) {
    for (std::size_t& width : widths) width = std::min(width, cap);
    if (std::accumulate(widths.begin(), widths.end(), gaps) <= columns_max_) break;
  }
  return widths;
}

std::string QueryTable::take() {
  std::string out;
  const auto widths = this->widths();
  const auto append_row = [&](const auto& cell_at) {
    std::string line;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (i > 0) line += kGap;
      const auto [text, is_number] = cell_at(i);
      append_padded(line, cut_to(text, widths[i]), widths[i], is_number);
    }
    append_line(out, std::move(line));
  };
  using Shown = std::pair<std::string_view, bool>;
  if (!columns_.empty()) {
    // A column of nothing but numbers has its name above them.
    std::vector<bool> is_of_numbers(columns_.size(), true);
    for (const Row& row : rows_) {
      for (std::size_t i = 0; i < row.size(); ++i) {
        if (!row[i].is_number && !row[i].text.empty()) is_of_numbers[i] = false;
      }
    }
    append_row([&](std::size_t i) { return Shown{columns_[i].name, is_of_numbers[i]}; });
    std::vector<std::string> rules;
    rules.reserve(widths.size());
    for (const std::size_t width : widths) rules.emplace_back(width, '-');
    append_row([&](std::size_t i) { return Shown{rules[i], false}; });
  }
  for (const Row& row : rows_) {
    append_row([&](std::size_t i) {
      return i < row.size() ? Shown{row[i].text, row[i].is_number} : Shown{};
    });
  }
  columns_.clear();
  rows_.clear();
  return out;
}

}  // namespace orrery::cli
