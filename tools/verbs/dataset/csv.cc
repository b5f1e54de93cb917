#include <algorithm>
#include <cmath>
#include <iostream>

#include "dataset_verb.h"
#include "trainer/base/text/table.h"
#include "trainer/base/text/text.h"
#include "trainer/datasets/from_csv.h"
#include "trainer/input/bad_records.h"
#include "trainer/run/input_options.h"

namespace trainer {
namespace {

// Makes a set from a table in CSV.
class Csv final : public DatasetVerb {
 public:
  Csv() : DatasetVerb(2, 2) {}

 private:
  void DeclareTask(FlagSet& flags) override {
    flags.BindList(&options_.labels, "label", "COLUMNS", "the columns of the labels");
    flags.BindList(&options_.ignored, "ignore", "COLUMNS", "columns that are left out");
    flags.BindList(&options_.categorical, "categorical", "COLUMNS",
                   "columns of categories, such as colours: an input per category, or a class for "
                   "each category of a label");
    flags.BindChoice(&options_.scale, "scale", "none|minmax|znorm",
                     {{"none", TableScale::kNone},
                      {"minmax", TableScale::kMinMax},
                      {"znorm", TableScale::kZNorm}},
                     "scale each input column: to 0 to 1 (minmax), or to mean 0 and standard "
                     "deviation 1 (znorm)");
    flags.Bind(&options_.scale_labels, "scale_labels", "",
               "scale label columns as well; 'trainer predict' scales its answers back");
    flags.BindChoice(&options_.missing, "missing", "refuse|mean|zero|skip",
                     {{"refuse", MissingValue::kRefuse},
                      {"mean", MissingValue::kMean},
                      {"zero", MissingValue::kZero},
                      {"skip", MissingValue::kSkip}},
                     "what to do with an empty field: end with an error (refuse), use the column's "
                     "mean or 0, or leave the row out (skip)");
    flags.Bind(&options_.like, "like", "SET",
               "prepare the columns as those of SET, which an earlier call made: for test data");
    flags.Bind(&separator_, "separator", "CHARACTER",
               "what separates columns: a character, tab or space");
    flags.Bind(&options_.has_header, "header", "",
               "the first line names the columns; with --noheader the columns are named 1, 2, 3, "
               "...");
    flags.Bind(&validation_, "val", "PART",
               "put this part of the rows into a second set: 10%, 0.1, or 500 rows");
    flags.Bind(&options_.validation_path, "val_out", "PATH", "path of the second set");
    DeclareSeed(flags, &seed_, "seed of the choice for --val");
    flags.Bind(&bad_records_, "bad_records", "WHAT",
               "what to do with a row that cannot be used: end with an error (stop), or log and "
               "leave out up to N rows (skip=N)");
    DeclareBackend(flags);
    DeclareWriteCrc(flags);
  }

  std::vector<std::string> OutputFiles() const override {
    if (options_.validation_path.empty()) return {};
    return {options_.validation_path};
  }

  void RunTask() override {
    options_.table = words()[0];
    options_.output = OutputAt(words()[1]);
    options_.separator = ParseSeparator(separator_);
    options_.validation = ParseSplit("val", validation_);
    options_.seed = static_cast<uint64_t>(seed_);
    ApplyBadRecords(bad_records_);
    options_.most_bad = std::max(MaxBadRecords(), 0);
    const CsvResult result = WriteCsv(options_);
    Print(result);
    WriteChecksums(options_.output.path);
    if (!result.validation_path.empty()) WriteChecksums(result.validation_path);
  }

  void Print(const CsvResult& result) const {
    std::cout << options_.output.path << ": " << Counted(result.records, "record") << " of "
              << Counted(result.format.InputCount(), "input") << " and "
              << Counted(result.format.labels.size(), "label") << "\n";
    if (!result.validation_path.empty()) {
      std::cout << result.validation_path << ": " << Counted(result.validation_records, "record")
                << "\n";
    }
    std::cout << "columns: " << TableFormatPath(options_.output.path) << "\n";
    if (result.skipped > 0) {
      std::cout << "left out: " << Counted(result.skipped, "row") << " with empty fields\n";
    }
    if (result.bad > 0) std::cout << "left out: " << Counted(result.bad, "bad row") << "\n";
    for (const UnknownCategories& one : result.unknown) {
      const std::string why = options_.like.empty() ? "only validation rows have"
                                                    : Join(options_.like, " does not have");
      std::cout << EscapeControl(Join("column '", one.column, "': ", Counted(one.rows, "row"),
                                      " with a category that ", why, ", first '", one.first,
                                      "' in line ", one.first_line, "; all its inputs are 0"))
                << "\n";
    }
    std::cout << Columns(result.format).ToString();
  }

  // Returns a table of the columns and how each is stored.
  static Table Columns(const TableFormat& format) {
    Table table({"column", "is", "stored as"});
    int64_t input = 0;
    for (const TableColumn& column : format.inputs) {
      const int64_t width =
          column.is_categorical ? static_cast<int64_t>(column.categories.size()) : 1;
      table.Add(
          {EscapeControl(column.name),
           width == 1 ? Join("input ", input) : Join("inputs ", input, "-", input + width - 1),
           StoredAs(column)});
      input += width;
    }
    for (size_t i = 0; i < format.labels.size(); ++i) {
      const TableColumn& column = format.labels[i];
      table.Add({EscapeControl(column.name),
                 format.labels.size() == 1 ? "label" : Join("label ", i), StoredAs(column)});
    }
    return table;
  }

  static std::string StoredAs(const TableColumn& column) {
    if (!column.is_categorical) {
      if (column.subtract == 0 && column.multiply == 1) return "x";
      return Join("(x ", column.subtract < 0 ? "+ " : "- ", std::abs(column.subtract), ") * ",
                  column.multiply);
    }
    constexpr size_t kMostShown = 6;
    std::vector<std::string> shown = column.categories;
    if (shown.size() > kMostShown) {
      shown.resize(kMostShown);
      shown.push_back("...");
    }
    return EscapeControl(JoinList(shown));
  }

  CsvOptions options_;
  std::string separator_ = ",", validation_, bad_records_ = "stop";
  int seed_ = 1;
};

const RegisterVerb<Csv> kCsv("dataset csv");

}  // namespace
}  // namespace trainer
