#include "trainer/datasets/mnist.h"

#include "gzip_reader.h"
#include "trainer/base/error/error.h"
#include "trainer/base/log/progress.h"
#include "trainer/base/text/text.h"
#include "trainer/storage/database_writer.h"

namespace trainer {
namespace {

constexpr uint32_t kImagesMagic = 0x803, kLabelsMagic = 0x801, kMaxSide = 16384;

}  // namespace

class IdxReader::File {
 public:
  explicit File(const std::string& path) : path_(path), file_(path) {}

  [[noreturn]] void Fail(const std::string& message) const {
    throw Error(ErrorCode::kData, {path_}, message);
  }

  // Exactly `bytes`, or an error that says `where` the file ends.
  void Read(uint8_t* to, size_t bytes, const std::string& where) {
    if (file_.Read(to, bytes) < bytes) Fail(Join("the file is truncated: it ends ", where));
  }

  uint32_t Number() {
    uint8_t bytes[4];
    Read(bytes, sizeof bytes, "in its header");
    return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
  }

  void CheckMagic(uint32_t wanted, const char* what, const char* other) {
    const uint32_t magic = Number();
    if (magic == wanted) return;
    if (magic == kImagesMagic || magic == kLabelsMagic) {
      Fail(Join("this file contains ", other, ", not ", what, "; swap the two files"));
    }
    Fail(Join("not an idx file of ", what, ": it starts with ", magic, " instead of ", wanted));
  }

  // A gzip file's checksum is only checked here.
  void CheckEnd(uint32_t count) {
    uint8_t extra;
    if (file_.Read(&extra, 1) != 0) {
      Fail(Join("the file has data after the ", count, " entries that its header names"));
    }
  }

 private:
  std::string path_;
  GzipReader file_;
};

IdxReader::IdxReader(const std::string& images, const std::string& labels)
    : images_(std::make_unique<File>(images)), labels_(std::make_unique<File>(labels)) {
  images_->CheckMagic(kImagesMagic, "images", "labels");
  labels_->CheckMagic(kLabelsMagic, "labels", "images");
  count_ = images_->Number();
  const uint32_t label_count = labels_->Number();
  const uint32_t rows = images_->Number(), columns = images_->Number();
  if (count_ != label_count) {
    labels_->Fail(Join("has ", label_count, " labels, but ", images, " has ", count_, " images"));
  }
  if (count_ == 0) images_->Fail("has no images");
  if (rows < 1 || columns < 1 || rows > kMaxSide || columns > kMaxSide) {
    images_->Fail(Join("its header says images of ", rows, "x", columns,
                       "; each side must be 1 to ", kMaxSide));
  }
  rows_ = static_cast<int>(rows);
  columns_ = static_cast<int>(columns);
}

IdxReader::~IdxReader() = default;

bool IdxReader::Next(std::vector<uint8_t>* pixels, int* label) {
  if (done_ == count_) {
    images_->CheckEnd(count_);
    labels_->CheckEnd(count_);
    return false;
  }
  pixels->resize(static_cast<size_t>(rows_) * static_cast<size_t>(columns_));
  const std::string where = Join("in entry ", done_, " of ", count_);
  images_->Read(pixels->data(), pixels->size(), where);
  uint8_t byte = 0;
  labels_->Read(&byte, 1, where);
  *label = byte;
  ++done_;
  return true;
}

int64_t WriteIdx(const std::string& images, const std::string& labels, const std::string& database,
                 const std::string& backend) {
  IdxReader reader(images, labels);
  CheckRecordCount("given", reader.count());
  DatabaseWriter output(backend, database);
  caffe::Datum datum;
  datum.set_channels(1);
  datum.set_height(reader.rows());
  datum.set_width(reader.columns());
  std::vector<uint8_t> pixels;
  int label = 0;
  Progress progress(Join("Writing ", database), "images", reader.count());
  while (reader.Next(&pixels, &label)) {
    datum.set_data(pixels.data(), pixels.size());
    datum.set_label(label);
    output.Put(datum);
    progress.Add(1, pixels.size());
  }
  output.Finish();
  return output.records();
}

}  // namespace trainer
