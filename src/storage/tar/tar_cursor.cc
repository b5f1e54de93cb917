#include <glog/logging.h>

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "datum.pb.h"
#include "file_identity.h"
#include "indexed_cursor.h"
#include "tar/tar.h"
#include "tar/tar_index.h"
#include "tar/tar_reader.h"
#include "trainer/base/file/file_error.h"
#include "trainer/base/text/text.h"
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
class TarCursor final : public IndexedCursor {
 public:
  explicit TarCursor(const std::string& source)
      : IndexedCursor(source),
        index_(source, ExpandShards(source)),
        state_(PathsRead(index_.files())) {
    LOG(INFO) << EscapeControl(source) << ": " << index_.count() << " images in "
              << index_.files().size() << (index_.files().size() == 1 ? " tar file" : " tar files");
    SeekFirst();
  }

  int64_t Count() const override { return static_cast<int64_t>(index_.count()); }
  uint64_t StoredBytes() const override { return index_.bytes(); }
  void CheckUnchanged() const override { state_.Check(path()); }
  std::optional<int32_t> Label() const override {
    const TarIndex::Sample& sample = index_[static_cast<size_t>(at())];
    return sample.has_label ? std::optional(sample.label) : std::nullopt;
  }

 private:
  static constexpr size_t kOpenFiles = 16;

  std::string KeyOf(int64_t record) const override {
    return index_.KeyOf(static_cast<size_t>(record));
  }
  int64_t Find(std::string_view key) const override {
    const size_t at = index_.Find(key);
    return at == index_.count() ? -1 : static_cast<int64_t>(at);
  }
  void ReadValue(int64_t record, std::string* value) const override {
    const TarIndex::Sample& sample = index_[static_cast<size_t>(record)];
    value->assign("\x38\x01", 2);  // encoded: true
    if (sample.has_label) {
      value->push_back('\x28');
      PutNumber(static_cast<uint64_t>(int64_t{sample.label}), value);
    }
    if (const std::span<const float> labels = index_.LabelsOf(sample); !labels.empty()) {
      constexpr uint64_t kLengthDelimited = 2;
      PutNumber(uint64_t{caffe::Datum::kLabelsFieldNumber} << 3 | kLengthDelimited, value);
      PutNumber(labels.size_bytes(), value);
      value->append(reinterpret_cast<const char*>(labels.data()), labels.size_bytes());
    }
    value->push_back('\x22');  // data
    PutNumber(sample.bytes, value);
    const size_t head = value->size();
    value->resize(head + static_cast<size_t>(sample.bytes));
    FileOf(sample.shard).Read(sample.at, static_cast<size_t>(sample.bytes), value->data() + head);
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
  mutable std::array<Open, kOpenFiles> open_;
};

}  // namespace

std::unique_ptr<Cursor> OpenTar(const std::string& source) {
  return std::make_unique<TarCursor>(source);
}

}  // namespace trainer
