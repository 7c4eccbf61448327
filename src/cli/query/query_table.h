// Rows of a query as an aligned table for people.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::cli {

/// Collects rows and lays them out. Columns are the members of the rows, in the order in which they
/// first appear; a row that is no object stands in a column `value`. System properties (_rid,
/// _self, _etag, _attachments, _ts) are left out of rows that are whole documents. Long values are
/// cut, numbers are aligned to the right.
class QueryTable {
 public:
  /// `columns_max`: of a terminal, which lines should fit in; 0: they may be of any length.
  explicit QueryTable(std::size_t columns_max) : columns_max_(columns_max) {}

  /// `row` is JSON text that was checked.
  void add(std::string_view row);
  std::size_t rows() const { return rows_.size(); }
  /// The table, with a head; empty when there are no rows. A table of its own begins after it.
  std::string take();

 private:
  struct Cell {
    std::string text;
    bool is_number = false;
  };
  struct Column {
    std::string name;
    bool is_whole_row = false;  // Its cells are rows that are no objects.
    bool operator==(const Column&) const = default;
  };
  using Row = std::vector<Cell>;  // By column; shorter where the last ones are missing.

  void set(Row& row, const Column& column, Cell cell);
  std::vector<std::size_t> widths() const;

  std::size_t columns_max_;
  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

}  // namespace orrery::cli
