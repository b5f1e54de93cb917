#include "trainer/datasets/convert.h"

#include <glog/logging.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <vector>

#include "datum.pb.h"
#include "trainer/base/error/error.h"
#include "trainer/base/log/progress.h"
#include "trainer/base/random/permutation.h"
#include "trainer/base/text/text.h"
#include "trainer/base/thread/parallel_map.h"
#include "trainer/storage/array_file.h"
#include "trainer/storage/record_scan.h"

namespace trainer {
namespace {

struct Passing {
  StoredRecord record;
  size_t index = 0;
};

// The key of record `index` of a file: its number, and its key there without the tar file.
std::string OrderedKey(const std::string& key, size_t index) {
  const std::string number = NumberedKey(static_cast<int64_t>(index));
  const size_t tar = key.find(".tar/");
  const std::string name = tar == std::string::npos ? key : key.substr(tar + 5);
  return name.starts_with(number) ? name : number + "_" + name;
}

// Writes each record of the source, changed by `change`, to the set that `writer_of` names for its
// index.
int64_t PassOn(
    const std::string& source, const std::string& doing, int threads,
    const std::function<RecordWriter&(size_t)>& writer_of,
    const std::function<void(StoredRecord*)>& change = [](StoredRecord*) {}) {
  const std::string kind = DetectFormat(source);
  const bool numbers = kind == "TAR" || kind == "HDF5" || kind == "NUMPY";
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
      [&](Passing* one) {
        change(&one->record);
        writer_of(one->index).Prepare(&one->record);
      });
  int64_t records = 0;
  while (const Passing* const one = work.Next()) {
    writer_of(one->index).Put(one->record);
    progress.Add(1, one->record.value.size());
    ++records;
  }
  return records;
}

// The label of each record; 0 for a record with several, and the least integer without one.
std::vector<int32_t> LabelsOf(const std::string& source) {
  RecordScan scan(source);
  Progress progress(Join("Reading ", source), "records", scan.Count());
  StoredRecord record;
  caffe::Datum datum;
  std::vector<int32_t> labels;
  while (scan.Next(&record)) {
    const bool parsed = datum.ParseFromString(record.value);
    const bool labelled = parsed && (datum.has_label() || datum.labels_size() > 0);
    labels.push_back(labelled ? datum.label() : std::numeric_limits<int32_t>::min());
    progress.Add(1, record.value.size());
  }
  return labels;
}

// Copies elements (rows, channels) to (channels, rows).
template <class T>
std::vector<T> ChannelsFirst(const T* from, size_t rows, size_t channels) {
  std::vector<T> to(rows * channels);
  for (size_t row = 0; row < rows; ++row) {
    for (size_t c = 0; c < channels; ++c) to[c * rows + row] = from[row * channels + c];
  }
  return to;
}

// Changes a record of (height, width, channels), whose shape was read as (C, H, W), to (C, H, W).
void MoveChannelsFirst(const std::string& source, StoredRecord* record) {
  caffe::Datum datum;
  if (!datum.ParseFromString(record->value) || datum.encoded()) {
    throw Error(ErrorCode::kData, {source},
                Join("record ", QuoteKey(record->key),
                     " is an image file, whose channels --channels_last cannot move"));
  }
  const int height = datum.channels(), width = datum.height(), channels = datum.width();
  const auto rows = static_cast<size_t>(height) * static_cast<size_t>(width);
  const auto count = static_cast<size_t>(channels);
  if (datum.data().size() == rows * count) {
    const std::vector<char> moved = ChannelsFirst(datum.data().data(), rows, count);
    datum.mutable_data()->assign(moved.begin(), moved.end());
  } else if (static_cast<size_t>(datum.float_data_size()) == rows * count) {
    const std::vector<float> moved = ChannelsFirst(datum.float_data().data(), rows, count);
    datum.mutable_float_data()->Assign(moved.begin(), moved.end());
  }
  datum.set_channels(channels);
  datum.set_height(height);
  datum.set_width(width);
  datum.SerializeToString(&record->value);
}

// NumPy's images usually have their channels last, which nothing in the file says.
void WarnOfLastChannels(const std::string& source) {
  if (DetectFormat(source) != "NUMPY") return;
  const std::vector<int64_t> dims = OpenArrayFile(source)->Array("data")->dims();
  const bool looks_so = dims.size() == 4 && dims[1] > 4 && dims[2] > 4 &&
                        (dims[3] == 1 || dims[3] == 3 || dims[3] == 4);
  LOG_IF(WARNING, looks_so) << EscapeControl(
      Join(source, ": the images are read as ", dims[1], " channels of ", dims[2], "x", dims[3],
           " pixels; if the channels are the last axis, give --channels_last"));
}

struct Stratum {
  std::vector<size_t> members;
  size_t drawn = 0;
  double rest = 0;  // what rounding down left over
};

// How many of each stratum: together `wanted`.
void DivideShare(size_t wanted, size_t all, std::map<int32_t, Stratum>* strata) {
  std::vector<Stratum*> by_rest;
  size_t given = 0;
  for (auto& [label, stratum] : *strata) {
    const double part = static_cast<double>(wanted) * static_cast<double>(stratum.members.size()) /
                        static_cast<double>(all);
    stratum.drawn = static_cast<size_t>(part);
    stratum.rest = part - static_cast<double>(stratum.drawn);
    given += stratum.drawn;
    by_rest.push_back(&stratum);
  }
  std::ranges::stable_sort(by_rest,
                           [](const Stratum* a, const Stratum* b) { return a->rest > b->rest; });
  for (Stratum* stratum : by_rest) {
    if (given == wanted) return;
    ++stratum->drawn;
    ++given;
  }
}

}  // namespace

