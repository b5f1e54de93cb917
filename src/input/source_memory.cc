// MemoryData: images without a header that stay in memory.

#include <glog/logging.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/parse_number.h"
#include "trainer/base/text/text.h"
#include "trainer/config/named_file.h"
#include "trainer/input/image_decoder.h"
#include "trainer/input/source.h"

namespace trainer {
namespace {

constexpr char kMemoryRecordsParam[] = "memory_data_param";
constexpr uint64_t kMemoryRecordsMostBytes = uint64_t{1} << 40;

struct MemoryRecords {
  std::string path;
  int channels = 0, height = 0, width = 0;
  std::string bytes;
  std::vector<int32_t> labels;  // empty: all are 0

  size_t ImageBytes() const { return static_cast<size_t>(int64_t{channels} * height * width); }
  uint64_t count() const { return bytes.size() / ImageBytes(); }
};

class MemoryLoader final : public ImageLoader {
 public:
  explicit MemoryLoader(const MemoryRecords& records) : records_(records) {
    view_.channels = records_.channels;
    view_.height = records_.height;
    view_.width = records_.width;
    view_.has_label = true;
  }

  const DatumView& Load(const Record& record, const CropChooser*) override {
    const auto at = static_cast<size_t>(record.index);
    const size_t bytes = records_.ImageBytes();
    view_.bytes = std::string_view(records_.bytes).substr(at * bytes, bytes);
    view_.label = records_.labels.empty() ? 0 : records_.labels[at];
    return view_;
  }

 private:
  const MemoryRecords& records_;
  DatumView view_;
};

class MemorySampler final : public RecordSampler {
 public:
  explicit MemorySampler(MemoryRecords records) : records_(std::move(records)) {}

  const std::string& path() const override { return records_.path; }
  const MemoryRecords& records() const { return records_; }
  std::string Key() const override { return Join("image ", at_, " of ", records_.count()); }

  void Get(Record* record) override {
    key_ = Key();
    record->key = key_;
    record->index = at_;
  }
  uint64_t Skip(uint64_t count) override {
    at_ += count;
    const uint64_t ended = at_ / records_.count();
    at_ %= records_.count();
    return ended;
  }
  int64_t CountRecords(bool) override { return static_cast<int64_t>(records_.count()); }
  void Seek(const Position& position) override {
    const uint64_t before = at_;
    at_ = position.key.empty() ? 0 : position.record % records_.count();
    if (position.key.empty() || position.key == Key()) return;
    at_ = before;
    FailSeek(position);
  }

