#include "tar/tar_index.h"

#include <algorithm>
#include <map>
#include <optional>

#include "tar/tar_labels.h"
#include "tar/tar_reader.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/lower_case.h"
#include "trainer/base/text/parse_number.h"
#include "trainer/base/text/text.h"
#include "trainer/storage/datum.h"

namespace trainer {
namespace {

constexpr uint64_t kMostLabelBytes = 64;
// JSON and NumPy files that are larger or have more numbers describe the image, not its labels.
constexpr uint64_t kMostLabelsBytes = uint64_t{64} << 10;
constexpr size_t kMostLabels = 4096;
constexpr uint64_t kMostImageBytes = uint64_t{1} << 30;

// "a/b.c/0001.seg.png" is sample "a/b.c/0001", file "seg.png".
std::pair<std::string_view, std::string_view> SplitName(std::string_view name) {
  const size_t slash = name.rfind('/');
  const size_t base = slash == std::string_view::npos ? 0 : slash + 1;
  const size_t dot = name.find('.', base);
  if (dot == std::string_view::npos) return {name, {}};
  return {name.substr(0, dot), name.substr(dot + 1)};
}

bool IsImage(std::string_view extension) {
  const std::string lower = LowerCase(extension);
  for (const char* known : {"jpg", "jpeg", "png", "tif", "tiff", "ppm", "pgm"}) {
    if (lower == known) return true;
  }
  return false;
}

// Returns the label in a .cls file.
std::optional<int32_t> ClassOf(const std::string& text) {
  const std::vector<std::string> words = SplitList(text, '\n');
  return words.size() == 1 ? ParseNumber<int32_t>(words[0]) : std::nullopt;
}

}  // namespace

// A sample as far as its files were read.
struct TarIndex::Pending {
  std::string key;
  std::optional<TarEntry> image;
  std::optional<int32_t> label;                // of the .cls file, which takes precedence
  std::string json_name, json, npy_name, npy;  // its other files of labels
};

TarIndex::TarIndex(const std::string& source, std::vector<std::string> files, uint64_t most,
                   FileOps& ops)
    : files_(std::move(files)), entries_left_(most) {
  std::map<std::string, int> seen;
  for (const std::string& file : files_) {
    const std::string name = FileNameOf(file);
    const int before = seen[name]++;
    shard_keys_.push_back(before == 0 ? name : Join(name, "#", before + 1));
  }
  for (uint32_t shard = 0; shard < files_.size(); ++shard) {
    first_of_shard_.push_back(samples_.size());
    ReadShard(shard, ops);
  }
  first_of_shard_.push_back(samples_.size());
  if (!samples_.empty()) return;
  throw Error(ErrorCode::kData, {source},
              "the tar file has no images: a sample is an image such as 0001.jpg (or .jpeg, .png, "
              ".tif, .tiff, .ppm, .pgm) and its label in 0001.cls");
}

void TarIndex::ReadShard(uint32_t shard, FileOps& ops) {
  const TarShard file(files_[shard], ops);
  TarReader reader(file);
  Pending sample;
  const auto fail = [&](const std::string& what) {
    throw Error(ErrorCode::kData, {file.path()}, what);
  };
  for (TarEntry entry; reader.Next(&entry);) {
    if (entries_left_-- == 0) {
      fail("the tar files have too many entries; make sets with fewer files");
    }
    if (!entry.is_file) continue;
    const auto [key, extension] = SplitName(entry.name);
    if (key != sample.key) {
      Add(sample, shard, fail);
      sample = {std::string(key), {}, {}, "", "", "", ""};
    }
    const bool may_label = !sample.label && entry.bytes <= kMostLabelsBytes;
    if (extension == "cls") {
      if (entry.bytes > kMostLabelBytes)
        fail(Join(EscapeControl(entry.name), " is too large for a label"));
      const std::string text = reader.Content(entry);
      sample.label = ClassOf(text);
      if (!sample.label) {
        fail(Join(EscapeControl(entry.name), " contains '", EscapeControl(text),
                  "'; a label must be one 32-bit integer"));
      }
    } else if (extension == "json" && may_label) {
      sample.json_name = entry.name;
      sample.json = reader.Content(entry);
    } else if (extension == "npy" && may_label) {
      sample.npy_name = entry.name;
      sample.npy = reader.Content(entry);
    } else if (IsImage(extension)) {
      if (sample.image) fail(Join("sample ", EscapeControl(sample.key), " has two images"));
      if (entry.bytes > kMostImageBytes) {
        fail(Join(EscapeControl(entry.name), " has ", entry.bytes, " bytes; an image has at most ",
                  kMostImageBytes));
      }
      sample.image = entry;
    }
  }
  Add(sample, shard, fail);
}

void TarIndex::Add(const Pending& pending, uint32_t shard,
                   const std::function<void(const std::string&)>& fail) {
  if (!pending.image) {
    if (pending.label) fail(Join("sample ", EscapeControl(pending.key), " has no image"));
    return;
  }
  Sample found;
  found.at = pending.image->at;
  found.bytes = static_cast<uint32_t>(pending.image->bytes);
  found.shard = shard;
  found.key_at = names_.size();
  found.key_bytes = static_cast<uint32_t>(pending.key.size()) & 0x3fffffffu;
  AddLabels(pending, fail, &found);
  samples_.push_back(found);
  names_ += pending.key;
  bytes_ += found.bytes;
}

void TarIndex::AddLabels(const Pending& pending,
                         const std::function<void(const std::string&)>& fail, Sample* sample) {
  const std::string& file = files_[sample->shard];
  std::vector<float> numbers;
  if (!pending.label && !pending.json.empty()) {
    numbers = JsonLabels(pending.json, file, pending.json_name);
  }
  if (!pending.label && numbers.empty() && !pending.npy.empty()) {
    numbers = NpyLabels(pending.npy, file, pending.npy_name);
  }
  if (numbers.size() > kMostLabels) numbers.clear();
  const size_t count = pending.label ? 1 : numbers.size();
  if (count == 0) return;
  if (label_count_ == 0) label_count_ = count;
  if (count != label_count_) {
    fail(Join("sample ", EscapeControl(pending.key), " has ", Counted(count, "label"),
              ", but samples before it have ", Counted(label_count_, "label"),
              "; all samples must have the same number of labels"));
  }
  std::optional<int32_t> label = pending.label;
  if (numbers.size() == 1) label = IntegerLabel(numbers[0]);
  sample->has_label = label.has_value();
  sample->has_labels = !label.has_value();
  sample->label = label.value_or(static_cast<int32_t>(labels_.size() / label_count_));
  if (!label) labels_.insert(labels_.end(), numbers.begin(), numbers.end());
}

std::span<const float> TarIndex::LabelsOf(const Sample& sample) const {
  if (!sample.has_labels) return {};
  return std::span(labels_).subspan(static_cast<size_t>(sample.label) * label_count_, label_count_);
}

std::string TarIndex::KeyOf(size_t i) const {
  const Sample& sample = samples_[i];
  return Join(shard_keys_[sample.shard], "/", NameOf(sample));
}

size_t TarIndex::Find(std::string_view key) const {
  const size_t slash = key.find('/');
  if (slash == std::string_view::npos) return count();
  const std::string_view name = key.substr(slash + 1);
  const auto shard = std::ranges::find(shard_keys_, key.substr(0, slash)) - shard_keys_.begin();
  if (shard == static_cast<std::ptrdiff_t>(shard_keys_.size())) return count();
  const size_t first = first_of_shard_[static_cast<size_t>(shard)];
  const size_t end = first_of_shard_[static_cast<size_t>(shard) + 1];
  for (size_t i = first; i < end; ++i) {
    if (NameOf(samples_[i]) == name) return i;
  }
  return count();
}

}  // namespace trainer
