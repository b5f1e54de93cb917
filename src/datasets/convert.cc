#include "trainer/datasets/convert.h"

#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "datum.pb.h"
#include "parallel_map.h"
#include "trainer/base/log/progress.h"
#include "trainer/base/text/text.h"
#include "trainer/storage/record_scan.h"

namespace trainer {
namespace {

struct Passing {
  StoredRecord record;
  size_t index = 0;
};

// The key of record `index` of a file: its number, and what it is called there, without the name of
// a tar file in front.
std::string OrderedKey(const std::string& key, size_t index) {
  const std::string number = NumberedKey(static_cast<int64_t>(index));
  const size_t tar = key.find(".tar/");
  const std::string name = tar == std::string::npos ? key : key.substr(tar + 5);
  return name.starts_with(number) ? name : number + "_" + name;
}

// Each record of the source goes to the set that `writer_of` names for its index.
int64_t PassOn(const std::string& source, const std::string& doing, int threads,
               const std::function<RecordWriter&(size_t)>& writer_of) {
  const std::string kind = DetectFormat(source);
  const bool numbers = kind == "TAR" || kind == "HDF5";
  RecordScan scan(source);
  Progress progress(doing, "records", scan.Count());
  size_t next = 0;
  ParallelMap<Passing> work(
      threads,
      [&](Passing* one) {
        one->index = next;
        if (!scan.Next(&one->record)) return false;
        if (numbers) one->record.key = OrderedKey(one->record.key, next);
        ++next;
        return true;
      },
      [&](Passing* one) { writer_of(one->index).Prepare(&one->record); });
  int64_t records = 0;
  while (const Passing* const one = work.Next()) {
    writer_of(one->index).Put(one->record);
    progress.Add(1, one->record.value.size());
    ++records;
  }
  return records;
}

// The label of each record; the least integer for a record without one.
std::vector<int32_t> LabelsOf(const std::string& source) {
  RecordScan scan(source);
  Progress progress(Join("Reading ", source), "records", scan.Count());
  StoredRecord record;
  caffe::Datum datum;
  std::vector<int32_t> labels;
  while (scan.Next(&record)) {
    const bool labelled = datum.ParseFromString(record.value) && datum.has_label();
    labels.push_back(labelled ? datum.label() : std::numeric_limits<int32_t>::min());
    progress.Add(1, record.value.size());
  }
  return labels;
}

}  // namespace

int64_t ConvertRecords(const std::string& source, const WriteOptions& output, int threads) {
  const std::unique_ptr<RecordWriter> writer = OpenRecordWriter(output);
  const int64_t records = PassOn(source, Join("Writing ", output.path), threads,
                                 [&](size_t) -> RecordWriter& { return *writer; });
  writer->Finish();
  return records;
}

SplitResult SplitRecords(const std::string& source, const WriteOptions& first,
                         const WriteOptions& second, const SplitOptions& options) {
  const std::vector<bool> drawn =
      DrawSplit(LabelsOf(source), options.share, options.stratified, options.seed);
  const std::unique_ptr<RecordWriter> one = OpenRecordWriter(first),
                                      other = OpenRecordWriter(second);
  SplitResult result;
  for (const bool is_second : drawn) ++(is_second ? result.second : result.first);
  PassOn(source, Join("Splitting ", source), options.threads,
         [&](size_t index) -> RecordWriter& { return drawn.at(index) ? *other : *one; });
  one->Finish();
  other->Finish();
  return result;
}

}  // namespace trainer