 private:
  const MemoryRecords records_;
  uint64_t at_ = 0;
  std::string key_;  // of the last record
};

std::string ReadStandardInput() {
  constexpr size_t kPiece = 1 << 20;
  std::string all;
  for (;;) {
    const size_t used = all.size();
    all.resize(used + kPiece);
    const ssize_t got = FileOps::Posix().Read(STDIN_FILENO, all.data() + used, kPiece);
    if (got < 0) ThrowFileError(FileUse::kInput, "read", "the standard input", errno);
    all.resize(used + static_cast<size_t>(got));
    if (got == 0) return all;
  }
}

std::vector<int32_t> ParseLabels(const std::string& path, const std::string& text) {
  std::vector<int32_t> labels;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const std::optional<int32_t> label = ParseNumber<int32_t>(word);
    if (!label) {
      throw Error(ErrorCode::kData, {path},
                  Join("label ", labels.size() + 1,
                       " is not a 32-bit integer; write one integer per line"));
    }
    labels.push_back(*label);
  }
  return labels;
}

int Size(const LayerSpec& layer, const char* field, uint32_t value) {
  constexpr uint32_t kMost = 1u << 24;
  if (value < 1 || value > kMost) {
    layer.FailIn(kMemoryRecordsParam, field,
                 Join(field, " is ", value, "; it must be 1 to ", kMost));
  }
  return static_cast<int>(value);
}

void ReadImages(const LayerSpec& layer, const InputEnv& env, MemoryRecords* records) {
  const std::string& source = layer.proto().memory_data_param().source();
  if (source == "-") {
    if (env.rank.size > 1) {
      layer.FailIn(kMemoryRecordsParam, "source",
                   "several ranks cannot share the standard input; write the images to a file");
    }
    records->path = "the standard input";
    records->bytes = ReadStandardInput();
  } else {
    records->bytes =
        ReadNamedFile(layer, kMemoryRecordsParam, "source", source, [&](const std::string& path) {
          records->path = path;
          return ReadFile(path, kMemoryRecordsMostBytes);
        });
  }
  const size_t image = records->ImageBytes();
  if (!records->bytes.empty() && records->bytes.size() % image == 0) return;
  ThrowAtField(layer, kMemoryRecordsParam, "source",
               Error(ErrorCode::kData, {records->path},
                     Join(records->bytes.size(), " bytes are not a multiple of the image size, ",
                          image, " bytes (channels * height * width); check these three fields")));
}

void ReadLabels(const LayerSpec& layer, MemoryRecords* records) {
  const std::string& labels = layer.proto().memory_data_param().labels();
  if (labels.empty()) return;
  records->labels =
      ReadNamedFile(layer, kMemoryRecordsParam, "labels", labels, [&](const std::string& path) {
        return ParseLabels(path, ReadFile(path, kMemoryRecordsMostBytes));
      });
  if (records->labels.size() == records->count()) return;
  ThrowAtField(layer, kMemoryRecordsParam, "labels",
               Error(ErrorCode::kData, {labels},
                     Join(records->labels.size(), " labels for ", records->count(), " images")));
}

// Leaves only the first `limit` images; 0 leaves all.
void KeepFirstImages(size_t limit, MemoryRecords* records) {
  if (limit == 0 || limit >= records->count()) return;
  records->bytes.resize(limit * records->ImageBytes());
  if (!records->labels.empty()) records->labels.resize(limit);
}

// Without a source, a net can be planned but not run.
class NoRecords final : public RecordSampler {
 public:
  const std::string& path() const override { return path_; }
  void Get(Record*) override { Fail(); }
  uint64_t Skip(uint64_t) override { Fail(); }
  std::string Key() const override { return ""; }
  void Seek(const Position&) override {}

 private:
  [[noreturn]] static void Fail() {
    throw Error(ErrorCode::kInternal, "MemoryData without a source is read");
  }
  std::string path_ = "no source";
};

class NoDecoders final : public DecoderFactory {
 public:
  explicit NoDecoders(const MemoryRecords& like) : image_{like.channels, like.height, like.width} {}

  std::vector<Shape> Shapes(int64_t batch_size, bool) const override {
    return {{batch_size, image_.channels, image_.height, image_.width}, {batch_size}};
  }
  std::unique_ptr<Decoder> Make() const override { return nullptr; }

 private:
  ImageShape image_;
};

}  // namespace

std::unique_ptr<BatchQueue> OpenMemory(const LayerSpec& layer, const InputEnv& env) {
  const caffe::MemoryDataParameter& param = layer.proto().memory_data_param();
  MemoryRecords records;
  Size(layer, "batch_size", param.batch_size());
  records.channels = Size(layer, "channels", param.channels());
  records.height = Size(layer, "height", param.height());
  records.width = Size(layer, "width", param.width());
  const BatchQueueOptions options =
      QueueOptionsOf(layer, kMemoryRecordsParam, param.batch_size(), env);
  if (param.source().empty()) {
    if (!param.labels().empty()) {
      layer.FailIn(kMemoryRecordsParam, "labels",
                   "labels is given without source; also give source, the file of images");
    }
    RecordSource none{std::make_unique<NoRecords>(), std::make_unique<NoDecoders>(records)};
    return std::make_unique<BatchQueue>(std::move(none), options);
  }
  if (int64_t{records.channels} * records.height > INT_MAX / records.width) {
    layer.FailIn(kMemoryRecordsParam, "width", "an image of these sizes has more than 2 GiB");
  }
  ReadImages(layer, env, &records);
  ReadLabels(layer, &records);
  KeepFirstImages(layer.proto().data_param().limit(), &records);
  LOG(INFO) << EscapeControl(records.path) << ": " << records.count() << " images";
  auto sampler = std::make_unique<MemorySampler>(std::move(records));
  auto decoders = std::make_unique<ImageDecoderFactory>(
      Transform(layer, env.phase, env.key),
      [&owned = sampler->records()](BitDepth) { return std::make_unique<MemoryLoader>(owned); });
  return std::make_unique<BatchQueue>(RecordSource{std::move(sampler), std::move(decoders)},
                                      options);
}

}  // namespace trainer
