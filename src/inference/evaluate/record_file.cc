#include "evaluate/record_file.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "trainer/base/error/error.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/text/json.h"
#include "trainer/base/text/text.h"
#include "trainer/metrics/predictions.h"
#include "trainer/storage/array_writer.h"

namespace trainer {
namespace {

// One record as the files show it.
struct RecordRow {
  std::span<const float> targets;
  std::vector<float> values;  // probabilities or numbers
  int64_t answer = -1;        // of classes

  RecordRow(const Comparison& comparison, std::span<const float> row_targets,
            std::span<const float> outputs)
      : targets(row_targets), values(outputs.begin(), outputs.end()) {
    if (comparison.kind == TargetKind::kLabels && !comparison.are_probabilities) {
      for (float& value : values) value = static_cast<float>(1 / (1 + std::exp(-double{value})));
    }
    if (comparison.kind != TargetKind::kClasses) return;
    answer = std::ranges::max_element(outputs) - outputs.begin();
    std::vector<double> probabilities(outputs.size());
    ReadProbabilities(outputs, probabilities, comparison.scores);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(probabilities[i]);
  }
};

char ValueLetter(const Comparison& comparison) {
  return comparison.kind == TargetKind::kNumbers ? 'y' : 'p';
}

// Returns the fewest digits that give the same number again; "" for a number that does not count.
std::string NumberField(float value) { return std::isnan(value) ? "" : ShortestText(value); }

class CsvRecordFile final : public RecordFile {
 public:
  CsvRecordFile(const std::string& path, const Comparison& comparison)
      : file_(path), comparison_(comparison) {
    const bool has_classes = comparison.kind == TargetKind::kClasses;
    std::string head = has_classes ? "record,label,answer" : "record";
    for (int64_t i = 0; i < (has_classes ? 0 : comparison.columns); ++i) head += Join(",t", i);
    for (int64_t i = 0; i < comparison.columns; ++i) head += Join(",", ValueLetter(comparison), i);
    head += '\n';
    file_.Append(head.data(), head.size());
  }

  void Add(std::span<const float> targets, std::span<const float> outputs) override {
    const RecordRow row(comparison_, targets, outputs);
    std::string line = std::to_string(record_++);
    for (const float target : row.targets) line += "," + NumberField(target);
    if (row.answer >= 0) line += "," + std::to_string(row.answer);
    for (const float value : row.values) line += "," + NumberField(value);
    line += '\n';
    file_.Append(line.data(), line.size());
  }
  void Finish() override { file_.Commit(); }

 private:
  AtomicFile file_;
  const Comparison comparison_;
  int64_t record_ = 0;
};

Json NumberList(std::span<const float> values) {
  Json list = Json::Array();
  for (const float value : values) list.Push(value);
  return list;
}

class JsonRecordFile final : public RecordFile {
 public:
  JsonRecordFile(const std::string& path, const Comparison& comparison)
      : file_(path), comparison_(comparison) {}

  void Add(std::span<const float> targets, std::span<const float> outputs) override {
    const RecordRow row(comparison_, targets, outputs);
    Json json = Json::Object().Set("record", record_++);
    if (comparison_.kind == TargetKind::kClasses) {
      json.Set("label", std::isnan(targets[0]) ? Json() : Json(static_cast<int64_t>(targets[0])))
          .Set("answer", row.answer);
    } else {
      json.Set("targets", NumberList(targets));
    }
    json.Set(comparison_.kind == TargetKind::kNumbers ? "outputs" : "probabilities",
             NumberList(row.values));
    const std::string line = json.ToLine();
    file_.Append(line.data(), line.size());
  }
  void Finish() override { file_.Commit(); }

 private:
  AtomicFile file_;
  const Comparison comparison_;
  int64_t record_ = 0;
};

class NpzRecordFile final : public RecordFile {
 public:
  NpzRecordFile(const std::string& path, const Comparison& comparison)
      : writer_(OpenArrayWriter(path)), comparison_(comparison) {}

  void Add(std::span<const float> targets, std::span<const float> outputs) override {
    const RecordRow row(comparison_, targets, outputs);
    const bool has_classes = comparison_.kind == TargetKind::kClasses;
    if (has_classes) {
      const float label = std::isnan(targets[0]) ? -1.0f : targets[0];
      const auto answer = static_cast<float>(row.answer);
      writer_->Append("label", kOne, {&label, 1});
      writer_->Append("answer", kOne, {&answer, 1});
    } else {
      writer_->Append("targets", Dims(), targets);
    }
    writer_->Append(comparison_.kind == TargetKind::kNumbers ? "outputs" : "probabilities", Dims(),
                    row.values);
  }
  void Finish() override { writer_->Finish(); }

 private:
  static constexpr int64_t kOne[] = {1};
  std::vector<int64_t> Dims() const { return {1, comparison_.columns}; }

  std::unique_ptr<ArrayWriter> writer_;
  const Comparison comparison_;
};

}  // namespace

void RequireRecordFormat(const std::string& path) {
  for (const char* end : {".csv", ".jsonl", ".npz"}) {
    if (path.ends_with(end)) return;
  }
  throw Error(ErrorCode::kUsage,
              Join("--predictions=", EscapeControl(path),
                   ": the name must end in .csv (a table), .jsonl (a line of JSON per record) or "
                   ".npz (arrays for NumPy)"));
}

std::unique_ptr<RecordFile> OpenRecordFile(const std::string& path, const Comparison& comparison) {
  RequireRecordFormat(path);
  if (path.ends_with(".csv")) return std::make_unique<CsvRecordFile>(path, comparison);
  if (path.ends_with(".jsonl")) return std::make_unique<JsonRecordFile>(path, comparison);
  return std::make_unique<NpzRecordFile>(path, comparison);
}

}  // namespace trainer
