#include "trainer/datasets/from_csv.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "datum.pb.h"
#include "table_statistics.h"
#include "trainer/base/error/error.h"
#include "trainer/base/log/progress.h"
#include "trainer/base/text/text.h"
#include "trainer/datasets/from_images.h"
#include "trainer/storage/datum.h"
#include "trainer/storage/record_writer.h"

namespace trainer {
namespace {

// Opens the set that the rows go to.
std::unique_ptr<RecordWriter> OpenTableSet(WriteOptions output) {
  if (output.path.ends_with(".tar") || output.path.ends_with(".npy")) {
    throw Error(ErrorCode::kUsage,
                Join(output.path,
                     ": rows of numbers go to an HDF5 file (NAME.h5), NumPy's format (NAME.npz) or "
                     "a database"));
  }
  output.are_rows = true;
  return OpenRecordWriter(output);
}

// Adds a record of inputs x 1 x 1. It is as each set stores it, so it needs no Prepare.
void PutRow(int64_t number, std::span<const float> inputs, std::span<const float> labels,
            RecordWriter* writer) {
  caffe::Datum datum = EmptyDatum(static_cast<int>(inputs.size()), 1, 1);
  datum.mutable_float_data()->Add(inputs.begin(), inputs.end());
  SetLabels(labels, &datum);
  writer->Put({NumberedKey(number), datum.SerializeAsString()});
}

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

// Throws kUsage for a name of --`flag` that no column has.
void RequireColumns(const std::vector<std::string>& names, const std::vector<std::string>& wanted,
                    const char* flag, const CsvOptions& options) {
  for (const std::string& name : wanted) {
    if (Contains(names, name)) continue;
    const char* const hint =
        names.size() == 1 ? ". If another character separates columns, give --separator" : "";
    throw Error(ErrorCode::kUsage,
                EscapeControl(Join("--", flag, ": ", options.table, " has no column '", name, "'.",
                                   DidYouMean(name, names), " It has: ", JoinList(names), hint)));
  }
}

// Returns the columns that the options name, without figures.
TableFormat DescribeColumns(const CsvOptions& options) {
  const std::vector<std::string> names =
      ReadTableHeader(options.table, options.separator, options.has_header);
  RequireColumns(names, options.labels, "label", options);
  RequireColumns(names, options.ignored, "ignore", options);
  RequireColumns(names, options.categorical, "categorical", options);
  TableFormat format{.separator = options.separator,
                     .has_header = options.has_header,
                     .missing = options.missing,
                     .inputs = {},
                     .labels = {},
                     .ignored = options.ignored};
  const auto add = [&](const std::string& name, std::vector<TableColumn>* to) {
    TableColumn column;
    column.name = name;
    column.is_categorical = Contains(options.categorical, name);
    to->push_back(std::move(column));
  };
  for (const std::string& name : names) {
    const bool is_label = Contains(options.labels, name);
    if (is_label && Contains(options.ignored, name)) {
      throw Error(ErrorCode::kUsage,
                  Join("column '", EscapeControl(name), "' is in --label and in --ignore"));
    }
    if (!is_label && !Contains(options.ignored, name)) add(name, &format.inputs);
  }
  for (const std::string& name : options.labels) add(name, &format.labels);
  if (format.inputs.empty()) {
    throw Error(ErrorCode::kUsage, Join(options.table,
                                        ": no column is left for the inputs; shorten --label or "
                                        "--ignore"));
  }
  return format;
}

// Calls `use` with each row that is not left out.
void ForEachRow(const CsvOptions& options, TableReader& reader, const std::string& doing,
                const std::function<void(const TableRow&, int64_t index)>& use) {
  Progress progress(Join(doing, " ", options.table), "rows", 0);
  TableRow row;
  for (int64_t index = 0; reader.Next(&row); ++index) {
    use(row, index);
    progress.Add(1);
  }
}

// An integer label with more values, or fewer rows for each of them, is a number and no class.
constexpr size_t kMostClasses = 100, kLeastRowsPerClass = 20;

// Returns for each row whether it is for validation; nothing without validation.
std::vector<bool> DrawValidationRows(const CsvOptions& options, const TableFormat& format) {
  if (options.validation.empty()) return {};
  TableReader reader(options.table, format, {.encodes = false, .most_bad = options.most_bad});
  std::map<std::string, int32_t> classes;  // by name, or by value
  std::vector<int32_t> of_rows;
  const bool is_single = format.labels.size() == 1;
  const bool is_categorical = is_single && format.labels[0].is_categorical;
  bool is_class = is_single;
  ForEachRow(options, reader, "Reading", [&](const TableRow& row, int64_t) {
    const TableCell& label = row.labels[0];
    is_class = is_class && (is_categorical || (classes.size() <= kMostClasses &&
                                               std::floor(label.number) == label.number));
    const std::string name =
        is_categorical ? label.text : ShortestText(static_cast<float>(label.number));
    of_rows.push_back(
        is_class ? classes.emplace(name, static_cast<int32_t>(classes.size())).first->second : 0);
  });
  const bool stratified =
      is_class && (is_categorical || of_rows.size() >= kLeastRowsPerClass * classes.size());
  return DrawSplit(of_rows, options.validation, stratified, options.seed);
}

void RequireRows(const CsvOptions& options, int64_t rows) {
  if (rows > 0) return;
  throw Error(ErrorCode::kData, {options.table},
              "the table has no rows that can be used; write rows below the header");
}

// Returns `columns` with the scales, means and categories of the training rows.
TableFormat MakeTableFormat(const CsvOptions& options, const TableFormat& columns,
                            const std::vector<bool>& is_validation) {
  TableFormat format = columns;
  TableReader reader(options.table, columns, {.encodes = false, .most_bad = options.most_bad});
  TableStatistics statistics(columns);
  int64_t rows = 0;
  ForEachRow(options, reader, "Reading", [&](const TableRow& row, int64_t index) {
    const auto at = static_cast<size_t>(index);
    statistics.Add(row, is_validation.empty() || !is_validation.at(at));
    ++rows;
  });
  RequireRows(options, rows);
  statistics.Apply(options, options.table, &format);
  return format;
}

void CheckCsvOptions(const CsvOptions& options) {
  const auto refuse = [](const std::string& why) { throw Error(ErrorCode::kUsage, why); };
  const bool has_columns = !options.labels.empty() || !options.ignored.empty() ||
                           !options.categorical.empty() || options.scale != TableScale::kNone ||
                           options.scale_labels || options.missing != MissingValue::kRefuse ||
                           !options.validation.empty();
  if (!options.like.empty() && has_columns) {
    refuse(Join("--like takes the columns as ", options.like,
                " has them; leave out --label, --ignore, --categorical, --scale, --scale_labels, "
                "--missing and --val"));
  }
  if (options.like.empty() && options.labels.empty()) {
    refuse(
        "give the column of the labels with --label=NAME, or --like=SET to prepare the table as "
        "another set");
  }
  if (options.scale_labels && options.scale == TableScale::kNone) {
    refuse("--scale_labels needs --scale=minmax or --scale=znorm");
  }
}

}  // namespace

CsvResult WriteCsv(const CsvOptions& options) {
  CheckCsvOptions(options);
  CsvResult result;
  std::vector<bool> is_validation;
  if (options.like.empty()) {
    const TableFormat columns = DescribeColumns(options);
    is_validation = DrawValidationRows(options, columns);
    result.format = MakeTableFormat(options, columns, is_validation);
  } else {
    result.format = ReadTableFormat(options.like);
  }
  if (!is_validation.empty()) {
    result.validation_path = options.validation_path.empty() ? ValidationPath(options.output.path)
                                                             : options.validation_path;
  }
  const std::unique_ptr<RecordWriter> set = OpenTableSet(options.output);
  WriteOptions other = options.output;
  other.path = result.validation_path;
  const std::unique_ptr<RecordWriter> validation =
      is_validation.empty() ? nullptr : OpenTableSet(other);
  TableReader reader(options.table, result.format, {.most_bad = options.most_bad});
  std::vector<float> inputs, labels;
  ForEachRow(options, reader, "Writing", [&](const TableRow& row, int64_t index) {
    inputs.clear();
    labels.clear();
    reader.Encode(row, &inputs, &labels);
    const bool other_set = validation && is_validation.at(static_cast<size_t>(index));
    int64_t& records = other_set ? result.validation_records : result.records;
    PutRow(records++, inputs, labels, other_set ? validation.get() : set.get());
  });
  result.skipped = reader.skipped();
  result.bad = reader.bad();
  result.unknown = reader.unknown();
  RequireRows(options, result.records);
  set->Finish();
  WriteTableFormat(TableFormatPath(options.output.path), result.format);
  if (validation) {
    validation->Finish();
    WriteTableFormat(TableFormatPath(result.validation_path), result.format);
  }
  return result;
}

}  // namespace trainer
