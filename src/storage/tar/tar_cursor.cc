// Reads images and labels from tar files, in the order of the files.

#include "tar/tar_cursor.h"

#include <glog/logging.h>

#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "file_identity.h"
#include "tar/tar_index.h"
#include "tar/tar_reader.h"
#include "trainer/base/file/file_error.h"
#include "trainer/base/text/text.h"
#include "trainer/storage/cursor.h"
#include "trainer/storage/path_redirects.h"
#include "trainer/storage/tar_shards.h"

namespace trainer {
namespace {

// Appends a field of a message: its number, its wire type, a number of seven bits a byte.
void PutNumber(uint64_t number, std::string* out) {
  for (; number >= 0x80; number >>= 7) out->push_back(static_cast<char>(number | 0x80));
  out->push_back(static_cast<char>(number));
}

std::vector<std::string> PathsRead(const std::vector<std::string>& files) {
  std::vector<std::string> paths;
  for (const std::string& file : files) paths.push_back(ResolvedPath(file));
  return paths;
}

// A record is a Datum with the encoded image, as databases hold them.
class TarCursor final : public Cursor {
 public:
  explicit TarCursor(const std::string& source)
      : Cursor(source), index_(source, ExpandShards(source)), state_(PathsRead(index_.files())) {
    LOG(INFO) << EscapeControl(source) << ": " << index_.count() << " images in "
              << index_.files().size() << (index_.files().size() == 1 ? " tar file" : " tar files");
    GoTo(0);
  }

  std::string_view Key() const override { return key_; }
  std::string_view Value() const override {
    if (!has_value_) ReadValue();
    return value_;
  }

  void SeekFirst() override { GoTo(0); }
  void SeekLast() override { GoTo(index_.count() - 1); }
  bool Next() override {
    const bool wraps = at_ + 1 == index_.count();
    GoTo(wraps ? 0 : at_ + 1);
    return wraps;
  }
  bool Seek(std::string_view key) override {
    const size_t at = index_.Find(key);
    if (at == index_.count()) return false;
    GoTo(at);
    return true;
  }
  bool SeekAtLeast(std::string_view key) override {
    for (size_t i = 0; i < index_.count(); ++i) {
      if (index_.KeyOf(i) < key) continue;
      GoTo(i);
      return true;
    }
    return false;
  }

  int64_t Count() const override { return static_cast<int64_t>(index_.count()); }
  uint64_t StoredBytes() const override { return index_.bytes(); }
  void CheckUnchanged() const override { state_.Check(path()); }

 private:
  static constexpr size_t kOpenFiles = 16;

  void GoTo(size_t at) {
    at_ = at;
    key_ = index_.KeyOf(at);
    has_value_ = false;
  }

  void ReadValue() const {
    const TarIndex::Sample& sample = index_[at_];
    value_.assign("\x38\x01", 2);  // encoded: true
    if (sample.has_label) {
      value_.push_back('\x28');
      PutNumber(static_cast<uint64_t>(int64_t{sample.label}), &value_);
    }
    value_.push_back('\x22');  // data
    PutNumber(sample.bytes, &value_);
    const size_t head = value_.size();
    value_.resize(head + static_cast<size_t>(sample.bytes));
    FileOf(sample.shard).Read(sample.at, static_cast<size_t>(sample.bytes), value_.data() + head);
    has_value_ = true;
  }

  // A few files stay open, since a shuffled epoch goes to and fro between them.
  const TarShard& FileOf(uint32_t shard) const {
    Open& open = open_[shard % kOpenFiles];
    if (open.file == nullptr || open.shard != shard) {
      open.file = OpenAgain([&] { return std::make_unique<TarShard>(index_.files()[shard]); });
      open.shard = shard;
    }
    return *open.file;
  }

  struct Open {
    uint32_t shard = 0;
    std::unique_ptr<TarShard> file;
  };

  TarIndex index_;
  FileIdentity state_;
  size_t at_ = 0;
  std::string key_;
  // A value is read when it is asked for, which changes no record that this cursor shows.
  mutable bool has_value_ = false;
  mutable std::string value_;
  mutable std::array<Open, kOpenFiles> open_;
};

}  // namespace
std::unique_ptr<Cursor> OpenTar(const std::string& source) {
  return std::make_unique<TarCursor>(source);
}

}  // namespace trainer
