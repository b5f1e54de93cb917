#include "trainer/inference/predict/table_prediction.h"

#include <algorithm>
#include <array>
#include <memory>
#include <sstream>

#include "predict/blob_writer.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/file/memory_file.h"
#include "trainer/base/log/progress.h"
#include "trainer/base/text/text.h"
#include "trainer/inference/predict/blob_source.h"
#include "trainer/inference/predict/classifier.h"
#include "trainer/storage/csv.h"

namespace trainer {
namespace {

std::string CsvLine(const std::vector<std::string>& fields, char separator) {
  std::string line;
  for (size_t i = 0; i < fields.size(); ++i) {
    if (i > 0) line += separator;
    line += QuoteCsvField(fields[i], separator);
  }
  return line + "\n";
}

// Receives the answers of a batch of rows.
class AnswerSink {
 public:
  virtual ~AnswerSink() = default;
  virtual void Add(std::span<const TableRow> rows, std::span<const float> values) = 0;
  virtual void Finish() = 0;
};

// Writes answers as CSV to a stream.
class CsvAnswers final : public AnswerSink {
 public:
  using Print = std::function<void(const std::string&)>;
  CsvAnswers(const TableAnswers& answers, const TableReader& reader, char separator, Print print)
      : answers_(answers), separator_(separator), print_(std::move(print)) {
    std::vector<std::string> names = reader.ignored_names();
    counts_ = names.empty();
    if (counts_) names.emplace_back("row");
    for (std::string& name : answers.Names()) names.push_back(std::move(name));
    print_(CsvLine(names, separator_));
  }

  void Add(std::span<const TableRow> rows, std::span<const float> values) override {
    const size_t width = values.size() / rows.size();
    std::string text;
    for (size_t i = 0; i < rows.size(); ++i) {
      std::vector<std::string> fields = rows[i].ignored;
      if (counts_) fields.push_back(Join(++row_));
      for (std::string& field : answers_.Text(values.subspan(i * width, width))) {
        fields.push_back(std::move(field));
      }
      text += CsvLine(fields, separator_);
    }
    print_(text);
  }
  void Finish() override {}

 private:
  const TableAnswers& answers_;
  char separator_;
  Print print_;
  bool counts_ = false;
  int64_t row_ = 0;
};

// Writes answers as CSV to a file.
class CsvFileAnswers final : public AnswerSink {
 public:
  CsvFileAnswers(const std::string& path, const TableAnswers& answers, const TableReader& reader,
                 char separator)
      : file_(path), csv_(answers, reader, separator, [this](const std::string& text) {
          file_.Append(text.data(), text.size());
        }) {}

  void Add(std::span<const TableRow> rows, std::span<const float> values) override {
    csv_.Add(rows, values);
  }
  void Finish() override { file_.Commit(); }

 private:
  AtomicFile file_;
  CsvAnswers csv_;
};

// Writes answers as an array with the blob's name.
class ArrayAnswers final : public AnswerSink {
 public:
  ArrayAnswers(const std::string& path, const std::string& blob, bool replace)
      : writer_(MakeBlobWriter("HDF5", {blob}, {path}, replace)) {}

  void Add(std::span<const TableRow> rows, std::span<const float> values) override {
    const auto count = static_cast<int64_t>(rows.size());
    const int64_t dims[] = {count, static_cast<int64_t>(values.size()) / count};
    writer_->Add(0, dims, values);
  }
  void Finish() override { writer_->Finish(); }