int64_t ConvertRecords(const std::string& source, const WriteOptions& output, int threads,
                       bool channels_last) {
  const std::unique_ptr<RecordWriter> writer = OpenRecordWriter(output);
  if (!channels_last) WarnOfLastChannels(source);
  const int64_t records = PassOn(
      source, Join("Writing ", output.path), threads,
      [&](size_t) -> RecordWriter& { return *writer; },
      [&](StoredRecord* record) {
        if (channels_last) MoveChannelsFirst(source, record);
      });
  writer->Finish();
  return records;
}

SplitSize ParseSplit(std::string_view flag, const std::string& text) {
  SplitSize share;
  if (text.empty()) return share;
  const bool percent = text.ends_with('%');
  const char* const end = text.data() + text.size() - (percent ? 1 : 0);
  double number = 0;
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  const bool whole = number == std::floor(number) && number <= 1e15;
  if (error != std::errc() || stop != end || !std::isfinite(number) || number <= 0 ||
      (percent ? number >= 100 : number >= 1 && !whole)) {
    throw Error(ErrorCode::kUsage,
                Join("--", flag, "=", EscapeControl(text),
                     ": give a share, such as 10% or 0.1, or a whole number of records"));
  }
  if (percent || number < 1) {
    share.share = percent ? number / 100 : number;
  } else {
    share.count = static_cast<int64_t>(number);
  }
  return share;
}

std::vector<bool> DrawSplit(std::span<const int32_t> labels, const SplitSize& share,
                            bool stratified, uint64_t seed) {
  const size_t all = labels.size();
  const auto wanted =
      share.share > 0 ? static_cast<size_t>(std::llround(share.share * static_cast<double>(all)))
                      : static_cast<size_t>(share.count);
  if (wanted == 0 || wanted >= all) {
    throw Error(ErrorCode::kUsage,
                Join("a part of ", wanted, " of ", all, " records was requested; it must be 1 to ",
                     all - std::min<size_t>(all, 1)));
  }
  std::map<int32_t, Stratum> strata;
  for (size_t i = 0; i < all; ++i) strata[stratified ? labels[i] : 0].members.push_back(i);
  DivideShare(wanted, all, &strata);
  std::vector<bool> drawn(all);
  std::vector<uint32_t> order;
  for (const auto& [label, stratum] : strata) {
    // A pass for each label, so that one label's choice does not depend on the others.
    Permute({seed, 1}, static_cast<uint32_t>(label), 0, stratum.members.size(), &order);
    for (size_t i = 0; i < stratum.drawn; ++i) drawn[stratum.members[order[i]]] = true;
  }
  return drawn;
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
