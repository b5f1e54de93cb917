#include <unordered_set>
#include <vector>

#include "datum.pb.h"
#include "tar/tar.h"
#include "tar/tar_writer.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/json.h"
#include "trainer/base/text/lower_case.h"
#include "trainer/base/text/text.h"
#include "trainer/storage/datum.h"

namespace trainer {
namespace {

// A member's name without its type. The type begins at the first dot of a name, and a name is a
// path below where the file is unpacked; so the key keeps neither dots nor a slash in front.
std::string TarKey(const std::string& key) {
  std::string name = key;
  const std::string lower = LowerCase(key);
  for (const std::string_view type : {".jpg", ".jpeg", ".png", ".tif", ".tiff", ".pgm", ".ppm"}) {
    if (lower.ends_with(type)) name.resize(key.size() - type.size());
  }
  for (char& c : name) {
    if (c == '.' || c == '\0') c = '_';
  }
  name.erase(0, name.find_first_not_of('/'));
  return name;
}

std::string_view TypeOfDatum(std::string_view image) {
  if (image.starts_with("\xff\xd8")) return "jpg";
  if (image.starts_with("\x89PNG")) return "png";
  if (image.starts_with("II") || image.starts_with("MM")) return "tif";
  return image.starts_with("P5") ? "pgm" : "ppm";
}

class TarSetWriter final : public RecordWriter {
 public:
  TarSetWriter(std::string path, uint64_t shard_bytes)
      : path_(std::move(path)), shard_bytes_(shard_bytes) {
    NextShard();
  }

  // Pixels become a PNG, which loses nothing.
  void Prepare(StoredRecord* record) const override {
    caffe::Datum datum;
    if (datum.ParseFromString(record->value) && datum.encoded() && !datum.data().empty()) return;
    DatumParser parser;
    const DatumView& view = parser.Parse(path_, record->key, record->value);
    if (view.bytes.empty() || (view.channels != 1 && view.channels != 3)) {
      throw Error(
          ErrorCode::kData, {path_},
          Join("record ", QuoteKey(record->key), " is ", view.ShapeText(),
               view.bytes.empty() ? " floats" : " bytes",
               "; a tar file can only store images with 1 or 3 channels: write an .h5 file"));
    }
    Image image{view.channels, view.height, view.width, {view.bytes.begin(), view.bytes.end()}};
    datum.Clear();
    datum.set_encoded(true);
    datum.set_data(EncodeImage(image, "png"));
    SetLabels(view, &datum);
    datum.SerializeToString(&record->value);
  }

  void Put(const StoredRecord& record) override {
    caffe::Datum datum;
    datum.ParseFromString(record.value);
    const std::string key = TarKey(record.key);
    if (!keys_.insert(std::hash<std::string>()(key)).second) {
      throw Error(
          ErrorCode::kData, {path_},
          Join("record ", QuoteKey(record.key), " would have the name '", EscapeControl(key),
               "', the same as an earlier record; give the records other keys"));
    }
    if (shard_bytes_ > 0 && shards_.back()->size() > 0 &&
        shards_.back()->size() + datum.data().size() > shard_bytes_) {
      shards_.back()->Finish();
      NextShard();
    }
    shards_.back()->Add(Join(key, ".", TypeOfDatum(datum.data())), datum.data());
    if (datum.has_label()) shards_.back()->Add(key + ".cls", std::to_string(datum.label()));
    if (datum.labels().empty()) return;
    Json labels = Json::Array();
    for (const float label : datum.labels()) labels.Push(label);
    shards_.back()->Add(key + ".json", labels.ToLine());
  }

  void Finish() override {
    shards_.back()->Finish();
    for (const auto& shard : shards_) RefuseExisting(shard->path());  // made meanwhile
    for (const auto& shard : shards_) shard->Place();
    SyncFolder(FolderOf(path_));
  }

 private:
  void NextShard() {
    std::string name = path_;
    if (shard_bytes_ > 0) {
      const std::string number = std::to_string(shards_.size());
      name.insert(name.size() - 4,
                  "-" + std::string(6 - std::min<size_t>(number.size(), 6), '0') + number);
    }
    RefuseExisting(name);
    shards_.push_back(std::make_unique<TarWriter>(name));
  }

  std::string path_;
  uint64_t shard_bytes_;
  std::vector<std::unique_ptr<TarWriter>> shards_;
  std::unordered_set<size_t> keys_;  // by their hashes: two of 10^8 keys meet with p = 3 * 10^-4
};

}  // namespace

std::unique_ptr<RecordWriter> CreateTarSet(const std::string& path, uint64_t shard_bytes) {
  return std::make_unique<TarSetWriter>(path, shard_bytes);
}

}  // namespace trainer