 private:
  std::unique_ptr<BlobWriter> writer_;
};

// Returns the output called `name`. If `name` is "", the net must have one output, which is
// returned. Throws kUsage if no output fits, and kConfig unless the output has `items` rows.
NetOutput ChooseTableOutput(const Net& net, const std::string& name, int64_t items) {
  std::vector<std::string> names;
  for (const NetOutput& output : net.outputs()) {
    names.push_back(output.name);
    if (name.empty() ? net.outputs().size() > 1 : name != output.name) continue;
    if (output.value.shape.Rank() > 0 && output.value.shape[0] == items) return output;
    throw Error(ErrorCode::kConfig,
                Join("output '", EscapeControl(output.name), "' has the shape ",
                     output.value.shape.ToString(), "; it must have one row for each of the ",
                     items, " rows of a batch"));
  }
  throw Error(
      ErrorCode::kUsage,
      EscapeControl(Join(name.empty() ? "the net has several outputs; choose one with --output."
                                      : Join("--output: the net has no output '", name, "'.",
                                             DidYouMean(name, names)),
                         " It has ", JoinList(names))));
}

std::unique_ptr<AnswerSink> OpenAnswers(const TablePredictionOptions& options,
                                        const TableAnswers& answers, const TableReader& reader,
                                        const TableFormat& format, const std::string& blob,
                                        const CsvAnswers::Print& print) {
  const auto ends_with = [&](const char* ending) { return options.out.ends_with(ending); };
  // Avoids blanks as a separator, because names of classes may contain them.
  const char separator = ends_with(".tsv")         ? '\t'
                         : format.separator == ' ' ? ','
                                                   : format.separator;
  if (options.out.empty()) {
    return std::make_unique<CsvAnswers>(answers, reader, separator, print);
  }
  constexpr std::array kArrayEndings = {".npz", ".npy", ".h5", ".hdf5"};
  if (std::ranges::any_of(kArrayEndings, ends_with)) {
    return std::make_unique<ArrayAnswers>(options.out, blob, options.replace);
  }
  if (!ends_with(".csv") && !ends_with(".tsv")) {
    throw Error(ErrorCode::kUsage,
                Join("--out=", EscapeControl(options.out),
                     ": answers about a table go to a .csv, .tsv, .npz, .npy or .h5 file"));
  }
  RefuseToReplace(options.out, options.replace);
  return std::make_unique<CsvFileAnswers>(options.out, answers, reader, separator);
}

}  // namespace

std::string ResolveLike(const std::string& like, const NetSpec& net) {
  if (!like.empty() || net.text == nullptr) return like;
  std::istringstream lines(net.text->content);
  const std::string begin = Join("# ", kTableComment);
  for (std::string line; std::getline(lines, line) && line.starts_with('#');) {
    line.erase(line.find_last_not_of(" \t\r") + 1);
    if (!line.starts_with(begin)) continue;
    const std::string set = line.substr(begin.size());
    const std::string neighbour = JoinPath(FolderOf(net.file), set);
    const bool is_neighbour = IsMemoryFile(TableFormatPath(neighbour)) ||
                              (!Exists(TableFormatPath(set)) && Exists(TableFormatPath(neighbour)));
    return is_neighbour ? neighbour : set;
  }
  return "";
}

TableAnswers::TableAnswers(const TableFormat& format, const std::string& output, int64_t width)
    : labels_(format.labels), width_(static_cast<size_t>(width)) {
  const bool is_one = labels_.size() == 1;
  const size_t categories = is_one ? labels_[0].categories.size() : 0;
  // A sigmoid separates two classes by one number.
  are_classes_ = is_one && (width > 1 || categories == 2);
  const bool fits = are_classes_ ? !labels_[0].is_categorical || width_ == categories || width_ == 1
                                 : labels_.size() == width_;
  if (fits) return;
  const size_t wanted = categories > 0 ? categories : labels_.size();
  throw Error(ErrorCode::kConfig, Join("output '", EscapeControl(output), "' has ", width,
                                       " numbers for each row, but ", "the table has ", wanted,
                                       categories > 0 ? " classes" : " labels",
                                       "; choose another output with --output"));
}

std::string TableAnswers::ClassName(size_t index) const {
  return labels_[0].is_categorical ? labels_[0].categories[index] : Join(index);
}

std::vector<std::string> TableAnswers::Names() const {
  std::vector<std::string> names;
  for (const TableColumn& column : labels_) names.push_back(column.name);
  if (!are_classes_) return names;
  for (size_t i = 0; i < width_; ++i) {
    names.push_back(Join(names[0], "=", ClassName(width_ == 1 ? 1 : i)));
  }
  return names;
}

void TableAnswers::ScaleBack(std::span<float> row) const {
  for (size_t i = 0; !are_classes_ && i < row.size(); ++i) {
    const TableColumn& column = labels_[i];
    row[i] = static_cast<float>(row[i] / column.multiply + column.subtract);
  }
}

std::vector<std::string> TableAnswers::Text(std::span<const float> row) const {
  std::vector<std::string> fields;
  if (are_classes_) {
    const size_t best =
        width_ == 1 ? (row[0] > 0.5f ? 1 : 0) : TopClasses({row.begin(), row.end()}, 1).front();
    fields.push_back(ClassName(best));
  }
  for (const float value : row) fields.push_back(ShortestText(value));
  return fields;
}

TablePredictionResult PredictTable(InferenceNet& inference, const TablePredictionOptions& options,
                                   const std::function<void(const std::string&)>& print) {
  Net& net = inference.net();
  const TableFormat format = ReadTableFormat(options.like);
  const std::vector<InputBlob> inputs_of_net = InputBlobs(net);
  if (inputs_of_net.size() != 1) {
    throw Error(ErrorCode::kConfig, Join("the net has ", inputs_of_net.size(),
                                         " inputs, but a table fills one Input layer with one top; "
                                         "make the net with 'trainer deploy'"));
  }
  const InputBlob& input = inputs_of_net.front();
  const int64_t batch = input.value.shape[0], width = input.value.shape.Count(1);
  if (width != format.InputCount()) {
    throw Error(ErrorCode::kData, {TableFormatPath(options.like)},
                Join("the table has ", format.InputCount(), " inputs, but the net's input '",
                     EscapeControl(input.name), "' has ", width,
                     " numbers for each item; give the set that the net was trained on with "
                     "--like"));
  }
  const NetOutput output = ChooseTableOutput(net, options.output, batch);
  const int64_t answers_width = output.value.Count() / batch;
  const TableAnswers answers(format, output.name, answers_width);
  TableReader reader(options.table, format, {.labels = false, .most_bad = options.most_bad});
  const std::unique_ptr<AnswerSink> sink =
      OpenAnswers(options, answers, reader, format, output.name, print);
  TablePredictionResult result;
  Progress progress("Predicting", "rows", 0);
  std::vector<TableRow> rows;
  std::vector<float> inputs, no_labels, values(static_cast<size_t>(output.value.Count()));
  const auto run = [&] {
    if (rows.empty()) return;
    inputs.resize(static_cast<size_t>(input.value.Count()), 0.0f);
    net.WriteNchw(inputs, input.value);
    net.Forward();
    net.ReadNchw(output.value, values);
    const auto row = static_cast<size_t>(answers_width);
    const std::span<float> used = std::span(values).first(rows.size() * row);
    for (size_t at = 0; at < used.size(); at += row) answers.ScaleBack(used.subspan(at, row));
    sink->Add(rows, used);
    progress.Add(static_cast<int64_t>(rows.size()));
    result.rows += static_cast<int64_t>(rows.size());
    rows.clear();
    inputs.clear();
  };
  for (TableRow row; reader.Next(&row);) {
    reader.Encode(row, &inputs, &no_labels);
    rows.push_back(row);
    if (static_cast<int64_t>(rows.size()) == batch) run();
  }
  run();
  sink->Finish();
  result.skipped = reader.skipped();
  result.bad = reader.bad();
  result.unknown = reader.unknown();
  return result;
}

}  // namespace trainer
