#include "trainer/datasets/verify.h"

#include <unordered_map>
#include <unordered_set>

#include "datum.pb.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/log/progress.h"
#include "trainer/base/text/text.h"
#include "trainer/base/thread/parallel_map.h"
#include "trainer/storage/checksums.h"
#include "trainer/storage/cursor.h"
#include "trainer/storage/datum.h"
#include "trainer/storage/record_scan.h"

namespace trainer {
namespace {

constexpr size_t kSameKept = 5;
constexpr size_t kShapesPrinted = 20;
constexpr size_t kMostCompared = 5000000;  // records whose content is remembered: about 500 MB

// A record, and what a thread found out about it.
struct Examined {
  StoredRecord record;
  DatumParser parser{ColorMode::kAsStored};
  std::string problem;  // "" where it can be used
  std::string shape;
  int height = 0, width = 0;
  int32_t label = 0;
  bool has_label = false, encoded = false;
  size_t labels = 0;  // several, or one that is not an integer
  uint32_t checksum = 0;
  size_t hash = 0;  // of the value
};

void Examine(const std::string& path, Examined* one) {
  one->problem.clear();
  one->checksum = RecordCrc(one->record.key, one->record.value);
  one->hash = std::hash<std::string>()(one->record.value);
  try {
    const DatumView& datum = one->parser.Parse(path, one->record.key, one->record.value);
    one->shape = Join(datum.ShapeText(), datum.bytes.empty() ? " floats" : " bytes");
    one->height = datum.height;
    one->width = datum.width;
    one->label = datum.label;
    one->has_label = datum.has_label;
    one->labels = datum.labels.size();
    // For raw pixels the view points into the record, for an image file into the decoded image.
    const char* const begin = one->record.value.data();
    one->encoded = !datum.bytes.empty() && (datum.bytes.data() < begin ||
                                            datum.bytes.data() >= begin + one->record.value.size());
  } catch (const Error& error) {
    one->problem = error.what();
  }
}

class Report {
 public:
  Report(const std::string& path, const VerifyOptions& options)
      : path_(path), options_(options), checksum_path_(ChecksumPath(path)) {
    report_.kind = DetectFormat(path);
    compares_ = !options.write_crc && Exists(checksum_path_);
    if (compares_) wanted_ = ReadChecksums(checksum_path_);
  }

  void Add(const Examined& one) {
    const std::string& key = one.record.key;
    if (report_.records++ == 0) report_.first_key = key;
    report_.last_key = key;
    report_.bytes += one.record.value.size();
    if (!keys_.insert(std::hash<std::string>()(key)).second) ++report_.repeated_keys;
    CompareContent(one);
    if (options_.write_crc) checksums_.push_back(one.checksum);
    if (!one.problem.empty()) return AddBad(one.problem);
    const auto index = static_cast<size_t>(report_.records) - 1;
    if (compares_ && index < wanted_.size() && one.checksum != wanted_[index]) {
      return AddBad(Join(path_, ": record ", QuoteKey(key),
                         " differs from its checksum: the record was changed or damaged after the "
                         "checksum was written"));
    }
    ++report_.shapes[one.shape];
    ++report_.heights[one.height];
    ++report_.widths[one.width];
    report_.encoded += one.encoded;
    if (one.labels > 0) {
      ++report_.label_counts[one.labels];
    } else {
      one.has_label ? ++report_.labels[one.label] : ++report_.unlabelled;
    }
  }

  VerifyReport Finish() {
    const auto count = static_cast<size_t>(report_.records);
    if (compares_ && count != wanted_.size()) {
      AddBad(Join(path_, ": has ", count, " records, but ", checksum_path_, " has checksums of ",
                  wanted_.size()));
    }
    if (compares_) report_.checksums = Join("compared with ", checksum_path_);
    if (options_.write_crc && report_.bad == 0) {
      WriteChecksums(checksum_path_, checksums_);
      report_.checksums = Join("written to ", checksum_path_);
    }
    return std::move(report_);
  }

 private:
  void AddBad(const std::string& problem) {
    ++report_.bad;
    if (report_.errors.size() < options_.errors) report_.errors.push_back(problem);
  }

  void CompareContent(const Examined& one) {
    const auto first = contents_.find(one.hash);
    if (first == contents_.end()) {
      if (contents_.size() < kMostCompared) contents_.emplace(one.hash, one.record.key);
      return;
    }
    ++report_.same;
    if (report_.same_keys.size() < kSameKept) {
      report_.same_keys.push_back(
          Join(QuoteKey(one.record.key), " is ", QuoteKey(first->second), " again"));
    }
  }

  const std::string& path_;
  const VerifyOptions& options_;
  std::string checksum_path_;
  bool compares_ = false;
  std::vector<uint32_t> wanted_, checksums_;
  std::unordered_set<size_t> keys_;                   // by their hashes
  std::unordered_map<size_t, std::string> contents_;  // hash of a value -> the first record with it
  VerifyReport report_;
};

// "28", or "20 to 500, half of them up to 333"
std::string Spread(const std::map<int, int64_t>& counts, int64_t all) {
  const int least = counts.begin()->first, most = counts.rbegin()->first;
  if (least == most) return Join(least);
  int64_t passed = 0;
  auto middle = counts.begin();
  while ((passed += middle->second) * 2 < all) ++middle;
  return Join(least, " to ", most, ", half of them up to ", middle->first);
}

}  // namespace

VerifyReport VerifyRecords(const std::string& path, const VerifyOptions& options) {
  RecordScan scan(path);
  Report report(path, options);
  Progress progress(Join("Checking ", path), "records", scan.Count());
  ParallelMap<Examined> work(
      options.threads, [&](Examined* one) { return scan.Next(&one->record); },
      [&](Examined* one) { Examine(path, one); });
  while (const Examined* const one = work.Next()) {
    report.Add(*one);
    progress.Add(1, one->record.value.size());
  }
  return report.Finish();
}

void Print(const VerifyReport& report, std::ostream& out) {
  out << "kind: " << report.kind << "\nrecords: " << report.records << "\nbytes: " << report.bytes
      << "\nfirst key: " << EscapeControl(report.first_key)
      << "\nlast key: " << EscapeControl(report.last_key) << "\n";
  const int64_t good = report.records - report.bad;
  if (report.shapes.size() <= kShapesPrinted) {
    for (const auto& [shape, count] : report.shapes)
      out << "shape: " << shape << ", " << count << "\n";
  } else {
    out << "shapes: " << report.shapes.size() << "\nheight: " << Spread(report.heights, good)
        << "\nwidth: " << Spread(report.widths, good) << "\n";
  }
  if (report.encoded > 0) out << "picture files: " << report.encoded << "\n";
  for (const auto& [label, count] : report.labels)
    out << "label: " << label << ", " << count << "\n";
  for (const auto& [labels, count] : report.label_counts)
    out << "labels per record: " << labels << ", " << count << "\n";
  if (report.unlabelled > 0) out << "without label: " << report.unlabelled << "\n";
  if (report.repeated_keys > 0) out << "duplicate keys: " << report.repeated_keys << "\n";
  if (report.same > 0) out << "records with duplicate content: " << report.same << "\n";
  for (const std::string& key : report.same_keys) out << "  " << key << "\n";
  if (!report.checksums.empty()) out << "checksums: " << report.checksums << "\n";
  out << "unusable: " << report.bad << "\n";
  for (const std::string& error : report.errors) out << "  " << error << "\n";
  const auto named = static_cast<int64_t>(report.errors.size());
  if (report.bad > named && named > 0) out << "  and " << report.bad - named << " more\n";
}

}  // namespace trainer
