#include "tar/tar_index.h"

#include <algorithm>
#include <map>
#include <optional>

#include "tar/tar_reader.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/lower_case.h"
#include "trainer/base/text/parse_number.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr uint64_t kMostLabelBytes = 64;
constexpr uint64_t kMostImageBytes = uint64_t{1} << 30;

// A sample as far as its files came by.
struct Pending {
  std::string key;
  std::optional<TarEntry> image;
  std::optional<int32_t> label;
};

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
  for (const char* known : {"jpg", "jpeg", "png", "ppm", "pgm"}) {
    if (lower == known) return true;
  }
  return false;
}

}  // namespace

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
              ".ppm, .pgm) and its label in 0001.cls");
}

void TarIndex::ReadShard(uint32_t shard, FileOps& ops) {
  const TarShard file(files_[shard], ops);
  TarReader reader(file);
  Pending sample;
  const auto fail = [&](const std::string& what) {
    throw Error(ErrorCode::kData, {file.path()}, what);
  };
  const auto finish = [&] {
    if (!sample.image) {
      if (sample.label) fail(Join("sample ", EscapeControl(sample.key), " has no image"));
      return;
    }
    Sample& found = samples_.emplace_back();
    found.at = sample.image->at;
    found.bytes = static_cast<uint32_t>(sample.image->bytes);
    found.label = sample.label.value_or(0);
    found.has_label = sample.label.has_value();
    found.shard = shard;
    found.key_at = names_.size();
    found.key_bytes = static_cast<uint32_t>(sample.key.size()) & 0x7fffffffu;
    names_ += sample.key;
    bytes_ += found.bytes;
  };
  for (TarEntry entry; reader.Next(&entry);) {
    if (entries_left_-- == 0) {
      fail("the tar files have too many entries; make sets with fewer files");
    }
    if (!entry.is_file) continue;
    const auto [key, extension] = SplitName(entry.name);
    if (key != sample.key) {
      finish();
      sample = {std::string(key), {}, {}};
    }
    if (extension == "cls") {
      if (entry.bytes > kMostLabelBytes)
        fail(Join(EscapeControl(entry.name), " is too large for a label"));
      const std::string text = reader.Content(entry);
      const std::vector<std::string> words = SplitList(text, '\n');
      sample.label = words.size() == 1 ? ParseNumber<int32_t>(words[0]) : std::nullopt;
      if (!sample.label) {
        fail(Join(EscapeControl(entry.name), " contains '", EscapeControl(text),
                  "'; a label must be one 32-bit integer"));
      }
    } else if (IsImage(extension)) {
      if (sample.image) fail(Join("sample ", EscapeControl(sample.key), " has two images"));
      if (entry.bytes > kMostImageBytes) {
        fail(Join(EscapeControl(entry.name), " has ", entry.bytes, " bytes; an image has at most ",
                  kMostImageBytes));
      }
      sample.image = entry;
    }
  }
  finish();
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
