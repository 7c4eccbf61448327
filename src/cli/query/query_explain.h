// How the rows of a query were found, in plain words.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::cli {

/// Adds up what the server says of each page of a query:
///
///   {"shape":"stream","ranges":[{"id":"0","way":"index","indexes":["/a"],"documentsRead":12,
///    "entriesRead":40,"rows":7}],"helpful":["/b","/a ASC,/b DESC"],"potential":["/c"],
///    "building":["/a"],"rangesLeftOut":3}
///
/// percent-encoded, and how long it took.
class QueryExplanation {
 public:
  /// The headers x-orrery-explain and x-ms-documentdb-query-metrics of a page; empty when there is
  /// none. `rows` is how many of its rows were shown. Malformed parts are skipped.
  void add_page(std::string_view explain_header, std::string_view metrics_header,
                std::uint64_t rows);

  /// Several lines.
  std::string to_words() const;

 private:
  /// Ranges that were read alike.
  struct Group {
    std::string way;
    std::vector<std::string> indexes;
    std::vector<std::string> ranges;
    std::uint64_t documents_read = 0;
    std::uint64_t entries_read = 0;
    std::uint64_t rows = 0;
  };

  void add_explanation(std::string_view json, std::uint64_t rows_shown);
  void add_metrics(std::string_view text);
  std::string words_of(const Group& group) const;
  std::string words_of_order() const;
  std::string words_of_advice() const;
  std::string words_of_time() const;
  bool has_way(std::string_view way) const;

  bool is_explained_ = false;
  std::uint64_t pages_ = 0;
  std::string shape_;
  std::vector<Group> groups_;
  std::vector<std::string> ranges_;  // Ids, each once.
  std::vector<std::string> helpful_;
  std::vector<std::string> potential_;  // Helpful, if the policy listed them.
  std::vector<std::string> building_;
  std::uint64_t ranges_left_out_ = 0;  // Of which the server had no room to tell.
  std::map<std::string, double, std::less<>> metrics_;
};

}  // namespace orrery::cli
